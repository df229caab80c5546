"""`linalg.generic` operations whose bodies compute with tiles.

What `linalg` has no place for is in attributes: `ttl.dst_per_tile`, `ttl.unroll`, `ttl.capacity`, `ttl.accumulate`.
The condition `first` of an accumulation is an input that is no block. Where a loop is a reduction, the tile of the
output is that of the run before, and zero (the smallest number for a maximum) in the first one, not what is in memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import AffineMapAttr, IntegerAttr, UnitAttr
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import BlockArgument, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from tlx_xdsl.dialects import linalg
from tlx_xdsl.dialects.memref import is_memref
from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import replace
from tlx_xdsl.ttl.dialects import ttl

DST_PER_TILE, UNROLL, CAPACITY, ACCUMULATE = "ttl.dst_per_tile", "ttl.unroll", "ttl.capacity", "ttl.accumulate"


def to_generic(compute: ttl.ComputeOp) -> linalg.GenericOp:
    """Replace a `ttl.compute` by a `linalg.generic`.

    Raises CompilationError when registers were not assigned.
    """
    if compute.dst_per_tile is None or compute.unroll is None:
        raise error_at(compute, "a ttl.compute without destination registers: run ttl-assign-dst-registers before")
    inputs, maps = list(compute.inputs), list(compute.indexing_maps)
    body = compute.detach_region(compute.body)
    end = body.block.last_op
    assert isinstance(end, ttl.YieldOp), "checked by the verifier"
    replace(end, linalg.YieldOp(*end.tiles))
    if compute.first is not None:
        body.block.insert_arg(compute.first.type, len(inputs))
        maps.insert(len(inputs), AffineMapAttr(AffineMap(len(compute.iterator_types), 0, ())))
        inputs.append(compute.first)
    generic = linalg.GenericOp(inputs, compute.outputs, body, maps, list(compute.iterator_types))
    numbers = {DST_PER_TILE: compute.dst_per_tile, UNROLL: compute.unroll, CAPACITY: compute.capacity}
    generic.attributes |= {name: value for name, value in numbers.items() if value is not None}
    if compute.accumulate is not None:
        generic.attributes[ACCUMULATE] = UnitAttr()
    return replace(compute, generic)


def is_of_tiles(generic: linalg.GenericOp) -> bool:
    """Whether it was a `ttl.compute`."""
    return DST_PER_TILE in generic.attributes


def number_of(generic: linalg.GenericOp, name: str) -> int:
    """One of the numbers of registers or tiles."""
    attribute = generic.attributes[name]
    assert isinstance(attribute, IntegerAttr)
    return attribute.value.data


def loops_of(op: ttl.ComputeOp | linalg.GenericOp) -> tuple[int, ...]:
    """How often each loop of a compute runs, from the shapes of blocks and the maps from loops to places in them."""
    found: dict[int, int] = {}
    for map_, block in zip(op.indexing_maps, [*op.inputs, *op.outputs], strict=True):
        # A condition has a map without results.
        places = map_.data.results
        for expr, size in zip(places, ttl.block_shape(block.type) if places else (), strict=True):
            if isinstance(expr, AffineDimExpr):
                found[expr.position] = size
    return tuple(found.get(loop, 1) for loop in range(len(op.iterator_types)))


def parallel(op: ttl.ComputeOp | linalg.GenericOp) -> list[int]:
    """The numbers of the loops whose runs are independent."""
    return [number for number, kind in enumerate(op.iterator_types) if kind.data is IteratorType.PARALLEL]


def blocks_of(generic: linalg.GenericOp) -> tuple[Sequence[SSAValue], Sequence[AffineMapAttr]]:
    """The operands that are blocks, and their maps."""
    pairs = zip([*generic.inputs, *generic.outputs], generic.indexing_maps, strict=True)
    blocks, maps = zip(*(pair for pair in pairs if is_memref(pair[0].type)), strict=True)
    return blocks, maps


def operand_of(argument: BlockArgument) -> int:
    """The number of the operand whose tile an argument of the body is."""
    return argument.index


def first_of(generic: linalg.GenericOp) -> SSAValue | None:
    """The condition under which an accumulation overwrites."""
    return next((value for value in generic.inputs if not is_memref(value.type)), None)


def tile_ops(generic: linalg.GenericOp) -> list[ttl.TileOp]:
    """The operations of the body."""
    return [op for op in generic.body.block.ops if isinstance(op, ttl.TileOp)]
