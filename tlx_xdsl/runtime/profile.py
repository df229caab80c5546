"""`kernel.profile(grid, *arguments)`: how long a launch takes, what it moves, and what the binary needs.

On a GPU launches are timed with CUDA events, each after a write that empties the L2 cache. Without one the binary is
compiled and the time is an estimate (`estimate.py`), and the report says so.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from html import escape
from math import prod
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from tlx_xdsl.addresses.coverage.launch import Launch
from tlx_xdsl.addresses.work import Work, work_of
from tlx_xdsl.backend import KernelMetadata, KernelResources, installed_triton_version
from tlx_xdsl.backend.occupancy import Occupancy, occupancy_of
from tlx_xdsl.errors import InputTypeError
from tlx_xdsl.frontend.source import KernelSource
from tlx_xdsl.interpreter.plan import kernel_of
from tlx_xdsl.runtime.arguments import bound, defaults_of, split_options, typed
from tlx_xdsl.runtime.build import compile_source
from tlx_xdsl.runtime.compilation import frontend_module
from tlx_xdsl.runtime.estimate import Estimate, estimated, peaks_of
from tlx_xdsl.runtime.gpu_clock import timed_launches
from tlx_xdsl.runtime.interpret import Grid, grid_of
from tlx_xdsl.runtime.launch_options import CLUSTER_OPTION, cluster_option
from tlx_xdsl.runtime.specialization import Specialization
from tlx_xdsl.targets import Target, target_named

Source: TypeAlias = Literal["measured", "estimated"]

_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "target", "enable_fp_fusion", CLUSTER_OPTION)


@dataclass(frozen=True)
class Profile:
    """A launch of a kernel in figures; `str(profile)` is the report."""

    kernel: str
    device: str
    """The GPU by its name, or the target."""
    source: Source
    """Whether times were measured, or are those of a model."""
    milliseconds: tuple[float, ...]
    """Of each launch, or the one that is estimated."""
    programs: int
    flops: float
    """Operations of a launch: those that the caller gives, else those of its matrix products."""
    bytes: float | None
    """Bytes that a launch must move to or from memory, as the caller gives them."""
    work: Work
    """What programs do: their accesses to global memory count each time."""
    metadata: KernelMetadata
    resources: KernelResources | None
    """None where stock Triton is not installed: nothing was compiled to a binary."""
    occupancy: Occupancy | None
    estimate: Estimate
    target: Target

    @property
    def median(self) -> float:
        """The median of the times, in milliseconds."""
        return statistics.median(self.milliseconds)

    @property
    def spread(self) -> float:
        """How far 80 % and 20 % of the times lie apart, as a share of the median."""
        if len(self.milliseconds) < 2:
            return 0.0
        cuts = statistics.quantiles(self.milliseconds, n=5, method="inclusive")
        return (cuts[-1] - cuts[0]) / self.median

    @property
    def tflops(self) -> float:
        """10^12 operations in a second."""
        return self.flops / self.median * 1e-9

    @property
    def gigabytes(self) -> float | None:
        """10^9 bytes in a second, of `bytes`."""
        return None if self.bytes is None else self.bytes / self.median * 1e-6

    def rows(self) -> dict[str, str]:
        """The report, line by line."""
        rows = {"kernel": f"{self.kernel}, {self.programs:,} program{'s' * (self.programs != 1)}", "GPU": self.device}
        if self.source == "measured":
            count = len(self.milliseconds)
            rows["time"] = f"{self.median:.4g} ms, median of {count} launches, 20 to 80 % within {self.spread:.1%} of it"
        else:
            rows["time"] = f"{self.median:.4g} ms, estimated by a roofline for {peaks_of(self.target).name}: not measured"
        rows["model"] = f"{self.estimate.milliseconds:.4g} ms in {self.estimate.waves} waves, bound by {self.estimate.bound}"
        if self.flops:
            rows["products"] = f"{self.flops:.4g} operations, {self.tflops:,.1f} TFLOP/s"
        if self.bytes is not None:
            rows["memory"] = f"{self.bytes:.4g} bytes, {self.gigabytes:,.1f} GB/s"
        read, written = self.work.read_bytes, self.work.written_bytes
        rows["accesses"] = f"{read:.4g} bytes read and {written:.4g} written by programs, caches included"
        if self.work.unknown_loops:
            rows["accesses"] += f"; {len(self.work.unknown_loops)} loops of unknown length count once"
        if self.resources is not None:
            shared = self.metadata.shared + self.resources.static_shared_bytes
            spilled = max(self.resources.spill_store_bytes, self.resources.spill_load_bytes)
            rows["binary"] = (
                f"{self.resources.registers} registers, {spilled} B spilled, {shared:,} B of shared memory, "
                f"{self.metadata.num_warps} warps"
            )
        else:
            rows["binary"] = "none: stock Triton is not installed"
        if self.occupancy is not None:
            rows["occupancy"] = str(self.occupancy)
        return rows

    def __str__(self) -> str:
        """Return the report."""
        rows = self.rows()
        width = max(map(len, rows))
        return "\n".join(f"{name:<{width}}  {text}" for name, text in rows.items())

    def _repr_html_(self) -> str:
        cells = "".join(f"<tr><td>{escape(name)}</td><td>{escape(text)}</td></tr>" for name, text in self.rows().items())
        return f"<table>{cells}</table>"


def profile(
    kernel: Any,
    grid: Grid,
    /,
    *args: Any,
    flops: float | None = None,
    bytes: float | None = None,
    seconds: float = 0.5,
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
        return _measured(kernel, sizes, args, {**given, **chosen}, known, flops, bytes, seconds)
    return _estimated(source, sizes, arguments, chosen, known, flops, bytes)


def is_on_gpu(values: Iterable[Any]) -> bool:
    """Return whether one of the arguments is a tensor of a GPU, or a descriptor of one."""
    return any(getattr(getattr(value, "base", value), "is_cuda", False) for value in values)


def _measured(
    kernel: Any, sizes: tuple[int, int, int], args: Sequence[Any], named: Mapping[str, Any], known: Mapping[str, Any],
    flops: float | None, bytes: float | None, seconds: float,
) -> Profile:  # fmt: skip
    from tlx_xdsl.runtime.launch.cuda_driver import default_driver

    launch = kernel.bind(sizes, *args, **named)
    facts = launch.kernel.metadata
    metadata = KernelMetadata(**{each.name: getattr(facts, each.name) for each in fields(KernelMetadata)})
    resources = KernelResources(facts.registers, facts.spill_store_bytes, facts.spill_load_bytes)
    times = timed_launches(launch, seconds)
    specialization: Specialization = launch.kernel.specialization
    return _profile(
        kernel.source, default_driver().device_name(_ordinal(known)), "measured", times, sizes, known, specialization,
        metadata, resources, flops, bytes,
    )  # fmt: skip


def _ordinal(known: Mapping[str, Any]) -> int:
    tensors = (getattr(value, "base", value) for value in known.values())
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
    estimate = estimated(work, prod(sizes), occupancy, target)
    return Profile(
        source.name, device, kind, times or (estimate.milliseconds,), prod(sizes), work.flops if flops is None else flops,
        bytes, work, metadata, resources, occupancy, estimate, target,
    )  # fmt: skip


def launch_work(
    source: KernelSource, specialization: Specialization, sizes: tuple[int, int, int], known: Mapping[str, Any]
) -> Work:
    """The work of a launch with these arguments by name."""
    module = frontend_module(source, specialization)
    numbers = {name: int(value) for name, value in known.items() if isinstance(value, int)}
    return work_of(module, cast(Any, kernel_of(module, None)), Launch(sizes, numbers))
