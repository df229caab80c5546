"""Machines that run the benchmark's launches: a GPU, or the interpreter, with times that are made up."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.warp_specialize import candidates, compiled
from benchmarks.warp_specialize.candidates import STOCK, STOCK_WS, Candidate
from tests.gallery.plain.family import Family, Problem, Shape

SCREENED = 5
"""Launches of a candidate in the first comparison."""


class Gpu:
    """Launches on the GPU of this process, and times."""

    def __init__(self, folder: Path, rounds: int):
        import torch

        from benchmarks.gpu import run
        from benchmarks.warp_specialize.arrays import TorchArrays

        torch.backends.cuda.matmul.allow_tf32 = False
        self.torch, self.folder = torch, folder
        self.timer = run.GpuTimer(rounds, hot_rounds=0)
        self.arrays = TorchArrays()
        self.machine = run.machine()
        self.programs = torch.cuda.get_device_properties(0).multi_processor_count
        self.package, self.others = compiled.package_fingerprint(), set[str]()
        self.flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
        self._expected: Any = None

    def begin(self, family: Family, shape: Shape) -> Problem:
        """Make the arrays and the reference of a launch."""
        from benchmarks.warp_specialize.arrays import TorchArrays, expected

        self.arrays = self._expected = None
        self.torch.cuda.empty_cache()
        self.arrays = TorchArrays()
        problem = family.problem(shape, self.arrays)
        self._expected = expected(problem)
        return problem

    def bound(self, each: Candidate) -> Any:
        """The launch of a candidate on the arrays, or why there is none, and the problem that it solves."""
        from benchmarks.warp_specialize.arrays import UntouchedArrays

        problem = each.problem(self.arrays.again())
        # Types and alignments are those of arrays that nothing is written to, as when it was compiled.
        job = compiled.job_of(each, each.problem(UntouchedArrays()))
        found = self._read(job)
        if isinstance(found, str):
            return found, problem
        if "refused" in found and each.who != STOCK:
            return f"refused: {found['refused']}", problem
        stream = self.torch.cuda.current_stream().cuda_stream
        return compiled.bound(found, problem, each.constexprs, stream, self.programs), problem

    def by_hand(self, family: Family, shape: Shape) -> Any:
        """The launch of the kernel that was written by hand, or why there is none, and its problem."""
        from benchmarks.gemm.common import each_launch

        problem = family.problem(shape, self.arrays.again())
        made = candidates.by_hand(family, shape, self.arrays.again())
        if made is None:
            return "there is none", problem
        launches: list[Any] = []
        for part in each_launch(made[0]):
            found = self._read(compiled.job_by_hand(part, family.name))
            if isinstance(found, str):
                return found, problem
            stream = self.torch.cuda.current_stream().cuda_stream
            launches.append(compiled.launcher(found).bind(part.grid, *part.arguments.values(), stream=stream))
        problem.outputs = tuple(made[2])
        # What the launches refer to lives as long as they do.
        kept = made

        def run() -> None:
            for each in launches:
                each()
            assert kept

        return run, problem

    def _read(self, job: compiled.Job) -> Any:
        path = compiled.path_of(self.folder, job)
        if not path.exists():
            return "not prepared"
        found = compiled.read(path)
        if not found["package"].startswith(self.package) and job.who not in (STOCK, STOCK_WS):
            self.others.add(found["package"])
            self.machine["prepared by another package"] = sorted(self.others)
        return found.get("error", found)

    def wrong(self, problem: Problem, family: Family) -> str:
        """Say how the outputs differ from the reference; empty where they do not."""
        from benchmarks.warp_specialize.arrays import error_of

        if self.arrays.written_beside():
            return "written beside an array"
        wanted = {name: self._expected[name] for name in problem.outputs}
        return error_of(problem, wanted, family.tolerance)

    def poison(self, problem: Problem) -> None:
        """Fill the outputs with NaN."""
        for name in problem.outputs:
            problem.arrays[name].fill_(float("nan"))

    def first(self, launch: Any, label: str) -> None:
        """Launch for the first time; a kernel that hangs ends the process."""
        self.timer.first(launch, label)

    def quick(self, launch: Any) -> float:
        """The median of some launches in ms, each with a cold L2 cache."""
        spans: list[tuple[Any, Any]] = []
        for _ in range(SCREENED):
            begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
            self.flush.zero_()
            begin.record()
            launch()
            end.record()
            spans.append((begin, end))
        self.torch.cuda.synchronize()
        return median(begin.elapsed_time(end) for begin, end in spans)

    def cool(self, launches: Mapping[str, Any]) -> dict[str, Any]:
        """Times in ms of all in turns, and clocks."""
        return self.timer.cool(launches)


class Dry:
    """The same without a GPU: small problems in the interpreter, and times that are made up."""

    def __init__(self, _folder: Path, rounds: int):
        self.rounds = rounds
        self.machine = {"device": "no GPU: times are made up"}

    def begin(self, family: Family, shape: Shape) -> Problem:
        from tests.gallery.plain.numpy_arrays import NumpyArrays

        return family.problem(shape, NumpyArrays())

    def bound(self, each: Candidate) -> Any:
        from tests.gallery.plain.numpy_arrays import NumpyArrays
        from tlx_xdsl.runtime.specialize.specialized import warp_specialized
        from tlx_xdsl.transforms.warp_specialize.specialize import Decisions

        problem = each.problem(NumpyArrays())
        kernel, warps = each.family.kernel, {"num_warps": each.options["num_warps"], "jobs": 1}
        if each.who in (STOCK, STOCK_WS):
            named = {**problem.arguments, **each.constexprs}
            return lambda: kernel.interpret(problem.grid, **named, **warps), problem
        types, constants = compiled.signature_of(kernel, problem, each.constexprs)
        found = warp_specialized(kernel, types, constants, Decisions(**each.decisions), num_warps=warps["num_warps"])
        if found.refused:
            return f"refused: {found.refused.message}", problem
        fitted = found.arguments(problem.grid, **problem.arguments, **each.constexprs)
        if fitted is None:
            return "the launch does not fit", problem
        grid, values = fitted
        return lambda: found.kernel.interpret(grid, *values, jobs=1, options=found.run_options), problem

    def by_hand(self, family: Family, shape: Shape) -> Any:
        return "not in dry runs", None

    def wrong(self, problem: Problem, family: Family) -> str:
        from tests.gallery.plain.numpy_arrays import check, expected

        try:
            check(problem, expected(problem), family.tolerance)
        except AssertionError as error:
            return str(error)
        return ""

    def poison(self, problem: Problem) -> None:
        for name in problem.outputs:
            problem.arrays[name].fill(float("nan"))

    def first(self, launch: Any, label: str) -> None:
        launch()

    def quick(self, launch: Any) -> float:
        return 1.0

    def cool(self, launches: Mapping[str, Any]) -> dict[str, Any]:
        return {"times": {name: [1.0] * self.rounds for name in launches}, "clocks": [1980]}
