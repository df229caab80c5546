"""Record what the warps of a few clusters of a launch do: runs of the PTX machine for the clock (`trace.py`).

Only the clusters that are asked for run, side by side. What they wait for from others never comes: a warp that polls
global memory in vain, and all that then wait for it, end early, and the trace is not `whole`. Cluster launch control
hands out clusters that do not run themselves, as many for each as it would get on a GPU that is full; and a counter
from which CTAs take their tiles goes on as if all that run at once took theirs.

Data decide little, so most arithmetic is left out (`slices.py`). Arrays of the caller are read, and never written:
the first exact write to one makes a copy of it. Arrays of zeros (`np.zeros`) can stand for data that are not there;
the operating system gives them no memory until they are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.numerics.arrays import Array, Bytes, Integers
from tlx_xdsl.numerics.host_arrays import is_descriptor
from tlx_xdsl.ptx.cohort import LANES, Cohort
from tlx_xdsl.ptx.launch import machine_for
from tlx_xdsl.ptx.machine import Limits, Machine
from tlx_xdsl.ptx.memory.global_memory import Buffer, GlobalMemory
from tlx_xdsl.ptx.program import Program
from tlx_xdsl.ptx.read.faults import PtxBudget, PtxFault
from tlx_xdsl.ptx.wave import Budget, Wave

from .recorder import Counters, Recorder, Rules
from .slices import Slice
from .trace import Launch, Trace
from .trips import Trips

MOST_STEPS = 4_000
"""Steps of a warp after which a run stops, unless a caller wants others: some tiles of a persistent kernel."""


def record(
    program: Program,
    grid: int | Sequence[int],
    args: Sequence[Any],
    *,
    clusters: Sequence[int] = (0,),
    num_warps: int | None = None,
    cluster: Sequence[int] | None = None,
    shared: int | None = None,
    scratch: int = 0,
    registers: int | None = None,
    resident: int = 132,
    reachable: Sequence[Any] = (),
    max_steps: int = MOST_STEPS,
    limits: Limits | None = None,
) -> tuple[list[Trace], Launch]:
    """Run some clusters of a launch, and return the trace of each, and the facts of the launch.

    `clusters` are their numbers in the grid, along x first; without clusters those are CTAs. The other arguments are
    those of `run_ptx`. `registers` of a thread go into the facts; `resident` CTAs run at once, which says how many
    clusters each takes over by launch control, and how fast counters of tiles go on. After `max_steps` blocks of any
    warp the run stops, unless little is left, and `Warp.ran` estimates what each runs in all. `limits` are those of the
    whole run, after which traces are not whole.

    Raises PtxError and PtxFault as `run_ptx` does.

        traces, launch = record(prepare(read(text, "k.ptx")), 256, [x, y, n], clusters=[0, 100])
    """
    wanted: dict[int, int] = {}
    trips = Trips(program)
    while True:
        part = Slice(program, wanted)
        rules = Rules(program.function.instructions, part.hollow, part.checked, wanted, max_steps, trips)
        memory = Overlay()

        def make(*given: Any, rules: Rules = rules) -> _Machine:
            return _Machine(*given, rules=rules, chosen=clusters, resident=resident)

        machine = machine_for(
            part.program, grid, args, make, memory, reachable=reachable, num_warps=num_warps, cluster=cluster,
            shared=shared, scratch=scratch,
        )  # fmt: skip
        traces, untrue = machine.record(limits or Limits(seconds=60))
        if not untrue:
            break
        wanted = wanted | untrue
    own = program.symbols.shared_bytes + (shared or 0)
    sizes = [_bytes_of(value) for value in args]
    launch = Launch(
        machine.grid, machine.cluster_size, -(-machine.threads // LANES), own, registers,
        [size for size in sizes if size],
    )  # fmt: skip
    return traces, launch


def _bytes_of(value: Any) -> int:
    """The bytes of an array, or of that of a tensor map; 0 for a number."""
    array = value.base if is_descriptor(value) else value
    return 0 if array is None or isinstance(array, bool | int | float | np.generic) else np.asanyarray(array).nbytes


class Overlay(GlobalMemory):
    """Global memory whose arrays are not written: the first write to one makes a copy."""

    def __init__(self) -> None:
        super().__init__()
        self.discards = False
        """True while an instruction writes what nothing reads."""
        self._own: set[int] = set()

    def _to_write(self, address: int) -> Buffer | None:
        buffer = self.find(address)
        if buffer is not None and buffer.start not in self._own:
            self._own.add(buffer.start)
            buffer.bytes = buffer.bytes.copy()
            buffer.views.clear()
        return buffer

    def store(self, addresses: NDArray[np.uint64], values: Array, item: int, count: int) -> None:
        """Write rows of elements, unless they are discarded."""
        if self.discards:
            return
        for buffer, _ in self.groups(addresses, item * count, "store") if len(addresses) else ():
            self._to_write(buffer.start)
        super().store(addresses, values, item, count)

    def bytes_at(self, address: int, size: int, what: str) -> Bytes:
        """The bytes from an address on; those that a discarded copy writes lead nowhere."""
        if what in ("store by TMA", "bulk store"):
            if self.discards:
                return np.empty(size, np.uint8)
            self._to_write(address)
        return super().bytes_at(address, size, what)


class _Machine(Machine):
    """A launch of which some clusters run."""

    def __init__(self, *given: Any, rules: Rules, chosen: Sequence[int], resident: int):
        super().__init__(*given, allows_uninitialized=True, compares=False)
        self.traffic = Counters()
        self._rules = rules
        self._numbers = chosen
        every = prod(self.grid) // self.cluster_size
        at_once = max(1, resident // self.cluster_size)
        rules.share = max(1.0, min(at_once, every) / len(chosen))
        others = (each for each in range(every) if each not in chosen)
        self._left = islice(others, max(0, -(-every // at_once) - 1) * len(chosen))
        """Clusters that do not run, as far as they are to be taken over."""
        for block in self.program.blocks:
            self.program.code[block.number] = _recorded(self.program, block.number)

    def coordinates(self, first: int, count: int) -> Integers:
        """The places of the CTAs of `count` of the clusters that run."""
        every = super().coordinates
        return np.concatenate([every(each, 1) for each in self._numbers[first : first + count]])

    def make_order(self, wave: Wave) -> Recorder:
        """Return what notes down the events of a wave."""
        x, y, _ = self.grid
        ctas = wave.coordinates @ np.array([1, x, x * y])
        return Recorder(wave, ctas, self._rules)

    def ended(self, wave: Wave, cta: int, cohort: Cohort) -> None:
        """Look at nothing of what a CTA leaves, which may have been cut off."""

    def take_over(self) -> Integers | None:
        """The first CTA of a cluster that does not run itself, as long as there are some left to take."""
        found = next(self._left, None)
        return None if found is None else super().coordinates(found, 1)[0]

    def record(self, limits: Limits) -> tuple[list[Trace], dict[int, int]]:
        """Run the clusters, and give their traces; and the instructions whose data are needed after all."""
        budget = Budget(limits.blocks, limits.seconds)
        self.others_run = True
        wave = Wave(self, 0, len(self._numbers))
        order: Recorder = wave.order
        try:
            # It gives way with True where all of its threads wait, for good.
            any(wave.run(budget))
        except PtxFault as fault:
            # Zeros in the place of data may have led astray.
            if isinstance(fault, PtxBudget):
                order.out_of_time()
            elif not order.untrue:
                raise
        order.finish()
        for number, trace in enumerate(order.traces):
            if wave.alive[number * wave.cluster_size : (number + 1) * wave.cluster_size].any():
                trace.whole = False
            if not trace.whole and not order.is_over:
                for warp in trace.warps:
                    warp.ran = 0
        return order.traces, order.untrue


def _recorded(program: Program, number: int) -> Any:
    """The code of a block that says when it has run; made when it is first reached."""
    found: Any = None

    def run(cohort: Cohort, registers: list[Any]) -> int:
        nonlocal found
        if found is None:
            program.code[number] = None
            found = program.function_of(number)
            program.code[number] = run
        warps = cohort.warps.tolist()
        following = found(cohort, registers)
        return cohort.wave.order.ran(number, cohort, warps, following)

    return run
