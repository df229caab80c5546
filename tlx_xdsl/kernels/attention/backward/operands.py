"""Operands of attention's backward pass: what `attention_backward` is given, checked, and the launches' names of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from tlx_xdsl.language.core import constexpr

from ...calls.launching import Launch
from ...calls.operands import Operand, check_shape, check_types, operand
from ..operands import DTYPES, check_heads, check_lse, described_heads, strides_in_units
from ..sequences import Grid
from .config import CONSUMER_KEYS, Tiling
from .rows import attention_backward_before

NAME = "attention_backward"

ROWS = 32
"""Queries of a program before and after the products: 8 to 16 elements for each thread."""

COUNTERS = 8
"""Numbers of 32 bits for the counters of tiles, of which the first ones are used: 32 bytes."""


class Problem(NamedTuple):
    """The tensors, checked."""

    q: Operand
    k: Operand
    v: Operand
    out: Operand
    lse: Operand
    dout: Operand
    dlse: Operand | None
    dq: Operand
    dk: Operand
    dv: Operand

    @classmethod
    def of(cls, *tensors: Any) -> Problem:
        named = zip(cls._fields, tensors, strict=True)
        of: Any = [None if name == "dlse" and value is None else operand(NAME, name, value) for name, value in named]
        found = cls(*of)
        check_heads(found.q, found.k, found.v)
        check_types([found.q, found.k, found.v, found.out, found.dout, found.dq, found.dk, found.dv], DTYPES)
        for each, like in ((found.dq, found.q), (found.dk, found.k), (found.dv, found.v)):
            check_shape(each, like.shape, f"that of '{like.name}'")
        for each in (found.out, found.dout):
            check_shape(each, (*found.q.shape[:3], found.v.shape[3]), "that of 'q', with the head dim of 'v'")
        check_lse(found.q, found.lse)
        if found.dlse is not None:
            check_lse(found.q, found.dlse)
        return found

    def launch(
        self,
        kernel: Any,
        grid: tuple[int, ...],
        values: dict[str, Any],
        constants: dict[str, Any],
        aligned: tuple[str, ...] = (),
    ) -> Launch:
        """Make a launch of the pass; `aligned` are pointers to multiples of 16 bytes."""
        return Launch.of(kernel, grid, values, constants, self.q.device, aligned=aligned)

    def products(
        self, kernel: Any, tiling: Tiling, of: Operand, tile: int, places: int, least: int, values: dict[str, Any]
    ) -> Launch:  # fmt: skip
        """The launch of a kernel with products, tiles of so many rows of K or Q: `places` programs, which share them.

        At least `least` heads take their tiles in turn, or each does alone where that is 0.
        """
        batch, count, length, _ = of.shape
        queries, keys = self.q.shape[2], self.k.shape[2]
        tiles = -(-length // tile)
        together = heads_together(batch * count, tiles, places, least) if least else 1
        group = constexpr(self.q.shape[1] // self.k.shape[1])
        values = {"grid": Grid(batch * count, count, group, queries, keys, together), **values}
        for name in kernel.arg_names:
            if name.endswith("_desc") and name not in values:
                each = self.dout if name == "do_desc" else getattr(self, name.removesuffix("_desc"))
                rows = tiling.block_m if each in (self.q, self.dout) else CONSUMER_KEYS
                values[name] = described_heads(each, rows, tiling.qk.elements)
        # A causal mask hides keys after the end from all queries, where there are not more of those.
        even = keys % tile == 0 or (tiling.causal and keys >= queries)
        constants = {"T": replace(tiling, even=even)}
        return self.launch(kernel, (min(tiles * batch * count, places),), values, constants, ("stats_ptr", "sums_ptr"))

    def before(
        self, block_m: int, width: int, stats: Any, counter: Any, sums: Any = None, added: Any = None
    ) -> Launch:  # fmt: skip
        """The launch that goes first: deltas and logarithms in blocks of `block_m` queries, zeros elsewhere.

        Blocks of O have `width` columns, sums of dQ, where there are any, as many.
        """
        for each in (self.out, self.dout):
            described_heads(each, ROWS, width)  # threads move 16 bytes of them at a time
        batch, heads, queries, _ = self.q.shape
        blocks = -(-queries // block_m)
        return self.launch(
            attention_backward_before,
            (batch * heads, blocks * block_m // ROWS),
            {
                "out_ptr": self.out,
                "dout_ptr": self.dout,
                "lse_ptr": self.lse,
                "dlse_ptr": self.dlse,
                "stats_ptr": stats,
                "sums_ptr": sums,
                "counter_ptr": counter,
                "added_ptr": added,
                "out_strides": strides_in_units(self.out),
                "dout_strides": strides_in_units(self.dout),
                "HEADS": heads,
                "Q_LENGTH": queries,
                "BLOCKS": blocks,
            },
            {"BLOCK_M": block_m, "HEAD_DIM": width, "V_ELEMENTS": self.v.shape[3], "ROWS": ROWS},
            ("out_ptr", "dout_ptr", "stats_ptr", "sums_ptr"),
        )


def heads_together(heads: int, tiles: int, programs: int, least: int) -> int:
    """Return how many heads take their tiles in turn, a divisor of `heads`: programs get tiles of like lengths.

    More than the programs have at a time, or `least`, would leave the L2 cache between two of their tiles.
    """
    return max(each for each in range(1, heads + 1) if heads % each == 0 and each <= max(least, programs // tiles))
