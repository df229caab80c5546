"""The parent's side: a small pool of workers, started when needed, kept between compiles, replaced when dead."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Generator

from tlx_xdsl.errors import InputError

from .errors import BackendError
from .options import BackendOptions, UpTo
from .protocol import Request
from .result import BackendResult
from .toolchain import Toolchain
from .worker_process import WorkerProcess, converse

_MOST_BY_DEFAULT = 8
"""A worker holds about 300 MB, and ptxas more than one core's caches: beyond this, more of them gain little."""


def default_limit() -> int:
    """Return how many workers a process has at most by default: one for each core it may use."""
    # An affinity mask is what a container or a batch system grants; not every system has one.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, _MOST_BY_DEFAULT))


class WorkerClient:
    """Compiles in at most `limit` workers at a time; safe to call from several threads, which are served in turn.

    A thread holds a slot while it compiles. There are never more workers than slots: a new one is started only by
    the holder of a slot that finds none idle.
    """

    def __init__(self, limit: int | None = None, toolchain: Toolchain | None = None):
        self._toolchain = toolchain
        self._limit = default_limit() if limit is None else limit
        self.is_used = True
        """False where this process compiles itself (`compile_in_this_process`)."""
        # Re-entrant, because a signal handler may stop the workers while its thread is in here.
        self._lock = threading.RLock()
        self._idle: list[WorkerProcess] = []
        self._busy: set[WorkerProcess] = set()
        self._slots_taken = 0
        self._queue: deque[threading.Event] = deque()

    @property
    def workers(self) -> tuple[WorkerProcess, ...]:
        """The workers that are known to run, the one that the next compile gets first."""
        return (*reversed(self._idle), *self._busy)

    def limit(self, workers: int) -> None:
        """Have at most so many workers from now on; compiles in progress are not cut short.

        Raises ValueError for less than one.
        """
        if workers < 1:
            raise InputError(f"workers: expected at least 1, got {workers}")
        with self._lock:
            self._limit = workers
            surplus = self._idle[: max(0, len(self._idle) + len(self._busy) - workers)]
            del self._idle[: len(surplus)]
            self._serve_queue()
        _end_all(surplus)

    def start(self, workers: int = 1) -> None:
        """Have at least so many workers, up to the limit; returns at once, while Triton's import goes on over there."""
        with self._lock:
            if not self.is_used:
                return
            self._drop_unusable()
            while len(self._idle) + len(self._busy) < min(workers, self._limit):
                self._idle.append(WorkerProcess(self._toolchain))

    def stop(self) -> None:
        """End the workers; the next compile starts another.

        Compiles that other threads have in progress fail with BackendError.
        """
        with self._lock:
            idle, self._idle = self._idle, []
            busy = tuple(self._busy)
        for worker in busy:
            worker.abandon()
        _end_all(idle)

    def forget(self) -> None:
        """Let go of the workers that belong to the process we were forked from."""
        for worker in self.workers:
            worker.close_pipes()
        # The lock too: a thread that does not exist in this process may hold it.
        self.__init__(self._limit, self._toolchain)

    def compile(
        self,
        text: str,
        options: BackendOptions,
        upto: UpTo,
        source_name: str,
        timeout_s: float | None,
        on_stage: Callable[[str], None] | None = None,
    ) -> BackendResult:
        """Compile in a worker; raises BackendError, also if the worker died or ran out of time.

        One that was killed from outside gets a successor, once. The time limit is that of each try, and does not count
        the time that other threads' compiles take up all slots.
        """

        def answer_of(worker: WorkerProcess) -> BackendResult | BackendError:
            try:
                request = Request(worker.directory, options, upto, source_name)
                answer = converse(worker, request, text, timeout_s, on_stage)
            except BaseException:
                # It died, or the conversation was cut, by Ctrl-C for one: what it says next answers nothing.
                with self._lock:
                    self._busy.discard(worker)
                worker.end()
                raise
            self._check_in(worker)
            return answer

        with self._slot():
            worker = self._check_out()
            try:
                answer = answer_of(worker)
            except BackendError:
                if not worker.was_killed():
                    raise
                answer = answer_of(self._check_out())
        if isinstance(answer, BackendError):
            raise answer
        return answer

    @contextlib.contextmanager
    def _slot(self) -> Generator[None]:
        """Wait for a slot, first come, first served, and hold it."""
        turn = threading.Event()
        with self._lock:
            self._queue.append(turn)
            self._serve_queue()
        try:
            turn.wait()
            yield
        finally:
            with self._lock:
                if turn.is_set():
                    self._slots_taken -= 1
                else:
                    self._queue.remove(turn)
                self._serve_queue()

    def _serve_queue(self) -> None:
        while self._queue and self._slots_taken < self._limit:
            self._slots_taken += 1
            self._queue.popleft().set()

    def _check_out(self) -> WorkerProcess:
        with self._lock:
            self._drop_unusable()
            # The one that was last at work: its memory is still warm.
            worker = self._idle.pop() if self._idle else WorkerProcess(self._toolchain)
            self._busy.add(worker)
            return worker

    def _check_in(self, worker: WorkerProcess) -> None:
        with self._lock:
            self._busy.discard(worker)
            keep = worker.usable() and len(self._idle) + len(self._busy) < self._limit
            if keep:
                self._idle.append(worker)
        if not keep:
            worker.end()

    def _drop_unusable(self) -> None:
        for worker in [worker for worker in self._idle if not worker.usable()]:
            self._idle.remove(worker)
            worker.end()


def _end_all(workers: list[WorkerProcess]) -> None:
    """End idle workers, giving them a moment to go by themselves."""
    for worker in workers:
        worker.close_pipes()
    for worker in workers:
        worker.wait_until_gone()
        worker.end()


CLIENT = WorkerClient()
"""The process's own client: a worker takes about 0.2 s to start, so all callers share them."""

_OTHERS: dict[Toolchain, WorkerClient] = {}
"""The clients of Tritons that are not the installed one."""


def client_of(toolchain: Toolchain | None) -> WorkerClient:
    """Return the client whose workers compile with a Triton; None is the installed one."""
    if toolchain is None or toolchain.folder is None:
        return CLIENT
    if toolchain not in _OTHERS:
        _OTHERS[toolchain] = WorkerClient(toolchain=toolchain)
    return _OTHERS[toolchain]


def stop_workers() -> None:
    """End the workers of all Tritons; the next compile starts another."""
    for client in (CLIENT, *_OTHERS.values()):
        client.stop()


def _forget_all() -> None:
    for client in (CLIENT, *_OTHERS.values()):
        client.forget()


atexit.register(stop_workers)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
