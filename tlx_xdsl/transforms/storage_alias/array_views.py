"""Allocations for views of any kind, and views of an array of buffers that do not lie one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects.builtin import IntegerAttr, i8, i32
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.analysis.overlap_tree import IndexMap
from tlx_xdsl.dialects import tlx
from tlx_xdsl.dialects.base import chosen_layout, layout_attr, view_of
from tlx_xdsl.dialects.ttg import (
    LocalAllocOp,
    MemDescReinterpretOp,
    MemDescSubsliceOp,
    MemDescTransOp,
    MemDescType,
    SharedMemorySpaceAttr,
    memdesc_type,
)
from tlx_xdsl.dialects.ttng import TensorMemorySpaceAttr, TMEMAllocOp, TMEMSubSliceOp, columns_of
from tlx_xdsl.layouts.conversion.shared import buffer_rank
from tlx_xdsl.layouts.encodings import NvmmaSharedLayout, PaddedSharedLayout, SharedLayout, TensorMemoryLayout
from tlx_xdsl.layouts.shared import unswizzled_layout
from tlx_xdsl.text.diagnostics import error_at, location_of, source_location


def places_of_slice(places: IndexMap, first: int, count: int) -> IndexMap | None:
    """The slots of buffers `first` to `first + count - 1`, numbered from 0; None when no map has them."""
    size = places.group_size
    if first // size == (first + count - 1) // size:
        return IndexMap(1, 1, places(first))
    if first % size:
        return None
    return IndexMap(size, places.group_stride, places(first))


def places_of_regrouping(places: IndexMap, unit: int, new_unit: int, count: int) -> IndexMap | None:
    """The slots of `count` buffers of `new_unit` bytes that view the bytes of buffers of `unit` bytes.

    None when one of them is not in one piece, or does not lie on a multiple of its size. Works on columns of tensor
    memory as well.

    Two buffers of 4 KB in each group of 12 KB are one of 8 KB, at no multiple of its size; or four of 2 KB:
    >>> places_of_regrouping(IndexMap(2, 3, 0), 4096, 8192, 2)
    >>> places_of_regrouping(IndexMap(2, 3, 0), 4096, 2048, 8)
    IndexMap(group_size=4, group_stride=6, offset=0)
    """
    if unit == new_unit:
        return places
    run, stride, start = places.group_size * unit, places.group_stride * unit, places.offset * unit
    if start % new_unit:
        return None
    if run == stride or count * new_unit <= run:
        return IndexMap(1, 1, start // new_unit)
    if run % new_unit or stride % new_unit:
        return None
    return IndexMap(run // new_unit, stride // new_unit, start // new_unit)


def is_array_view(op: Operation) -> bool:
    """True if `op` sees an array, or a part of it that is known when compiling, and moves no data."""
    view = view_of(op)
    return view is not None and view.of_array


@dataclass(frozen=True, slots=True)
class ArrayPlace:
    """The location of the buffers of an array."""

    places: IndexMap
    slots: int
    """Buffers that the type of the array must count for all of them to be inside."""
    origin: SSAValue = field(compare=False)
    """The allocation, for messages."""

    @property
    def name(self) -> str:
        """The display name of the array."""
        return name_of(self.origin)

    @property
    def formula(self) -> str:
        """The location of buffer i, counted in buffers from the start of the region."""
        places = self.places
        if places.group_size > 1:
            text = f"i / {places.group_size} * {places.group_stride} + i % {places.group_size}"
        else:
            text = "i" if places.group_stride == 1 else f"i * {places.group_stride}"
        return f"{text} + {places.offset}" if places.offset else text


def name_of(value: SSAValue) -> str:
    """The display name of an array."""
    return value.name_hint or "an array without a name"


def allocated_at(value: SSAValue) -> str:
    """A note that says where an array comes from."""
    place = source_location(location_of(value))
    return f"{name_of(value)} is allocated at {'an unknown place' if place is None else place}"


@dataclass(frozen=True, slots=True)
class Piece:
    """Memory in one piece that a view must begin with: buffer `index` of the source, or of the source regrouped."""

    index: int
    regrouped: MemDescType | None
    """The array that has the view as its buffer; None when the view lies in a buffer of the source."""


@dataclass(frozen=True, slots=True)
class View:
    """The replacement of a view of an array."""

    place: ArrayPlace | None
    """The location of the buffers of the view; None when they are one after the other from where the view begins."""
    piece: Piece | None = None


DENSE = View(None)


def view_through(op: Operation, place: ArrayPlace) -> View:
    """The replacement of `op` when the buffers of its source lie at `place`.

    Raises CompilationError when no index can reach what it sees.
    """
    source, result = memdesc_type(op.operands[0].type), memdesc_type(op.results[0].type)
    if isinstance(op, MemDescReinterpretOp | tlx.LocalAliasOp) and (view := _in_one_piece(source, result, place)):
        return view
    places = _places_through(op, source, result, place.places) if _is_array(result) else None
    if places is None:
        raise cannot_see(op, place, "cannot see them that way")
    return View(ArrayPlace(places, _slots_through(op, source, result, place, places), place.origin))


def cannot_see(op: Operation, place: ArrayPlace, why: str) -> Exception:
    """The error at `op` that uses an array at `place` as only an array in one piece can be used."""
    if place.places.is_identity:
        return error_at(
            op,
            f"under Triton 3.8 the array {place.name} grows to the size of its allocation, and '{op.name}' {why}",
            [allocated_at(place.origin)],
        )
    return error_at(
        op,
        f"the buffers of {place.name} do not lie one after the other from the start of their storage_alias_spec "
        f"(buffer i is number {place.formula}), and '{op.name}' {why}",
        [allocated_at(place.origin)],
    )


def with_slots(type_: MemDescType, slots: int) -> MemDescType:
    """The type of an array with `slots` buffers; a part of an array is one of all slots."""
    alloc_shape = type_.alloc_shape if len(type_.alloc_shape) == len(type_.shape) else type_.shape
    return MemDescType.get(
        (slots, *type_.shape[1:]),
        type_.element_type,
        type_.encoding,
        type_.memory_space,
        mutable=type_.is_mutable,
        alloc_shape=(slots, *alloc_shape[1:]),
    )


def buffer_type(array: MemDescType) -> MemDescType:
    """The type of one buffer of an array."""
    return array.with_shape(array.shape[1:])


def all_of_first_dimension(op: MemDescSubsliceOp | TMEMSubSliceOp) -> None:
    """Let `op` begin with its source's first buffer: the map of its indices says which buffers it sees."""
    if isinstance(op, TMEMSubSliceOp):
        if op.dim.value.data == 0:
            op.offset = IntegerAttr(0, i32)
        return
    _, *others = op.offsets.get_values()
    op.offsets = type(op.offsets).from_list(i32, [0, *others])


def slice_of_buffer(
    op: MemDescSubsliceOp | TMEMSubSliceOp, buffer: SSAValue, type_: MemDescType
) -> MemDescSubsliceOp | TMEMSubSliceOp:
    """The part of one buffer that `op` cuts out of all buffers of an array."""
    if isinstance(op, TMEMSubSliceOp):
        properties = {"offset": op.offset, "dim": IntegerAttr(op.dim.value.data - 1, i32)}
        return TMEMSubSliceOp(operands=[buffer], properties=properties, result_types=[type_])
    _, *offsets = op.offsets.get_values()
    return MemDescSubsliceOp(
        operands=[buffer], properties={"offsets": type(op.offsets).from_list(i32, offsets)}, result_types=[type_]
    )


# --- places ---------------------------------------------------------------------------------------------------------


def _places_through(op: Operation, source: MemDescType, result: MemDescType, places: IndexMap) -> IndexMap | None:
    count = result.shape[0]
    match op:
        case MemDescSubsliceOp():
            return places_of_slice(places, next(iter(op.offsets.get_values())), count)
        case TMEMSubSliceOp():
            return places_of_slice(places, 0 if op.dim.value.data else op.offset.value.data, count)
        case MemDescTransOp():
            return places if next(iter(op.order.get_values())) == 0 else None
        case tlx.RequireLayoutOp():
            return places
        case _:
            if source.alloc_shape[1:] != source.shape[1:]:
                # The memory of what was cut out of larger buffers has gaps of its own.
                return None
            unit, new_unit = _size(buffer_type(source)), _size(buffer_type(result))
            if unit != new_unit and not (_is_gapless(source) and _is_gapless(result)):
                return None
            return places_of_regrouping(places, unit, new_unit, count)


def _slots_through(op: Operation, source: MemDescType, result: MemDescType, place: ArrayPlace, places: IndexMap) -> int:
    if isinstance(op, MemDescSubsliceOp | TMEMSubSliceOp):
        return place.slots
    unit, new_unit = _size(buffer_type(source)), _size(buffer_type(result))
    # A view of all slots has the size of the array, which Triton 3.8 asks for.
    whole, rest = divmod(place.slots * unit, new_unit)
    return places(result.shape[0] - 1) + 1 if rest else whole


def _in_one_piece(source: MemDescType, result: MemDescType, place: ArrayPlace) -> View | None:
    """The view `result` of `source` as one of memory in one piece, if it is that and must or should be."""
    places, unit, size = place.places, _size(buffer_type(source)), _size(result)
    contiguous = places.group_size == places.group_stride or size <= places.group_size * unit
    gapless = _is_gapless(source) and _is_gapless(result) and source.alloc_shape[1:] == source.shape[1:]
    if not (contiguous and gapless):
        return None
    # Triton 3.8 wants views of one size, and gave a dense array more slots for that.
    grown = places.is_identity and place.slots > source.shape[0]
    if grown and _is_array(result):
        return None
    if not (places.offset or grown):
        return DENSE
    if size <= unit:
        return View(None, Piece(places.offset, None))
    if _is_array(result) or places.offset * unit % size:
        return None
    index = places.offset * unit // size
    count = place.slots * unit // size if place.slots * unit % size == 0 else index + 1
    return View(None, Piece(index, result.with_shape((count, *result.shape))))


def _size(type_: MemDescType) -> int:
    """Bytes of a buffer in shared memory, columns of one in tensor memory."""
    if isinstance(type_.memory_space, TensorMemorySpaceAttr):
        return columns_of(type_)
    return type_.bytes_of_trailing(len(type_.shape))


def _is_gapless(type_: MemDescType) -> bool:
    """True if the size says all about the memory that a buffer takes."""
    layout = chosen_layout(type_.encoding)
    if isinstance(layout, NvmmaSharedLayout):
        return not layout.fp4_padded
    return not isinstance(layout, PaddedSharedLayout)


def _is_array(type_: MemDescType) -> bool:
    """True if the first dimension counts buffers; in a buffer the layout covers every dimension."""
    layout = chosen_layout(type_.encoding)
    # Tensor memory has rows and columns, also under a placeholder for a layout in it.
    return len(type_.shape) > (buffer_rank(layout) if isinstance(layout, SharedLayout) else 2)


LARGEST_ROW = 1024
"""Bytes in a row of the backing allocation. Any power of two would do; this one divides the sizes of most tiles."""

LARGEST_BLOCK = 256
"""Columns of a block of the backing allocation: no more than an accumulator has (PTX ISA, "tcgen05.mma")."""


def allocate_bytes(size: int, alignment: int) -> LocalAllocOp:
    """`size` bytes of shared memory at an address that is a multiple of `alignment`.

    Upstream Triton requires powers of two in the dimensions of a layout, but not in the number of buffers: the total is
    split into buffers of the largest power of two that divides it.
    """
    row = min(LARGEST_ROW, size & -size)
    type_ = MemDescType.get(
        (size // row, row), i8, layout_attr(unswizzled_layout(1)), SharedMemorySpaceAttr(), mutable=True
    )
    return LocalAllocOp(operands=[None], properties={"alignment": IntegerAttr(alignment, i32)}, result_types=[type_])


def allocate_columns(rows: int, count: int) -> TMEMAllocOp:
    """`count` columns of tensor memory, of 64 or 128 rows."""
    block = min(LARGEST_BLOCK, count & -count)
    layout = layout_attr(TensorMemoryLayout(rows, block, 1))
    type_ = MemDescType.get((count // block, rows, block), i32, layout, TensorMemorySpaceAttr(), mutable=True)
    return TMEMAllocOp(operands=[None], result_types=[type_, None])
