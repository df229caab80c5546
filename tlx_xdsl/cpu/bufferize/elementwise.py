"""Operations that compute each element of a tensor from single elements of others, as bodies with maps.

A map gives, for each dimension of an input, the dimension of the result whose index it takes; `ORIGIN` stands for the
only index of a dimension of size 1. Everything that fusion moves has such maps: loop nests over all elements, fills,
broadcasts, transpositions, and reshapes that only add or drop dimensions of size 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, singledispatch
from typing import TypeAlias, cast

from xdsl.dialects import tensor
from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap
from xdsl.traits import IsTerminator, is_side_effect_free

from tlx_xdsl.dialects import linalg
from tlx_xdsl.dialects.base.tensors import scalar_type, shape_of_tensor

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
        """What elements are taken from, and scalars."""
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
