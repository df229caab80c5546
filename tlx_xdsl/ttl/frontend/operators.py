"""Operators of integers, conditions and blocks."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i1

from .affine import Affine
from .tiles import BINARY, as_tiles, elementwise, floor_quotient, is_of_tiles, matmul, negative, power
from .values import Condition, Index, Items, Static, Value
from .visitor import Visitor

_OPERATORS: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", lambda a, b: a + b),
    ast.Sub: ("-", lambda a, b: a - b),
    ast.Mult: ("*", lambda a, b: a * b),
    ast.Div: ("/", lambda a, b: a / b),
    ast.FloorDiv: ("//", lambda a, b: a // b),
    ast.Mod: ("%", lambda a, b: a % b),
    ast.Pow: ("**", lambda a, b: a**b),
    ast.MatMult: ("@", lambda a, b: a @ b),
    ast.LShift: ("<<", lambda a, b: a << b),
    ast.RShift: (">>", lambda a, b: a >> b),
    ast.BitAnd: ("&", lambda a, b: a & b),
    ast.BitOr: ("|", lambda a, b: a | b),
    ast.BitXor: ("^", lambda a, b: a ^ b),
}


def binary(visitor: Visitor, node: ast.AST, op: ast.operator, left: Value, right: Value) -> Value:
    """`left op right`."""
    word, compute = _OPERATORS[type(op)]
    if isinstance(left, Static) and isinstance(right, Static):
        try:
            return visitor.wrap(compute(left.value, right.value))
        except Exception as error:
            raise visitor.error(node, f"'{word}': {error}") from error
    if is_of_tiles(left) or is_of_tiles(right):
        return _of_tiles(visitor, node, word, left, right)
    if isinstance(left, Items) and isinstance(right, Items) and word == "+":
        return Items([*left.items, *right.items], left.is_list)
    if isinstance(left, Items) and isinstance(right, Static) and word == "*":
        return Items(left.items * right.value, left.is_list)
    if _is_integer(left) and _is_integer(right):
        return _of_integers(visitor, node, word, left, right)
    raise visitor.error(node, f"'{word}' is not for {left.describe()} and {right.describe()}")


def _is_integer(value: Value) -> bool:
    return isinstance(value, Index) or (isinstance(value, Static) and isinstance(value.value, int))


def _of_tiles(visitor: Visitor, node: ast.AST, word: str, left: Value, right: Value) -> Value:
    if word == "@":
        return matmul(visitor, node, left, right)
    if word in BINARY:
        return elementwise(visitor, node, BINARY[word], f"'{word}'", left, right)
    if word == "//":
        return floor_quotient(visitor, node, "'//'", left, right)
    if word == "**" and not is_of_tiles(right):
        return power(visitor, node, as_tiles(visitor, node, left, "'**'"), right)
    hint = ": the exponent is a number" if word == "**" else ""
    raise visitor.error(node, f"'{word}' is not for blocks{hint}")


def _of_integers(visitor: Visitor, node: ast.AST, word: str, left: Value, right: Value) -> Value:
    a, b = visitor.as_index(node, left, f"'{word}'"), visitor.as_index(node, right, f"'{word}'")
    affine = a.is_affine and b.is_affine
    x, y = a.affine, b.affine
    match word:
        case "+":
            return _index(x + y, affine)
        case "-":
            return _index(x - y, affine)
        case "*":
            if y.known is not None:
                return _index(x.times(y.known), affine)
            if x.known is not None:
                return _index(y.times(x.known), affine)
            return _computed(visitor, arith.MuliOp, a, b)
        case "//" | "%":
            return _division(visitor, node, word, a, b)
        case _:
            hint = ": '//' is the division of integers" if word == "/" else ""
            raise visitor.error(node, f"'{word}' is not for integers that are known at run time only{hint}")


def _division(visitor: Visitor, node: ast.AST, word: str, a: Index, b: Index) -> Value:
    divisor = b.affine.known
    if divisor is None:
        quotient = _computed(visitor, arith.FloorDivSIOp, a, b)
        if word == "//":
            return quotient
        whole = _computed(visitor, arith.MuliOp, quotient, b)
        return _index(a.affine - whole.affine, False)
    if divisor <= 0:
        raise visitor.error(node, f"'{word}' of an integer of the run needs a positive divisor, found {divisor}")
    return _index(a.affine.quotient(divisor) if word == "//" else a.affine.remainder(divisor), a.is_affine)


def _index(affine: Affine, is_affine: bool) -> Value:
    """The integer as a value: known at compile time if it is a constant."""
    return Static(affine.known) if affine.known is not None else Index(affine, is_affine)


def _computed(visitor: Visitor, op: Callable[[Any, Any], Any], a: Index, b: Index) -> Index:
    """An integer that no affine map computes."""
    made = visitor.builder.insert(op(visitor.builder.index(a), visitor.builder.index(b)))
    return Index(Affine.of(made.results[0]), is_affine=False)


def extreme(visitor: Visitor, node: ast.AST, word: str, values: list[Value]) -> Value:
    """Python's `min` or `max` of integers."""
    result, *rest = values
    for value in rest:
        a, b = (visitor.as_index(node, each, f"an argument of '{word}'") for each in (result, value))
        apart = (a.affine - b.affine).known
        if apart is not None:
            chosen = a if (apart <= 0) == (word == "min") else b
            result = _index(chosen.affine, chosen.is_affine)
        else:
            result = _computed(visitor, arith.MinSIOp if word == "min" else arith.MaxSIOp, a, b)
    return result


def unary(visitor: Visitor, node: ast.AST, op: ast.unaryop, value: Value) -> Value:
    """`op value`."""
    match op, value:
        case ast.Not(), _:
            return _not(visitor, truth(visitor, node, value))
        case ast.USub(), Static(value=int() | float() as number):
            return Static(-number)
        case ast.UAdd(), Static(value=int() | float()) | Index():
            return value
        case ast.USub(), Index(affine=affine, is_affine=is_affine):
            return Index(affine.times(-1), is_affine)
        case ast.USub(), _ if is_of_tiles(value):
            return negative(visitor, node, as_tiles(visitor, node, value, "'-'"))
        case ast.Invert(), Static(value=int() as number):
            return Static(~number)
        case _:
            word = "-" if isinstance(op, ast.USub) else "+" if isinstance(op, ast.UAdd) else "~"
            raise visitor.error(node, f"'{word}' is not for {value.describe()}")


def _not(visitor: Visitor, value: Value) -> Value:
    if isinstance(value, Static):
        return Static(not value.value)
    assert isinstance(value, Condition)
    true = visitor.builder.insert(arith.ConstantOp(IntegerAttr(1, i1))).result
    return Condition(visitor.builder.insert(arith.XOrIOp(value.ssa, true)).result)


def truth(visitor: Visitor, node: ast.AST, value: Value) -> Value:
    """A value as a condition: of the run, or known at compile time."""
    match value:
        case Condition():
            return value
        case Static(value=known):
            return Static(bool(known))
        case Items(items=items):
            return Static(bool(items))
        case Index():
            return compare(visitor, node, ast.NotEq(), value, Static(0))
        case _:
            raise visitor.error(node, f"a condition is of integers, found {value.describe()}")


_COMPARISONS: dict[type[ast.cmpop], tuple[str, str, Callable[[Any, Any], bool]]] = {
    ast.Eq: ("==", "eq", operator.eq),
    ast.NotEq: ("!=", "ne", operator.ne),
    ast.Lt: ("<", "slt", operator.lt),
    ast.LtE: ("<=", "sle", operator.le),
    ast.Gt: (">", "sgt", operator.gt),
    ast.GtE: (">=", "sge", operator.ge),
    ast.Is: ("is", "", operator.is_),
    ast.IsNot: ("is not", "", operator.is_not),
}


def compare(visitor: Visitor, node: ast.AST, op: ast.cmpop, left: Value, right: Value) -> Value:
    """`left op right`."""
    if isinstance(op, ast.In | ast.NotIn):
        return _contains(visitor, node, op, left, right)
    word, predicate, compute = _COMPARISONS[type(op)]
    if isinstance(left, Static) and isinstance(right, Static):
        try:
            return Static(bool(compute(left.value, right.value)))
        except TypeError as error:
            raise visitor.error(node, f"'{word}': {error}") from error
    if isinstance(op, ast.Is | ast.IsNot):
        return Static((left is right) == isinstance(op, ast.Is))
    if isinstance(left, Items) and isinstance(right, Items) and isinstance(op, ast.Eq | ast.NotEq):
        return _compare_items(visitor, node, op, left, right)
    a, b = (visitor.as_index(node, each, f"an operand of '{word}'") for each in (left, right))
    apart = (a.affine - b.affine).known
    if apart is not None:
        return Static(compute(apart, 0))
    builder = visitor.builder
    return Condition(builder.insert(arith.CmpiOp(builder.index(a), builder.index(b), predicate)).result)


def _compare_items(visitor: Visitor, node: ast.AST, op: ast.cmpop, left: Items, right: Items) -> Value:
    """Return whether tuples are equal: item by item."""
    is_equal: Value = Static(len(left.items) == len(right.items))
    for a, b in zip(left.items, right.items, strict=False):
        each = compare(visitor, node, ast.Eq(), a, b)
        if isinstance(each, Static) and not each.value:
            is_equal = each
        if isinstance(is_equal, Static):
            is_equal = each if is_equal.value else is_equal
        elif isinstance(each, Condition) and isinstance(is_equal, Condition):
            is_equal = Condition(visitor.builder.insert(arith.AndIOp(is_equal.ssa, each.ssa)).result)
    return is_equal if isinstance(op, ast.Eq) else _not(visitor, is_equal)


def _contains(visitor: Visitor, node: ast.AST, op: ast.cmpop, left: Value, right: Value) -> Value:
    """`left in right`, of a tuple or a list."""
    if not isinstance(right, Items):
        raise visitor.error(node, f"'in' needs a tuple or a list, found {right.describe()}")
    found: Value = Static(False)
    for item in right.items:
        each = compare(visitor, node, ast.Eq(), left, item)
        if isinstance(each, Static):
            found = Static(True) if each.value else found
        elif isinstance(found, Condition) and isinstance(each, Condition):
            found = Condition(visitor.builder.insert(arith.OrIOp(found.ssa, each.ssa)).result)
        elif found == Static(False):
            found = each
    return found if isinstance(op, ast.In) else _not(visitor, found)
