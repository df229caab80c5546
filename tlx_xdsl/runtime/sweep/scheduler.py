"""`compile_many`: deal configurations out to an executor, and find a verdict for each."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from tlx_xdsl.backend import BackendError, installed_triton_version
from tlx_xdsl.errors import CompilationError, InputError
from tlx_xdsl.interpreter.workers import cores
from tlx_xdsl.progress import Progress as Bar

from .jobs import Job
from .kernels import UnreachableKernelError, is_loading
from .pool import SpawnPool, check_main
from .report import JobResult, SweepReport, judged
from .steps import (
    Compiled,
    Failed,
    Keep,
    Lowered,
    Request,
    Unreachable,
    compile_lowered,
    lower,
    lower_order,
    order,
)

Progress: TypeAlias = Callable[[int, int, JobResult], None]
"""Called with the number of configurations that are done with, that of all, and the verdict that was just found."""


def compile_many(
    jobs: Iterable[Job],
    executor: Executor | None = None,
    *,
    workers: int | None = None,
    progress: Progress | bool | None = None,
    prune: bool = True,
    timeout_s: float | None = 600.0,
    keep: Keep = "binary",
) -> SweepReport:
    """Compile every configuration, each to a verdict, on processes of the sweep's own or on `executor`.

    Any `concurrent.futures.Executor` will do, `dask.distributed.Client.get_executor()` for more than one machine; it is
    not shut down. `workers` is the number of processes (one for each core) or, with an executor, how many steps it is
    given at a time (all of them). `progress` is a function to call with (done, total, result), or whether to draw a bar
    on standard error, if tqdm is installed (None: at a terminal and in a notebook). `prune` leaves what needs more
    shared memory, tensor memory, threads or registers than the target has before LLVM and ptxas see it. `timeout_s` is
    for stock Triton's part of one configuration. `keep` says what stays of each: the verdict (`nothing`), also the
    cubin (`binary`), every text (`all`).

    Configurations that come to the same text are compiled once. A fault in one is its verdict; Ctrl-C ends the
    processes.

    Raises CompilationError without stock Triton, and for a script that starts a sweep without a guard; TypeError for a
    job that has no kernel.
    """
    if is_loading():
        raise CompilationError("a kernel's file starts a sweep when it is imported: put that under a guard")
    todo = list(jobs)
    for job in todo:
        _ = job.source
    version = installed_triton_version()
    if version is None:
        raise CompilationError("stock Triton is not installed: install tlx-xdsl[nvidia]")
    if workers is not None and workers < 1:
        raise InputError(f"workers: expected at least 1, got {workers}")
    request = Request(version, prune, timeout_s, keep)
    start = time.perf_counter()
    pool = None
    if executor is None and todo:
        check_main()
        pool = SpawnPool(min(workers or cores(), len(todo)))
        # One more than there are processes, so that none waits for us.
        workers = pool.workers + 1
    with _reporter(progress, len(todo)) as report:
        sweep = _Sweep(todo, request, executor or pool, workers or len(todo) * 2, report)
        try:
            sweep.run()
        except BaseException:
            sweep.cancel()
            if pool is not None:
                pool.kill()
            raise
    if pool is not None:
        pool.close()
        if pool.note is not None:
            sweep.notes[pool.note] = None
    results = tuple(result for result in sweep.results if result is not None)
    seconds = time.perf_counter() - start
    return SweepReport(results, seconds, None if pool is None else pool.workers, tuple(sweep.notes))


@dataclass(frozen=True)
class _Step:
    """The next thing to do for a configuration."""

    number: int
    lowered: Lowered | None = None
    """Its text; without it, that is what is to be made."""


class _Sweep:
    """The state of a sweep: what is to be done, what is under way, what was found."""

    def __init__(
        self, jobs: list[Job], request: Request, executor: Executor | SpawnPool | None, width: int, report: Progress
    ):
        self.results: list[JobResult | None] = [None] * len(jobs)
        self.notes: dict[str, None] = {}
        self._jobs, self._request, self._executor, self._width, self._report = jobs, request, executor, width, report
        self._todo = deque(_Step(number) for number in range(len(jobs)))
        self._suspects: deque[_Step] = deque()
        self._under_way: dict[Future[Any], _Step] = {}
        self._seconds = [0.0] * len(jobs)
        self._waiting: dict[str, list[_Step]] = {}
        self._compiled: dict[str, tuple[int, Compiled | Failed]] = {}
        self._done = 0

    def run(self) -> None:
        """Find all verdicts."""
        while self._todo or self._suspects or self._under_way:
            if self._suspects:
                self._try_suspect()
                continue
            while self._todo and len(self._under_way) < self._width:
                self._begin(self._todo.popleft())
            if self._under_way:
                done, _ = wait(self._under_way, return_when=FIRST_COMPLETED)
                if broken := [step for future in done if (step := self._take(future)) is not None]:
                    self._recover(broken)

    def cancel(self) -> None:
        """Take back what has not begun."""
        for future in self._under_way:
            future.cancel()

    # --- going on ------------------------------------------------------------------------------------------------

    def _begin(self, step: _Step) -> None:
        """Set a step under way."""
        try:
            call = self._call(step)
        except UnreachableKernelError as error:
            self._lower_here(step, str(error))
            return
        try:
            self._under_way[self._submit(call)] = step
        except BrokenExecutor:
            self._todo.appendleft(step)
            self._recover([])

    def _call(self, step: _Step) -> tuple[Any, ...]:
        """Return what an executor is to call with what; raises UnreachableKernelError."""
        if step.lowered is not None:
            return compile_lowered, step.lowered, self._request
        return lower_order, order(self._jobs[step.number]), self._request

    def _submit(self, call: tuple[Any, ...]) -> Future[Any]:
        assert self._executor is not None, "a sweep without jobs submits nothing"
        return self._executor.submit(*call)

    def _take(self, future: Future[Any]) -> _Step | None:
        """Go on with what a future brings; returns the step when its process, or another one of the pool, died."""
        step = self._under_way.pop(future)
        try:
            outcome = future.result()
        except BrokenExecutor:
            return step
        except (Exception, CancelledError) as error:
            # What executors raise themselves: of dask, that workers were lost over the step, several of them.
            self._give_up(step, f"{type(error).__name__}: {' '.join(str(error).split())}")
            return None
        self._continue(step, outcome)
        return None

    def _continue(self, step: _Step, outcome: Lowered | Failed | Unreachable | Compiled) -> None:
        if isinstance(outcome, Unreachable):
            self._lower_here(step, outcome.reason)
            return
        self._seconds[step.number] += outcome.seconds
        if isinstance(outcome, Lowered):
            self._compile_once(_Step(step.number, outcome))
        elif step.lowered is None:
            assert isinstance(outcome, Failed), "a text is made before it is compiled"
            self._settle(step, outcome, None)
        else:
            key = step.lowered.key
            self._compiled[key] = step.number, outcome
            for same in self._waiting.pop(key):
                self._settle(same, outcome, None if same.number == step.number else step.number)

    def _lower_here(self, step: _Step, reason: str) -> None:
        job = self._jobs[step.number]
        note = f"'{job.source.name}' was lowered in this process, one configuration after the other: {reason}"
        self.notes[note] = None
        self._continue(step, lower(job.source, job.specialization, job.num_stages, self._request))

    def _compile_once(self, step: _Step) -> None:
        """Compile a text, unless it is another configuration's, too."""
        assert step.lowered is not None
        key = step.lowered.key
        if key in self._compiled:
            number, outcome = self._compiled[key]
            self._settle(step, outcome, number)
        elif key in self._waiting:
            self._waiting[key].append(step)
        else:
            self._waiting[key] = [step]
            # Before any other text is made, so that they don't pile up.
            self._todo.appendleft(step)

    def _settle(self, step: _Step, outcome: Compiled | Failed, same_as: int | None) -> None:
        result = judged(self._jobs[step.number], self._seconds[step.number], outcome, step.lowered, same_as)
        self.results[step.number] = result
        self._done += 1
        self._report(self._done, len(self._jobs), result)

    # --- processes that die --------------------------------------------------------------------------------------

    def _recover(self, broken: list[_Step]) -> None:
        """Go on after a process has died over one of `broken`, or of what else is under way.

        In a pool it is unknown which. In a new one each is tried alone, so that it takes nothing with it.
        """
        wait(self._under_way)
        broken += [step for future in list(self._under_way) if (step := self._take(future)) is not None]
        if isinstance(self._executor, SpawnPool):
            self._suspects.extend(broken)
            self._executor.replace()
            return
        for step in (*broken, *self._todo):
            self._give_up(step, "a process of the executor ended, and with it the executor")
        self._todo.clear()

    def _try_suspect(self) -> None:
        step = self._suspects.popleft()
        future = self._submit(self._call(step))
        self._under_way[future] = step
        wait([future])
        if self._take(future) is not None:
            self._give_up(step, "the process that worked on it ended")
            assert isinstance(self._executor, SpawnPool), "others can't be replaced"
            self._executor.replace()

    def _give_up(self, step: _Step, message: str) -> None:
        self._continue(step, Failed(BackendError(message, stage="start", death=message), 0.0))


@contextmanager
def _reporter(progress: Progress | bool | None, total: int) -> Generator[Progress]:
    """The function to call: a bar with how many there are of each verdict, or the caller's own."""
    if callable(progress):
        yield progress
        return
    counts: Counter[str] = Counter()
    with Bar(total, "configurations", delay=0.0, wanted=progress) as bar:

        def show(_done: int, _total: int, result: JobResult) -> None:
            counts[result.kind] += 1
            bar.note(", ".join(f"{count} {kind}" for kind, count in counts.items()))
            bar.advance()

        yield show
