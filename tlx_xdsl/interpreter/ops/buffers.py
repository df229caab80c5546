"""Buffers in shared memory: allocation, loads, stores and views."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.analysis.storage_map_reader import storage_maps
from tlx_xdsl.analysis.storage_regions import storage_regions
from tlx_xdsl.dialects import tlx, tt, ttg, ttng
from tlx_xdsl.dialects.ttg import MemDescType, memdesc_type
from tlx_xdsl.numerics.arrays import Array
from tlx_xdsl.text.diagnostics import report_warning

from ..buffers import TMEM_COLUMN_BYTES, buffer_places
from ..code import Plan
from ..endings import check_barrier
from ..faults import fault_at
from ..machine import Task
from ..memory import Memory, View
from ..planner import Planner
from ..registry import (
    Binary,
    Built,
    Coroutine,
    Kind,
    Run,
    Unary,
    action,
    blocking,
    immediate,
    pure,
    structured,
)


def is_backing(value: SSAValue) -> bool:
    """Return whether a value is memory that the compiler has allocated for several buffers.

    Storage aliasing aligns its bytes, which no other allocation does, and its columns of tensor memory have no other
    users than views.
    """
    match value.owner:
        case ttg.LocalAllocOp() as op:
            return op.alignment is not None
        case ttng.TMEMAllocOp() as op:
            users = [use.operation for use in op.result.uses]
            return len(users) > 1 and all(isinstance(user, ttg.MemDescReinterpretOp) for user in users)
        case _:
            return False


def allocate(task: Task, op: Operation, memory: Memory, type_: MemDescType, alignment: int = 16) -> View:
    """A buffer of its own, poisoned; each task that runs `op` has another one."""
    key = (op, task.number)
    places = buffer_places(type_)
    address = memory.allocate(key, op, places.size, max(places.alignment, alignment))
    if (view := memory.views.get(key)) is None:
        name = op.results[0].name_hint or "buffer"
        family = memory.family(key, op, name)
        view = View(memory, places.offsets + address, places.dtype, family, name, places.alignment, places.copies)
        memory.views[key] = view
    memory.release(address, places.size)
    return view


@blocking(ttg.LocalAllocOp)
def local_alloc(task: Task, op: ttg.LocalAllocOp, *values: Array) -> Coroutine:
    """Allocate a buffer; it is poison without an initial value."""
    type_ = memdesc_type(op.result.type)
    alignment = 16 if op.alignment is None else op.alignment.value.data
    view = allocate(task, op, task.block.shared, type_, alignment)
    if values:
        task.write(op, view, values[0])
        yield None
    return view


@immediate(ttg.LocalDeallocOp)
def local_dealloc(task: Task, op: ttg.LocalDeallocOp, view: View) -> None:
    """The buffer is dead: what is read from it now was never written.

    Where the kernel ends, too, there is no other use for the memory of its mbarriers, so they end with it.

    Raises Fault when an asynchronous operation may still use it, and elsewhere for an mbarrier whose life has not
    ended.
    """
    ends_kernel = _ends_kernel(op)
    view.cell.end(task.actor(op, view), task.clock, view.name)
    start, end = view.footprint.start, view.footprint.end
    for address, barrier in list(view.memory.barriers.items()):
        if not start <= address < end:
            continue
        if ends_kernel:
            check_barrier(task.cluster, barrier)
            del view.memory.barriers[address]
        else:
            raise fault_at(
                op,
                f"'{barrier.name}' is still in use as an mbarrier where its memory is given back",
                ('end its life before (PTX ISA, "mbarrier.inval")', *barrier.history()),
            )
    view.memory.release(start, end - start)


def _ends_kernel(op: Operation) -> bool:
    """Return whether no more than buffers' ends stands between `op` and the end of the kernel."""
    following = op.next_op
    while isinstance(following, ttg.LocalDeallocOp):
        following = following.next_op
    func = op.parent_op()
    return isinstance(following, tt.ReturnOp) and isinstance(func, tt.FuncOp) and func.is_kernel


@action(ttg.LocalLoadOp)
def local_load(task: Task, op: ttg.LocalLoadOp, view: View, *_token: Any) -> Any:
    """A token orders nothing here: the wait that yields it does."""
    values = task.read(op, view)
    if view.is_permuted:
        report_warning(
            op,
            f"'{view.name}' is read with another layout than it is written with: its elements are at other places",
            (
                "it is a reinterpretation whose shape gives it another swizzle than the buffer that is written has",
                "write and read it with one shape, or reinterpret it with layout=",
                task.cluster.note,
            ),
        )
    return values


@action(ttg.LocalStoreOp)
def local_store(task: Task, op: ttg.LocalStoreOp, values: Array, view: View) -> None:
    """Write a whole buffer."""
    task.write(op, view, values)


# Storage aliasing, before it is lowered ------------------------------------------------------------------------------


class _Regions:
    """The places of all shared regions of a module, by what allocates them."""

    def __init__(self, plan: Plan):
        self.starts: dict[Operation, list[int]] = {}
        """First byte (or column) of each buffer of an allocation, from the start of its region."""
        self.sizes: dict[Operation, tuple[int, int]] = {}
        """Size and alignment of a region, by its spec."""
        shared = {region.spec: region for region in storage_regions(plan.module)}
        for map_ in storage_maps(plan.module):
            for region in map_.regions:
                if isinstance(region.op, tlx.StorageAliasSpecOp):
                    self.sizes[region.op] = (region.size, region.alignment)
                    for array, op in zip(region.arrays, shared[region.op].allocations, strict=True):
                        self.starts[op] = [span.start for span in array.buffers]


def _regions(plan: Plan) -> _Regions:
    if (found := plan.facts.get(_Regions)) is None:
        found = plan.facts[_Regions] = _Regions(plan)
    return found


@structured(tlx.StorageAliasSpecOp)
def storage_alias_spec(op: tlx.StorageAliasSpecOp, planner: Planner) -> Built:
    """The region; what is allocated in it says what lies there."""
    in_shared = op.storage.data.value == "smem"
    size, alignment = _regions(planner.plan).sizes.get(op, (0, 1))
    unit = 1 if in_shared else TMEM_COLUMN_BYTES

    def run(task: Task) -> tuple[Memory, int]:
        memory = task.block.shared if in_shared else task.block.tensor
        address = memory.allocate((op, task.number), op, size * unit, alignment * unit)
        memory.release(address, size * unit)
        return memory, address

    return Kind.EFFECT, run


@structured(tlx.StorageAliasLocalAllocOp)
def storage_alias_local_alloc(op: tlx.StorageAliasLocalAllocOp, planner: Planner) -> Built:
    """Buffers at the places that the storage map gives them."""
    type_ = memdesc_type(op.result.type)
    tile = buffer_places(type_.with_shape(type_.shape[1:]))
    starts = _regions(planner.plan).starts[op]
    name = op.result.name_hint or "buffer"

    def run(task: Task, region: tuple[Memory, int]) -> View:
        memory, address = region
        key = (op, task.number)
        if (view := memory.views.get(key)) is None:
            unit = 1 if memory is task.block.shared else TMEM_COLUMN_BYTES
            firsts = address + unit * np.array(starts, np.int64).reshape(-1, *(1 for _ in tile.offsets.shape))
            family = memory.family(key, op, name)
            view = View(memory, firsts + tile.offsets, tile.dtype, family, name, tile.alignment, tile.copies)
            memory.views[key] = view
        return view

    return Kind.EFFECT, run


@pure(tlx.ReuseGroupOp, tlx.SetBufferOverlapOp)
def overlap(op: Operation) -> Run:
    """Said where the region is laid out."""
    return lambda *_: None


# Views: they move no data --------------------------------------------------------------------------------------------


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


def _differ_in_order(view: View, other: View) -> bool:
    """Return whether two views have the same elements, in row-major order at other addresses."""
    mine, theirs = view.offsets.ravel(), other.offsets.ravel()
    return view.dtype.itemsize == other.dtype.itemsize and mine.size == theirs.size and not np.array_equal(mine, theirs)


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
            if not is_alias and _differ_in_order(view, child):
                child.seen_as = view.offsets.ravel()
            view.keep(op, child)
        return child

    return run
