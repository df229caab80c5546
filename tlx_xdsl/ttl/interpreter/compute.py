"""Computing with blocks as values.

Values of tiles of 16 bits are computed in f32. They are rounded where they meet memory: at a store, and as operands and
results of what the hardware reads from circular buffers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.numerics.arrays import Array

from ..dialects.ttl.base import block_shape, tile_of
from ..dialects.ttl.compute import DimsOp, StoreOp
from ..elementwise import FUNCTIONS, Function
from ..formats import format_for
from ..tiles import TILE
from .blocks import View
from .ttkernel import tile_math
from .ttkernel.machine import CoreThread, of_thread
from .ttkernel.translate import Builder, Local, attribute


def value_of(op: Operation, operand: View | Array) -> Array:
    """The elements of an operand as registers have them: a view is read now."""
    return operand.read(op) if isinstance(operand, View) else operand


def _elementwise(function: Callable[..., Array] | Function) -> Builder:
    def build(op: Operation) -> Local:
        function_of = tile_math.vector_function(function, op) if isinstance(function, Function) else function

        def run(thread: CoreThread, *operands: View | Array) -> Array:
            with np.errstate(all="ignore"):
                values = [value_of(op, each) for each in operands]
                return function_of(*values).astype(values[0].dtype)

        return run

    return build


def _through_memory(function: Callable[..., Array]) -> Builder:
    """An operation whose operands and result are rounded as circular buffers hold them; it takes itself first.

    A result that a store alone uses stays in registers until then: an addition to what is there is rounded once.
    """

    def build(op: Operation) -> Local:
        formats = [format_for(tile_of(each.type).data_type) for each in (*op.operands, *op.results)]
        users = [use.operation for use in op.results[0].uses]
        is_only_stored = len(users) == 1 and isinstance(users[0], StoreOp)

        def run(thread: CoreThread, *operands: View | Array) -> Array:
            values = [each.rounded(value_of(op, value)) for each, value in zip(formats, operands, strict=False)]
            with np.errstate(all="ignore"):
                result = function(op, *values)
            return result if is_only_stored else formats[-1].rounded(result)

        return run

    return build


def _fill(op: Operation) -> Local:
    number = tile_math.number_of(op)
    shape = (*block_shape(op.results[0].type), TILE, TILE)
    return of_thread(lambda thread: np.full(shape, number))


def _typecast(op: Operation) -> Local:
    source, target = tile_math.formats_of(op)

    def run(thread: CoreThread, operand: View | Array) -> Array:
        return tile_math.typecast(value_of(op, operand), source, target)

    return run


def _bcast(op: Operation, block: Array) -> Array:
    assert isinstance(op, DimsOp)
    spread = tile_math.broadcast(block, op.tile_dims)
    return np.broadcast_to(spread, (*block_shape(op.result.type), TILE, TILE)).copy()


def _reduction(kind: str) -> Callable[..., Array]:
    """Reduce tile after tile, as the hardware does."""

    def reduce(op: Operation, block: Array, scaler: Array | None = None) -> Array:
        assert isinstance(op, DimsOp)
        made: dict[tuple[int, ...], Array] = {}
        for place in np.ndindex(*block.shape[:-2]):
            at = tuple(0 if dim in op.dimensions else each for dim, each in enumerate(place))
            part = tile_math.reduce(kind, block[place], op.tile_dims)
            part = part if scaler is None else part * scaler[0, 0, 0, 0]
            made[at] = tile_math.combine(kind, made[at], part) if at in made else part
        result = np.empty((*block_shape(op.result.type), TILE, TILE), np.float32)
        for at, tile in made.items():
            result[at] = tile
        return result

    return reduce


def _matmul(op: Operation, a: Array, b: Array) -> Array:
    result = np.zeros((*block_shape(op.results[0].type), TILE, TILE), np.float32)
    for *matrix, i, j in np.ndindex(*result.shape[:-2]):
        left, right = a[tuple(matrix)], b[tuple(matrix)] if b.ndim == a.ndim else b
        total = left[i, 0] @ right[0, j]
        for k in range(1, left.shape[1]):
            total = total + left[i, k] @ right[k, j]
        result[(*matrix, i, j)] = total
    return result


def _transpose(op: Operation, block: Array) -> Array:
    return np.ascontiguousarray(block.swapaxes(-4, -3).swapaxes(-2, -1))


def _mark(op: Operation) -> Local:
    """A mark for the compiler changes nothing."""

    def run(thread: CoreThread, value: View | Array) -> None:
        pass

    return run


def _store(op: Operation) -> Local:
    """Write a value, or add it to what is there."""
    accumulates = attribute(op, "accumulate") is not None

    def run(thread: CoreThread, value: View | Array, view: View, first: bool = False) -> None:
        values = value_of(op, value)
        if accumulates and not first:
            values = view.read(op) + values
        view.write(op, values)

    return run


def _tilize(op: Operation) -> Local:
    """Write rows of elements as tiles."""

    def run(thread: CoreThread, rows: View, view: View) -> None:
        *others, height, width, _, _ = view.shape
        values = rows.read(op).reshape(*others, height, TILE, width, TILE)
        view.write(op, values.swapaxes(-2, -3))

    return run


def _untilize(op: Operation) -> Local:
    """Write tiles as rows of elements."""

    def run(thread: CoreThread, tiles: View, view: View) -> None:
        view.write(op, tiles.read(op).swapaxes(-2, -3).reshape(view.shape))

    return run


BUILDERS: dict[str, Builder] = {
    **{f"ttl.{function.name}": _elementwise(function) for function in FUNCTIONS},
    **{f"ttl.{name}": _elementwise(function) for name, function in tile_math.BINARY.items()},
    "ttl.where": _elementwise(tile_math.where),
    "ttl.fill": _fill,
    "ttl.typecast": _typecast,
    "ttl.bcast": _through_memory(_bcast),
    "ttl.matmul": _through_memory(_matmul),
    "ttl.transpose": _through_memory(_transpose),
    "ttl.reduce_sum": _through_memory(_reduction("sum")),
    "ttl.reduce_max": _through_memory(_reduction("max")),
    "ttl.store": _store,
    "ttl.tilize": _tilize,
    "ttl.untilize": _untilize,
    "ttl.require_dst": _mark,
}
