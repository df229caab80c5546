"""`arith` with the operations that xDSL 0.75 does not have, or has only for scalars, replaced by ours.

xDSL's own `arith` gives a tensor comparison a scalar result and rejects tensors in `select` and in the integer and
float casts. The operations here have the same names and MLIR's semantics on scalars and tensors. This dialect is
registered by our own tools only, never for other people's `xdsl-opt`.
"""

from __future__ import annotations

from types import UnionType
from typing import ClassVar, Self

from xdsl.dialects import arith as upstream
from xdsl.dialects.builtin import AnyFloat, IntegerAttr, IntegerType, i1, i64
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .base import FLOAT_LIKE, dialect_of, element_bits, same, scalar_type, with_element_type

CMPI_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
"""Names of the integer comparisons, in the order of their numbers (ArithBase.td)."""

CMPF_PREDICATES = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord",
    "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip
"""Names of the float comparisons, in the order of their numbers (ArithBase.td)."""


class _CompareOp(IRDLOperation):
    predicate = prop_def(IntegerAttr.constr(i64))
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()

    traits = traits_def(Pure())

    PREDICATES: ClassVar[tuple[str, ...]] = ()

    def __init__(self, predicate: str, lhs: SSAValue, rhs: SSAValue):
        super().__init__(
            operands=[lhs, rhs],
            properties={"predicate": IntegerAttr(self.PREDICATES.index(predicate), i64)},
            result_types=[with_element_type(lhs.type, i1)],
        )

    @property
    def predicate_name(self) -> str:
        """The comparison, such as `slt`."""
        return self.PREDICATES[self.predicate.value.data]

    def verify_(self) -> None:
        """Both sides have one type; the result is i1 of the same shape."""
        if self.lhs.type != self.rhs.type:
            raise VerifyException(f"compares {self.lhs.type} with {self.rhs.type}")
        if self.result.type != with_element_type(self.lhs.type, i1):
            raise VerifyException(f"the result must be {with_element_type(self.lhs.type, i1)}")

    def print(self, printer: Printer) -> None:
        """Print ` slt, %a, %b : type`."""
        printer.print_string(f" {self.predicate_name}, ")
        printer.print_operand(self.lhs)
        printer.print_string(", ")
        printer.print_operand(self.rhs)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.lhs.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse what `print` writes, and the predicate in quotes, as MLIR once wrote it."""
        position = parser.pos
        predicate = parser.parse_identifier_or_str_literal()
        if predicate not in cls.PREDICATES:
            parser.raise_error(f"expected one of {', '.join(cls.PREDICATES)}, found '{predicate}'", position)
        parser.parse_punctuation(",")
        lhs = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        rhs = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        op = cls(predicate, parser.resolve_operand(lhs, type_), parser.resolve_operand(rhs, type_))
        op.attributes |= attributes
        return op


@irdl_op_definition
class CmpiOp(_CompareOp):
    """Compare integers: `%c = arith.cmpi slt, %a, %b : tensor<64xi32>` yields `tensor<64xi1>`."""

    name = "arith.cmpi"
    PREDICATES: ClassVar = CMPI_PREDICATES


@irdl_op_definition
class CmpfOp(_CompareOp):
    """Compare floats: `%c = arith.cmpf olt, %a, %b : f32`."""

    name = "arith.cmpf"
    PREDICATES: ClassVar = CMPF_PREDICATES


@irdl_op_definition
class SelectOp(IRDLOperation):
    """`true_value` where `condition` holds, else `false_value`; a tensor may have a scalar or a tensor condition."""

    name = "arith.select"

    condition = operand_def()
    true_value = operand_def()
    false_value = operand_def()
    result = result_def()

    traits = traits_def(Pure())

    def __init__(self, condition: SSAValue, true_value: SSAValue, false_value: SSAValue):
        super().__init__(operands=[condition, true_value, false_value], result_types=[true_value.type])

    def verify_(self) -> None:
        """Both values and the result have one type; a tensor condition has their shape."""
        if not self.true_value.type == self.false_value.type == self.result.type:
            raise VerifyException(f"selects between {self.true_value.type} and {self.false_value.type}")
        expected = (i1, with_element_type(self.result.type, i1))
        if self.condition.type not in expected:
            raise VerifyException(f"the condition must be {expected[1]}, found {self.condition.type}")

    def print(self, printer: Printer) -> None:
        """Print ` %c, %t, %f : type`, with the condition's type first where that is a tensor."""
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_operand)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        if self.condition.type != i1:
            printer.print_attribute(self.condition.type)
            printer.print_string(", ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse what `print` writes."""
        operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        if len(operands) != 3 or len(types) > 2:
            parser.raise_error("expected a condition, two values and their type", position)
        condition = types[0] if len(types) == 2 else i1
        resolved = parser.resolve_operands(operands, [condition, types[-1], types[-1]], position)
        op = cls(*resolved)
        op.attributes |= attributes
        return op


class CastOp(IRDLOperation):
    """A conversion of numbers, element by element: the base of those below."""

    input = operand_def()
    result = result_def()

    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($input) `to` type($result)"

    SOURCE_KIND: ClassVar[type | UnionType] = IntegerType
    RESULT_KIND: ClassVar[type | UnionType] = IntegerType
    GROWTH: ClassVar[int] = 0
    """1: the result is wider than the source; -1: narrower; 0: any width."""

    def __init__(self, input: SSAValue, element_type: Attribute):
        super().__init__(operands=[input], result_types=[with_element_type(input.type, element_type)])

    def verify_(self) -> None:
        """Shape and layout stay, and the element types are those of this cast."""
        source, result = scalar_type(self.input.type), scalar_type(self.result.type)
        if with_element_type(self.input.type, result) != self.result.type:
            raise VerifyException(
                f"cannot change the shape or the layout: from {self.input.type} to {self.result.type}"
            )
        if not isinstance(source, self.SOURCE_KIND) or not isinstance(result, self.RESULT_KIND):
            raise VerifyException(f"cannot cast {source} to {result}")
        if self.GROWTH and (element_bits(result) - element_bits(source)) * self.GROWTH <= 0:
            word = "wider" if self.GROWTH > 0 else "narrower"
            raise VerifyException(f"the result must be {word} than {source}, found {result}")


@irdl_op_definition
class ExtSIOp(CastOp):
    """Sign-extend integers."""

    name = "arith.extsi"
    GROWTH: ClassVar = 1


@irdl_op_definition
class ExtUIOp(CastOp):
    """Zero-extend integers."""

    name = "arith.extui"
    GROWTH: ClassVar = 1


@irdl_op_definition
class TruncIOp(CastOp):
    """Drop the high bits of integers."""

    name = "arith.trunci"
    GROWTH: ClassVar = -1


@irdl_op_definition
class ExtFOp(CastOp):
    """Widen floats, exactly."""

    name = "arith.extf"
    SOURCE_KIND: ClassVar = AnyFloat
    RESULT_KIND: ClassVar = AnyFloat
    GROWTH: ClassVar = 1


@irdl_op_definition
class TruncFOp(CastOp):
    """Narrow floats, rounding to nearest even."""

    name = "arith.truncf"
    SOURCE_KIND: ClassVar = AnyFloat
    RESULT_KIND: ClassVar = AnyFloat
    GROWTH: ClassVar = -1


@irdl_op_definition
class SIToFPOp(CastOp):
    """Convert signed integers to floats."""

    name = "arith.sitofp"
    RESULT_KIND: ClassVar = AnyFloat


@irdl_op_definition
class UIToFPOp(CastOp):
    """Convert unsigned integers to floats."""

    name = "arith.uitofp"
    RESULT_KIND: ClassVar = AnyFloat


@irdl_op_definition
class FPToSIOp(CastOp):
    """Convert floats to signed integers, rounding towards zero."""

    name = "arith.fptosi"
    SOURCE_KIND: ClassVar = AnyFloat


@irdl_op_definition
class FPToUIOp(CastOp):
    """Convert floats to unsigned integers, rounding towards zero."""

    name = "arith.fptoui"
    SOURCE_KIND: ClassVar = AnyFloat


@irdl_op_definition
class RemFOp(IRDLOperation):
    """The floating-point remainder with the sign of the dividend."""

    name = "arith.remf"

    TYPE: ClassVar = same("TYPE", FLOAT_LIKE)

    lhs = operand_def(TYPE)
    rhs = operand_def(TYPE)
    result = result_def(TYPE)

    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($result)"

    def __init__(self, lhs: SSAValue, rhs: SSAValue):
        super().__init__(operands=[lhs, rhs], result_types=[lhs.type])


_OURS = list(dialect_of("arith", globals()).operations)
_OVERRIDDEN = {op.name for op in _OURS}

Arith = Dialect(
    "arith",
    [*(op for op in upstream.Arith.operations if op.name not in _OVERRIDDEN), *_OURS],
    list(upstream.Arith.attributes),
    [upstream.ArithConstantMaterializationInterface()],
)
