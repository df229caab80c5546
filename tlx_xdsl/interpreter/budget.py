"""The operations and seconds that a cluster may take, so that a loop without an end is a report.

Loops spend from it, once in each turn: code without a loop ends by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.ir import Operation

from .faults import fault_at
from .limits import MAX_OPERATIONS, MAX_SECONDS

processor_time: Callable[[], float] = getattr(time, "thread_time", time.process_time)
"""Seconds of this thread on a processor; of the process where there is no such clock, as for Python in a browser."""

_BETWEEN_LOOKS = 2000
"""Operations from one look at the clock to the next."""


@dataclass(eq=False, slots=True)
class Budget:
    """Operations and seconds that are left for one cluster."""

    operations: int = MAX_OPERATIONS
    seconds: float = MAX_SECONDS
    _left: int = field(init=False)
    _next_look: int = field(init=False)
    _remaining: float = field(init=False)
    """Seconds that were left when the cluster went on."""
    _resumed: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self._left, self._next_look, self._remaining = self.operations, self.operations, self.seconds

    def resume(self) -> None:
        """Begin to count the time."""
        self._resumed = processor_time()

    def pause(self) -> None:
        """Let the time pass, which other clusters take."""
        self._remaining -= processor_time() - self._resumed

    def spend(self, loop: Operation, operations: int) -> None:
        """Count a turn of a loop.

        Raises Fault at the loop when too little is left.
        """
        self._left -= operations
        if self._left <= self._next_look:
            self._look(loop)

    def _look(self, loop: Operation) -> None:
        if self._left < 0:
            self._refuse(loop, f"{self.operations:,} operations", "max_operations")
        if processor_time() - self._resumed > self._remaining:
            self._refuse(loop, f"{self.seconds:g} seconds", "max_seconds")
        self._next_look = max(0, self._left - _BETWEEN_LOOKS)

    def _refuse(self, loop: Operation, what: str, option: str) -> None:
        flag = option.replace("_", "-")
        note = f"a cluster may take that long: {option} (--{flag}) gives it more, if the loop does end"
        raise fault_at(loop, f"no end after {what}: this loop still runs", (note,))
