"""Releases by arrivals at other CTAs' mbarriers: as little as the kernel's accesses to memory allow.

An arrival signals completion to other threads. Nothing has to be released of an asynchronous operation that was waited
for: its reads have returned and its writes are in memory, so that nothing that comes later in time can change
the ones or miss the others. Accesses of the threads may still be under way when the next instruction is issued, and a
release is what orders them before the arrival. The function's accesses decide which of them matter to whom:

- Global memory that threads write, and other CTAs' shared memory that threads store to: all must be released to the
  cluster. Of global memory a write matters, since another CTA may read or write the same, and a read where there are
  writes. What TMA does there counts for nothing but an asynchronous operation: between it and accesses of threads it
  takes a proxy fence for global memory (PTX ISA, "Async proxy"), which no operation of TLX is.
- Shared memory of the own CTA that other CTAs access: by copies and stores to there, by TMA loads for several CTAs, by
  requests of cluster launch control, by MMAs of pairs of CTAs. Releasing accesses to the own shared memory is
  enough. The same holds for a buffer that several tasks access, since one of them may be ordered after the
  other one's access by way of another CTA.
- All else matters to the own CTA at most, whose threads may wait for the same barrier.

The waits acquire in turn, what the threads of other CTAs have released as well as their asynchronous stores.

An access matters only where a release of the task may follow it. What the analysis does not know, calls and
code of the user's among it, may access anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import UnrealizedConversionCastOp
from xdsl.ir import Block, Operation, SSAValue, Use

from tlx_xdsl.dialects import scf, tlx, tt, ttg, ttng
from tlx_xdsl.dialects.base import Kind, Space, Sync, accesses_of, space_of, sync_of

from .buffer_users import KERNEL, task_of, uses
from .value_classes import ValueClasses


@dataclass(frozen=True)
class RemoteReleases:
    """Releases by a function's arrivals at other CTAs' mbarriers, and the waits that must acquire from other CTAs."""

    releases: tlx.Releases
    acquires: Sequence[ttng.WaitBarrierOp] = ()
    """Waits after which global memory may be read that another CTA has written: what is cached of it is out of date,
    since a wait acquires from the own CTA only (PTX ISA, "mbarrier.try_wait", `.scope`)."""
    shared_acquires: Sequence[ttng.WaitBarrierOp] = ()
    """Other waits, after which accesses of other CTAs' threads to shared memory have to be acquired."""


def remote_releases(func: tt.FuncOp) -> RemoteReleases:
    """The releases that the arrivals of a function require, from its operations in the terms of TLX.

    The function is one of a module with such arrivals, or with asynchronous stores to other CTAs.
    """
    ops = [op for op in func.walk() if op is not func]
    classes = ValueClasses.of(func, ttg.MemDescType)
    buffers, signals = _Buffers.of(ops, classes), _Signals.of(ops)
    # What the callers of a function have done is not known.
    if not func.is_kernel or any(_is_opaque(op, classes) for op in ops) or _hands_over_global_memory(ops, signals):
        acquires = buffers.waits_for_others(ops, tlx.ArriveRemoteOp)
        stored = buffers.waits_for_others(ops, tlx.AsyncRemoteStoreOp)
        return RemoteReleases(tlx.Releases.CLUSTER, acquires, [op for op in stored if op not in acquires])
    acquires = buffers.waits_for_others(ops, tlx.ArriveRemoteOp, tlx.AsyncRemoteStoreOp)
    if any(_accesses(op, Space.CLUSTER) and signals.follow(op) for op in ops):
        return RemoteReleases(tlx.Releases.CLUSTER, (), acquires)
    if any(_accesses(op, Space.SHARED) and buffers.is_seen(op) and signals.follow(op) for op in ops):
        return RemoteReleases(tlx.Releases.SHARED, (), acquires)
    return RemoteReleases(tlx.Releases.CTA, (), buffers.waits_for_others(ops, tlx.AsyncRemoteStoreOp))


def _accesses(op: Operation, space: Space, kind: Kind = Kind.READ | Kind.WRITE) -> bool:
    """True if the threads access memory of a space before they issue the next instruction.

    `cp.async` belongs to their proxy (PTX ISA, "cp.async"); `st.async` counts for its mbarrier.
    """
    return any(
        access.space is space
        and access.kind & kind
        and not access.is_async
        and not isinstance(access.completes_on, str)
        for access in accesses_of(op) or ()
    )


def _signals(op: Operation) -> bool:
    """True if it may signal all that the task has done: by a release, or by a flag with a fence before it.

    The barrier of the cluster needs no help: it releases to the cluster itself (PTX ISA, "barrier.cluster").
    """
    sync, flag = sync_of(op), Kind.WRITE | Kind.ATOMIC
    is_flag = any(access.space is Space.GLOBAL and flag in access.kind for access in accesses_of(op) or ())
    return (Sync.RELEASE in sync and Sync.CLUSTER not in sync) or (is_flag and "sem" in op.properties)


def _is_opaque(op: Operation, classes: ValueClasses) -> bool:
    """True if an operation may do anything: code of the user's, calls, fences for who else orders memory."""
    if isinstance(op, UnrealizedConversionCastOp):
        # Whoever has the address may access the buffer.
        return any(isinstance(value.type, ttg.MemDescType) for value in op.operands)
    # A fence is there for flags that the analysis does not follow.
    return op not in classes.forwarding and (accesses_of(op) is None or Sync.FENCE | Sync.RELEASE in sync_of(op))


def _hands_over_global_memory(ops: Sequence[Operation], signals: _Signals) -> bool:
    """True if a release may follow an access of the threads that must come before another one."""
    writes = any(_accesses(op, Space.GLOBAL, Kind.WRITE) for op in ops)
    return writes and any(_accesses(op, Space.GLOBAL) and signals.follow(op) for op in ops)


@dataclass(frozen=True)
class _Signals:
    """The operations of a function after which others may know of what its tasks have done."""

    signals: set[Operation]
    """These operations, and those whose regions they are in."""
    last: dict[Block, int]
    """The number of the last of these in a block."""
    numbers: dict[Operation, int]
    """Of all operations, in program order."""

    @classmethod
    def of(cls, ops: Sequence[Operation]) -> _Signals:
        """Look through the operations of a function, which stand in program order."""
        numbers = {op: number for number, op in enumerate(ops)}
        signals: set[Operation] = set()
        for op in ops:
            current: Operation | None = op if _signals(op) else None
            while current is not None and current not in signals:
                signals.add(current)
                current = current.parent_op()
        last: dict[Block, int] = {}
        for op in ops:
            if op in signals and (block := op.parent_block()) is not None:
                last[block] = numbers[op]
        return cls(signals, last, numbers)

    def follow(self, op: Operation) -> bool:
        """True if one of them may come after `op` in its task."""
        child = op
        while (number := self.numbers.get(child)) is not None:
            parent, region, block = child.parent_op(), child.parent_region(), child.parent_block()
            assert parent is not None and region is not None and block is not None
            if isinstance(parent, scf.LOOPS) or len(region.blocks) > 1:
                # All of it may run after each part of it.
                if parent in self.signals:
                    return True
            elif self.last.get(block, -1) > number:
                return True
            child = parent
        return False


@dataclass(frozen=True)
class _Buffers:
    """The operations that reach each array of buffers in shared memory."""

    shared_out: dict[Operation, bool]
    """By what allocates it: whether other CTAs access it, or several tasks."""
    arrays: dict[Operation, list[Operation]]
    """The arrays that an operation uses."""

    @classmethod
    def of(cls, ops: Sequence[Operation], classes: ValueClasses) -> _Buffers:
        """The arrays that a function allocates."""
        shared_out: dict[Operation, bool] = {}
        arrays: dict[Operation, list[Operation]] = {}
        for op in ops:
            if isinstance(op, ttg.LocalAllocOp) and _is_shared(op.result):
                found = uses(op.result, classes)
                tasks = {task_of(use.operation) for use in found} - {KERNEL}
                shared_out[op] = len(tasks) > 1 or any(_is_for_other_ctas(use) for use in found)
                for user in dict.fromkeys(use.operation for use in found):
                    arrays.setdefault(user, []).append(op)
        return cls(shared_out, arrays)

    def is_seen(self, op: Operation) -> bool:
        """True if an access of the threads is one of memory that other CTAs access, or several tasks do."""
        if isinstance(op, ttg.LocalAllocOp):
            return op.src is not None and self.shared_out.get(op, True)
        arrays = self.arrays.get(op)
        return arrays is None or any(self.shared_out[array] for array in arrays)

    def waits_for_others(self, ops: Sequence[Operation], *by: type[Operation]) -> list[ttng.WaitBarrierOp]:
        """The waits at barriers that other CTAs may arrive at by operations of some classes."""
        arrays = [self.arrays.get(op, []) for op in ops if isinstance(op, by)]
        remote = {array for found in arrays for array in found}
        # Whom a function that is called arrives for is not known here.
        unknown = not all(arrays) or any(isinstance(op, tt.CallOp) for op in ops)
        waits = [op for op in ops if isinstance(op, ttng.WaitBarrierOp)]
        return [op for op in waits if unknown or not (own := self.arrays.get(op)) or not remote.isdisjoint(own)]


def _is_shared(buffer: SSAValue) -> bool:
    return isinstance(ttg.memdesc_type(buffer.type).memory_space, ttg.SharedMemorySpaceAttr)


def _is_for_other_ctas(use: Use) -> bool:
    """True if a use of a buffer concerns other CTAs' copies of it, or is theirs."""
    op, value = use.operation, use.operation.operands[use.index]
    found = [access for access in accesses_of(op) or () if access.value is value]
    return space_of(value.type) is Space.CLUSTER or any(access.cluster for access in found)
