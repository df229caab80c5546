"""Constraints of operands, results and attributes in words, from xDSL's constraints."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    ArrayAttr,
    ArrayOfConstraint,
    BoolAttr,
    DenseArrayBase,
    IntegerAttr,
    StringAttr,
    SymbolNameConstraint,
    UnitAttr,
)
from xdsl.ir import Attribute, TypeAttribute
from xdsl.irdl import (
    AllOf,
    AnyAttr,
    AnyOf,
    BaseAttr,
    EqAttrConstraint,
    MessageConstraint,
    ParamAttrConstraint,
    RangeLengthConstraint,
    RangeOf,
    VarConstraint,
)

from tlx_xdsl.dialects.base.constraints import Derived, TensorOf, TypeIs
from tlx_xdsl.dialects.base.enums import EnumNumber

_KNOWN: dict[type[Attribute], str] = {
    ArrayAttr: "an array of attributes",
    BoolAttr: "true or false",
    DenseArrayBase: "an array of integers",
    IntegerAttr: "an integer",
    StringAttr: "a string",
    UnitAttr: "there or not",
}
"""Attributes that need no name of MLIR's."""


def words(constraint: object) -> str:
    """Describe the attributes that satisfy a constraint.

    Raises ValueError for a kind of constraint that no operation of ours has had so far.
    """
    match constraint:
        case RangeLengthConstraint(constraint=inner) | RangeOf(constr=inner) | MessageConstraint(constr=inner):
            return words(inner)
        case VarConstraint(name=name, constraint=inner):
            return f"{words(inner)} ({name})"
        case AllOf(attr_constrs=inner):
            # The first ones only say of which class the attribute is.
            return words(inner[-1])
        case AnyOf(attr_constrs=inner):
            return " or ".join(words(each) for each in inner)
        case ArrayOfConstraint(elem_range_constraint=inner):
            return f"an array, each {words(inner)}"
        case _:
            return _simple(constraint)


def _simple(constraint: object) -> str:
    """The words for a constraint that has no others in it."""
    match constraint:
        case TypeIs(what=what):
            return what
        case TensorOf(what=what):
            return f"a tensor of {what}"
        case Derived(variable=variable):
            return f"what follows from {variable}"
        case EnumNumber(enum=enum):
            return "one of " + ", ".join(f"`{case.keyword}`" for case in enum)
        case EqAttrConstraint(attr=attr):
            return f"`{attr}`"
        case BaseAttr(attr=cls):
            return _of_class(cls)
        case ParamAttrConstraint():
            return _of_parameters(constraint)
        case SymbolNameConstraint():
            return "a symbol's name"
        case AnyAttr():
            return "any"
        case _:
            raise ValueError(f"no description of the constraint {constraint!r}")


def _of_class(cls: type[Attribute]) -> str:
    if cls in _KNOWN:
        return _KNOWN[cls]
    name = getattr(cls, "name", None)
    if name is None:
        return f"one of `{cls.__name__}`"
    return f"`{'!' if issubclass(cls, TypeAttribute) else '#'}{name}`"


def _of_parameters(constraint: ParamAttrConstraint[Attribute]) -> str:
    if constraint.base_attr is IntegerAttr:
        type_words = words(constraint.param_constrs[1])
        return "true or false" if type_words == "`i1`" else f"an integer, {type_words}"
    return _of_class(constraint.base_attr)
