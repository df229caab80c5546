"""The network on chip: transfers between the memories of cores and the banks of tensors, semaphores, coordinates.

TT-Metalium, "Data Movement APIs". Addresses, sizes (bytes) and coordinates have 32 bits.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, i32
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from .base import (
    L1AddressPointerType,
    NocAddressType,
    NocOp,
    SemaphoreType,
    TensorAccessorArgsType,
    TensorAccessorType,
    TTKernelOp,
)


@irdl_op_definition
class GetCommonArgValOp(TTKernelOp):
    """A runtime argument that all cores have in common, such as the address of a tensor."""

    name = "ttkernel.get_common_arg_val"

    index = prop_def(IntegerAttr)
    result = result_def(i32)


@irdl_op_definition
class TensorAccessorArgsOp(NocOp):
    """The arguments that describe a tensor.

    `cta` is the number of the first compile-time one, `crta` that of the first common one at run time.
    """

    name = "ttkernel.TensorAccessorArgs"

    cta = prop_def(IntegerAttr)
    crta = prop_def(IntegerAttr)
    result = result_def(TensorAccessorArgsType)


@irdl_op_definition
class TensorAccessorOp(NocOp):
    """The pages of a tensor at an address.

    `layout` is a `#ttl.layout`, `shape` counts elements, `element` is a tile or the type of the elements of rows.
    """

    name = "ttkernel.TensorAccessor"

    args = operand_def(TensorAccessorArgsType)
    base = operand_def(i32)
    page_bytes = operand_def(i32)
    layout = prop_def(Attribute)
    shape = prop_def(ArrayAttr[IntegerAttr])
    element = prop_def(Attribute)
    result = result_def(TensorAccessorType)


class _PageOp(NocOp):
    """Base of transfers between a page of a tensor, from an offset on, and the core's memory."""

    id = operand_def(i32)
    accessor = operand_def(TensorAccessorType)
    l1_address = operand_def(i32)
    offset = operand_def(i32)


class _PieceOp(NocOp):
    """Base of transfers between a piece of a tensor and the core's memory."""

    id = operand_def(i32)
    accessor = operand_def(TensorAccessorType)
    l1_address = operand_def(i32)


@irdl_op_definition
class NocAsyncReadTileOp(_PieceOp):
    """Begin to read a tile of a tensor to the core's memory."""

    name = "ttkernel.noc_async_read_tile"


@irdl_op_definition
class NocAsyncReadPageOp(_PageOp):
    """Begin to read a page of a tensor to the core's memory, from an offset in it (bytes) on."""

    name = "ttkernel.noc_async_read_page"


@irdl_op_definition
class NocAsyncReadShardOp(_PieceOp):
    """Begin to read a shard of a tensor to the core's memory."""

    name = "ttkernel.noc_async_read_shard"


@irdl_op_definition
class NocAsyncWriteTileOp(_PieceOp):
    """Begin to write a tile of a tensor from the core's memory."""

    name = "ttkernel.noc_async_write_tile"


@irdl_op_definition
class NocAsyncWritePageOp(_PageOp):
    """Begin to write a page of a tensor from the core's memory, from an offset in it (bytes) on."""

    name = "ttkernel.noc_async_write_page"


@irdl_op_definition
class NocAsyncWriteShardOp(_PieceOp):
    """Begin to write a shard of a tensor from the core's memory."""

    name = "ttkernel.noc_async_write_shard"


@irdl_op_definition
class NocAsyncWriteOp(NocOp):
    """Begin to write to the memory of another core."""

    name = "ttkernel.noc_async_write"

    source = operand_def(i32)
    destination = operand_def(NocAddressType)
    bytes = operand_def(i32)


class _MulticastOp(NocOp):
    """Base of writes to a rectangle of cores."""

    source = operand_def(i32)
    destination = operand_def(NocAddressType)
    bytes = operand_def(i32)
    num_dests = operand_def(i32)


@irdl_op_definition
class NocAsyncWriteMulticastOp(_MulticastOp):
    """Begin to write to the memories of a rectangle of cores, without the own one."""

    name = "ttkernel.noc_async_write_multicast"


@irdl_op_definition
class NocAsyncWriteMulticastLoopbackSrcOp(_MulticastOp):
    """Begin to write to the memories of a rectangle of cores, the own one among them."""

    name = "ttkernel.noc_async_write_multicast_loopback_src"


@irdl_op_definition
class NocAsyncReadBarrierOp(NocOp):
    """Wait until all reads that this processor has begun are complete."""

    name = "ttkernel.noc_async_read_barrier"


@irdl_op_definition
class NocAsyncWriteBarrierOp(NocOp):
    """Wait until all writes that this processor has begun are complete."""

    name = "ttkernel.noc_async_write_barrier"


@irdl_op_definition
class NocAsyncAtomicBarrierOp(NocOp):
    """Wait until all increments that this processor has begun are complete."""

    name = "ttkernel.noc_async_atomic_barrier"


@irdl_op_definition
class GetNocAddrOp(NocOp):
    """An address in the memory of a core."""

    name = "ttkernel.get_noc_addr"

    x = operand_def(i32)
    y = operand_def(i32)
    l1_address = operand_def(i32)
    result = result_def(NocAddressType)


@irdl_op_definition
class GetNocMulticastAddrOp(NocOp):
    """An address in the memories of a rectangle of cores, corners included.

    The network goes from `start` to `end`: on NOC_1 the start is the corner with the larger coordinates.
    """

    name = "ttkernel.get_noc_multicast_addr"

    x_start = operand_def(i32)
    y_start = operand_def(i32)
    x_end = operand_def(i32)
    y_end = operand_def(i32)
    l1_address = operand_def(i32)
    result = result_def(NocAddressType)


@irdl_op_definition
class GetSemaphoreOp(NocOp):
    """A semaphore by its number."""

    name = "ttkernel.get_semaphore"

    index = prop_def(IntegerAttr)
    result = result_def(SemaphoreType)


@irdl_op_definition
class SemaphoreAddressOp(NocOp):
    """The address of a semaphore, which is the same on all cores."""

    name = "ttkernel.semaphore_address"

    semaphore = operand_def(SemaphoreType)
    result = result_def(i32)


@irdl_op_definition
class CastToL1PtrOp(NocOp):
    """The core's own word of a semaphore."""

    name = "ttkernel.cast_to_l1_ptr"

    semaphore = operand_def(SemaphoreType)
    result = result_def(L1AddressPointerType)


@irdl_op_definition
class SemaphoreValueOp(NocOp):
    """The value of the own word."""

    name = "ttkernel.semaphore_value"

    pointer = operand_def(L1AddressPointerType)
    result = result_def(i32)


class _OwnWordOp(NocOp):
    """Base of operations on the own word and a number."""

    pointer = operand_def(L1AddressPointerType)
    value = operand_def(i32)


@irdl_op_definition
class NocSemaphoreSetOp(_OwnWordOp):
    """Set the own word."""

    name = "ttkernel.noc_semaphore_set"


@irdl_op_definition
class NocSemaphoreWaitOp(_OwnWordOp):
    """Wait until the own word has a value."""

    name = "ttkernel.noc_semaphore_wait"


@irdl_op_definition
class NocSemaphoreWaitMinOp(_OwnWordOp):
    """Wait until the own word has at least a value."""

    name = "ttkernel.noc_semaphore_wait_min"


@irdl_op_definition
class NocSemaphoreIncOp(NocOp):
    """Add to the word of a core."""

    name = "ttkernel.noc_semaphore_inc"

    address = operand_def(NocAddressType)
    value = operand_def(i32)


@irdl_op_definition
class NocSemaphoreSetRemoteOp(NocOp):
    """Copy the own word to another core's."""

    name = "ttkernel.noc_semaphore_set_remote"

    semaphore = operand_def(SemaphoreType)
    address = operand_def(NocAddressType)


class _CopiedWordsOp(NocOp):
    """Base of copies of the own word to a rectangle of cores."""

    semaphore = operand_def(SemaphoreType)
    address = operand_def(NocAddressType)
    num_dests = operand_def(i32)


@irdl_op_definition
class NocSemaphoreSetMulticastOp(_CopiedWordsOp):
    """Copy the own word to those of a rectangle of cores, without the own one."""

    name = "ttkernel.noc_semaphore_set_multicast"


@irdl_op_definition
class NocSemaphoreSetMulticastLoopbackSrcOp(_CopiedWordsOp):
    """Copy the own word to those of a rectangle of cores, the own one among them."""

    name = "ttkernel.noc_semaphore_set_multicast_loopback_src"


@irdl_op_definition
class MyXOp(NocOp):
    """The core's x on the network on chip."""

    name = "ttkernel.my_x"
    NON_NEGATIVE: ClassVar = True

    result = result_def(i32)


@irdl_op_definition
class MyYOp(NocOp):
    """The core's y on the network on chip."""

    name = "ttkernel.my_y"
    NON_NEGATIVE: ClassVar = True

    result = result_def(i32)


@irdl_op_definition
class VirtualXOp(NocOp):
    """The x on the network on chip of the cores in a column of the grid, from the device's table."""

    name = "ttkernel.virtual_x"
    NON_NEGATIVE: ClassVar = True

    logical = operand_def(i32)
    result = result_def(i32)


@irdl_op_definition
class MyLogicalXOp(TTKernelOp):
    """The core's x in the grid of the kernel."""

    name = "ttkernel.my_logical_x"
    NON_NEGATIVE: ClassVar = True

    result = result_def(i32)


@irdl_op_definition
class MyLogicalYOp(TTKernelOp):
    """The core's y in the grid of the kernel."""

    name = "ttkernel.my_logical_y"
    NON_NEGATIVE: ClassVar = True

    result = result_def(i32)
