"""The layout of a view of a buffer in shared memory: the same bytes under other indices."""

from __future__ import annotations

from dataclasses import replace

from tlx_xdsl.errors import InputError

from .conversion.shared import shared_to_linear
from .encodings import (
    Ints,
    NvmmaSharedLayout,
    PaddedSharedLayout,
    SharedLayout,
    SharedLinearLayout,
    SwizzledSharedLayout,
)
from .shared import required_alignment, unswizzled_layout


def transposed_buffer_layout(layout: SharedLayout, order: Ints) -> SharedLayout:
    """The layout of the same memory when dimension i is what was dimension `order[i]`.

    Raises ValueError for a tile of the tensor cores whose other dimensions than the last two are exchanged.
    """
    if order == tuple(range(len(order))):
        return layout
    match layout:
        case NvmmaSharedLayout():
            if order != (*range(len(order) - 2), len(order) - 1, len(order) - 2):
                raise InputError(f"a tile's last two dimensions can be swapped and no others, found {list(order)}")
            return replace(layout, transposed=not layout.transposed)
        case SwizzledSharedLayout():
            return replace(layout, order=tuple(order.index(dim) for dim in layout.order))
        case PaddedSharedLayout() | SharedLinearLayout():
            return replace(
                layout,
                offset=tuple(tuple(basis[dim] for dim in order) for basis in layout.offset),
                block=tuple(tuple(basis[dim] for dim in order) for basis in layout.block),
            )


def splits_swizzle(layout: SharedLayout, shape: Ints, part: Ints) -> bool:
    """True if parts of the shape `part`, of a buffer of `shape` with `layout`, start at places that a swizzle mixes up.

    Stock Triton adds up the starts of a part along each dimension, and so takes only layouts where a step of a power of
    two along one dimension is a step of a power of two in memory.
    """
    if isinstance(layout, PaddedSharedLayout):
        return False
    places = shared_to_linear(layout, shape).right_inverse()
    steps = [
        {f"dim{at}": size if at == dim else 0 for at in range(len(shape))}
        for dim, (start, whole) in enumerate(zip(part, shape, strict=True))
        for size in (start << bit for bit in range((whole // start).bit_length() - 1))
    ]
    return any(places.apply(step)["offset"].bit_count() != 1 for step in steps)


def reshaped_buffer_layout(layout: SharedLayout, shape: Ints, element_bits: int, target: Ints) -> SharedLayout:
    """The layout with which the elements of `target`, in row-major order, lie where those of `shape` do.

    A tile stays a tile where the hardware would find its elements; otherwise the places are spelled out.
    Raises ValueError for a padded layout, and where `layout` does not fit `shape`.
    """
    if isinstance(layout, PaddedSharedLayout):
        raise InputError("a buffer with a padded layout can't be reshaped")
    # Among the outputs of a linear layout the first one varies fastest.
    places = shared_to_linear(layout, shape)
    places = places.transpose_outs(tuple(reversed(places.out_names)))
    dims = [(f"dim{dim}", size) for dim, size in enumerate(target)]
    places = places.reshape_outs(dims[::-1]).transpose_outs([name for name, _ in dims])
    candidates: list[SharedLayout] = []
    if isinstance(layout, NvmmaSharedLayout) and len(target) > 1:
        candidates.append(replace(layout, rank=len(target)))
    if isinstance(layout, SwizzledSharedLayout):
        candidates.append(unswizzled_layout(len(target)))
    for candidate in candidates:
        try:
            if shared_to_linear(candidate, target).equal_ignoring_trivial(places):
                return candidate
        except InputError:
            continue
    offset, block = (places.bases_of(name) if name in places.in_names else () for name in ("offset", "block"))
    return SharedLinearLayout(offset, block, alignment=required_alignment(layout, element_bits))
