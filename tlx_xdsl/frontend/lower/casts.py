"""Conversions of element types."""

from __future__ import annotations

from tlx_xdsl.frontend import semantic
from tlx_xdsl.frontend.calls import Call, lowers
from tlx_xdsl.frontend.conversions import ROUNDINGS
from tlx_xdsl.frontend.values import Tensor, Value
from tlx_xdsl.language.core import block_type, dtype, pointer_type


def _target(call: Call) -> dtype | pointer_type:
    target = call.python("dtype", "an element type")
    if isinstance(target, block_type):
        target = target.scalar
    if not isinstance(target, dtype | pointer_type):
        call.expected("dtype", "an element type")
    return target


@lowers("tl.cast")
def _cast(call: Call) -> Value:
    return _converted(call, call.tensor("input"))


@lowers("tl.to")
def _to(call: Call) -> Value:
    return _converted(call, call.tensor("self"))


def _converted(call: Call, value: Tensor) -> Value:
    target = _target(call)
    rounding = call.choice("fp_downcast_rounding", ROUNDINGS) if call.given("fp_downcast_rounding") else None
    if call.flag("bitcast"):
        return semantic.bitcast(call.builder, value, target)
    return semantic.cast(call.builder, value, target, rounding)
