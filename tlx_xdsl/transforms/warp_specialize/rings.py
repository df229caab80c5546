"""Rings: the buffers through which the producer hands blocks to the consumers.

The loads that one block of code does for the same product, or for products of which each waits for the one before,
fill a slot of one ring together: they have a barrier that says that the slot is full, and one that says that it is
empty. Loops that follow each other use one ring where their slots have the same types. Numbers and small rows, which
TMA can't load, go into slots of the loop's first ring. Blocks that threads copy fill slots as those of TMA do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias, TypeGuard

from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.dialects.scf import ForOp, IfOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from tlx_xdsl.dialects import scf, tlx, tt
from tlx_xdsl.dialects.base import element_bits, enclosing, layout_attr, scalar_type
from tlx_xdsl.dialects.dimensions import shape_of_value
from tlx_xdsl.dialects.tt import descriptor_type
from tlx_xdsl.dialects.ttg import MemDescType, SharedMemorySpaceAttr
from tlx_xdsl.layouts.encodings import Ints
from tlx_xdsl.layouts.shared import default_shared_layout

SMEM = SharedMemorySpaceAttr()

Load: TypeAlias = tt.DescriptorLoadOp | tt.LoadOp
"""A load of the producer: by TMA, or by its threads."""

CountKey = tuple[Block, ...]
"""The blocks of code that fill a ring: rings that are filled by the same blocks have one count."""


@dataclass(frozen=True)
class Part:
    """One buffer of a slot."""

    shape: Ints
    bits: int
    type: MemDescType
    """The array of all of its buffers."""
    by_replica: bool
    """True where each replica of the consumer has a buffer of its own."""
    by_threads: bool = False
    """True where the producer's threads fill it."""

    @property
    def bytes(self) -> int:
        """The size of one buffer."""
        return prod(self.shape) * self.bits // 8


@dataclass(eq=False)
class Filling:
    """The loads that fill a slot in one block of code, in the order of the program."""

    loads: list[Load]
    parts: tuple[Part, ...]
    ring: Ring | None = None

    @property
    def block(self) -> Block:
        """The block of code."""
        block = self.loads[0].parent_block()
        assert block is not None
        return block

    @property
    def count_key(self) -> CountKey:
        """The key of the count of how often its ring was filled."""
        assert self.ring is not None
        return tuple(filling.block for filling in self.ring.fillings)


@dataclass(eq=False)
class Ring:
    """Slots that are filled and emptied in turn."""

    parts: tuple[Part, ...]
    depth: int
    fillings: list[Filling] = field(default_factory=list[Filling])
    names: tuple[str, ...] = ()
    """A name for each part."""

    @property
    def arrivals(self) -> int:
        """The number of arrivals that fill a slot: one with the bytes of TMA, one after what threads write."""
        return len({part.by_threads for part in self.parts})

    def slot_bytes(self, replicas: int, *, by_threads: bool = False) -> int:
        """Return the bytes of a slot that TMA fills, or those that threads fill."""
        return sum(
            part.bytes * (replicas if part.by_replica else 1) for part in self.parts if part.by_threads is by_threads
        )


def fillings_of(loads: Sequence[Load], by_replica: set[Operation], replicas: int) -> list[Filling]:
    """Group the loads of each block of code by the products that they serve."""
    found: list[list[Load]] = []
    users: list[set[Operation]] = []
    chains = {block: chain for load in loads if (block := load.parent_block()) and (chain := _chain(block))}
    for load in sorted(loads, key=is_row):
        block = load.parent_block()
        products = (chains.get(block) if block else None) or products_of(load.result)
        matching = [
            number
            for number, group in enumerate(found)
            if group[0].parent_block() is load.parent_block()
            and (users[number] & products or is_row(load))
            and not _others_between(group[0], load, loads)
        ]
        if is_row(load):
            matching = matching[:1]
        if not matching:
            found.append([load])
            users.append(products)
            continue
        first, *others = matching
        for other in reversed(others):
            found[first] += found.pop(other)
            users[first] |= users.pop(other)
        found[first].append(load)
        users[first] |= products
    position = {load: number for number, load in enumerate(loads)}
    return [
        Filling(ordered, tuple(_part(load, load in by_replica, replicas) for load in ordered))
        for group in found
        for ordered in [sorted(group, key=position.__getitem__)]
    ]


def _chain(block: Block) -> set[Operation]:
    """Return the products of a loop's body if each one needs another one's result first, that of the turn before too.

    Then the consumer waits for one after the other, and a barrier for each of their operands only adds to that.
    """
    if not isinstance(block.parent_op(), ForOp):
        return set()
    products: set[Operation] = {op for op in block.ops if isinstance(op, tt.DotOp)}
    end = block.last_op
    for product in products:
        seen: set[SSAValue] = set()
        work = list(product.operands[:2])
        while work and not any(value.owner in products for value in seen):
            if (value := work.pop()) in seen:
                continue
            seen.add(value)
            if isinstance(value.owner, Operation):
                work += value.owner.operands if value.owner.parent is block else ()
            elif value.owner is block and isinstance(value, BlockArgument) and value.index and end:
                work.append(end.operands[value.index - 1])
        if not any(value.owner in products for value in seen):
            return set()
    return products


def products_of(value: SSAValue) -> set[Operation]:
    """Return the products that a block is an operand of, as it is or rearranged."""
    found: set[Operation] = set()
    for use in value.uses:
        match use.operation:
            case tt.DotOp():
                found.add(use.operation)
            case tt.TransOp() | tt.ReshapeOp():
                found |= products_of(use.operation.results[0])
            case _:
                pass
    return found


def _part(load: Load, by_replica: bool, replicas: int) -> Part:
    if isinstance(load, tt.LoadOp):
        type_ = row_type(load)
        shape, element = type_.get_shape(), type_.element_type
    else:
        descriptor = descriptor_type(load.desc.type)
        shape, element = descriptor.shape, descriptor.element_type
    bits = element_bits(element)
    if isinstance(element, IntegerType):
        # A descriptor says whether numbers have a sign, a buffer does not.
        element = IntegerType(bits)
    layout = layout_attr(default_shared_layout(shape, bits))
    count = replicas if by_replica else 1
    type_ = MemDescType.get((count, *shape), element, layout, SMEM)
    return Part(shape, bits, type_, by_replica, isinstance(load, tt.LoadOp))


def is_row(load: Operation) -> TypeGuard[tt.LoadOp]:
    """Return whether threads load a number or a row, and store it; they copy blocks of more dimensions."""
    return isinstance(load, tt.LoadOp) and len(shape_of_value(load.result)) < 2


def row_type(load: tt.LoadOp) -> TensorType[Attribute]:
    """The type of what threads load, in which a number is a row of one element."""
    return TensorType(scalar_type(load.result.type), shape_of_value(load.result) or (1,))


def rings_of(fillings: Iterable[Filling]) -> list[Ring]:
    """Deal fillings to rings: loops that stand beside each other share one where the slots are alike."""
    rings: list[Ring] = []
    for filling in fillings:
        ring = next((ring for ring in rings if _may_share(ring, filling)), None)
        if ring is None:
            ring = Ring(filling.parts, 1)
            rings.append(ring)
        ring.fillings.append(filling)
        filling.ring = ring
    return rings


def _may_share(ring: Ring, filling: Filling) -> bool:
    place = _place(filling)
    return (
        place is not None
        and ring.parts == filling.parts
        and all(_place(other) is place and _are_apart(other.block, filling.block) for other in ring.fillings)
    )


def _are_apart(one: Block, other: Block) -> bool:
    """True for blocks in loops that follow each other, or in two arms of a branch: no turn needs a slot for each."""
    path = [one, *_blocks_around(one)]
    block: Block | None = other
    inner: Operation | None = None
    while block is not None and block not in path:
        inner = block.parent_op()
        block = None if inner is None else inner.parent_block()
    if block is None or inner is None or block is one:
        return False
    mine = path[path.index(block) - 1].parent_op()
    if mine is inner:
        return isinstance(inner, IfOp)
    return isinstance(mine, scf.LOOPS) and isinstance(inner, scf.LOOPS)


def _blocks_around(block: Block) -> Iterator[Block]:
    parent = block.parent_op()
    while parent is not None and (around := parent.parent_block()) is not None:
        yield around
        parent = around.parent_op()


def _others_between(one: Operation, other: Operation, loads: Sequence[Operation]) -> bool:
    """True if loops or branches with loads stand between two loads: the first one can't wait until these are done."""
    first, last = sorted((one, other), key=loads.index)
    op = first.next_op
    while op is not None and op is not last:
        if op.regions and any(inner in loads for inner in op.walk()):
            return True
        op = op.next_op
    return False


def _place(filling: Filling) -> Block | None:
    """The block in which the loop stands that fills the slots; None outside of loops."""
    loop = enclosing(filling.block.parent_op(), *scf.LOOPS)
    return None if loop is None else loop.parent_block()


def depends_on_replica(value: SSAValue, seen: dict[SSAValue, bool]) -> bool:
    """True if a value is computed from the number of the replica, with no loop in between."""
    if value not in seen:
        seen[value] = False
        owner = value.owner
        seen[value] = isinstance(owner, tlx.ReplicaIdOp) or (
            isinstance(owner, Operation)
            and not owner.regions
            and any(depends_on_replica(operand, seen) for operand in owner.operands)
        )
    return seen[value]
