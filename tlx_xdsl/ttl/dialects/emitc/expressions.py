"""Expressions of C++ without effects: the printer may write one where its result is used."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure


class ExpressionOp(IRDLOperation):
    """Base of what is an expression without effects: the printer may write it where its result is used."""

    result = result_def(AnyAttr())

    traits = traits_def(Pure())


@irdl_op_definition
class LiteralOp(ExpressionOp):
    """Text that is a value: `%0 = emitc.literal "INFINITY" : f32`."""

    name = "emitc.literal"

    value = prop_def(StringAttr)

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$value attr-dict `:` type($result)"

    def __init__(self, value: str, type_: Attribute):
        super().__init__(properties={"value": StringAttr(value)}, result_types=[type_])


@irdl_op_definition
class SubscriptOp(ExpressionOp):
    """An element of an array: `%2 = emitc.subscript %0, %1 : (!emitc.opaque<"auto">, i32) -> i32` (here a value)."""

    name = "emitc.subscript"

    array = operand_def(AnyAttr())
    index = operand_def(AnyAttr())

    assembly_format = "operands attr-dict `:` functional-type(operands, results)"

    def __init__(self, array: SSAValue, index: SSAValue, type_: Attribute):
        super().__init__(operands=[array, index], result_types=[type_])


@irdl_op_definition
class ConstantOp(ExpressionOp):
    """A number: `%0 = "emitc.constant"() <{value = 4 : i32}> : () -> i32`."""

    name = "emitc.constant"

    value = prop_def(AnyAttr())

    def __init__(self, value: Attribute, type_: Attribute):
        super().__init__(properties={"value": value}, result_types=[type_])


@irdl_op_definition
class CastOp(ExpressionOp):
    """A conversion: `%1 = emitc.cast %0 : i32 to !emitc.size_t`."""

    name = "emitc.cast"

    source = operand_def(AnyAttr())

    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue, type_: Attribute):
        super().__init__(operands=[source], result_types=[type_])


class BinaryOp(ExpressionOp):
    """Base of the operators with two operands."""

    OPERATOR: ClassVar[str]

    lhs = operand_def(AnyAttr())
    rhs = operand_def(AnyAttr())

    assembly_format = "operands attr-dict `:` functional-type(operands, results)"

    def __init__(self, lhs: SSAValue, rhs: SSAValue, type_: Attribute):
        super().__init__(operands=[lhs, rhs], result_types=[type_])


@irdl_op_definition
class AddOp(BinaryOp):
    """The sum: `%2 = emitc.add %0, %1 : (i32, i32) -> i32`."""

    name = "emitc.add"
    OPERATOR: ClassVar = "+"


@irdl_op_definition
class SubOp(BinaryOp):
    """The difference."""

    name = "emitc.sub"
    OPERATOR: ClassVar = "-"


@irdl_op_definition
class MulOp(BinaryOp):
    """The product."""

    name = "emitc.mul"
    OPERATOR: ClassVar = "*"


@irdl_op_definition
class DivOp(BinaryOp):
    """The quotient; of integers, rounded towards zero."""

    name = "emitc.div"
    OPERATOR: ClassVar = "/"


@irdl_op_definition
class RemOp(BinaryOp):
    """The remainder of a quotient that is rounded towards zero."""

    name = "emitc.rem"
    OPERATOR: ClassVar = "%"


@irdl_op_definition
class BitwiseAndOp(BinaryOp):
    """The bits that both have; of conditions, whether both are true."""

    name = "emitc.bitwise_and"
    OPERATOR: ClassVar = "&"


@irdl_op_definition
class BitwiseOrOp(BinaryOp):
    """The bits that one has; of conditions, whether one is true."""

    name = "emitc.bitwise_or"
    OPERATOR: ClassVar = "|"


@irdl_op_definition
class BitwiseXorOp(BinaryOp):
    """The bits that one alone has."""

    name = "emitc.bitwise_xor"
    OPERATOR: ClassVar = "^"


@irdl_op_definition
class CmpOp(ExpressionOp):
    """A comparison: `%2 = emitc.cmp "<" %0, %1 : (i32, i32) -> i1` (upstream's predicates are numbers)."""

    name = "emitc.cmp"

    predicate = prop_def(StringAttr)
    lhs = operand_def(AnyAttr())
    rhs = operand_def(AnyAttr())

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$predicate operands attr-dict `:` functional-type(operands, results)"

    def __init__(self, predicate: str, lhs: SSAValue, rhs: SSAValue, type_: Attribute):
        super().__init__(properties={"predicate": StringAttr(predicate)}, operands=[lhs, rhs], result_types=[type_])


@irdl_op_definition
class ConditionalOp(ExpressionOp):
    """A choice of two values: `%3 = emitc.conditional %c, %0, %1 : (i1, i32, i32) -> i32`."""

    name = "emitc.conditional"

    condition = operand_def(AnyAttr())
    true_value = operand_def(AnyAttr())
    false_value = operand_def(AnyAttr())

    assembly_format = "operands attr-dict `:` functional-type(operands, results)"

    def __init__(self, condition: SSAValue, true_value: SSAValue, false_value: SSAValue, type_: Attribute):
        super().__init__(operands=[condition, true_value, false_value], result_types=[type_])
