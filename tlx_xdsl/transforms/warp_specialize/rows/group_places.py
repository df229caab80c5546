"""Places that groups of warps access when they share rows: apart where no group goes where another one goes.

The order between the accesses of two groups is open, so through a pointer that is stored to, their places must be
apart, in all turns of all loops. The rows of a group lie at `base + stride * row`, with the same rows in each turn if
`base` moves by whole blocks of rows only:

    c + (128*tile + rows)*stride + columns      the rows of a group are its own in all tiles
    c + (64*turn + rows)*stride + columns       the first group is later where the second one was before

Columns are taken to stay inside of a row whose stride is not a known number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.analysis.integers.polynomials import Monomial, Polynomial
from tlx_xdsl.analysis.integers.symbols import Counter, Scalar
from tlx_xdsl.analysis.structure.places import Places
from tlx_xdsl.analysis.structure.values import ONE
from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base import enclosing, global_access
from tlx_xdsl.dialects.dimensions import shape_of_value
from tlx_xdsl.dialects.scf import LOOPS

from ..accesses.division import quotient
from .cuts import Cuts

BLOCK_ACCESSES = (tt.DescriptorLoadOp, tt.DescriptorStoreOp, tt.DescriptorReduceOp)
_OF_TILES = (arith.DivSIOp, arith.RemSIOp)
"""Operations that make the coordinates of a tile of its number: each stays inside of its dimension."""


@dataclass(frozen=True)
class _Rows:
    """The rows that all groups together access at a time."""

    base: Polynomial
    stride: Polynomial
    count: int
    others: tuple[tuple[Polynomial, int], ...]
    """Strides and extents of the other dimensions."""
    by: SSAValue
    """The pointer or the descriptor that offsets count from."""


class GroupPlaces:
    """Places of the accesses of one function."""

    def __init__(self, function: tt.FuncOp, cuts: Cuts):
        self._places, self._cuts = Places(function), cuts

    def are_apart(self, ops: Sequence[Operation]) -> bool:
        """Say whether no group accesses by `ops`, all of which are done in parts, what another one does."""
        if len(ops) == 1 and enclosing(ops[0], *LOOPS) is None:
            return True
        rows = [self._rows(op) for op in ops]
        first = rows[0]
        return all(
            each is not None
            and first is not None
            and (each.by, each.stride, each.count) == (first.by, first.stride, first.count)
            and _are_distinct(each)
            and all(_is_by_blocks(term, each) for term in _moves(each.base))
            and all(_is_by_blocks(term, each) for term in _terms(each.base - first.base))
            for each in rows
        )

    def _rows(self, op: Operation) -> _Rows | None:
        """The rows of an access; None where they are not known."""
        access = global_access(op)
        assert access is not None
        dim = self._cuts.dim_of(op, list(op.operands).index(access.value))
        if dim is None:
            return None
        count = shape_of_value(access.value)[dim]
        if isinstance(op, BLOCK_ACCESSES):
            return _Rows(self._places.sums.of(op.indices[dim]), ONE, count, (), op.desc)
        place = self._places.of(access.value)
        if place is None or place.offset.terms:
            return None
        strides = list(zip(place.offset.strides, shape_of_value(access.value), strict=True))
        others = tuple(each for number, each in enumerate(strides) if number != dim and each[1] > 1)
        return _Rows(place.offset.base, strides[dim][0], count, others, place.root)


def _are_distinct(rows: _Rows) -> bool:
    """True if no row shares an element with another one."""
    if not rows.stride.terms:
        return False
    stride = rows.stride.number
    inside = 0
    for other, extent in rows.others:
        if other == rows.stride:
            return False
        if stride is None or (number := other.number) is None:
            continue
        if abs(number) < abs(stride) * rows.count:
            inside += abs(number) * (extent - 1)
    return stride is None or inside < abs(stride)


def _is_by_blocks(term: Polynomial, rows: _Rows) -> bool:
    """True if a part of the base moves the rows by a multiple of all of them, or moves along another dimension."""
    strides = sorted({rows.stride, *(stride for stride, _ in rows.others)} - {Polynomial({})}, key=_width, reverse=True)
    for stride in strides:
        if (number := quotient(term, stride)) is None:
            continue
        if stride == rows.stride:
            # A number of rows that is an argument is the extent of the tensor: its rows stay inside of it.
            return all(factor % rows.count == 0 or _has_extent(product) for product, factor in number)
        return _are_apart_along(stride, rows) or all(_is_of_tile(symbol) for symbol in term.symbols)
    return rows.stride.number is None


def _width(stride: Polynomial) -> tuple[int, int]:
    """Return an order of strides in which wider ones come later, as far as known."""
    return max(sum(power for _, power in product) for product, _ in stride), abs(stride.number or 0)


def _are_apart_along(other: Polynomial, rows: _Rows) -> bool:
    """True if a move along a dimension with the stride `other` does not get from one row to another one."""
    if (own := rows.stride.number) is None or (number := other.number) is None:
        return True
    return abs(number) >= abs(own) * rows.count


def _has_extent(product: Monomial) -> bool:
    return any(isinstance(symbol, Scalar) and not _varies(symbol) for symbol, _ in product)


def _is_of_tile(symbol: object) -> bool:
    return isinstance(symbol, Scalar) and isinstance(symbol.value.owner, _OF_TILES)


def _moves(base: Polynomial) -> list[Polynomial]:
    """The terms that are not the same in all turns of all loops."""
    return [term for term in _terms(base) if any(map(_varies, term.symbols))]


def _terms(form: Polynomial) -> list[Polynomial]:
    return [Polynomial({product: number}) for product, number in form]


def _varies(symbol: object) -> bool:
    if not isinstance(symbol, Scalar):
        return isinstance(symbol, Counter)
    owner = symbol.value.owner
    inside = owner if isinstance(owner, Operation) else owner.parent_op()
    return enclosing(inside, *LOOPS) is not None
