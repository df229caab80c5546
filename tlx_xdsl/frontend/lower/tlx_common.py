"""Helpers of the handlers of `tlx`: readers of buffers and barriers, and the GPUs that have an operation."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar, cast

from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import SSAValue

from tlx_xdsl.dialects import tlx, tt, ttg, ttng
from tlx_xdsl.dialects.base import layout_attr, layout_of, like
from tlx_xdsl.errors import InputError
from tlx_xdsl.language.core import int32
from tlx_xdsl.layouts.buffer_views import reshaped_buffer_layout
from tlx_xdsl.layouts.encodings import Ints, SharedLayout
from tlx_xdsl.targets import Feature, target_of

from .. import semantic
from ..attributes import view
from ..calls import Call
from ..values import BufferedTensor, Constexpr, MBarriers, Tensor, TensorDescriptor, Value
from . import memory

SMEM = ttg.SharedMemorySpaceAttr()
TMEM = ttng.TensorMemorySpaceAttr()


def number(value: int) -> IntegerAttr:
    """A 32-bit attribute."""
    return IntegerAttr(value, i32)


# --- targets --------------------------------------------------------------------------------------------------------


def is_blackwell(call: Call) -> bool:
    """Say whether the target has tensor memory and tcgen05."""
    return target_of(call.visitor.capability).has(Feature.TCGEN05)


# --- readers --------------------------------------------------------------------------------------------------------


def in_tensor_memory(buffer: BufferedTensor) -> bool:
    """Say whether a buffer is in tensor memory."""
    return isinstance(ttg.memdesc_type(buffer.ssa.type).memory_space, ttng.TensorMemorySpaceAttr)


ArrayT = TypeVar("ArrayT", BufferedTensor, MBarriers)


def _only(call: Call, array: ArrayT) -> ArrayT:
    """The element of an array of one, which may stand for it as in Meta's TLX; any other value as it is."""
    return cast(ArrayT, view(call.visitor, call.node, array, Constexpr(0))) if array.num == 1 else array


def one_buffer(call: Call, parameter: str) -> BufferedTensor:
    """The argument, which must be one buffer, or an array of one."""
    buffer = _only(call, call.of(parameter, BufferedTensor, "a buffer"))
    if buffer.num:
        call.fail(parameter, f"'{parameter}' must be one buffer, such as buf[i], found {buffer.describe()}")
    return buffer


def shared_buffer(call: Call, parameter: str) -> BufferedTensor:
    """The argument, which must be one buffer in shared memory."""
    buffer = one_buffer(call, parameter)
    if in_tensor_memory(buffer):
        call.fail(parameter, f"'{parameter}' must be in shared memory, found {buffer.describe()} in tensor memory")
    return buffer


def tensor_memory_buffer(call: Call, parameter: str) -> BufferedTensor:
    """The argument, which must be one buffer in tensor memory."""
    buffer = one_buffer(call, parameter)
    if not in_tensor_memory(buffer):
        call.fail(parameter, f"'{parameter}' must be in tensor memory, found {buffer.describe()} in shared memory")
    return buffer


def is_remote(barrier: MBarriers) -> bool:
    """Say whether a barrier is another CTA's."""
    return isinstance(ttg.memdesc_type(barrier.ssa.type).memory_space, tlx.SharedClusterMemoryAttr)


def as_barrier(call: Call, parameter: str, value: Value, *, remote: bool = False) -> MBarriers:
    """`value`, which belongs to `parameter` and must be one mbarrier, or an array of one.

    It must be this CTA's, unless `remote` allows others.
    """
    if not isinstance(value, MBarriers):
        call.fail(parameter, f"'{parameter}' must be an mbarrier, found {value.describe()}")
    value = _only(call, value)
    if value.num:
        call.fail(parameter, f"'{parameter}' must be one mbarrier, such as bars[i], found {value.describe()}")
    if not remote and is_remote(value):
        call.fail(parameter, f"'{parameter}' must be an mbarrier of this CTA, found a remote view")
    return value


def one_barrier(call: Call, parameter: str = "bar", *, remote: bool = False) -> MBarriers:
    """The argument, which must be one mbarrier."""
    return as_barrier(call, parameter, call.args[parameter], remote=remote)


def barriers(call: Call, parameter: str) -> list[MBarriers]:
    """The argument, which must be a tuple of mbarriers."""
    items = call.items(parameter, "a list of mbarriers")
    return [as_barrier(call, parameter, item) for item in items]


def block_of(call: Call, parameter: str) -> tuple[TensorDescriptor, BufferedTensor]:
    """The descriptor `desc` and the buffer of a copy, which must hold the same block.

    Where the block has more dimensions, of size 1 before those of the buffer, that is a view of the buffer.
    """
    descriptor = call.of("desc", TensorDescriptor, "a tensor descriptor")
    buffer = shared_buffer(call, parameter)
    block = descriptor.block_shape
    more = len(block) - len(buffer.shape)
    if descriptor.dtype != buffer.dtype or block != ((1,) * more + buffer.shape):
        call.fail(parameter, f"'{parameter}' must match {descriptor.describe()}, found {buffer.describe()}")
    return descriptor, reshaped(call, parameter, buffer, block) if more > 0 else buffer


def reshaped(call: Call, parameter: str, buffer: BufferedTensor, shape: Ints) -> BufferedTensor:
    """The view of a whole buffer with other dimensions, whose elements in row-major order are the same."""
    source = ttg.memdesc_type(buffer.ssa.type)
    if source.shape != source.alloc_shape:
        call.fail(parameter, "a part of a buffer can't be reshaped: reshape the buffer, and take a part of that")
    layout = layout_of(source.encoding)
    assert isinstance(layout, SharedLayout)
    try:
        layout = reshaped_buffer_layout(layout, source.shape, source.element_bits, shape)
    except InputError as error:
        call.fail(parameter, str(error))
    result = source.with_shape(shape, like(source.encoding, layout_attr(layout)))
    return replace(buffer, ssa=call.emit(ttg.MemDescReshapeOp, buffer, results=[result]).results[0], shape=shape)


def elements_like(call: Call, parameter: str, buffer: BufferedTensor) -> Tensor:
    """The argument, which must be a block with the shape and the element type of `buffer`."""
    source = call.tensor(parameter)
    if (source.dtype, source.shape) != (buffer.dtype, buffer.shape):
        hint = f" (.to({buffer.dtype!r}) converts it)" if source.shape == buffer.shape else ""
        call.fail(parameter, f"'{parameter}' must be a block like {buffer.describe()}, found {source.describe()}{hint}")
    return source


def cache_policy(call: Call) -> tt.CachePolicyAttr | None:
    """The hints of `cache_modifier`, those of a load, and `eviction_policy`; None without any."""
    return memory.cache_policy(call, memory.LOAD_MODIFIERS)


# --- small pieces of IR ---------------------------------------------------------------------------------------------


def cta_rank(call: Call) -> Tensor:
    """The rank of this CTA in its cluster."""
    return call.emit_tensor(tlx.ClusterCTARankOp, int32, ())


def is_even_cta(call: Call) -> Tensor:
    """Say whether this CTA is the one of a pair that issues for both."""
    odd = semantic.binary(call.builder, "%", cta_rank(call), Constexpr(2))
    return semantic.compare(call.builder, "==", odd, Constexpr(0))


def remote_view(call: Call, local: SSAValue, rank: Tensor) -> SSAValue:
    """The view of the copy of a buffer or barrier in the CTA `rank`."""
    type_ = tlx.MapToRemoteOp.remote_type(ttg.memdesc_type(local.type))
    return call.emit(tlx.MapToRemoteOp, local, rank, results=[type_]).result
