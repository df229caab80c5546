"""`print(...)` in a thread: text, integers, and at last a circular buffer or a block."""

from __future__ import annotations

import ast

from xdsl.ir import SSAValue

from ..dialects import ttl
from ..dialects.ttl.printing import PROCESSORS
from .calls import arguments_of
from .values import NONE, Acquired, Buffer, Index, Items, Static, Tensor, Text, Tiles, Value
from .visitor import Visitor


def print_values(visitor: Visitor, node: ast.Call) -> Value:
    """Write the arguments with spaces between them; in the kernel's own body, when it is compiled."""
    positional, keywords = arguments_of(visitor, node)
    thread = _thread(visitor, node, keywords.pop("thread", (node, NONE))[1])
    for name, (place, _) in keywords.items():
        hint = ": print a block that was waited for" if name in ("num_pages", "_dump_dst_registers") else ""
        raise visitor.error(place, f"'print' takes no argument '{name}' in a TTL kernel{hint}")
    parts: list[str] = []
    values: list[SSAValue] = []
    for place, value in positional:
        if values and not _is_integer(values[-1]):
            raise visitor.error(place, "'print' takes one circular buffer or block, as its last argument")
        text, found = _shown(visitor, place, value)
        parts.append(text)
        values += found
    if visitor.thread is None:
        print(" ".join(parts))
        return NONE
    visitor.locate(node)
    visitor.builder.insert(ttl.PrintOp(" ".join(parts), values, thread))
    return NONE


def _thread(visitor: Visitor, node: ast.Call, value: Value) -> str | None:
    if value == NONE:
        return None
    if not isinstance(value, Static) or value.value not in PROCESSORS:
        raise visitor.error(node, f"'thread' of 'print' is one of {', '.join(PROCESSORS)}, found {value.describe()}")
    visitor.in_thread(node, "'thread' of 'print'", "compute")
    return str(value.value)


def _is_integer(value: SSAValue) -> bool:
    return not isinstance(value.type, ttl.CBType) and not hasattr(value.type, "get_shape")


def _shown(visitor: Visitor, node: ast.AST, value: Value) -> tuple[str, list[SSAValue]]:
    """The text of a value, with `{}` for what is known at run time only, and these values."""
    match value:
        case Text(parts=parts):
            shown = [_shown(visitor, node, each) for each in parts]
            return "".join(text for text, _ in shown), [each for _, found in shown for each in found]
        case Items(items=items):
            shown = [_shown(visitor, node, each) for each in items]
            text = ", ".join(text for text, _ in shown)
            return f"({text})", [each for _, found in shown for each in found]
        case Static(value=known):
            return str(known).replace("{", "(").replace("}", ")"), []
        case Index():
            visitor.in_thread(node, "an integer of the run")
            return "{}", [visitor.index(node, value, "what is printed")]
        case Acquired(tiles=Tiles(ssa=ssa)) | Buffer(ssa=ssa) | Acquired(ssa=ssa):
            visitor.in_thread(node, f"'print' of {value.describe()}")
            return "{}", [ssa]
        case Tensor() | Tiles():
            hint = (
                "copy a piece of it, and print the block"
                if isinstance(value, Tensor)
                else "store it, and print the block"
            )
            raise visitor.error(node, f"'print' shows blocks of circular buffers, found {value.describe()}: {hint}")
        case _:
            return value.describe(), []
