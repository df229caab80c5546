"""Lowering of TMA copies and tensor descriptors of `tlx`."""

from __future__ import annotations

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IntegerAttr, UnitAttr
from xdsl.ir import SSAValue

from tlx_xdsl.dialects import tlx as dialect, tt, ttg, ttng
from tlx_xdsl.dialects.tt import DescriptorReduceKind, PaddingOption, PointerType, TensorDescType
from tlx_xdsl.language.core import dtype, int8, int32, int64, pointer_type
from tlx_xdsl.targets import TMA_UNIT, Feature

from .. import semantic
from ..attributes import DESCRIPTOR_BYTES
from ..builder import unit
from ..calls import Call, lowers
from ..types import ir_type
from ..values import BufferedTensor, Constexpr, DescriptorRoom, Tensor, TensorDescriptor, Value
from .descriptors import check_row_distances, rows_of
from .tlx_common import block_of, cache_policy, one_barrier, shared_buffer

MAX_CTAS = 16
"""Most CTAs of a cluster, with the non-portable sizes (CUDA C++ Programming Guide, "Thread Block Clusters")."""
INNER_BYTES = 16
"""Least size of the innermost dimension of a block (CUDA C++ Programming Guide, "Tensor Memory Access")."""


def _corner(call: Call, descriptor: TensorDescriptor) -> list[Tensor]:
    """The argument `offsets` of a copy; refuses a constant that TMA cannot begin at."""
    corner = call.coordinates("offsets", len(descriptor.block_shape))
    owner, step = corner[-1].ssa.owner, 8 * TMA_UNIT // descriptor.dtype.primitive_bitwidth
    if isinstance(owner, ConstantOp) and isinstance(owner.value, IntegerAttr) and owner.value.value.data % step:
        found = owner.value.value.data
        call.fail("offsets", f"the last offset must be a multiple of {step} elements ({TMA_UNIT} bytes), found {found}")
    return corner


@lowers("tlx.async_descriptor_load")
def _async_descriptor_load(call: Call) -> None:
    descriptor, buffer = block_of(call, "result")
    coordinates = _corner(call, descriptor)
    two_ctas = call.flag("two_ctas")
    barrier, pred = one_barrier(call, "barrier", remote=two_ctas), call.predicate()
    targets = call.items("multicast_targets", "a list of CTA ranks")
    policy = cache_policy(call)
    operands = (barrier, buffer, pred)
    if not targets and not two_ctas:
        call.emit(ttng.AsyncTMACopyGlobalToLocalOp, descriptor, coordinates, [], *operands, cachePolicy=policy)
        return
    if two_ctas:
        call.require(Feature.CTA_PAIRS, what="with 'two_ctas'")
    mask = _multicast_mask(call, targets) if targets else None
    op = dialect.AsyncTMALoadOp
    call.emit(op, descriptor, coordinates, *operands, mask, cachePolicy=policy, two_ctas=unit(two_ctas))


def _multicast_mask(call: Call, targets: tuple[Value, ...]) -> Tensor:
    """The int32 with a bit for each rank."""
    known = 0
    computed: list[Value] = []
    for target in targets:
        if not isinstance(target, Constexpr):
            rank = call.as_scalar("multicast_targets", target, int32)
            computed.append(semantic.binary(call.builder, "<<", Constexpr(1), rank))
            continue
        rank = target.value
        if isinstance(rank, bool) or not isinstance(rank, int) or not 0 <= rank < MAX_CTAS:
            call.fail("multicast_targets", f"a CTA's rank is 0 to {MAX_CTAS - 1}, found {target.describe()}")
        known |= 1 << rank
    mask = call.as_scalar("multicast_targets", Constexpr(known), int32) if known or not computed else computed.pop()
    for bit in computed:
        mask = semantic.binary(call.builder, "|", mask, bit)
    return call.as_scalar("multicast_targets", mask, int32)


REDUCTIONS: dict[str, DescriptorReduceKind | None] = {
    "": None,
    "add": DescriptorReduceKind.ADD,
    "min": DescriptorReduceKind.MIN,
    "max": DescriptorReduceKind.MAX,
    "and": DescriptorReduceKind.AND,
    "or": DescriptorReduceKind.OR,
    "xor": DescriptorReduceKind.XOR,
}


@lowers("tlx.async_descriptor_store")
def _async_descriptor_store(call: Call) -> None:
    descriptor, buffer = block_of(call, "source")
    coordinates = _corner(call, descriptor)
    reduction = call.choice("store_reduce", REDUCTIONS)
    policy = cache_policy(call)
    if reduction is not None:
        # Stock Triton's reduction has no cache policy; a hint may be dropped.
        call.emit(ttng.AsyncTMAReduceOp, descriptor, coordinates, buffer, kind=reduction)
        return
    call.emit(ttng.AsyncTMACopyLocalToGlobalOp, descriptor, coordinates, buffer, cachePolicy=policy)


def _gathered(call: Call, parameter: str) -> tuple[TensorDescriptor, Tensor, SSAValue, BufferedTensor]:
    """The descriptor of a gather or a scatter, its row numbers, its first column, and its buffer."""
    descriptor, buffer = call.of("desc", TensorDescriptor, "a tensor descriptor"), shared_buffer(call, parameter)
    rows, column = rows_of(call, descriptor)
    wanted = (rows.shape[0], descriptor.block_shape[1])
    if (buffer.dtype, buffer.shape) != (descriptor.dtype, wanted):
        what = f"{descriptor.dtype}[{', '.join(map(str, wanted))}]"
        call.fail(parameter, f"'{parameter}' must be a buffer of type {what}, found {buffer.describe()}")
    return descriptor, semantic.cast(call.builder, rows, int32), column, buffer


@lowers("tlx.async_descriptor_gather")
def _async_descriptor_gather(call: Call) -> None:
    descriptor, rows, column, buffer = _gathered(call, "result")
    call.flag("multicast")
    barrier = one_barrier(call, "barrier")
    call.emit(ttng.AsyncTMAGatherOp, descriptor, rows, column, barrier, buffer, call.predicate())


@lowers("tlx.async_descriptor_scatter")
def _async_descriptor_scatter(call: Call) -> None:
    descriptor, rows, column, buffer = _gathered(call, "source")
    call.emit(ttng.AsyncTMAScatterOp, descriptor, rows, column, buffer)


@lowers("tlx.async_descriptor_store_wait")
def _async_descriptor_store_wait(call: Call) -> None:
    pendings = call.integer("pendings", minimum=0)
    call.emit(ttng.AsyncTMAStoreWaitOp, pendings=pendings, read_only=UnitAttr() if call.flag("read") else None)


@lowers("tlx.async_descriptor_prefetch_tensor")
def _async_descriptor_prefetch_tensor(call: Call) -> None:
    descriptor = call.of("desc", TensorDescriptor, "a tensor descriptor")
    coordinates = call.coordinates("offsets", len(descriptor.block_shape))
    policy = cache_policy(call)
    call.emit(dialect.AsyncTMAPrefetchOp, descriptor, coordinates, call.predicate(), cachePolicy=policy)


# --- descriptors ----------------------------------------------------------------------------------------------------


@lowers("tlx.allocate_tensor_descriptor")
def _allocate_tensor_descriptor(call: Call) -> Value:
    num = call.integer("num", minimum=1)
    return DescriptorRoom(
        call.emit(
            ttg.GlobalScratchAllocOp,
            results=[PointerType.get(ir_type(int8))],
            nbytes=num * DESCRIPTOR_BYTES,
            alignment=DESCRIPTOR_BYTES,
        ).result,
        num,
    )


def _descriptor_memory(call: Call) -> SSAValue:
    """The memory of one descriptor: an allocation for one, or a pointer to int8."""
    where = call.args["desc_ptr"]
    if isinstance(where, DescriptorRoom):
        if where.num > 1:
            call.fail("desc_ptr", f"'desc_ptr' must be the place of one descriptor, such as ptr[i], found {where.num}")
        return where.ssa
    if not isinstance(where, Tensor) or where.shape or where.dtype != pointer_type(int8):
        call.expected("desc_ptr", "room for a tensor descriptor (tlx.allocate_tensor_descriptor)")
    return where.ssa


@lowers("tlx.make_tensor_descriptor")
def _make_tensor_descriptor(call: Call) -> Value:
    base, element = call.pointer("base", scalar=True)
    block = call.shape("block_shape")
    rank = len(block)
    if block[-1] * element.primitive_bitwidth < 8 * INNER_BYTES:
        call.fail(
            "block_shape",
            f"the last dimension of a block has at least {INNER_BYTES} bytes, found {block[-1]} elements of {element}",
        )
    shape = call.coordinates("shape", rank)
    strides = _strides(call, rank, element)
    padding = call.choice("padding_option", {"zero": PaddingOption.PAD_ZERO, "nan": PaddingOption.PAD_NAN})
    if padding is PaddingOption.PAD_NAN and not element.is_floating():
        call.fail("padding_option", f"only a tensor of floats is padded with nan, found {element}")
    type_ = TensorDescType.get(block, ir_type(element))
    op, place = (
        (dialect.MakeTensorDescOp, [_descriptor_memory(call)]) if call.given("desc_ptr") else (tt.MakeTensorDescOp, [])
    )
    made = call.emit(op, *place, base, shape, strides, results=[type_], padding=padding).result
    return TensorDescriptor(made, element, block, tuple(shape), tuple(strides))


def _strides(call: Call, rank: int, element: dtype) -> list[Tensor]:
    items = call.items("strides", f"a tuple of {rank} strides")
    if len(items) != rank:
        call.expected("strides", f"a tuple of {rank} strides")
    last = items[-1]
    if isinstance(last, Constexpr) and last.value != 1:
        call.fail("strides", f"the last stride must be 1, found {last.value}")
    check_row_distances(call, items, element)
    return [call.as_scalar("strides", item, int64) for item in items]


@lowers("tlx.reinterpret_tensor_descriptor")
def _reinterpret_tensor_descriptor(call: Call) -> Value:
    block, element = call.shape("block_shape"), call.dtype()
    # The descriptor holds shape and strides of the tensor; the program does not know them.
    return TensorDescriptor(
        call.emit(
            ttng.ReinterpretTensorDescOp,
            _descriptor_memory(call),
            results=[TensorDescType.get(block, ir_type(element))],
        ).result,
        element,
        block,
        (),
        (),
    )
