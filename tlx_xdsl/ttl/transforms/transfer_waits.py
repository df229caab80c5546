"""Waits of a datamovement thread for its transfers: as late as what follows allows, and no more often than needed.

A transfer that was begun is outstanding until the thread waits for it. The hardware knows one wait for all reads and
one for all writes. Before an operation that conflicts with an outstanding transfer there must be a wait; a wait while
nothing of its direction is outstanding does nothing. What may be outstanding is followed through branches and loops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from xdsl.dialects import affine, scf
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from tlx_xdsl.transforms.rewriting import insert_before, ops_of, replace

from ..analysis.core_values import CoreValues
from ..analysis.transfers import dependences_of
from ..dialects.ttl import (
    CopyOp,
    Direction,
    DMABarrierOp,
    IfDstOp,
    IfSrcOp,
    KernelOp,
    PrintOp,
    ReleaseOp,
    SemaphoreIncOp,
    SemaphoreOp,
    SemaphoreSetOp,
    TensorAccessorOp,
    ThreadReturnOp,
    WaitOp,
    acquisition_of,
)

Outstanding = dict[CopyOp, bool]
"""Transfers that may be outstanding, in the order in which they were begun, and whether more than once."""


def insert_waits(kernel: KernelOp) -> dict[CopyOp, Operation]:
    """Put a barrier wherever one is missing, and remove the waits that do nothing.

    Gives the transfers that the kernel does not wait for, each with what must not happen before.
    """
    order = _Order(kernel)
    unawaited: dict[CopyOp, Operation] = {}
    for thread in kernel.threads:
        waits = _Waits(order)
        waits.block(thread.body.block, {}, rewrite=True)
        unawaited |= waits.unawaited
    return unawaited


class _Order:
    """Conflicts of operations with outstanding transfers."""

    def __init__(self, kernel: KernelOp):
        found = dependences_of(kernel)
        self.pairs = {frozenset((each.source, each.sink)) for each in found}
        """Transfers that touch the same memory, which one of them writes."""
        self.across = {copy for each in found if not each.same_thread for copy in (each.source, each.sink)}
        """Transfers for whose end another thread of the core may have to wait."""
        copies = ops_of(kernel, CopyOp)
        tensors = Counter(_tensor_of(copy) for copy in copies)
        written = {_tensor_of(copy) for copy in copies if copy.direction is Direction.WRITE}
        self.signalled = {copy for copy in copies if (each := _tensor_of(copy)) in written and tensors[each] > 1}
        """Transfers for whose end another core may have to wait, as it touches the tensor, too."""
        self.has_signals = bool(ops_of(kernel, SemaphoreOp))

    def conflict(self, op: Operation, copy: CopyOp) -> bool:
        """Return whether `op` must not happen while `copy` is outstanding."""
        match op:
            case ThreadReturnOp():
                return True
            case ReleaseOp():
                # Another thread may take it as the signal that it can go on, and give that signal to other cores.
                signals = copy in self.across or (self.has_signals and copy in self.signalled)
                return signals or acquisition_of(copy.view).cb is op.cb
            case PrintOp(values=values):
                return copy.view in values
            case SemaphoreSetOp() | SemaphoreIncOp():
                return copy in self.across or copy in self.signalled or copy.direction is Direction.WRITE
            case CopyOp():
                return frozenset((op, copy)) in self.pairs
            case _:
                return False


def _tensor_of(copy: CopyOp) -> SSAValue | None:
    """The tensor at the far side of a copy; None for a pipe."""
    accessor = copy.far.owner
    return accessor.tensor if isinstance(accessor, TensorAccessorOp) else None


class _Waits:
    """The flow of outstanding transfers through one thread."""

    def __init__(self, order: _Order):
        self.order = order
        self.awaited: set[CopyOp] = set()
        """Transfers for which an operation needed a barrier."""
        self.unawaited: dict[CopyOp, Operation] = {}
        """Those that got one, with the first such operation."""

    def block(self, block: Block, state: Outstanding, *, rewrite: bool) -> Outstanding:
        """Return the transfers outstanding after a block that begins with `state`; `rewrite` changes waits in it."""
        state = dict(state)
        for op in list(block.ops):
            match op:
                case CopyOp():
                    self._before(op, state, rewrite)
                    # The sender's transfer does the copying of a synchronized one.
                    if op.synchronized is None:
                        state[op] = op in state
                case WaitOp() | DMABarrierOp():
                    self._wait(op, state, rewrite)
                case _ if op.regions:
                    state = self._structure(op, state, rewrite)
                case _:
                    self._before(op, state, rewrite)
        return state

    def _before(self, op: Operation, state: Outstanding, rewrite: bool) -> None:
        """Wait for what `op` conflicts with."""
        for direction in Direction:
            conflicts = [copy for copy in state if copy.direction is direction and self.order.conflict(op, copy)]
            if conflicts:
                self.awaited.update(conflicts)
                if rewrite:
                    self._insert(op, direction, conflicts)
                _complete(state, direction)

    def _insert(self, op: Operation, direction: Direction, copies: list[CopyOp]) -> None:
        insert_before(op, DMABarrierOp(direction), located_at=copies[0])
        self.unawaited |= {copy: op for copy in copies if copy not in self.unawaited}

    def _wait(self, op: WaitOp | DMABarrierOp, state: Outstanding, rewrite: bool) -> None:
        """A wait that stands in the program."""
        begun = [copy for copy in state if copy.direction is op.direction]
        own = op.handle.owner if isinstance(op, WaitOp) else None
        if not begun or (isinstance(own, CopyOp) and own not in state):
            if rewrite:
                Rewriter.erase_op(op)
            return
        if rewrite and isinstance(op, WaitOp) and (begun != [own] or state[begun[0]]):
            # It is one for the others, too, and for earlier iterations, so that no other wait need follow.
            replace(op, DMABarrierOp(op.direction))
        _complete(state, op.direction)

    def _structure(self, op: Operation, state: Outstanding, rewrite: bool) -> Outstanding:
        """Return what is outstanding after a branch or a loop."""
        blocks = [block for region in op.regions for block in region.blocks]
        if isinstance(op, scf.IfOp) or _is_side(op):
            ends = [self.block(block, state, rewrite=rewrite) for block in blocks]
            return _union(ends if len(blocks) > 1 else [state, *ends])
        # What the first iteration would have to wait for, it need not wait for in each iteration.
        dry = _Waits(self.order)
        for block in blocks:
            dry.block(block, state, rewrite=False)
        for direction in Direction:
            awaited = [copy for copy in state if copy.direction is direction and copy in dry.awaited]
            if awaited:
                self.awaited.update(awaited)
                if rewrite:
                    self._insert(op, direction, awaited)
                _complete(state, direction)
        entry = state
        while True:
            ends = [_Waits(self.order).block(block, entry, rewrite=False) for block in blocks]
            merged = _union([entry, *ends])
            if merged == entry:
                break
            entry = merged
        ends = [self.block(block, entry, rewrite=rewrite) for block in blocks]
        return _union(ends if _runs(op) else [state, *ends])


def _is_side(op: Operation) -> bool:
    """Return whether a branch runs on one side of a pipe only."""
    return isinstance(op, IfSrcOp | IfDstOp)


def _runs(op: Operation) -> bool:
    """Return whether a loop surely has an iteration."""
    return isinstance(op, affine.ForOp | scf.ForOp) and bool(CoreValues(None).range_of(op))


def _complete(state: Outstanding, direction: Direction) -> None:
    for copy in [copy for copy in state if copy.direction is direction]:
        del state[copy]


def _union(states: Iterable[Outstanding]) -> Outstanding:
    found: Outstanding = {}
    for state in states:
        for copy, more in state.items():
            found[copy] = found.get(copy, False) or more
    return found
