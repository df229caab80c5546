"""Arithmetic on elements."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, math
from xdsl.irdl import IRDLOperation

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.tt import enums
from tlx_xdsl.language.core import PropagateNan, dtype, float32, int1

from .. import fp8e4b15, semantic
from ..calls import Call, Handler, lowers
from ..elementwise import FUNCTIONS, Function
from ..values import Constexpr, Tensor, Value

# --- operators as functions -----------------------------------------------------------------------------------------


def _operator(symbol: str) -> Handler:
    def handle(call: Call) -> Value:
        # Triton checks for overflow in debug mode, which has no effect on the result.
        call.flag("sanitize_overflow")
        return semantic.arithmetic(call.builder, symbol, call.args["x"], call.args["y"])

    return handle


for _name, _symbol in (("add", "+"), ("sub", "-"), ("mul", "*")):
    lowers(f"tl.{_name}")(_operator(_symbol))


def _propagate_nan(call: Call) -> bool:
    return call.enum("propagate_nan", PropagateNan) is PropagateNan.ALL


@lowers("tl.minimum")
def _minimum(call: Call) -> Value:
    x, y = call.args["x"], call.args["y"]
    return semantic.arithmetic(call.builder, "min", x, y, propagate_nan=_propagate_nan(call))


@lowers("tl.maximum")
def _maximum(call: Call) -> Value:
    x, y = call.args["x"], call.args["y"]
    return semantic.arithmetic(call.builder, "max", x, y, propagate_nan=_propagate_nan(call))


@lowers("tl.clamp")
def _clamp(call: Call) -> Value:
    nan = _propagate_nan(call)
    x, low, high = semantic.promote_all(call.builder, call.args["x"], call.args["min"], call.args["max"])
    if isinstance(x.dtype, dtype) and x.dtype.is_int():
        above = semantic.arithmetic(call.builder, "max", x, low)
        return semantic.arithmetic(call.builder, "min", above, high)
    mode = enums.PropagateNan.ALL if nan else enums.PropagateNan.NONE
    return call.builder.tensor(tt.ClampFOp, x.dtype, x.shape, x, low, high, propagateNan=mode)


@lowers("tl.where")
def _where(call: Call) -> Value:
    condition = call.args["condition"]
    chosen = semantic.where(call.builder, condition, call.args["x"], call.args["y"])
    if isinstance(condition, Tensor) and condition.dtype != int1:
        call.visitor.warn(chosen, f"tl.where with a non-boolean condition is deprecated, found {condition.describe()}")
    return chosen


@lowers("tl.cdiv")
def _cdiv(call: Call) -> Value:
    x, div = call.args["x"], call.args["div"]
    builder = call.builder
    above = semantic.binary(builder, "+", x, semantic.binary(builder, "-", div, Constexpr(1)))
    return semantic.binary(builder, "//", above, div)


def _logical(symbol: str) -> Handler:
    def handle(call: Call) -> Value:
        conditions = [semantic.as_condition(call.builder, call.args[name]) for name in ("self", "other")]
        return semantic.arithmetic(call.builder, symbol, *conditions)

    return handle


lowers("tl.logical_and")(_logical("&"))
lowers("tl.logical_or")(_logical("|"))

# --- functions ------------------------------------------------------------------------------------------------------


def _check_operand(call: Call, parameter: str, allowed: Sequence[dtype]) -> None:
    value = call.tensor(parameter)
    if value.dtype not in allowed:
        call.fail(parameter, f"'{parameter}' must be {' or '.join(map(str, allowed))}, found {value.describe()}")


def _made(call: Call, op: type[IRDLOperation], *operands: Tensor) -> Tensor:
    """An operation whose result is like its operands."""
    return call.builder.tensor(op, operands[0].dtype, operands[0].shape, *operands)


def _function(function: Function) -> Handler:
    def handle(call: Call) -> Value:
        for name, value in call.args.items():
            if len(call.args) == 1 or not semantic.is_number(value):
                _check_operand(call, name, function.elements)
        return _made(call, function.op, *semantic.promote_all(call.builder, *call.args.values()))

    return handle


for _name, _row in FUNCTIONS.items():
    lowers(f"tl.{_name}")(_function(_row))


@lowers("tl.abs")
def _abs(call: Call) -> Value:
    x = call.tensor("x")
    if not isinstance(x.dtype, dtype):
        call.expected("x", "an integer or a float")
    if x.dtype.is_fp8e4b15():
        return fp8e4b15.absolute(call.builder, x)
    if x.dtype.is_floating():
        return _made(call, math.AbsFOp, x)
    return _made(call, math.AbsIOp, x) if x.dtype.is_int_signed() else x


@lowers("tl.fdiv")
def _fdiv(call: Call) -> Value:
    exact, fast = call.flag("ieee_rounding"), call.flag("approx")
    if exact and fast:
        call.fail("approx", "a division is rounded exactly or approximate, found both")
    x, y = semantic.promote_all(call.builder, call.args["x"], call.args["y"], division=True)
    if not isinstance(x.dtype, dtype) or not x.dtype.is_floating():
        call.fail("x", f"fdiv takes floats, found integers: {x.describe()}")
    if fast and x.dtype != float32:
        call.fail("x", f"an approximate division takes float32, found {x.describe()}")
    if not exact and not fast:
        return _made(call, arith.DivfOp, x, y)
    return _made(call, tt.PreciseDivFOp if exact else tt.ApproxDivFOp, x, y)


@lowers("tl.fma")
def _fma(call: Call) -> Value:
    x, y, z = semantic.promote_all(call.builder, call.args["x"], call.args["y"], call.args["z"])
    if not isinstance(x.dtype, dtype) or not x.dtype.is_floating():
        call.fail("x", f"fma takes floats, found {x.describe()}")
    return _made(call, math.FmaOp, x, y, z)
