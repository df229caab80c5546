"""Enumerations that Triton keeps as 32-bit integers and writes as keywords.

In the generic form and in an attribute dictionary such a value is an integer (`sem = 4 : i32`); where an operation's
own syntax shows it, it is a bare keyword (`acq_rel`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeVar

from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Attribute
from xdsl.irdl import AttrConstraint, IntConstraint, IRDLOperation, VerificationContext
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

EnumT = TypeVar("EnumT", bound="Keyword")


class Keyword(IntEnum):
    """Base of the enumerations: each case is `NAME = number`, or `NAME = number, "keyword"` for another word."""

    _value_: int
    _word: str

    def __new__(cls, number: int, word: str = ""):
        """A case, with its keyword where that is not its name in lower case."""
        case = int.__new__(cls, number)
        case._value_ = number
        case._word = word
        return case

    @property
    def keyword(self) -> str:
        """The word in the syntax of operations."""
        return self._word or self.name.lower()

    @property
    def attr(self) -> IntegerAttr:
        """The attribute that holds this case."""
        return IntegerAttr(self.value, i32)


def parse_keyword_of(parser: AttrParser, enum: type[EnumT]) -> EnumT:
    """Read one of the keywords of `enum`."""
    position = parser.pos
    word = parser.parse_optional_identifier()
    case = next((case for case in enum if case.keyword == word), None)
    if case is None:
        expected = ", ".join(case.keyword for case in enum)
        parser.raise_error(f"expected one of {expected}" + (f", found '{word}'" if word else ""), position)
    return case


@dataclass(frozen=True)
class EnumNumber(AttrConstraint[IntegerAttr]):
    """Accepts the 32-bit integers that are cases of `enum`."""

    enum: type[Keyword]

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        """Refuse what is no case."""
        if attr not in [case.attr for case in self.enum]:
            cases = ", ".join(f"{case.value} ({case.keyword})" for case in self.enum)
            raise VerifyException(f"{attr} is no {self.enum.__name__}, expected one of {cases}")

    def mapping_type_vars(self, type_var_mapping: Mapping[Any, AttrConstraint | IntConstraint]) -> EnumNumber:
        """Return the constraint: it has no type variables."""
        return self


class _KeywordDirective(CustomDirective):
    """Reads and writes an enumeration attribute as its keyword."""

    enum: type[Keyword]
    variable: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the keyword."""
        self.variable.set(state, parse_keyword_of(parser, self.enum).attr)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the keyword."""
        state.print_whitespace(printer)
        number = self.variable.get(op)
        assert isinstance(number, IntegerAttr)
        printer.print_string(self.enum(number.value.data).keyword)

    def is_present(self, op: IRDLOperation) -> bool:
        """True if the value differs from its default."""
        return self.variable.is_present(op)

    def is_anchorable(self) -> bool:
        """True if the value may decide about an optional group."""
        return self.variable.is_anchorable()


def keyword_directive(enum: type[Keyword]) -> type[CustomDirective]:
    """The directive `custom<Enum>($attribute)`, named like `enum`, for declarative formats."""

    class Directive(_KeywordDirective):
        variable: AttributeVariable

    Directive.__name__ = enum.__name__
    Directive.enum = enum
    return irdl_custom_directive(Directive)
