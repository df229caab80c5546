"""Run the clusters of a launch on all cores: forked processes share the arrays, and take clusters as they get on.

The parent deals contiguous chunks in ascending order and collects turns, warnings and prints. So what is reported is
what one process would report: of several faults the one of the lowest program, and all that was said before it.
"""

from __future__ import annotations

import contextlib
import io
import mmap
import multiprocessing
import os
import signal
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.dialects.scf import WhileOp
from tlx_xdsl.errors import CompilationError, internal_error
from tlx_xdsl.forks import can_fork, forked
from tlx_xdsl.lifeline import when_abandoned
from tlx_xdsl.numerics.blas import one_thread
from tlx_xdsl.progress import Progress
from tlx_xdsl.text.diagnostics import Diagnostic, collected_diagnostics, report_again

from .budget import processor_time
from .global_memory import GlobalMemory
from .grid import First
from .launch import Settings, run_clusters
from .machine import Cluster, Launch, Observer
from .polls import polls

WORTH_IT = 0.4
"""Seconds of work from which on other processes help, unless the caller says how many there are: to start two of them
and to copy 10 MB of arrays takes 0.03 s."""
PROBE = 3
"""Clusters that run before this is judged; the first one takes longer, since it finds out where buffers lie."""
CHUNKS = 8
"""Chunks that each process gets, if all take as long."""


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_launch(
    launch: Launch,
    firsts: Sequence[First],
    settings: Settings,
    jobs: int | None = None,
    observer: Observer | None = None,
) -> tuple[int, int]:
    """Run all clusters; gives the turns that they have taken together, and the number of processes.

    Without `jobs`, all cores take part where that is worth it and programs do not talk to each other. This process
    alone runs them where an observer is to see them all, or where they need each other.
    Raises Fault as `run_clusters` does, and CompilationError when a process dies.
    """
    what = "clusters" if launch.cluster != (1, 1, 1) else "programs"
    with one_thread(), Progress(len(firsts), what) as progress:
        if observer is not None or not can_fork() or needs_one_process(launch.plan.module):
            jobs = 1
        idle: list[Cluster] = []
        alone = _Alone(run_clusters(launch, firsts, settings, observer, idle), progress)
        if jobs != 1 and not talks(launch.plan.module):
            # How long the last ones take says whether help is worth it, and other processes begin with what they know.
            seconds = alone.run(PROBE)
            if jobs is None and seconds * (len(firsts) - PROBE) > WORTH_IT:
                jobs = cores()
            firsts = firsts[PROBE:]
        jobs = max(1, min(jobs or 1, len(firsts)))
        if jobs == 1:
            alone.run()
            return alone.turns, 1
        alone.clusters.close()
        with shared(launch.memory):
            return alone.turns + _Crew(launch, settings, jobs, progress, idle).run(firsts), jobs


@dataclass
class _Alone:
    """The run of clusters by this process."""

    clusters: Generator[int]
    progress: Progress
    turns: int = 0

    def run(self, count: int | None = None) -> float:
        """Run that many clusters, or all that are left; gives the seconds of work of the last one.

        Work is the time of this thread on a processor: other processes do not make a launch worth more of ours.
        """
        seconds, before = 0.0, processor_time()
        for taken in islice(self.clusters, count):
            self.turns += taken
            self.progress.advance()
            seconds, before = processor_time() - before, processor_time()
        return seconds


def talks(module: ModuleOp) -> bool:
    """True if programs may depend on what others have done: then their order is that of one process (without `jobs`).

    Atomic additions of floats depend on it in their last bits, and a loop may wait for another program.
    """
    return any(
        isinstance(op, WhileOp | scf.WhileOp) or any(part in op.name for part in _TALKING) for op in module.walk()
    )


def takes_turns(module: ModuleOp) -> bool:
    """Return whether programs wait in loops for what others write."""
    return any(isinstance(op, WhileOp | scf.WhileOp) and polls(op) for op in module.walk())


def needs_one_process(module: ModuleOp) -> bool:
    """Return whether programs poll for what others write, or take over the work of those that have not begun (CLC)."""
    return any(part in op.name for op in module.walk() for part in _NEEDING)


_TALKING = ("atomic", "wait_signal", "tma_reduce", "descriptor_reduce")
"""Parts of the names of operations that read and write global memory at once."""
_NEEDING = ("atomic_poll", "wait_signal", "clc_")
"""Parts of the names of operations that a program may hang at when another process has the programs that it needs."""


@contextmanager
def shared(memory: GlobalMemory) -> Generator[None]:
    """Hold the arrays in memory that forked processes share; at the end the caller's arrays have what was written."""
    own = [buffer.bytes for buffer in memory]
    for buffer in memory:
        if len(buffer.bytes):
            pages = np.frombuffer(mmap.mmap(-1, len(buffer.bytes)), np.uint8)
            pages[...] = buffer.bytes
            buffer.bytes = pages
    memory.exclusive = multiprocessing.get_context("fork").RLock()
    try:
        yield
    finally:
        memory.exclusive = contextlib.nullcontext()
        for buffer, data in zip(memory, own, strict=True):
            data[...] = buffer.bytes
            buffer.bytes = data


# Messages ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Tick:
    """A cluster is done."""


@dataclass(frozen=True)
class _Done:
    """A chunk is done, or has failed."""

    chunk: int
    turns: int
    said: list[Diagnostic]
    printed: str
    error: CompilationError | None = None


def _work(
    link: Connection, inherited: Sequence[Connection], launch: Launch, settings: Settings, idle: list[Cluster]
) -> None:
    """The body of a worker: run chunks until there is no other. `idle` are clusters that have run."""
    for each in inherited:
        each.close()
    when_abandoned(link.fileno(), lambda: os._exit(1))
    # The parent ends its workers itself when the user interrupts. It also has set the threads of BLAS: here, to say so
    # once more would start them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while (message := link.recv()) is not None:
        chunk, firsts = message
        turns, error = 0, None
        printed = io.StringIO()
        with collected_diagnostics() as said, contextlib.redirect_stdout(printed):
            try:
                for taken in run_clusters(launch, firsts, settings, None, idle):
                    turns += taken
                    link.send(_Tick())
            except CompilationError as fault:
                error = fault.without_history()
            except Exception as defect:
                error = internal_error(defect)
        link.send(_Done(chunk, turns, said, printed.getvalue(), error))


# The parent ----------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Worker:
    process: BaseProcess
    link: Connection
    chunk: int | None = None
    """The chunk that it runs."""


@dataclass
class _Crew:
    """The workers of one run."""

    launch: Launch
    settings: Settings
    jobs: int
    progress: Progress
    idle: list[Cluster]
    workers: list[_Worker] = field(default_factory=list[_Worker])
    done: dict[int, _Done] = field(default_factory=dict[int, _Done])
    error: tuple[int, CompilationError] | None = None
    """The lowest chunk that has failed."""
    broken: bool = False
    """True if a worker has died: others may wait for a lock that it held."""
    turns: int = 0

    def run(self, firsts: Sequence[First]) -> int:
        """Run all clusters; gives the number of turns."""
        size = max(1, len(firsts) // (self.jobs * CHUNKS))
        chunks = [firsts[at : at + size] for at in range(0, len(firsts), size)]
        following = iter(enumerate(chunks))
        try:
            for _ in range(self.jobs):
                self.workers.append(self._start())
                self._deal(self.workers[-1], next(following, None))
            while busy := [worker for worker in self.workers if worker.chunk is not None]:
                links = {worker.link: worker for worker in busy}
                for link in wait(list(links)):
                    worker = links[link]  # pyright: ignore[reportArgumentType]
                    if self._hear(worker, chunks):
                        self._deal(worker, next(following, None) if self.error is None else None)
                if self._is_settled(busy):
                    break
        finally:
            self._dismiss()
        self._report()
        if self.error is not None:
            raise self.error[1]
        return self.turns

    def _is_settled(self, busy: Sequence[_Worker]) -> bool:
        """Return whether it is known how the run ends."""
        if self.error is None:
            return False
        return self.broken or all(worker.chunk is None or worker.chunk > self.error[0] for worker in busy)

    def _start(self) -> _Worker:
        links = [worker.link for worker in self.workers]
        return _Worker(*forked(_work, links, self.launch, self.settings, self.idle))

    def _deal(self, worker: _Worker, task: tuple[int, Sequence[First]] | None) -> None:
        worker.chunk = None if task is None else task[0]
        with contextlib.suppress(BrokenPipeError):
            # A worker that has died is noticed when it is heard.
            worker.link.send(task)

    def _hear(self, worker: _Worker, chunks: Sequence[Sequence[First]]) -> bool:
        """Take a message; whether the worker is free."""
        assert worker.chunk is not None
        try:
            message: Any = worker.link.recv()
        except (EOFError, OSError):
            worker.process.join()
            self.broken = True
            message = _Done(worker.chunk, 0, [], "", _dead(worker, chunks[worker.chunk][0]))
        if isinstance(message, _Tick):
            self.progress.advance()
            return False
        assert isinstance(message, _Done)
        self.turns += message.turns
        self.done[message.chunk] = message
        if message.error is not None and (self.error is None or message.chunk < self.error[0]):
            self.error = (message.chunk, message.error)
        return True

    def _report(self) -> None:
        """Say what the workers have said, in the order of their programs."""
        last = len(self.done) if self.error is None else self.error[0]
        for chunk, done in sorted(self.done.items()):
            if chunk <= last:
                sys.stdout.write(done.printed)
                for diagnostic in done.said:
                    report_again(diagnostic)

    def _dismiss(self) -> None:
        """End all workers."""
        for worker in self.workers:
            if worker.chunk is not None:
                worker.process.kill()
            worker.link.close()
        for worker in self.workers:
            worker.process.join()


def _dead(worker: _Worker, first: First) -> CompilationError:
    code = worker.process.exitcode or 0
    why = f"by signal {-code}" if code < 0 else f"with status {code}"
    return CompilationError(
        f"a process of the interpreter has ended {why} while it ran the programs from {first} on",
        notes=("with one job, all programs run in this process",),
    )
