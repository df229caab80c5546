"""Tensor descriptors that kernels make, and what is read and written through descriptors.

Block pointers, which descriptors replace, are refused here.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.tt import DescriptorReduceKind, PaddingOption
from tlx_xdsl.language.core import (
    bfloat16,
    dtype,
    float16,
    float32,
    int16,
    int32,
    int64,
    pointer_type,
    uint32,
    uint64,
)

from .. import semantic
from ..calls import Call, Handler, lowers, lowers_method
from ..types import descriptor_ir_type
from ..values import Constexpr, Tensor, TensorDescriptor, Value

MAX_RANK = 5
"""Dimensions that a descriptor may have (CUDA driver API, `cuTensorMapEncodeTiled`)."""
MIN_ROW_BYTES = 16
"""Bytes that a block's last dimension must have."""
STRIDE_BYTES = 16
"""Bytes that strides but the last one are a multiple of (PTX ISA, "Tensor"; CUDA driver API, `globalStrides`)."""
MIN_GATHERED_ROWS = 8
"""Rows that a gather or a scatter takes at least."""

_PADDING = {"zero": PaddingOption.PAD_ZERO, "nan": PaddingOption.PAD_NAN}


# --- making descriptors ---------------------------------------------------------------------------------------------


@lowers("tl.make_tensor_descriptor")
def _make_tensor_descriptor(call: Call) -> Value:
    base, element = call.pointer("base", "a scalar pointer", scalar=True)
    block_shape = _block_shape(call, element)
    sizes = call.items("shape", "a tuple of sizes")
    strides = call.items("strides", "a tuple of strides")
    for parameter, items in (("block_shape", block_shape), ("strides", strides)):
        if len(items) != len(sizes):
            call.fail(parameter, f"'{parameter}' must have {len(sizes)} items, as 'shape' has, found {len(items)}")
    padding = call.choice("padding_option", _PADDING)
    if padding is PaddingOption.PAD_NAN and not element.is_floating():
        call.fail("padding_option", f"elements of type {element} have no NaN to pad with, expected 'zero'")
    if not _is_one(strides[-1]):
        call.fail("strides", f"the last stride must be the constexpr 1, found {strides[-1].describe()}")
    check_row_distances(call, strides, element)
    shape = tuple(_scalar(call, "shape", size, int32) for size in sizes)
    steps = tuple(_scalar(call, "strides", stride, int64) for stride in strides)
    return TensorDescriptor(
        call.builder.emit(
            tt.MakeTensorDescOp, base, shape, steps, results=[descriptor_ir_type(element, block_shape)], padding=padding
        ).result,
        element,
        block_shape,
        shape,
        steps,
    )


def check_row_distances(call: Call, strides: Sequence[Value], element: dtype) -> None:
    """Refuse rows, and what is above them, at distances that TMA can't address, where they are known."""
    for stride in strides[:-1]:
        known = stride.value if isinstance(stride, Constexpr) else None
        width = element.primitive_bitwidth // 8
        if isinstance(known, int) and known * width % STRIDE_BYTES:
            call.fail(
                "strides",
                f"Tensor descriptor strides must be {STRIDE_BYTES}-byte aligned, found {known} elements of type "
                f"{element}, {known * width} bytes",
            )


def _block_shape(call: Call, element: dtype) -> tuple[int, ...]:
    block = call.shape("block_shape")
    if not 1 <= len(block) <= MAX_RANK:
        call.fail("block_shape", f"a descriptor has 1 to {MAX_RANK} dimensions, found {len(block)}")
    width = element.primitive_bitwidth // 8
    if block[-1] * width < MIN_ROW_BYTES:
        call.fail(
            "block_shape",
            f"Descriptor block shape must have at least {MIN_ROW_BYTES} bytes in the last dimension, "
            f"found {block[-1]} elements of type {element}, {block[-1] * width} bytes",
        )
    return block


def _is_one(value: Value) -> bool:
    return isinstance(value, Constexpr) and value.value == 1


def _scalar(call: Call, parameter: str, value: Value, element: dtype) -> Tensor:
    """A size or a stride: an integer of any width, in the width that descriptors have."""
    if isinstance(value, Constexpr) and isinstance(value.value, int):
        low, high = -(1 << (element.primitive_bitwidth - 1)), 1 << (element.primitive_bitwidth - 1)
        if not low <= value.value < high:
            call.fail(parameter, f"'{parameter}' must fit into an {element}, found {value.value}")
    return call.as_scalar(parameter, value, element)


# --- methods --------------------------------------------------------------------------------------------------------


def _descriptor(call: Call) -> TensorDescriptor:
    """The receiver of a method, or the first argument of a function."""
    return call.of(next(iter(call.args)), TensorDescriptor, "a tensor descriptor")


def _offsets(call: Call, descriptor: TensorDescriptor) -> list[SSAValue]:
    """The argument `offsets`: an int32 scalar for each dimension, in elements."""
    rank = len(descriptor.block_shape)
    items = call.items("offsets", f"a tuple of {rank} offsets")
    if len(items) != rank:
        call.fail("offsets", f"'offsets' must have {rank} items, one for each dimension, found {len(items)}")
    return [_offset(call, "offsets", item) for item in items]


def _offset(call: Call, parameter: str, value: Value) -> SSAValue:
    if isinstance(value, Tensor) and not value.shape and value.dtype in (int64, uint64):
        call.fail(parameter, f"an offset must be an int32, found {value.describe()}: convert it with .to(tl.int32)")
    return _scalar(call, parameter, value, int32).ssa


def _stored_block(call: Call, descriptor: TensorDescriptor, shape: tuple[int, ...], *, convert: bool) -> Tensor:
    """The argument `value`: a block of `shape`, converted to the descriptor's element type if that is allowed."""
    element = descriptor.dtype
    what = f"a block of type {element}[{', '.join(map(str, shape))}]"
    value = call.block("value", what)
    if value.shape != shape or isinstance(value.dtype, pointer_type):
        call.expected("value", what)
    if value.dtype == element:
        return value
    if not convert:
        call.expected("value", what)
    return semantic.cast(call.builder, value, element)


@lowers("tl.load_tensor_descriptor")
@lowers_method(TensorDescriptor, "load", "self", "offsets")
def _load(call: Call) -> Value:
    descriptor = _descriptor(call)
    return call.builder.tensor(
        tt.DescriptorLoadOp, descriptor.dtype, descriptor.block_shape, descriptor, _offsets(call, descriptor)
    )


@lowers_method(TensorDescriptor, "store", "self", "offsets", "value", defaults={"store_reduce": ""})
def _store_or_reduce(call: Call) -> None:
    # `store_reduce` is Meta's spelling of the methods `atomic_add` and so on.
    how = call.text("store_reduce") if call.given("store_reduce") else ""
    if how:
        call.choice("store_reduce", {name: name for name in _REDUCTIONS})
        _reduction(how, convert=True)(call)
    else:
        _store(call)


@lowers("tl.store_tensor_descriptor")
def _store(call: Call) -> None:
    descriptor = _descriptor(call)
    value = _stored_block(call, descriptor, descriptor.block_shape, convert=True)
    call.builder.emit(tt.DescriptorStoreOp, descriptor, value, _offsets(call, descriptor))


_REDUCTIONS: dict[str, tuple[DescriptorReduceKind, tuple[dtype, ...]]] = {
    "add": (DescriptorReduceKind.ADD, (uint32, int32, uint64, float16, float32, bfloat16)),
    "min": (DescriptorReduceKind.MIN, (uint32, int32, uint64, int64, float16, bfloat16)),
    "max": (DescriptorReduceKind.MAX, (uint32, int32, uint64, int64, float16, bfloat16)),
    "and": (DescriptorReduceKind.AND, (uint32, int32, uint64, int64)),
    "or": (DescriptorReduceKind.OR, (uint32, int32, uint64, int64)),
    "xor": (DescriptorReduceKind.XOR, (uint32, int32, uint64, int64)),
}
"""Reducing stores and the element types that they exist for (PTX ISA, "cp.reduce.async.bulk.tensor")."""


def _reduction(name: str, *, convert: bool = False) -> Handler:
    kind, types = _REDUCTIONS[name]

    def lower(call: Call) -> None:
        descriptor = _descriptor(call)
        if descriptor.dtype not in types:
            expected = ", ".join(map(str, types))
            call.fail(None, f"the elements must be one of {expected}, found {descriptor.describe()}")
        value = _stored_block(call, descriptor, descriptor.block_shape, convert=convert)
        call.builder.emit(tt.DescriptorReduceOp, descriptor, value, _offsets(call, descriptor), kind=kind)

    return lower


for _name in _REDUCTIONS:
    lowers_method(TensorDescriptor, f"atomic_{_name}", "self", "offsets", "value")(_reduction(_name))


def rows_of(call: Call, descriptor: TensorDescriptor) -> tuple[Tensor, SSAValue]:
    """The arguments of a gather or a scatter: a block of row numbers, and the first column."""
    block, element = descriptor.block_shape, descriptor.dtype
    if len(block) != 2 or block[0] != 1:
        call.fail(None, f"the block must have one row, found {descriptor.describe()}")
    min_columns = 32 // element.primitive_bitwidth * 8
    if block[1] < min_columns:
        call.fail(None, f"rows of type {element} must have at least {min_columns} columns, found {block[1]}")
    rows = call.block("x_offsets", "a 1-D block of int32 or int16 row numbers")
    if len(rows.shape) != 1 or rows.dtype not in (int16, int32):
        call.expected("x_offsets", "a 1-D block of int32 or int16 row numbers")
    if rows.shape[0] < MIN_GATHERED_ROWS:
        call.fail("x_offsets", f"there must be at least {MIN_GATHERED_ROWS} rows, found {rows.shape[0]}")
    return rows, _offset(call, "y_offset", call.args["y_offset"])


@lowers_method(TensorDescriptor, "gather", "self", "x_offsets", "y_offset")
def _gather(call: Call) -> Value:
    descriptor = _descriptor(call)
    rows, column = rows_of(call, descriptor)
    shape = (rows.shape[0], descriptor.block_shape[1])
    return call.builder.tensor(tt.DescriptorGatherOp, descriptor.dtype, shape, descriptor, rows, column)


@lowers_method(TensorDescriptor, "scatter", "self", "value", "x_offsets", "y_offset")
def _scatter(call: Call) -> None:
    descriptor = _descriptor(call)
    rows, column = rows_of(call, descriptor)
    value = _stored_block(call, descriptor, (rows.shape[0], descriptor.block_shape[1]), convert=False)
    call.builder.emit(tt.DescriptorScatterOp, descriptor, rows, column, value)
