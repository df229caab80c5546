"""What the functions of `tlx` for barriers, TMA, wgmma and tasks become."""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, i32, i64

from tlx_xdsl.dialects import ttg, ttng
from tlx_xdsl.dialects.ttg.attrs import layout_attr
from tlx_xdsl.dialects.ttg.types import MemDescType
from tlx_xdsl.frontend import semantic
from tlx_xdsl.frontend.attributes import view
from tlx_xdsl.frontend.calls import Call, lowers
from tlx_xdsl.frontend.lower.tlx_storage import SMEM, one_buffer
from tlx_xdsl.frontend.types import ir_type
from tlx_xdsl.frontend.values import (
    BufferedTensor,
    Constexpr,
    MBarriers,
    Tensor,
    TensorDescriptor,
    Value,
)
from tlx_xdsl.language.core import dtype, float32, int1, int32
from tlx_xdsl.layouts.shared import unswizzled_layout

# --- barriers -------------------------------------------------------------------------------------------------------


@lowers("tlx.alloc_barriers")
def _alloc_barriers(call: Call) -> Value:
    num = call.integer("num_barriers", minimum=1)
    count = call.integer("arrive_count", minimum=1)
    # Stock Triton wants a rank-2 array, whose first dimension may be any number.
    type_ = MemDescType.get((num, 1), i64, layout_attr(unswizzled_layout(1)), SMEM)
    barriers = MBarriers(call.builder.insert(ttg.LocalAllocOp(operands=[None], result_types=[type_])).result, num)
    for index in range(num):
        one = view(call.visitor, call.node, barriers, Constexpr(index))
        assert isinstance(one, MBarriers)
        call.builder.insert(ttng.InitBarrierOp(operands=[one.ssa], properties={"count": IntegerAttr(count, i32)}))
    return barriers


def _barrier(call: Call, parameter: str = "bar") -> MBarriers:
    barrier = call.of(parameter, MBarriers, "an mbarrier")
    if barrier.num:
        call.fail(parameter, f"'{parameter}' must be one mbarrier, such as bars[i], found {barrier.describe()}")
    return barrier


@lowers("tlx.barrier_expect_bytes")
def _barrier_expect_bytes(call: Call) -> Value | None:
    barrier, size, pred = _barrier(call), call.integer("size", minimum=0), call.predicate()
    call.builder.insert(
        ttng.BarrierExpectOp(operands=[barrier.ssa, pred.ssa], properties={"size": IntegerAttr(size, i32)})
    )
    return None


@lowers("tlx.barrier_wait")
def _barrier_wait(call: Call) -> Value | None:
    barrier, pred = _barrier(call), call.predicate()
    phase = call.args["phase"]
    if isinstance(phase, Tensor) and phase.dtype == int1:
        phase = semantic.cast(call.builder, phase, int32)
    parity = call.as_scalar("phase", phase, int32)
    call.builder.insert(ttng.WaitBarrierOp(operands=[barrier.ssa, parity.ssa, pred.ssa, []]))
    return None


@lowers("tlx.barrier_arrive")
def _barrier_arrive(call: Call) -> Value | None:
    barrier, count = _barrier(call), call.integer("arrive_count", minimum=1)
    pred = call.scalar("pred", int1).ssa if call.given("pred") else None
    call.builder.insert(
        ttng.ArriveBarrierOp(operands=[barrier.ssa, pred], properties={"count": IntegerAttr(count, i32)})
    )
    return None


@lowers("tlx.fence_async_shared")
def _fence_async_shared(call: Call) -> Value | None:
    call.builder.insert(ttng.FenceAsyncSharedOp(properties={"bCluster": BoolAttr.from_bool(False)}))
    return None


# --- TMA ------------------------------------------------------------------------------------------------------------


def _block(call: Call, parameter: str) -> tuple[TensorDescriptor, BufferedTensor]:
    """The descriptor and the buffer of a copy, which must hold the same block."""
    descriptor = call.of("desc", TensorDescriptor, "a tensor descriptor")
    buffer = one_buffer(call, parameter)
    if (descriptor.dtype, descriptor.block_shape) != (buffer.dtype, buffer.shape):
        call.fail(parameter, f"'{parameter}' must match {descriptor.describe()}, found {buffer.describe()}")
    return descriptor, buffer


@lowers("tlx.async_descriptor_load")
def _async_descriptor_load(call: Call) -> Value | None:
    descriptor, buffer = _block(call, "result")
    coordinates = call.coordinates("offsets", len(descriptor.block_shape))
    barrier, pred = _barrier(call, "barrier"), call.predicate()
    call.builder.insert(
        ttng.AsyncTMACopyGlobalToLocalOp(
            operands=[descriptor.ssa, [c.ssa for c in coordinates], barrier.ssa, buffer.ssa, pred.ssa]
        )
    )
    return None


@lowers("tlx.async_descriptor_store")
def _async_descriptor_store(call: Call) -> Value | None:
    descriptor, buffer = _block(call, "source")
    coordinates = call.coordinates("offsets", len(descriptor.block_shape))
    call.builder.insert(
        ttng.AsyncTMACopyLocalToGlobalOp(operands=[descriptor.ssa, [c.ssa for c in coordinates], buffer.ssa])
    )
    return None


@lowers("tlx.async_descriptor_store_wait")
def _async_descriptor_store_wait(call: Call) -> Value | None:
    pendings = call.integer("pendings", minimum=0)
    call.builder.insert(ttng.AsyncTMAStoreWaitOp(properties={"pendings": IntegerAttr(pendings, i32)}))
    return None


# --- wgmma ----------------------------------------------------------------------------------------------------------


@lowers("tlx.async_dot")
def _async_dot(call: Call) -> Value:
    a, b = call.args["A"], one_buffer(call, "B")
    if not isinstance(a, Tensor):
        a = one_buffer(call, "A")
    if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[1] != b.shape[0] or a.dtype != b.dtype:
        call.fail(None, f"expected A of M x K and B of K x N of one type, found {a.describe()} and {b.describe()}")
    shape = (a.shape[0], b.shape[1])
    accumulator = _accumulator(call, shape)
    use_acc = call.scalar("use_acc", int1) if call.given("use_acc") else None
    if use_acc is None and not call.given("acc"):
        use_acc = call.as_scalar("use_acc", Constexpr(False), int1)
    op = ttng.WarpGroupDotOp(
        operands=[a.ssa, b.ssa, accumulator.ssa, None if use_acc is None else use_acc.ssa],
        properties={"inputPrecision": IntegerAttr(0, i32), "isAsync": BoolAttr.from_bool(True)},
        result_types=[ir_type(float32, shape)],
    )
    return Tensor(call.builder.insert(op).d, float32, shape)


def _accumulator(call: Call, shape: tuple[int, int]) -> Tensor:
    if not call.given("acc"):
        return semantic.full(call.builder, shape, Constexpr(0), float32)
    accumulator = call.of("acc", Tensor, "a block")
    if (accumulator.dtype, accumulator.shape) != (float32, shape):
        call.fail(
            "acc",
            f"'acc' must be a block of type fp32[{shape[0]}, {shape[1]}], found {accumulator.describe()}",
        )
    return accumulator


@lowers("tlx.async_dot_wait")
def _async_dot_wait(call: Call) -> Value:
    pendings = call.integer("pendings", minimum=0)
    value = call.of("inp", Tensor, "the result of an async_dot")
    op = ttng.WarpGroupDotWaitOp(
        operands=[[value.ssa]],
        properties={"pendings": IntegerAttr(pendings, i32)},
        result_types=[[value.ssa.type]],
    )
    return Tensor(call.builder.insert(op).results[0], value.dtype, value.shape)


# --- tasks and types ------------------------------------------------------------------------------------------------


@lowers("tlx.async_task_replica_id")
def _async_task_replica_id(call: Call) -> Value:
    if not call.visitor.replica_ids:
        call.fail(None, "there is no replica outside of a task")
    return Constexpr(call.visitor.replica_ids[-1])


@lowers("tlx.dtype_of")
def _dtype_of(call: Call) -> Value:
    value = call.args["v"]
    if not isinstance(value, Tensor | BufferedTensor | TensorDescriptor):
        call.expected("v", "a tensor, a buffer or a descriptor")
    return Constexpr(value.dtype)


@lowers("tlx.size_of")
def _size_of(call: Call) -> Value:
    element: dtype = call.dtype()
    return Constexpr(max(1, element.primitive_bitwidth // 8))
