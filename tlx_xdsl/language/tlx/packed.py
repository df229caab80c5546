"""Arithmetic on four 8-bit floats in one instruction (sm_100a and sm_103a, PTX 9.4).

Operands are blocks of `float8e4nv` or `float8e5`, or of int8 that hold pairs of fp4 (e2m1, low half first): then the
block has half of the elements along one dimension. The result is `float8e4nv` or `float8e5`, rounded once in each
element.
"""

from __future__ import annotations

from ..arguments import Type
from ..core import builtin
from ..objects import tensor

__all__ = [
    "add4", "fma4", "mul4", "packed_add4", "packed_fma4", "packed_mul4", "packed_sub4", "sub4",
]  # fmt: skip

_tlx = builtin("tlx")


@_tlx
def packed_add4(lhs: tensor, rhs: tensor, dtype: Type | None = None) -> tensor:
    """`lhs + rhs`; `rhs` has the type of the result, `dtype`.

    Example: `sums = tlx.packed_add4(eights, eights)`
    """
    ...


@_tlx
def packed_sub4(lhs: tensor, rhs: tensor, dtype: Type | None = None) -> tensor:
    """`lhs - rhs`; `rhs` has the type of the result, `dtype`.

    Example: `differences = tlx.packed_sub4(eights, eights)`
    """
    ...


@_tlx
def packed_mul4(lhs: tensor, rhs: tensor, dtype: Type | None = None) -> tensor:
    """`lhs * rhs` in `dtype`, without it in the type of the first operand that is no pairs of fp4.

    Of two blocks of pairs, `dtype` must be given, and the last dimension is the one with half of the elements.

    Example: `products = tlx.packed_mul4(eights, eights)`
    """
    ...


@_tlx
def packed_fma4(lhs: tensor, rhs: tensor, acc: tensor, dtype: Type | None = None) -> tensor:
    """`lhs * rhs + acc`, rounded once; `acc` has the type of the result, `dtype`.

    Example: `sums = tlx.packed_fma4(eights, eights, eights)`
    """
    ...


add4 = packed_add4
"""The former name of `packed_add4`."""
sub4 = packed_sub4
"""The former name of `packed_sub4`."""
mul4 = packed_mul4
"""The former name of `packed_mul4`."""
fma4 = packed_fma4
"""The former name of `packed_fma4`."""
