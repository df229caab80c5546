"""Files that command lines write."""

from __future__ import annotations

import os
from pathlib import Path


def write_text(text: str, path: str | None) -> None:
    """Print a text, or write it to a file in a folder that need not exist yet."""
    if path is None:
        print(text, end="")
    else:
        write_file(Path(path), text)


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file whole, or not at all, in a folder that need not exist yet."""
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():
        # Such as /dev/stdout.
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return
    half = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        half.write_bytes(content.encode() if isinstance(content, str) else content)
        half.replace(path)
    except BaseException:
        half.unlink(missing_ok=True)
        raise
