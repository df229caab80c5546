"""Atomic accesses, one element after the other, in the order of positions."""

from __future__ import annotations

from xdsl.dialects import arith as upstream
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Block, Region, SSAValue

from tlx_xdsl.dialects import arith, memref, tt
from tlx_xdsl.dialects.base import element_bits
from tlx_xdsl.dialects.tt.enums import RMWOp
from tlx_xdsl.text.diagnostics import report_remark
from tlx_xdsl.transforms.linalg.emitter import Emitter

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
        block = Block(arg_types=[given.type])
        new = upstream.XOrIOp(block.args[0], given)
        block.add_ops([new, memref.AtomicYieldOp(new.result)])
        return emit.value(memref.GenericAtomicRMWOp(cell, [emit.operand(0)], Region(block)))
    return emit.value(memref.AtomicRMWOp(kind, given, cell, [emit.operand(0)]))


def compare_and_swap(emit: Emitter, cell: SSAValue, expected: SSAValue, given: SSAValue) -> SSAValue:
    """Emit a load, a comparison of the bits, and a store; give the old element."""
    old = emit.load(cell, [0])
    equal = emit.value(arith.CmpiOp("eq", _bits(emit, old), _bits(emit, expected)))
    emit.store(emit.value(arith.SelectOp(equal, given, old)), cell, [0])
    return old


def warn_of_swap(op: tt.AtomicCASOp) -> None:
    """Report that a compare-and-swap is several accesses: `memref` has none that gives the old element."""
    report_remark(
        op,
        "a compare-and-swap is a load and a store in linalg: programs must run one after the other, not at once",
    )


def _bits(emit: Emitter, value: SSAValue) -> SSAValue:
    if isinstance(value.type, IntegerType):
        return value
    return emit.value(upstream.BitcastOp(value, IntegerType(element_bits(value.type))))
