"""The threads that run the programs of a launch beside the one that launches.

They are Python's: a kernel runs without the interpreter's lock, so that they run at once. They wait in one queue. To
wake them costs some tens of microseconds, which is measured once; a launch takes as many of them as that is worth.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

from tlx_xdsl.errors import InputError

VARIABLE = "TLX_CPU_THREADS"
"""The environment variable with the number of threads."""

_LEAST_NS = 20_000
"""No launch that is shorter is worth to wake a thread, or to measure what that costs. The lowest cost of a wake-up
that was seen, of Python 3.11 on Linux, is 15 us."""

_SHARE = 2
"""A thread is to run for so many times what its wake-up costs."""

_ROUNDS = 7
"""Wake-ups that are measured."""


class Job:
    """Work that several threads do together, in which they find their shares by themselves: each calls `work` once."""

    def __init__(self, work: Callable[[], object]):
        self._work = work
        self._lock = threading.Lock()
        self._active = 0
        self._closed = False
        self._done = threading.Lock()
        self._done.acquire()
        self.error: BaseException | None = None
        """What a helper raised."""

    def help(self) -> None:
        """Take part; a thread that comes when all is done does nothing."""
        with self._lock:
            if self._closed:
                return
            self._active += 1
        try:
            self._work()
        except BaseException as error:
            self.error = error
        finally:
            with self._lock:
                self._active -= 1
                if self._closed and not self._active:
                    self._done.release()

    def close(self) -> None:
        """Wait for those that take part; from now on none may."""
        with self._lock:
            self._closed = True
            if not self._active:
                return
        interrupt: BaseException | None = None
        while True:
            try:
                self._done.acquire()
                break
            except BaseException as error:
                # They work on the arrays of the launch: nothing may be freed before they are done.
                interrupt = error
        if interrupt is not None:
            raise interrupt


class Pool:
    """Threads that help; they are started when they are first needed, and end with the process."""

    def __init__(self, threads: int):
        self.threads = threads
        """All that run programs, with the one that launches."""
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._started = 0
        self._starting = threading.Lock()
        self._wake_up_ns: int | None = None

    def helpers(self, programs: int, ns: float) -> int:
        """The number of threads to wake for so many programs that take `ns` together on one thread."""
        if programs < 2 or ns < _LEAST_NS or self.threads < 2:
            return 0
        return min(self.threads - 1, programs - 1, int(ns / (_SHARE * self.wake_up_ns())))

    def submit(self, job: Job, helpers: int) -> None:
        """Wake threads for a job."""
        self._start()
        for _ in range(helpers):
            self._queue.put(job)

    def wake_up_ns(self) -> int:
        """Return what it costs until a thread has taken part in a job that is nothing, in nanoseconds."""
        if self._wake_up_ns is None:
            self._wake_up_ns = self._measured()
        return self._wake_up_ns

    def stop(self) -> None:
        """Let the threads end once they are through with what is in the queue."""
        with self._starting:
            for _ in range(self._started):
                self._queue.put(None)
            self._started = 0

    def _start(self) -> None:
        if self._started >= self.threads - 1:
            return
        with self._starting:
            while self._started < self.threads - 1:
                # A daemon: a process that ends does not wait for it.
                threading.Thread(target=_serve, args=(self._queue,), name="tlx-cpu", daemon=True).start()
                self._started += 1

    def _measured(self) -> int:
        found: list[int] = []
        for _ in range(_ROUNDS):
            awake = threading.Event()
            before = time.perf_counter_ns()
            self.submit(Job(awake.set), 1)
            awake.wait()
            found.append(time.perf_counter_ns() - before)
        return int(statistics.median(found))


def _serve(queue: SimpleQueue[Job | None]) -> None:
    while (job := queue.get()) is not None:
        job.help()
        # What it holds is the user's, to be freed while this thread waits.
        del job


class _State:
    """The pool of this process."""

    pool: Pool | None = None
    lock = threading.Lock()


def pool() -> Pool:
    """The pool of this process.

    Raises ValueError for a number of threads that the environment names and that is none.
    """
    found = _State.pool
    if found is None:
        with _State.lock:
            found = _State.pool
            if found is None:
                found = _State.pool = Pool(_default_threads())
    return found


def set_cpu_threads(number: int | None) -> None:
    """Let launches on the CPU take up to so many threads, the one that launches among them; None for all CPUs.

    Raises ValueError for a number below 1.
    """
    threads = _default_threads() if number is None else _checked(number, "set_cpu_threads")
    with _State.lock:
        before, _State.pool = _State.pool, Pool(threads)
    if before is not None:
        before.stop()


def cpu_threads() -> int:
    """The number of threads that a launch on the CPU takes at most."""
    return pool().threads


def _default_threads() -> int:
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return _checked(int(chosen) if chosen.isdecimal() else chosen, VARIABLE)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _checked(number: object, what: str) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise InputError(f"{what}: expected a number of threads from 1, found {number!r}")
    return number


def _after_fork() -> None:
    """A child has none of its parent's threads, and locks as they were at that moment."""
    before, _State.pool, _State.lock = _State.pool, None, threading.Lock()
    if before is not None:
        _State.pool = Pool(before.threads)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
