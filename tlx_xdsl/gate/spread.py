"""Work in forked processes: they have all as it is here, and one that dies costs what it was at, not the run."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing.connection import Connection, wait
from types import FrameType
from typing import Any

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.forks import can_fork, forked


class TimeOver(BaseException):
    """The time that a part of the work may take is over. No `except Exception` on the way may take it for its own."""


@contextmanager
def time_limit(seconds: float) -> Generator[None]:
    """Raise TimeOver within when this process has had so many seconds of a processor; only in its main thread."""

    def over(_signal: int, _frame: FrameType | None) -> None:
        raise TimeOver

    before = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@dataclass(frozen=True)
class Ended:
    """The end of a process in the middle of its work."""

    why: str


@dataclass
class _Child:
    process: Any
    connection: Connection
    at: int | None = None
    """What it works on."""
    deadline: float = field(default=float("inf"))


def spread(
    work: Callable[[int], Iterator[Any]], numbers: Iterable[int], jobs: int, seconds: float
) -> Iterator[tuple[int, Any]]:
    """Yield what `work` yields for each number, with the number, as it comes; Ended where its process did not go on.

    There are at most `jobs` processes. One that yields nothing for `seconds` is killed.
    Raises CompilationError where processes can't be forked.
    """
    if not can_fork():
        raise CompilationError("code is judged in forked processes, which this system lacks: use Linux, or WSL")
    waiting = iter(numbers)
    children: list[_Child] = []
    try:
        for number in islice(waiting, jobs):
            children.append(_started(work, number, seconds, children))
        while children:
            for child in _ready(children):
                kind, answer = _answer(child, seconds)
                assert child.at is not None
                if kind != "done":
                    child.deadline = time.monotonic() + seconds
                    yield child.at, answer
                if kind == "item":
                    continue
                following = next(waiting, None)
                if kind == "done" and following is not None:
                    _give(child, following, seconds)
                    continue
                _end(child)
                children.remove(child)
                if following is not None:
                    children.append(_started(work, following, seconds, children))
    finally:
        for child in children:
            child.process.kill()
            _end(child)


def _ready(children: Sequence[_Child]) -> list[_Child]:
    """Wait until a child has an answer or its time is over; return those of which that is so."""
    due = min(child.deadline for child in children)
    ready = wait([child.connection for child in children], max(0.0, due - time.monotonic()))
    return [each for each in children if each.connection in ready or time.monotonic() >= each.deadline]


def _answer(child: _Child, seconds: float) -> tuple[str, Any]:
    """Return `item` or `done`, as a child says it, with the item; or `ended`, with why."""
    if not child.connection.poll():
        child.process.kill()
        return "ended", Ended(f"{seconds:g} s were over")
    try:
        return child.connection.recv()
    except (EOFError, OSError):
        child.process.join()
        return "ended", Ended(f"its process ended: {_how(child.process.exitcode)}")


def _how(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"status {code}"


def _started(work: Callable[[int], Iterator[Any]], number: int, seconds: float, others: Sequence[_Child]) -> _Child:
    child = _Child(*forked(_serve, [other.connection for other in others], work))
    _give(child, number, seconds)
    return child


def _give(child: _Child, number: int, seconds: float) -> None:
    child.at, child.deadline = number, time.monotonic() + seconds
    child.connection.send(number)


def _end(child: _Child) -> None:
    with contextlib.suppress(OSError):
        child.connection.send(None)
    child.process.join(1.0)
    child.connection.close()
    if child.process.is_alive():
        child.process.kill()
        child.process.join()


def _serve(connection: Connection, parents: Sequence[Connection], work: Callable[[int], Iterator[Any]]) -> None:
    """Work on one number after the other until the parent says that there are no more, or is gone."""
    for each in parents:
        each.close()
    # Ctrl-C is the parent's, who ends us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from tlx_xdsl.backend import stop_workers

    with contextlib.suppress(EOFError, BrokenPipeError):
        while (number := connection.recv()) is not None:
            for item in work(number):
                connection.send(("item", item))
            connection.send(("done", None))
    stop_workers()
    # What the parent has registered for its own end is not ours to do.
    os._exit(0)
