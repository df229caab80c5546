"""The addresses that programs really touch in the interpreter, and how claims compare with them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerType, ModuleOp
from xdsl.ir import Operation

from tlx_xdsl.addresses import (
    Access,
    Classification,
    DescriptorFacts,
    LaunchFacts,
    ProgramAddresses,
    analyse_program_addresses,
    evaluate,
)
from tlx_xdsl.addresses.analysis import argument_names
from tlx_xdsl.addresses.walk import accessed_by
from tlx_xdsl.analysis.integers.polynomials import Counter as LoopCounter
from tlx_xdsl.interpreter.code import Plan
from tlx_xdsl.interpreter.descriptor import Descriptor
from tlx_xdsl.interpreter.global_memory import GlobalMemory
from tlx_xdsl.interpreter.launch import Settings, clusters, run_clusters
from tlx_xdsl.interpreter.machine import Launch

Grid = tuple[int, int, int]


@dataclass
class Event:
    """An access that a program has made."""

    op: Operation
    program: Grid
    turns: tuple[int, ...]
    addresses: np.ndarray
    """Of each element of the block."""
    touched: np.ndarray
    """Which of them are."""


@dataclass
class Recorder:
    """Keeps the accesses of all programs."""

    events: list[Event] = field(default_factory=list)

    def watches(self, op: Operation) -> bool:
        return accessed_by(op) is not None

    def runs(self, task: Any, op: Operation, operands: tuple[Any, ...], turns: tuple[int, ...]) -> None:
        addresses, touched = block_of(op, dict(zip(op.operands, operands, strict=True)))
        self.events.append(Event(op, task.block.program, turns, addresses, touched))


def block_of(op: Any, held: dict[Any, Any]) -> tuple[np.ndarray, np.ndarray]:
    """The addresses of the elements of an access, and which of them it touches, from the values of its operands."""
    if hasattr(op, "size"):
        pointer = next(value for value in (getattr(op, "src", None), getattr(op, "dst", None))
                       if value is not None and isinstance(held[value], np.integer))  # fmt: skip
        addresses = int(held[pointer]) + np.arange(int(held[op.size]), dtype=np.int64)
        return addresses, np.ones(addresses.shape, np.bool_)
    if hasattr(op, "desc"):
        descriptor = held[op.desc]
        assert isinstance(descriptor, Descriptor)
        predicate = getattr(op, "pred", None)
        is_on = True if predicate is None else bool(held[predicate])
        if hasattr(op, "x_offsets"):
            shape = (len(held[op.x_offsets]), descriptor.block[-1])
            rows = np.asarray(held[op.x_offsets], np.int64)[:, None]
            places = [rows, int(held[op.y_offset]) + np.arange(shape[1], dtype=np.int64)]
        else:
            shape, corner = descriptor.block, op.indices if hasattr(op, "indices") else op.coord
            places = [
                (int(held[at]) + np.arange(size, dtype=np.int64)).reshape((-1,) + (1,) * (len(shape) - 1 - dim))
                for dim, (at, size) in enumerate(zip(corner, shape, strict=True))
            ]
        addresses, touched = np.full(shape, descriptor.address, np.int64), np.full(shape, is_on)
        for place, stride, extent in zip(places, descriptor.strides, descriptor.shape, strict=True):
            addresses = addresses + place * stride * descriptor.dtype.itemsize
            touched = touched & (place >= 0) & (place < extent)
        return addresses, touched
    addresses = np.asarray(held[op.ptr if hasattr(op, "ptr") else op.src], np.int64)
    mask = getattr(op, "mask", None)
    return addresses, np.broadcast_to(True if mask is None else held[mask], addresses.shape)


class NoMemory(GlobalMemory):
    """Memory that takes everything everywhere, and holds zeros."""

    def load(self, op: Operation, addresses: Any, dtype: Any, mask: Any, other: Any) -> Any:
        return np.zeros(np.shape(addresses), dtype)

    def store(self, op: Operation, addresses: Any, values: Any, dtype: Any, mask: Any) -> None:
        pass

    def bytes_at(self, op: Operation, address: int, size: int, verb: str) -> Any:
        return np.zeros(size, np.uint8)


def run(
    plan: Plan,
    memory: GlobalMemory,
    grid: Grid,
    cluster: Grid,
    bound: Sequence[Any],
    programs: Sequence[Grid] | None = None,
) -> list[Event]:
    """Run all programs, or some, of a plan that was made with a `Recorder`."""
    recorder = plan.watcher
    assert isinstance(recorder, Recorder)
    launch = Launch(plan, memory, grid, cluster, bound)
    list(run_clusters(launch, list(clusters(launch)) if programs is None else programs, Settings()))
    return recorder.events


def facts_of(plan: Plan, grid: Grid, bound: Sequence[Any]) -> LaunchFacts:
    """Return the facts of a launch with these values of all arguments."""
    names = argument_names(plan.function.body.blocks[0].args)
    arguments: dict[str, int | DescriptorFacts] = {}
    for (argument, name), given in zip(names.items(), bound, strict=True):
        if isinstance(given, Descriptor):
            arguments[name] = DescriptorFacts(given.shape, given.strides)
        elif isinstance(argument.type, IntegerType):
            bits = argument.type.width.data
            arguments[name] = int(given) & 1 if bits == 1 else int(given)
    return LaunchFacts(grid, arguments)


@dataclass
class Tally:
    """Counts of a comparison."""

    classes: Counter[str] = field(default_factory=Counter)
    """Of the accesses of the kernel, with facts about the launch."""
    compared: int = 0
    """Blocks of programs that a claim gave, and that were as it said."""
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        self.classes += other.classes
        self.compared += other.compared
        self.reasons += other.reasons

    @property
    def known(self) -> float:
        """The part of the accesses that is not UNKNOWN."""
        return 1 - self.classes["UNKNOWN"] / max(1, self.classes.total())


def compare(module: ModuleOp, plan: Plan, grid: Grid, bound: Sequence[Any], events: Sequence[Event]) -> Tally:
    """Check all claims, with and without facts about the launch, against what happened."""
    facts = facts_of(plan, grid, bound)
    bases = dict(zip(plan.function.body.blocks[0].args, bound, strict=True))
    tally = Tally()
    for given in (facts, None):
        result = analyse_program_addresses(module, given)
        by_op: dict[Operation, list[Event]] = defaultdict(list)
        for event in events:
            by_op[event.op].append(event)
        mine = [access for access in result.accesses if access.function is plan.function]
        for access in mine:
            if given is not None:
                tally.classes[access.classification.value] += 1
                if access.reason:
                    tally.reasons[access.reason] += 1
            if access.is_known and len(result.of(access.op)) == 1:
                tally.compared += Comparison(result, access, facts, bases, by_op[access.op]).check()
    return tally


@dataclass
class Comparison:
    """One access and what it did."""

    result: ProgramAddresses
    access: Access
    facts: LaunchFacts
    bases: dict[Any, Any]
    events: list[Event]

    def check(self) -> int:
        """Check every claim; gives how many blocks were compared."""
        assert self.access.offset is not None
        forms = [self.access.offset, *(condition.form for condition in self.access.conditions)]
        forms += [side for guard in self.access.guards for side in (guard.left, guard.right)]
        moving = {symbol for form in forms for symbol in form.all_symbols if isinstance(symbol, LoopCounter)}
        base = self.bases[self.access.base]
        address = int(base.address if isinstance(base, Descriptor) else base)
        counters = [self._counters(event) for event in self.events]
        before: Counter[Any] = Counter()
        for event, held in zip(self.events, counters, strict=True):
            missing = moving - held.keys()
            if len(missing) > 1 or not all(self._counts(each) for each in missing):
                # It moves with a loop whose turns are not watched: around a call, or around a branch.
                return 0
            for each in missing:
                held[each] = before[event.program]
                before[event.program] += 1
        if any(not self._holds(event, held) for event, held in zip(self.events, counters, strict=True)):
            # The claim says nothing about this launch.
            return 0
        compared = 0
        for event, held in zip(self.events, counters, strict=True):
            offsets = evaluate.block(self.access, self.facts, event.program, held)
            if offsets is None:
                continue
            compared += 1
            if event.addresses.shape != offsets.shape:
                # A descriptor's block has leading dimensions of 1 that the tensor may lack.
                offsets = offsets.reshape(event.addresses.shape)
            np.testing.assert_array_equal(event.addresses, address + offsets, self._where(event))
            self._check_mask(event, held)
        self._check_strides()
        for event in self.events:
            self._check_dimensions(event)
        return compared

    def _where(self, event: Event) -> str:
        return f"{self.access.op.name} of {self.access.offset} in program {event.program}, turns {event.turns}"

    def _counters(self, event: Event) -> dict[Any, int]:
        """The turns by loop: `Access.loops` also has `while` loops, and loops around calls."""
        own = [term.counter for term in self.access.loops if isinstance(term.counter.loop, scf.ForOp)]
        return dict(zip(reversed(own), reversed(event.turns), strict=False))

    def _counts(self, counter: LoopCounter) -> bool:
        """Return whether each turn of a `while` loop makes the access once."""
        return isinstance(counter.loop, scf.WhileOp) and self.access.op.parent_op() is counter.loop

    def _holds(self, event: Event, counters: dict[Any, int]) -> bool:
        for condition in self.access.conditions:
            numbers = evaluate.value(condition.form, self.access.shape, self.facts, event.program, counters)
            if condition.low is not None and (numbers < condition.low).any():
                return False
            if condition.high is not None and (numbers > condition.high).any():
                return False
        return True

    def _check_mask(self, event: Event, counters: dict[Any, int]) -> None:
        passed = evaluate.mask(self.access, self.facts, event.program, counters)
        if not self.access.masked:
            assert event.touched.all(), self._where(event)
        elif passed is not None:
            passed = passed.reshape(event.touched.shape)
            assert (passed | ~event.touched).all(), self._where(event)
            if self.access.guards_exact:
                np.testing.assert_array_equal(passed, event.touched, self._where(event))

    def _check_strides(self) -> None:
        """Check that addresses differ by the stride from a program to the next along an axis."""
        if self.access.classification not in (Classification.PID_AFFINE, Classification.PID_MULTI_AXIS):
            if self.access.classification is Classification.PID_INDEPENDENT:
                self._check_axes({axis: 0 for axis in range(3)})
            return
        strides = {axis: int(evaluate.value(stride, (), self.facts, (0, 0, 0)))
                   for axis, stride in self.access.pid_strides.items()}  # fmt: skip
        self._check_axes({axis: strides.get(axis, 0) for axis in range(3)})

    def _check_axes(self, strides: dict[int, int]) -> None:
        if any(not counter for counter in (self.access.shape,)) and not self.events:
            return
        found = {(event.program, event.turns): event for event in self.events}
        if len(found) != len(self.events):
            # Something around it repeats it without a turn that is known.
            return
        for (program, turns), event in found.items():
            for axis, stride in strides.items():
                after = tuple(place + (number == axis) for number, place in enumerate(program))
                if (other := found.get((after, turns))) is not None:
                    assert (other.addresses - event.addresses == stride).all(), self._where(event)

    def _check_dimensions(self, event: Event) -> None:
        addresses = event.addresses.reshape(self.access.shape)
        size = self.access.element_size
        for dim, known in enumerate(self.access.dimensions):
            lines = np.moveaxis(addresses, dim, -1).reshape(-1, known.extent)
            groups = lines.reshape(-1, known.contiguity)
            assert (groups == groups[:, :1] + size * np.arange(known.contiguity)).all(), self._where(event)
            assert (groups[:, 0] % known.divisibility == 0).all(), self._where(event)
            groups = lines.reshape(-1, known.constancy)
            assert (groups == groups[:, :1]).all(), self._where(event)
            if known.stride is not None and known.extent > 1 and (number := known.stride.number) is not None:
                assert (np.diff(lines) == number).all(), self._where(event)
        if (run_ := self.access.block_size) is not None:
            flat = np.sort(addresses.ravel())
            assert len(flat) == run_, self._where(event)
            assert (np.diff(flat) == size).all(), self._where(event)


def with_alignment(facts: LaunchFacts, **arguments: Any) -> LaunchFacts:
    """The facts with other arguments."""
    return replace(facts, arguments={**facts.arguments, **arguments})
