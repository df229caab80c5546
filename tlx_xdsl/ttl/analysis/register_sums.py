"""Sums of products that stay in registers (DST) while a loop adds to them.

The matrix unit adds a product to what a register holds, so a loop of such sums needs no packing: the packer writes
once, after it. That saves the packs of all iterations but one, and their reads of memory. It needs a register for each
tile of the block during the whole loop, in which nothing else computes. Where a sum is of other values, the vector unit
would have to add, which takes longer than to pack; the packer adds on its way to memory.

A block of 16 bits is rounded in each iteration by definition, so its sums are the packer's.
"""

from __future__ import annotations

from xdsl.dialects import affine, arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from tlx_xdsl.dialects import linalg
from tlx_xdsl.transforms.rewriting import constant_integer

from ..dialects import ttkernel, ttl
from ..dialects.ttcore import register_bytes

Loop = affine.ForOp | scf.ForOp
_EXACT_BYTES = 4
_EQUAL = 0
"""The predicate `eq` of `arith.cmpi`."""


def loop_of_sum(generic: linalg.GenericOp, first: SSAValue | None) -> Loop | None:
    """The outermost loop in which a product is added to a block of f32 and nothing else computes, if there is one.

    `first` is the condition under which the block is overwritten, which must be that of the first iteration.
    """
    *_, output = generic.outputs
    acquire = output.owner
    ops = [op for op in generic.body.block.ops if isinstance(op, ttl.TileOp)]
    if len(ops) != 1 or not isinstance(ops[0], ttl.TileMatmulOp) or not isinstance(acquire, ttl.AcquireOp):
        return None
    if register_bytes(ttl.tile_of(output.type).data_type) != _EXACT_BYTES:
        return None
    loops = _loops_between(generic, acquire)
    if not loops or (first is not None and not _is_first(first, loops)):
        return None
    return None if any(_is_in_the_way(op, generic, acquire) for op in loops[-1].walk()) else loops[-1]


def _loops_between(generic: Operation, acquire: Operation) -> list[Loop]:
    """The loops around an operation in the block of another one, from the inside, each of which runs."""
    found: list[Loop] = []
    op = generic
    while op.parent is not acquire.parent:
        around = op.parent_op()
        if not isinstance(around, Loop) or _first_index(around) is None:
            return []
        found.append(around)
        op = around
    return found


def _first_index(loop: Loop) -> int | None:
    """The index of the first iteration; None where that or the first one that is not run is not known, or none is."""
    begin, end = _bounds(loop)
    return begin if begin is not None and end is not None and begin < end else None


def _bounds(loop: Loop) -> tuple[int | None, int | None]:
    if isinstance(loop, scf.ForOp):
        return constant_integer(loop.lb), constant_integer(loop.ub)
    maps = [each.data for each in (loop.lowerBoundMap, loop.upperBoundMap)]
    if loop.lowerBoundOperands or loop.upperBoundOperands or any(len(each.results) != 1 for each in maps):
        return None, None
    begin, end = (each.eval([], [])[0] for each in maps)
    return begin, end


def _is_first(condition: SSAValue, loops: list[Loop]) -> bool:
    """Return whether a condition holds in the first iteration of all loops, and in no other one."""
    compared: set[Operation] = set()
    pending = [condition]
    while pending:
        match pending.pop().owner:
            case arith.AndIOp(lhs=left, rhs=right):
                pending += [left, right]
            case arith.CmpiOp(lhs=BlockArgument() as index, rhs=number, predicate=IntegerAttr(value=kind)):
                loop = index.block.parent_op()
                if not isinstance(loop, Loop) or loop not in loops:
                    return False
                if kind.data != _EQUAL or constant_integer(number) != _first_index(loop):
                    return False
                compared.add(loop)
            case _:
                return False
    return compared == {*loops}


def _is_in_the_way(op: Operation, generic: Operation, acquire: ttl.AcquireOp) -> bool:
    """Return whether an operation in the loop needs registers, or the block."""
    if isinstance(op, ttl.CBOp):
        return op.cb is acquire.cb
    if isinstance(op, linalg.GenericOp):
        return op is not generic
    return isinstance(op, ttkernel.ComputeOp | ttl.WritingOp | ttl.PrintOp)
