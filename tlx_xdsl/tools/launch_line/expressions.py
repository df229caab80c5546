"""Expressions on a command line, over the values of a kernel's arguments.

They are in Python's syntax, and no more than what is listed here: numbers, names, arithmetic, comparisons, `a if b else
c`, tuples and lists, indices, and calls of the functions below. Nothing in them reaches Python itself, and how far a
number may grow is bounded.

    cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)      numbers: cdiv, min, max, abs
    softmax(x / sqrt(64), axis=1)            arrays: functions of numpy by their names, and softmax
    np.maximum(a @ b.T, 0).sum(axis=1)       the same with np before them, and as methods of arrays
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from tlx_xdsl.errors import CompilationError, InputError
from tlx_xdsl.frontend.python.suggestions import did_you_mean
from tlx_xdsl.grid import cdiv

_LONGEST = 4096
"""Characters of an expression."""
_MOST_BITS = 4096
"""Bits of an integer in an expression."""
_MOST_ITEMS = 4096
"""Items of a list or tuple."""


def _softmax(x: Any, axis: int = -1) -> Any:
    power = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return power / np.sum(power, axis=axis, keepdims=True)


def _largest(*values: Any, **options: Any) -> Any:
    return np.max(*values, **options) if isinstance(values[0], np.ndarray) else max(*values)


def _smallest(*values: Any, **options: Any) -> Any:
    return np.min(*values, **options) if isinstance(values[0], np.ndarray) else min(*values)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "cdiv": cdiv, "min": _smallest, "max": _largest, "abs": abs, "softmax": _softmax,
}  # fmt: skip
"""Those that are not numpy's, or not as there."""

_NUMPY = frozenset((
    "abs", "all", "any", "argmax", "argmin", "argsort", "broadcast_to", "ceil", "clip", "concatenate", "cos", "cumprod",
    "cumsum", "diag", "dot", "einsum", "exp", "exp2", "expand_dims", "flip", "floor", "isfinite", "isinf", "isnan",
    "log", "log1p", "log2", "matmul", "max", "maximum", "mean", "min", "minimum", "outer", "power", "prod", "ravel",
    "reshape", "rint", "roll", "round", "sign", "sin", "sort", "sqrt", "square", "squeeze", "stack", "std", "sum",
    "swapaxes", "tanh", "trace", "transpose", "tril", "triu", "trunc", "var", "vstack", "hstack", "where",
))  # fmt: skip
"""Functions of numpy, and methods of its arrays, that compute and do nothing else."""
_NUMBERS = frozenset(("pi", "e", "inf", "nan", "newaxis"))
_PROPERTIES = frozenset(("T", "shape", "size", "ndim"))

_OPERATOR: Any = operator
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: _OPERATOR.add, ast.Sub: _OPERATOR.sub, ast.Mult: _OPERATOR.mul, ast.Div: _OPERATOR.truediv,
    ast.FloorDiv: _OPERATOR.floordiv, ast.Mod: _OPERATOR.mod, ast.MatMult: _OPERATOR.matmul,
    ast.BitAnd: _OPERATOR.and_, ast.BitOr: _OPERATOR.or_, ast.BitXor: _OPERATOR.xor, ast.LShift: _OPERATOR.lshift,
    ast.RShift: _OPERATOR.rshift, ast.Pow: _OPERATOR.pow,
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos, ast.USub: operator.neg, ast.Invert: operator.invert, ast.Not: operator.not_,
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip


def evaluate(option: str, text: str, names: Mapping[str, Any]) -> Any:
    """The value of an expression over these names.

    Raises CompilationError for one that has no value, and for what is no such expression.
    """
    try:
        if len(text) > _LONGEST:
            raise InputError(f"an expression has at most {_LONGEST} characters")
        return _Evaluation(names).compute(ast.parse(text.strip(), mode="eval").body)
    except InputError as error:
        raise CompilationError(f"{option}: '{text[:_LONGEST]}' can't be computed: {error}") from error
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise CompilationError(f"{option}: '{text}' can't be computed: {reason}") from error


class _Evaluation:
    """The value of each kind of expression."""

    def __init__(self, names: Mapping[str, Any]):
        self._names = names

    def compute(self, node: ast.expr) -> Any:
        """The value of a part of the expression."""
        match node:
            case ast.Constant(value=bool() | int() | float() | None as number):
                return _bounded(number)
            case ast.Constant(value=value) if value is Ellipsis:
                return value
            case ast.Name(id=name):
                return self._named(name)
            case ast.Tuple(elts=items):
                return tuple(map(self.compute, items))
            case ast.List(elts=items):
                return [*map(self.compute, items)]
            case ast.Subscript() | ast.Attribute() | ast.Call():
                return self._accessed(node)
            case _:
                return self._operation(node)

    def _operation(self, node: ast.expr) -> Any:
        match node:
            case ast.UnaryOp(op=op, operand=operand):
                return _UNARY[type(op)](self.compute(operand))
            case ast.BinOp(left=left, op=op, right=right):
                return _computed(op, self.compute(left), self.compute(right))
            case ast.BoolOp(op=op, values=parts):
                return self._joined(op, parts)
            case ast.Compare(left=first, ops=ops, comparators=others):
                return self._compared(first, ops, others)
            case ast.IfExp(test=test, body=body, orelse=other):
                return self.compute(body if self.compute(test) else other)
            case _:
                raise _refused(node)

    def _accessed(self, node: ast.expr) -> Any:
        match node:
            case ast.Subscript(value=base, slice=index):
                return self.compute(base)[self._index(index)]
            case ast.Attribute(value=ast.Name(id="np"), attr=name) if name in _NUMBERS:
                return getattr(np, name)
            case ast.Attribute(value=base, attr=name) if name in _PROPERTIES:
                return getattr(_array(self.compute(base), name), name)
            case ast.Call(func=function, args=arguments, keywords=keywords):
                given = {each.arg: self.compute(each.value) for each in keywords if each.arg is not None}
                if len(given) != len(keywords):
                    raise InputError("arguments must be written out")
                return self._function(function)(*map(self.compute, arguments), **given)
            case _:
                raise _refused(node)

    def _named(self, name: str) -> Any:
        if name not in self._names:
            have = f", the names are {', '.join(self._names)}" if self._names else ", there are no names here"
            raise InputError(f"no name '{name}'{did_you_mean(name, self._names) or have}")
        return self._names[name]

    def _joined(self, op: ast.boolop, parts: Sequence[ast.expr]) -> Any:
        found: Any = None
        for part in parts:
            found = self.compute(part)
            if bool(found) == isinstance(op, ast.Or):
                break
        return found

    def _compared(self, first: ast.expr, ops: Sequence[ast.cmpop], others: Sequence[ast.expr]) -> Any:
        left, found = self.compute(first), cast(Any, True)
        for op, other in zip(ops, others, strict=True):
            if type(op) not in _COMPARE:
                raise InputError("numbers are compared by == != < <= > >=")
            right = self.compute(other)
            found = _COMPARE[type(op)](left, right) if found is True else found & _COMPARE[type(op)](left, right)
            left = right
        return found

    def _index(self, node: ast.expr) -> Any:
        match node:
            case ast.Slice(lower=lower, upper=upper, step=step):
                return slice(*(None if part is None else self.compute(part) for part in (lower, upper, step)))
            case ast.Tuple(elts=items):
                return tuple(map(self._index, items))
            case _:
                return self.compute(node)

    def _function(self, node: ast.expr) -> Callable[..., Any]:
        match node:
            case ast.Name(id=name) if name in FUNCTIONS and name not in self._names:
                return FUNCTIONS[name]
            case ast.Name(id=name) if name in _NUMPY and name not in self._names:
                return getattr(np, name)
            case ast.Attribute(value=ast.Name(id="np"), attr=name) if name in _NUMPY and "np" not in self._names:
                return getattr(np, name)
            case ast.Attribute(value=base, attr=name) if name in _NUMPY:
                return getattr(_array(self.compute(base), name), name)
            case _:
                known = (*FUNCTIONS, *sorted(_NUMPY - {*FUNCTIONS}))
                name = ast.unparse(node)
                said = did_you_mean(name, known) or f": there are {', '.join(known)}"
                raise InputError(f"there is no function '{name}'{said}")


def _array(value: Any, name: str) -> Any:
    if not isinstance(value, np.ndarray | np.generic):
        raise InputError(f"'.{name}' is of arrays only")
    return cast(Any, value)


def _computed(op: ast.operator, left: Any, right: Any) -> Any:
    """The result of an operation whose size is looked at before it is computed."""
    if isinstance(left, list | tuple) or isinstance(right, list | tuple):
        listed, other = cast(tuple[Any, Any], (left, right) if isinstance(left, list | tuple) else (right, left))
        items = len(listed)
        if isinstance(other, int) and items * other > _MOST_ITEMS:
            raise InputError(f"a list has at most {_MOST_ITEMS} items")
    elif isinstance(left, int) and isinstance(right, int):
        if isinstance(op, ast.Pow) and abs(left) > 1 and left.bit_length() * right > _MOST_BITS:
            raise InputError(f"a number has at most {_MOST_BITS} bits")
        if isinstance(op, ast.LShift) and left.bit_length() + right > _MOST_BITS:
            raise InputError(f"a number has at most {_MOST_BITS} bits")
    return _bounded(_BINARY[type(op)](left, right))


def _bounded(value: Any) -> Any:
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise InputError(f"a number has at most {_MOST_BITS} bits")
    return value


def _refused(node: ast.expr) -> InputError:
    return InputError(f"'{ast.unparse(node)}' is more than numbers, names, arithmetic and calls")
