"""Operands of tcgen05: which `tt.dot` it can do, and where the operands lie that threads compute."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import Float8E4M3FNType, Float8E5M2Type, Float32Type
from xdsl.ir import Attribute, SSAValue

from tlx_xdsl.dialects import tt, ttng
from tlx_xdsl.dialects.base import element_bits, layout_attr, scalar_type, shape_of_tensor
from tlx_xdsl.dialects.ttg import ROWS, MemDescType, SharedMemorySpaceAttr
from tlx_xdsl.layouts.encodings import TensorMemoryLayout
from tlx_xdsl.layouts.shared import default_nvmma_layout

from ..products.dot_operands import InPlace, in_place

BITS_OF_K = 256
"""Bits along K that one tcgen05.mma covers (PTX ISA, "tcgen05.mma", matrix shapes)."""
TRANSPOSABLE = (8, 16)
"""Bits of elements whose rows may run along K or not (PTX ISA, "tcgen05.mma", instruction descriptor)."""
MAX_COLUMNS = 256
"""Most columns of one block of an accumulator."""

WARP_GROUP = 4
"""Warps that can load all lanes of tensor memory (PTX ISA, "tcgen05.ld", access restrictions)."""


def why_no_tcgen05(dot: tt.DotOp) -> str | None:
    """Return the reason why no tcgen05.mma does this product, or None where one does."""
    a, b, d = (scalar_type(value.type) for value in (dot.a, dot.b, dot.d))
    shape = shape_of_tensor(dot.d.type)
    if len(shape) != 2:
        return "it multiplies stacks of matrices"
    both_fp8 = all(isinstance(each, Float8E4M3FNType | Float8E5M2Type) for each in (a, b))
    if a != b and not both_fp8:
        return f"its operands have different types, {a} and {b}"
    if not isinstance(d, Float32Type) or d not in ttng.accumulators_of(a):
        return f"the tensor cores do not add products of {a} in {d}"
    if isinstance(a, Float32Type) and dot.input_precision != tt.InputPrecision.TF32.attr:
        return "its precision is more than tf32"
    rows, columns = shape
    if rows not in (ROWS // 2, ROWS):
        return f"it has {rows} rows, an accumulator in tensor memory 64 or 128"
    if columns % 16 or columns > 2 * MAX_COLUMNS:
        return f"it has {columns} columns, an accumulator in tensor memory a multiple of 16 up to 512"
    depth = shape_of_tensor(dot.a.type)[1]
    if depth * element_bits(a) % BITS_OF_K:
        return f"its K of {depth} is no multiple of {BITS_OF_K // element_bits(a)}"
    return None


@dataclass(frozen=True)
class Operands:
    """The operands of a product: buffers of rings where they lie, or None for one that the task stores."""

    a: InPlace | None
    b: InPlace | None

    @property
    def are_stored(self) -> bool:
        """True if the task itself writes one to memory."""
        return self.a is None or self.b is None


def operands_of(dot: tt.DotOp) -> Operands:
    """Find the buffers that hold the operands of a product."""
    return Operands(
        in_place(dot.a, rows_run_along_k=True, transposable=TRANSPOSABLE),
        in_place(dot.b, rows_run_along_k=False, transposable=TRANSPOSABLE),
    )


def accumulator_type(block: Attribute, copies: int) -> MemDescType:
    """Return the type of buffers in tensor memory for an accumulator."""
    shape = shape_of_tensor(block)
    layout = layout_attr(TensorMemoryLayout(shape[0], min(shape[1], MAX_COLUMNS), 1))
    return MemDescType.get((copies, *shape), scalar_type(block), layout, ttng.TensorMemorySpaceAttr(), mutable=True)


def fits_tensor_memory(a: SSAValue) -> bool:
    """Return whether tcgen05 takes a block as A from tensor memory, in full lanes and 16 bits an element."""
    shape = shape_of_tensor(a.type)
    return shape[0] == ROWS and shape[1] % 16 == 0 and element_bits(scalar_type(a.type)) == 16


def operand_type(block: Attribute, copies: int, *, in_tensor_memory: bool, is_b: bool = False) -> MemDescType:
    """Return the type of buffers for an operand that threads store."""
    shape, element = shape_of_tensor(block), scalar_type(block)
    if in_tensor_memory:
        layout = layout_attr(TensorMemoryLayout(shape[0], min(shape[1], MAX_COLUMNS), 1))
        return MemDescType.get((copies, *shape), element, layout, ttng.TensorMemorySpaceAttr(), mutable=True)
    bits = element_bits(element)
    layout = layout_attr(default_nvmma_layout(shape, bits, transposed=is_b and bits not in TRANSPOSABLE))
    return MemDescType.get((copies, *shape), element, layout, SharedMemorySpaceAttr(), mutable=True)
