"""Blocks that are stored one after the other: whether two of them may overlap, so that their order counts.

An index is a sum of values with factors, as far as additions and multiplications by constants go. Two blocks are apart
where their indices along one dimension differ by a constant that is at least the size of a block. Over the turns of a
loop they are apart where an index advances by at least that much in each turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.ir import Operation, Region, SSAValue
from xdsl.traits import is_side_effect_free

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base import enclosing
from tlx_xdsl.dialects.scf import LOOPS
from tlx_xdsl.dialects.tt import descriptor_type

from ...rewriting import constant_integer
from ..origins import origins_of
from ..tasks_of import TILES


@dataclass(frozen=True)
class _Sum:
    """A constant and values with factors that are not 0."""

    constant: int
    terms: dict[SSAValue, int]

    def plus(self, other: _Sum, factor: int = 1) -> _Sum:
        terms = dict(self.terms)
        for value, own in other.terms.items():
            terms[value] = terms.get(value, 0) + factor * own
        return _Sum(self.constant + factor * other.constant, {v: f for v, f in terms.items() if f})


def may_overlap(first: tt.DescriptorStoreOp, second: tt.DescriptorStoreOp) -> bool:
    """Say whether two stores may write the same element in one turn of the loops around both of them."""
    if not _may_share_memory(first, second):
        return False
    return first.desc.type != second.desc.type or not any(
        not (apart := a.plus(b, -1)).terms and abs(apart.constant) >= size
        for a, b, size in zip(_indices(first), _indices(second), _sizes(first), strict=True)
    )


def may_overlap_over_turns(store: tt.DescriptorStoreOp, others: Sequence[tt.DescriptorStoreOp], task: Region) -> bool:
    """Say whether a store may write what one of `others`, itself among them, wrote in another turn of a loop."""
    return any(_may_share_memory(store, other) and not _advance(store, other, task) for other in others)


def _may_share_memory(first: tt.DescriptorStoreOp, second: tt.DescriptorStoreOp) -> bool:
    a, b = origins_of(first.desc), origins_of(second.desc)
    return a is None or b is None or bool(a & b)


def _advance(first: tt.DescriptorStoreOp, second: tt.DescriptorStoreOp, task: Region) -> bool:
    """Say whether both indices along one dimension go on by more than both blocks in each turn of their one loop.

    Turns that were programs of their own are in no order.
    """
    loops = _loops(first, task)
    if loops != _loops(second, task) or len(loops) > 1 or first.desc.type != second.desc.type:
        return False
    if not loops:
        return True
    (loop,) = loops
    if not isinstance(loop, scf.ForOp) or (step := constant_integer(loop.step)) is None:
        return False
    turn = loop.body.block.args[0]
    for a, b, size in zip(_indices(first), _indices(second), _sizes(first), strict=True):
        apart = a.plus(b, -1)
        rest = a.plus(_Sum(0, {turn: a.terms.get(turn, 0)}), -1)
        if apart.terms or not all(_is_invariant(value, loop) for value in rest.terms):
            continue
        if abs(a.terms.get(turn, 0) * step) >= size + abs(apart.constant):
            return True
    return False


def _loops(op: Operation, task: Region) -> list[Operation]:
    """Return the loops of the task around an operation whose turns are in order."""
    found: list[Operation] = []
    loop = enclosing(op.parent_op(), *LOOPS)
    while loop is not None and task.is_ancestor(loop):
        if TILES not in loop.attributes:
            found.append(loop)
        loop = enclosing(loop.parent_op(), *LOOPS)
    return found


def _is_invariant(value: SSAValue, loop: Operation) -> bool:
    """Say whether a value is the same in all turns of a loop: computed outside, or again of such values."""
    op = value.owner
    if not loop.is_ancestor(op):
        return True
    return (
        isinstance(op, Operation)
        and not op.regions
        and is_side_effect_free(op)
        and all(_is_invariant(each, loop) for each in op.operands)
    )


def _sizes(store: tt.DescriptorStoreOp) -> tuple[int, ...]:
    return descriptor_type(store.desc.type).shape


def _indices(store: tt.DescriptorStoreOp) -> list[_Sum]:
    return [_sum(index) for index in store.indices]


def _sum(value: SSAValue) -> _Sum:
    known = constant_integer(value)
    if known is not None:
        return _Sum(known, {})
    match value.owner:
        case arith.AddiOp(lhs=lhs, rhs=rhs):
            return _sum(lhs).plus(_sum(rhs))
        case arith.SubiOp(lhs=lhs, rhs=rhs):
            return _sum(lhs).plus(_sum(rhs), -1)
        case arith.MuliOp(lhs=lhs, rhs=rhs):
            a, b = _sum(lhs), _sum(rhs)
            if not a.terms or not b.terms:
                factor, other = (a.constant, b) if not a.terms else (b.constant, a)
                return _Sum(0, {}).plus(other, factor)
        case _:
            pass
    return _Sum(0, {value: 1})
