"""Copies by TMA (PTX ISA, "cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor", "cp.async.bulk").

A copy takes effect when it is issued; that it may do so later is what the clocks know. Out of the tensor, a load
fills in zeros or NaN, and a store writes nothing, but whole units of 16 bytes along the contiguous dimension
(docs/interpreter.md, "Units of TMA").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from tlx_xdsl.element_types import BY_TENSOR_MAP
from tlx_xdsl.layouts.encodings import Ints
from tlx_xdsl.numerics.arrays import Bytes, Integers, numpy_type
from tlx_xdsl.numerics.elementwise import maximum, minimum

from ..cohort import Cohort
from ..global_order import GPU, WEAK
from ..memory.descriptors import swizzled
from ..memory.surroundings import Trap
from ..memory.tensor_map import TENSOR_MAP_BYTES, Fields, decode
from ..read.symbols import PARAM_WINDOW, RANK_SHIFT
from ..read.syntax import Address, Vector
from ..steps import Context, Step
from .mbarriers import barrier_at, plus, shared_address
from .memory import Mask

UNIT = 16
_HINTS = ("L2::cache_hint", "level::cache_hint")
REDUCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "min": minimum, "max": maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}  # fmt: skip


@lru_cache(maxsize=256)
def _decoded(raw: bytes) -> Fields | str:
    return decode(raw)


def fields_at(cohort: Cohort, address: int) -> Fields:
    """The tensor map at a generic address.

    Raises Trap for an address that is not aligned to 64 bytes, and for what is no tensor map.
    """
    machine = cohort.wave.machine
    if address % 64:
        raise Trap(f"a tensor map lies at a multiple of 64, found {address:#x}")
    if address >= PARAM_WINDOW:
        start = address - PARAM_WINDOW
        data = machine.parameters.data
        if start + TENSOR_MAP_BYTES > len(data):
            raise Trap("the tensor map is outside of the parameters")
        raw = data[start : start + TENSOR_MAP_BYTES]
    else:
        raw = machine.memory.bytes_at(address, TENSOR_MAP_BYTES, "read of a tensor map")
    found = _decoded(raw.tobytes())
    if isinstance(found, str):
        raise Trap(f"the tensor map cannot be used: {found}")
    return found


@lru_cache(maxsize=512)
def units(start: int, size: int, mode: int) -> Integers:
    """The units of 16 bytes, from that of the address 0 on, that a tile of `size` bytes at `start` has."""
    return swizzled(start + np.arange(0, size, UNIT, dtype=np.int64), mode) // UNIT


@dataclass(frozen=True, slots=True)
class Box:
    """A box of a tensor that a copy moves, and the part of it that is in the tensor."""

    fields: Fields
    corner: Ints

    @property
    def shape(self) -> Ints:
        """Bytes of a row, after the elements of all other dimensions, the outermost first."""
        return (*self.fields.box[:0:-1], self.fields.box[0] * self.fields.element_bytes)

    @property
    def size(self) -> int:
        """Bytes in all."""
        return prod(self.fields.box) * self.fields.element_bytes

    def inside(self, *, whole_units: bool) -> tuple[tuple[slice, ...], int, Ints]:
        """The part that is in the tensor, as slices of the box, its first byte in memory, and its strides."""
        fields = self.fields
        slices: list[slice] = []
        for at in range(len(fields.box) - 1, 0, -1):
            low, high = self._range(self.corner[at], fields.box[at], fields.extents[at])
            slices.append(slice(low, high))
        row = fields.element_bytes * fields.extents[0]
        if whole_units:
            row = -(-row // UNIT) * UNIT
        low, high = self._range(self.corner[0] * fields.element_bytes, self.shape[-1], row)
        slices.append(slice(low, high))
        start = fields.address + self.corner[0] * fields.element_bytes + low
        for place, at in enumerate(range(len(fields.box) - 1, 0, -1)):
            start += (self.corner[at] + slices[place].start) * fields.strides[at]
        # Kernels with ragged tensors rely on addresses that wrap around.
        return tuple(slices), start % (1 << 64), (*fields.strides[:0:-1], 1)

    @staticmethod
    def _range(corner: int, box: int, extent: int) -> tuple[int, int]:
        low = min(max(0, -corner), box)
        return low, max(low, min(box, extent - corner))

    def units(self, *, whole_units: bool) -> tuple[Integers, int]:
        """The addresses of the part that is in the tensor, and how many bytes each of them stands for."""
        slices, start, strides = self.inside(whole_units=whole_units)
        extents = [part.stop - part.start for part in slices]
        size = UNIT if start % UNIT == 0 and extents[-1] % UNIT == 0 else self.fields.element_bytes
        found: Integers = np.arange(0, extents[-1], size, dtype=np.int64) + start
        for extent, stride in zip(extents[-2::-1], strides[-2::-1], strict=True):
            steps: Integers = np.arange(extent, dtype=np.int64) * stride
            found = (steps[:, None] + found).ravel()
        return found, size

    def view(self, cohort: Cohort, what: str, *, whole_units: bool) -> tuple[tuple[slice, ...], Bytes | None]:
        """The part that is in the tensor, and its bytes in memory; None if there are none.

        Raises Trap for bytes that are in no array.
        """
        slices, start, strides = self.inside(whole_units=whole_units)
        extents = [part.stop - part.start for part in slices]
        if not all(extents):
            return slices, None
        last = sum((extent - 1) * stride for extent, stride in zip(extents, strides, strict=True))
        held = cohort.wave.machine.memory.bytes_at(start, last + 1, what)
        return slices, np.lib.stride_tricks.as_strided(held, extents, strides)


def _check_start(box: Box) -> None:
    byte = box.corner[0] * box.fields.element_bytes
    if byte % UNIT:
        raise Trap(
            f"a copy by TMA begins at a multiple of 16 bytes, found element {box.corner[0]}, of "
            f"{box.fields.element_bytes} bytes each"
        )


def load_box(cohort: Cohort, box: Box) -> Bytes:
    """The bytes of a box, with what fills it outside of the tensor."""
    _check_start(box)
    slices, found = box.view(cohort, "load by TMA", whole_units=False)
    fill = _fill(box.fields, box.shape)
    if found is not None:
        fill[slices] = found
    return fill


def _fill(fields: Fields, shape: Ints) -> Bytes:
    if not fields.fill:
        return np.zeros(shape, np.uint8)
    dtype = numpy_type(BY_TENSOR_MAP[fields.element_type])
    return np.full(prod(shape) // dtype.itemsize, np.nan).astype(dtype).view(np.uint8).reshape(shape)


def store_box(cohort: Cohort, box: Box, data: Bytes, reduction: str | None) -> None:
    """Write the bytes of a box, or join them with what is there."""
    _check_start(box)
    slices, found = box.view(cohort, "store by TMA", whole_units=reduction is None)
    if found is None:
        return
    new = data.reshape(box.shape)[slices]
    if reduction is None:
        found[...] = new
        return
    dtype = numpy_type(BY_TENSOR_MAP[box.fields.element_type])
    old = np.ascontiguousarray(found).view(dtype)
    result = REDUCTIONS[reduction](old, np.ascontiguousarray(new).view(dtype)).astype(dtype)
    found[...] = np.ascontiguousarray(result).view(np.uint8)


# Instructions --------------------------------------------------------------------------------------------------------


def build_tensor_copy(context: Context, parts: list[str]) -> Step:
    """`cp.async.bulk.tensor`, after these parts of the operation code, and its reduction."""
    rank = int(parts[0][0]) if parts and parts[0][:-1].isdigit() and parts[0].endswith("d") else 0
    rest = [part for part in parts[1:] if part not in _HINTS]
    reduction = None
    if context.instruction.modifiers[0] == "reduce":
        reduction = next((part for part in rest if part in REDUCTIONS), None)
        rest = [part for part in rest if part != reduction]
        if reduction is None:
            raise context.refuse()
    mode = next((part for part in rest if part.startswith("tile")), "tile")
    rest = [part for part in rest if not part.startswith("tile")]
    if not 1 <= rank <= 5 or mode not in ("tile", "tile::gather4", "tile::scatter4"):
        raise context.refuse()
    rest = [part for part in rest if part not in ("cta_group::1", "cta_group::2")]
    match rest:
        case ["shared::cta" | "shared::cluster", "global", "mbarrier::complete_tx::bytes", *more] if reduction is None:
            return _load(context, rank, mode, more)
        case ["global", "shared::cta" | "shared", "bulk_group"]:
            return _store(context, rank, mode, reduction)
        case _:
            raise context.refuse()


def _coordinates(context: Context, place: int, rank: int, mode: str) -> tuple[Any, ...]:
    operand = context.operand(place)
    if not isinstance(operand, Address) or len(operand.parts) != 1 or not isinstance(operand.parts[0], Vector):
        raise context.refuse("it has no coordinates")
    items = operand.parts[0].items
    if len(items) != (rank if mode == "tile" else 5):
        raise context.refuse(f"it has {len(items)} coordinates")
    return tuple(context.value(item, "i4") for item in items)


def _boxes(fields: Fields, corner: list[int], rank: int, mode: str) -> list[Box]:
    """The boxes of a copy, one after the other in shared memory: of rows that are named one by one there are four."""
    if len(fields.box) != rank:
        raise Trap(f"the tensor map has {len(fields.box)} dimensions, the copy has {rank}")
    if mode == "tile":
        return [Box(fields, tuple(corner))]
    return [Box(fields, (corner[0], row)) for row in corner[1:]]


def _load(context: Context, rank: int, mode: str, more: list[str]) -> Step:
    context.expect(3, 4, 5)
    is_multicast = "multicast::cluster" in more
    is_pair = "cta_group::2" in context.instruction.modifiers
    if not set(more) <= {"multicast::cluster"}:
        raise context.refuse()
    target, offset = shared_address(context, 0)
    tensor, tensor_offset = context.address(context.operand(1), "u8")
    barrier, barrier_offset = shared_address(context, 2)
    coordinates = _coordinates(context, 1, rank, mode)
    masks = (context.read(3, "u2"),) if is_multicast else ()

    def effect(cohort: Cohort, mask: Mask, targets: Any, tensors: Any, barriers: Any, *others: Any) -> None:
        to, at = plus(targets, offset), plus(barriers, barrier_offset)
        for thread in range(cohort.n) if mask is None else np.flatnonzero(mask).tolist():
            fields = fields_at(cohort, int(tensors[thread]) + tensor_offset)
            corner = [int(each[thread]) for each in others[: len(coordinates)]]
            ranks = None
            if is_multicast:
                chosen = int(others[-1][thread])
                ranks = [number for number in range(16) if chosen >> number & 1]
            boxes = _boxes(fields, corner, rank, mode)
            data = np.concatenate([load_box(cohort, box).ravel() for box in boxes])
            where = int(to[thread]), int(at[thread])
            token = deliver(cohort, thread, *where, data, fields.swizzle, ranks, is_pair=is_pair)
            for box in boxes:
                cohort.wave.order.global_units(token, *box.units(whole_units=False), "read")

    return Step((target, tensor, barrier, *coordinates, *masks), effect=effect)


def deliver(
    cohort: Cohort,
    thread: int,
    target: int,
    barrier: int,
    data: Bytes,
    swizzle: int,
    ranks: list[int] | None,
    token: Any = None,
    *,
    is_pair: bool = False,
) -> Any:
    """Write bytes to shared memory, of the CTAs of these ranks, and count them at the mbarrier; give its last token.

    With `is_pair` that is in the CTA of each pair that is odd or even as the one that the address names. `token` is
    that of the copy where it was issued before.
    """
    wave, own = cohort.wave, token
    for to, at in _places(cohort, thread, target, barrier, ranks, is_pair=is_pair):
        cta, first = divmod(to, wave.shared.stride)
        wave.shared.check_range(cta, first, len(data), "load by TMA")
        if first % (128 if len(data) % 128 == 0 and swizzle else UNIT):
            raise Trap(
                f"misaligned load by TMA: its shared address {first:#x} is no multiple of {128 if swizzle else UNIT}"
            )
        places = cta * (wave.shared.stride // UNIT) + units(first, len(data), swizzle)
        own = token or wave.order.issue(cohort, thread, "TMA load", at)
        wave.order.writes(own, places, UNIT)
        wave.machine.traffic.copy(cohort, len(data))
        wave.shared.rows16[places] = data.view(np.uint64).reshape(-1, 2)
        wave.shared.marks16[places] = True
        found = barrier_at(cohort, at)
        found.bytes -= len(data)
        wave.order.complete(own, found)
        found.complete()
    return own


def _places(
    cohort: Cohort, thread: int, target: int, barrier: int, ranks: list[int] | None, *, is_pair: bool
) -> list[tuple[int, int]]:
    """The places of the data and of the mbarrier in each CTA that gets them."""
    wave = cohort.wave
    cta = int(cohort.ctas[thread])
    first = cta // wave.cluster_size * wave.cluster_size
    offset = (1 << RANK_SHIFT) - 1
    parity = barrier >> RANK_SHIFT & 1
    where = [(target >> RANK_SHIFT, barrier >> RANK_SHIFT)]
    if ranks is not None:
        where = [(rank, rank & ~1 | parity if is_pair else rank) for rank in ranks]
    found: list[tuple[int, int]] = []
    for data_rank, barrier_rank in where:
        if max(data_rank, barrier_rank) >= wave.cluster_size:
            raise Trap(
                f"a copy to the CTA of rank {max(data_rank, barrier_rank)}, where a cluster has {wave.cluster_size}"
            )
        found.append(
            (
                (first + data_rank) * wave.shared.stride + (target & offset),
                (first + barrier_rank) * wave.shared.stride + (barrier & offset),
            )
        )
    return found


def _store(context: Context, rank: int, mode: str, reduction: str | None) -> Step:
    context.expect(2, 3)
    tensor, tensor_offset = context.address(context.operand(0), "u8")
    coordinates = _coordinates(context, 0, rank, mode)
    source, offset = shared_address(context, 1)

    def effect(cohort: Cohort, mask: Mask, tensors: Any, sources: Any, *others: Any) -> None:
        at = plus(sources, offset)
        for thread in range(cohort.n) if mask is None else np.flatnonzero(mask).tolist():
            fields = fields_at(cohort, int(tensors[thread]) + tensor_offset)
            boxes = _boxes(fields, [int(each[thread]) for each in others], rank, mode)
            data, token = collect(cohort, thread, int(at[thread]), sum(box.size for box in boxes), fields.swizzle)
            first = 0
            for box in boxes:
                store_box(cohort, box, data[first : first + box.size], reduction)
                first += box.size
                where = box.units(whole_units=reduction is None)
                what, strength = ("write", WEAK) if reduction is None else ("update", GPU)
                cohort.wave.order.global_units(token, *where, what, strength)

    return Step((tensor, source, *coordinates), effect=effect)


def collect(cohort: Cohort, thread: int, source: int, size: int, swizzle: int, token: Any = None) -> tuple[Bytes, Any]:
    """Bytes of a tile in the shared memory of a thread's own CTA, which a store by TMA, or the copy `token`, reads.

    Gives its token, too.
    """
    wave = cohort.wave
    cta, offset = int(cohort.ctas[thread]), source & (1 << RANK_SHIFT) - 1
    wave.shared.check_range(cta, offset, size, "store by TMA")
    if offset % (128 if swizzle else UNIT):
        raise Trap(
            f"misaligned store by TMA: its shared address {offset:#x} is no multiple of {128 if swizzle else UNIT}"
        )
    places = cta * (wave.shared.stride // UNIT) + units(offset, size, swizzle)
    token = token or wave.order.issue(cohort, thread, "TMA store")
    wave.order.reads(token, places, UNIT)
    wave.machine.traffic.copy(cohort, size)
    wave.shared.check_units(places)
    return wave.shared.rows16[places].view(np.uint8).ravel(), token
