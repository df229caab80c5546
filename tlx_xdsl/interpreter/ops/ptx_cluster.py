"""PTX that reaches the shared memory of other CTAs (PTX ISA, "mapa", "st", "st.async", "cp.async.bulk")."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tlx_xdsl.dialects.tlx import Releases
from tlx_xdsl.layouts.conversion.shared import tma_box
from tlx_xdsl.layouts.encodings import Ints, NvmmaSharedLayout
from tlx_xdsl.layouts.linear_layout import log2
from tlx_xdsl.numerics.arrays import Array, Integers
from tlx_xdsl.numerics.ptx.instructions import TYPES

from ..addresses import TensorMap, bytes_view, decode, mapped, view_at
from ..faults import fault_at
from ..memory import View
from ..ptx.text import Statement, UnknownInstruction
from ..registry import Coroutine
from .barriers import arrive_in_cluster
from .cluster import places_of, start_copy, start_load, start_store, visit
from .ptx_actions import Action, Running, acts

BARRIER_BYTES = 8
"""Of an mbarrier object (PTX ISA, "Size and alignment of mbarrier object")."""


def barrier_view(running: Running, index: int) -> View:
    """The mbarrier that operand `index` is the address of."""
    return view_at(running.task, running.op, running.number(index), BARRIER_BYTES)


@acts("mapa")
def mapa(statement: Statement) -> Action | None:
    """`mapa.shared::cluster.u32`: an address that is one of another CTA's memory."""
    return _mapa if statement.modifiers == ("shared::cluster", "u32") else None


def _mapa(running: Running) -> Coroutine:
    yield None
    target, source, _ = running.statement.operands
    assert isinstance(target, str)
    assert isinstance(source, str)
    numbers = running.registers.read(source, TYPES["u32"])
    moved = mapped(running.task, running.op, numbers, running.number(2))
    running.registers.write(target, moved, TYPES["u32"], running.where)


@acts("createpolicy")
def createpolicy(statement: Statement) -> Action:
    """A hint, whatever it says."""

    def run(running: Running) -> Coroutine:
        yield None
        target = statement.operands[0]
        assert isinstance(target, str)
        running.registers.write(target, np.zeros(running.registers.count, np.uint64), TYPES["b64"], running.where)

    return run


# mbarriers -----------------------------------------------------------------------------------------------------------


@acts("mbarrier")
def remote_arrive(statement: Statement) -> Action | None:
    """`mbarrier.arrive` on a barrier of any CTA of the cluster, `count` times for each thread that runs it."""
    match statement.modifiers:
        case ("arrive", *order, "shared::cluster", "b64") if (releases := _RELEASES.get(tuple(order))) is not None:
            known = statement.operands[0] == "_" and 2 <= len(statement.operands) <= 3
            return (lambda running: _remote_arrive(running, releases)) if known else None
        case _:
            return None


_RELEASES: dict[tuple[str, ...], Releases] = {
    ("release", "cluster"): Releases.CLUSTER,
    ("relaxed", "cluster"): Releases.SHARED,
    ("release", "cta"): Releases.CTA,
    (): Releases.CTA,
}
"""The accesses that are released, by `.sem` and `.scope`: without either, to the own CTA."""


def _remote_arrive(running: Running, releases: Releases) -> Coroutine:
    yield None
    count = running.number(2) if len(running.statement.operands) == 3 else 1
    arrive_in_cluster(running.task, running.op, barrier_view(running, 1), count * running.threads, releases)


# Stores --------------------------------------------------------------------------------------------------------------


@acts("st")
def store(statement: Statement) -> Action | None:
    """`st.shared::cluster` and `st.async` of one register or a vector of them."""
    match statement.modifiers:
        case ("shared::cluster", *form) if (type_ := _element(form)) is not None:
            return lambda running: _store(running, type_)
        case ("async", "shared::cluster", "mbarrier::complete_tx::bytes", *form) if (
            type_ := _element(form)
        ) is not None:
            return lambda running: _store_async(running, type_)
        case _:
            return None


def _element(form: list[str]) -> str | None:
    """The type of an element in `.b32` or `.v4.b32`."""
    if len(form) == 2 and form[0] in ("v2", "v4"):
        form = form[1:]
    return form[0] if len(form) == 1 and form[0] in TYPES else None


def _store(running: Running, type_: str) -> Coroutine:
    yield None
    view, values = _stored(running, type_)
    visit(running.task, running.op, view)
    running.task.write(running.op, view, values)


def _store_async(running: Running, type_: str) -> Coroutine:
    yield None
    view, values = _stored(running, type_)
    start_store(running.task, running.op, values, view, barrier_view(running, 2))


def _stored(running: Running, type_: str) -> tuple[View, Array]:
    """The bytes that the threads store to, thread by thread, and what they store there."""
    place, values = running.statement.operands[:2]
    assert isinstance(place, str)
    names = values if isinstance(values, tuple) else (values,)
    base, _, distance = place.strip("[] ").partition("+")
    active = slice(None) if running.where is None else running.where
    addresses = running.registers.read(base, TYPES["u32"])[active] + np.uint32(int(distance or 0))
    held = np.stack([running.registers.read(name, TYPES[type_])[active] for name in names], -1)
    data = np.ascontiguousarray(held).view(np.uint8).reshape(len(addresses), -1)
    if (addresses % data.shape[1]).any():
        raise fault_at(running.op, f"misaligned store of {data.shape[1]} bytes")
    first, last = (decode(running.task, running.op, int(number)) for number in (addresses.min(), addresses.max()))
    if (first.memory, first.family) != (last.memory, last.family):
        raise fault_at(running.op, "the threads store to several buffers at once")
    starts: Integers = first.byte + (addresses - addresses.min()).astype(np.int64)
    return bytes_view(first, starts[:, None] + np.arange(data.shape[1])), data


# Copies --------------------------------------------------------------------------------------------------------------


@acts("cp")
def copy(statement: Statement) -> Action | None:
    """Bulk copies to another CTA, and tiles of a tensor for several CTAs."""
    match statement.modifiers:
        case ("async", "bulk", "shared::cluster", "shared::cta", "mbarrier::complete_tx::bytes"):
            return _remote_copy
        case ("async", "bulk", "tensor", _, "shared::cluster", "global", "tile", "mbarrier::complete_tx::bytes", *rest):
            known = {"cta_group::2", "multicast::cluster", "L2::cache_hint"}
            return _tile_load if set(rest) <= known else None
        case _:
            return None


def _remote_copy(running: Running) -> Coroutine:
    yield None
    running.once()
    task, op, size = running.task, running.op, running.number(2)
    target, source = (view_at(task, op, running.number(index), size) for index in (0, 1))
    start_copy(task, op, source, target, barrier_view(running, 3))


def _tile_load(running: Running) -> Coroutine:
    yield None
    running.once()
    task, op = running.task, running.op
    operands = [operand for operand in running.statement.operands if operand != "]"]
    target, map_, coordinates, barrier, *rest = operands
    tensor_map = running.others.get(str(map_).strip("[ "))
    if not isinstance(tensor_map, TensorMap) or not isinstance(coordinates, tuple):
        raise UnknownInstruction(f"the interpreter can't read the operands of the PTX '{running.statement.text}'")
    descriptor = tensor_map.descriptor
    box = tma_box(tensor_map.layout, descriptor.block, 8 * descriptor.dtype.itemsize)
    tile = replace(descriptor, block=box)
    # From the fastest dimension to the slowest.
    corner = [int(np.int32(np.uint32(running.value(name)))) for name in reversed(coordinates)]
    view = _tile(running, running.value(str(target)), tensor_map, box)
    here = view_at(task, op, running.value(str(barrier)), BARRIER_BYTES)
    multicasts = "multicast::cluster" in running.statement.modifiers
    mask = running.value(str(rest[0]), "b16") if multicasts else None
    pairs = "cta_group::2" in running.statement.modifiers
    start_load(task, op, tile, corner, places_of(task, op, view, here, mask, pairs=pairs))


def _tile(running: Running, address: int, tensor_map: TensorMap, box: Ints) -> View:
    """Return where a copy puts the elements of a box: row-major, with the bits of the addresses swizzled."""
    at, dtype = decode(running.task, running.op, address), tensor_map.descriptor.dtype
    places = at.byte + np.arange(int(np.prod(box)), dtype=np.int64).reshape(box) * dtype.itemsize
    layout, alignment = tensor_map.layout, 128
    if isinstance(layout, NvmmaSharedLayout) and (width := layout.swizzling_byte_width):
        # Units of 16 bytes are flipped by the bits from 7 on (PTX ISA, "Tensor swizzling modes").
        bits = log2(width // 16)
        places = places ^ (places >> 7 & (1 << bits) - 1) << 4
        alignment = width
    return bytes_view(at, places, dtype, alignment)
