"""Removal of the statements of tests that read the text of IR or PTX: what other compilers print is their own."""

from __future__ import annotations

import ast

_SOURCES = ("run_parser", "run_filecheck_test")
"""Functions of Triton's tests whose results are text, beside `kernel.asm`."""


def without_text(module: ast.Module) -> None:
    """Remove, in each test of `module`, the statements that read text, or what an earlier statement made of it."""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = _names_of_text(node)
            node.body = _kept(node.body, names)
            ast.fix_missing_locations(node)


def _names_of_text(function: ast.AST) -> set[str]:
    """The names that hold text, or something found in it."""
    names: set[str] = set()
    size = -1
    while size != len(names):
        size = len(names)
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and _reads(node.value, names):
                names |= {each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)}
            elif (isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value and _reads(node.value, names)) or (
                isinstance(node, ast.For | ast.comprehension) and _reads(node.iter, names)
            ):
                names |= {each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)}
    return names


def _reads(node: ast.AST, names: set[str]) -> bool:
    """Return whether an expression reads text: `x.asm`, what a function that gives text returns, or one of `names`."""
    for each in ast.walk(node):
        match each:
            case ast.Attribute(attr="asm"):
                return True
            case ast.Call(func=ast.Name(id=called)) if called in _SOURCES:
                return True
            case ast.Name(id=name) if name in names:
                return True
            case _:
                pass
    return False


def _kept(body: list[ast.stmt], names: set[str]) -> list[ast.stmt]:
    kept: list[ast.stmt] = []
    for statement in body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                pass
            case ast.If(test=header) | ast.While(test=header) | ast.For(iter=header):
                if _reads(header, names):
                    continue
                statement.body = _kept(statement.body, names)
                statement.orelse = statement.orelse and _kept(statement.orelse, names)
            case ast.With():
                statement.body = _kept(statement.body, names)
            case ast.Try():
                statement.body = _kept(statement.body, names)
            case _:
                if _reads(statement, names):
                    continue
        kept.append(statement)
    return kept or [ast.Pass()]
