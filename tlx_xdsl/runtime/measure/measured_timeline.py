"""Measured timelines: a kernel's final PTX with probes, launched on a GPU beside the kernel itself."""

# torch is no dependency: what comes from it is of unknown type to a checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.backend import KernelResources
from tlx_xdsl.backend.assemble import assembled
from tlx_xdsl.backend.assemblers import Assembler, candidates
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.targets import target_named
from tlx_xdsl.timing.measured import timeline_of
from tlx_xdsl.timing.probes import FEWER, KINDS, Probes, SiteKind, instrument
from tlx_xdsl.timing.timeline import Timeline

from ..launch.cuda_driver import cuda_major, default_driver
from ..launch.launcher import Launcher, launch_facts
from .gpu_clock import timed_launches

MOST_SLOWER = 0.05
"""How much longer a launch may take with probes before fewer are tried."""
_REGISTERS = 8
"""What a GPU gives to a thread at once."""
_ROUNDS = 3
"""Turns in which the kernel and the one with probes are timed, one after the other."""


@dataclass(frozen=True)
class Measured:
    """A launch with probes, and what they cost."""

    timeline: Timeline
    probes: Probes
    words: NDArray[np.uint32]
    """The records, as `timing.measured.decode` takes them."""
    plain_ms: tuple[float, ...]
    """Times of launches of the kernel itself."""
    probed_ms: tuple[float, ...]
    """Times of launches with probes, in turns with the others."""
    plain: KernelResources
    probed: KernelResources

    @property
    def slowdown(self) -> float:
        """The extra time of launches with probes, as a share of the kernel's time."""
        return statistics.median(self.probed_ms) / statistics.median(self.plain_ms) - 1


def own_assembler(target: str, triton_version: str, named: str = "") -> Assembler:
    """Return the assembler that makes binaries for a target here, or the one of that name, as metadata have it.

    Raises CompilationError where that one is no longer here.
    """
    here = candidates(target_named(target).capability, triton_version, newest_cuda=cuda_major())
    found = next((each for each in here if named in ("", str(each))), None)
    if found is None:
        raise CompilationError(f"{named} made this kernel's binary, and is not here any more")
    return found


def ctas_to_show(ctas: int, cluster: int, multiprocessors: int) -> tuple[int, ...]:
    """Return the CTAs that record where the caller names none: the first cluster, and one in the middle of the grid.

    Of a grid that runs all at once, as persistent kernels have it, it is the last cluster alone: it often has a tile
    less than the others, which then do not wait for its probes.
    """
    shown = min(cluster, 8)
    if ctas <= multiprocessors:
        return tuple(range(ctas - cluster, ctas - cluster + shown))
    middle = ctas // 2 // cluster * cluster
    return (*range(shown), *range(middle, middle + shown))


def probed_binary(
    ptx: str, metadata: Any, target: str, fp_fusion: bool, ctas: Sequence[int], records: int, kinds: Sequence[SiteKind]
) -> tuple[Probes, bytes, KernelResources]:
    """Return PTX with probes, and its cubin by the assembler that made the kernel's.

    Raises CompilationError where it can't be assembled, PtxError for PTX that is not understood.
    """
    probes = instrument(
        ptx, metadata.name, ctas=ctas, records=records, kinds=kinds, num_warps=metadata.num_warps,
        registers=-(-metadata.registers // _REGISTERS) * _REGISTERS if metadata.registers else None,
    )  # fmt: skip
    cubin, resources = assembled(
        probes.text, own_assembler(target, metadata.triton_version, metadata.assembler), target,
        triton_version=metadata.triton_version, fp_fusion=fp_fusion,
    )  # fmt: skip
    return probes, cubin, resources


def measured_timeline(
    launch: Any,
    *,
    chip: str,
    target: str,
    fp_fusion: bool,
    seconds: float = 0.5,
    ctas: Sequence[int] | None = None,
    records: int = 2048,
    kinds: Sequence[SiteKind] | None = None,
    tasks: Sequence[tuple[int, int, str]] = (),
) -> Measured:
    """Return the timeline of a bound launch (`kernel.bind`) on the current GPU.

    Where no kinds of sites are given, all waits and issues have probes; if launches get more than 5 % longer by them,
    only waits for mbarriers and for groups have.

    Raises CompilationError where the PTX with probes can't be assembled, PtxError for PTX that is not understood.
    """
    measured = _measured(launch, chip, target, fp_fusion, seconds, ctas, records, kinds or KINDS, tasks)
    if kinds is None and measured.slowdown > MOST_SLOWER:
        fewer = _measured(launch, chip, target, fp_fusion, seconds, ctas, records, FEWER, tasks)
        said = f"probes of barriers and issues, too, would make it {measured.slowdown:.1%} slower: they are left out"
        fewer.timeline.notes.insert(1, said)
        return fewer
    return measured


def _measured(
    launch: Any, chip: str, target: str, fp_fusion: bool, seconds: float, ctas: Sequence[int] | None, records: int,
    kinds: Sequence[SiteKind], tasks: Sequence[tuple[int, int, str]],
) -> Measured:  # fmt: skip
    torch: Any = import_module("torch")
    compiled, metadata = launch.kernel, launch.kernel.metadata
    cluster = tuple(metadata.cluster or (1, 1, 1))
    x, y, z = launch.in_ctas()
    multiprocessors = default_driver().multiprocessor_count()
    chosen = ctas_to_show(x * y * z, prod(cluster), multiprocessors) if ctas is None else tuple(ctas)
    probes, cubin, resources = probed_binary(
        compiled.asm["ptx"], metadata, target, fp_fusion, chosen, records, kinds
    )  # fmt: skip
    memory = torch.zeros(probes.size // 4, dtype=torch.int32, device="cuda")
    launcher = Launcher(
        cubin,
        name=compiled.name,
        arguments=compiled.launcher.arguments,
        **launch_facts(metadata, cluster=cluster),
        profile_memory=memory.data_ptr(),
    )
    probed = launch.by(launcher)
    plain_ms, probed_ms = _in_turns(launch, probed, seconds)
    # The records are those of the last launch.
    words = memory.cpu().numpy().view(np.uint32)
    plain = KernelResources(metadata.registers, metadata.spill_store_bytes, metadata.spill_load_bytes)
    measured = Measured(Timeline("", chip, "measured"), probes, words, plain_ms, probed_ms, plain, resources)
    timeline = timeline_of(probes, words, chip=chip, tasks=tasks, notes=_notes(measured))
    if timeline.hertz is not None:
        timeline.launch_cycles = statistics.median(plain_ms) * 1e-3 * timeline.hertz
    return Measured(timeline, probes, words, plain_ms, probed_ms, plain, resources)


def _in_turns(
    plain: Callable[[], Any], probed: Callable[[], Any], seconds: float
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The times of both, as `timed_launches` takes them."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(_ROUNDS):
        for launch, own in ((plain, times[0]), (probed, times[1])):
            own.extend(timed_launches(launch, seconds / (2 * _ROUNDS)))
    return tuple(times[0]), tuple(times[1])


def _notes(measured: Measured) -> list[str]:
    before, after = statistics.median(measured.plain_ms), statistics.median(measured.probed_ms)
    notes = [
        f"probes: {before * 1e3:.1f} us without, {after * 1e3:.1f} us with them ({measured.slowdown:+.1%}), medians of "
        f"{len(measured.plain_ms)} and {len(measured.probed_ms)} launches in turns, each with an empty L2 cache"
    ]
    spilled = measured.probed.spill_store_bytes - measured.plain.spill_store_bytes
    registers = measured.probed.registers - measured.plain.registers
    if spilled > 0 or registers > 0:
        notes.append(f"with probes a thread has {registers:+} registers and spills {spilled:+} bytes")
    return notes
