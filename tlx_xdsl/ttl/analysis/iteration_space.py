"""The loops of a `ttl.compute`, or of the `linalg.generic` that it becomes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import AffineMapAttr
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr

from ..dialects import ttl


def extents(maps: Iterable[AffineMapAttr], blocks: Sequence[SSAValue], loops: int) -> tuple[int, ...]:
    """How often each loop runs, from the shapes of blocks and the maps from loops to places in them."""
    found: dict[int, int] = {}
    for map_, block in zip(maps, blocks, strict=True):
        for expr, size in zip(map_.data.results, ttl.block_shape(block.type), strict=True):
            if isinstance(expr, AffineDimExpr):
                found[expr.position] = size
    return tuple(found.get(loop, 1) for loop in range(loops))


def loops_of(compute: ttl.ComputeOp) -> tuple[int, ...]:
    """How often each loop of a compute runs."""
    blocks = [*compute.inputs, *compute.outputs]
    return extents(compute.indexing_maps, blocks, len(compute.iterator_types))


def parallel(iterators: Sequence[IteratorType]) -> list[int]:
    """The numbers of the loops whose runs are independent."""
    return [number for number, kind in enumerate(iterators) if kind is IteratorType.PARALLEL]
