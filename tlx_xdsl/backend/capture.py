"""Catching what Triton, LLVM and ptxas print.

They write to file descriptors 1 and 2 from C++ and from child processes, and to `sys.stdout` from Python;
there is no API that hands over a diagnostic. Redirecting descriptors touches the whole process: one capture
at a time.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Generator
from pathlib import Path

STDOUT_NAME = "stdout.log"
STDERR_NAME = "stderr.log"


@contextlib.contextmanager
def captured(directory: Path) -> Generator[None]:
    """Send everything printed in the body to two files in `directory`, which outlive this process."""
    with contextlib.ExitStack() as stack:
        for descriptor, name in ((1, STDOUT_NAME), (2, STDERR_NAME)):
            stack.enter_context(_redirected(descriptor, directory / name))
        # Under pytest and in notebooks sys.stdout is an object of its own, not file descriptor 1.
        out = stack.enter_context(open(1, "w", encoding="utf-8", buffering=1, closefd=False))
        err = stack.enter_context(open(2, "w", encoding="utf-8", buffering=1, closefd=False))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        yield


@contextlib.contextmanager
def _redirected(descriptor: int, path: Path) -> Generator[None]:
    # What the caller has buffered so far belongs to the old descriptor.
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(descriptor)
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    try:
        os.dup2(target, descriptor)
        yield
    finally:
        os.dup2(saved, descriptor)
        os.close(saved)
        os.close(target)


def read_log(directory: Path, name: str) -> str:
    """Return one captured file's text; empty if the capture never began."""
    path = directory / name
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def read_logs(directory: Path) -> str:
    """Return both captured texts, standard error first, for that is where the reason stands."""
    return read_log(directory, STDERR_NAME) + read_log(directory, STDOUT_NAME)
