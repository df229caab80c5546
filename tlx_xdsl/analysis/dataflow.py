"""Forward data-flow analysis along the edges of `dialects/regions.py`, to a fixed point.

xDSL 0.75 has a sparse forward analysis, but it refuses operations with regions for want of an interface to their
control flow (`xdsl/analysis/sparse_analysis.py`). Here a state holds at each point of a function: a *transfer
function* says what an operation makes of it, a *join* what holds where several edges arrive.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Generic, TypeAlias, TypeVar

from xdsl.ir import Block, Operation

from tlx_xdsl.dialects.regions import Edge, Edges, edges
from tlx_xdsl.text.diagnostics import error_at

VISITS_PER_OPERATION = 64
"""Visits that are allowed for each operation. A monotone analysis needs one more around each loop than its states can
change there, which is once or twice."""
LEAST_BUDGET = 1000

State = TypeVar("State")
Arrivals: TypeAlias = Sequence[tuple[Edge, State]]
"""Edges to one target that have been reached, each with the state at its source."""


class ForwardWalk(ABC, Generic[State]):
    """A forward analysis of one function. States are compared with `==` and never None."""

    def run(self, root: Operation, state: State) -> State | None:
        """Analyse `root`, a function, from the beginning, with `state` before it.

        Return the state after it, None where control never gets there. Raises CompilationError where control flow is
        unknown, and where the analysis does not come to an end.
        """
        self._budget = max(LEAST_BUDGET, VISITS_PER_OPERATION * sum(1 for _ in root.walk()))
        self._arrivals: dict[Block | Operation, dict[tuple[Operation, int], tuple[Edge, State]]] = {}
        # Arrivals are kept by the edge's source and number, also when a region is entered again: an inner loop that has
        # reached its fixed point is walked once for each turn of the outer one.
        return self._after(root, state)

    @abstractmethod
    def transfer(self, op: Operation, state: State) -> State:
        """Return the state after `op`; of an operation with regions, before they are entered."""

    @abstractmethod
    def join(self, arrivals: Arrivals[State]) -> State:
        """Return what holds at a target at which one or several edges arrive; all have the same successor inputs."""

    def edges(self, op: Operation) -> Edges | None:
        """Return the edges that leave `op`; an analysis that knows more may leave out what is never taken."""
        return edges(op)

    def _after(self, op: Operation, state: State) -> State | None:
        self._budget -= 1
        if self._budget < 0:
            raise error_at(op, f"the data-flow analysis does not come to an end at '{op.name}'")
        state = self.transfer(op, state)
        if not op.regions:
            return state
        blocks = [block for region in op.regions for block in region.blocks]
        numbers = {block: number for number, block in enumerate(blocks)}
        pending, entries = list[int](), dict[Block, State]()
        self._leave(op, state, numbers, pending)
        while pending:
            block = blocks[heappop(pending)]
            entry = self._joined(block)
            if entry is None or entries.get(block) == entry:
                continue
            entries[block] = entry
            if (end := self._after_block(block, entry)) is not None and block.last_op is not None:
                self._leave(block.last_op, end, numbers, pending)
        return self._joined(op)

    def _after_block(self, block: Block, state: State | None) -> State | None:
        for op in block.ops:
            if state is not None:
                state = self._after(op, state)
        return state

    def _leave(self, source: Operation, state: State, numbers: dict[Block, int], pending: list[int]) -> None:
        """Let `state` arrive wherever the edges from `source` lead."""
        if (found := self.edges(source)) is None:
            raise error_at(source, f"the control flow of '{source.name}' is not known")
        for number, edge in enumerate(found):
            self._arrivals.setdefault(edge.target, {})[source, number] = edge, state
            if isinstance(edge.target, Block):
                heappush(pending, numbers[edge.target])

    def _joined(self, target: Block | Operation) -> State | None:
        arrivals = self._arrivals.get(target)
        return None if arrivals is None else self.join(tuple(arrivals.values()))
