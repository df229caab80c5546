"""Happens-before: vector clocks over tasks and asynchronous engines.

Every task and every queue of asynchronous operations is an agent with a number, and counts its steps. A clock holds,
for each agent, the last step that is known to be over and visible. What another agent did at step s is ordered before
us if our clock says at least s; memory accesses that are not ordered race, whichever way this schedule ran them
(Lamport 1978; Mattern 1989). A second row says the same for the async proxy: what a thread wrote is visible to TMA and
to the tensor cores only after a proxy fence (PTX ISA, "Async proxy"). There is one row for shared memory, and one for
global memory: fences are for one of them or for both.
"""

from __future__ import annotations

from collections.abc import Container


class Clock:
    """The steps of all the others that happened before an agent's next one."""

    __slots__ = ("fenced", "fenced_global", "seen")

    def __init__(
        self,
        seen: dict[int, int] | None = None,
        fenced: dict[int, int] | None = None,
        fenced_global: dict[int, int] | None = None,
    ):
        self.seen: dict[int, int] = {} if seen is None else seen
        """Last step of each agent that is over and visible."""
        self.fenced: dict[int, int] = {} if fenced is None else fenced
        """Last step of each agent that is visible to the async proxy in shared memory, too."""
        self.fenced_global: dict[int, int] = {} if fenced_global is None else fenced_global
        """The same in global memory, of agents whose accesses go through the generic proxy."""

    def copy(self) -> Clock:
        """The same knowledge, to be kept."""
        return Clock(self.seen.copy(), self.fenced.copy(), self.fenced_global.copy())

    def join(self, other: Clock) -> None:
        """Take over all that `other` knows."""
        _join(self.seen, other.seen)
        _join(self.fenced, other.fenced)
        if other.fenced_global:
            _join(self.fenced_global, other.fenced_global)

    def observe(self, agent: int, step: int) -> None:
        """Observe that an asynchronous `agent` has finished `step`; what it wrote needs no proxy fence."""
        if self.seen.get(agent, 0) < step:
            self.seen[agent] = step
        if self.fenced.get(agent, 0) < step:
            self.fenced[agent] = step

    def see(self, agent: int, step: int) -> None:
        """The same of what it has written through the generic proxy."""
        if self.seen.get(agent, 0) < step:
            self.seen[agent] = step

    def only(self, agents: Container[int]) -> Clock:
        """Return what is known of some agents."""
        return Clock(*({agent: row[agent] for agent in row if agent in agents} for row in self._rows))

    def without(self, agents: Container[int]) -> Clock:
        """Return what is known of all but some agents."""
        return Clock(*({agent: row[agent] for agent in row if agent not in agents} for row in self._rows))

    @property
    def _rows(self) -> tuple[dict[int, int], ...]:
        return self.seen, self.fenced, self.fenced_global

    def fence(self, *, in_shared: bool = True, in_global: bool = False) -> None:
        """Make all that is known visible to the async proxy, in shared memory, in global memory, or in both."""
        if in_shared:
            _join(self.fenced, self.seen)
        if in_global:
            _join(self.fenced_global, self.seen)

    def knows(self, agent: int, step: int) -> bool:
        """Return whether `step` of `agent` is over and visible."""
        return self.seen.get(agent, 0) >= step


def _join(mine: dict[int, int], other: dict[int, int]) -> None:
    if len(mine) < len(other):
        # Copies cost next to nothing, and clocks of thousands of programs are joined with those of one.
        own = list(mine.items())
        mine.update(other)
        for agent, step in own:
            if mine[agent] < step:
                mine[agent] = step
        return
    for agent, step in other.items():
        if mine.get(agent, 0) < step:
            mine[agent] = step
