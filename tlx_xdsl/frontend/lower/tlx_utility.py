"""Lowering of the utilities of `tlx`, of what exists inside of tasks, and of the names for AMD GPUs only."""

from __future__ import annotations

import ast

from xdsl.dialects.arith import IndexCastOp
from xdsl.dialects.builtin import i32
from xdsl.dialects.gpu import DimensionEnum

from tlx_xdsl.dialects import gpu, tlx as dialect
from tlx_xdsl.element_types import BY_NAME
from tlx_xdsl.language.core import (
    bfloat16,
    dtype,
    float8e4nv,
    float8e5,
    float16,
    float32,
    int1,
    int32,
    int64,
    pointer_type,
    uint32,
)
from tlx_xdsl.targets import Feature

from .. import semantic
from ..calls import Call, lowers
from ..values import BufferedTensor, Constexpr, Tensor, TensorDescriptor, TupleValue, Value

AXES = (DimensionEnum.X, DimensionEnum.Y, DimensionEnum.Z)


@lowers("tlx.thread_id")
def _thread_id(call: Call) -> Value:
    axis = call.integer("axis", minimum=0)
    if axis >= len(AXES):
        call.fail("axis", f"a block of threads has axes 0, 1 and 2, found {axis}")
    index = call.checked(gpu.ThreadIdOp(AXES[axis])).result
    return Tensor(call.checked(IndexCastOp(index, i32)).result, int32)


@lowers("tlx.clock64")
def _clock64(call: Call) -> Value:
    return call.emit_tensor(dialect.Clock64Op, int64, ())


@lowers("tlx.stoch_round")
def _stoch_round(call: Call) -> Value:
    call.require(Feature.STOCHASTIC_ROUNDING)
    source, target = call.of("src", Tensor, "a block of tl.float32"), call.dtype("dst_ty")
    if source.dtype != float32 or not source.shape:
        call.expected("src", "a block of tl.float32")
    bits = call.of("rand_bits", Tensor, "a block of 32-bit integers")
    if bits.dtype not in (int32, uint32):
        call.expected("rand_bits", "a block of 32-bit integers")
    if target not in (float16, bfloat16, float8e4nv, float8e5):
        call.expected("dst_ty", "tl.float16, tl.bfloat16, tl.float8e4nv or tl.float8e5")
    return call.emit_tensor(dialect.StochRoundOp, target, source.shape, source, bits)


@lowers("tlx.vote_ballot_sync")
def _vote_ballot_sync(call: Call) -> Value:
    mask, pred = call.scalar("mask", int32), call.args["pred"]
    if not isinstance(pred, Tensor) or not pred.shape:
        pred = call.scalar("pred", int1)
    if pred.dtype != int1:
        call.expected("pred", "an int1 or a block of int1")
    return call.emit_tensor(dialect.VoteBallotOp, int32, pred.shape, mask, pred)


@lowers("tlx.dtype_of")
def _dtype_of(call: Call) -> Value:
    value = call.args["v"]
    if not isinstance(value, Tensor | BufferedTensor | TensorDescriptor):
        call.expected("v", "a tensor, a buffer or a descriptor")
    element = value.dtype
    return Constexpr(element.element_ty if isinstance(element, pointer_type) else element)


@lowers("tlx.size_of")
def _size_of(call: Call) -> Value:
    element: dtype = call.dtype()
    return Constexpr(max(1, element.primitive_bitwidth // 8))


@lowers("tlx.get_fp8_format_name")
def _get_fp8_format_name(call: Call) -> Value:
    element = call.dtype()
    if element not in (float8e4nv, float8e5):
        call.fail("dtype", f"only supports tl.float8e5 and tl.float8e4nv, found {call.args['dtype'].describe()}")
    return Constexpr(BY_NAME[element.name].scaled)


@lowers("tlx.get_bufidx_phase")
def _get_bufidx_phase(call: Call) -> Value:
    count, buffers = call.args["accum_cnt"], Constexpr(call.integer("NUM_BUFFERS", minimum=1))
    if isinstance(count, Tensor) and (count.shape or isinstance(count.dtype, pointer_type) or not count.dtype.is_int()):
        call.expected("accum_cnt", "a scalar integer")
    index = semantic.binary(call.builder, "%", count, buffers)
    round_ = semantic.binary(call.builder, "//", count, buffers)
    return TupleValue((index, semantic.binary(call.builder, "&", round_, Constexpr(1))))


@lowers("tlx.assume_uniform")
def _assume_uniform(call: Call) -> Value:
    return call.args["value"]


@lowers("tlx.amd_only")
def _amd_only(call: Call) -> Value:
    function = call.node.func if isinstance(call.node, ast.Call) else None
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "this")
    raise call.visitor.error(call.node, f"tlx.{name} exists for AMD GPUs only")


# --- tasks (`frontend/tasks.py`) --------------------------------------------------------------------------------------


@lowers("tlx.async_task_replica_id")
def _async_task_replica_id(call: Call) -> Value:
    if not call.visitor.replica_ids:
        call.fail(None, "there is no replica outside of a task")
    return Constexpr(call.visitor.replica_ids[-1])


@lowers("tlx.async_tasks")
@lowers("tlx.async_task")
def _only_in_a_with(call: Call) -> Value:
    call.fail(None, f"stands in a `with` statement: `with {call.name}(...):`")
