"""Operands of products in the tensor cores: which `tt.dot` a wgmma can do, and buffers that it can read in place."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, Float8E4M3FNType, Float8E5M2Type, Float32Type
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tlx_xdsl.dialects import tt, ttg, ttng
from tlx_xdsl.dialects.base import (
    Kind,
    OperandAccess,
    Proxy,
    Space,
    accesses_of,
    chosen_layout,
    element_bits,
    layout_attr,
    like,
    num_warps_of,
    scalar_type,
    shape_of_tensor,
    view_of,
)
from tlx_xdsl.dialects.ttg import MemDescType, memdesc_type
from tlx_xdsl.errors import InputError
from tlx_xdsl.layouts.buffer_views import reshaped_buffer_layout, transposed_buffer_layout
from tlx_xdsl.layouts.distributed import wgmma_accumulator_layout
from tlx_xdsl.layouts.encodings import NvmmaSharedLayout
from tlx_xdsl.transforms.layout.needs import TRANSPOSABLE_BITS

ROWS_PER_WARP = 16
"""Rows of an accumulator that a warp holds (PTX ISA, "wgmma.mma_async", register fragments)."""
BITS_OF_K = 256
"""Bits along K that one wgmma covers (PTX ISA, "wgmma.mma_async", the shapes m64nNkK)."""


def why_no_wgmma(dot: tt.DotOp) -> str | None:
    """Return the reason why no wgmma does this product, or None where one does."""
    a, b, d = (scalar_type(value.type) for value in (dot.a, dot.b, dot.d))
    shape = shape_of_tensor(dot.d.type)
    warps = num_warps_of(dot)
    if len(shape) != 2:
        return "it multiplies stacks of matrices"
    both_fp8 = all(isinstance(each, Float8E4M3FNType | Float8E5M2Type) for each in (a, b))
    if a != b and not both_fp8:
        return f"its operands have different types, {a} and {b}"
    if d not in ttng.accumulators_of(a):
        return f"the tensor cores do not add products of {a} in {d}"
    if isinstance(a, Float32Type) and dot.input_precision != tt.InputPrecision.TF32.attr:
        return "its precision is more than tf32"
    if warps is None or shape[0] % (ROWS_PER_WARP * warps):
        return f"its {shape[0]} rows are not whole slabs of {ROWS_PER_WARP} for each of {warps or 'the'} warps"
    try:
        wgmma_accumulator_layout(shape, element_bits(a), warps)
    except InputError as error:
        return str(error)
    depth = shape_of_tensor(dot.a.type)[1]
    if depth * element_bits(a) % BITS_OF_K:
        return f"its K of {depth} is no multiple of {BITS_OF_K // element_bits(a)}"
    if both_fp8 and isinstance(d, Float32Type) and dot.max_num_imprecise_acc.value.data <= depth:
        return "its sums are moved to f32 on the way, where `tlx.async_dot` leaves them in the tensor cores"
    return None


@dataclass(frozen=True)
class InPlace:
    """A block that a product can read where it lies."""

    load: ttg.LocalLoadOp
    steps: tuple[tt.TransOp | tt.ReshapeOp, ...]
    """What the kernel does to the block before the product, first things first."""
    types: tuple[MemDescType, ...]
    """The type of the view after each step."""

    def view(self, before: Operation) -> SSAValue:
        """Insert the views of the buffer before an operation; return the last one."""
        value: SSAValue = self.load.src
        for step, type_ in zip(self.steps, self.types, strict=True):
            made: Operation
            if isinstance(step, tt.TransOp):
                made = ttg.MemDescTransOp.build(
                    operands=[value], properties={"order": step.order}, result_types=[type_]
                )
            else:
                made = ttg.MemDescReshapeOp.build(operands=[value], result_types=[type_])
            made.location = step.location
            made.results[0].name_hint = step.result.name_hint
            Rewriter.insert_op(made, InsertPoint.before(before))
            value = made.results[0]
        return value


def in_place(
    operand: SSAValue, *, rows_run_along_k: bool, transposable: Collection[int] = (TRANSPOSABLE_BITS,)
) -> InPlace | None:
    """Find the buffer that holds an operand as the tensor cores can read it; None where it must be in registers.

    `rows_run_along_k` is true of A, and false of B. Elements of `transposable` bits are read the other way, too.
    """
    steps: list[tt.TransOp | tt.ReshapeOp] = []
    value = operand
    while isinstance(value, OpResult) and isinstance(value.op, tt.TransOp | tt.ReshapeOp):
        if isinstance(value.op, tt.ReshapeOp) and value.op.allow_reorder is not None:
            return None
        steps.insert(0, value.op)
        value = value.op.operands[0]
    if not isinstance(value, OpResult) or not isinstance(value.op, ttg.LocalLoadOp) or value.op.token is not None:
        return None
    load = value.op
    if not _is_only_read(load):
        return None
    types = _types_of_views(memdesc_type(load.src.type), steps)
    if types is None:
        return None
    last = types[-1] if types else memdesc_type(load.src.type)
    layout = chosen_layout(last.encoding)
    if not isinstance(layout, NvmmaSharedLayout):
        return None
    if last.element_bits not in transposable and layout.transposed is rows_run_along_k:
        return None
    return InPlace(load, tuple(steps), types)


def _types_of_views(buffer: MemDescType, steps: Sequence[tt.TransOp | tt.ReshapeOp]) -> tuple[MemDescType, ...] | None:
    types: list[MemDescType] = []
    for step in steps:
        layout = chosen_layout(buffer.encoding)
        shape = shape_of_tensor(step.result.type)
        if not isinstance(layout, NvmmaSharedLayout) or buffer.shape != buffer.alloc_shape:
            return None
        try:
            if isinstance(step, tt.TransOp):
                layout = transposed_buffer_layout(layout, tuple(step.order.get_values()))
            else:
                layout = reshaped_buffer_layout(layout, buffer.shape, buffer.element_bits, shape)
        except InputError:
            return None
        buffer = buffer.with_shape(shape, like(buffer.encoding, layout_attr(layout)))
        types.append(buffer)
    return tuple(types)


def root_of(buffer: SSAValue) -> SSAValue:
    """Return the array, or the argument of the task, that a view is a part of."""
    while isinstance(buffer, OpResult) and view_of(buffer.op) is not None:
        buffer = buffer.op.operands[0]
    return buffer


def _is_only_read(load: ttg.LocalLoadOp) -> bool:
    """Return whether this task itself never writes the array of the load: what others write, barriers order."""
    pending = [root_of(load.src)]
    for value in pending:
        for use in value.uses:
            op = use.operation
            if view_of(op) is not None:
                pending.append(op.results[0])
            elif any(not access.kind & Kind.READ or access.kind & Kind.WRITE for access in _accesses(op, value)):
                return False
    return True


def _accesses(op: Operation, buffer: SSAValue) -> Sequence[OperandAccess]:
    """Return the accesses of an operation to a buffer; of an unknown operation, one that writes."""
    found = accesses_of(op)
    mine = [access for access in found or () if access.value is buffer]
    return mine or [OperandAccess("", buffer, Space.SHARED, Kind.WRITE, Proxy.GENERIC, None, False)]


def is_zero(value: SSAValue) -> bool:
    """Return whether a block is a constant of zeros."""
    if not isinstance(value, OpResult) or not isinstance(value.op, ConstantOp):
        return False
    attribute = value.op.value
    return isinstance(attribute, DenseIntOrFPElementsAttr) and not any(attribute.data.data)


def buffer_type(block: Attribute, copies: int, layout: Attribute) -> MemDescType:
    """Return the type of an array of `copies` buffers that each hold a block."""
    shape = shape_of_tensor(block)
    return MemDescType.get((copies, *shape), scalar_type(block), layout, ttg.SharedMemorySpaceAttr(), mutable=True)
