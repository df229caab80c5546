"""The instructions of a product of a pair of CTAs, one for each step along K (PTX ISA, "tcgen05.mma", `.cta_group::2`).

Each CTA has half of the rows of A and of the accumulator, and half of B's columns. Where blocks of elements have
scales, each CTA has those of its own rows of A, and those of all columns of B: its tensor core multiplies both halves
of B. Scales lie in tensor memory as words of four for each row (PTX ISA, "Scale factor layouts"): 32 rows of a word
take a column, and the next word follows the rows of this one.

| elements | `.kind` | scales of an instruction |
|---|---|---|
| f16, bf16 | `f16` | none |
| e4m3, e5m2 | `f8f6f4` | none |
| e4m3, e5m2 | `mxf8f6f4.block_scale.scale_vec::1X` | one, of 32 elements |
| e2m1 | `mxf4.block_scale.scale_vec::2X` | two, of 32 elements |
| e2m1, scales in e4m3 | `mxf4nvf4.block_scale.scale_vec::4X` | four, of 16 elements |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float8E4M3FNType, Float32Type
from xdsl.ir import Attribute, Operation, SSAValue

from tlx_xdsl.dialects import nvvm, tt, ttng
from tlx_xdsl.dialects.arith import CmpiOp
from tlx_xdsl.dialects.base import element_type_of, layout_of
from tlx_xdsl.dialects.ttg import memdesc_type
from tlx_xdsl.element_types import BY_FORMAT
from tlx_xdsl.errors import InputError
from tlx_xdsl.layouts.encodings import Ints, NvmmaSharedLayout
from tlx_xdsl.layouts.matrix_descriptors import (
    Operand,
    instruction_descriptor,
    operand_of,
    scaled_instruction_descriptor,
)
from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import insert_before

from .integers import Integers
from .shared_address import tensor_memory_address

ROWS = (64, 128)
"""Of the accumulator in each CTA: half of M (PTX ISA, "tcgen05.mma", shapes of `.cta_group::2`)."""
SCALED_ROWS = 128
"""Of the accumulator in each CTA where blocks are scaled: the scales of A are copied in blocks of as many rows."""
LEAST_SCALED_COLUMNS = 64
"""Fewer columns of B have no whole columns of scales for each word."""
SCALES_OF_WORD = 4
LANES = 32
"""Rows whose scales take one column."""
_START = 0x3FFF
"""The bits of a start in a descriptor, in units of 16 bytes."""
_BYTE_FLOATS = "f8f6f4"
"""`.kind` of 8-bit floats, whose codes those with scales share (PTX ISA, "Instruction descriptor")."""
_E2M1 = 1
"""The code of e2m1 in `.kind::mxf4` and `.kind::mxf4nvf4`."""


@dataclass(frozen=True)
class Instructions:
    """The instructions of a product."""

    a: Operand | None
    """None in tensor memory."""
    b: Operand
    kind: str
    """Of `.kind::`, with what says how blocks are scaled."""
    descriptors: Ints
    """For each step."""
    scales: tuple[SSAValue, ...] = ()
    """The addresses of A's and B's in tensor memory."""
    columns: tuple[tuple[int, ...], ...] = ()
    """From there to the scales of each step, for A and for B."""


def refuse(op: Operation, needs: str) -> NoReturn:
    """Refuse an operation of a pair.

    Raises CompilationError.
    """
    raise error_at(op, f"an MMA of a pair of CTAs can be compiled with {needs} only")


def instructions(op: ttng.TCGen5MMAOp | ttng.TCGen5MMAScaledOp) -> Instructions:
    """The instructions of a product; the addresses of scales are taken before it.

    Raises CompilationError for a product that has none, and for operands in a layout that no descriptor describes.
    """
    return _scaled(op) if isinstance(op, ttng.TCGen5MMAScaledOp) else _plain(op)


def _operands(op: ttng.TCGen5MMAOp | ttng.TCGen5MMAScaledOp) -> tuple[Operand | None, Operand]:
    """A, which is None in tensor memory, and B."""
    in_tensor_memory = isinstance(memdesc_type(op.a.type).memory_space, ttng.TensorMemorySpaceAttr)
    return None if in_tensor_memory else _operand(op, op.a, 1), _operand(op, op.b, 0)


def _operand(op: Operation, value: SSAValue, k_dim: int) -> Operand:
    type_ = memdesc_type(value.type)
    layout = layout_of(type_.encoding)
    if not isinstance(layout, NvmmaSharedLayout) or len(type_.shape) != 2:
        refuse(op, "operands in shared memory, in the layout of TMA")
    tile, shape = type_.alloc_shape[-2:], type_.shape
    try:
        return operand_of(layout, (tile[0], tile[1]), (shape[0], shape[1]), k_dim)
    except InputError as error:
        raise error_at(op, str(error)) from error


def _code(element: Attribute) -> tuple[str, int]:
    """`.kind`, and the type's code in the instruction descriptor; no kind for operands that pairs don't multiply."""
    found = element_type_of(element)
    code = None if found is None else found.tcgen05
    return code if code is not None and code[0] in ("f16", _BYTE_FLOATS) else ("", 0)


def _plain(op: ttng.TCGen5MMAOp) -> Instructions:
    left, right, d = (memdesc_type(value.type) for value in (op.a, op.b, op.d))
    if left.shape[0] not in ROWS or d.shape[0] != max(ROWS) or d.element_type != Float32Type():
        refuse(op, "64 or 128 rows of an f32 accumulator in each CTA")
    (kind, left_code), (other, right_code) = (_code(x.element_type) for x in (left, right))
    if not kind or other != kind or (kind == "f16" and left_code != right_code):
        refuse(op, "operands of f16, bf16 or 8-bit floats")
    a, b = _operands(op)
    m, n = 2 * left.shape[0], _columns(op, 2 * right.shape[1])
    one = instruction_descriptor(m, n, types=(left_code, right_code), f32_result=True, a=a, b=b)
    return Instructions(a, b, kind, (one,) * len(b.steps))


def _scaled(op: ttng.TCGen5MMAScaledOp) -> Instructions:
    left, right, d = (memdesc_type(value.type) for value in (op.a, op.b, op.d))
    n = _columns(op, 2 * right.shape[1])
    if (left.shape[0], d.shape, d.element_type) != (SCALED_ROWS, (SCALED_ROWS, n), Float32Type()):
        refuse(op, f"{SCALED_ROWS} rows of an f32 accumulator in each CTA, and half of its columns in B, with scales")
    if n < LEAST_SCALED_COLUMNS:
        refuse(op, f"at least {LEAST_SCALED_COLUMNS} columns with scales")
    a, b = _operands(op)
    kind, types, each = _kind(op, a, b)
    needed = each * len(b.steps)
    for name, value, rows in (("A", op.a_scale, SCALED_ROWS), ("B", op.b_scale, n)):
        scales = memdesc_type(value.type)
        whole = -(-needed // SCALES_OF_WORD) * SCALES_OF_WORD
        if not isinstance(scales.memory_space, ttng.TensorMemorySpaceAttr) or (
            scales.shape not in ((rows, needed), (rows, whole))
        ):
            refuse(op, f"{rows} x {needed} scales of {name} in the tensor memory of each CTA, found {scales}, and so")
    e8m0 = not isinstance(memdesc_type(op.a_scale.type).element_type, Float8E4M3FNType)
    places = [divmod(each * step, SCALES_OF_WORD) for step in range(len(b.steps))]
    return Instructions(
        a,
        b,
        kind,
        tuple(
            scaled_instruction_descriptor(2 * SCALED_ROWS, n, types=types, e8m0=e8m0, column=column, a=a, b=b)
            for _, column in places
        ),
        tuple(tensor_memory_address(op, scales) for scales in (op.a_scale, op.b_scale)),
        tuple(tuple(rows // LANES * word for word, _ in places) for rows in (SCALED_ROWS, n)),
    )


def _kind(op: ttng.TCGen5MMAScaledOp, a: Operand | None, b: Operand) -> tuple[str, tuple[int, int], int]:
    """`.kind` of a scaled product, the codes of its types, and the scales that an instruction takes of a row."""
    left, right = (tt.ScaleDotElemType(kind.value.data) for kind in (op.a_type, op.b_type))
    floats = [isinstance(memdesc_type(x.type).element_type, Float8E4M3FNType) for x in (op.a_scale, op.b_scale)]
    of_left, of_right = (BY_FORMAT[each.keyword].tcgen05 or ("", 0) for each in (left, right))
    if of_left[0] == of_right[0] == _BYTE_FLOATS and not any(floats):
        return "mxf8f6f4.block_scale.scale_vec::1X", (of_left[1], of_right[1]), 1
    if left is not tt.ScaleDotElemType.E2M1 or right is not tt.ScaleDotElemType.E2M1 or floats[0] != floats[1]:
        refuse(op, "scaled operands that are both of 8 bits, with scales of type e8m0, or both of 4 bits")
    if a is None or not a.k_major or not b.k_major:
        refuse(op, "operands of 4 bits in shared memory, of which pairs along K lie in a byte")
    kind = "mxf4nvf4.block_scale.scale_vec::4X" if floats[0] else "mxf4.block_scale.scale_vec::2X"
    return kind, (_E2M1, _E2M1), 4 if floats[0] else 2


def _columns(op: Operation, n: int) -> int:
    if n % 16 or n > ttng.MAX_N:
        refuse(op, f"a multiple of 16 columns, at most {ttng.MAX_N}")
    return n


def low_half(integers: Integers, start: SSAValue, offset: int, rest: int) -> SSAValue:
    """The lower 32 bits of a descriptor of what lies `offset` bytes after `start`."""
    units = integers.both(integers.shifted(integers.add(start, offset), -4), _START)
    return integers.value(integers.either(units, rest) if rest else units)


def rank_of(op: Operation) -> SSAValue:
    """The number of this CTA in its cluster, before `op`."""
    return insert_before(op, nvvm.SPECIAL_REGISTERS["cluster.ctarank"]()).results[0]


def issues_here(op: Operation, predicate: SSAValue | None = None) -> SSAValue:
    """True in the even CTA, which issues for both, where `predicate` holds."""
    integers = Integers(op)
    odd = integers.value(integers.both(rank_of(op), 1))
    even = insert_before(op, CmpiOp("eq", odd, integers.value(0))).result
    return even if predicate is None else insert_before(op, arith.AndIOp(predicate, even)).result
