"""Computing with blocks as values.

Values of tiles of 16 bits are computed in f32. They are rounded where they meet memory: at a store, and as operands and
results of what the hardware reads from circular buffers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation

from tlx_xdsl.numerics.arrays import Array

from ..dialects.ttl.base import block_shape, tile_of
from ..dialects.ttl.compute import StoreOp
from ..elementwise import FUNCTIONS, Function
from ..tiles import TILE
from .blocks import View
from .ttkernel import tile_math
from .ttkernel.machine import CoreThread, of_thread
from .ttkernel.translate import Builder, Local, attribute, integers


def value_of(op: Operation, operand: View | Array) -> Array:
    """The elements of an operand as f32: a view is read now."""
    return operand.read(op).astype(np.float32) if isinstance(operand, View) else operand


def _elementwise(function: Callable[..., Array] | Function) -> Builder:
    def build(op: Operation) -> Local:
        function_of = tile_math.vector_function(function, op) if isinstance(function, Function) else function

        def run(thread: CoreThread, *operands: View | Array) -> Array:
            with np.errstate(all="ignore"):
                return function_of(*(value_of(op, each) for each in operands)).astype(np.float32)

        return run

    return build


def _through_memory(function: Callable[..., Array]) -> Builder:
    """An operation whose operands and result are rounded as circular buffers hold them; it takes itself first.

    A result that a store alone uses stays in registers until then: an addition to what is there is rounded once.
    """

    def build(op: Operation) -> Local:
        dtype = tile_math.dtype_of(tile_of(op.results[0].type).data_type)
        users = [use.operation for use in op.results[0].uses]
        is_only_stored = len(users) == 1 and isinstance(users[0], StoreOp)

        def run(thread: CoreThread, *operands: View | Array) -> Array:
            values = [tile_math.rounded(value_of(op, each), dtype) for each in operands]
            with np.errstate(all="ignore"):
                result = function(op, *values)
            return result if is_only_stored else tile_math.rounded(result, dtype)

        return run

    return build


def _fill(op: Operation) -> Local:
    value = attribute(op, "value")
    assert isinstance(value, FloatAttr)
    shape = (*block_shape(op.results[0].type), TILE, TILE)
    number = np.float32(value.value.data)
    return of_thread(lambda thread: np.full(shape, number))


def _bcast(op: Operation, block: Array) -> Array:
    rows, columns = block_shape(op.results[0].type)
    spread = tile_math.broadcast(block, integers(op, "dims"))
    return np.broadcast_to(spread, (rows, columns, TILE, TILE)).copy()


def _reduction(kind: str) -> Callable[..., Array]:
    """Reduce tile after tile, as the hardware does."""

    def reduce(op: Operation, block: Array, scaler: Array | None = None) -> Array:
        dims = integers(op, "dims")
        rows, columns = block_shape(op.results[0].type)
        made: dict[tuple[int, int], Array] = {}
        for i in range(block.shape[0]):
            for j in range(block.shape[1]):
                at = (0 if 0 in dims else i, 0 if 1 in dims else j)
                part = tile_math.reduce(kind, block[i, j], dims)
                part = part if scaler is None else part * scaler[0, 0, 0, 0]
                made[at] = tile_math.combine(kind, made[at], part) if at in made else part
        result = np.empty((rows, columns, TILE, TILE), np.float32)
        for at, tile in made.items():
            result[at] = tile
        return result

    return reduce


def _matmul(op: Operation, a: Array, b: Array) -> Array:
    result = np.zeros((a.shape[0], b.shape[1], TILE, TILE), np.float32)
    for i, j in np.ndindex(a.shape[0], b.shape[1]):
        total = a[i, 0] @ b[0, j]
        for k in range(1, a.shape[1]):
            total = total + a[i, k] @ b[k, j]
        result[i, j] = total
    return result


def _transpose(op: Operation, block: Array) -> Array:
    return np.ascontiguousarray(block.transpose(1, 0, 3, 2))


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
            values = view.read(op).astype(np.float32) + values
        view.write(op, values)

    return run


BUILDERS: dict[str, Builder] = {
    **{f"ttl.{function.name}": _elementwise(function) for function in FUNCTIONS},
    **{f"ttl.{name}": _elementwise(function) for name, function in tile_math.BINARY.items()},
    "ttl.where": _elementwise(tile_math.where),
    "ttl.fill": _fill,
    "ttl.bcast": _through_memory(_bcast),
    "ttl.matmul": _through_memory(_matmul),
    "ttl.transpose": _through_memory(_transpose),
    "ttl.reduce_sum": _through_memory(_reduction("sum")),
    "ttl.reduce_max": _through_memory(_reduction("max")),
    "ttl.store": _store,
    "ttl.require_dst": _mark,
}
