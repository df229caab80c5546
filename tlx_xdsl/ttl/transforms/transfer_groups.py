"""Groups of operations of a datamovement thread: acquire a block, copy into or out of it, wait, release it."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator, Pure

from ..dialects.ttl import AcquireOp, CopyOp, DMABarrierOp, PipeType, ReleaseOp, WaitOp


@dataclass
class Group:
    """One block of a circular buffer, from its acquisition to its release in the same block of operations."""

    acquire: AcquireOp
    copies: list[CopyOp] = field(default_factory=list[CopyOp])
    waits: list[WaitOp] = field(default_factory=list[WaitOp])
    release: ReleaseOp | None = None

    @property
    def steps(self) -> tuple[AcquireOp, ReleaseOp]:
        """Return what the protocol sees."""
        assert self.release is not None
        return self.acquire, self.release


@dataclass
class Run:
    """Operations next to each other that are index arithmetic, barriers, or groups of one role."""

    ops: list[Operation] = field(default_factory=list[Operation])
    groups: dict[SSAValue, Group] = field(default_factory=dict[SSAValue, Group])
    """By the circular buffer: each has one group."""

    def extend(self, op: Operation) -> bool:
        """Enter the next operation of the block, if it can be a part."""
        fits = self._fits(op)
        if fits:
            self.ops.append(op)
        return fits

    def _fits(self, op: Operation) -> bool:
        match op:
            case AcquireOp():
                # A view that is used for more than transfers is in use after the release is moved, too.
                is_plain = op.blocks is None and all(isinstance(use.operation, CopyOp) for use in op.view.uses)
                roles = {each.acquire.PRODUCES for each in self.groups.values()} | {op.PRODUCES}
                if not is_plain or op.cb in self.groups or len(roles) > 1:
                    return False
                self.groups[op.cb] = Group(op)
                return True
            case CopyOp():
                group = self._open(op.view)
                if group is None or isinstance(op.far.type, PipeType):
                    return False
                group.copies.append(op)
                return True
            case WaitOp():
                copy = op.handle.owner
                group = self._open(copy.view) if isinstance(copy, CopyOp) else None
                if group is None or copy not in group.copies:
                    return False
                group.waits.append(op)
                return True
            case ReleaseOp():
                group = self.groups.get(op.cb)
                if group is None or group.release is not None or group.acquire.PRODUCES is not op.PRODUCES:
                    return False
                group.release = op
                return op.blocks is None
            case _:
                return is_index_arithmetic(op) or isinstance(op, DMABarrierOp)

    def _open(self, view: SSAValue) -> Group | None:
        """The group of a view that is not released yet."""
        acquire = view.owner
        group = self.groups.get(acquire.cb) if isinstance(acquire, AcquireOp) else None
        return group if group is not None and group.acquire is acquire and group.release is None else None

    def is_complete(self) -> bool:
        """Return whether each group has its release, and each transfer is waited for, if at all, in its own group."""
        return all(
            group.release is not None
            and all(use.operation in group.waits for copy in group.copies for use in copy.handle.uses)
            for group in self.groups.values()
        )


def is_index_arithmetic(op: Operation) -> bool:
    """Return whether an operation may move as long as its operands are there."""
    return op.has_trait(Pure) and not op.regions and not op.has_trait(IsTerminator)


def runs_of(block: Block) -> list[Run]:
    """The complete runs of a block that have a group, in program order.

    A run ends where the role changes, too: what is waited for there may need what was pushed before.
    """
    found = [Run()]
    for op in block.ops:
        if not found[-1].extend(op):
            found.append(Run())
            found[-1].extend(op)
    return [each for each in found if each.groups and each.is_complete()]
