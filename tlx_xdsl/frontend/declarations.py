"""Names that are declared before they are assigned: `name: tl.constexpr`, then `name, other = ...`."""

from __future__ import annotations

import ast

from xdsl.ir import OpResult, SSAValue
from xdsl.traits import ConstantLike, is_side_effect_free

from .carry import runtime
from .functions import is_compile_time
from .values import Tensor, TupleValue, Value
from .visitor import Visitor


def declare(visitor: Visitor, name: str, *, is_constexpr: bool) -> None:
    """Say of a name, for its next assignment alone, whether that keeps a constexpr."""
    visitor.declared = visitor.declared | {name} if is_constexpr else visitor.declared - {name}


def bound(visitor: Visitor, node: ast.expr, target: ast.expr, value: Value) -> Value:
    """`value` as an assignment to `target` binds it: numbers become runtime scalars, but for names that are declared.

    Raises CompilationError, located at the value, where a name that is declared constexpr would get something else.
    """
    match target:
        case ast.Name(id=name) if name in visitor.declared:
            declare(visitor, name, is_constexpr=False)
            return known(visitor, node, name, value)
        case ast.Tuple() | ast.List() if visitor.declared:
            items = visitor.items_of(value)
            starred = any(isinstance(element, ast.Starred) for element in target.elts)
            if items is None or starred or len(items) != len(target.elts):
                return runtime(visitor, node, value)
            pairs = zip(target.elts, items, strict=True)
            return TupleValue(tuple(bound(visitor, node, element, item) for element, item in pairs))
        case ast.Attribute():
            # A field of an aggregate takes the value as it is: it may be a constexpr.
            return value
        case _:
            return runtime(visitor, node, value)


def known(visitor: Visitor, node: ast.expr, name: str, value: Value) -> Value:
    """The value of a name that is declared constexpr: one that a constexpr alone decides.

    Functions of the language make operations of a constexpr (`tl.sqrt(2.0)`); stock Triton lets such a name have these.

    Raises CompilationError for a runtime value.
    """
    if not is_compile_time(value) and not (isinstance(value, Tensor) and _is_of_constants(value.ssa)):
        raise visitor.error(node, f"'{name}' is declared constexpr, found {value.describe()}")
    return value


def _is_of_constants(value: SSAValue) -> bool:
    """Say whether operations without effects make a value of nothing but constants."""
    seen: set[SSAValue] = set()
    open_ = [value]
    while open_:
        each = open_.pop()
        if each in seen:
            continue
        seen.add(each)
        if not isinstance(each, OpResult) or each.op.regions or not is_side_effect_free(each.op):
            return False
        if not each.op.operands and not each.op.has_trait(ConstantLike):
            return False
        open_ += each.op.operands
    return True
