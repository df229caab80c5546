"""Atomic accesses, one element after the other, in the order of positions."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith as upstream
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Block, Region, SSAValue

from tlx_xdsl.dialects import arith, memref, tt
from tlx_xdsl.dialects.base import element_bits
from tlx_xdsl.dialects.tt.enums import RMWOp

from .emitter import Emitter

_KINDS = {
    RMWOp.AND: "andi",
    RMWOp.OR: "ori",
    RMWOp.ADD: "addi",
    RMWOp.FADD: "addf",
    RMWOp.MAX: "maxs",
    RMWOp.MIN: "mins",
    RMWOp.UMAX: "maxu",
    RMWOp.UMIN: "minu",
    RMWOp.XCHG: "assign",
}


def read_modify_write(op: tt.AtomicRMWOp, emit: Emitter, cell: SSAValue, given: SSAValue) -> SSAValue:
    """Emit the operation for the first element of memory, and give the old one."""
    kind = _KINDS.get(RMWOp(op.atomic_rmw_op.value.data))
    if kind is None:
        # LLVM 19 has no kind for the exclusive or.
        return _replaced(emit, cell, lambda old: emit.value(upstream.XOrIOp(old, given)))
    return emit.value(memref.AtomicRMWOp(kind, given, cell, [emit.operand(0)]))


def compare_and_swap(emit: Emitter, cell: SSAValue, expected: SSAValue, given: SSAValue) -> SSAValue:
    """Emit the replacement of the first element of memory where it has the bits of `expected`; give the old one."""
    wanted = _bits(emit, expected)

    def chosen(old: SSAValue) -> SSAValue:
        equal = emit.value(arith.CmpiOp("eq", _bits(emit, old), wanted))
        return emit.value(arith.SelectOp(equal, given, old))

    return _replaced(emit, cell, chosen)


def _replaced(emit: Emitter, cell: SSAValue, make: Callable[[SSAValue], SSAValue]) -> SSAValue:
    """Replace the first element by what `make` gives for it, as one access.

    The result of `memref.generic_atomic_rmw` is the old element where upstream MLIR lowers it, which the tests run.
    """
    position = emit.operand(0)
    body = Block(arg_types=[memref.element_of(cell.type)])
    with emit.inside(body):
        emit.add(memref.AtomicYieldOp(make(body.args[0])))
    return emit.value(memref.GenericAtomicRMWOp(cell, [position], Region(body)))


def _bits(emit: Emitter, value: SSAValue) -> SSAValue:
    if isinstance(value.type, IntegerType):
        return value
    return emit.value(upstream.BitcastOp(value, IntegerType(element_bits(value.type))))
