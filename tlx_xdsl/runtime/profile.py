"""`kernel.profile(grid, *arguments)`: how long a launch takes, what it moves, and what the binary needs.

On a GPU launches are timed with CUDA events, each after a write that empties the L2 cache. Without one the binary is
compiled and the time is an estimate (`profile_report.estimated`), and the report says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from math import prod
from typing import Any, cast

from tlx_xdsl.addresses.coverage.launch import Launch
from tlx_xdsl.addresses.work import Work, work_of
from tlx_xdsl.backend import KernelMetadata, KernelResources, installed_triton_version
from tlx_xdsl.backend.limits import occupancy_of
from tlx_xdsl.errors import InputError, InputTypeError
from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.grid import Grid, grid_of
from tlx_xdsl.interpreter.plan import kernel_of
from tlx_xdsl.targets import target_named

from .build import compile_source
from .driver.compilation import frontend_module, installed_profile
from .driver.host_values import bound, defaults_of, is_descriptor, split_options, typed
from .driver.specialization import CLUSTER_OPTION, Specialization, cluster_option
from .measure.gpu_clock import timed_launches
from .measure.profile_report import Profile, Source, estimated

_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "target", "enable_fp_fusion", CLUSTER_OPTION)


def profile(
    kernel: Any,
    grid: Grid,
    /,
    *args: Any,
    flops: float | None = None,
    bytes: float | None = None,
    seconds: float = 0.5,
    timeline: bool = False,
    options: Mapping[str, Any] | None = None,
    **named: Any,
) -> Profile:
    """Time launches of a kernel on its arguments, or estimate: see `Kernel.profile`."""
    source: KernelSource = kernel.source
    given, chosen = split_options(source, named, _OPTIONS)
    chosen |= options or {}
    arguments = bound(source, args, given)
    known = {**defaults_of(source), **arguments}
    sizes = grid_of(grid, known)
    if is_on_gpu(arguments.values()):
        return _measured(kernel, sizes, args, {**given, **chosen}, known, flops, bytes, seconds, timeline)
    if timeline:
        raise InputError("a measured timeline needs tensors of a GPU; kernel.timeline predicts one without")
    return _estimated(source, sizes, arguments, chosen, known, flops, bytes)


def is_on_gpu(values: Iterable[Any]) -> bool:
    """Return whether one of the arguments is a tensor of a GPU, or a descriptor of one."""
    return any(getattr(_tensor(value), "is_cuda", False) for value in values)


def _tensor(value: Any) -> Any:
    return value.base if is_descriptor(value) else value


def _measured(
    kernel: Any, sizes: tuple[int, int, int], args: Sequence[Any], named: Mapping[str, Any], known: Mapping[str, Any],
    flops: float | None, bytes: float | None, seconds: float, timeline: bool,
) -> Profile:  # fmt: skip
    from .launch.cuda_driver import default_driver

    launch = kernel.bind(sizes, *args, **named)
    facts = launch.kernel.metadata
    metadata = KernelMetadata(**{each.name: getattr(facts, each.name) for each in fields(KernelMetadata)})
    resources = KernelResources(facts.registers, facts.spill_store_bytes, facts.spill_load_bytes)
    specialization: Specialization = launch.kernel.specialization
    device, drawn = default_driver().device_name(_ordinal(known)), None
    if timeline:
        from .clock.tasks import warp_ranges
        from .measure.measured_timeline import measured_timeline

        module = frontend_module(kernel.source, specialization, installed_profile())
        measured = measured_timeline(
            launch, chip=device.removeprefix("NVIDIA "), target=specialization.target,
            fp_fusion=facts.enable_fp_fusion, seconds=seconds,
            tasks=warp_ranges(module, specialization.num_warps),
        )  # fmt: skip
        times, drawn = measured.plain_ms, measured.timeline
    else:
        times = timed_launches(launch, seconds)
    made = _profile(
        kernel.source, device, "measured", times, sizes, known, specialization, metadata, resources, flops, bytes
    )
    return replace(made, timeline=drawn)


def _ordinal(known: Mapping[str, Any]) -> int:
    tensors = map(_tensor, known.values())
    return next(each.device.index or 0 for each in tensors if getattr(each, "is_cuda", False))


def _estimated(
    source: KernelSource, sizes: tuple[int, int, int], arguments: Mapping[str, Any], chosen: Mapping[str, Any],
    known: Mapping[str, Any], flops: float | None, bytes: float | None,
) -> Profile:  # fmt: skip
    options = dict(chosen)
    num_stages, cluster = options.pop("num_stages", 3), cluster_option(options.pop(CLUSTER_OPTION, None))
    found = typed(source, arguments)
    try:
        wanted = Specialization(found.signature, found.constexprs, cluster=cluster or (1, 1, 1), **options)
    except TypeError as error:
        raise InputTypeError(f"profile: {error}") from error
    metadata, resources = KernelMetadata(num_warps=wanted.num_warps), None
    if installed_triton_version() is not None:
        _, result = compile_source(source, wanted, num_stages=num_stages)
        metadata, resources = result.metadata, result.resources
    return _profile(
        source, wanted.target, "estimated", None, sizes, known, wanted, metadata, resources, flops, bytes
    )  # fmt: skip


def _profile(
    source: KernelSource, device: str, kind: Source, times: tuple[float, ...] | None, sizes: tuple[int, int, int],
    known: Mapping[str, Any], specialization: Specialization, metadata: KernelMetadata,
    resources: KernelResources | None, flops: float | None, bytes: float | None,
) -> Profile:  # fmt: skip
    target = target_named(specialization.target)
    work = launch_work(source, specialization, sizes, known)
    occupancy = None if resources is None else occupancy_of(metadata, resources, target)
    estimate = estimated(work, prod(sizes), occupancy, target, specialization.num_warps)
    times = times or (estimate.milliseconds,)
    return Profile(
        source.name, device, kind, times, prod(sizes), work.flops if flops is None else flops, bytes, work, metadata,
        resources, occupancy, estimate, target,
    )  # fmt: skip


def launch_work(
    source: KernelSource, specialization: Specialization, sizes: tuple[int, int, int], known: Mapping[str, Any]
) -> Work:
    """The work of a launch with these arguments by name."""
    module = frontend_module(source, specialization)
    numbers = {name: int(value) for name, value in known.items() if isinstance(value, int)}
    return work_of(module, cast(Any, kernel_of(module, None)), Launch(sizes, numbers))
