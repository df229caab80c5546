"""Views of buffers: they move no data."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.dialects import tlx, ttg, ttng
from tlx_xdsl.dialects.ttg.types import memdesc_type
from tlx_xdsl.interpreter.buffers import buffer_places
from tlx_xdsl.interpreter.faults import fault_at
from tlx_xdsl.interpreter.memory import View
from tlx_xdsl.interpreter.ops.buffers import is_backing
from tlx_xdsl.interpreter.registry import Binary, Run, Unary, pure


@pure(ttg.MemDescIndexOp)
def index(op: ttg.MemDescIndexOp) -> Binary:
    """One buffer of an array."""
    return lambda view, number: view.index(op, int(number))


@pure(ttg.MemDescSubsliceOp)
def subslice(op: ttg.MemDescSubsliceOp) -> Unary:
    """A part at fixed offsets."""
    offsets = tuple(int(offset) for offset in op.offsets.get_values())
    shape = memdesc_type(op.result.type).shape
    return lambda view: _part(op, view, offsets, shape)


@pure(tlx.MemDescDynamicSubsliceOp)
def dynamic_subslice(op: tlx.MemDescDynamicSubsliceOp) -> Run:
    """A part at offsets that are known at run time."""
    shape = memdesc_type(op.result.type).shape

    def run(view: View, *offsets: np.int32) -> View:
        return _part(op, view, tuple(int(offset) for offset in offsets), shape)

    return run


@pure(ttng.TMEMSubSliceOp)
def tmem_subslice(op: ttng.TMEMSubSliceOp) -> Unary:
    """A part along one dimension."""
    dim, offset = op.dim.value.data, op.offset.value.data
    shape = memdesc_type(op.result.type).shape
    offsets = tuple(offset if axis == dim else 0 for axis in range(len(shape)))
    return lambda view: _part(op, view, offsets, shape)


def _part(op: Operation, view: View, offsets: tuple[int, ...], shape: tuple[int, ...]) -> View:
    key = ("part", offsets, shape)
    if (child := view.child(key)) is None:
        for dim, (offset, size, whole) in enumerate(zip(offsets, shape, view.shape, strict=True)):
            if offset < 0 or offset + size > whole:
                raise fault_at(
                    op,
                    f"elements {offset} to {offset + size - 1} of dimension {dim} are outside of the {whole} of "
                    f"'{view.name}'",
                )
        slices = tuple(slice(offset, offset + size) for offset, size in zip(offsets, shape, strict=True))
        child = view.derive(key, view.offsets[slices], f"{view.name}{list(offsets)}")
        child.start = tuple(at + offset for at, offset in zip(view.start, offsets, strict=True))
    return child


@pure(ttg.MemDescTransOp)
def trans(op: ttg.MemDescTransOp) -> Unary:
    """The same elements under permuted indices."""
    order = tuple(int(dim) for dim in op.order.get_values())

    def run(view: View) -> View:
        if (child := view.child(order)) is None:
            child = view.derive(order, view.offsets.transpose(order))
            child.start = tuple(view.start[dim] for dim in order)
        return child

    return run


@pure(ttg.MemDescReshapeOp)
def reshape(op: ttg.MemDescReshapeOp) -> Unary:
    """The same elements in row-major order."""
    shape = memdesc_type(op.result.type).shape
    key = ("reshape", shape)
    return lambda view: view.child(key) or view.derive(key, view.offsets.reshape(shape))


@pure(ttg.MemDescReinterpretOp, tlx.LocalAliasOp)
def reinterpret(op: Operation) -> Run:
    """The same bytes from the first one on, with another shape, type or layout.

    What storage aliasing has put at one place are families of their own; what the user reinterprets is not.
    """
    places = buffer_places(memdesc_type(op.results[0].type))
    name = op.results[0].name_hint
    is_alias = isinstance(op, tlx.LocalAliasOp) or is_backing(op.operands[0])

    def run(view: View) -> View:
        if (child := view.child(op)) is None:
            offsets = places.offsets + int(view.offsets.min(initial=1 << 62))
            key = (op, view.family.number, view.address)
            family = view.memory.family(key, op, name or view.name) if is_alias else view.family
            child = View(view.memory, offsets, places.dtype, family, name or view.name, places.alignment, places.copies)
            view.keep(op, child)
        return child

    return run


@pure(tlx.RequireLayoutOp, tlx.ReleaseLayoutOp)
def layout_mark(op: Operation) -> Unary:
    """A requirement for a layout; values stay."""
    return lambda value: value
