"""Names, for messages, of the constructs of Python that kernels do not have."""

from __future__ import annotations

import ast


def construct(node: ast.AST) -> str:
    """The display name of a construct of Python."""
    words = {
        "FunctionDef": "a nested function",
        "AsyncFunctionDef": "an async function",
        "AsyncFor": "'async for'",
        "AsyncWith": "'async with'",
        "ClassDef": "a class",
        "TryStar": "'try'",
        "Try": "'try'",
        "Raise": "'raise'",
        "Break": "'break' (let the loop's condition, or a mask, say when it is done)",
        "Continue": "'continue' (put the rest of the loop's body under an 'if')",
        "Import": "'import'",
        "ImportFrom": "'import'",
        "Global": "'global'",
        "Nonlocal": "'nonlocal'",
        "Delete": "'del'",
        "Lambda": "a lambda",
        "SetComp": "a set comprehension",
        "DictComp": "a dictionary comprehension",
        "Set": "a set",
        "Dict": "a dictionary",
        "MatMult": "'@' (use tl.dot or tlx.async_dot)",
        "Subscript": "an item",
        "Attribute": "an attribute",
        "Match": "'match'",
        "Await": "'await'",
        "Yield": "'yield'",
        "YieldFrom": "'yield'",
        "Slice": "a slice",
    }
    name = type(node).__name__
    return words.get(name, f"'{name}'")
