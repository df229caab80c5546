"""The clock's front: from PTX and arguments to cycles, a timeline, and what limits the kernel."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from tlx_xdsl.errors import SourceLocation
from tlx_xdsl.grid import sizes_of
from tlx_xdsl.ptx.machine import Limits
from tlx_xdsl.ptx.program import Program, prepare
from tlx_xdsl.ptx.read.reader import read

from .blocks import costs
from .chips import Chip, chip_named
from .engine import Replay, Replayed
from .launch import Occupancy, occupancy, samples, whole_launch
from .limits import limits
from .memory import Caching, caching, longer_than_its_steps
from .pieces import BlockCost
from .record import record
from .spans import Lines, draw, location
from .timeline import Timeline
from .trace import Launch, Trace

ENDS_EARLY = (
    "CTAs wait for others through global memory, and recorded is what they do before: it takes at least so long."
)
"""A note of predictions that are lower bounds."""
MOST_STEPS = 6_000
"""Steps of a warp that are replayed; what comes after them keeps their pace."""
MOST_SECONDS = 20.0
"""Processor time for the recording, after which what was recorded keeps its pace, too: no usual launch takes it."""
_SAME_CLOCK = 0.01
"""The part by which a clock may differ from the one of a replay that holds for it, too."""
_PRODUCTS = frozenset(("wgmma", "mma5", "mma"))


@dataclass(frozen=True)
class Prediction:
    """A launch as the clock sees it."""

    chip: str
    cycles: float
    """The time of the launch, in cycles of the clock that it runs at: `hertz`."""
    timeline: Timeline
    """The CTAs that were replayed in detail."""
    seconds_of_work: float
    """What the prediction itself took of a core, in seconds."""
    bound: str
    """What limits it most, in one or two words: `tensor cores`, `memory`, `latency of barriers`."""
    shares: dict[str, float] = field(default_factory=dict[str, float])
    """The part of the time for which each unit of a multiprocessor works, the busiest first."""
    evidence: Evidence | None = field(default=None, repr=False)
    """What `findings` looks at; None without a timeline."""

    @property
    def hertz(self) -> float:
        """Return the clock of the multiprocessors: the given one, or an estimate; tensor cores take power from it."""
        return self.timeline.hertz or chip_named(self.chip).hertz

    @property
    def is_lower_bound(self) -> bool:
        """True where the CTAs that were recorded wait for others through global memory, and do more after that."""
        return ENDS_EARLY in self.timeline.notes

    def milliseconds(self, hertz: float | None = None) -> float:
        """Return the time of the launch, or that of as many cycles of another clock in Hz."""
        return self.cycles / (hertz or self.hertz) * 1e3


@dataclass(frozen=True)
class Evidence:
    """A launch with the traces and the replay that its prediction comes from."""

    program: Program
    cost: Sequence[BlockCost]
    traces: dict[int, Trace]
    """By the number of the cluster."""
    launch: Launch
    chip: Chip
    cluster: tuple[int, int, int]
    found: OfTraces

    @property
    def cycles(self) -> float:
        """Return the cycles of the launch."""
        return self.found.cycles

    @property
    def trace(self) -> Trace:
        """Return the trace that was replayed with marks."""
        return self.found.trace

    @property
    def replayed(self) -> Replayed:
        """Return the replay that has marks."""
        return self.found.replayed

    @property
    def filled(self) -> Occupancy:
        """Return how the launch fills the chip."""
        return self.found.occupancy

    @property
    def shares(self) -> dict[str, float]:
        """Return the part of the time for which each unit works."""
        return self.found.shares

    def location(self, at: int) -> SourceLocation | None:
        """Return the user's line of an instruction; None for one that has none."""
        return None if at < 0 else location(self.program, at)

    def again(self, change: Callable[[Trace], Trace]) -> float:
        """Return the cycles of the launch with changed traces."""
        traces = {number: change(trace) for number, trace in self.traces.items()}
        return of_traces(
            self.program, self.cost, traces, self.launch, self.chip, cluster=self.cluster, timeline=False,
            hertz=self.found.timeline.hertz,
        ).cycles  # fmt: skip


def predict(
    text: str,
    grid: int | Sequence[int],
    args: Sequence[Any],
    *,
    chip: str | Chip = "H200",
    kernel: str | None = None,
    num_warps: int | None = None,
    cluster: Sequence[int] | None = None,
    shared: int | None = None,
    scratch: int = 0,
    registers: int | None = None,
    machine_code: str | None = None,
    tasks: Sequence[tuple[int, int, str]] = (),
    timeline: bool = True,
    hertz: float | None = None,
) -> Prediction:
    """Predict how long a launch of PTX takes. Arguments are those of `run_ptx`, which are not written.

    `registers` are those of a thread and `machine_code` the disassembly (SASS) with lines of the PTX, where there is a
    cubin. `tasks` names warps: the first, how many, and the name of each task. `chip` is a name, or a table of
    constants. With `timeline=False` no spans are kept. `hertz` is the clock of the multiprocessors while the launch
    runs; where it is not given, it follows from what the tensor cores do.

    Raises PtxError and PtxFault as `run_ptx` does, and ValueError for a chip that is not known.
    """
    before = time.process_time()
    model = chip_named(chip) if isinstance(chip, str) else chip
    program = prepare(read(text, "<ptx>"), kernel)
    sizes = sizes_of(grid)
    clusters = _cluster(program, cluster)
    chosen = samples(sizes, clusters, prod(sizes) <= model.multiprocessors)
    traces, launch = record(
        program, sizes, args, clusters=chosen, num_warps=num_warps, cluster=cluster, shared=shared, scratch=scratch,
        registers=registers, resident=model.multiprocessors, max_steps=MOST_STEPS, limits=Limits(seconds=MOST_SECONDS),
    )  # fmt: skip
    cost, by_number = costs(program, machine_code), dict(zip(chosen, traces, strict=True))
    found = of_traces(
        program, cost, by_number, launch, model, cluster=clusters, tasks=tasks, timeline=timeline, hertz=hertz
    )  # fmt: skip
    evidence = Evidence(program, cost, by_number, launch, model, clusters, found) if timeline else None
    return Prediction(
        model.name, found.cycles, found.timeline, time.process_time() - before, found.bound, found.shares, evidence
    )  # fmt: skip


def _cluster(program: Program, given: Sequence[int] | None) -> tuple[int, int, int]:
    said = given if given is not None else program.function.directives.get("reqnctapercluster", (1,))
    x, y, z = (*said, 1, 1)[:3]
    return int(x), int(y), int(z)


@dataclass(frozen=True)
class OfTraces:
    """A launch as the clock sees it, from traces."""

    cycles: float
    timeline: Timeline
    bound: str
    shares: dict[str, float]
    occupancy: Occupancy
    caching: Caching
    trace: Trace
    """The one that was replayed first, with marks where a timeline is asked for."""
    replayed: Replayed


def of_traces(
    program: Program | None,
    cost: Sequence[BlockCost],
    traces: dict[int, Trace],
    launch: Launch,
    chip: Chip,
    *,
    cluster: Sequence[int] = (1, 1, 1),
    tasks: Sequence[tuple[int, int, str]] = (),
    timeline: bool = True,
    hertz: float | None = None,
) -> OfTraces:
    """Predict a launch from traces of some of its clusters, by their numbers, with a chip's constants.

    The clock in Hz is estimated if it is not given: first for few products, then for as many as there are.
    """
    if program is not None and any(each.name == "setmaxnreg" for each in program.function.instructions):
        chip = replace(chip, cta_start_cycles=chip.cta_start_cycles + chip.specialised_start_cycles)
    if hertz is not None:
        return _at_clock(program, cost, traces, launch, chip.at(hertz), cluster, tasks, timeline)
    first = chip.clock(0.0 if _has_products(program, traces.values()) else None)
    found = _at_clock(program, cost, traces, launch, chip.at(first), cluster, tasks, timeline)
    products = found.shares["tensor cores"] * found.occupancy.processors / chip.multiprocessors
    clock = chip.clock(products) if products else first
    if abs(clock / first - 1) < _SAME_CLOCK:
        return found
    return _at_clock(program, cost, traces, launch, chip.at(clock), cluster, tasks, timeline)


def _has_products(program: Program | None, traces: Iterable[Trace]) -> bool:
    if program is not None and any(each.name in _PRODUCTS for each in program.function.instructions):
        return True
    steps = (step for trace in traces for warp in trace.warps for step in warp.steps)
    return any(event.kind in _PRODUCTS for step in steps for event in step.events)


def _at_clock(
    program: Program | None, cost: Sequence[BlockCost], traces: dict[int, Trace], launch: Launch, chip: Chip,
    cluster: Sequence[int], tasks: Sequence[tuple[int, int, str]], timeline: bool,
) -> OfTraces:  # fmt: skip
    filled = occupancy(launch, chip)
    held = caching(list(traces.values()), launch, chip, filled.processors * filled.side_by_side, filled.side_by_side)
    first: list[tuple[Trace, Replayed]] = []

    def replay(several: list[Trace], side_by_side: int) -> Replayed:
        keeps = timeline and not first
        machine = Replay(
            chip, cost, caching=held, sharers=filled.processors, marks=keeps,
            shared_bytes=side_by_side * (launch.shared_bytes + chip.reserved_shared_bytes),
        )  # fmt: skip
        found = machine.run(several, side_by_side=side_by_side, cluster=launch.cluster)
        if not first:
            first.append((several[0], found))
        return _extended(several[0], found)

    sizes = [size // part for size, part in zip(launch.grid, cluster, strict=True)]
    cycles = whole_launch(filled, chip, traces, sizes, replay)
    trace, replayed = first[0]
    said = limits(replayed, trace, Lines(program), filled, tasks)
    name = "" if program is None else program.function.name
    drawn = (
        _timeline(program, trace, replayed, name, chip, tasks) if timeline else Timeline(name, chip.name, "predicted")
    )
    drawn.launch_cycles, drawn.hertz, drawn.sentences = cycles, chip.hertz, said.sentences
    drawn.notes = _notes(chip, launch, traces, replayed)
    return OfTraces(cycles, drawn, said.bound, said.shares, filled, held, trace, replayed)


def _timeline(
    program: Program | None, trace: Trace, replayed: Replayed, name: str, chip: Chip,
    tasks: Sequence[tuple[int, int, str]],
) -> Timeline:  # fmt: skip
    return draw(replayed, trace, program, kernel=name, chip=chip.name, tasks=tasks)


def _extended(trace: Trace, found: Replayed) -> Replayed:
    """Let the CTAs of a trace that was cut off go on at their pace to the end."""
    factor = longer_than_its_steps(trace)
    if factor == 1.0:
        return found
    ctas = [replace(cta, start=cta.start * factor, end=cta.end * factor) for cta in found.ctas]
    return replace(found, ctas=ctas, end=found.end * factor)


def _notes(chip: Chip, launch: Launch, traces: dict[int, Trace], replayed: Replayed) -> list[str]:
    notes: list[str] = []
    if not chip.validated:
        notes.append(f"The constants of the {chip.name} were compared with no run.")
    if launch.registers is None:
        notes.append("The registers of a thread are not known: no cubin was given.")
    if any(trace.ends_early for trace in traces.values()):
        notes.append(ENDS_EARLY)
    elif not all(trace.whole for trace in traces.values()):
        notes.append("CTAs were cut off: the rest of what they do is taken to go on at the same pace.")
    elif replayed.stuck:
        notes.append(f"{replayed.stuck} warps waited for something that the recorded CTAs do not do.")
    return notes
