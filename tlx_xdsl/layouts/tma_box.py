"""The boxes that TMA copies a tile in (PTX ISA, "Tensor swizzling modes", and the CUDA driver's `boxDim`)."""

from __future__ import annotations

from itertools import product

from .conversion.shared import MAX_BOX
from .encodings import Ints, NvmmaSharedLayout, SharedLayout


def tma_box(layout: SharedLayout, shape: Ints, element_bits: int) -> Ints:
    """Elements of one copy along each dimension of a tile of `shape`: a swizzle covers one row of its width.

    Stock Triton encodes descriptors with the same boxes.
    """
    box = [min(extent, MAX_BOX) for extent in shape]
    if isinstance(layout, NvmmaSharedLayout) and layout.swizzling_byte_width:
        box[-1] = min(shape[-1], 8 * layout.swizzling_byte_width // element_bits)
    return tuple(box)


def tma_corners(shape: Ints, box: Ints) -> list[Ints]:
    """Return where the boxes of a tile begin."""
    return list(product(*(range(0, extent, step) for extent, step in zip(shape, box, strict=True))))
