"""Values of `emitc` as C++: types, numbers, and expressions with as few parentheses as C++ needs."""

from __future__ import annotations

from functools import singledispatch
from typing import NamedTuple, Protocol

import numpy as np
from xdsl.dialects.builtin import (
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    SignednessAttr,
)
from xdsl.dialects.emitc import (
    EmitC_CallOpaqueOp,
    EmitC_LValueType,
    EmitC_OpaqueAttr,
    EmitC_OpaqueType,
    EmitC_PointerType,
    EmitC_PtrDiffT,
    EmitC_SizeT,
)
from xdsl.ir import Attribute, Operation, SSAValue

from tlx_xdsl.text.diagnostics import error_at

from ..dialects.emitc.expressions import BinaryOp, CastOp, CmpOp, ConditionalOp, ConstantOp, LiteralOp


class Expression(NamedTuple):
    """Text, and how tightly its outermost operator binds: the higher, the tighter."""

    text: str
    binds: int


ATOM = 100
_UNARY = 90
_PRECEDENCE = {"*": 80, "/": 80, "%": 80, "+": 70, "-": 70, "&": 40, "^": 39, "|": 38}
COMPARISON = 50
_CONDITIONAL = 10


class Operands(Protocol):
    """Gives the operands of an expression."""

    def expression(self, value: SSAValue) -> Expression:
        """A value as C++."""
        ...

    def has_name(self, value: SSAValue) -> bool:
        """Whether a value is written by its name."""
        ...


def type_text(type_: Attribute, at: Operation | SSAValue) -> str:
    """A type as C++."""
    match type_:
        case EmitC_SizeT() | IndexType():
            return "size_t"
        case EmitC_PtrDiffT():
            return "ptrdiff_t"
        case IntegerType(width=IntAttr(data=1)):
            return "bool"
        case IntegerType(width=IntAttr(data=width), signedness=SignednessAttr(data=sign)) if width in (8, 16, 32, 64):
            return f"{'u' if sign is Signedness.UNSIGNED else ''}int{width}_t"
        case Float32Type():
            return "float"
        case Float64Type():
            return "double"
        case EmitC_OpaqueType():
            return type_.value.data
        case EmitC_PointerType():
            return f"{type_text(type_.pointee_type, at)}*"
        case EmitC_LValueType():
            return type_text(type_.value_type, at)
        case _:
            raise error_at(at, f"expected a type of emitc, found {type_}: run convert-ttkernel-to-emitc first")


def number_text(value: Attribute) -> str:
    """A number as C++."""
    match value:
        case IntegerAttr(type=IntegerType(width=IntAttr(data=1))):
            return "true" if value.value.data else "false"
        case IntegerAttr():
            return str(value.value.data)
        case FloatAttr():
            number = value.value.data
            if not np.isfinite(number):
                return '__builtin_nanf("")' if np.isnan(number) else f"{'-' * (number < 0)}__builtin_inff()"
            shown = repr(float(number)) if isinstance(value.type, Float64Type) else str(np.float32(number))
            return shown if isinstance(value.type, Float64Type) else f"{shown}f"
        case EmitC_OpaqueAttr():
            return value.value.data
        case _:
            return str(value)


def inner(expression: Expression, binds: int) -> str:
    """The text of an operand of an operator: in parentheses where that binds more tightly."""
    return f"({expression.text})" if expression.binds < binds else expression.text


@singledispatch
def expression_of(op: Operation, operands: Operands) -> Expression:
    """The value of an operation as C++."""
    raise error_at(op, f"expected an operation of emitc, found {op.name}: run convert-ttkernel-to-emitc first")


@expression_of.register
def _constant(op: ConstantOp, operands: Operands) -> Expression:
    text = number_text(op.value)
    return Expression(text, _UNARY if text.startswith("-") else ATOM)


@expression_of.register
def _literal(op: LiteralOp, operands: Operands) -> Expression:
    return Expression(op.value.data, ATOM)


@expression_of.register
def _cast(op: CastOp, operands: Operands) -> Expression:
    return Expression(f"({type_text(op.result.type, op)}){inner(operands.expression(op.source), _UNARY)}", _UNARY)


@expression_of.register
def _binary(op: BinaryOp, operands: Operands) -> Expression:
    binds = _PRECEDENCE[op.OPERATOR]
    # Operators of bits have their operands in parentheses, for the reader.
    around = binds if binds > COMPARISON else ATOM
    right = operands.expression(op.rhs)
    # Others of one rank are read from the left; after `+` that makes no difference.
    after = around if op.OPERATOR == "+" or around == ATOM else around + 1
    return Expression(f"{inner(operands.expression(op.lhs), around)} {op.OPERATOR} {inner(right, after)}", binds)


@expression_of.register
def _comparison(op: CmpOp, operands: Operands) -> Expression:
    left, right = (inner(operands.expression(value), COMPARISON + 1) for value in (op.lhs, op.rhs))
    return Expression(f"{left} {op.predicate.data} {right}", COMPARISON)


@expression_of.register
def _conditional(op: ConditionalOp, operands: Operands) -> Expression:
    condition, yes, no = (inner(operands.expression(value), _CONDITIONAL + 1) for value in op.operands)
    return Expression(f"{condition} ? {yes} : {no}", _CONDITIONAL)


@expression_of.register
def _call(op: EmitC_CallOpaqueOp, operands: Operands) -> Expression:
    template = "" if op.template_args is None else f"<{', '.join(map(number_text, op.template_args))}>"
    if op.args is None:
        arguments = [_argument(value, operands) for value in op.call_args]
    else:
        arguments = [_argument_text(each, op, operands) for each in op.args]
    return Expression(f"{op.callee.data}{template}({', '.join(arguments)})", ATOM)


def _argument_text(argument: Attribute, op: EmitC_CallOpaqueOp, operands: Operands) -> str:
    """An argument that is the number of an operand, or itself."""
    match argument:
        case IntegerAttr(type=IndexType()):
            return _argument(op.call_args[argument.value.data], operands)
        case _:
            return number_text(argument)


def is_integer(type_: Attribute) -> bool:
    """Whether C++ converts to and from the type without being asked."""
    return isinstance(type_, IntegerType | EmitC_SizeT | EmitC_PtrDiffT)


def _argument(value: SSAValue, operands: Operands) -> str:
    """An argument; parameters convert integers without a cast."""
    owner = value.owner
    if isinstance(owner, CastOp) and not operands.has_name(value) and is_integer(value.type):
        value = owner.source
    return operands.expression(value).text
