"""Compiling in forked processes while this one goes on: what they make waits in the cache on disk.

A forked process has the kernel as it is here, also one that no file holds under a name, and need not run the user's
script again, as a spawned one would. It must not use the GPU: `fork` leaves it without a CUDA context. It compiles with
the Triton that is loaded already, without a worker: where stock Triton aborts, only this process ends.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import ceil
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, cast

from tlx_xdsl.backend import compile_in_this_process
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.forks import can_fork, forked

SECONDS = 120.0
"""The longest that no process may have anything to say: they are ended then, and what is left is not compiled here."""


@dataclass(frozen=True)
class Answer:
    """Outcome of one task."""

    number: int
    error: CompilationError | None = None
    """Why it can't be compiled."""
    failure: str = ""
    """What else went wrong: the caller meets it where it compiles for itself, or it is only so in that process."""
    warnings: tuple[tuple[str, type[Warning], str, int], ...] = ()
    """What was warned of on the way: message, category, file and line."""
    seconds: float = 0.0
    """Of the process that has compiled it."""
    value: Any = None
    """What `compile_one` has returned."""


@dataclass
class _Worker:
    process: BaseProcess
    link: Connection
    number: int
    """The task that it is at."""


def compiled_ahead(
    compile_one: Callable[[int], Any], tasks: Sequence[int], processes: int | None = None
) -> Generator[int | Answer]:
    """Call `compile_one` with each of `tasks` in processes of its own, the first ones first.

    Gives an `Answer` for each as soon as it is done with, and the number alone where nothing was said: processes can't
    be forked here, or one has died. `processes` are one for each core but this process's.

    Closing the generator ends the processes.
    """
    if not can_fork():
        yield from tasks
        return
    # The processes start with what is loaded here; a search whose result is on disk does without.
    for needed in ("tlx_xdsl.runtime.driver.compilation", "tlx_xdsl.backend.stages", "triton.backends.nvidia.compiler"):
        with contextlib.suppress(ImportError):
            import_module(needed)
    count = min(max(1, processor_count() - 1) if processes is None else processes, len(tasks))
    if count < 1:
        yield from tasks
        return
    crew = _Crew(compile_one, tasks)
    try:
        crew.start(count)
        yield from crew.answers()
    finally:
        crew.end()


class _Crew:
    """The processes, and what is left to be dealt out to them."""

    def __init__(self, compile_one: Callable[[int], Any], tasks: Sequence[int]):
        self._compile_one = compile_one
        self._left: Iterator[int] = iter(tasks)
        self._workers: list[_Worker] = []

    def start(self, count: int) -> None:
        """Fork so many processes, each with its first task."""
        wanted = processors()
        for number in [next(self._left) for _ in range(count)]:
            links = [worker.link for worker in self._workers]
            self._workers.append(_Worker(*forked(_work, links, wanted, self._compile_one, number), number))

    def answers(self) -> Generator[int | Answer]:
        """Yield the processes' answers as they come, and then the numbers of the tasks that have none."""
        while busy := {worker.link: worker for worker in self._workers}:
            ready = wait([*busy], SECONDS)
            if not ready:
                break
            for link in ready:
                yield self._hear(busy[cast(Connection, link)])
        yield from (worker.number for worker in self._workers)
        yield from self._left

    def _hear(self, worker: _Worker) -> int | Answer:
        """Take what a process has found, and give it the next task."""
        try:
            found: int | Answer = worker.link.recv()
        except (EOFError, OSError):
            self._workers.remove(worker)
            self._end(worker)
            return worker.number
        number = next(self._left, None)
        with contextlib.suppress(BrokenPipeError):
            # Of one that has died meanwhile we hear at the next turn.
            worker.link.send(number)
        if number is None:
            self._workers.remove(worker)
            worker.link.close()
            worker.process.join()
        else:
            worker.number = number
        return found

    def end(self) -> None:
        """End what is still at work."""
        for worker in self._workers:
            self._end(worker)
        self._workers.clear()

    def _end(self, worker: _Worker) -> None:
        worker.process.kill()
        worker.link.close()
        worker.process.join()


def _work(
    link: Connection,
    inherited: Sequence[Connection],
    wanted: set[int],
    compile_one: Callable[[int], Any],
    number: int,
) -> None:
    """Compile what the parent asks for, until there is no more."""
    use_all(wanted)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What belongs to the GPU must not be destroyed here.
    gc.freeze()
    gc.disable()
    for each in inherited:
        each.close()
    compile_in_this_process()
    task: int | None = number
    try:
        while task is not None:
            link.send(_outcome(compile_one, task))
            task = link.recv()
    except (EOFError, OSError):
        # The parent is gone.
        pass
    finally:
        # No finalizer of the parent's objects runs.
        os._exit(0)


def _outcome(compile_one: Callable[[int], Any], number: int) -> Answer:
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            value = compile_one(number)
        except CompilationError as error:
            return Answer(number, error.without_history(), seconds=time.perf_counter() - start)
        except Exception as error:
            # The reason may be that there is no GPU in here, which says nothing of the kernel.
            return Answer(number, failure=f"{type(error).__name__}: {error}")
    texts = tuple((str(each.message), each.category, each.filename, each.lineno) for each in said)
    return Answer(number, warnings=texts, seconds=time.perf_counter() - start, value=value)


# --- processors -------------------------------------------------------------------------------------------------------
#
# Those that this process may use, whatever its own thread is bound to. OpenMP, which torch brings along, may bind the
# thread that uses it to one processor (OMP_PROC_BIND): a mask of that thread alone, which forked processes would
# inherit.


_TASKS = Path("/proc/self/task")
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""Microseconds of all processors together that the process gets in a period, and the period (cgroup v2)."""


def processors() -> set[int]:
    """The processors that any thread of this process may run on."""
    found = set(os.sched_getaffinity(0))
    with contextlib.suppress(OSError):
        for task in _TASKS.iterdir():
            # A thread may end meanwhile.
            with contextlib.suppress(OSError, ValueError):
                found |= os.sched_getaffinity(int(task.name))
    return found


def processor_count() -> int:
    """Return how many processors can work for this process at a time: no more than its container gets time for."""
    count = len(processors())
    with contextlib.suppress(OSError, ValueError):
        quota, period = _QUOTA.read_text(encoding="utf-8").split()
        if quota != "max":
            count = min(count, ceil(int(quota) / int(period)))
    return max(1, count)


def use_all(wanted: set[int]) -> None:
    """Let this thread run on all of these processors."""
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, wanted)
