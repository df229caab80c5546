"""Bytes, swizzles and alignments of buffers in shared memory."""

from __future__ import annotations

from tlx_xdsl.errors import InputError

from .encodings import (
    Ints,
    NvmmaSharedLayout,
    SharedLayout,
    SharedLinearLayout,
    SwizzledSharedLayout,
)


def bytes_of(elements: int, element_bits: int) -> int:
    """Bytes that `elements` packed elements of `element_bits` bits take, rounded up to whole bytes."""
    return (elements * element_bits + 7) // 8


def default_nvmma_layout(shape: Ints, element_bits: int, *, transposed: bool = False) -> NvmmaSharedLayout:
    """The widest swizzle that a tile of `shape` elements fills: what TMA, wgmma and tcgen05 all accept.

    The swizzled row is 128, 64 or 32 bytes; a tile whose inner row is shorter, or that has fewer than the 8 rows of
    a swizzle pattern, is left unswizzled (PTX ISA, "Tensor swizzling modes"). So is one row, the tile of one dimension.
    """
    if len(shape) == 1:
        return NvmmaSharedLayout(0, False, element_bits, rank=1)
    inner, outer = (shape[-2], shape[-1]) if transposed else (shape[-1], shape[-2])
    row_bytes = bytes_of(inner, element_bits)
    swizzle = 0
    if outer >= 8:
        swizzle = next((width for width in (128, 64, 32) if row_bytes >= width and row_bytes % width == 0), 0)
    return NvmmaSharedLayout(swizzle, transposed, element_bits, rank=len(shape))


def padded_fp4_layout(shape: Ints, *, transposed: bool = False) -> NvmmaSharedLayout:
    """The layout of a tile of `shape` bytes, each a pair of fp4 values, that takes part in a product with 8-bit floats.

    Eight bytes of padding follow eight bytes of data, so that a row takes twice its bytes; of the swizzles this format
    has that of 128 bytes alone (PTX ISA, "Tensor swizzling modes", `.b4x16_p64`).
    """
    inner, outer = (shape[-2], shape[-1]) if transposed else (shape[-1], shape[-2])
    swizzle = 128 if 2 * inner >= 128 and outer >= 8 else 0
    return NvmmaSharedLayout(swizzle, transposed, 8, fp4_padded=True, rank=len(shape))


def padding_factor(layout: SharedLayout) -> int:
    """Bytes that a buffer with `layout` takes for each byte in it, where that is the same everywhere: 2 for padded fp4.

    The gaps of a `PaddedSharedLayout` depend on the shape, and are not counted here.
    """
    return 2 if isinstance(layout, NvmmaSharedLayout) and layout.fp4_padded else 1


def scale_blocks_layout(shape: Ints) -> SharedLinearLayout:
    """The layout of a matrix of one-byte scales that the hardware can copy to tensor memory.

    Blocks of 128 x 4 scales, of which a line of 16 bytes has the four of rows r, r + 32, r + 64 and r + 96; the blocks
    advance along the columns first (PTX ISA, "tcgen05.cp", `.32x128b`, and "Scale factor layouts").
    Raises ValueError for a shape that is not made of such blocks.
    """
    rows, columns = shape[-2:]
    if len(shape) != 2 or rows % 128 or columns % 4:
        raise InputError(f"scales are copied in blocks of 128 x 4, found {' x '.join(map(str, shape))}")
    block = ((0, 1), (0, 2), (32, 0), (64, 0), (1, 0), (2, 0), (4, 0), (8, 0), (16, 0))
    right = tuple((0, 4 << bit) for bit in range((columns // 4).bit_length() - 1))
    down = tuple((128 << bit, 0) for bit in range((rows // 128).bit_length() - 1))
    return SharedLinearLayout((*block, *right, *down), alignment=128)


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
