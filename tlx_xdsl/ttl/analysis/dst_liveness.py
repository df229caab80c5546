"""Allocation of tiles to DST registers: linear scan over the tile operations of one block of code.

The operations of a `ttl.compute` body work on one tile of each operand. What they read in DST is either a result of
another one, or a tile of a circular buffer, which is loaded into a register of its own first. Three rules of the
hardware shape the allocation:

- a unary operation works in place, so its operand must not be read afterwards: unless it is the last reader, it gets
  a copy. Its result and its operand are *always* one register;
- an operation that may accumulate into its register gets one that was not written since the registers were acquired;
- with too many tiles alive, another order may help, or loading a tile of a buffer again for each of its readers;
  otherwise the operations are cut into parts (`dst_spilling`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Node(NamedTuple):
    """A tile operation."""

    result: Hashable
    reads: tuple[Hashable, ...]
    """The tiles that it reads in DST: results, or tiles of circular buffers."""
    in_place: bool = False
    """Whether the result replaces the only tile that it reads."""
    accumulates: bool = False
    """Whether what was in its register before may become a part of the result."""


class Step(NamedTuple):
    """Change of the registers: a tile is loaded or copied (`node` is None), or a node runs."""

    node: Node | None
    value: Hashable
    """The tile that `register` has afterwards; of a load or a copy, the one that it is a copy of."""
    register: int
    reads: tuple[int, ...]
    """The registers that are read: those of `node.reads`, of the tile that is copied, or none for a load."""


class Plan(NamedTuple):
    """An allocation."""

    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    """The registers of the outputs."""

    @property
    def registers(self) -> int:
        """Registers that one tile of the iteration space takes: at least one, for what is packed."""
        return max((step.register for step in self.steps), default=0) + 1


class Overflow(NamedTuple):
    """No register is free for `wanted`."""

    wanted: Hashable
    alive: tuple[Hashable, ...]
    """The tiles in the registers, by register."""


@dataclass
class _Tile:
    """A register as long as it holds one tile after the other, each made from the one before in place."""

    begin: int
    end: int
    value: Hashable
    fresh: bool = False
    register: int = -1


class _Draft(NamedTuple):
    """A step before registers are chosen."""

    node: Node | None
    value: Hashable
    target: _Tile
    reads: tuple[_Tile, ...]


def allocate(
    nodes: Sequence[Node], outputs: Sequence[Hashable], capacity: int, *, reload: bool = False
) -> Plan | Overflow:
    """Choose registers for nodes in their order; `reload`: every reader of a tile of a buffer loads it anew."""
    drafts, found = _Drafter(nodes, outputs, reload).draft()
    busy: dict[int, _Tile] = {}
    touched: set[int] = set()
    for number, draft in enumerate(drafts):
        busy = {register: tile for register, tile in busy.items() if tile.end > number}
        if draft.target.begin != number:
            # In place.
            busy[draft.target.register] = draft.target
            continue
        taken = touched if draft.target.fresh else set(busy)
        free = next((each for each in range(capacity) if each not in taken), None)
        if free is None:
            return Overflow(draft.value, tuple(tile.value for _, tile in sorted(busy.items())))
        draft.target.register = free
        touched.add(free)
        busy[free] = draft.target
    steps = (
        Step(draft.node, draft.value, draft.target.register, tuple(tile.register for tile in draft.reads))
        for draft in drafts
    )
    return Plan(tuple(steps), tuple(tile.register for tile in found))


@dataclass
class _Drafter:
    """Adds loads and copies to nodes."""

    nodes: Sequence[Node]
    outputs: Sequence[Hashable]
    reload: bool
    drafts: list[_Draft] = field(default_factory=list["_Draft"])
    held: dict[Hashable, _Tile] = field(default_factory=dict[Hashable, "_Tile"])

    def draft(self) -> tuple[list[_Draft], list[_Tile]]:
        """The steps, and the tiles that are the outputs."""
        results = {node.result for node in self.nodes}
        left = Counter(value for node in self.nodes for value in node.reads)
        left.update(self.outputs)
        for node in self.nodes:
            sources: list[_Tile] = []
            for number, value in enumerate(node.reads):
                left[value] -= 1
                if value in node.reads[:number]:
                    sources.append(sources[node.reads.index(value)])
                    continue
                is_read_later = bool(left[value])
                is_overwritten = node.in_place and is_read_later
                if value not in results and (value not in self.held or self.reload or is_overwritten):
                    tile = self._load(value, keep=not is_overwritten)
                elif is_overwritten:
                    tile = self._copy(value)
                else:
                    tile = self.held[value]
                sources.append(tile)
            self._run(node, sources)
        found = [self.held[value] if value in results else self._output(value) for value in self.outputs]
        for tile in found:
            tile.end = len(self.drafts)
        return self.drafts, found

    def _output(self, value: Hashable) -> _Tile:
        """A tile of a buffer that is an output as it is."""
        return self._load(value, keep=True) if self.reload or value not in self.held else self.held[value]

    def _load(self, value: Hashable, *, keep: bool) -> _Tile:
        tile = self._new(value)
        self.drafts.append(_Draft(None, value, tile, ()))
        if keep:
            self.held[value] = tile
        return tile

    def _copy(self, value: Hashable) -> _Tile:
        source = self.held[value]
        source.end = len(self.drafts)
        tile = self._new(value)
        self.drafts.append(_Draft(None, value, tile, (source,)))
        return tile

    def _new(self, value: Hashable) -> _Tile:
        number = len(self.drafts)
        return _Tile(number, number, value)

    def _run(self, node: Node, sources: Sequence[_Tile]) -> None:
        number = len(self.drafts)
        for tile in sources:
            tile.end = number
        if node.in_place:
            (target,) = sources
            target.value = node.result
        else:
            target = self._new(node.result)
            target.fresh = node.accumulates
        # Its own step is the least for which a result keeps its register.
        target.end = number
        self.held[node.result] = target
        self.drafts.append(_Draft(node, node.result, target, tuple(sources)))
