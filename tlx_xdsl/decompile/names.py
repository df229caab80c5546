"""Names of Python variables: which of them is free where a value gets one.

The frontend makes a carried value of each name that a loop's body or a branch assigns and that exists before it. So a
value takes a name that no block around it has assigned so far, and in its own block one whose last value is used no
more. Names that a loop, a branch or a task has assigned end with it: what follows takes them again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from xdsl.ir import Block, Operation, SSAValue

Interval = tuple[float, float]
"""From the operation that gives a name its value to the last one that uses it, as numbers of a block's operations."""

ALWAYS: Interval = (-1, math.inf)
"""The interval of what is there before a block and after it."""


class Scope:
    """The names that one block assigns."""

    def __init__(
        self,
        block: Block | None = None,
        outer: Scope | None = None,
        at: Operation | None = None,
        taken: Iterable[str] = (),
    ):
        self.block = block
        """None where a name is assigned once: in blocks that jump to each other."""
        self.outer = outer
        self.carried: set[str] = set()
        """Names of blocks around that this one assigns in any case: those under which its loop carries values."""
        self.before: dict[str, SSAValue] = {}
        """What these names hold when the block begins."""
        self._taken = set(taken)
        self._at = math.inf if outer is None or at is None else outer.number(at)
        self._numbers = {} if block is None else {op: number for number, op in enumerate(block.ops)}
        self._intervals: dict[str, list[Interval]] = {}

    def number(self, op: Operation) -> float:
        """The number of an operation of the block; of one elsewhere, the number of what the block ends with."""
        return self._numbers.get(op, math.inf)

    def inside(self, block: Block, at: Operation, taken: Iterable[str] = ()) -> Scope:
        """Return the scope of a block of an operation of this one."""
        return Scope(block, self, at, taken=taken)

    @property
    def names(self) -> set[str]:
        """All names that the block assigns."""
        return set(self._intervals)

    def is_free(self, name: str, interval: Interval) -> bool:
        """Say whether a value with this interval can have the name."""
        if name in self._taken or any(max(interval[0], s) < min(interval[1], e) for s, e in self._of(name)):
            return False
        return name in self.carried or self.outer is None or self.outer.is_unknown(name, self._at)

    def is_unknown(self, name: str, at: float) -> bool:
        """Say whether nothing has assigned the name before the operation with this number, here and around."""
        if name in self._taken or any(start <= at for start, _ in self._of(name)):
            return False
        return self.outer is None or self.outer.is_unknown(name, self._at)

    def take(self, name: str, interval: Interval) -> None:
        """Let a value have the name."""
        self._intervals.setdefault(name, []).append(interval if self.block is not None else ALWAYS)

    def _of(self, name: str) -> list[Interval]:
        return self._intervals.get(name, [])
