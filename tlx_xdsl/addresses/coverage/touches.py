"""The operations that access global memory, and the bytes that each touches in all programs of a grid."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.analysis.integers.transfer import bytes_of, pointee_bytes
from tlx_xdsl.analysis.module_attrs import is_tile_copy
from tlx_xdsl.dialects import nvvm, tlx, tt
from tlx_xdsl.dialects.base import BULK_COPY, Kind as MemoryKind, effects_of, global_access
from tlx_xdsl.numerics.host_arrays import written_columns
from tlx_xdsl.targets import TMA_UNIT

from ..accesses import coordinates_of
from .values import (
    Booleans,
    Descriptor,
    Integers,
    Number,
    Pointer,
    Truth,
    Unknown,
    Value,
    base_of,
    fitted,
    mapped,
    plus,
    times,
)

Kind: TypeAlias = Literal["load", "store", "atomic"]


def access_kind(op: Operation) -> Kind | None:
    """The kind of an operation's access to global memory; None if it has none, or nothing is known of it."""
    if (access := global_access(op)) is None:
        return None
    return "load" if MemoryKind.WRITE not in access.kind else "atomic" if MemoryKind.ATOMIC in access.kind else "store"


FARTHEST = 1 << 56
"""Bytes from the start of an array beyond which no address means anything: so far sums of addresses fit 64 bits."""


@dataclass(frozen=True, eq=False)
class Touch:
    """The elements that all programs at an access touch at once: in a loop there is one touch for each iteration."""

    op: Operation
    kind: Kind
    base: SSAValue
    offset: Number
    """Of each element, in bytes from where the argument `base` points."""
    size: int
    """Bytes of an element."""
    masks: tuple[Booleans, ...]
    """An element is touched where all hold."""
    active: Booleans
    """The programs that get here."""
    is_exact: bool
    """True if all of this is touched; False if at most this is."""


@dataclass(frozen=True)
class UnknownAccess:
    """An access whose addresses are not known."""

    op: Operation
    kind: Kind
    base: SSAValue | None
    reason: str


def touch_of(
    op: Operation, value: Callable[[SSAValue], Value], active: Booleans, *, sure: bool
) -> Touch | UnknownAccess:
    """The touch of the access `op` in the programs `active`; without `sure` they may not get there.

    `value` says what is known about an operand.
    """
    kind, access = access_kind(op), global_access(op)
    assert kind is not None and access is not None
    masks: list[Truth] = []
    exact = sure

    def masked(mask: SSAValue | None) -> None:
        nonlocal exact
        known = None if mask is None else value(mask)
        if isinstance(known, Truth):
            masks.append(known)
        exact = exact and (known is None or (isinstance(known, Truth) and known.exact))

    place = _place(op, access.value, value, masked)
    if isinstance(place, Unknown):
        return UnknownAccess(op, kind, place.base, place.reason)
    pointer, size, inside = place
    if max(map(abs, pointer.offset.bounds())) > FARTHEST:
        return UnknownAccess(op, kind, pointer.base, "it may lie outside of all memory")
    rank = pointer.offset.parts[0].ndim - 1
    factors = [
        factor if factor.ndim == rank + 1 else factor.reshape((-1,) + (1,) * rank)
        for mask in masks
        for factor in mask.factors
    ]
    return Touch(op, kind, pointer.base, pointer.offset, size, (*factors, *inside), active, exact)


_Place: TypeAlias = tuple[Pointer, int, list[Booleans]]
"""Pointers, bytes of an element, and further masks."""


def _place(
    op: Operation,
    accessed: SSAValue,
    value: Callable[[SSAValue], Value],
    masked: Callable[[SSAValue | None], None],
) -> _Place | Unknown:
    if isinstance(accessed.type, tt.DescriptorType):
        return _through_descriptor(op, value, masked)
    if effects_of(op).by is BULK_COPY:
        return _bulk(op, accessed, value)
    masked(getattr(op, "mask", None))
    known = value(accessed)
    size = pointee_bytes(accessed)
    return (known, size, []) if isinstance(known, Pointer) else _unknown(known)


_PTX_WRITES = re.compile(r"(?<![.\w])(?P<name>st|red|symbol|multimem|cp)(?P<rest>\.[.\w:]*)")
_PTX_SPACE = re.compile(r"\.(global|shared|local|param)\b")


def written_by_ptx(op: Operation) -> UnknownAccess | None:
    """The write to global memory that PTX in an operation may make, which is not followed; None if there is none.

    A copy names where it goes to before where it comes from; other instructions without a space may go anywhere.
    """
    match op:
        case tt.ElementwiseInlineAsmOp():
            text = op.asm_string.data
        case nvvm.InlinePtxOp():
            text = op.ptx_code.data
        case _:
            return None
    for found in _PTX_WRITES.finditer(text):
        space = _PTX_SPACE.search(found["rest"])
        if "prefetch" in found["rest"] or (space is None and found["name"] == "cp"):
            continue
        if space is None or space[1] == "global":
            return UnknownAccess(op, "store", None, "it is written by PTX")
    return None


def _unknown(known: Value) -> Unknown:
    return known if isinstance(known, Unknown) else Unknown("it is no pointer", base_of(known))


def _bulk(op: Any, accessed: SSAValue, value: Callable[[SSAValue], Value]) -> _Place | Unknown:
    pointer = value(accessed)
    length = value(op.size)
    if not isinstance(pointer, Pointer):
        return _unknown(pointer)
    if not isinstance(length, Number):
        return Unknown(length.reason if isinstance(length, Unknown) else "its size is no number", pointer.base)
    end = length.total.reshape(-1, 1)
    starts = np.arange(0, max(int(end.max()), tlx.BULK_BYTES), tlx.BULK_BYTES, dtype=np.int64)[None]
    along: Value = mapped(pointer.offset, lambda array: array.reshape(-1, 1))
    assert isinstance(along, Number)
    offset = plus(along, Number((starts,)))
    return (
        Unknown(offset.reason, pointer.base)
        if isinstance(offset, Unknown)
        else (Pointer(pointer.base, offset), tlx.BULK_BYTES, [starts < end])
    )


def _through_descriptor(
    op: Any, value: Callable[[SSAValue], Value], masked: Callable[[SSAValue | None], None]
) -> _Place | Unknown:
    descriptor = value(op.desc)
    if not isinstance(descriptor, Descriptor):
        return _unknown(descriptor)
    base = descriptor.pointer.base
    block: tuple[int, ...] = op.desc.type.shape
    masked(getattr(op, "pred", None))
    coordinates = [value(place) for place in coordinates_of(op)]
    for known in (*coordinates, *descriptor.shape, *descriptor.strides, descriptor.pointer.offset):
        if isinstance(known, Unknown):
            return Unknown(known.reason, base)
    if getattr(op, "offsets", ()) or not len(coordinates) == len(descriptor.shape) == len(block):
        return Unknown("its descriptor is not one of plain tiles", base)
    offset: Number | Unknown = _scalar(descriptor.pointer.offset, len(block))
    inside: list[Booleans] = []
    size = bytes_of(op.desc.type.element_type)
    for dim, coordinate in enumerate(coordinates):
        assert isinstance(coordinate, Number)
        index = _indices(coordinate, dim, block)
        sizes, stride = (_scalar(numbers[dim], len(block)) for numbers in (descriptor.shape, descriptor.strides))
        term = times(index, Number(tuple(size * part for part in stride.parts)))
        offset = term if isinstance(term, Unknown) else plus(offset, term)
        if isinstance(offset, Unknown):
            return Unknown(offset.reason, base)
        ends = sizes.total
        if dim == len(block) - 1 and _writes_whole_units(op, descriptor, size):
            ends = written_columns(ends, size)
        inside.append((index.total >= 0) & (index.total < ends))
    return Pointer(base, offset), size, inside


def _writes_whole_units(op: Operation, descriptor: Descriptor, size: int) -> bool:
    """Return whether rows are written in units, of which the last may go on after a row's end.

    An argument counts as contiguous. If TMA could not address such rows, they are padded, and what is after their ends
    is not known.
    """
    if access_kind(op) == "load" or not is_tile_copy(op):
        return False
    strides = [stride.total * size for stride in descriptor.strides[:-1] if not isinstance(stride, Unknown)]
    return not any((stride % TMA_UNIT).any() for stride in strides)


def _scalar(number: Number, rank: int) -> Number:
    return Number(tuple(part.reshape((-1,) + (1,) * rank) for part in number.parts))


def _indices(coordinate: Number, dim: int, block: Sequence[int]) -> Number:
    """The indices along dimension `dim` of a block: from a number on, or those in a tensor of numbers."""
    total: Integers = coordinate.total
    shape = [1] * len(block)
    if total.ndim == 2:
        shape[dim] = total.shape[1]
        return Number((total.reshape((len(total), *shape)),))
    ones = total.reshape((-1, *shape))
    shape[dim] = block[dim]
    result = fitted((ones, np.arange(block[dim], dtype=np.int64).reshape((1, *shape))), 64)
    assert isinstance(result, Number), "32-bit coordinates and a block can't leave 64 bits"
    return result
