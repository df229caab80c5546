"""The layout of a view from that of the buffer, and the other way round."""

from __future__ import annotations

from itertools import product

from xdsl.ir import Attribute, Operation

from tlx_xdsl.dialects.base import ViewLayout, bare, chosen_layout, layout_attr, view_of
from tlx_xdsl.dialects.ttg import (
    MemDescReinterpretOp,
    MemDescReshapeOp,
    MemDescTransOp,
    MemDescType,
    memdesc_type,
)
from tlx_xdsl.errors import InputError
from tlx_xdsl.layouts.buffer_views import reshaped_buffer_layout, transposed_buffer_layout
from tlx_xdsl.layouts.conversion.shared import buffer_rank, shared_to_linear
from tlx_xdsl.layouts.encodings import NvmmaSharedLayout, PaddedSharedLayout, SharedLayout


def is_view(op: Operation) -> bool:
    """True if the layout of the result of `op` follows from that of the buffer that it takes.

    A `ttg.memdesc_reinterpret` sees bytes, and so is an allocation of its own, unless it changes nothing but the kind
    of the elements.
    """
    view = view_of(op)
    if view is not None and view.layout is not ViewLayout.OWN:
        return True
    if isinstance(op, MemDescReinterpretOp):
        source, result = memdesc_type(op.src.type), op.result.type
        return (source.shape, source.element_bits, source.encoding) == (
            result.shape,
            result.element_bits,
            result.encoding,
        )
    return False


def layout_of_view(op: Operation, encoding: Attribute) -> Attribute:
    """The layout of the result of the view `op` of a buffer with the layout `encoding`.

    Raises ValueError when no layout describes it.
    """
    return _through(op, encoding, memdesc_type(op.operands[0].type), memdesc_type(op.results[0].type), back=False)


def layout_of_source(op: Operation, encoding: Attribute) -> Attribute:
    """The layout that the buffer must have for its view `op` to have the layout `encoding`.

    Raises ValueError when there is none.
    """
    return _through(op, encoding, memdesc_type(op.results[0].type), memdesc_type(op.operands[0].type), back=True)


def _through(op: Operation, encoding: Attribute, source: MemDescType, target: MemDescType, *, back: bool) -> Attribute:
    if not isinstance(op, MemDescTransOp | MemDescReshapeOp):
        return encoding
    layout = chosen_layout(encoding)
    if not isinstance(layout, SharedLayout):
        raise InputError(f"a view of a buffer with the layout {encoding} can't be transposed or reshaped")
    # Dimensions before those that the layout describes count buffers.
    count = len(source.shape) - buffer_rank(layout)
    if isinstance(op, MemDescTransOp):
        order = tuple(int(dim) for dim in op.order.get_values())
        if back:
            order = tuple(order.index(dim) for dim in range(len(order)))
        if order[:count] != tuple(range(count)):
            raise InputError("buffers of an array can't be exchanged with the dimensions of one")
        return layout_attr(transposed_buffer_layout(layout, tuple(dim - count for dim in order[count:])))
    if source.shape[:count] != target.shape[:count]:
        raise InputError("a reshape can't mix the buffers of an array")
    shape, new = source.shape[count:], target.shape[count:]
    return layout_attr(reshaped_buffer_layout(layout, shape, source.element_bits, new))


def as_tile(encoding: Attribute, type_: MemDescType) -> Attribute | None:
    """The `nvmma_shared` layout that puts the elements of a buffer where `encoding` does; None when there is none."""
    rank = len(type_.shape)
    for width, transposed in product((128, 64, 32, 0), (False, True)):
        tile = layout_attr(NvmmaSharedLayout(width, transposed, type_.element_bits, rank=rank))
        if rank > 1 and same_layout(tile, encoding, type_):
            return tile
    return None


def same_layout(a: Attribute, b: Attribute, type_: MemDescType) -> bool:
    """True if two layouts put every element of a buffer of `type_` at the same place."""
    a, b = bare(a), bare(b)
    if a == b:
        return True
    first, second = chosen_layout(a), chosen_layout(b)
    if not isinstance(first, SharedLayout) or not isinstance(second, SharedLayout):
        return False
    if isinstance(first, PaddedSharedLayout) or isinstance(second, PaddedSharedLayout):
        return False
    rank = buffer_rank(first)
    if rank != buffer_rank(second):
        return False
    shape = type_.alloc_shape[len(type_.alloc_shape) - rank :]
    try:
        return shared_to_linear(first, shape).equal_ignoring_trivial(shared_to_linear(second, shape))
    except InputError:
        # One of them does not fit the shape; a verifier says so where it is used.
        return False
