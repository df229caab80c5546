"""Stochastic rounding, and packed arithmetic (PTX ISA, "cvt", `.rs`; "add", "mul" and "fma" of packed types)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tlx_xdsl.dialects import tlx, ttng
from tlx_xdsl.dialects.ttng.enums import PackedArithOpKind
from tlx_xdsl.interpreter.faults import fault_at
from tlx_xdsl.interpreter.numbers import dtype_of
from tlx_xdsl.interpreter.registry import Binary, Run, pure
from tlx_xdsl.interpreter.scaled import unpack_e2m1
from tlx_xdsl.numerics.arrays import Array
from tlx_xdsl.numerics.rounding import round_at_random


@pure(tlx.StochRoundOp)
def stoch_round(op: tlx.StochRoundOp) -> Binary:
    """Each element with random bits of its own.

    The hardware looks at fewer bits, and packs them, so single elements may differ from it.
    """
    dtype = dtype_of(op.result.type)
    return lambda values, bits: round_at_random(values, bits.view(np.uint32) / 2.0**32, dtype)


def _fma(a: Array, b: Array, c: Array) -> Array:
    return a * b + c


_PACKED: dict[PackedArithOpKind, Callable[..., Array]] = {
    PackedArithOpKind.ADD: np.add,
    PackedArithOpKind.SUB: np.subtract,
    PackedArithOpKind.MUL: np.multiply,
    PackedArithOpKind.FMA: _fma,
    PackedArithOpKind.MIN: np.fmin,
    PackedArithOpKind.MAX: np.fmax,
}


@pure(ttng.PackedArithOp)
def packed_arith(op: ttng.PackedArithOp) -> Run:
    """Element by element, rounded once; a scale counts for its whole block, and pairs of fp4 are taken apart."""
    function, dtype = _PACKED[PackedArithOpKind(op.op_kind.value.data)], dtype_of(op.result.type)
    shape = op.result.type.get_shape()

    def run(*values: Array) -> Array:
        return np.asarray(function(*(_like(op, value, shape) for value in values))).astype(dtype)

    return run


def _like(op: ttng.PackedArithOp, values: Array, shape: tuple[int, ...]) -> Array:
    """An operand in f64, with an element for each of the result.

    Raises Fault where the shapes do not fit.
    """
    if values.dtype == np.int8:
        halved = [axis for axis, size in enumerate(shape) if size == 2 * values.shape[axis]]
        if len(halved) != 1:
            raise fault_at(op, f"{list(values.shape)} pairs of fp4 are not the {list(shape)} elements of the result")
        return unpack_e2m1(values, halved[0]).astype(np.float64)
    held = values.astype(np.float64)
    for axis, size in enumerate(shape):
        if size % held.shape[axis]:
            raise fault_at(op, f"an operand of shape {list(values.shape)} does not fit a result of shape {list(shape)}")
        held = np.repeat(held, size // held.shape[axis], axis)
    return held
