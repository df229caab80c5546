"""Random nets of pipes: each core sends blocks to others and writes what it gets; numpy says what that is."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tlx_xdsl.language.ttl as ttl

Place = tuple[int, int]
Way = tuple[Place, Place, Place]
"""The source, and the corners of the receivers."""


@dataclass
class Nets:
    """Some nets on a grid; in each one, a core is the source and a receiver of few pipes."""

    chosen: random.Random
    grid: Place = (1, 1)
    nets: list[tuple[bool, list[Way]]] = field(default_factory=list[tuple[bool, list[Way]]])
    """Whether a core receives once at most, and the pipes."""
    factors: Place = (1, 1)
    """Blocks of the buffers that are sent from and received in."""
    arch: str = "wormhole"

    def __post_init__(self) -> None:
        pick = self.chosen.choice
        self.arch = pick(("wormhole", "wormhole", "blackhole"))
        wide = 9 if self.arch == "blackhole" else 8
        self.grid = pick(((2, 1), (3, 1), (1, 4), (2, 2), (3, 2), (4, 4), (2, 5), (wide, 2)))
        self.factors = self.chosen.randint(1, 3), self.chosen.randint(1, 3)
        kinds = self._shift, self._rows, self._columns, self._scatter, self._any
        self.nets = [pick(kinds)() for _ in range(self.chosen.randint(1, 3))]

    def _shift(self) -> tuple[bool, list[Way]]:
        """Each core sends to the one at a distance, around the edges or not."""
        wide, high = self.grid
        far_x, far_y = self.chosen.randrange(wide), self.chosen.randrange(high)
        turns = self.chosen.random() < 0.5
        ways: list[Way] = []
        for y in range(high):
            for x in range(wide):
                to = (x + far_x) % wide, (y + far_y) % high
                if to != (x, y) and (turns or (x + far_x < wide and y + far_y < high)):
                    ways.append(((x, y), to, to))
        return True, ways

    def _rows(self) -> tuple[bool, list[Way]]:
        """A core of each row sends to those on one side of it, or to the whole row."""
        wide, high = self.grid
        source = self.chosen.randrange(wide)
        first, last = self.chosen.choice(((0, source - 1), (source + 1, wide - 1), (0, wide - 1)))
        return True, [((source, y), (first, y), (last, y)) for y in range(high) if first <= last]

    def _columns(self) -> tuple[bool, list[Way]]:
        """A core of each column sends to those on one side of it, or to the whole column."""
        wide, high = self.grid
        source = self.chosen.randrange(high)
        first, last = self.chosen.choice(((0, source - 1), (source + 1, high - 1), (0, high - 1)))
        return True, [((x, source), (x, first), (x, last)) for x in range(wide) if first <= last]

    def _scatter(self) -> tuple[bool, list[Way]]:
        """A core sends to each other one by a pipe of its own."""
        wide, high = self.grid
        cores = [(x, y) for y in range(high) for x in range(wide)]
        source = self.chosen.choice(cores)
        return True, [(source, to, to) for to in cores if to != source]

    def _any(self) -> tuple[bool, list[Way]]:
        """Some cores send to some rectangles."""
        wide, high = self.grid
        ways: list[Way] = []
        for _ in range(self.chosen.randint(1, 4)):
            first = self.chosen.randrange(wide), self.chosen.randrange(high)
            last = self.chosen.randrange(first[0], wide), self.chosen.randrange(first[1], high)
            ways.append(((self.chosen.randrange(wide), self.chosen.randrange(high)), first, last))
        return False, ways

    def parts(self) -> list[tuple[int, list[Way]]]:
        """The nets that have a row of the result each, with the number of the block that their sources send."""
        found: list[tuple[int, list[Way]]] = []
        for number, (once, ways) in enumerate(self.nets):
            found += [(number, ways)] if once and ways else [(number, [way]) for way in ways]
        return found

    def kernel(self) -> Any:
        """The kernel: one thread sends, the other one receives a block and writes it to the row of its net."""
        (wide, _), (mine_factor, theirs_factor), parts = self.grid, self.factors, self.parts()

        @ttl.kernel(grid=self.grid)
        def kernel(a: Any, out: Any) -> None:
            mine = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=mine_factor)
            theirs = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=theirs_factor)
            nets = [
                ttl.PipeNet([ttl.Pipe(src=src, dst_range=(first, last)) for src, first, last in ways])
                for _, ways in parts
            ]
            x, y = ttl.core(dims=2)
            core = x + y * wide

            @ttl.datamovement()
            def send() -> None:
                for net, (number, _) in zip(nets, parts, strict=True):
                    if net.is_src():
                        with mine.reserve() as block:
                            ttl.copy(a[number, core], block).wait()
                        with mine.wait() as block:
                            net.if_src(lambda pipe: ttl.copy(block, pipe).wait())

            @ttl.datamovement()
            def receive() -> None:
                for row, net in enumerate(nets):
                    if net.is_dst():
                        with theirs.reserve() as block:
                            net.if_dst(lambda pipe: ttl.copy(pipe, block).wait())
                        with theirs.wait() as block:
                            ttl.copy(block, out[row, core]).wait()

        return kernel

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the cores' inputs, one column of tiles each, and their outputs."""
        wide, high = self.grid
        a = np.random.default_rng(0).standard_normal((32 * len(self.nets), 32 * wide * high)).astype(np.float32)
        out = np.zeros((32 * max(len(self.parts()), 1), 32 * wide * high), np.float32)
        for row, (number, ways) in enumerate(self.parts()):
            for (x, y), first, last in ways:
                block = _tile(a, number, x + y * wide)
                for to_y in range(first[1], last[1] + 1):
                    for to_x in range(first[0], last[0] + 1):
                        _tile(out, row, to_x + to_y * wide)[...] = block
        return a, out


def _tile(matrix: np.ndarray, row: int, column: int) -> np.ndarray:
    return matrix[32 * row : 32 * row + 32, 32 * column : 32 * column + 32]
