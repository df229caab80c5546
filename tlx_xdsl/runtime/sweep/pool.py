"""The sweep's own processes: spawned, never forked, deaf to Ctrl-C, and gone when their parent is.

Where processes have no semaphores, as in a sandbox without `/dev/shm`, threads of this one do the work.

Each has one backend worker, which is another process: what kills stock Triton kills that one only. With Triton in the
process of the pool itself a compile is no faster, and its death would break the pool for all configurations in it.
"""

from __future__ import annotations

import ast
import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from tlx_xdsl.backend import limit_workers, start_worker, stop_worker
from tlx_xdsl.errors import CompilationError, SourceLocation

_GUARD = 'if __name__ == "__main__":'


class SpawnPool:
    """A pool of spawned processes, which can be replaced when one of them has died."""

    note: str | None = None
    """The reason why there are threads instead."""

    def __init__(self, workers: int):
        self.workers = workers
        self._pool: Executor
        self._context = multiprocessing.get_context("spawn")
        self._start()

    def _start(self) -> None:
        # Its other end is open here alone: that it closes is what the processes see of our end.
        ours, self._ours = self._context.Pipe(duplex=False)
        self._theirs = ours
        try:
            self._pool = ProcessPoolExecutor(self.workers, self._context, _begin, (ours,))
        except (ImportError, OSError) as error:
            self._pool = ThreadPoolExecutor(self.workers)
            self.note = f"no pool of processes can be made here ({error}): threads of this process have compiled"

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Have a process call a function; raises BrokenExecutor when one has died meanwhile."""
        # Processes are started in here, and start with the signals that we block.
        with _without_interrupts():
            return self._pool.submit(function, *arguments)

    def replace(self) -> None:
        """Start anew, after a process has died.

        Raises CompilationError when the new processes can't start either.
        """
        self.kill()
        self._start()
        try:
            self.submit(_nothing).result()
        except BrokenExecutor as error:
            raise CompilationError(
                "the processes of the sweep end as soon as they start",
                notes=("they say why on standard error; `workers` or an executor of your own may help",),
            ) from error

    def close(self) -> None:
        """Let the processes end; nothing must be under way."""
        self._pool.shutdown()
        self._close_pipe()

    def kill(self) -> None:
        """End the processes, with what they are at."""
        self._close_pipe()
        if self.note is not None:
            stop_worker()
        self._pool.shutdown(cancel_futures=True)

    def _close_pipe(self) -> None:
        self._ours.close()
        self._theirs.close()


def _nothing() -> None:
    """Show that a process is there."""


def _begin(parent: Connection) -> None:
    """Prepare a process of the pool."""
    limit_workers(1)
    start_worker()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Connection) -> None:
    """Wait until the parent has closed its end of the pipe, or is gone; then end at once, and what we have started."""
    with contextlib.suppress(EOFError, OSError):
        parent.recv()
    stop_worker()
    os._exit(1)


@contextlib.contextmanager
def _without_interrupts() -> Generator[None]:
    """Block SIGINT in this thread, where the system knows it: a terminal sends it to all processes at once."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# --- a script without a guard ----------------------------------------------------------------------------------------


def check_main() -> None:
    """Refuse a call that would be made again in each process, which runs the parent's script on its way up.

    Raises CompilationError, located at the statement of the script that leads here.
    """
    main = sys.modules["__main__"]
    path = getattr(main, "__file__", None)
    line = _line_in(main)
    if path is None or line is None or not Path(path).is_file():
        return
    text = Path(path).read_text(encoding="utf-8")
    for statement in ast.parse(text).body:
        if statement.lineno <= line <= (statement.end_lineno or line):
            names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
            if isinstance(statement, ast.If) and "__name__" in names:
                return
            raise CompilationError(
                f"a sweep starts processes, which run this file again: put this under '{_GUARD}'",
                SourceLocation(path, line, statement.col_offset + 1),
                source_line=text.splitlines()[line - 1],
                notes=("or give an executor of your own, such as a ThreadPoolExecutor",),
            )


def _line_in(main: ModuleType) -> int | None:
    """The line at the top of the script that is being executed; None where this is not called from there."""
    frame: FrameType | None = sys._getframe()  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if frame.f_globals is vars(main) and frame.f_code.co_name == "<module>":
            return frame.f_lineno
        frame = frame.f_back
    return None
