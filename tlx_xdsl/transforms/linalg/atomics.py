"""Atomic accesses as those of `memref`, one element after the other, in the order of positions."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith as upstream
from xdsl.dialects.builtin import AnyFloat, IntegerType
from xdsl.ir import Attribute, Block, Region, SSAValue

from tlx_xdsl.dialects import arith, memref, tt
from tlx_xdsl.dialects.base import element_bits, scalar_type
from tlx_xdsl.dialects.tt.enums import RMWOp
from tlx_xdsl.transforms.linalg.emitter import Emitter
from tlx_xdsl.transforms.linalg.refusal import refuse

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
"""`memref.atomic_rmw` has no exclusive or in all versions of LLVM."""

Access = Callable[[Emitter, SSAValue, SSAValue | None], SSAValue]
"""Emits one access to the first element of memory; the second value is the element that is given, if there is one."""


def read_modify_write(op: tt.AtomicRMWOp) -> Callable[[Emitter, SSAValue, SSAValue], SSAValue]:
    """What emits the operation for one element, and gives the old one."""
    kind = RMWOp(op.atomic_rmw_op.value.data)

    def access(emit: Emitter, cell: SSAValue, given: SSAValue) -> SSAValue:
        if (name := _KINDS.get(kind)) is not None:
            return emit.value(memref.AtomicRMWOp(name, given, cell, [emit.operand(0)]))
        return _replaced(emit, cell, lambda old: emit.value(upstream.XOrIOp(old, given)))

    return access


def compare_and_swap(op: tt.AtomicCASOp) -> Callable[[Emitter, SSAValue, SSAValue, SSAValue], SSAValue]:
    """What emits the operation for one element, from memory, `cmp` and `val`, and gives the old one."""
    element = scalar_type(op.val.type)
    if not isinstance(element, IntegerType | AnyFloat):
        raise refuse(op, f"it compares elements of type {element}")

    def access(emit: Emitter, cell: SSAValue, expected: SSAValue, given: SSAValue) -> SSAValue:
        def chosen(old: SSAValue) -> SSAValue:
            equal = emit.value(arith.CmpiOp("eq", _bits(emit, old), _bits(emit, expected)))
            return emit.value(arith.SelectOp(equal, given, old))

        return _replaced(emit, cell, chosen)

    return access


def _bits(emit: Emitter, value: SSAValue) -> SSAValue:
    if isinstance(value.type, IntegerType):
        return value
    return emit.value(upstream.BitcastOp(value, IntegerType(element_bits(value.type))))


def _replaced(emit: Emitter, cell: SSAValue, make: Callable[[SSAValue], SSAValue]) -> SSAValue:
    """Replace the first element by what `make` gives for it, as one access; gives the old one.

    `memref.generic_atomic_rmw` gives the new element; a buffer of one element keeps the old one.
    """
    element: Attribute = memref.element_of(cell.type)
    kept = emit.buffer((1,), element)
    body = Block(arg_types=[element])
    emit.add(memref.GenericAtomicRMWOp(cell, [emit.operand(0)], Region(body)))
    with emit.inside(body):
        emit.store(body.args[0], kept, [0])
        emit.add(memref.AtomicYieldOp(make(body.args[0])))
    return emit.load(kept, [0])
