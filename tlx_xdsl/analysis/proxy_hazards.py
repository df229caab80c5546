"""Missing proxy fences: writes of threads to shared memory that TMA or the tensor cores need not see.

Threads write through the generic proxy, TMA and the tensor cores access shared memory through the async proxy, which
sees a write only after a proxy fence (PTX ISA, "Async proxy"). The fence may be the writer's, after the write and
before the release that others acquire, or that of the task which starts the asynchronous operation, after its acquire.

A forward analysis follows two facts through every task: which buffers the task has written since its last fence, and
whether it has had a fence since its last acquire. A fence is missing

- before an asynchronous operation on a buffer that its own task has written since its last fence; `cp.async` writes
  when the task waits for it;
- before an asynchronous operation, without a fence after the acquire, on a buffer whose `cp.async` arrives at an
  mbarrier by itself: no fence of the writer comes in between;
- before a release (an arrival, a named barrier, a flag in global memory, the begin and the end of tasks), when a buffer
  that was written since is accessed asynchronously by another task that has had no fence of its own after its acquires.

The default task goes on where the kernel has been, so the two are one. What a loop finds written and does not write
itself needs its fence only once, before the loop. Arrays of buffers count as a whole; of arrays that share memory
those are one that overlap.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TypeAlias

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects import tlx, tt, ttg
from tlx_xdsl.dialects.base import (
    Group,
    Kind,
    OperandAccess,
    Space,
    Sync,
    accesses_of,
    effects_of,
    sync_of,
)
from tlx_xdsl.dialects.regions import SCALAR_CODE, Edge, Edges

from .buffer_users import uses
from .dataflow import Arrivals, ForwardWalk
from .storage_map import Span, spans
from .storage_regions import storage_regions
from .storage_trees import leaf_of
from .value_classes import ValueClasses

Buffers: TypeAlias = frozenset[int]
"""Arrays of buffers, by their number."""


@dataclass(frozen=True)
class _State:
    """The facts that hold before an operation."""

    task: int = 0
    """The number of the task; 0 is the default task, others are shared by operations that follow each other."""
    written: Buffers = frozenset()
    """Buffers that the task may have written since its last fence."""
    remote: Buffers = frozenset()
    """The same of other thread blocks' buffers."""
    copied: Buffers = frozenset()
    """Buffers that the task's `cp.async` may still write."""
    fenced: bool = False
    """True if the task has had a fence since its last acquire."""

    def join(self, other: _State) -> _State:
        """Join two states, either of which may hold."""
        fenced, copied = self.fenced and other.fenced, self.copied | other.copied
        return _State(self.task, self.written | other.written, self.remote | other.remote, copied, fenced)


def missing_fences(module: ModuleOp) -> list[Operation]:
    """The operations before which a proxy fence is missing, in program order.

    Raises CompilationError, located in the kernel, for an overlap tree that can't be laid out.
    """
    neighbours = _neighbours(module)
    return [op for func in module.walk() if isinstance(func, tt.FuncOp) for op in _missing_in(func, neighbours)]


def _missing_in(func: tt.FuncOp, neighbours: Mapping[Operation, set[Operation]]) -> list[Operation]:
    analysis = _Analysis(func, neighbours)
    analysis.run(func, _State())
    analysis.places = True
    count = -1
    while count != len(analysis.missing):
        # A fence that was found missing changes what is known after it; there are only more of them.
        count = len(analysis.missing)
        analysis.run(func, _State())
    return [op for op in func.walk() if op in analysis.missing]


@dataclass
class _Analysis(ForwardWalk[_State]):
    func: tt.FuncOp
    neighbours: Mapping[Operation, set[Operation]]
    places: bool = False
    """True if fences are placed; False while the accesses of tasks without one are only collected."""
    missing: set[Operation] = field(default_factory=set[Operation])
    unfenced: defaultdict[int, set[int]] = field(default_factory=lambda: defaultdict(set[int]))
    """Buffers that each task accesses asynchronously without a fence after its acquires."""
    arriving: set[int] = field(default_factory=set[int])
    """Buffers whose `cp.async` arrives at an mbarrier by itself."""
    buffers: dict[Operation, dict[SSAValue, Buffers]] = field(default_factory=dict[Operation, dict[SSAValue, Buffers]])
    """The buffers of each value of an operation, and what overlaps them."""

    def __post_init__(self) -> None:
        allocations = [op for op in self.func.walk() if _is_shared_array(op)]
        numbers = {op: number for number, op in enumerate(allocations)}
        classes = ValueClasses.of(self.func, ttg.MemDescType)
        for op, number in numbers.items():
            # An access of a buffer is one of all that lie at the same place.
            met = frozenset(numbers[other] for other in self.neighbours.get(op, ()) if other in numbers) | {number}
            found = [(use.operation, use.operation.operands[use.index]) for use in uses(op.results[0], classes)]
            for user, value in (op, op.results[0]), *found:
                known = self.buffers.setdefault(user, {})
                known[value] = known.get(value, frozenset()) | met

    def transfer(self, op: Operation, state: _State) -> _State:
        """Note what `op` accesses, after the fence that it may need."""
        if op in self.missing or (self.places and self._misses(op, state)):
            self.missing.add(op)
            state = _State(state.task, copied=state.copied, fenced=True)
        if not state.fenced:
            self.unfenced[state.task].update(self._accessed(op, _is_async))
        sync = sync_of(op)
        if Sync.FENCE_PROXY in sync:
            state = _State(state.task, copied=state.copied, fenced=True)
        elif effects_of(op).ends is Group.CP_ASYNC:
            if any(Kind.ARRIVE in access.kind for access in accesses_of(op) or ()):
                self.arriving.update(state.copied)
            else:
                state = replace(state, written=state.written | state.copied)
        elif op in self.buffers:
            written = state.written | self._accessed(op, _is_write)
            remote, copied = self._accessed(op, _is_remote_write), self._accessed(op, _is_copy)
            state = replace(state, written=written, remote=state.remote | remote, copied=state.copied | copied)
        return replace(state, fenced=False) if Sync.ACQUIRE in sync else state

    def join(self, arrivals: Arrivals[_State]) -> _State:
        """Begin a task, or take what holds on some edge."""
        edge, _ = arrivals[0]
        if isinstance(edge.source, ttg.WarpSpecializePartitionsOp):
            regions = edge.source.partition_regions
            return _State(next(task for task, region in enumerate(regions, 1) if region.blocks[0] is edge.target))
        joined = reduce(_State.join, (state for _, state in arrivals))
        # Tasks have waited for the begin and the end of one another.
        return replace(joined, fenced=False) if isinstance(edge.target, ttg.WarpSpecializeOp) else joined

    def edges(self, op: Operation) -> Edges | None:
        """Go past scalar code for each element: it has no buffers."""
        return (Edge(op, op),) if isinstance(op, SCALAR_CODE) else super().edges(op)

    def _accessed(self, op: Operation, wanted: Callable[[OperandAccess], bool]) -> Buffers:
        """The buffers that an operation accesses in the way that is `wanted`."""
        known = self.buffers.get(op)
        if known is None:
            return frozenset()
        found = (known.get(access.value, frozenset[int]()) for access in accesses_of(op) or () if wanted(access))
        return frozenset[int]().union(*found)

    def _misses(self, op: Operation, state: _State) -> bool:
        """True if a fence is missing before `op`."""
        if accesses_of(op) is None:
            # Functions and PTX may access their buffers through any proxy.
            accessed = frozenset[int]().union(*self.buffers.get(op, {}).values())
        else:
            accessed = self._accessed(op, _is_async)
        if state.written & accessed or (not state.fenced and self.arriving & accessed):
            return True
        if isinstance(op, ttg.WarpSpecializeOp):
            partitions = range(1, 1 + len(op.partitions.partition_regions))
            return any(state.written & self.unfenced[task] for task in partitions)
        if Sync.RELEASE in sync_of(op) or isinstance(op, ttg.WarpReturnOp):
            own = self.unfenced[state.task]
            others = {number for task, found in self.unfenced.items() if task != state.task for number in found}
            return bool(state.written & others or state.remote & (others | own))
        if isinstance(op, scf.ForOp | scf.WhileOp):
            return self._misses_for_loop(op, state)
        return False

    def _misses_for_loop(self, loop: Operation, state: _State) -> bool:
        """True if the loop needs a fence for what it finds written, and does not write itself."""
        inside = [op for op in loop.walk() if op is not loop]
        if not state.written or any(Sync.FENCE_PROXY in sync_of(op) for op in inside):
            return False
        written = {number for op in inside for number in self._accessed(op, _is_write)}
        before = replace(state, written=state.written - written, remote=frozenset())
        return any(self._misses(op, before) for op in inside)


def _is_shared_array(op: Operation) -> bool:
    return isinstance(op, ttg.LocalAllocOp | tlx.StorageAliasLocalAllocOp) and isinstance(
        ttg.memdesc_type(op.result.type).memory_space, ttg.SharedMemorySpaceAttr
    )


def _is_async(access: OperandAccess) -> bool:
    return access.is_async and bool(access.kind & (Kind.READ | Kind.WRITE))


def _is_copy(access: OperandAccess) -> bool:
    """A write by `cp.async`, which goes through the proxy of the threads (PTX ISA, "cp.async")."""
    return access.space is Space.SHARED and Kind.WRITE in access.kind and access.completes_on is Group.CP_ASYNC


def _is_write(access: OperandAccess) -> bool:
    """A write that is over with its operation, and needs a fence."""
    return access.space is Space.SHARED and _writes(access)


def _is_remote_write(access: OperandAccess) -> bool:
    return access.space is Space.CLUSTER and _writes(access)


def _writes(access: OperandAccess) -> bool:
    return Kind.WRITE in access.kind and not access.is_async and access.completes_on is None


def _neighbours(module: ModuleOp) -> dict[Operation, set[Operation]]:
    """Return the arrays in a shared region that each one overlaps, itself among them.

    Raises CompilationError, located in the kernel, for an overlap tree that can't be laid out.
    """
    found: dict[Operation, set[Operation]] = {}
    for region in storage_regions(module):
        if region.in_tensor_memory or not region.allocations:
            continue
        slots = region.place(strict=False).slots
        arrays = [(op, spans(leaf_of(number, op), slots[number])) for number, op in enumerate(region.allocations)]
        for op, mine in arrays:
            found[op] = {other for other, others in arrays if _meet(mine, others)}
    return found


def _meet(some: Sequence[Span], others: Sequence[Span]) -> bool:
    return any(a.start < b.end and b.start < a.end for a in some for b in others)
