"""Printing and checking, on the device and at compile time, and the barrier for debugging."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import arith

from tlx_xdsl.dialects import tt, ttg
from tlx_xdsl.language.core import constexpr, dtype, int1

from .. import semantic
from ..calls import Call, lowers
from ..types import ir_type
from ..values import Constexpr, Tensor, TupleValue, Value

# --- on the device --------------------------------------------------------------------------------------------------


@lowers("tl.debug_barrier")
def _debug_barrier(call: Call) -> None:
    call.builder.emit(ttg.BarrierOp, addrSpace=ttg.AddrSpace.All.value)


@lowers("tl.device_print")
def _device_print(call: Call) -> None:
    prefix, in_hex = call.text("prefix"), call.flag("hex")
    if not prefix.isascii():
        call.fail("prefix", f"'prefix' must be ASCII text, found {prefix!r}")
    values = [semantic.to_tensor(call.builder, value) for value in call.items("args", "numbers and blocks")]
    signed = [int(isinstance(value.dtype, dtype) and _is_signed(value.dtype)) for value in values]
    call.builder.emit(
        tt.PrintOp,
        values,
        prefix=_spaced(prefix, before_values=bool(values)),
        hex=in_hex,
        isSigned=signed,
    )


def _is_signed(element: dtype) -> bool:
    return element.is_int_signed() and element != int1


def _spaced(prefix: str, *, before_values: bool) -> str:
    """`prefix` as Triton prints it: a colon and a blank before values, a blank before three letters or more."""
    if before_values and not prefix.endswith(": "):
        prefix = prefix.removesuffix(" ").removesuffix(":") + ": "
    return " " + prefix if len(prefix) > 2 and not prefix.startswith(" ") else prefix


@lowers("tl.device_assert")
def _device_assert(call: Call) -> None:
    message = call.text("msg")
    condition = call.condition("cond")
    mask = call.condition("mask") if call.given("mask") else None
    if call.visitor.unit.debug:
        assert_where(call, condition, mask, message)


def assert_where(call: Call, condition: Tensor, mask: Tensor | None, message: str) -> None:
    """Check on the device that `condition` holds wherever `mask` does."""
    builder = call.builder
    if mask is not None:
        true = builder.constant(True, ir_type(int1, mask.shape))
        unmasked = builder.value(arith.XOrIOp(mask.ssa, true), int1, mask.shape)
        shape = semantic.common_shape(condition.shape, mask.shape)
        lhs, rhs = (semantic.broadcast_to(builder, value, shape) for value in (condition, unmasked))
        condition = builder.value(arith.OrIOp(lhs.ssa, rhs.ssa), int1, shape)
    builder.emit(tt.AssertOp, condition, message=message)


@lowers("tl.expect_zero")
def _expect_zero(call: Call) -> Value:
    value, mask = call.tensor("x"), call.condition("mask")
    if call.visitor.unit.debug:
        is_zero = semantic.compare(call.builder, "==", value, Constexpr(0))
        assert_where(call, is_zero, mask, "expect_zero: a value is not zero where the mask is true")
    return value


# --- at compile time ------------------------------------------------------------------------------------------------


@lowers("tl.static_assert")
def _static_assert(call: Call) -> None:
    condition = call.python("cond", "known at compile time")
    if not condition:
        message = call.python("msg", "a constexpr string")
        call.fail(None, f"the condition is false: {message}" if message else "the condition is false")


@lowers("tl.static_print")
def _static_print(call: Call) -> None:
    options: dict[str, Any] = {name: call.python(name, "known at compile time") for name in ("sep", "end", "file")}
    for name in ("sep", "end"):
        if options[name] is not None and not isinstance(options[name], str):
            call.expected(name, "a constexpr string")
    if options["file"] is not None and not callable(getattr(options["file"], "write", None)):
        call.expected("file", "None or an open file")
    texts = [_shown(value) for value in call.items("values", "values")]
    print(*texts, **options, flush=call.flag("flush"))


def _shown(value: Value) -> str:
    """A value as text: what is known of it at compile time."""
    match value:
        case Constexpr():
            known = value.value
            return str(known.value if isinstance(known, constexpr) else known)
        case Tensor():
            return f"{value.dtype}[{', '.join(map(str, value.shape))}]"
        case TupleValue():
            return f"({', '.join(map(_shown, value.items))})"
        case _:
            return value.describe()
