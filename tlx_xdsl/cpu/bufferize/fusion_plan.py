"""Fusion of a function's operations, as decisions from the last operation to the first.

A *root* is an operation that is done in the end: its result goes to memory, or it reduces. What is *inlined* is
computed where its elements are needed, inside of roots. A *spot* is a root, and the map from the dimensions of what is
inlined to those of the root.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, singledispatch
from typing import TypeAlias, cast

from xdsl.dialects import tensor
from xdsl.dialects.builtin import AffineMapAttr, TensorType
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap
from xdsl.traits import IsTerminator, is_side_effect_free

from tlx_xdsl.dialects import linalg
from tlx_xdsl.dialects.base.tensors import scalar_type, shape_of_tensor
from tlx_xdsl.dialects.bufferization import MaterializeInDestinationOp
from tlx_xdsl.dialects.scf import LOOPS

# Operations that compute each element of a tensor from single elements of others, as bodies with maps.
#
# A map gives, for each dimension of an input, the dimension of the result whose index it takes; `ORIGIN` stands for the
# only index of a dimension of size 1. Everything that fusion moves has such maps: loop nests over all elements, fills,
# broadcasts, transpositions, and reshapes that only add or drop dimensions of size 1.

Map: TypeAlias = tuple[int, ...]
ORIGIN = -1


@dataclass(frozen=True, eq=False, slots=True)
class Elementwise:
    """An operation whose results have one shape, and are computed element by element."""

    op: Operation
    maps: Sequence[Map]
    """Of the first operands, which are the inputs."""
    body: Block | None
    """Takes an element of each input; None where the result is the element of the only input."""
    is_cheap: bool
    """Whether it costs less than to read what it computes, so that it may be done several times."""

    @property
    def inputs(self) -> Sequence[SSAValue]:
        """Return what elements are taken from, and scalars."""
        return self.op.operands[: len(self.maps)]

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the results."""
        return shape_of_tensor(self.op.results[0].type)


def composed(inner: Map, outer: Map) -> Map:
    """The map of an input whose dimensions are mapped by `inner` to those that `outer` maps."""
    return tuple(ORIGIN if dim == ORIGIN else outer[dim] for dim in inner)


def covers(map_: Map, shape: Sequence[int]) -> bool:
    """Return whether each element is read once: all dimensions with several elements have a part in a map."""
    return all(size == 1 or dim in map_ for dim, size in enumerate(shape))


@lru_cache(maxsize=4096)
def map_attr(rank: int, map_: Map) -> AffineMapAttr:
    """A map as an attribute."""
    results = tuple(AffineConstantExpr(0) if dim == ORIGIN else AffineDimExpr(dim) for dim in map_)
    return AffineMapAttr(AffineMap(rank, 0, results))


@lru_cache(maxsize=4096)
def map_of(attr: AffineMapAttr) -> Map | None:
    """The map that an attribute is; None for one with arithmetic."""
    found: list[int] = []
    for expr in attr.data.results:
        match expr:
            case AffineDimExpr(position=position):
                found.append(position)
            case AffineConstantExpr(value=0):
                found.append(ORIGIN)
            case _:
                return None
    return tuple(found)


def maps_of(op: linalg.GenericOp) -> list[Map] | None:
    """The maps of all operands; None where one has arithmetic."""
    found = [map_of(each) for each in op.indexing_maps]
    return None if None in found else cast("list[Map]", found)


_EXPENSIVE = ("math.", "arith.div", "arith.rem", "arith.ceildiv", "arith.floordiv", "tensor.extract")
"""How the names of operations begin that are never done again."""
_CHEAP_OPERATIONS = 6
"""Operations of a body that are done again rather than read; a load and a store take as long as some of them."""


def is_movable(body: Block) -> bool:
    """Return whether a body may be done elsewhere: it has no effects, and no control flow."""
    return all(op.has_trait(IsTerminator) or (not op.regions and is_side_effect_free(op)) for op in body.ops)


def _is_cheap(body: Block) -> bool:
    count = 0
    for op in body.ops:
        count += 1
        if op.name.startswith(_EXPENSIVE):
            return False
    # The terminator counts for nothing.
    return count <= _CHEAP_OPERATIONS + 1


@singledispatch
def elementwise(op: Operation) -> Elementwise | None:
    """Return an operation on tensors as one that computes element by element; None for all others."""
    return None


@elementwise.register
def _generic(op: linalg.GenericOp) -> Elementwise | None:
    maps = maps_of(op) if op.results else None
    if maps is None:
        return None
    block, rank = op.body.block, len(op.iterator_types)
    count = len(maps) - len(op.results)
    everywhere = tuple(range(rank))
    if any(kind != linalg.PARALLEL for kind in op.iterator_types):
        return None
    if any(map_ != everywhere for map_ in maps[count:]) or not is_movable(block):
        return None
    if any(argument.first_use is not None for argument in block.args[count:]):
        return None
    return Elementwise(op, maps[:count], block, _is_cheap(block))


@elementwise.register
def _fill(op: linalg.FillOp) -> Elementwise | None:
    number, *outputs = op.operands
    if len(op.results) != 1 or len(outputs) != 1 or number.type != scalar_type(op.results[0].type):
        return None
    return Elementwise(op, [()], None, True)


@elementwise.register
def _broadcast(op: linalg.BroadcastOp) -> Elementwise | None:
    if not op.results:
        return None
    added = op.dimensions.get_values()
    kept = tuple(dim for dim in range(len(shape_of_tensor(op.results[0].type))) if dim not in added)
    return Elementwise(op, [kept], None, True)


@elementwise.register
def _transpose(op: linalg.TransposeOp) -> Elementwise | None:
    if not op.results:
        return None
    order = [int(dim) for dim in op.permutation.get_values()]
    return Elementwise(op, [tuple(order.index(dim) for dim in range(len(order)))], None, True)


@elementwise.register
def _expanded(op: tensor.ExpandShapeOp) -> Elementwise | None:
    """Each dimension of the source is the one of its group that has its elements."""
    return _reshaped(op, shape_of_tensor(op.src.type), shape_of_tensor(op.result.type))


@elementwise.register
def _collapsed(op: tensor.CollapseShapeOp) -> Elementwise | None:
    return _reshaped(op, shape_of_tensor(op.src.type), shape_of_tensor(op.result.type))


def _reshaped(
    op: tensor.ExpandShapeOp | tensor.CollapseShapeOp, source: tuple[int, ...], result: tuple[int, ...]
) -> Elementwise | None:
    long = [size for size in source if size != 1]
    if long != [size for size in result if size != 1] or any(size < 0 for size in source):
        return None
    places = iter([dim for dim, size in enumerate(result) if size != 1])
    map_ = tuple(ORIGIN if size == 1 else next(places) for size in source)
    return Elementwise(op, [map_], None, True)


def is_reshape(op: Operation) -> bool:
    """Return whether an operation is a view of all elements, which costs nothing where they are in memory."""
    return isinstance(op, tensor.ExpandShapeOp | tensor.CollapseShapeOp)


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
        """Return what elements are taken from, and scalars; for a store of a box that of which it is one."""
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
        """Return where an operand would be computed; None where it must be in memory."""
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
        """Return whether it costs no more to compute at these spots than once before, with a store and a load."""
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
