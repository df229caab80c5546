"""Which operations of a function are fused into which: the decisions, from the last operation to the first.

A *root* is an operation that is done in the end: its result goes to memory, or it reduces. What is *inlined* is
computed where its elements are needed, inside of roots. A *spot* is a root, and the map from the dimensions of what is
inlined to those of the root.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects import linalg
from tlx_xdsl.dialects.base.tensors import shape_of_tensor
from tlx_xdsl.dialects.bufferization import MaterializeInDestinationOp
from tlx_xdsl.dialects.scf import LOOPS

from .elementwise import Elementwise, Map, composed, covers, elementwise, is_reshape, maps_of

MOST_SPOTS = 4
"""Spots at which a computation is inlined; if there are more, its result is written to memory."""

Spot: TypeAlias = tuple[Operation, Map]


@dataclass(frozen=True, eq=False, slots=True)
class Nest:
    """A loop nest into which the computation of its inputs can be inlined."""

    op: Operation
    """Where it is done."""
    maps: tuple[Map, ...]
    """Of the first operands, which are the inputs."""
    sizes: tuple[int, ...]
    """Iterations along each dimension."""

    @property
    def inputs(self) -> Sequence[SSAValue]:
        """What elements are taken from, and scalars; for a store of a box that of which it is one."""
        if isinstance(self.op, MaterializeInDestinationOp):
            part = stored_part(self.op)
            return self.op.operands[:1] if part is None else part.operands[:1]
        return self.op.operands[: len(self.maps)]


@dataclass(eq=False, slots=True)
class FusionPlan:
    """The decisions for one function."""

    order: list[Operation] = field(default_factory=list[Operation])
    """All operations on tensors outside of bodies, in program order."""
    nodes: dict[Operation, Elementwise] = field(default_factory=dict[Operation, Elementwise])
    nests: dict[Operation, Nest] = field(default_factory=dict[Operation, Nest])
    """Operations that may be roots."""
    spots: dict[Operation, dict[Spot, None]] = field(default_factory=dict[Operation, dict[Spot, None]])
    """Where each operation that is inlined is computed; for one that no other needs it is empty."""
    inlined: dict[Operation, list[tuple[Elementwise, Map]]] = field(
        default_factory=dict[Operation, list[tuple[Elementwise, Map]]]
    )
    """What is computed inside of each root, in program order."""
    _loops: dict[Operation, Operation | None] = field(default_factory=dict[Operation, Operation | None])

    @classmethod
    def of(cls, function: Operation) -> FusionPlan:
        """Decide for a function."""
        plan = cls()
        plan._read(function, None)
        for op in reversed(plan.order):
            if (node := plan.nodes.get(op)) is not None:
                plan._decide(node)
        for items in plan.inlined.values():
            items.reverse()
        return plan

    def is_inlined(self, value: SSAValue) -> bool:
        """Return whether a tensor is computed where it is needed, and not before."""
        return value.owner in self.spots

    # --- reading -------------------------------------------------------------------------------------------------

    def _read(self, op: Operation, loop: Operation | None) -> None:
        for region in op.regions:
            for block in region.blocks:
                for inner in block.ops:
                    has_tensors = any(isinstance(value.type, TensorType) for value in (*inner.operands, *inner.results))
                    if has_tensors:
                        self.order.append(inner)
                        self._loops[inner] = loop
                        self._classify(inner)
                    if inner.regions and not isinstance(inner, LinalgStructuredOperation):
                        self._read(inner, inner if isinstance(inner, LOOPS) else loop)

    def _classify(self, op: Operation) -> None:
        if (node := elementwise(op)) is not None:
            self.nodes[op] = node
            if not is_reshape(op):
                self.nests[op] = Nest(op, tuple(node.maps), node.shape)
        elif isinstance(op, linalg.ReduceOp | linalg.GenericOp):
            if (nest := _nest(op)) is not None:
                self.nests[op] = nest
        elif isinstance(op, MaterializeInDestinationOp) and op.result is None:
            source = op.source if (part := stored_part(op)) is None else part.source
            shape = shape_of_tensor(source.type)
            self.nests[op] = Nest(op, (tuple(range(len(shape))),), shape)

    # --- decisions -----------------------------------------------------------------------------------------------

    def _decide(self, node: Elementwise) -> None:
        spots: dict[Spot, None] = {}
        for result in node.op.results:
            for use in result.uses:
                found = self._spots_of(use.operation, use.index)
                if found is None:
                    return
                for spot in found:
                    spots[spot] = None
        if self._is_worth(node, spots):
            self.spots[node.op] = spots
            for root, map_ in spots:
                self.inlined.setdefault(root, []).append((node, map_))

    def _spots_of(self, user: Operation, index: int) -> Iterator[Spot] | list[Spot] | None:
        """Where an operand would be computed; None where it must be in memory."""
        if isinstance(user, tensor.ExtractSliceOp):
            store = _store_of(user)
            return None if store is None else [(store, self.nests[store].maps[0])]
        nest, node = self.nests.get(user), self.nodes.get(user)
        if user in self.spots and node is not None:
            if index >= len(node.maps):
                return None
            inner = node.maps[index]
            return ((root, composed(inner, outer)) for root, outer in self.spots[user])
        if nest is None or index >= len(nest.maps):
            return None
        return [(user, nest.maps[index])]

    def _is_worth(self, node: Elementwise, spots: dict[Spot, None]) -> bool:
        """Whether it costs no more to compute at these spots than once before, with a store and a load."""
        if len(spots) > MOST_SPOTS and node.body is not None:
            return False
        if node.is_cheap:
            return True
        loop = self._loops[node.op]
        return len(spots) <= 1 and all(
            covers(map_, self.nests[root].sizes) and self._loops[root] is loop for root, map_ in spots
        )


def _nest(op: linalg.ReduceOp | linalg.GenericOp) -> Nest | None:
    """The loops of an operation that is not elementwise; None where an element is not found by a map."""
    if not op.results:
        return None
    count = len(op.operands) - len(op.results)
    if isinstance(op, linalg.ReduceOp):
        shape = shape_of_tensor(op.operands[0].type)
        return Nest(op, (tuple(range(len(shape))),) * count, shape)
    maps = maps_of(op)
    if maps is None:
        return None
    sizes = [0] * len(op.iterator_types)
    for value, map_ in zip(op.operands, maps, strict=True):
        for dim, place in enumerate(map_):
            if place >= 0:
                sizes[place] = shape_of_tensor(value.type)[dim]
    return Nest(op, tuple(maps[:count]), tuple(sizes))


def stored_part(op: MaterializeInDestinationOp) -> tensor.ExtractSliceOp | None:
    """The box that a store takes, if nothing else takes it, and it has all dimensions and no steps."""
    part = op.source.owner
    if not isinstance(part, tensor.ExtractSliceOp) or part.parent is not op.parent or not part.result.has_one_use():
        return None
    sizes = part.static_sizes.get_values()
    whole = len(sizes) == len(shape_of_tensor(part.result.type))
    return part if whole and all(step == 1 for step in part.static_strides.get_values()) else None


def _store_of(part: tensor.ExtractSliceOp) -> MaterializeInDestinationOp | None:
    """The store of a box; None where that is not its only use."""
    use = part.result.first_use
    store = None if use is None else use.operation
    return store if isinstance(store, MaterializeInDestinationOp) and stored_part(store) is part else None
