"""`assert`: checked by the compiler where it can be, by the GPU otherwise."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, cast

from tlx_xdsl import language
from tlx_xdsl.frontend.calls import call_builtin
from tlx_xdsl.frontend.values import Constexpr, Value

if TYPE_CHECKING:
    from tlx_xdsl.frontend.visitor import Visitor


def visit_assert(visitor: Visitor, node: ast.Assert) -> None:
    """`assert condition, message`: as `tl.static_assert` for a constexpr, else as `tl.device_assert`."""
    test = visitor.expression(node.test)
    message = visitor.expression(node.msg) if node.msg is not None else None
    if not isinstance(test, Constexpr):
        arguments: list[tuple[ast.AST, Value]] = [(node.test, test)]
        if message is not None and node.msg is not None:
            arguments.append((node.msg, message))
        call_builtin(visitor, node, cast(Any, language).device_assert, arguments, {})
        return
    if not test.value:
        text = message.value if isinstance(message, Constexpr) else "assertion failed"
        raise visitor.error(node, str(text))
