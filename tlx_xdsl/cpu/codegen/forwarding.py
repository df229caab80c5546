"""Forwarding of loads: what reads a loaded tile reads the memory that it was loaded from, without a copy.

A load is a buffer that is filled with the value of masked elements, if there is one, and a copy of the box that the
mask leaves. Where all that reads the buffer are loop nests after the copy, in its block, and nothing in between may
write memory that is not the program's own, they read the box themselves: an element outside of it is the value that
would have been filled in. A nest that writes such memory itself may do so, too: `overlap.py` checks when it runs that
the two do not overlap, or are one box.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.dialects import affine, arith, math, memref as upstream
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from tlx_xdsl.dialects import linalg, memref

FEW = "nest.few"
"""The attribute of a loop nest that mostly has few iterations, which lie at the edge of something."""
PURE = frozenset(op.name for op in (*arith.Arith.operations, *math.Math.operations))
"""Operations that only compute."""
VIEWS = frozenset(
    {"memref.subview", "memref.reinterpret_cast", "memref.expand_shape", "memref.collapse_shape", "memref.cast"}
)
_SAME_MEMORY = VIEWS | {"arith.select", "builtin.unrealized_conversion_cast"}
"""Operations whose result is memory that they take."""
_LOADS = frozenset({"memref.load", "affine.load", "memref.dim"})
HARMLESS = PURE | VIEWS | {"memref.alloc", "memref.load", "affine.load", "cf.assert", "linalg.yield"}
"""Operations that write nothing."""
_WRITERS = frozenset({"memref.store", "affine.store", "memref.copy", "linalg.fill", "linalg.generic", "linalg.reduce",
                      "linalg.matmul", "linalg.transpose", "linalg.broadcast", "linalg.batch_matmul"})  # fmt: skip
"""Operations that write their last operands alone."""


@dataclass
class Forwarded:
    """A load whose copy is left out."""

    copy: memref.CopyOp
    fill: linalg.FillOp | None
    box: SSAValue
    """The view of the buffer that the copy writes."""
    readers: dict[Operation, SSAValue] = field(default_factory=dict[Operation, SSAValue])
    """The nests that read it instead, and the view of the buffer that each of them names."""

    @property
    def source(self) -> SSAValue:
        """The memory that is read."""
        return self.copy.source


Read: TypeAlias = tuple[Operation, SSAValue]
"""A nest and one of its inputs."""


@dataclass
class Forwarding:
    """The loads of a function whose copies are left out."""

    skipped: set[Operation] = field(default_factory=set[Operation])
    """Fills and copies."""
    reads: dict[Read, Forwarded] = field(default_factory=dict[Read, Forwarded])


def forwarding(function: Operation) -> Forwarding:
    """Find the loads that need no copy. Each block is walked once for each load in it that may be one."""
    found = Forwarding()
    order = {op: number for number, op in enumerate(function.walk())}
    for op in order:
        if not isinstance(op, memref.CopyOp) or (load := _load_of(op)) is None:
            continue
        if is_read := _find_readers(load, order):
            found.skipped.add(op)
            for reader, view in load.readers.items():
                found.reads[reader, view] = load
        if load.fill is not None and (is_read or _is_only_box(load, order)):
            found.skipped.add(load.fill)
    return found


def buffer_of(value: SSAValue) -> SSAValue | None:
    """The allocation that a view is of; None for other memory."""
    while isinstance(owner := value.owner, Operation):
        if isinstance(owner, upstream.AllocOp):
            return value
        if owner.name not in VIEWS:
            return None
        value = owner.operands[0]
    return None


def is_only_read(memory: SSAValue) -> bool:
    """Return whether memory, and every view of it, is used by nothing but what reads it."""
    for use in memory.uses:
        op = use.operation
        inputs = len(op.inputs) if isinstance(op, LinalgStructuredOperation) else int(isinstance(op, memref.CopyOp))
        if op.name in _LOADS or use.index < inputs:
            continue
        if op.name not in _SAME_MEMORY or not all(map(is_only_read, op.results)):
            return False
    return memref.is_memref(memory.type)


def _load_of(copy: memref.CopyOp) -> Forwarded | None:
    """The load that a copy belongs to, if it is that of a box of a buffer from other memory."""
    buffer = buffer_of(copy.target)
    if buffer is None or buffer_of(copy.source) is not None or not _is_box(copy.target, buffer):
        return None
    fills = [
        use.operation for view in views_of(buffer) for use in view.uses if isinstance(use.operation, linalg.FillOp)
    ]
    if len(fills) > 1 or any(fill.parent is not copy.parent for fill in fills):
        return None
    if fills and (memref.is_memref(fills[0].inputs[0].type) or not _is_corner(fills[0].outputs[0], buffer)):
        return None
    return Forwarded(copy, fills[0] if fills else None, copy.target)


def _is_box(view: SSAValue, buffer: SSAValue) -> bool:
    """Return whether a view is the buffer, or a box of it with as many dimensions."""
    owner = view.owner
    return view is buffer or (
        isinstance(owner, upstream.SubviewOp)
        and owner.source is buffer
        and set(owner.static_strides.get_values()) <= {1}
        and len(memref.sizes_of(view.type)) == len(memref.sizes_of(buffer.type))
    )


def _is_corner(view: SSAValue, buffer: SSAValue) -> bool:
    """Return whether a view is the buffer, or a box that begins where it begins."""
    owner = view.owner
    if view is buffer or not isinstance(owner, upstream.SubviewOp):
        return view is buffer
    return _is_box(view, buffer) and set(owner.static_offsets.get_values()) <= {0}


def _find_readers(load: Forwarded, order: Mapping[Operation, int]) -> bool:
    """Find what reads a load; False if something reads it that cannot do without the copy."""
    buffer = buffer_of(load.box)
    assert buffer is not None
    users = {use.operation: view for view in views_of(buffer) for use in view.uses if use.operation.name not in VIEWS}
    waiting = set(users) - {load.copy} - ({load.fill} if load.fill is not None else set())
    block = load.copy.parent
    assert block is not None
    if load.fill is not None and order[load.fill] > order[load.copy]:
        return False
    around: set[Operation] = set()
    """What has users inside of it, which read the buffer in their own way."""
    for user in waiting:
        # What another operation has written before the copy, or writes in a turn before, is no part of the load.
        place = block.find_ancestor_op_in_block(user)
        if place is None or order[place] < order[load.copy]:
            return False
        if place is not user:
            around.add(place)
    op: Operation | None = load.copy
    while waiting and (op := op.next_op) is not None:
        if op in around:
            return False
        if op in waiting:
            waiting.discard(op)
            view = users[op]
            if not isinstance(op, linalg.GenericOp | linalg.ReduceOp) or not _may_read(load, op, view, buffer):
                return False
            load.readers[op] = view
            if any(buffer_of(output) is buffer for output in op.outputs):
                # From here on the buffer holds what this nest has written: those after it read that.
                return _overwrites(op, buffer)
        if waiting and may_write(op):
            return False
    return not waiting


def _is_only_box(load: Forwarded, order: Mapping[Operation, int]) -> bool:
    """Return whether nothing but what the copy writes is ever read of the buffer, after it."""
    buffer, block = buffer_of(load.box), load.copy.parent
    assert buffer is not None
    assert block is not None
    for view in views_of(buffer):
        for op in {use.operation for use in view.uses if use.operation.name not in VIEWS} - {load.copy, load.fill}:
            place = block.find_ancestor_op_in_block(op)
            if place is None or order[place] < order[load.copy] or not _same_box(view, load.box):
                return False
            if not _is_corner(view, buffer):
                return False
    return _is_corner(load.box, buffer)


def views_of(buffer: SSAValue) -> Iterator[SSAValue]:
    """The buffer, and all views of it."""
    yield buffer
    for use in buffer.uses:
        if use.operation.name in VIEWS:
            for result in use.operation.results:
                yield from views_of(result)


def _may_read(load: Forwarded, op: linalg.GenericOp | linalg.ReduceOp, view: SSAValue, buffer: SSAValue) -> bool:
    """Return whether a nest reads the buffer, or a box of it, by one input, indexed by dimensions of the nest alone."""
    places = [number for number, value in enumerate(op.inputs) if buffer_of(value) is buffer]
    if not is_pure_inside(op) or len(places) != 1 or op.inputs[places[0]] is not view or not _is_corner(view, buffer):
        return False
    maps = [attribute.data for attribute in op.get_indexing_maps()]
    results = maps[places[0]].results
    if not all(isinstance(each, AffineDimExpr) for each in results) or len(set(results)) != len(results):
        return False
    whole_box = _is_corner(load.box, buffer) and _same_box(view, load.box)
    known = buffer if load.fill is None else load.fill.outputs[0]
    if not whole_box and not _same_box(view, known):
        return False
    writes_out = any(buffer_of(output) is None for output in op.outputs)
    return not writes_out or (whole_box and all(each == results for each in _output_results(op)))


def _output_results(op: LinalgStructuredOperation) -> Sequence[Sequence[object]]:
    maps = [attribute.data for attribute in op.get_indexing_maps()]
    return [map_.results for map_ in maps[len(op.inputs) :]]


def _same_box(first: SSAValue, second: SSAValue) -> bool:
    """Return whether two boxes that begin where the buffer begins have the same sizes."""
    if first is second:
        return True
    one, other = _box_sizes(first), _box_sizes(second)
    return one == other


def _box_sizes(view: SSAValue) -> list[SSAValue | int | None]:
    owner = view.owner
    if not isinstance(owner, upstream.SubviewOp):
        return list(memref.sizes_of(view.type))
    dynamic = iter(owner.sizes)
    return [next(dynamic) if size == DYNAMIC_INDEX else size for size in owner.static_sizes.get_values()]


def _overwrites(op: linalg.GenericOp | linalg.ReduceOp, buffer: SSAValue) -> bool:
    """Return whether a nest writes all of the buffer, without a look at what it holds."""
    if any(kind.data.name != "PARALLEL" for kind in op.get_iterator_types()):
        return False
    outputs = [number for number, value in enumerate(op.outputs) if buffer_of(value) is buffer]
    maps = _output_results(op)
    return all(
        op.outputs[number] is buffer
        and not op.body.block.args[len(op.inputs) + number].uses
        and all(isinstance(each, AffineDimExpr) for each in maps[number])
        for number in outputs
    )


def may_write(op: Operation) -> bool:
    """Return whether an operation may write memory that is not the program's own."""
    if op.name in HARMLESS:
        return False
    if op.name not in _WRITERS or not is_pure_inside(op):
        return True
    targets = op.outputs if isinstance(op, LinalgStructuredOperation) else _targets(op)
    return any(memref.is_memref(value.type) and buffer_of(value) is None for value in targets)


def is_pure_inside(op: Operation) -> bool:
    """Return whether the body of a nest only computes."""
    return all(inner.name in HARMLESS or inner.name == "linalg.index" for inner in op.walk() if inner is not op)


def _targets(op: Operation) -> Sequence[SSAValue]:
    if isinstance(op, upstream.StoreOp | affine.StoreOp):
        return [op.memref]
    return [op.operands[-1]]
