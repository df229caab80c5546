"""Bytes, swizzles and alignments of buffers in shared memory."""

from __future__ import annotations

from tlx_xdsl.layouts.encodings import (
    Ints,
    NvmmaSharedLayout,
    SharedLayout,
    SharedLinearLayout,
    SwizzledSharedLayout,
)

SMEM_BYTES_PER_BLOCK = {80: 166912, 86: 101376, 89: 101376, 90: 232448, 100: 232448, 103: 232448, 120: 101376}
"""Shared memory that one thread block may opt into, by compute capability (CUDA C++ Programming Guide, table
"Technical Specifications per Compute Capability", "Maximum amount of shared memory per thread block")."""

MBARRIER_BYTES = 8
"""Size and alignment of an mbarrier object (PTX ISA, "mbarrier")."""


def bytes_of(elements: int, element_bits: int) -> int:
    """Bytes that `elements` packed elements of `element_bits` bits take, rounded up to whole bytes."""
    return (elements * element_bits + 7) // 8


def default_nvmma_layout(shape: Ints, element_bits: int, *, transposed: bool = False) -> NvmmaSharedLayout:
    """The widest swizzle that a tile of `shape` elements fills: what TMA, wgmma and tcgen05 all accept.

    The swizzled row is 128, 64 or 32 bytes; a tile whose inner row is shorter, or that has fewer than the 8 rows of
    a swizzle pattern, is left unswizzled (PTX ISA, "Tensor swizzling modes").
    """
    inner, outer = (shape[-2], shape[-1]) if transposed else (shape[-1], shape[-2])
    row_bytes = bytes_of(inner, element_bits)
    swizzle = 0
    if outer >= 8:
        swizzle = next((width for width in (128, 64, 32) if row_bytes >= width and row_bytes % width == 0), 0)
    return NvmmaSharedLayout(swizzle, transposed, element_bits, rank=len(shape))


def default_shared_layout(shape: Ints, element_bits: int) -> SharedLayout:
    """The layout that `tlx.local_alloc` gives a buffer of `shape` elements unless the user names one."""
    if len(shape) < 2:
        return unswizzled_layout(len(shape))
    return default_nvmma_layout(shape, element_bits)


def unswizzled_layout(rank: int) -> SwizzledSharedLayout:
    """Row-major shared memory without swizzle."""
    return SwizzledSharedLayout(1, 1, 1, tuple(reversed(range(rank))))


def required_alignment(layout: SharedLayout, element_bits: int) -> int:
    """Bytes that the address of a buffer with `layout` must be a multiple of.

    A swizzle XORs address bits 4 to 6 with bits 7 to 9, so its pattern repeats every 8 rows of the swizzle width:
    a tile must start on such a boundary (PTX ISA, "Tensor swizzling modes"). TMA without swizzle needs 128 bytes
    (CUDA C++ Programming Guide, "Tensor Memory Access"). A layout that spells itself out
    names its alignment. Other buffers are aligned for 16-byte vector accesses.
    """
    if isinstance(layout, NvmmaSharedLayout):
        return max(128, 8 * layout.swizzling_byte_width)
    if isinstance(layout, SharedLinearLayout):
        return layout.alignment
    return max(16, element_bits // 8)
