"""`bench`: what the configurations of a sweep take on the GPU, the fastest first; or what a model says, without one."""

# torch is no dependency: what comes from it is of unknown type to a checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingImports=false, reportUnknownParameterType=false

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from math import prod
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tlx_xdsl.backend.limits import occupancy_of
from tlx_xdsl.element_types import BY_SPELLING
from tlx_xdsl.errors import CompilationError, InputError
from tlx_xdsl.grid import Grid, grid_of
from tlx_xdsl.progress import Progress
from tlx_xdsl.targets import target_named

from ..driver.host_values import defaults_of
from ..launch.cuda_driver import CudaDriverError, available, default_driver
from ..launch.launcher import Launcher, launch_facts
from ..launch.parameters import ArgumentSpec
from ..launch.tensor_descriptor import dtype_name
from ..measure.gpu_clock import timed_launches
from ..measure.profile_report import estimated
from ..measure.reference_check import Reference, difference, expected_of, poison
from ..measure.speeds import Speed, SpeedReport
from ..profile import launch_work
from .jobs import array_of_argument, with_block
from .report import JobResult, SweepReport

if TYPE_CHECKING:
    from .predict import Predictor


def bench(
    report: SweepReport,
    grid: Grid,
    arguments: Mapping[str, Any],
    *,
    reference: Reference | None = None,
    tolerance: float | None = None,
    seconds: float = 0.2,
    progress: bool | None = None,
    clock: bool = False,
    chip: str | None = None,
    hertz: float | None = None,
) -> SpeedReport:
    """Measure every configuration that can be launched; on a machine without a GPU, estimate it.

    With `clock` launches are predicted from the final PTX instead (docs/clock.md), for which the sweep must have kept
    all texts: in cycles of `chip` (by default the GPU of the target), and in time at `hertz`. What the clock can't
    read has no time, but the reason; a target whose GPU it does not know is estimated.

    The sweep must have kept its binaries. `arguments` are the runtime arguments by name: numbers, arrays of numpy or
    tensors of torch, which are copied to the GPU, and descriptors, whose blocks are those of each configuration. `grid`
    may be a function of arguments and settings by name. Each configuration is launched for about `seconds`, with an
    empty L2 cache before each launch.

    `reference` takes the arguments by name, with numpy arrays, and gives what some must hold after a launch: a
    configuration that computes something else has no time. Without a GPU nothing is compared.

    Raises CompilationError where a launch fails, which ends the CUDA context, and where there is a GPU and no torch;
    ValueError for a sweep of several kernels, or one that has kept no binaries.
    """
    start = time.perf_counter()
    names = {result.job.source.name for result in report}
    if len(names) != 1:
        raise InputError(f"bench takes a sweep of one kernel, found {', '.join(sorted(names)) or 'none'}")
    target = report[0].job.specialization.target
    predictor = _predictor(arguments, target, chip, hertz) if clock else None
    on_gpu = not clock and available()
    if on_gpu and find_spec("torch") is None:
        raise CompilationError("bench has its arrays on the GPU by torch, which is not installed")
    measure: Callable[[JobResult, tuple[int, int, int]], Speed] = (
        _Bench(arguments, reference, tolerance, seconds).measure
        if on_gpu
        else predictor.predict
        if predictor is not None
        else _Model(arguments).estimate
    )
    speeds: list[Speed] = []
    with Progress(len(report), "configurations", wanted=progress) as bar:
        for result in report:
            settings = result.job.stated
            if not result.is_launchable:
                speeds.append(Speed(settings, None, result.text))
            else:
                known = {**defaults_of(result.job.source), **arguments, **result.job.settings}
                speeds.append(measure(result, grid_of(grid, known)))
            bar.advance()
            bar.note(f"best {min(each.median for each in speeds):.4g} ms")
    return SpeedReport.of(
        names.pop(),
        default_driver().device_name(0) if on_gpu else target if predictor is None else predictor.chip,
        "measured" if on_gpu else "estimated" if predictor is None else "predicted",
        speeds,
        time.perf_counter() - start,
        checked=on_gpu and reference is not None,
    )


def _predictor(arguments: Mapping[str, Any], target: str, chip: str | None, hertz: float | None) -> Predictor | None:
    # The PTX machine takes a tenth of a second to load, and other sweeps do without.
    from .predict import predictor_of

    return predictor_of(arguments, target, chip, hertz)


class _Model:
    """Estimates, from the binary and from what programs do."""

    def __init__(self, arguments: Mapping[str, Any]):
        self._arguments = arguments

    def estimate(self, result: JobResult, sizes: tuple[int, int, int]) -> Speed:
        """Return what a configuration should take."""
        job, metadata, resources = result.job, result.metadata, result.resources
        assert metadata is not None and resources is not None, "what can be launched was compiled"
        target = target_named(job.specialization.target)
        known = {**defaults_of(job.source), **self._arguments}
        work = launch_work(job.source, job.specialization, sizes, known)
        found = estimated(
            work, prod(sizes), occupancy_of(metadata, resources, target), target, job.specialization.num_warps
        )
        ms = found.milliseconds
        return Speed(job.stated, (ms, ms, ms), result.remark)


class _Bench:
    """Launches, on copies of the arguments."""

    def __init__(
        self, arguments: Mapping[str, Any], reference: Reference | None, tolerance: float | None, seconds: float
    ):
        self._torch: Any = import_module("torch")
        self._arguments = dict(arguments)
        found = {name: array_of_argument(value) for name, value in arguments.items()}
        self._arrays = {name: array for name, array in found.items() if array is not None}
        self._tensors = {name: self._on_gpu(array) for name, array in self._arrays.items()}
        self._before = {name: tensor.clone() for name, tensor in self._tensors.items()}
        self._tolerance, self._seconds = tolerance, seconds
        self._expected: dict[str, Any] = {}
        if reference is not None:
            wanted = expected_of(reference, {**arguments, **self._arrays})
            for name, each in wanted.items():
                self._expected[name] = self._torch.from_numpy(np.array(each, np.float64))

    def measure(self, result: JobResult, sizes: tuple[int, int, int]) -> Speed:
        """Return what a configuration takes, and whether it computes what it should."""
        settings = result.job.stated
        try:
            launch = self._bound(result, sizes)
            if self._expected:
                for name, tensor in self._tensors.items():
                    tensor.copy_(self._before[name])
                poison({name: self._tensors[name] for name in self._expected})
                launch()
                self._torch.cuda.synchronize()
                wrong = difference(self._tensors, self._expected, self._tolerance)
                if wrong is not None:
                    return Speed(settings, None, wrong)
            times = timed_launches(launch, self._seconds)
        except (CudaDriverError, RuntimeError) as error:
            said = " ".join(str(error).split())
            text = ", ".join(f"{name}={value}" for name, value in settings.items())
            raise CompilationError(f"{result.job.source.name}: a launch fails ({text}): {said}") from error
        low, median, high = np.quantile(times, (0.2, 0.5, 0.8))
        return Speed(settings, (float(median), float(low), float(high)), result.remark)

    def _bound(self, result: JobResult, sizes: tuple[int, int, int]) -> Callable[[], None]:
        specialization = result.job.specialization
        assert result.result is not None and result.metadata is not None, "what can be launched was compiled"
        if not result.result.cubin:
            raise InputError("bench needs the binaries of the sweep: compile_many(..., keep='binary')")
        names = [each.name for each in result.job.source.parameters if each.name in specialization.signature]
        specs = [ArgumentSpec(name, cast(str, specialization.signature[name])) for name in names]
        launcher = Launcher(
            result.result.cubin,
            name=result.metadata.name,
            arguments=specs,
            **launch_facts(result.metadata, cluster=result.metadata.cluster or specialization.cluster),
        )
        values = [self._value(spec) for spec in specs]
        ctas = (sizes[0] * specialization.num_ctas, *sizes[1:])
        return launcher.bind(ctas, *values, stream=self._torch.cuda.current_stream())

    def _value(self, spec: ArgumentSpec) -> Any:
        tensor = self._tensors.get(spec.name)
        return self._arguments[spec.name] if tensor is None else with_block(tensor, spec.type)

    def _on_gpu(self, array: Any) -> Any:
        if not isinstance(array, np.ndarray):
            return array.detach().clone().cuda()
        known = cast(Any, array)
        dtype = getattr(self._torch, str(BY_SPELLING[str(dtype_name(known.dtype))].library))
        flat = self._torch.from_numpy(np.frombuffer(known.tobytes(), np.uint8).copy())
        return flat.cuda().view(dtype).reshape(known.shape)
