"""Names that code assigns."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence


def assigned_names(statements: Sequence[ast.stmt]) -> frozenset[str]:
    """Names that statements assign, not counting those of functions and comprehensions inside of them."""
    return frozenset(name for statement in statements for name in _names(statement))


def _names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()):
            yield name
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Lambda() | ast.ListComp() | ast.GeneratorExp() | ast.SetComp() | ast.DictComp():
            pass
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _names(child)


def accumulated_names(statements: Sequence[ast.stmt]) -> frozenset[str]:
    """Names that `name += value` is the only assignment to."""
    targets = [
        inner.target for each in statements for inner in ast.walk(each)
        if isinstance(inner, ast.AugAssign) and isinstance(inner.op, ast.Add)
    ]  # fmt: skip
    updates = {id(target) for target in targets}
    others = {
        inner.id for each in statements for inner in ast.walk(each)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store) and id(inner) not in updates
    }  # fmt: skip
    return frozenset(target.id for target in targets if isinstance(target, ast.Name)) - others
