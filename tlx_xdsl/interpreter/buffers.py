"""Places of a buffer's elements, from the buffer's type."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.dialects.base import LayoutAttr, bare
from tlx_xdsl.dialects.ttg import MemDescType
from tlx_xdsl.dialects.ttng import TensorMemorySpaceAttr
from tlx_xdsl.errors import InputError
from tlx_xdsl.layouts import address
from tlx_xdsl.layouts.encodings import Ints, SharedLayout, TensorMemoryScalesLayout, TmemLayout
from tlx_xdsl.layouts.shared import default_shared_layout, required_alignment

from .numbers import dtype_of

TMEM_COLUMN_BYTES = 128 * 4
"""Tensor memory is held column by column: 128 lanes of 4 bytes. So a slice of columns is one interval."""


@dataclass(frozen=True)
class BufferPlaces:
    """The offsets of the elements of a buffer, from its first byte on."""

    offsets: NDArray[np.int64]
    """Byte of each element, in the shape of the buffer."""
    dtype: np.dtype[Any]
    size: int
    """Bytes that the buffer takes."""
    alignment: int
    """Bytes that its address is a multiple of."""
    copies: Ints = ()
    """Bytes from each element to its copies."""


@lru_cache(maxsize=1024)
def buffer_places(type_: MemDescType) -> BufferPlaces:
    """The places of a whole buffer of this type.

    Raises ValueError when the layout does not fit the shape.
    """
    dtype = dtype_of(type_.element_type)
    layout = _layout(type_)
    shape = type_.shape
    if isinstance(layout, SharedLayout):
        offsets = np.broadcast_to(address.shared_addresses(layout, shape, type_.element_bits), shape)
        alignment = required_alignment(layout, type_.element_bits)
        # The parts of a buffer that is spread over several CTAs follow each other: here they are one program.
        part = -(-address.shared_bytes(layout, shape, type_.element_bits) // alignment) * alignment
        blocks, count = address.shared_blocks(layout, shape)
        return BufferPlaces(offsets + blocks * part, dtype, part * count, alignment)
    rows, bits = address.tmem_addresses(layout, shape, type_.element_bits)
    offsets = bits // 32 * TMEM_COLUMN_BYTES + rows * 4 + bits % 32 // 8
    size = address.tmem_columns(layout, shape, type_.element_bits) * TMEM_COLUMN_BYTES
    # Each quarter of the lanes holds all scales (PTX ISA, "tcgen05 scale factor layout").
    copies = tuple(quarter * 32 * 4 for quarter in (1, 2, 3)) if isinstance(layout, TensorMemoryScalesLayout) else ()
    return BufferPlaces(offsets, dtype, size, TMEM_COLUMN_BYTES, copies)


def _layout(type_: MemDescType) -> SharedLayout | TmemLayout:
    """The layout of a buffer; where a placeholder stands for it, the one that it will get."""
    encoding = bare(type_.encoding)
    if isinstance(encoding, LayoutAttr):
        layout = encoding.data
        if isinstance(layout, SharedLayout | TmemLayout):
            return layout
        raise InputError(f"no buffer can have the layout {encoding}")
    if isinstance(type_.memory_space, TensorMemorySpaceAttr):
        # Nothing but scales is left without a layout.
        return TensorMemoryScalesLayout()
    return default_shared_layout(type_.shape, type_.element_bits)
