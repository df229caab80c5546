"""Reductions that have a function in the language."""

from __future__ import annotations

from xdsl.dialects.builtin import Float32Type, Float64Type, IntegerType
from xdsl.ir import Operation

from .types import element_of

_REDUCTIONS = {
    "arith.addf": "sum", "arith.addi": "sum", "arith.maxnumf": "max", "arith.maxsi": "max", "arith.minnumf": "min",
    "arith.minsi": "min",
}  # fmt: skip
_SAME = (Float32Type(), Float64Type(), IntegerType(32), IntegerType(64))
"""Elements that the language's reductions take as they are."""


def plain_reduction(op: Operation) -> str | None:
    """The name of the reduction with one operation that combines; None for any other."""
    if op.name != "tt.reduce" or len(op.operands) != 1 or element_of(op.operands[0].type) not in _SAME:
        return None
    block = op.regions[0].blocks[0]
    combining, *rest = block.ops
    ends = [] if not rest else list(rest[0].operands)
    plain = len(rest) == 1 and list(combining.operands) == list(block.args) and ends == list(combining.results)
    return _REDUCTIONS.get(combining.name) if plain else None
