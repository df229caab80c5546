"""Reader of the storage map from IR.

Before storage-alias lowering and between its steps the map is complete: specs, overlap trees or the numbers that
stand for them, plain allocations, barriers. After it a shared region is one allocation with views, and where in a
view the buffers lie is part of the code that indexes them: the map shows the views.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp, i8, i32
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects.base import layout_of, num_ctas_of
from tlx_xdsl.dialects.tlx import LocalAliasOp, StorageAliasSpecOp
from tlx_xdsl.dialects.tt import FuncOp
from tlx_xdsl.dialects.ttg import (
    LocalAllocOp,
    MemDescReinterpretOp,
    MemDescType,
    WarpSpecializePartitionsOp,
    memdesc_type,
)
from tlx_xdsl.dialects.ttng import TensorMemorySpaceAttr, TMEMAllocOp, columns_of
from tlx_xdsl.layouts.conversion.shared import buffer_rank
from tlx_xdsl.layouts.encodings import SharedLayout
from tlx_xdsl.layouts.shared import padding_factor, required_alignment
from tlx_xdsl.text.diagnostics import error_at, source_location

from .buffer_users import accesses, uses_by_task
from .lives import Moments, lives
from .module_attrs import module_target
from .overlap_tree import Group, Leaf, Slot
from .storage_map import STOCK_ALIGNMENT, Array, Memory, Region, Span, StorageMap, next_start, spans
from .storage_regions import StorageRegion, storage_regions
from .storage_trees import leaf_of, read_trees
from .value_classes import ValueClasses


def storage_maps(module: ModuleOp, capability: int | None = None, *, strict: bool = False) -> list[StorageMap]:
    """The map of every function of `module` that allocates something.

    `capability` is the target's compute capability, such as 90; that of the module by default, else 90.
    Raises CompilationError, located in the kernel, for an overlap tree that can't be laid out, and for clusters whose
    thread blocks share tensors (`num_ctas` above 1), and for a module of an unknown target.
    """
    if capability is None:
        target = module_target(module)
        capability = 90 if target is None else target.capability
    shared = {region.spec: region for region in storage_regions(module, strict=strict)}
    maps: list[StorageMap] = []
    for function in module.walk():
        if not isinstance(function, FuncOp):
            continue
        reader = _Reader(function, shared, strict)
        if regions := reader.read():
            place = source_location(function.location)
            moments, regions = reader.with_lives(regions)
            maps.append(StorageMap(function.sym_name.data, place, function, capability, regions, moments))
    return maps


class _Reader:
    """Reads the regions of one function."""

    def __init__(self, function: FuncOp, shared: Mapping[StorageAliasSpecOp, StorageRegion], strict: bool):
        self.function = function
        self.shared = shared
        self.strict = strict
        self.ends: dict[Memory, int] = {"smem": 0, "tmem": 0}
        ops = list(function.walk())
        self.classes = ValueClasses.of(function, MemDescType)
        self.order = {op: number for number, op in enumerate(ops)}
        holders = [op for op in ops if isinstance(op, WarpSpecializePartitionsOp)]
        self.allocations = [op for op in ops if isinstance(op, StorageAliasSpecOp | LocalAllocOp | TMEMAllocOp)]
        self.ops: dict[Array, list[Operation]] = {}
        """The operations that use each array."""
        self.captures = [set(holder.explicit_captures) for holder in holders]

    def read(self) -> list[Region]:
        """The regions in program order."""
        regions: list[Region] = []
        for op in self.allocations:
            if (num_ctas_of(op) or 1) > 1:
                raise error_at(op, "the storage map knows no clusters whose blocks share tensors (num_ctas above 1)")
            if not isinstance(op, StorageAliasSpecOp):
                regions.append(self._plain(op, len(regions)))
            elif self.shared[op].allocations:
                regions.append(self._shared(self.shared[op], len(regions)))
        return regions

    def with_lives(self, regions: Sequence[Region]) -> tuple[Moments, tuple[Region, ...]]:
        """The time axis of each task, and the regions with the lives of their arrays of buffers."""
        arrays = [array for region in regions for array in region.arrays if array.role != "barriers"]
        moments, found = lives([self.ops[array] for array in arrays], self.order)
        alive = dict(zip(arrays, found, strict=True))
        return moments, tuple(
            replace(region, arrays=tuple(replace(each, lives=tuple(alive.get(each, ()))) for each in region.arrays))
            for region in regions
        )

    def _plain(self, op: LocalAllocOp | TMEMAllocOp, number: int) -> Region:
        memory: Memory = "smem" if isinstance(op, LocalAllocOp) else "tmem"
        views = sorted(_views(op), key=self.order.__getitem__)
        leaf = _leaf(op, f"allocation {number}")
        length, alignment = leaf.count * leaf.unit, leaf.alignment
        if isinstance(op, LocalAllocOp) and op.alignment is not None:
            alignment = max(alignment, op.alignment.value.data)
        arrays = [self._view(view, f"view {index}") for index, view in enumerate(views)]
        if not views:
            arrays = [self._array(op, replace(leaf, alignment=alignment), Slot(0, leaf.unit, 1))]
        return self._region(leaf.name, memory, op, length, alignment, arrays, [op.result, *_results(views)])

    def _shared(self, region: StorageRegion, number: int) -> Region:
        spec = region.spec
        memory: Memory = "smem" if spec.storage.data.value == "smem" else "tmem"
        leaves = [leaf_of(index, op) for index, op in enumerate(region.allocations)]
        slots, size = _slots(region, self.strict)
        arrays = [
            self._array(op, leaf, slots[index])
            for index, (op, leaf) in enumerate(zip(region.allocations, leaves, strict=True))
        ]
        name = spec.result.name_hint or f"allocation {number}"
        trees = tuple(read_trees(spec, region.allocations, region.overlaps, leaves)) if region.overlaps else ()
        strides = {slot.stride for slot in slots.values()}
        related = len(strides) == 1 and (bool(trees) or region.allocations[0].is_placed)
        groups = max(len(each.buffers) // each.group_size for each in arrays) if related else 1
        stride = slots[0].stride if groups > 1 else size
        return self._region(
            name, memory, spec, size, region.alignment, arrays, _results(region.allocations), trees, groups, stride
        )

    def _array(self, op: Operation, leaf: Leaf, slot: Slot) -> Array:
        value = op.results[0]
        ops = accesses(value, self.classes)
        array = Array(
            leaf.name,
            "barriers" if any(user.name == "ttng.init_barrier" for user in ops) else "buffers",
            _type_text(memdesc_type(value.type), leaf.count),
            source_location(op.location),
            leaf.unit,
            leaf.alignment,
            slot.group_size,
            tuple(spans(leaf, slot)),
            uses_by_task(ops),
        )
        self.ops[array] = ops
        return array

    def _view(self, op: Operation, name: str) -> Array:
        leaf = _leaf(op, name)
        array = self._array(op, leaf, Slot(0, leaf.unit, 1))
        view = replace(array, role="view", buffers=(Span(0, leaf.count * leaf.unit),))
        self.ops[view] = self.ops[array]
        return view

    def _region(
        self,
        name: str,
        memory: Memory,
        op: Operation,
        size: int,
        alignment: int,
        arrays: Sequence[Array],
        values: Sequence[SSAValue],
        trees: tuple[Group, ...] = (),
        groups: int = 1,
        stride: int | None = None,
    ) -> Region:
        start = next_start(memory, self.ends[memory], alignment)
        self.ends[memory] = start + size
        captured = frozenset(number for number, held in enumerate(self.captures) if not held.isdisjoint(values))
        place = source_location(op.location)
        return Region(
            name, memory, place, op, start, size, alignment, groups, stride or size, tuple(arrays), trees, captured
        )


def _slots(region: StorageRegion, strict: bool) -> tuple[Mapping[int, Slot], int]:
    """The place of every allocation of `region`, from its tree or from what stands on the operations; its size."""
    if not region.overlaps and any(op.is_placed for op in region.allocations):
        slots = {
            number: Slot(
                0 if op.buffer_offset is None else op.buffer_offset.value.data,
                0 if op.bytes_between_buffers is None else op.bytes_between_buffers.value.data,
                1 if op.group_size is None else op.group_size.value.data,
            )
            for number, op in enumerate(region.allocations)
        }
        return slots, region.length or 0
    placement = region.place(strict=strict)
    return placement.slots, placement.total


def _leaf(op: Operation, name: str) -> Leaf:
    """A plain allocation, or a view of one, as an array of buffers; `name` is for one that has none."""
    value = op.results[0]
    type_ = memdesc_type(value.type)
    name = value.name_hint or name
    if isinstance(type_.memory_space, TensorMemorySpaceAttr):
        count = type_.shape[0] if len(type_.shape) > 2 else 1
        return Leaf(0, name, count, columns_of(type_) // count, 1)
    layout = layout_of(type_.encoding)
    alignment = STOCK_ALIGNMENT
    count, factor = type_.shape[0], 1
    if isinstance(layout, SharedLayout):
        factor = padding_factor(layout)
        alignment = required_alignment(layout, type_.element_bits)
        # A tile, and not an array of them.
        count = 1 if buffer_rank(layout) == len(type_.shape) else count
    return Leaf(0, name, count, type_.bytes_of_trailing(len(type_.shape)) * factor // count, alignment)


def _type_text(type_: MemDescType, count: int) -> str:
    shape = type_.shape[1:] if type_.shape[:1] == (count,) else type_.shape
    return "x".join([*map(str, shape), str(type_.element_type)])


def _views(allocation: LocalAllocOp | TMEMAllocOp) -> list[Operation]:
    """Operations that lowering makes of the arrays of a shared region; none for an allocation that is its own array."""
    if memdesc_type(allocation.result.type).element_type not in (i8, i32):
        return []
    users = [use.operation for use in allocation.result.uses]
    return users if all(isinstance(op, LocalAliasOp | MemDescReinterpretOp) for op in users) else []


def _results(ops: Sequence[Operation]) -> list[SSAValue]:
    return [result for op in ops for result in op.results]
