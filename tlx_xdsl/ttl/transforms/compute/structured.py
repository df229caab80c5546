"""`linalg.generic` operations whose bodies compute with tiles.

What `linalg` has no place for is in attributes: `ttl.dst_per_tile`, `ttl.unroll`, `ttl.capacity`, `ttl.accumulate`.
The condition `first` of an accumulation is an input that is no block. Where a loop is a reduction, the tile of the
output is that of the run before, and zero (the smallest number for a maximum) in the first one, not what is in memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import AffineMapAttr, IntegerAttr, UnitAttr
from xdsl.ir import BlockArgument, SSAValue
from xdsl.ir.affine import AffineMap

from tlx_xdsl.dialects import linalg
from tlx_xdsl.dialects.memref import is_memref
from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import replace
from tlx_xdsl.ttl.analysis.iteration_space import extents
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


def loops_of(generic: linalg.GenericOp) -> tuple[int, ...]:
    """How often each loop runs."""
    operands, maps = blocks_of(generic)
    return extents(maps, operands, len(generic.iterator_types))


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
