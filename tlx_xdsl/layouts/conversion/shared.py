"""Shared-memory layouts: which element is at which offset of a buffer.

Inputs are `offset`, counted in elements from the buffer's start, and `block`; outputs `dim0`, `dim1`, ... of the whole
tensor. The padding of `PaddedSharedLayout` is no linear function: it is in `address`, not here.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product

from tlx_xdsl.errors import InputError

from ..encodings import (
    Ints,
    NvmmaSharedLayout,
    PaddedSharedLayout,
    SharedLayout,
    SharedLinearLayout,
    SwizzledSharedLayout,
)
from ..linear_layout import LinearLayout, log2
from .tiling import (
    BLOCK,
    NEWEST,
    OFFSET,
    UNSWIZZLED_IS_ROW_MAJOR_UNTIL,
    Version,
    check_powers_of_two,
    check_shape,
    cluster,
    cover,
    dim_names,
    identity_nd,
    repeat,
    shape_per_cta,
)

SWIZZLE_ROWS = 8
"""Rows after which a swizzle pattern repeats (PTX ISA, "Tensor swizzling modes")."""

SWIZZLE_UNIT_BITS = 128
"""A swizzle moves units of 16 bytes."""

MAX_BOX = 256
"""Elements per dimension that one TMA copy moves at most (PTX ISA, "cp.async.bulk.tensor", `boxDim`): a larger buffer
is filled by several copies, one box after the other."""


@lru_cache(maxsize=4096)
def shared_to_linear(layout: SharedLayout, shape: Ints, version: Version = NEWEST) -> LinearLayout:
    """The linear layout of a shared-memory buffer that holds a tensor of `shape` as `layout` says to that Triton
    version.

    Raises ValueError if the layout does not fit `shape`, or a size is no power of two.
    """
    check_powers_of_two(shape)
    if buffer_rank(layout) != len(shape):
        raise InputError(f"a '{layout.mnemonic}' layout of rank {buffer_rank(layout)}, used for shape {shape}")
    match layout:
        case SwizzledSharedLayout():
            return _swizzled(layout, shape)
        case NvmmaSharedLayout():
            return _nvmma(layout, shape, version)
        case PaddedSharedLayout() | SharedLinearLayout():
            linear = LinearLayout.from_bases({OFFSET: layout.offset, BLOCK: layout.block}, dim_names(len(shape)))
            return check_shape(linear, shape, layout.mnemonic)


def buffer_rank(layout: SharedLayout) -> int:
    """The number of dimensions that `layout` describes."""
    match layout:
        case SwizzledSharedLayout():
            return len(layout.order)
        case NvmmaSharedLayout():
            return len(layout.cga_layout[0]) if layout.cga_layout else layout.rank
        case PaddedSharedLayout() | SharedLinearLayout():
            bases = (*layout.offset, *layout.block)
            if not bases:
                raise InputError(f"a '{layout.mnemonic}' layout without bases does not determine its rank")
            return len(bases[0])


def _swizzled(layout: SwizzledSharedLayout, shape: Ints) -> LinearLayout:
    """Rows of the fastest dimension; in row r of the second, vector v of `vec` elements is at v XOR phase(r).

    phase(r) = (r / per_phase) mod max_phase. XOR is its own inverse, so the bases say which element is at an offset
    in the same words. Higher dimensions repeat the pattern.
    """
    part = shape_per_cta(layout.cga_layout, shape)
    names = dim_names(len(shape))
    if len(shape) == 1:
        return LinearLayout.identity_1d(part[0], OFFSET, names[0]) * cluster(layout.cga_layout, shape)
    col_dim, row_dim = layout.order[:2]
    columns, rows = part[col_dim], part[row_dim]
    bases = [(1 << bit, 0) for bit in range(log2(columns))]
    for bit in range(log2(rows)):
        phase = (1 << bit) // layout.per_phase % layout.max_phase
        bases.append((layout.vec * phase % columns, 1 << bit))
    matrix = LinearLayout.from_bases({OFFSET: bases}, {names[col_dim]: columns, names[row_dim]: rows})
    for dim in layout.order[2:]:
        matrix *= LinearLayout.identity_1d(part[dim], OFFSET, names[dim])
    return matrix.transpose_outs(names) * cluster(layout.cga_layout, shape)


def _nvmma(layout: NvmmaSharedLayout, shape: Ints, version: Version) -> LinearLayout:
    """Boxes that one TMA copy fills, one after the other; inside, the tiles of `_swizzled_box`."""
    rank = len(shape)
    part = shape_per_cta(layout.cga_layout, shape)
    if layout.swizzling_byte_width == 0:
        return _nvmma_unswizzled(layout, shape, part, version)
    if rank < 2:
        raise InputError(f"a swizzled '{layout.mnemonic}' layout needs two dimensions, used for shape {shape}")
    contiguous = 0 if layout.transposed else rank - 1
    # With fp4Padded half of a row is padding.
    row = 8 * layout.swizzling_byte_width // layout.element_bit_width >> layout.fp4_padded
    box = tuple(min(size, row if dim == contiguous else MAX_BOX) for dim, size in enumerate(part))
    tile = _swizzled_box(layout, box, row)
    return cover(tile, layout.cga_layout, shape, OFFSET, range(rank))


def _nvmma_unswizzled(layout: NvmmaSharedLayout, shape: Ints, part: Ints, version: Version) -> LinearLayout:
    """Boxes without swizzle: the elements of a box follow each other."""
    rank = len(shape)
    if rank > 2 and layout.transposed:
        raise InputError("an 'nvmma_shared' layout of more than two dimensions cannot be transposed without a swizzle")
    if rank == 1:
        return cover(identity_nd(OFFSET, part, (0,)), layout.cga_layout, shape, OFFSET, (0,))
    box = tuple(min(size, MAX_BOX) for size in part)
    column_major = layout.transposed and version >= UNSWIZZLED_IS_ROW_MAJOR_UNTIL
    order = range(rank) if column_major else reversed(range(rank))
    return cover(identity_nd(OFFSET, box, order), layout.cga_layout, shape, OFFSET, reversed(range(rank)))


def _swizzled_box(layout: NvmmaSharedLayout, box: Ints, row: int) -> LinearLayout:
    """The box seen as a matrix, cut into tiles of 8 swizzled rows of `row` elements, tiles advancing along the rows.

    The columns of the matrix are the last dimension, and all others are its rows; if transposed, the last dimension
    is its rows, and all others are its columns.
    """
    names = dim_names(len(box))
    elements = 1 << sum(log2(size) for size in box)
    rows = box[-1] if layout.transposed else elements // box[-1]
    columns = elements // rows
    if rows < SWIZZLE_ROWS or columns < row:
        raise InputError(
            f"a swizzle of {layout.swizzling_byte_width} bytes needs {SWIZZLE_ROWS} rows of {row} elements,"
            f" found {rows} of {columns}"
        )
    matrix = repeat(_swizzle_tile(layout), (rows, columns), OFFSET, (0, 1))
    # From the slowest to the fastest dimension; the matrix lists its rows first, but columns are faster.
    natural = (*names[1:], names[0]) if layout.transposed else names
    sizes = dict(zip(names, box, strict=True))
    flat = matrix.transpose_outs(("dim1", "dim0"))
    return flat.reshape_outs([(name, sizes[name]) for name in reversed(natural)]).transpose_outs(names)


def _swizzle_tile(layout: NvmmaSharedLayout) -> LinearLayout:
    """Eight rows (`dim0`) of `swizzling_byte_width` bytes (`dim1`), as TMA writes them with that swizzle.

    The hardware XORs bits 4 to 6 of the byte address with bits 7 to 9, as many of them as the width has units. Rows
    narrower than 128 bytes share these 128 bytes, so the XOR value advances every 128 / width rows.
    """
    width = layout.swizzling_byte_width
    unit = SWIZZLE_UNIT_BITS // layout.element_bit_width
    columns = [(0, 1 << bit) for bit in range(log2(8 * width // layout.element_bit_width))]
    if layout.fp4_padded:
        # A unit of 16 bytes has 8 bytes of data and 8 bytes of padding (PTX ISA, "packing format ... kind::mxf8f6f4").
        unit //= 2
        columns = [*columns[: log2(unit)], (0, 0), *columns[log2(unit) : -1]]
    rows_per_phase = 128 // width
    rows = [(1 << bit, unit * ((1 << bit) // rows_per_phase)) for bit in range(log2(SWIZZLE_ROWS))]
    return LinearLayout.from_bases({OFFSET: [*columns, *rows]}, ("dim0", "dim1"))


def tma_box(layout: SharedLayout, shape: Ints, element_bits: int) -> Ints:
    """Elements of one copy by TMA along each dimension of a tile of `shape`: a swizzle covers one row of its width.

    Stock Triton encodes descriptors with the same boxes (PTX ISA, "Tensor swizzling modes", the driver's `boxDim`).
    """
    box = [min(extent, MAX_BOX) for extent in shape]
    if isinstance(layout, NvmmaSharedLayout) and layout.swizzling_byte_width:
        box[-1] = min(shape[-1], 8 * layout.swizzling_byte_width // element_bits)
    return tuple(box)


def tma_corners(shape: Ints, box: Ints) -> list[Ints]:
    """Return where the boxes of a tile begin."""
    return list(product(*(range(0, extent, step) for extent, step in zip(shape, box, strict=True))))
