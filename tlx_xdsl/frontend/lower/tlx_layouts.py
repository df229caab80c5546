"""Lowering of layout requests of `tlx`."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from tlx_xdsl.dialects import tlx as dialect, ttg
from tlx_xdsl.language.core import dtype

from ..builder import unit
from ..calls import Call, lowers
from ..types import ir_type
from ..values import BufferedTensor, Tensor, Value
from .tlx_access import in_layout, released, required
from .tlx_common import in_tensor_memory, one_buffer
from .tlx_encodings import (
    dummy_register,
    python_layout,
    register_type,
    shared_encoding,
    tmem_encoding,
)


def _block(call: Call, parameter: str) -> Tensor:
    value = call.of(parameter, Tensor, "a block or a buffer")
    if not value.shape or not isinstance(value.dtype, dtype):
        call.expected(parameter, "a block of numbers or a buffer")
    return value


@lowers("tlx.require_layout")
def _require_layout(call: Call) -> Value:
    if not call.given("layout"):
        call.expected("layout", "a layout")
    pin = call.flag("pin")
    call.flag("late_address_compute")
    if not isinstance(call.args["x"], BufferedTensor):
        return in_layout(call, _block(call, "x"), pin=pin)
    buffer = one_buffer(call, "x")
    encoding = _buffer_encoding(call, "layout", buffer)
    type_ = ttg.memdesc_type(buffer.ssa.type).with_encoding(encoding)
    return replace(buffer, ssa=call.emit(dialect.RequireLayoutOp, buffer, results=[type_], pin=unit(pin)).result)


def _buffer_encoding(call: Call, parameter: str, buffer: BufferedTensor) -> Attribute:
    """The layout that the argument names for `buffer`."""
    encoding = tmem_encoding if in_tensor_memory(buffer) else shared_encoding
    return encoding(call, parameter, buffer.shape, buffer.dtype)


def _requested(value: Tensor) -> SSAValue | None:
    """The block in the layout that the user requested for `value`; None when `value` is not itself a request."""
    owner = value.ssa.owner
    return owner.src if isinstance(owner, dialect.ReleaseLayoutOp) and owner.pin is not None else None


@lowers("tlx.release_layout")
def _release_layout(call: Call) -> Value:
    value = _block(call, "x")
    call.flag("relaxed")
    assert isinstance(value.dtype, dtype)
    requested = _requested(value)
    if requested is None:
        # Values computed from a request keep its layout; a layout of the compiler's choice ends that.
        encoding = dummy_register(value.shape, value.dtype, tmem_compatible=False)
        requested = required(call, value, TensorType(ir_type(value.dtype), value.shape, encoding), pin=False)
    return released(call, requested, value.dtype, value.shape, pin=False)


def _with_layout(call: Call, parameter: str) -> SSAValue:
    """The block or buffer whose layout is meant."""
    value = call.args[parameter]
    if isinstance(value, BufferedTensor):
        return one_buffer(call, parameter).ssa
    block = _block(call, parameter)
    requested = _requested(block)
    return block.ssa if requested is None else requested


@lowers("tlx.dump_layout")
def _dump_layout(call: Call) -> None:
    call.emit(dialect.DumpLayoutOp, _with_layout(call, "x"))


@lowers("tlx.assert_same_layout")
def _assert_same_layout(call: Call) -> None:
    value, source = call.args["lhs"], _with_layout(call, "lhs")
    if isinstance(call.args["rhs"], Tensor | BufferedTensor):
        call.emit(dialect.AssertSameLayoutOp, source, _with_layout(call, "rhs"))
        return
    asked = python_layout(call, "rhs")
    if asked is None:
        call.expected("rhs", "a block, a buffer or a layout")
    if isinstance(value, BufferedTensor):
        expected = _buffer_encoding(call, "rhs", value)
    else:
        block = _block(call, "lhs")
        assert isinstance(block.dtype, dtype)
        expected = register_type(call, asked, block.shape, block.dtype).encoding
    call.emit(dialect.AssertSameLayoutExpectedOp, source, expected=expected)
