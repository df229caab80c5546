"""Arithmetic on scalars and tensors. Integers wrap around; floats narrower than f32 are computed in f32 and rounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from xdsl.dialects import arith as upstream, builtin, ub
from xdsl.ir import Operation

from tlx_xdsl.dialects import arith
from tlx_xdsl.dialects.base import as_tensor
from tlx_xdsl.numerics import elementwise
from tlx_xdsl.numerics.arrays import Array, Dtype, is_small_float, poison, unsigned, where
from tlx_xdsl.text.diagnostics import report_warning

from ..numbers import dtype_of
from ..registry import Binary, Functions, Run, Ternary, pure
from ..threads import differs

# Constants -----------------------------------------------------------------------------------------------------------


@pure(upstream.ConstantOp)
def constant(op: upstream.ConstantOp) -> Run:
    """A scalar or a whole tensor, which is read only."""
    dtype = dtype_of(op.result.type)
    value = op.value
    if isinstance(value, builtin.DenseIntOrFPElementsAttr):
        tensor = as_tensor(op.result.type)
        assert tensor is not None
        numbers: list[Any] = list(cast(Any, value).get_values())
        held: Array = _wrapped(numbers, dtype)
        held = np.broadcast_to(
            held.reshape(()) if len(numbers) == 1 else held.reshape(tensor.get_shape()), tensor.get_shape()
        )
    else:
        assert isinstance(value, builtin.IntegerAttr | builtin.FloatAttr)
        held = _wrapped([value.value.data], dtype)[0]
    return lambda: held


def _wrapped(numbers: list[Any], dtype: Dtype) -> Array:
    """Numbers as `dtype`, in which unsigned integers are written with a sign."""
    if dtype.kind != "i":
        return np.array(numbers).astype(dtype)
    width = dtype.itemsize * 8
    half = 1 << (width - 1)
    return np.array([(number + half) % (1 << width) - half for number in numbers], dtype)


@pure(ub.PoisonOp)
def poison_value(op: ub.PoisonOp) -> Run:
    """Set all bits, so that the value is seen where it matters."""
    tensor = as_tensor(op.result.type)
    held = poison(() if tensor is None else tensor.get_shape(), dtype_of(op.result.type))[()]
    return lambda: held


# Integers ------------------------------------------------------------------------------------------------------------

_BINARY: Functions = {
    upstream.AddiOp: np.add,
    upstream.SubiOp: np.subtract,
    upstream.MuliOp: np.multiply,
    upstream.AndIOp: np.bitwise_and,
    upstream.OrIOp: np.bitwise_or,
    upstream.XOrIOp: np.bitwise_xor,
    upstream.MinSIOp: np.minimum,
    upstream.MaxSIOp: np.maximum,
}
_OF_BITS: Functions = {
    upstream.AddiOp: np.bitwise_xor,
    upstream.SubiOp: np.bitwise_xor,
    upstream.MuliOp: np.bitwise_and,
    # As a signed number, the bit 1 is -1.
    upstream.MinSIOp: np.bitwise_or,
    upstream.MaxSIOp: np.bitwise_and,
}
"""The same operations on single bits, which numpy takes for truth values."""


@pure(*_BINARY)
def integer(op: Operation) -> Run:
    """Run the operation as one numpy function."""
    if dtype_of(op.results[0].type).kind == "b":
        return _OF_BITS.get(type(op), _BINARY[type(op)])
    return _BINARY[type(op)]


def _as_unsigned(op: Operation, function: Callable[..., Any]) -> Binary:
    signed = dtype_of(op.results[0].type)
    other = unsigned(signed)
    return lambda a, b: function(a.view(other), b.view(other)).view(signed)


@pure(upstream.MinUIOp, upstream.MaxUIOp)
def unsigned_extremum(op: Operation) -> Binary:
    """Compare the operands as unsigned numbers."""
    return _as_unsigned(op, np.minimum if isinstance(op, upstream.MinUIOp) else np.maximum)


def _towards_zero(a: Array, b: Array) -> Array:
    return (a - np.fmod(a, b)) // b


def _rounded_up(a: Array, b: Array) -> Array:
    return np.floor_divide(a, b) + (np.remainder(a, b) != 0)


_DIVISIONS: Functions = {
    upstream.DivSIOp: _towards_zero,
    upstream.DivUIOp: np.floor_divide,
    # Has the sign of the dividend.
    upstream.RemSIOp: np.fmod,
    upstream.RemUIOp: np.remainder,
    upstream.FloorDivSIOp: np.floor_divide,
    upstream.CeilDivSIOp: _rounded_up,
    upstream.CeilDivUIOp: _rounded_up,
}


@pure(*_DIVISIONS)
def divide(op: Operation) -> Binary:
    """Has all bits set where the divisor is 0: the hardware does not trap, and promises no value.

    Elements of a tensor are often computed where a mask hides them, also by scalar code that runs for each of them; so
    it is reported for scalars only.
    """
    is_scalar, function = as_tensor(op.results[0].type) is None, _DIVISIONS[type(op)]
    if op.name.endswith("ui"):
        function = _as_unsigned(op, function)

    def run(a: Array, b: Array) -> Array:
        # Most often it is a number, which numpy's function takes long to look at.
        if bool(b) if isinstance(b, np.generic) else np.all(b):
            return function(a, b)
        if is_scalar and np.ndim(b) == 0:
            report_warning(op, "integer division by zero: the result may be anything")
        one = b.dtype.type(1)
        return where(b == 0, ~b.dtype.type(0), function(a, where(b == 0, one, b)))

    return run


@pure(upstream.ShLIOp, upstream.ShRSIOp, upstream.ShRUIOp)
def shift(op: Operation) -> Binary:
    """Shift as PTX does, which by the width or more shifts all bits out ("shl", "shr"); LLVM promises nothing."""
    signed = dtype_of(op.results[0].type)
    other = unsigned(signed)
    if signed.kind == "b":
        if isinstance(op, upstream.ShRSIOp):
            return lambda a, b: a
        return lambda a, b: a & ~b
    width = signed.itemsize * 8

    def clamped(by: Any) -> Any:
        return np.minimum(by.view(other), other.type(width - 1))

    def outside(by: Any) -> Any:
        return by.view(other) >= width

    if isinstance(op, upstream.ShRSIOp):
        return lambda a, b: a >> clamped(b).view(signed)
    if isinstance(op, upstream.ShLIOp):
        return lambda a, b: where(outside(b), signed.type(0), a << clamped(b).view(signed))
    return lambda a, b: where(outside(b), other.type(0), a.view(other) >> clamped(b)).view(signed)


@pure(upstream.MulSIExtendedOp, upstream.MulUIExtendedOp)
def multiply_extended(op: Operation) -> Run:
    """The low and the high half of a product."""
    signed = dtype_of(op.results[0].type)
    is_signed = isinstance(op, upstream.MulSIExtendedOp)

    def run(a: Array, b: Array) -> tuple[Array, Array]:
        return a * b, elementwise.multiply_high(a, b, signed, is_signed=is_signed)

    return run


@pure(upstream.AddUIExtendedOp)
def add_extended(op: Operation) -> Run:
    """The sum, and whether it overflows as an unsigned number."""
    other = unsigned(dtype_of(op.results[0].type))

    def run(a: Array, b: Array) -> tuple[Array, Array]:
        total = a + b
        return total, total.view(other) < a.view(other)

    return run


_COMPARISONS: dict[str, Callable[..., Any]] = {
    "eq": np.equal, "ne": np.not_equal, "gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal,
}  # fmt: skip


@pure(arith.CmpiOp)
def compare_integers(op: arith.CmpiOp) -> Binary:
    """Signed or unsigned, as the predicate says."""
    name, dtype = op.predicate_name, dtype_of(op.lhs.type)
    function = _COMPARISONS[name[-2:]]
    if dtype.kind == "b" and name.startswith("s"):
        # As a signed number, the bit 1 is -1.
        return lambda a, b: function(b, a)
    if not name.startswith("u") or dtype.kind == "b":
        return function
    other = unsigned(dtype)
    return lambda a, b: function(a.view(other), b.view(other))


# Floats --------------------------------------------------------------------------------------------------------------


def rounded(op: Operation, function: Callable[..., Any]) -> Run:
    """`function` in the type of the result of `op`, or in f32 for what is narrower."""
    dtype = dtype_of(op.results[0].type)
    if not is_small_float(dtype):
        return function
    single = np.float32
    return lambda *values: function(*(value.astype(single) for value in values)).astype(dtype)


_FLOAT: Functions = {
    upstream.AddfOp: np.add,
    upstream.SubfOp: np.subtract,
    upstream.MulfOp: np.multiply,
    upstream.DivfOp: np.divide,
    upstream.NegfOp: np.negative,
    arith.RemFOp: np.fmod,
    upstream.MinimumfOp: elementwise.minimum,
    upstream.MaximumfOp: elementwise.maximum,
    upstream.MinnumfOp: elementwise.minnum,
    upstream.MaxnumfOp: elementwise.maxnum,
}


@pure(*_FLOAT)
def floating(op: Operation) -> Run:
    """Run the operation as one numpy function."""
    return rounded(op, _FLOAT[type(op)])


@pure(arith.CmpfOp)
def compare_floats(op: arith.CmpfOp) -> Binary:
    """Ordered comparisons are false for NaN, unordered ones true."""
    name = op.predicate_name
    match name:
        case "false" | "true":
            return lambda a, b: np.full(np.shape(a), name == "true")[()]
        case "ord":
            return lambda a, b: ~(np.isnan(a) | np.isnan(b))
        case "uno":
            return lambda a, b: np.isnan(a) | np.isnan(b)
        case "one":
            return lambda a, b: (a < b) | (a > b)
        case "une":
            return lambda a, b: a != b
        case "ueq":
            return lambda a, b: ~((a < b) | (a > b))
        case _ if name[0] == "o":
            return _COMPARISONS[name[1:]]
        case _:
            function = _COMPARISONS[name[1:]]
            return lambda a, b: function(a, b) | np.isnan(a) | np.isnan(b)


@pure(arith.SelectOp, upstream.SelectOp)
def select(op: arith.SelectOp | upstream.SelectOp) -> Ternary:
    """Choose scalars, tensors by one condition, or tensors, and numbers of each thread, element by element."""
    if as_tensor(op.operands[0].type) is None:
        return lambda condition, a, b: where(condition, a, b) if differs(condition) else a if condition else b
    return lambda condition, a, b: where(condition, a, b)
