"""Where threads hand what they have written in shared memory to TMA or the tensor cores, and no fence stands between.

Threads write through the generic proxy, TMA and the tensor cores access shared memory through the async proxy, which
sees a write only behind a proxy fence (PTX ISA, "Async proxy"). The fence may stand with the writer, behind the write
and in front of what tells others of it, or with who starts the asynchronous operation, behind what it has waited for.

A forward analysis follows two facts through every task: which buffers the task has written since its last fence, and
whether it has had a fence since it has last waited for others. A fence is missing

- in front of an asynchronous operation on a buffer that its own task has written since its last fence;
- in front of what tells others (an arrival, a named barrier, the begin and the end of tasks), when a buffer that was
  written since is accessed asynchronously by another task that has had no fence of its own behind its waits.

The default task goes on where the kernel has been, so the two are one. What a loop finds written and does not write
itself needs its fence only once, in front of the loop. Arrays of buffers count as a whole; of arrays that share memory
those are one that overlap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region

from tlx_xdsl.analysis.buffer_users import uses
from tlx_xdsl.analysis.carried_values import CarriedValues
from tlx_xdsl.analysis.overlap_tree import Leaf, Slot
from tlx_xdsl.analysis.storage_map import Span
from tlx_xdsl.analysis.storage_regions import storage_regions
from tlx_xdsl.analysis.storage_trees import leaf_of
from tlx_xdsl.dialects import nvvm, tlx, tt, ttg, ttng
from tlx_xdsl.dialects.scf import WhileOp
from tlx_xdsl.dialects.ttg.attrs import SharedMemorySpaceAttr
from tlx_xdsl.dialects.ttg.types import MemDescType, memdesc_type

Buffers: TypeAlias = frozenset[int]
"""Arrays of buffers, by their number."""

_WRITES = frozenset(
    (ttg.LocalStoreOp, ttg.LocalScatterOp, ttg.LocalAtomicScatterRMWOp, ttg.LocalAllocOp, tlx.RemoteStoreOp)
)
"""What writes through the generic proxy. What cp.async writes needs no fence: stock Triton puts none there."""
_ASYNC = frozenset((
    ttng.AsyncTMACopyGlobalToLocalOp, ttng.AsyncTMACopyLocalToGlobalOp, ttng.AsyncTMAReduceOp, ttng.AsyncTMAGatherOp,
    ttng.AsyncTMAScatterOp, ttng.WarpGroupDotOp, ttng.TCGen5MMAOp, ttng.TCGen5MMAScaledOp, ttng.TMEMCopyOp,
    ttng.CLCTryCancelOp, tlx.AsyncBulkLoadOp, tlx.AsyncBulkStoreOp, tlx.AsyncRemoteCopyOp, tlx.AsyncTMALoadOp,
    tlx.CLCTryCancelOp,
))  # fmt: skip
"""What accesses buffers through the async proxy; barriers among its operands are never written by threads."""
_FENCES = frozenset((ttng.FenceAsyncSharedOp, nvvm.FenceProxyOp))
_LOOPS = frozenset((scf.ForOp, scf.WhileOp, WhileOp))
_TELLS = frozenset((
    ttng.ArriveBarrierOp, ttng.BarrierExpectOp, ttng.ClusterArriveOp, ttng.ClusterBarrierOp, tlx.ArrivePerThreadOp,
    tlx.ArriveRemoteOp, tlx.NamedBarrierArriveOp, tlx.NamedBarrierWaitOp, tt.CallOp, ttg.WarpReturnOp,
))  # fmt: skip
"""What tells others of all that its task has done."""
_LEARNS = frozenset((
    ttng.WaitBarrierOp, ttng.ClusterWaitOp, ttng.ClusterBarrierOp, tlx.NamedBarrierWaitOp, tt.CallOp,
    ttg.WarpSpecializeOp,
))  # fmt: skip
"""What waits for others."""
_PTX_TELLS = ("bar.", "mbarrier.arrive", "barrier.cluster.arrive")
_PTX_LEARNS = ("bar.sync", "mbarrier.try_wait", "barrier.cluster.wait")
"""The same as PTX."""


@dataclass(frozen=True)
class _State:
    """What is known in front of an operation."""

    written: Buffers = frozenset()
    """Buffers that the task may have written since its last fence."""
    remote: Buffers = frozenset()
    """The same of other thread blocks' buffers."""
    fenced: bool = False
    """Whether the task has had a fence since it has last waited for others."""

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
    """Buffers that each task accesses asynchronously without a fence behind its waits; 0 is the default task."""
    task: int = 0
    buffers: dict[Operation, Buffers] = field(default_factory=dict[Operation, Buffers])
    """What each operation accesses, and what overlaps that."""

    def __post_init__(self) -> None:
        allocations = [op for op in self.func.walk() if _is_shared_array(op)]
        numbers = {op: number for number, op in enumerate(allocations)}
        carried = CarriedValues.of(self.func, MemDescType)
        for op, number in numbers.items():
            # An access of a buffer is one of all that lie at the same place.
            met = frozenset(numbers[other] for other in self.neighbours.get(op, ()) if other in numbers) | {number}
            for user in {op, *(use.operation for use in uses(op.results[0], carried))}:
                self.buffers[user] = self.buffers.get(user, frozenset()) | met

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
        touched = self.buffers.get(op, frozenset())
        if type(op) in _ASYNC:
            if not state.fenced:
                self.unfenced[self.task].update(touched)
        elif type(op) is tlx.RemoteStoreOp:
            state = replace(state, remote=state.remote | touched)
        elif type(op) in _WRITES and not (isinstance(op, ttg.LocalAllocOp) and op.src is None):
            state = replace(state, written=state.written | touched)
        elif _is_fence(op):
            state = _State(fenced=True)
        elif op.regions:
            state = self._inside(op, state)
        return replace(state, fenced=False) if type(op) in _LEARNS or _has_ptx(op, *_PTX_LEARNS) else state

    def _misses(self, op: Operation, state: _State) -> bool:
        """Whether a fence is missing in front of `op`."""
        # What a function does with a buffer is not known here.
        accesses = type(op) in _ASYNC or type(op) is tt.CallOp
        if accesses and state.written & self.buffers.get(op, frozenset()):
            return True
        if isinstance(op, ttg.WarpSpecializeOp):
            return bool(state.written & self._waited_for(op))
        if type(op) in _TELLS or _has_ptx(op, *_PTX_TELLS):
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
        if not state.written or any(_is_fence(op) for op in inside):
            return False
        written = {number for op in inside if type(op) in _WRITES for number in self.buffers.get(op, ())}
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


def _is_fence(op: Operation) -> bool:
    return type(op) in _FENCES or _has_ptx(op, "fence.proxy.async")


def _has_ptx(op: Operation, *texts: str) -> bool:
    return type(op) is nvvm.InlinePtxOp and any(text in op.ptx_code.data for text in texts)


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
