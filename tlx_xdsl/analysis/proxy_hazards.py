"""Missing proxy fences: writes of threads to shared memory that TMA or the tensor cores need not see.

Threads write through the generic proxy, TMA and the tensor cores access shared memory through the async proxy, which
sees a write only after a proxy fence (PTX ISA, "Async proxy"). The fence may be the writer's, after the write and
before the release that others acquire, or that of the task which starts the asynchronous operation, after its acquire.

A forward analysis follows two facts through every task: which buffers the task has written since its last fence, and
whether it has had a fence since its last acquire. A fence is missing

- before an asynchronous operation on a buffer that its own task has written since its last fence;
- before a release (an arrival, a named barrier, a flag in global memory, the begin and the end of tasks), when a buffer
  that was written since is accessed asynchronously by another task that has had no fence of its own after its acquires.

The default task goes on where the kernel has been, so the two are one. What a loop finds written and does not write
itself needs its fence only once, in front of the loop. Arrays of buffers count as a whole; of arrays that share memory
those are one that overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from tlx_xdsl.analysis.buffer_users import uses
from tlx_xdsl.analysis.carried_values import CarriedValues
from tlx_xdsl.analysis.overlap_tree import Leaf, Slot
from tlx_xdsl.analysis.storage_map import Span
from tlx_xdsl.analysis.storage_regions import storage_regions
from tlx_xdsl.analysis.storage_trees import leaf_of
from tlx_xdsl.dialects import tlx, tt, ttg
from tlx_xdsl.dialects.base.effects import Kind, OperandAccess, Space, Sync, accesses_of, sync_of
from tlx_xdsl.dialects.scf import WhileOp
from tlx_xdsl.dialects.ttg.attrs import SharedMemorySpaceAttr
from tlx_xdsl.dialects.ttg.types import MemDescType, memdesc_type

Buffers: TypeAlias = frozenset[int]
"""Arrays of buffers, by their number."""

_LOOPS = frozenset((scf.ForOp, scf.WhileOp, WhileOp))


@dataclass(frozen=True)
class _State:
    """What is known in front of an operation."""

    written: Buffers = frozenset()
    """Buffers that the task may have written since its last fence."""
    remote: Buffers = frozenset()
    """The same of other thread blocks' buffers."""
    fenced: bool = False
    """Whether the task has had a fence since its last acquire."""

    def join(self, other: _State) -> _State:
        """What holds when either may."""
        return _State(self.written | other.written, self.remote | other.remote, self.fenced and other.fenced)


def missing_fences(module: ModuleOp) -> list[Operation]:
    """The operations in front of which a proxy fence is missing, in program order.

    Raises CompilationError, located in the kernel, for an overlap tree that can't be laid out.
    """
    neighbours = _neighbours(module)
    return [op for func in module.walk() if isinstance(func, tt.FuncOp) for op in _missing_in(func, neighbours)]


def _missing_in(func: tt.FuncOp, neighbours: Mapping[Operation, set[Operation]]) -> list[Operation]:
    analysis = _Analysis(func, neighbours)
    analysis.run()
    analysis.places = True
    count = -1
    while count != len(analysis.missing):
        # A fence that was found missing changes what is known behind it; there are only more of them.
        count = len(analysis.missing)
        analysis.run()
    return [op for op in func.walk() if op in analysis.missing]


@dataclass
class _Analysis:
    func: tt.FuncOp
    neighbours: Mapping[Operation, set[Operation]]
    places: bool = False
    """Whether fences are placed, or what tasks do without one is only collected."""
    missing: set[Operation] = field(default_factory=set[Operation])
    unfenced: dict[int, set[int]] = field(default_factory=lambda: {0: set[int]()})
    """Buffers that each task accesses asynchronously without a fence after its acquires; 0 is the default task."""
    task: int = 0
    buffers: dict[Operation, dict[SSAValue, Buffers]] = field(default_factory=dict[Operation, dict[SSAValue, Buffers]])
    """The buffers of each value of an operation, and what overlaps them."""

    def __post_init__(self) -> None:
        allocations = [op for op in self.func.walk() if _is_shared_array(op)]
        numbers = {op: number for number, op in enumerate(allocations)}
        carried = CarriedValues.of(self.func, MemDescType)
        for op, number in numbers.items():
            # An access of a buffer is one of all that lie at the same place.
            met = frozenset(numbers[other] for other in self.neighbours.get(op, ()) if other in numbers) | {number}
            found = [(use.operation, use.operation.operands[use.index]) for use in uses(op.results[0], carried)]
            for user, value in (op, op.results[0]), *found:
                known = self.buffers.setdefault(user, {})
                known[value] = known.get(value, frozenset()) | met

    def run(self) -> None:
        """Go through the function once, to a fixed point in its loops."""
        self.task = 0
        self._region(self.func.body, _State())

    # --- operations -------------------------------------------------------------------------------------------------

    def _block(self, block: Block, state: _State) -> _State:
        for op in block.ops:
            state = self._op(op, state)
        return state

    def _op(self, op: Operation, state: _State) -> _State:
        if op in self.missing or (self.places and self._misses(op, state)):
            self.missing.add(op)
            state = _State(fenced=True)
        if not state.fenced:
            self.unfenced[self.task].update(self._accessed(op, _is_async))
        state = replace(
            state,
            written=state.written | self._accessed(op, _is_write),
            remote=state.remote | self._accessed(op, _is_remote_write),
        )
        if Sync.FENCE_PROXY in sync_of(op):
            state = _State(fenced=True)
        elif op.regions:
            state = self._inside(op, state)
        # Tasks have waited for the begin and the end of one another.
        acquires = Sync.ACQUIRE in sync_of(op) or isinstance(op, ttg.WarpSpecializeOp)
        return replace(state, fenced=False) if acquires else state

    def _accessed(self, op: Operation, wanted: Callable[[OperandAccess], bool]) -> Buffers:
        """The buffers that an operation accesses in the way that is `wanted`."""
        known = self.buffers.get(op)
        if known is None:
            return frozenset()
        found = (known.get(access.value, frozenset[int]()) for access in accesses_of(op) or () if wanted(access))
        return frozenset[int]().union(*found)

    def _misses(self, op: Operation, state: _State) -> bool:
        """Whether a fence is missing in front of `op`."""
        if accesses_of(op) is None:
            # Functions and PTX may access their buffers through any proxy.
            accessed = frozenset[int]().union(*self.buffers.get(op, {}).values())
        else:
            accessed = self._accessed(op, _is_async)
        if state.written & accessed:
            return True
        if isinstance(op, ttg.WarpSpecializeOp):
            return bool(state.written & self._waited_for(op))
        if Sync.RELEASE in sync_of(op) or isinstance(op, ttg.WarpReturnOp):
            own = self.unfenced[self.task]
            others = {number for task, found in self.unfenced.items() if task != self.task for number in found}
            return bool(state.written & others or state.remote & (others | own))
        if type(op) in _LOOPS:
            return self._misses_for_loop(op, state)
        return False

    def _waited_for(self, op: ttg.WarpSpecializeOp) -> set[int]:
        """Buffers that the partitions access without a fence."""
        return {number for task in self._partitions(op) for number in self.unfenced.get(task, ())}

    def _misses_for_loop(self, loop: Operation, state: _State) -> bool:
        """Whether the loop needs a fence for what it finds written, and does not write itself."""
        inside = [op for op in loop.walk() if op is not loop]
        if not state.written or any(Sync.FENCE_PROXY in sync_of(op) for op in inside):
            return False
        written = {number for op in inside for number in self._accessed(op, _is_write)}
        before = replace(state, written=state.written - written, remote=frozenset())
        return any(self._misses(op, before) for op in inside)

    # --- control flow -----------------------------------------------------------------------------------------------

    def _inside(self, op: Operation, state: _State) -> _State:
        match op:
            case scf.IfOp():
                ends = [self._region(region, state) if region.blocks else state for region in op.regions]
                return ends[0].join(ends[1])
            case scf.ForOp():
                return self._loop(state, [op.body])
            case scf.WhileOp() | WhileOp():
                return self._loop(state, [op.before_region, op.after_region])
            case scf.ExecuteRegionOp():
                return self._region(op.region, state)
            case ttg.WarpSpecializeOp():
                return self._tasks(op, state)
            case _:
                # Scalar code for each element: it has no buffers.
                return state

    def _loop(self, state: _State, regions: Sequence[Region]) -> _State:
        """Behind a loop that runs its regions in turn, and may end behind the first one, or before."""
        while True:
            end = state
            ends = [end := self._region(region, end) for region in regions]
            joined = state.join(ends[-1])
            if joined == state:
                # A `for` may end without a turn; a `while` ends behind its condition.
                return state if len(regions) == 1 else ends[0]
            state = joined

    def _tasks(self, op: ttg.WarpSpecializeOp, state: _State) -> _State:
        outer = self.task
        for task, region in zip(self._partitions(op), op.partitions.partition_regions, strict=True):
            self.task = task
            self.unfenced.setdefault(task, set())
            self._region(region, _State())
        self.task = outer
        return self._region(op.default_region, state)

    def _partitions(self, op: ttg.WarpSpecializeOp) -> range:
        """The numbers of the partitions, which several operations that follow each other share."""
        return range(1, 1 + len(op.partitions.partition_regions))

    def _region(self, region: Region, state: _State) -> _State:
        """Behind the blocks that leave the region."""
        if len(region.blocks) == 1:
            return self._block(region.block, state)
        entries: dict[Block, _State] = {region.blocks[0]: state}
        pending, left = [region.blocks[0]], list[_State]()
        while pending:
            block = pending.pop()
            end = self._block(block, entries[block])
            successors = block.last_op.successors if block.last_op is not None else ()
            if not successors:
                left.append(end)
            for target in successors:
                known = entries.get(target)
                joined = end if known is None else known.join(end)
                if joined != known:
                    entries[target] = joined
                    pending.append(target)
        result = left[0]
        for end in left[1:]:
            result = result.join(end)
        return result


def _is_shared_array(op: Operation) -> bool:
    if type(op) is not ttg.LocalAllocOp and type(op) is not tlx.StorageAliasLocalAllocOp:
        return False
    assert isinstance(op, ttg.LocalAllocOp | tlx.StorageAliasLocalAllocOp)
    return isinstance(memdesc_type(op.result.type).memory_space, SharedMemorySpaceAttr)


def _is_async(access: OperandAccess) -> bool:
    return access.is_async and bool(access.kind & (Kind.READ | Kind.WRITE))


def _is_write(access: OperandAccess) -> bool:
    """A write that needs a fence: what `cp.async` writes needs none, stock Triton puts none there."""
    return access.space is Space.SHARED and _writes(access)


def _is_remote_write(access: OperandAccess) -> bool:
    return access.space is Space.CLUSTER and _writes(access)


def _writes(access: OperandAccess) -> bool:
    return Kind.WRITE in access.kind and not access.is_async and access.completes_on is None


def _neighbours(module: ModuleOp) -> dict[Operation, set[Operation]]:
    """For each array in a shared region, those that it overlaps, itself among them.

    Raises CompilationError, located in the kernel, for an overlap tree that can't be laid out.
    """
    found: dict[Operation, set[Operation]] = {}
    for region in storage_regions(module):
        if region.in_tensor_memory or not region.allocations:
            continue
        slots = region.place(strict=False).slots
        arrays = [(op, _spans(leaf_of(number, op), slots[number])) for number, op in enumerate(region.allocations)]
        for op, spans in arrays:
            found[op] = {other for other, others in arrays if _meet(spans, others)}
    return found


def _spans(leaf: Leaf, slot: Slot) -> list[Span]:
    """Where the buffers of an array lie in their region."""
    starts = (
        i // slot.group_size * slot.stride + slot.offset + i % slot.group_size * leaf.unit for i in range(leaf.count)
    )
    return [Span(start, start + leaf.unit) for start in starts]


def _meet(spans: Sequence[Span], others: Sequence[Span]) -> bool:
    return any(a.start < b.end and b.start < a.end for a in spans for b in others)
