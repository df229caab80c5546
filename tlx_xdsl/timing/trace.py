"""Records of what warps of a run of PTX have done, in the order of each warp: the input of the clock.

A trace has no time. It says which basic blocks a warp ran, and between which instructions it used a unit outside of
its registers, so that the clock can replay it: a wait names the point at which it ends, and whatever the run counted
towards that point names it, too. A replay is then a graph of dependences, in which nothing depends on the order that
the PTX machine happened to run warps in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal[
    "signal",  # counts towards a point: an arrival, expected bytes included
    "wait",  # for a point: mbarrier, named barrier, cluster barrier
    "tma_load",  # a bulk copy from global to shared memory, ends at points
    "tma_store",  # a bulk copy or reduction from shared to global memory
    "tma_commit",  # bulk stores so far become a group
    "tma_wait",  # until at most `count` groups are left
    "copy",  # cp.async of the warp's lanes
    "copy_commit",  # cp.async so far become a group; with a point, their end counts towards it instead
    "copy_wait",
    "wgmma",  # one product of a warp's 16 rows
    "wgmma_commit",
    "wgmma_wait",
    "load",  # global or local memory to registers
    "store",  # registers to global or local memory
    "atomic",
    "shared",  # an access to shared memory of the own CTA by threads
    "remote",  # to shared memory of another CTA
    "mma5",  # tcgen05.mma
    "mma5_commit",  # signals a point when all products issued before are done
    "tensor_load",  # tcgen05.ld
    "tensor_store",  # tcgen05.st
    "tensor_copy",  # tcgen05.cp
    "tensor_wait",  # tcgen05.wait::ld or ::st
    "sleep",
]

BYTES_OF_K = 32
"""Bytes along K of each product of the tensor cores, whatever its elements are (PTX ISA, shapes of `wgmma`)."""


@dataclass(slots=True)
class Event:
    """A use of a unit by a warp, at one instruction; fields that its kind does not need keep their defaults."""

    at: int
    """The number of the instruction in `program.function.instructions`."""
    kind: Kind
    points: tuple[int, ...] = ()
    """The points that it waits for, or counts towards when it is done, by their numbers in `Trace.points`."""
    count: int = 0
    """Arrivals of a signal; groups that may be left of a `..._wait`; wavefronts of an access to shared memory."""
    size: int = 0
    """Bytes that move."""
    sectors: int = 0
    """Sectors of 32 bytes of global memory that it touches."""
    lines: tuple[int, ...] = ()
    """For a copy by TMA, load, store or atomic: numbers of the first and the last page of 2,048 bytes of each run of
    pages that it touches, `first0, last0, first1, last1, ...`, for the model of the L2 cache."""
    shape: tuple[int, int, int] = (0, 0, 0)
    """M, N and K of a product: for `wgmma` those of the instruction, of which a warp has 16 rows."""
    element: str = ""
    """The type of A's elements in PTX, such as `f16` or `e4m3`."""
    in_registers: bool = False
    """True if A of a `wgmma` comes from registers."""
    place: int = -1
    """The first byte of shared memory in the CTA that it writes or reads, for bulk copies."""
    multicast: int = 1
    """The CTAs that get the bytes."""
    only_reads: bool = False
    """True for a `tma_wait` that lasts until the groups have read shared memory, not until they have written."""

    @property
    def is_product(self) -> bool:
        """Return whether it is a product of the tensor cores."""
        return self.kind in ("wgmma", "mma5")


@dataclass(slots=True)
class Step:
    """A basic block that a warp ran, with its events in the order of the instructions."""

    block: int
    events: tuple[Event, ...] = ()


@dataclass(slots=True)
class Warp:
    """All that one warp did, from the first to its last instruction."""

    cta: int
    """The number of its CTA in `Trace.ctas`."""
    number: int
    """The number of the warp in its CTA."""
    steps: list[Step] = field(default_factory=list[Step])
    ran: int = 0
    """The blocks that it runs in all; of a trace that is not whole an estimate by the loops' counters, or 0."""

    @property
    def events(self) -> Iterator[Event]:
        """Yield the events of its steps, in their order."""
        return (event for step in self.steps for event in step.events)


@dataclass(slots=True)
class Point:
    """The end of a phase of a barrier, which takes place when all that counts towards it has happened."""

    kind: Literal["mbarrier", "named", "cluster"]
    name: int
    """The byte of shared memory at which an mbarrier lies, or the number of a named barrier."""
    cta: int
    phase: int
    """0 for the first phase of a barrier."""
    contributions: int = 0
    """How many arrivals and deliveries count towards it: it is met when as many events of the trace named it."""


@dataclass(slots=True)
class Trace:
    """Some whole clusters of a launch that ran side by side."""

    ctas: list[int]
    """The number of each CTA in the grid, along x first."""
    warps: list[Warp]
    points: list[Point]
    whole: bool = True
    """False if some of what the CTAs do is not here: they have more to do than the limit of steps (`Warp.ran` says how
    much in all), or waited for CTAs that did not run."""

    @property
    def events(self) -> Iterator[Event]:
        """Yield the events of all warps, one warp after the other."""
        return (event for warp in self.warps for event in warp.events)

    @property
    def ends_early(self) -> bool:
        """True where nothing says how much of what the CTAs do is missing: they wait for CTAs that did not run."""
        return not self.whole and not any(warp.ran for warp in self.warps)


@dataclass(slots=True)
class Launch:
    """The facts of a launch that the clock needs beside the traces of some of its CTAs."""

    grid: tuple[int, int, int]
    cluster: int
    warps: int
    """The warps of a CTA."""
    shared_bytes: int
    """Of a CTA, static and dynamic."""
    registers: int | None
    """Of a thread, as the cubin says; None where there is none."""
    array_bytes: Sequence[int] = ()
    """The bytes of each array that the launch reads or writes at least once."""
