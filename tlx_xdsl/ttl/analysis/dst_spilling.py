"""Cuts of the tile operations of one block of code into parts, each of which has DST registers enough.

All registers are released after a part. What is read later goes through a circular buffer: its tiles are packed at the
end of the part that makes them, and loaded by each part that reads them. What only depends on tiles of buffers or on
nothing, such as a broadcast or a fill, is made again instead, which costs no more than a load.

The registers are lost together, so the question is not which value's next use is furthest, but where to cut. For an
order of the operations, the cuts with the fewest packs and loads are found by dynamic programming over the ends of
parts; a part counts as one more, for preparing the units again. Of several orders the cheapest one is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from math import inf
from typing import NamedTuple

from .dst_liveness import Node
from .dst_orders import orders

Fits = Callable[[Sequence[Node], Sequence[Hashable]], bool]
"""Whether registers suffice for nodes in their order, with these results in registers at the end."""


class Cut(NamedTuple):
    """Parts, in order."""

    cost: float
    """Tiles that are packed and loaded, and parts."""
    parts: tuple[Sequence[Node], ...]


def cut(nodes: Sequence[Node], outputs: Sequence[Hashable], fits: Fits) -> Cut | None:
    """The cheapest cut, or None where the registers don't suffice for a single operation."""
    again = {node.result: node for node in nodes if not node.reads and not node.accumulates}
    found = [
        _Cutter([node for node in order if node.result not in again], again, outputs, fits).cut()
        for order in orders(nodes, outputs)
    ]
    return min((each for each in found if each is not None), key=lambda each: each.cost, default=None)


class _Cutter:
    """Finds the cuts of one order; a part is the nodes from a number to another one."""

    def __init__(
        self, order: list[Node], again: Mapping[Hashable, Node], outputs: Sequence[Hashable], fits: Fits
    ) -> None:
        self._order = order
        self._again = again
        self._outputs = outputs
        self._fits = fits
        self._last = {value: number for number, node in enumerate(order) for value in node.reads}
        """For each value the last node that reads it."""

    def cut(self) -> Cut | None:
        """The cheapest cut."""
        cost, begins = [0.0], [0]
        # A part for which registers don't suffice is no better with more nodes before or after it.
        least = 0
        for end in range(1, len(self._order) + 1):
            cost.append(inf)
            begins.append(end)
            for total, begin in sorted(self._candidates(least, end, cost)):
                if begin < least:
                    continue
                if self._fits(*self._part(begin, end)):
                    cost[end], begins[end] = total, begin
                    break
                least = begin + 1
        if cost[-1] == inf:
            return None
        parts: list[Sequence[Node]] = []
        end = len(self._order)
        while end:
            parts.append(self._part(begins[end], end)[0])
            end = begins[end]
        return Cut(cost[-1], tuple(reversed(parts)))

    def _candidates(self, least: int, end: int, cost: Sequence[float]) -> list[tuple[float, int]]:
        """The costs of all nodes before `end`, where the last part begins at a node that is not before `least`."""
        found: list[tuple[float, int]] = []
        loaded: set[Hashable] = set()
        packed = 0
        for begin in range(end - 1, least - 1, -1):
            node = self._order[begin]
            loaded = loaded - {node.result} | {*node.reads}
            packed += self._last.get(node.result, 0) >= end
            if cost[begin] < inf:
                found.append((cost[begin] + 1 + packed + len(loaded), begin))
        return found

    def _part(self, begin: int, end: int) -> tuple[list[Node], list[Hashable]]:
        """The nodes of a part with those that are made again, and the results that must be there at its end."""
        nodes = self._order[begin:end]
        made = [node.result for node in nodes]
        wanted = [value for value in made if self._last.get(value, 0) >= end or value in self._outputs]
        if end == len(self._order):
            results = {node.result for node in self._order}
            wanted += [value for value in self._outputs if value not in results]
        found: dict[Hashable, Node] = {}
        for node in nodes:
            found |= {value: self._again[value] for value in node.reads if value in self._again}
            found[node.result] = node
        found |= {value: self._again[value] for value in wanted if value in self._again}
        return [*found.values()], wanted
