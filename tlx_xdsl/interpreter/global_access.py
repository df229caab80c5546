"""An access to global memory, and what it conflicts with (`global_order.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, cast

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Operation

from tlx_xdsl.dialects.base import TENSORMAP, Kind, accesses_of, effects_of, global_access, is_set
from tlx_xdsl.dialects.tt import MemSyncScope, TensorDescType

from .clocks import Clock
from .grid import Program, program_text
from .races import Actor


class Strength(Enum):
    """Strength of an access, which decides what it conflicts with."""

    WEAK = auto()
    """Plain: with every write."""
    CTA = auto()
    """Atomic for the threads of a thread block."""
    GPU = auto()
    """Atomic for all threads of one GPU."""
    SYS = auto()
    """Atomic for those of all GPUs."""

    # Keys of dictionaries that each access asks: that of `Enum` hashes the name, in Python.
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class Access:
    """An access, as later ones need it."""

    actor: Actor
    program: Program
    strength: Strength
    reads_only: bool
    issue: tuple[int, int] | None = None
    """Of an asynchronous operation: the agent that has issued it, and its step then."""
    launch: int = 0
    """The number of the launch among those of its GPU, from 0."""
    size: int = 0
    """Bytes of one of the numbers that it accesses."""

    @property
    def who(self) -> str:
        """Return who has made it."""
        return f"{self.actor.what} of program {program_text(self.program, self.launch)}"

    def excludes(self, other: Access) -> bool:
        """Return whether the two conflict unless one is ordered after the other; they are not both reads."""
        if Strength.WEAK in (self.strength, other.strength):
            return True
        if self.differs_in_size(other):
            return True
        strengths = self.strength, other.strength
        if Strength.CTA in strengths and self.program != other.program:
            return True
        return Strength.GPU in strengths and self.program[3:] != other.program[3:]

    def differs_in_size(self, other: Access) -> bool:
        """Return whether the two are of threads, and numbers of different sizes: neither is atomic for the other.

        Morally strong are operations that overlap completely (PTX ISA, "Morally Strong Operations").
        """
        return self.size != other.size and self.issue is None and other.issue is None

    def is_covered_by(self, later: Access, clock: Clock) -> bool:
        """Return whether who conflicts with this access, and comes after `later`, conflicts with `later`, too.

        `clock` says what is ordered before `later`.
        """
        if self.strength is not later.strength:
            return False
        if self.actor.agent == later.actor.agent:
            return True
        is_local = self.strength is not Strength.WEAK and self.excludes(later)
        return self.issue is None and not is_local and clock.knows(*self.step)

    def needs_fence(self, other: Access, clock: Clock) -> bool:
        """Return whether this is a write of the generic proxy, which the async proxy of `other` need not see yet.

        `clock` says what is ordered before `other`.
        """
        if self.reads_only or self.actor.is_async or not other.actor.is_async or self.writes_descriptor:
            return False
        return clock.fenced_global.get(self.actor.agent, 0) < self.actor.step

    def is_issued_before(self, other: Access) -> bool:
        """Return whether this is an asynchronous operation that the task of `other` has issued before that access."""
        return self.issue is not None and self.issue[0] == other.actor.agent and self.issue[1] < other.actor.step

    def may_change_order(self, other: Access, clock: Clock) -> bool:
        """Return whether sums of floats may differ from run to run, though what adds to them is issued in order.

        `clock` says what is ordered before `other`. That is so for reductions by TMA of two programs, of which the
        later one knows that the first was issued, but not that it has written.
        """
        return (
            self.issue is not None
            and other.issue is not None
            and self.program != other.program
            and clock.knows(*self.issue)
            and _adds_floats(self.actor.op)
        )

    @property
    def step(self) -> tuple[int, int]:
        """Return the agent of the access, and the step that clocks know of."""
        return self.actor.agent, self.actor.step

    @property
    def writes_descriptor(self) -> bool:
        """Return whether the proxy of tensor descriptors makes the access; its fences are in `ops/tensormaps.py`."""
        op = self.actor.op
        return effects_of(op).by is TENSORMAP or any(isinstance(each.type, TensorDescType) for each in op.results)


def _adds_floats(op: Operation) -> bool:
    """Return whether an operation combines floats in memory."""
    access = global_access(op)
    if access is None or Kind.ATOMIC not in access.kind or not isinstance(access.value.type, TensorDescType):
        return False
    return isinstance(access.value.type.element_type, AnyFloat)


def strength_of(op: Operation) -> Strength:
    """Return the strength of an operation's accesses: weak, unless it declares that it is atomic or volatile."""
    if is_set(op, "isVolatile"):
        # As relaxed ones of scope `sys` (PTX ISA, "ld.volatile").
        return Strength.SYS
    if not any(Kind.ATOMIC in access.kind for access in accesses_of(op) or ()):
        return Strength.WEAK
    scope = cast(Any, op.properties.get("scope"))
    return Strength.GPU if scope is None else _OF_SCOPES[MemSyncScope(scope.value.data)]


_OF_SCOPES = {MemSyncScope.CTA: Strength.CTA, MemSyncScope.GPU: Strength.GPU, MemSyncScope.SYSTEM: Strength.SYS}
