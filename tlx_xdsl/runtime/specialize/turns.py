"""Loops of a specialised kernel that must turn at least once, as conditions on launches.

The proof of a kernel may hold only where some loops turn (`analysis/protocol/prove.py`, `Requirement`). Their bounds
are read from the written source: arithmetic on the kernel's parameters and on the number of the program. What depends
on more, such as loaded values or other loops, is no condition that a launch can be looked at for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from tlx_xdsl.grid import cdiv

MOST_PROGRAMS = 1 << 20
"""Programs of a grid for which a condition is computed one by one."""


@dataclass(frozen=True)
class Turns:
    """Condition that a loop turns at least once in each program: Python over parameters and `pid_0` to `pid_2`."""

    line: int
    """The line of the loop in the written file."""
    expression: str

    def holds(self, grid: tuple[int, int, int], values: Mapping[str, Any]) -> bool:
        """Return whether it is so in a launch of the specialised kernel; False where that can't be found out."""
        names = {**_FUNCTIONS, **values}
        mentioned = {node.id for node in ast.walk(ast.parse(self.expression)) if isinstance(node, ast.Name)}
        programs = 1
        for axis, size in enumerate(grid):
            if f"pid_{axis}" in mentioned:
                programs *= size
                shape = [-1 if each == axis else 1 for each in range(3)]
                names[f"pid_{axis}"] = np.arange(size, dtype=np.int64).reshape(shape)
        if programs > MOST_PROGRAMS:
            return False
        return bool(np.all(eval(self.expression, names)))  # the compiler's own text


_FUNCTIONS: dict[str, Any] = {
    "__builtins__": {}, "cdiv": cdiv, "minimum": np.minimum, "maximum": np.maximum, "where": np.where,
}  # fmt: skip
_CALLS = {"cdiv": "cdiv", "minimum": "minimum", "maximum": "maximum", "min": "minimum", "max": "maximum",
          "where": "where"}  # fmt: skip


def turns_of(source: str, lines: Sequence[int]) -> list[Turns] | int:
    """Return the conditions that the loops at some lines turn, or the first line for which there is none to say."""
    function = next(node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef))
    found: list[Turns] = []
    for line in dict.fromkeys(lines):
        expression = _condition(function, line)
        if expression is None:
            return line
        found.append(Turns(line, expression))
    return found


def _condition(function: ast.FunctionDef, line: int) -> str | None:
    """The condition on one loop; None where there is none to say."""
    way = _way_to(function, line)
    if way is None or not isinstance(loop := way[-1], ast.For):
        return None
    call = loop.iter
    if not isinstance(call, ast.Call) or call.keywords or not 1 <= len(call.args) <= 3:
        return None
    low, high = (ast.Constant(0), call.args[0]) if len(call.args) == 1 else call.args[:2]
    known = _definitions(way)
    parameters = {each.arg for each in function.args.args}
    try:
        texts = [_written(each, known, parameters) for each in (low, high)]
    except _UnknownError:
        return None
    return f"{texts[0]} < {texts[1]}"


def _way_to(function: ast.FunctionDef, line: int) -> list[ast.stmt] | None:
    """The statements around a line, from the function to the loop there."""
    way: list[ast.stmt] = [function]
    while True:
        inside = next((each for each in _statements(way[-1]) if each.lineno <= line <= (each.end_lineno or 0)), None)
        if inside is None:
            return None
        way.append(inside)
        if inside.lineno == line and isinstance(inside, ast.For):
            return way


def _statements(node: ast.stmt) -> Iterator[ast.stmt]:
    for name in ("body", "orelse"):
        yield from getattr(node, name, ())


def _definitions(way: list[ast.stmt]) -> dict[str, ast.expr | None]:
    """Return the values of names on the way to a loop; None for those that are assigned more than once, or in loops."""
    known: dict[str, ast.expr | None] = {}
    for outer, inner in pairwise(way):
        for statement in _statements(outer):
            if statement.lineno >= inner.lineno:
                break
            for node in _tasks_apart(statement):
                _define(node, known, is_simple=node is statement and not isinstance(outer, ast.For | ast.While))
        if isinstance(outer, ast.For):
            _forget(outer.target, known)
    loops = [each for each in way[:-1] if isinstance(each, ast.For | ast.While)]
    for loop in loops:
        # What a turn changes may be changed when the loop is reached again.
        for node in ast.walk(loop):
            if isinstance(node, ast.Assign | ast.AugAssign):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    _forget(target, known)
    return known


def _tasks_apart(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield what is in a statement that is no other task: what those assign is their own."""
    if not isinstance(statement, ast.With):
        yield from ast.walk(statement)


def _define(node: ast.AST, known: dict[str, ast.expr | None], *, is_simple: bool) -> None:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name) and is_simple and target.id not in known:
                known[target.id] = node.value
            else:
                _forget(target, known)
    elif isinstance(node, ast.AugAssign | ast.For):
        _forget(node.target, known)


def _forget(target: ast.expr, known: dict[str, ast.expr | None]) -> None:
    for node in ast.walk(target):
        if isinstance(node, ast.Name):
            known[node.id] = None


class _UnknownError(Exception):
    """A part of a bound that a launch says nothing of."""


def _written(node: ast.expr, known: Mapping[str, ast.expr | None], parameters: set[str], depth: int = 0) -> str:
    """Write a bound in terms of parameters and numbers of programs.

    Raises _UnknownError for what it can't.
    """
    if depth > _DEEPEST:
        raise _UnknownError

    def of(part: ast.expr) -> str:
        return _written(part, known, parameters, depth + 1)

    match node:
        case ast.Constant(value=int() as number):
            return str(int(number))
        case ast.Name(id=name) if name in known:
            value = known[name]
            if value is None:
                raise _UnknownError
            return of(value)
        case ast.Name(id=name) if name in parameters:
            return name
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv() | ast.Mod(), right=right):
            return f"({of(left)} {_SIGNS[type(node.op)]} {of(right)})"
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return f"(-{of(operand)})"
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _SIGNS:
            return f"({of(left)} {_SIGNS[type(op)]} {of(right)})"
        case ast.Call(func=ast.Attribute(attr="program_id"), args=[ast.Constant(value=int() as axis)]):
            return f"pid_{axis}"
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=args, keywords=[]) if name in _CALLS:
            return f"{_CALLS[name]}({', '.join(map(of, args))})"
        case _:
            raise _UnknownError


_DEEPEST = 60
"""Steps from a bound to parameters: definitions that stand for one another end."""

_SIGNS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
