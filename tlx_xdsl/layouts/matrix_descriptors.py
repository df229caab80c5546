"""Descriptors of the operands of tcgen05.mma (PTX ISA, "Shared memory descriptor" and "Instruction descriptor").

Shared memory descriptor, 64 bits: the start in units of 16 bytes (bits 0 to 13), the leading dimension's byte offset
(16 to 29) and the stride dimension's (32 to 45), both in units of 16 bytes, the constant 1 (46 to 48), and the swizzle
(61 to 63). An operand lies in atoms of 8 rows of the swizzle's width: rows run along M or N where K is contiguous
("K-major"), else along K. The stride offset leads to the next 8 rows, the leading one to the next atom along M or N
where K is not contiguous.

Instruction descriptor for `.kind::f16` and `.kind::f8f6f4`, 32 bits: the types of D (4 to 5), A (7 to 9) and B (10 to
12), whether A (15) and B (16) are not K-major, N / 8 (17 to 22) and M / 16 (24 to 28). With `.block_scale` D is f32:
there are the column of B's scales (4 to 5) and of A's (29 to 30) in the four of a word, their type (23), and M / 128
(27 to 28).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tlx_xdsl.errors import InputError

from .encodings import Ints, NvmmaSharedLayout
from .linear_layout import log2
from .offset_terms import offset_of, offset_terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

STEP_BYTES = 32
"""Along K that one instruction takes of an operand whose elements lie densely in bytes."""
ATOM_ROWS = 8
_UNIT = 16
"""Bytes that the fields count in."""
_SWIZZLES = {128: 2, 64: 4, 32: 6}
"""The field for each width of the swizzle, in bytes."""


@dataclass(frozen=True)
class Operand:
    """An operand in a tile of shared memory: what its descriptors have in common, and where its parts begin."""

    swizzle: int
    """Bytes."""
    leading: int
    """Bytes."""
    stride: int
    """Bytes."""
    k_major: bool
    steps: Ints
    """The first byte for each `STEP_BYTES` along K, from the start of the operand."""

    @property
    def high(self) -> int:
        """The upper 32 bits of the descriptors."""
        return self.stride // _UNIT | 1 << 14 | _SWIZZLES[self.swizzle] << 29

    @property
    def low(self) -> int:
        """The lower 32 bits, without the start."""
        return self.leading // _UNIT << 16


def operand_of(layout: NvmmaSharedLayout, tile: tuple[int, int], shape: tuple[int, int], k_dim: int) -> Operand:
    """The operand of `shape` elements of 8 or 16 bits, of which dimension `k_dim` is K, at the start of `tile`.

    Raises ValueError for a layout that no descriptor describes.
    """
    width, contiguous, bits = layout.swizzling_byte_width, 0 if layout.transposed else 1, layout.element_bit_width
    if width not in _SWIZZLES or layout.fp4_padded or bits not in (8, 16):
        raise InputError("a product of a pair of CTAs takes swizzled operands of 8 or 16 bits")
    terms, step = offset_terms(layout, tile, bits), 8 * STEP_BYTES // bits
    k_major, other = contiguous == k_dim, 1 - k_dim

    def at(k: int, outer: int) -> int:
        index = (k, outer) if k_dim == 0 else (outer, k)
        return offset_of(terms, index)

    columns = 8 * width // bits
    # Where there is no next atom along M or N the offset is not read.
    leading = at(0, columns) if not k_major and shape[other] > columns else 0
    if shape[k_dim] % step:
        raise InputError(f"K must be a multiple of {step}, found {shape[k_dim]}")
    return Operand(width, leading, ATOM_ROWS * width, k_major, tuple(at(k, 0) for k in range(0, shape[k_dim], step)))


def instruction_descriptor(
    m: int, n: int, *, types: tuple[int, int], f32_result: bool, a: Operand | None, b: Operand
) -> int:
    """The descriptor of a product of m x n elements, of types with these codes; A is None in tensor memory."""
    return int(f32_result) << 4 | _types_and_majors(types, a, b) | n // 8 << 17 | m // 16 << 24


def scaled_instruction_descriptor(
    m: int, n: int, *, types: tuple[int, int], e8m0: bool, column: int, a: Operand | None, b: Operand
) -> int:
    """The descriptor of a block-scaled product, whose scales begin at that column of the four of a word.

    The scales are of type e8m0, else e4m3.
    """
    fields = column << 4 | int(e8m0) << 23 | m // 128 << 27 | column << 29
    return fields | _types_and_majors(types, a, b) | n // 8 << 17


def _types_and_majors(types: tuple[int, int], a: Operand | None, b: Operand) -> int:
    majors = int(a is not None and not a.k_major) << 15 | int(not b.k_major) << 16
    return types[0] << 7 | types[1] << 10 | majors


def element_bytes(descriptor: int, rows: int, size: int, *, k_major: bool) -> NDArray[np.int64]:
    """The byte of each element that a descriptor names: `rows` along M or N, and `STEP_BYTES` along K.

    `size` is that of an element in bytes. Raises ValueError for a descriptor of another form.
    """
    import numpy as np

    start, leading, stride = ((descriptor >> at & 0x3FFF) * _UNIT for at in (0, 16, 32))
    width = next((width for width, field in _SWIZZLES.items() if field == descriptor >> 61), None)
    if width is None or descriptor >> 46 & 7 != 1:
        raise InputError(f"the shared memory descriptor {descriptor:#x} has no swizzle, or another version")
    outer, k = np.arange(rows, dtype=np.int64)[:, None], np.arange(STEP_BYTES // size, dtype=np.int64)[None, :]
    if k_major:
        places = start + outer // ATOM_ROWS * stride + outer % ATOM_ROWS * width + k * size
    else:
        columns = width // size
        along = outer // columns * leading + outer % columns * size
        places = start + along + k // ATOM_ROWS * stride + k % ATOM_ROWS * width
    # Units of 16 bytes are flipped by the bits from 7 on (PTX ISA, "Tensor swizzling modes").
    return places ^ (places >> 7 & (1 << log2(width // _UNIT)) - 1) << 4


# Scales, which `tcgen05.cp` copies in blocks of 32 lines of 16 bytes (PTX ISA, "tcgen05.cp", `.32x128b`) --------------

SCALE_LINES, SCALE_LINE_BYTES = 32, 16
_SCALE_STRIDE = ATOM_ROWS * SCALE_LINE_BYTES
SCALE_HIGH = _SCALE_STRIDE // _UNIT | 1 << 14
"""The upper 32 bits of the descriptor of a block of scales, which lies in one piece."""
SCALE_LOW = SCALE_LINE_BYTES // _UNIT << 16
"""The lower 32 bits, without the start."""


def scale_line_bytes(descriptor: int) -> NDArray[np.int64]:
    """The bytes of the lines of a block of scales, of shape (`SCALE_LINES`, `SCALE_LINE_BYTES`).

    Raises ValueError for a descriptor of another form.
    """
    import numpy as np

    if descriptor >> 32 != SCALE_HIGH or descriptor >> 16 & 0xFFFF != SCALE_LOW >> 16:
        raise InputError(f"the shared memory descriptor {descriptor:#x} is not that of a block of scales")
    size = SCALE_LINES * SCALE_LINE_BYTES
    return ((descriptor & 0x3FFF) * _UNIT + np.arange(size, dtype=np.int64)).reshape(SCALE_LINES, SCALE_LINE_BYTES)
