"""`ttl.compute`, which computes blocks in memory tile by tile: the form after `ttl-bufferize`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.interpreter.faults import fault_at
from tlx_xdsl.numerics.arrays import Array

from ..dialects.ttl.tiles import ComputeOp, TileOp
from ..elementwise import BY_NAME
from ..tiles import TILE
from .blocks import View
from .compute import value_of
from .ttkernel import tile_math
from .ttkernel.machine import CoreThread, wrong
from .ttkernel.translate import Builder, Local, integers

TileFunction = Callable[..., Any]
"""Takes the tiles of an operation's operands; a tile that holds nothing yet is None."""


def _reduction(kind: str, op: Operation) -> TileFunction:
    dims = integers(op, "dims")

    def reduce(tile: Array, scaler: Array, before: Array | None) -> Array:
        part = tile_math.reduce(kind, tile, dims) * scaler[0, 0]
        return part if before is None else tile_math.combine(kind, before, part)

    return reduce


def _matmul(a: Array, b: Array, before: Array | None) -> Array:
    product = a @ b
    return product if before is None else before + product


def _same(tile: Array) -> Array:
    return tile


def _transpose(tile: Array) -> Array:
    return np.ascontiguousarray(tile.T)


def _function(op: TileOp) -> TileFunction:
    """Return what an operation does with its tiles."""
    name = op.FUNCTION
    if name in tile_math.BINARY:
        return tile_math.BINARY[name]
    if name in BY_NAME:
        return tile_math.vector_function(BY_NAME[name], op)
    match name:
        case "where":
            return tile_math.where
        case "copy":
            return _same
        case "fill":
            return partial(np.full, (TILE, TILE), tile_math.number_of(op))
        case "typecast":
            source, target = tile_math.formats_of(op)
            return partial(tile_math.typecast, source=source, target=target)
        case "bcast":
            return partial(tile_math.broadcast, dims=integers(op, "dims"))
        case "transpose":
            return _transpose
        case "matmul":
            return _matmul
        case "reduce_sum" | "reduce_max":
            return _reduction(name.removeprefix("reduce_"), op)
        case _:
            raise fault_at(op, f"the interpreter can't run '{op.name}'")


def compute(op: Operation) -> Local:
    """Compute the tiles of blocks; partial results of reductions stay in registers, in f32."""
    assert isinstance(op, ComputeOp)
    maps = [each.data for each in op.indexing_maps]
    parallel = [number for number, each in enumerate(op.iterators) if each is IteratorType.PARALLEL]
    body = op.body.block
    steps = [(each, _function(each)) for each in body.ops if isinstance(each, TileOp)]
    end = body.last_op
    assert end is not None
    inputs, outputs = len(op.inputs), len(op.outputs)
    accumulates = op.accumulate is not None

    def run(thread: CoreThread, *operands: Any) -> None:
        views: tuple[View, ...] = operands[: inputs + outputs]
        first = bool(operands[inputs + outputs]) if len(operands) > inputs + outputs else False
        blocks = [value_of(op, view) for view in views[:inputs]]
        results = [np.zeros(view.shape, view.buffer.format.register) for view in views[inputs:]]
        computed: dict[tuple[int, ...], list[Array]] = {}
        for point in np.ndindex(*_extents(op, views)):
            at = tuple(point[number] for number in parallel)
            tiles: dict[SSAValue, Any] = {
                argument: block[tuple(maps[number].eval(list(point), []))]
                for number, (argument, block) in enumerate(zip(body.args, blocks, strict=False))
            }
            before = computed.get(at)
            for number, argument in enumerate(body.args[inputs:]):
                tiles[argument] = None if before is None else before[number]
            with np.errstate(all="ignore"):
                for each, function in steps:
                    tiles[each.result] = function(*(tiles[value] for value in each.operands))
            computed[at] = [tiles[value] for value in end.operands]
            for number, result in enumerate(results):
                result[tuple(maps[inputs + number].eval(list(point), []))] = computed[at][number]
        for view, result in zip(views[inputs:], results, strict=True):
            if accumulates and not first:
                result = view.read(op) + result
            view.write(op, result)

    return run


def _extents(op: ComputeOp, views: tuple[View, ...]) -> list[int]:
    """The size of each loop, from the shapes of the blocks whose tiles it counts."""
    found: dict[int, int] = {}
    for each, view in zip(op.indexing_maps, views, strict=True):
        for position, size in zip(each.data.results, view.shape, strict=False):
            for dim in position.used_dims() if hasattr(position, "used_dims") else ():
                found[dim] = size
    count = len(op.iterator_types)
    if missing := [dim for dim in range(count) if dim not in found]:
        raise fault_at(op, f"no block says how often loop {missing[0]} of the computation runs")
    return [found[dim] for dim in range(count)]


def _get_tile(op: Operation) -> Local:
    """Take a tile of a block."""

    def run(thread: CoreThread, view: View, index: int) -> Array:
        tiles = view.read(op).reshape(-1, TILE, TILE)
        return tiles[_checked(op, thread, index, len(tiles))]

    return run


def _pack_tile(op: Operation) -> Local:
    """Write a tile of a block."""

    def run(thread: CoreThread, tile: Array, view: View, index: int) -> None:
        view.write_part(op, tile.reshape(-1), _checked(op, thread, index, prod(view.shape[:-2])))

    return run


def _checked(op: Operation, thread: CoreThread, index: int, count: int) -> int:
    if not 0 <= index < count:
        raise wrong(op, thread, f"uses tile {index} of a block, whose tiles are 0 to {count - 1}")
    return index


def _tile_function(op: Operation) -> Local:
    """Compute with tiles in registers."""
    assert isinstance(op, TileOp)
    function = _function(op)

    def run(thread: CoreThread, *tiles: Array) -> Array:
        with np.errstate(all="ignore"):
            return function(*tiles)

    return run


_FUNCTIONS = (*tile_math.BINARY, *BY_NAME, "where", "copy", "fill", "typecast", "bcast", "transpose")
BUILDERS: dict[str, Builder] = {
    "ttl.compute": compute,
    "ttl.get_tile": _get_tile,
    "ttl.pack_tile": _pack_tile,
    **{f"ttl.tile_{name}": _tile_function for name in _FUNCTIONS},
}
