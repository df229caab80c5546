"""The operations of a loop's body and what depends on what within a turn; rings' waits, loads and arrivals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.traits import is_side_effect_free

from tlx_xdsl.dialects import tt, ttg, ttng
from tlx_xdsl.dialects.base import Kind, Space, accesses_of
from tlx_xdsl.dialects.ttg import memdesc_type

from .ring_links import RingLinks


@dataclass
class Unit:
    """A wait for slots of a ring, the loads of them, and the arrival that gives them back."""

    waits: list[Operation] = field(default_factory=list[Operation])
    loads: list[Operation] = field(default_factory=list[Operation])
    arrivals: list[Operation] = field(default_factory=list[Operation])

    @property
    def ops(self) -> tuple[Operation, ...]:
        """All operations."""
        return *self.waits, *self.loads, *self.arrivals

    @property
    def depth(self) -> int:
        """The least number of slots of its barriers."""
        views = [op.operands[0].owner for op in (*self.waits, *self.arrivals)]
        return min(
            (memdesc_type(op.src.type).shape[0] if isinstance(op, ttg.MemDescIndexOp) else 1 for op in views), default=1
        )


class TurnGraph:
    """The dependences within a turn of a loop."""

    def __init__(self, loop: scf.ForOp, rings: RingLinks):
        self.body = loop.body.block
        self.ops: list[Operation] = list(self.body.ops)[:-1]
        self.units = _units(self.ops, rings)
        self.unit_of = {op: unit for unit in self.units for op in unit.ops}

    def inputs(self, op: Operation) -> Iterator[SSAValue]:
        """Yield the values from outside of an operation that it uses."""
        for inner in op.walk():
            for value in inner.operands:
                if inner is op or not _is_inside(value, op):
                    yield value

    def definers(self, op: Operation) -> Iterator[Operation]:
        """Yield the operations of the turn whose results an operation uses."""
        for value in self.inputs(op):
            if isinstance(value.owner, Operation) and value.owner.parent is self.body:
                yield value.owner

    def carried(self, op: Operation) -> Iterator[int]:
        """Yield the numbers of the carried values that an operation uses."""
        for value in self.inputs(op):
            if isinstance(value, BlockArgument) and value.block is self.body and value.index:
                yield value.index - 1

    def cone(self, ops: Iterable[Operation]) -> set[Operation]:
        """Return operations, and those of the turn that they depend on."""
        found: set[Operation] = set()
        pending = list(ops)
        while pending:
            op = pending.pop()
            if op not in found:
                found.add(op)
                pending += self.definers(op)
        return found

    def inputs_within(self, ops: Iterable[Operation], allowed: set[Operation]) -> set[Operation]:
        """Return those of the allowed operations that `ops` depend on, through nothing but allowed ones."""
        found: set[Operation] = set()
        pending = [definer for op in ops for definer in self.definers(op)]
        while pending:
            op = pending.pop()
            if op in allowed and op not in found:
                found.add(op)
                pending += self.definers(op)
        return found

    def followers(self, ops: Iterable[Operation]) -> set[Operation]:
        """Return operations, and those of the turn that depend on them."""
        found = set(ops)
        for op in self.ops:
            if op not in found and any(definer in found for definer in self.definers(op)):
                found.add(op)
        return found

    def users(self, op: Operation) -> set[Operation]:
        """Return the operations of the body that use a result; the end of the body is among them."""
        found: set[Operation] = set()
        for result in op.results:
            for use in result.uses:
                user = use.operation
                while user.parent is not self.body:
                    parent = user.parent_op()
                    assert parent is not None, "a result of the body is used in the body"
                    user = parent
                found.add(user)
        return found

    def from_rings(self) -> set[Operation]:
        """Return the operations that compute blocks of nothing but blocks from rings, and scalars."""
        found: set[Operation] = set()
        for op in self.ops:
            if isinstance(op, ttg.LocalLoadOp):
                if op in self.unit_of:
                    found.add(op)
            elif is_cheap(op) and makes_block(op) and not any(True for _ in self.carried(op)):
                blocks = [each for each in self.definers(op) if makes_block(each)]
                if blocks and all(each in found for each in blocks):
                    found.add(op)
        return found

    def by_turn(self) -> set[Operation]:
        """Return the scalars and views that depend on nothing but the number of the turn."""
        found: set[Operation] = set()
        for op in self.ops:
            if (
                is_cheap(op)
                and not makes_block(op)
                and not any(True for _ in self.carried(op))
                and all(each in found for each in self.definers(op))
            ):
                found.add(op)
        return found

    def is_movable(self, op: Operation) -> bool:
        """Return whether an operation is pure, belongs to a ring, or accesses nothing but global memory."""
        if is_side_effect_free(op) or op in self.unit_of:
            return True
        if op.regions:
            return all(
                self.is_movable(inner) for region in op.regions for block in region.blocks for inner in block.ops
            )
        found = accesses_of(op) or ()
        return bool(found) and all(
            each.space is Space.GLOBAL and not each.kind & Kind.ATOMIC and each.completes_on is None for each in found
        )


def is_cheap(op: Operation) -> bool:
    """Return whether an operation may be done twice."""
    return is_side_effect_free(op) and not op.regions and not isinstance(op, tt.DotOp | tt.DotScaledOp)


def makes_block(op: Operation) -> bool:
    """Return whether a result of an operation is a block."""
    return any(isinstance(result.type, TensorType) for result in op.results)


def accesses_global(ops: Iterable[Operation], kind: Kind) -> bool:
    """Return whether one of the operations accesses global memory so."""
    return any(
        access.space is Space.GLOBAL and access.kind & kind
        for op in ops
        for inner in op.walk()
        for access in accesses_of(inner) or ()
    )


def _units(ops: Sequence[Operation], rings: RingLinks) -> list[Unit]:
    """Return what a turn does with each slot of each ring."""
    units: list[Unit] = []
    current: dict[SSAValue, Unit] = {}
    for op in ops:
        if not isinstance(op, ttng.WaitBarrierOp | ttng.ArriveBarrierOp | ttg.LocalLoadOp):
            continue
        ring = rings.ring_of(op.operands[0])
        if ring is None:
            continue
        if isinstance(op, ttng.WaitBarrierOp) and (ring not in current or current[ring].arrivals):
            current[ring] = Unit()
            units.append(current[ring])
        if ring not in current:
            continue
        match op:
            case ttng.WaitBarrierOp():
                current[ring].waits.append(op)
            case ttng.ArriveBarrierOp():
                current[ring].arrivals.append(op)
            case _:
                current[ring].loads.append(op)
    return units


def _is_inside(value: SSAValue, op: Operation) -> bool:
    owner = value.owner
    block = owner if isinstance(owner, Block) else owner.parent
    while block is not None:
        parent = block.parent_op()
        if parent is op:
            return True
        block = None if parent is None else parent.parent
    return False
