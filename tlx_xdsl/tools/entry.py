"""The way into a command line: an interrupt or a failure is one line there, from the first import on.

Nothing here imports more than it needs to say so: the imports of a command take a second, and Ctrl-C comes then, too.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from types import FrameType

from tlx_xdsl import wings
from tlx_xdsl.errors import CompilationError, relative_paths

from .output import reader_has_gone, say, warnings_as_diagnostics

STARTED = time.perf_counter()
"""When the command line began, about: Python has started by then."""

INTERRUPTED = 130
"""The exit status that a shell gives a program that SIGINT has ended."""


def exit_status(load: Callable[[], Callable[[], int | None]]) -> int:
    """Import a command by `load`, and run what that gives; an error in the input is one line and status 1.

    What the command returns is its status, and None is 0.
    """
    _open_standard_streams()
    # A command is soon over: with Python's thresholds a sixth of its time goes to the search for garbage.
    gc.set_threshold(50_000)
    with relative_paths(_current_folder()), warnings_as_diagnostics():
        return _exit_status(load)


def with_plugins(args: Sequence[str]) -> list[str]:
    """Return the arguments without `--no-plugins`, which holds for this process and its children."""
    if "--no-plugins" in args:
        os.environ[wings.DISABLED] = "1"
    return [arg for arg in args if arg != "--no-plugins"]


def _current_folder() -> str | None:
    try:
        return os.getcwd()
    except FileNotFoundError:
        # It was removed meanwhile.
        return None


def _exit_status(load: Callable[[], Callable[[], int | None]]) -> int:
    try:
        with _ends_at_once():
            command = load()
        status = command() or 0
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        reader_has_gone()
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except CompilationError as error:
        say(error)
        return 1
    except Exception as error:
        from .failures import as_compilation_error

        say(as_compilation_error(error))
        return 1


def _open_standard_streams() -> None:
    """Open what the caller has closed, as `>&-` does, to nowhere: a file or a pipe would get its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # It gets the lowest number that is free; processes that the command starts have theirs, too.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8"))


@contextmanager
def _ends_at_once() -> Generator[None]:
    """End the process at an interrupt: there is nothing yet to clean up, and imports do not all stand an exception."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end(_signal: int, _frame: FrameType | None) -> None:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)
