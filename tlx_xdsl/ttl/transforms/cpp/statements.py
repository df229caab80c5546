"""Loops, conditions and arithmetic as `emitc`.

An index is a `size_t`, as the API has it; where the sign of one counts and may be below 0, it is a `ptrdiff_t`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import singledispatch

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, UnrealizedConversionCastOp
from xdsl.dialects.emitc import EmitC_LValueType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tlx_xdsl.dialects.arith import CmpiOp, SelectOp
from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.ttl.analysis.signs import is_non_negative
from tlx_xdsl.ttl.dialects.emitc import structure
from tlx_xdsl.ttl.dialects.emitc.expressions import (
    AddOp,
    BinaryOp,
    BitwiseAndOp,
    BitwiseOrOp,
    BitwiseXorOp,
    CmpOp,
    ConditionalOp,
    ConstantOp,
    DivOp,
    MulOp,
    RemOp,
    SubOp,
)
from tlx_xdsl.ttl.dialects.ttkernel.base import TTKernelOp

from .calls import convert_call
from .conversion import SIGNED_SIZE, SIZE, Conversion
from .objects import convert_object

_PREDICATES = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")
_FIRST_SIGNED, _FIRST_UNSIGNED = 2, 6


def converted_type(type_: Attribute, at: Operation) -> Attribute:
    """The type of a number in `emitc`."""
    match type_:
        case IndexType():
            return SIZE
        case IntegerType():
            return type_
        case _:
            raise error_at(at, f"there is no C++ for a value of type {type_}")


def convert_block(block: Block, to: Conversion) -> None:
    """Convert the operations of a block."""
    for op in block.ops:
        to.at(op)
        convert(op, to)


@singledispatch
def convert(op: Operation, to: Conversion) -> None:
    """Emit what an operation is in C++."""
    raise error_at(op, f"there is no C++ for {op.name}: lower it to ttkernel, scf and arith first")


@convert.register
def _call(op: TTKernelOp, to: Conversion) -> None:
    (convert_object if to.profile.has_objects else convert_call)(op, to)


@convert.register
def _return(op: func.ReturnOp, to: Conversion) -> None:
    pass


@convert.register
def _no_cast(op: UnrealizedConversionCastOp, to: Conversion) -> None:
    raise error_at(op, "a conversion between ttl and ttkernel is left: run ttl-lower-synchronization first")


@convert.register
def _constant(op: arith.ConstantOp, to: Conversion) -> None:
    if not isinstance(op.value, IntegerAttr):
        raise error_at(op, f"there is no C++ for the constant {op.value}")
    to.set(op.result, to.emit(ConstantOp(op.value, converted_type(op.result.type, op))).result)


def _with_sign(operands: Sequence[SSAValue], to: Conversion) -> list[SSAValue]:
    """Operands of what depends on their signs."""
    values = [to.value(operand) for operand in operands]
    if not isinstance(operands[0].type, IndexType) or all(is_non_negative(operand) for operand in operands):
        return values
    return [to.cast(value, SIGNED_SIZE) for value in values]


def _binary(made: type[BinaryOp]) -> Callable[[Operation, Conversion], None]:
    def handler(op: Operation, to: Conversion) -> None:
        with_sign = isinstance(op, arith.DivSIOp | arith.RemSIOp)
        lhs, rhs = _with_sign(op.operands, to) if with_sign else map(to.value, op.operands)
        to.set(op.results[0], to.emit(made(lhs, rhs, converted_type(op.results[0].type, op))).result)

    return handler


_OPERATORS = {
    arith.AddiOp: _binary(AddOp),
    arith.SubiOp: _binary(SubOp),
    arith.MuliOp: _binary(MulOp),
    arith.DivSIOp: _binary(DivOp),
    arith.RemSIOp: _binary(RemOp),
    arith.AndIOp: _binary(BitwiseAndOp),
    arith.OrIOp: _binary(BitwiseOrOp),
    arith.XOrIOp: _binary(BitwiseXorOp),
}
for _class, _handler in _OPERATORS.items():
    convert.register(_class, _handler)


@convert.register(arith.MinSIOp)
@convert.register(arith.MaxSIOp)
def _extremum(op: arith.MinSIOp | arith.MaxSIOp, to: Conversion) -> None:
    lhs, rhs = _with_sign(op.operands, to)
    smaller = to.emit(CmpOp("<" if isinstance(op, arith.MinSIOp) else ">", lhs, rhs, IntegerType(1))).result
    to.set(op.result, to.emit(ConditionalOp(smaller, lhs, rhs, converted_type(op.result.type, op))).result)


@convert.register(arith.CmpiOp)
@convert.register(CmpiOp)
def _compare(op: arith.CmpiOp | CmpiOp, to: Conversion) -> None:
    predicate = op.predicate.value.data
    signed = _FIRST_SIGNED <= predicate < _FIRST_UNSIGNED
    if predicate >= _FIRST_UNSIGNED and isinstance(op.lhs.type, IntegerType):
        raise error_at(op, "there is no C++ for an unsigned comparison of i32, which is a signed type")
    lhs, rhs = _with_sign(op.operands, to) if signed else map(to.value, op.operands)
    to.set(op.result, to.emit(CmpOp(_PREDICATES[predicate], lhs, rhs, IntegerType(1))).result)


@convert.register(arith.SelectOp)
@convert.register(SelectOp)
def _select(op: arith.SelectOp | SelectOp, to: Conversion) -> None:
    condition, yes, no = map(to.value, op.operands)
    to.set(op.result, to.emit(ConditionalOp(condition, yes, no, converted_type(op.result.type, op))).result)


@convert.register
def _cast(op: arith.IndexCastOp, to: Conversion) -> None:
    value = to.cast(to.value(op.input), converted_type(op.result.type, op))
    to.set(op.result, value)


# --- control flow; what a loop or a condition gives is in variables


def _variables(values: tuple[SSAValue, ...], op: Operation, to: Conversion) -> list[SSAValue]:
    variables: list[SSAValue] = []
    for value in values:
        variable = to.emit(structure.VariableOp(converted_type(value.type, op))).result
        variable.name_hint = value.name_hint
        variables.append(variable)
    return variables


def _load(variables: list[SSAValue], values: tuple[SSAValue, ...], to: Conversion) -> None:
    # Each is read once, into a constant: a loop may exchange two variables.
    for variable, value in zip(variables, values, strict=True):
        assert isinstance(variable.type, EmitC_LValueType)
        to.set(value, to.emit(structure.LoadOp(variable, variable.type.value_type)).result)


def _store(values: list[SSAValue], variables: list[SSAValue], to: Conversion) -> None:
    for value, variable in zip(values, variables, strict=True):
        to.emit(structure.AssignOp(value, variable))


def _nested(block: Block, to: Conversion, arguments: tuple[Attribute, ...] = ()) -> Block:
    """An empty block that is filled next; returns the one that was."""
    before = to.block
    to.block = Block(arg_types=arguments)
    return before


@convert.register
def _for(op: scf.ForOp, to: Conversion) -> None:
    # The bounds of a loop are compared as signed numbers.
    bounds = (op.lb, op.ub, op.step)
    signed = isinstance(op.ub.type, IndexType) and not all(is_non_negative(bound) for bound in bounds)
    type_ = SIGNED_SIZE if signed else converted_type(op.lb.type, op)
    lower, upper, step = (to.cast(to.value(bound), type_) for bound in bounds)
    variables = _variables(tuple(op.results), op, to)
    _store([to.value(value) for value in op.iter_args], variables, to)
    before = _nested(op.body.block, to, (type_,))
    index, *carried = op.body.block.args
    to.set(index, to.block.args[0])
    _load(variables, tuple(carried), to)
    convert_block(op.body.block, to)
    body, to.block = to.block, before
    _assign_yields(op.body.block, body, variables, to)
    to.at(op)
    to.emit(structure.ForOp(lower, upper, step, Region(body)))
    _load(variables, tuple(op.results), to)


@convert.register
def _if(op: scf.IfOp, to: Conversion) -> None:
    variables = _variables(tuple(op.results), op, to)
    regions: list[Region] = []
    for region in op.regions:
        if not region.blocks:
            continue
        before = _nested(region.block, to)
        convert_block(region.block, to)
        body, to.block = to.block, before
        regions.append(Region(body))
        _assign_yields(region.block, body, variables, to)
    to.at(op)
    has_else = len(regions) > 1 and not regions[1].block.is_empty
    to.emit(structure.IfOp(to.value(op.cond), regions[0], regions[1] if has_else else None))
    _load(variables, tuple(op.results), to)


def _assign_yields(block: Block, body: Block, variables: list[SSAValue], to: Conversion) -> None:
    terminator = block.last_op
    if not variables or terminator is None:
        return
    outer, to.block = to.block, body
    _store([to.value(value) for value in terminator.operands], variables, to)
    to.block = outer


@convert.register
def _yield(op: scf.YieldOp, to: Conversion) -> None:
    pass
