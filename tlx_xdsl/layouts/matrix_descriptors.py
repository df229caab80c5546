"""Descriptors of the operands of tcgen05.mma (PTX ISA, "Shared memory descriptor" and "Instruction descriptor").

Shared memory descriptor, 64 bits: the start in units of 16 bytes (bits 0 to 13), the leading dimension's byte offset
(16 to 29) and the stride dimension's (32 to 45), both in units of 16 bytes, the constant 1 (46 to 48), and the swizzle
(61 to 63). An operand lies in atoms of 8 rows of the swizzle's width: rows run along M or N where K is contiguous
("K-major"), else along K. The stride offset leads to the next 8 rows, the leading one to the next atom along M or N
where K is not contiguous.

Instruction descriptor for `.kind::f16`, 32 bits: the types of D (4 to 5), A (7 to 9) and B (10 to 12), whether A (15)
and B (16) are not K-major, N / 8 (17 to 22) and M / 16 (24 to 28).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tlx_xdsl.errors import InputError
from tlx_xdsl.layouts.encodings import NvmmaSharedLayout
from tlx_xdsl.layouts.linear_layout import log2
from tlx_xdsl.layouts.offset_terms import offset_of, offset_terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

K = 16
"""Elements of 16 bits along K that one instruction takes."""
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
    steps: tuple[int, ...]
    """The first byte for each `K` elements along K, from the start of the operand."""

    @property
    def high(self) -> int:
        """The upper 32 bits of the descriptors."""
        return self.stride // _UNIT | 1 << 14 | _SWIZZLES[self.swizzle] << 29

    @property
    def low(self) -> int:
        """The lower 32 bits, without the start."""
        return self.leading // _UNIT << 16


def operand_of(layout: NvmmaSharedLayout, tile: tuple[int, int], shape: tuple[int, int], k_dim: int) -> Operand:
    """The operand of `shape` elements of 16 bits, of which dimension `k_dim` is K, at the start of `tile`.

    Raises ValueError for a layout that no descriptor describes.
    """
    width, contiguous = layout.swizzling_byte_width, 0 if layout.transposed else 1
    if width not in _SWIZZLES or layout.fp4_padded or layout.element_bit_width != 16:
        raise InputError("a product of a pair of CTAs takes swizzled operands of 16 bits")
    terms = offset_terms(layout, tile, 16)
    k_major, other = contiguous == k_dim, 1 - k_dim

    def at(k: int, outer: int) -> int:
        index = (k, outer) if k_dim == 0 else (outer, k)
        return offset_of(terms, index)

    columns = width // 2
    # Where there is no next atom along M or N the offset is not read.
    leading = at(0, columns) if not k_major and shape[other] > columns else 0
    if shape[k_dim] % K:
        raise InputError(f"K must be a multiple of {K}, found {shape[k_dim]}")
    return Operand(width, leading, ATOM_ROWS * width, k_major, tuple(at(k, 0) for k in range(0, shape[k_dim], K)))


def instruction_descriptor(m: int, n: int, *, bf16: bool, f32_result: bool, a: Operand | None, b: Operand) -> int:
    """The descriptor of a product of m x n elements, of f16 or bf16 numbers; A is None in tensor memory."""
    kind = int(bf16)
    majors = int(a is not None and not a.k_major) << 15 | int(not b.k_major) << 16
    return int(f32_result) << 4 | kind << 7 | kind << 10 | majors | n // 8 << 17 | m // 16 << 24


def element_bytes(descriptor: int, rows: int, *, k_major: bool) -> NDArray[np.int64]:
    """The byte of each element that a shared memory descriptor names: `rows` along M or N times `K`.

    Raises ValueError for a descriptor of another form.
    """
    import numpy as np

    start, leading, stride = ((descriptor >> at & 0x3FFF) * _UNIT for at in (0, 16, 32))
    width = next((width for width, field in _SWIZZLES.items() if field == descriptor >> 61), None)
    if width is None or descriptor >> 46 & 7 != 1:
        raise InputError(f"the shared memory descriptor {descriptor:#x} has no swizzle, or another version")
    outer, k = np.arange(rows, dtype=np.int64)[:, None], np.arange(K, dtype=np.int64)[None, :]
    if k_major:
        places = start + outer // ATOM_ROWS * stride + outer % ATOM_ROWS * width + k * 2
    else:
        columns = width // 2
        along = outer // columns * leading + outer % columns * 2
        places = start + along + k // ATOM_ROWS * stride + k % ATOM_ROWS * width
    # Units of 16 bytes are flipped by the bits from 7 on (PTX ISA, "Tensor swizzling modes").
    return places ^ (places >> 7 & (1 << log2(width // _UNIT)) - 1) << 4
