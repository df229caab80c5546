"""The events of each program in each launch of a period: the kernel is followed with all that data decides unknown.

What is known are the arguments that are numbers, the ranks, the programs, the number of the launch, and what comes of
them by arithmetic: conditions, trip counts, addresses and the values of signals must be. A mask that is unknown may be
true everywhere. A number that is loaded alone from symmetric memory is known where the kernel has stored it in an
earlier launch, such as the number of the launch that programs count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from tlx_xdsl.dialects import tlx, tt, ttg
from tlx_xdsl.dialects.base import (
    PointerType,
    Space as MemorySpace,
    accesses_of,
    as_tensor,
    effects_of,
    element_bits,
    element_type_of,
    scalar_type,
)
from tlx_xdsl.dialects.tlx.barriers import FenceScope
from tlx_xdsl.dialects.tlx.signals import Reached
from tlx_xdsl.dialects.tt import MemSemantic, MemSyncScope, RMWOp
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.interpreter.numbers import dtype_of
from tlx_xdsl.interpreter.ops import register_all
from tlx_xdsl.interpreter.registry import BUILDERS, Kind

from .events import Access, Draw, Event, Fence, Meeting, Read, Region, Role, Signal, Space, UnprovedError, Wait
from .values import UNKNOWN, AtLeast, Growing, Growth, IsTicket, Ticket, Unknown, Value, form_of

MOST_STEPS = 400_000
"""Operations that are followed in one launch of one program."""

_RELEASES = (MemSemantic.RELEASE, MemSemantic.ACQUIRE_RELEASE)
_ACQUIRES = (MemSemantic.ACQUIRE, MemSemantic.ACQUIRE_RELEASE)
_FORMS = (Unknown, Growing, AtLeast, Ticket, IsTicket)


@dataclass(eq=False)
class Last:
    """Events of the last program of a rank's launch, as a ticket says."""

    op: Operation
    address: int
    number: int
    events: list[Event] = field(default_factory=list[Event])


@dataclass(eq=False)
class LaunchTrace:
    """Events of a rank in one launch of the period."""

    programs: list[list[Event]] = field(default_factory=list[list[Event]])
    last: Last | None = None
    reads: list[Read] = field(default_factory=list[Read])

    @property
    def streams(self) -> list[list[Event]]:
        """The events of each program, and of the last one."""
        return [*self.programs, *([] if self.last is None else [self.last.events])]


@dataclass(eq=False)
class Memory:
    """Numbers that are loaded one by one, at the beginning of a launch."""

    space: Space
    growth: Growth
    opaque: set[int] = field(default_factory=set[int])
    """Addresses whose content is not followed."""
    content: dict[int, Value] = field(default_factory=dict[int, Value])
    """What the kernel has stored."""
    loaded: dict[int, np.dtype[Any]] = field(default_factory=dict[int, np.dtype[Any]])
    """The addresses that were read so far, and the type of the number there."""
    first: dict[int, Any] = field(default_factory=dict[int, Any])
    """What is there before the first launch."""
    plans: dict[Operation, Callable[..., Any] | None] = field(
        default_factory=dict[Operation, "Callable[..., Any] | None"]
    )
    """What computes the operations that were met so far."""

    def load(self, op: Operation, address: int, dtype: np.dtype[Any]) -> Value:
        """Return the number at an address when the launch begins."""
        if address in self.opaque or dtype.kind != "i":
            return UNKNOWN
        self.loaded[address] = dtype
        self.first.setdefault(address, self.space.held(op, address, dtype))
        return self.content.get(address, self.first[address])

    def end(self, launch: Sequence[LaunchTrace]) -> None:
        """Take over what a launch of all ranks has stored; of what is stored in several ways nothing is known."""
        stored: dict[int, list[Value]] = {}
        for rank, trace in enumerate(launch):
            for events in trace.streams:
                for event in events:
                    if isinstance(event, Access) and event.writes and event.region.is_symmetric:
                        for address in self.loaded:
                            if address - event.region.base in event.bytes:
                                stored.setdefault(address, []).append(self._stored(address, event, rank))
        for address, values in stored.items():
            if not isinstance(values[0], np.integer | Growing) or any(each != values[0] for each in values):
                self.opaque.add(address)
            self.content[address] = values[0]

    def _stored(self, address: int, access: Access, rank: int) -> Value:
        """Return the number at an address after a store; unknown where another rank has stored it."""
        first = address - access.region.base
        is_it = access.bytes[0] == first and access.size == len(access.bytes) == self.loaded[address].itemsize
        return access.value if is_it and access.scope is None and access.region.rank == rank else UNKNOWN

    def known(self, loaded: set[int]) -> bool:
        """Return whether all addresses that are loaded are in `loaded`, and followed; adds them."""
        is_known = {*self.loaded} <= loaded and not {*self.loaded} & self.opaque
        loaded.update(self.loaded)
        return is_known

    def hypothesis(self) -> dict[int, Value]:
        """Return the numbers with which a period begins, if each one changes them as much as the first."""
        found: dict[int, Value] = {}
        for address, first in self.first.items():
            now = form_of(self.content.get(address, first))
            change = 0 if now is None else now[0] - int(first)
            found[address] = self.growth.made(int(first), change, first.dtype.itemsize * 8)
        return found

    def confirm(self, start: Mapping[int, Value]) -> bool:
        """Return whether a period that begins with `start` ends with what the next one begins with."""
        for address, first in start.items():
            before, after = form_of(first), form_of(self.content.get(address, first))
            if before is None or after != (before[0] + before[1], before[1]):
                self.opaque.add(address)
        return not {*start} & self.opaque


class Program:
    """Follows one program of a rank in a launch."""

    def __init__(
        self,
        rank: int,
        place: tuple[int, int, int],
        grid: tuple[int, int, int],
        memory: Memory,
        trace: LaunchTrace,
        functions: Mapping[str, tt.FuncOp],
    ):
        self.rank, self.place, self.grid = rank, place, grid
        self.memory, self.space, self.growth = memory, memory.space, memory.growth
        self.trace, self.functions = trace, functions
        self.values: dict[SSAValue, Value] = {}
        self.events: list[Event] = []
        self.bounds: dict[int, int | Growing] = {}
        """The value that the last wait at a counter was for."""
        self.written: list[Access] = []
        """What this program has stored in the launch."""
        self.follows: dict[type[Operation], Callable[[Any, list[Value]], Value]] = {
            tt.LoadOp: self._load,
            tt.StoreOp: self._store,
            tt.AtomicRMWOp: self._atomic,
            tlx.WaitSignalOp: self._wait,
            tlx.FenceOp: self._fence,
            tlx.LeaveOp: self._leave,
            ttg.BarrierOp: self._meet,
            tt.AssertOp: self._ignore,
            tt.PrintOp: self._ignore,
            tt.GetProgramIdOp: self._number,
            tt.GetNumProgramsOp: self._count,
            tt.CallOp: self._call,
            scf.IfOp: self._if,
            scf.ForOp: self._for,
            scf.WhileOp: self._while,
        }
        self.steps = 0
        self.last: Last | None = None
        """While what the last program does is followed."""

    def run(self, function: tt.FuncOp, arguments: Sequence[Value]) -> list[Event]:
        """The events of the program. Raises UnprovedError, and LongerPeriodError."""
        self._function(function, arguments)
        return self.events

    def _function(self, function: tt.FuncOp, arguments: Sequence[Value]) -> list[Value]:
        block = self._only(function, function.body.blocks)
        self.values.update(zip(block.args, arguments, strict=True))
        return self._block(block)

    @staticmethod
    def _only(op: Operation, blocks: Sequence[Block]) -> Block:
        if len(blocks) != 1:
            raise UnprovedError(op, "its code has jumps, which are not followed across ranks")
        return blocks[0]

    def _block(self, block: Block) -> list[Value]:
        """Follow a block; gives the operands of its terminator."""
        for op in block.ops:
            if op is block.last_op and op.has_trait(IsTerminator):
                return [self.values[each] for each in op.operands]
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise UnprovedError(op, f"a program takes more than {MOST_STEPS:,} operations")
            found = self._op(op)
            if op.results:
                results = (found,) if len(op.results) == 1 else cast("tuple[Value, ...]", found)
                self.values.update(zip(op.results, results, strict=True))
        return []

    # Operations ------------------------------------------------------------------------------------------------------

    def _op(self, op: Operation) -> Value:
        """Follow an operation; gives its result, a tuple of results where there are several."""
        operands = [self.values[each] for each in op.operands]
        kind = next((each for each in type(op).__mro__ if each in self.follows), None)
        return self._other(op, operands) if kind is None else self.follows[kind](op, operands)

    def _other(self, op: Operation, operands: list[Value]) -> Value:
        """An operation that accesses no global memory, and does not synchronise."""
        plans = self.memory.plans
        if op not in plans:
            self._check_effects(op)
            plans[op] = _computes(op)
        if (run := plans[op]) is None or any(isinstance(each, _FORMS) for each in operands):
            return self._chosen(op, operands)
        try:
            return run(*operands)
        except Fault:
            return _unknown(op)

    def _fence(self, op: tlx.FenceOp, _operands: list[Value]) -> None:
        self._add(op, Fence(op, FenceScope(op.scope.value.data) is FenceScope.SYS))

    def _meet(self, op: Operation, _operands: list[Value]) -> None:
        if self.last is None:
            self._add(op, Meeting(op))

    def _leave(self, op: Operation, _operands: list[Value]) -> None:
        raise UnprovedError(op, "a program gives up here")

    def _ignore(self, _op: Operation, _operands: list[Value]) -> None:
        """Follow an operation without effects on memory, such as a print."""

    def _number(self, op: tt.GetProgramIdOp, _operands: list[Value]) -> Value:
        return np.int32(self.place[op.axis.value.data])

    def _count(self, op: tt.GetNumProgramsOp, _operands: list[Value]) -> Value:
        return np.int32(self.grid[op.axis.value.data])

    def _call(self, op: tt.CallOp, operands: list[Value]) -> Value:
        if (callee := self.functions.get(op.callee.string_value())) is None:
            raise UnprovedError(op, f"'{op.callee.string_value()}' has no body")
        return _results(self._function(callee, operands))

    def _chosen(self, op: Operation, operands: list[Value]) -> Value:
        """The result of a choice by a known condition, or of arithmetic on numbers that grow; else unknown."""
        if op.name == "arith.select" and isinstance(operands[0], np.bool_):
            return operands[1] if operands[0] else operands[2]
        grows = any(isinstance(each, Growing | AtLeast | Ticket) for each in operands)
        return self.growth.computed(op, operands) if grows else _unknown(op)

    def _check_effects(self, op: Operation) -> None:
        """Refuse what may do to global memory, or synchronise, in a way that is not followed."""
        for each in op.walk():
            effects = effects_of(each)
            accesses = accesses_of(each)
            is_apart = accesses is not None and all(
                access.space in (MemorySpace.SHARED, MemorySpace.TENSOR) and not access.is_async for access in accesses
            )
            if not is_apart or effects.sync or effects.completes_on is not None:
                raise UnprovedError(each, f"'{each.name}' is not followed across ranks")

    # Control flow ----------------------------------------------------------------------------------------------------

    def _if(self, op: scf.IfOp, operands: list[Value]) -> Value:
        condition = operands[0]
        if isinstance(condition, IsTicket):
            return self._if_last(op, condition)
        if not isinstance(condition, np.bool_):
            raise UnprovedError(op, f"which way is taken {self._why(condition)}")
        region = op.true_region if condition else op.false_region
        return _results(self._block(self._only(op, region.blocks)) if region.blocks else [])

    def _if_last(self, op: scf.IfOp, ticket: IsTicket) -> None:
        has_else = op.false_region.blocks and len([*op.false_region.block.ops]) > 1
        if op.results or has_else or self.last is not None:
            raise UnprovedError(op, "what one program does, and which one is open, may only store")
        found = Last(op, ticket.address, ticket.number)
        before, self.events, self.last = self.events, found.events, found
        self._block(op.true_region.block)
        self.events, self.last = before, None
        known = self.trace.last
        if known is None:
            self.trace.last = found
        elif not (known.op is op and known.address == found.address and _same(known.events, found.events)):
            raise UnprovedError(op, "which program does this is open, and programs differ in what they would do")

    def _for(self, op: scf.ForOp, operands: list[Value]) -> Value:
        bounds = operands[:3]
        for each in bounds:
            if not isinstance(each, np.integer):
                raise UnprovedError(op, f"how often it turns {self._why(each)}")
        low, high, step = map(int, bounds)
        if step <= 0:
            raise UnprovedError(op, f"the step of the loop is {step}")
        carried = operands[3:]
        block, dtype = op.body.block, dtype_of(op.lb.type)
        for turn in range(low, high, step):
            self.values.update(zip(block.args, (dtype.type(turn), *carried), strict=True))
            carried = self._block(block)
        return _results(carried)

    def _while(self, op: scf.WhileOp, operands: list[Value]) -> Value:
        before, after = op.before_region.block, op.after_region.block
        while True:
            self.values.update(zip(before.args, operands, strict=True))
            condition, *passed = self._block(before)
            if not isinstance(condition, np.bool_):
                raise UnprovedError(op, f"how often it turns {self._why(condition)}")
            if not condition:
                return _results(passed)
            self.values.update(zip(after.args, passed, strict=True))
            operands = self._block(after)

    @staticmethod
    def _why(value: Value) -> str:
        if isinstance(value, Growing | AtLeast):
            return "depends on the number of the launch in a way that is not followed"
        return "depends on data, or on a number that is not followed"

    # Memory ----------------------------------------------------------------------------------------------------------

    def _add(self, op: Operation, event: Event) -> None:
        if self.last is not None and not (isinstance(event, Access) and event.scope is None):
            raise UnprovedError(op, "what one program does, and which one is open, may only load and store")
        if isinstance(event, Access) and event.writes:
            self.written.append(event)
        self.events.append(event)

    def _addresses(self, op: Operation, pointer: SSAValue, mask: SSAValue | None) -> NDArray[np.int64] | None:
        """The addresses that an operation may access; None where a mask hides all of them."""
        found = self.values[pointer]
        if isinstance(found, _FORMS):
            raise UnprovedError(op, f"the address {self._why(found)}")
        addresses = np.asarray(found)
        chosen = None if mask is None else self.values[mask]
        if chosen is not None and not isinstance(chosen, _FORMS):
            addresses = addresses[np.broadcast_to(chosen, addresses.shape)]
        return addresses.ravel() if addresses.size else None

    def _access(
        self, op: Operation, pointer: SSAValue, addresses: NDArray[np.int64], *, writes: bool, scope: Any = None
    ) -> Access:
        size = -(-element_bits(cast(PointerType, scalar_type(pointer.type)).pointee) // 8)
        region, found = self.space.bytes_at(op, addresses, size)
        if not region.is_symmetric and region.rank != self.rank:
            raise UnprovedError(op, f"this rank has no access to {region}")
        if region.is_table and writes:
            raise UnprovedError(op, f"the table of {region} is changed")
        return Access(op, region, found, writes, scope, size)

    def _load(self, op: tt.LoadOp, _operands: list[Value]) -> Value:
        if not isinstance(op.ptr.type, PointerType) and not self._is_tensor_of_pointers(op.ptr):
            raise UnprovedError(op, "pointers to blocks are not followed across ranks")
        addresses = self._addresses(op, op.ptr, op.mask)
        if addresses is None:
            return UNKNOWN
        access = self._access(op, op.ptr, addresses, writes=False)
        if access.region.is_table:
            return self._of_table(op, access.region)
        stored = any(each.overlaps(access) for each in self.written)
        self._add(op, access)
        is_one = isinstance(op.ptr.type, PointerType) and op.mask is None
        # What other ranks have in memory changes while a launch of this one runs.
        is_own = access.region.is_symmetric and access.region.rank == self.rank
        if not (is_one and is_own) or stored or op.is_volatile.value.data:
            return UNKNOWN
        address = int(addresses[0])
        found = self.memory.load(op, address, dtype_of(op.result.type))
        if not isinstance(found, Unknown):
            self.trace.reads.append(Read(access, address))
        return found

    @staticmethod
    def _is_tensor_of_pointers(value: SSAValue) -> bool:
        return isinstance(scalar_type(value.type), PointerType) and not str(value.type).startswith("!tt.ptr<tensor")

    def _of_table(self, op: tt.LoadOp, region: Region) -> Value:
        offsets = np.asarray(self.values[op.ptr]) - region.base
        return UNKNOWN if op.mask is not None or np.any(offsets % 8) else region.values[offsets // 8]

    def _store(self, op: tt.StoreOp, _operands: list[Value]) -> None:
        if not isinstance(op.ptr.type, PointerType) and not self._is_tensor_of_pointers(op.ptr):
            raise UnprovedError(op, "pointers to blocks are not followed across ranks")
        addresses = self._addresses(op, op.ptr, op.mask)
        if addresses is None:
            return
        access = self._access(op, op.ptr, addresses, writes=True)
        is_one = isinstance(op.ptr.type, PointerType) and op.mask is None
        if is_one:
            access = replace(access, value=self.values[op.value])
        self._add(op, access)

    def _atomic(self, op: tt.AtomicRMWOp, _operands: list[Value]) -> Value:
        addresses = self._addresses(op, op.ptr, op.mask)
        if addresses is None:
            return UNKNOWN
        scope, kind = MemSyncScope(op.scope.value.data), RMWOp(op.atomic_rmw_op.value.data)
        access = self._access(op, op.ptr, addresses, writes=True, scope=scope)
        mask = None if op.mask is None else self.values[op.mask]
        is_sure = mask is None or (isinstance(mask, np.bool_) and bool(cast(bool, mask)))
        address, value, is_add = int(addresses[0]), self.values[op.val], kind is RMWOp.ADD
        is_one = isinstance(op.ptr.type, PointerType) and is_sure and kind in (RMWOp.ADD, RMWOp.XCHG)
        if not is_one or not isinstance(value, np.integer | Growing):
            self._add(op, access)
            return UNKNOWN
        semantic = MemSemantic(op.sem.value.data)
        if is_add and isinstance(value, np.integer) and value == 0 and address in self.bounds:
            self._add(op, replace(access, role=Role.LOOK))
            return AtLeast(self.bounds[address])
        if is_add and isinstance(value, np.integer) and value == 1 and op.result.uses:
            self._add(op, replace(access, role=Role.DRAW))
            orders = semantic is MemSemantic.ACQUIRE_RELEASE and scope is not MemSyncScope.CTA
            self._add(op, Draw(op, address, orders))
            return Ticket(address)
        held = value if isinstance(value, Growing) else int(cast(int, value))
        self._add(op, replace(access, role=Role.SIGNAL))
        self._add(op, Signal(op, address, is_add, held, semantic in _RELEASES, scope, access.size * 8))
        return UNKNOWN

    def _wait(self, op: tlx.WaitSignalOp, _operands: list[Value]) -> None:
        addresses = self._addresses(op, op.ptr, None)
        value = self.values[op.value]
        if not isinstance(value, np.integer | Growing) or addresses is None:
            raise UnprovedError(op, f"the value that is waited for {self._why(value)}")
        if Reached(op.reached.value.data) is not Reached.GE:
            raise UnprovedError(op, "a wait for one value alone is not followed: others may pass it")
        scope = MemSyncScope(op.scope.value.data)
        access = self._access(op, op.ptr, addresses, writes=False, scope=scope)
        held = value if isinstance(value, Growing) else int(cast(int, value))
        acquires = MemSemantic(op.sem.value.data) in _ACQUIRES
        self._add(op, Wait(op, int(addresses[0]), held, acquires, scope, access.size * 8))
        self._add(op, access)
        self.bounds[int(addresses[0])] = held


def _computes(op: Operation) -> Callable[..., Any] | None:
    """Return the function that computes an operation of known operands; None where its result is not followed."""
    if op.regions or not op.results or effects_of(op).accesses or (builder := BUILDERS.get(type(op))) is None:
        return None
    if not all(_is_number(each.type) for each in op.results):
        return None
    # Structured operations alone ask the planner: they have regions, accesses, or results that are no numbers.
    kind, run = builder(op, None)
    return run if kind is Kind.PURE else None


def _is_number(type_: Attribute) -> bool:
    tensor = as_tensor(type_)
    element = type_ if tensor is None else tensor.element_type
    return element_type_of(element) is not None or isinstance(element, PointerType | IndexType)


def _unknown(op: Operation) -> Value:
    return UNKNOWN if len(op.results) == 1 else (UNKNOWN,) * len(op.results)


def _results(values: Sequence[Value]) -> Value:
    return values[0] if len(values) == 1 else (*values,)


def _same(left: Sequence[Event], right: Sequence[Event]) -> bool:
    """Return whether two programs would do the same."""
    return len(left) == len(right) and all(
        isinstance(a, Access)
        and isinstance(b, Access)
        and a.op is b.op
        and a.region is b.region
        and np.array_equal(a.bytes, b.bytes)
        and a.value == b.value
        for a, b in zip(left, right, strict=True)
    )


# Launches -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kernel:
    """A kernel with its grid, and the arguments of each rank in each launch of a period."""

    function: tt.FuncOp
    functions: Mapping[str, tt.FuncOp]
    grid: tuple[int, int, int]
    space: Space
    arguments: Callable[[Growth], Sequence[Sequence[Sequence[Value]]]]
    """By launch and rank."""


def traces_of(kernel: Kernel, growth: Growth, *, is_one_period: bool) -> list[list[LaunchTrace]]:
    """Follow each rank in each launch of a period; gives the traces by launch and rank.

    With `is_one_period` that is all that is launched. Else the launches repeat, and numbers grow. Raises UnprovedError,
    and LongerPeriodError.
    """
    register_all()
    opaque, loaded = set[int](), set[int]()
    while True:
        memory = Memory(kernel.space, growth, opaque)
        found = _period(kernel, growth, memory)
        if memory.known(loaded):
            if is_one_period:
                return found
            start = memory.hypothesis()
            memory = Memory(kernel.space, growth, opaque, dict(start))
            found = _period(kernel, growth, memory)
            if memory.known(loaded) and memory.confirm(start):
                return found


def _period(kernel: Kernel, growth: Growth, memory: Memory) -> list[list[LaunchTrace]]:
    found: list[list[LaunchTrace]] = []
    x, y, z = kernel.grid
    places = [(i, j, k) for k in range(z) for j in range(y) for i in range(x)]
    for of_ranks in kernel.arguments(growth):
        launch: list[LaunchTrace] = []
        for rank, arguments in enumerate(of_ranks):
            trace = LaunchTrace()
            for place in places:
                program = Program(rank, place, kernel.grid, memory, trace, kernel.functions)
                # Integers wrap around as they do on the GPU.
                with np.errstate(all="ignore"):
                    trace.programs.append(program.run(kernel.function, arguments))
            launch.append(trace)
        memory.end(launch)
        found.append(launch)
    return found
