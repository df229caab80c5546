"""Small protocols of tasks, barriers and buffers: as a kernel's text, and as the list of what each task does.

It knows nothing of the compiler. Expressions are Python's text with C's division; statements are the classes below.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import CodeType
from typing import Any


@dataclass(frozen=True)
class Barriers:
    """An array of mbarriers."""

    name: str
    slots: int
    count: int = 1


@dataclass(frozen=True)
class Buffers:
    """An array of blocks; those with the same `memory` lie in one place."""

    name: str
    slots: int
    memory: str = ""


@dataclass(frozen=True)
class For:
    """A loop."""

    name: str
    start: str
    stop: str
    step: int
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class If:
    """A branch."""

    condition: str
    body: tuple[Statement, ...]
    other: tuple[Statement, ...] = ()


@dataclass(frozen=True)
class Let:
    """An assignment."""

    name: str
    value: str


@dataclass(frozen=True)
class Act:
    """An action: `wait`, `arrive`, `expect`, `load`, `read` or `write`, at barriers or buffers, of which one."""

    what: str
    at: str
    index: str
    more: str = ""
    """The parity of a wait; the barriers of a load, which has the same index in both."""


Statement = For | If | Let | Act


@dataclass(frozen=True)
class Protocol:
    """Tasks that share barriers and buffers."""

    barriers: tuple[Barriers, ...]
    buffers: tuple[Buffers, ...]
    before: tuple[Statement, ...]
    """What is computed before the tasks."""
    tasks: tuple[tuple[Statement, ...], ...]


# --- text -------------------------------------------------------------------------------------------------------------

_HEAD = """import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def kernel(desc, src, dst, n, m):
"""
_TILE = "(16, 16), tl.float32"
_BYTES = 1024


def text_of(protocol: Protocol) -> str:
    """The file with the kernel."""
    lines = [f"{each.name} = tlx.alloc_barriers({each.slots}, arrive_count={each.count})" for each in protocol.barriers]
    shared = {each.memory for each in protocol.buffers if each.memory}
    lines += [f"{memory} = tlx.storage_alias_spec(storage=tlx.storage_kind.smem)" for memory in sorted(shared)]
    for each in protocol.buffers:
        reuse = f", reuse={each.memory}" if each.memory else ""
        lines.append(f"{each.name} = tlx.local_alloc({_TILE}, {each.slots}{reuse})")
    for memory in sorted(shared):
        names = ", ".join(each.name for each in protocol.buffers if each.memory == memory)
        group = f"tlx.reuse_group({names}, group_type=tlx.reuse_group_type.shared)"
        lines.append(f"{memory}.set_buffer_overlap({group})")
    lines += _lines(protocol.before, 0)
    lines.append("with tlx.async_tasks():")
    for number, task in enumerate(protocol.tasks):
        lines.append(f"    with tlx.async_task({'num_warps=4' if number else repr('default')}):")
        lines.append("        rows = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]")
        lines += _lines(task, 2)
    return _HEAD + "\n".join("    " + line for line in lines) + "\n"


def _lines(statements: Sequence[Statement], depth: int) -> list[str]:
    found: list[str] = []
    for each in statements:
        match each:
            case For():
                found.append(f"for {each.name} in range({each.start}, {each.stop}, {each.step}):")
                found += _lines(each.body, 1)
            case If():
                found.append(f"if {each.condition}:")
                found += _lines(each.body, 1)
                if each.other:
                    found += ["else:", *_lines(each.other, 1)]
            case Let():
                found.append(f"{each.name} = {each.value}")
            case Act():
                found.append(_action(each))
    return ["    " * depth + line for line in found or ["pass"]]


def _action(act: Act) -> str:
    place = f"{act.at}[{act.index}]"
    match act.what:
        case "wait":
            return f"tlx.barrier_wait({place}, {act.more})"
        case "arrive":
            return f"tlx.barrier_arrive({place})"
        case "expect":
            return f"tlx.barrier_expect_bytes({place}, {_BYTES})"
        case "load":
            return f"tlx.async_descriptor_load(desc, {place}, [0, 0], {act.more}[{act.index}])"
        case "read":
            return f"tl.store(dst + rows, tlx.local_load({place}))"
        case _:
            return f"tlx.local_store({place}, tl.load(src + rows))"


# --- what it does -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Event:
    """An action of a task with numbers for names."""

    what: str
    at: tuple[str, int]
    parity: int = 0
    barrier: tuple[str, int] | None = None
    """Where a load completes."""


class OutOfRangeError(Exception):
    """An index is outside of its array."""


def events_of(protocol: Protocol, arguments: Mapping[str, int]) -> tuple[list[list[Event]], bool]:
    """List each task's events, in order, with these arguments; and say whether all loops turn that it comes to.

    Raises OutOfRangeError.
    """
    sizes = {each.name: each.slots for each in (*protocol.barriers, *protocol.buffers)}
    outside = dict(arguments)
    turns = [True]
    list(_run(protocol.before, outside, sizes, turns))
    return [list(_run(task, dict(outside), sizes, turns)) for task in protocol.tasks], turns[0]


def _run(
    statements: Sequence[Statement], known: dict[str, int], sizes: Mapping[str, int], turns: list[bool]
) -> Iterator[Event]:
    for each in statements:
        match each:
            case For():
                numbers = range(_value(each.start, known), _value(each.stop, known), each.step)
                turns[0] &= len(numbers) > 0
                for number in numbers:
                    known[each.name] = number
                    yield from _run(each.body, known, sizes, turns)
            case If():
                yield from _run(each.body if _value(each.condition, known) else each.other, known, sizes, turns)
            case Let():
                known[each.name] = _value(each.value, known)
            case Act():
                index = _value(each.index, known)
                if not 0 <= index < sizes[each.at]:
                    raise OutOfRangeError
                parity = _value(each.more, known) if each.what == "wait" else 0
                yield Event(
                    each.what, (each.at, index), parity, (each.more, index) if each.what == "load" else None
                )  # fmt: skip


def _value(text: str, known: Mapping[str, int]) -> int:
    return int(eval(_compiled(text), {"quotient": _quotient, "rest": _rest}, dict(known)))


@cache
def _compiled(text: str) -> CodeType:
    tree = ast.fix_missing_locations(_Divisions().visit(ast.parse(text, mode="eval")))
    return compile(tree, text, "eval")


class _Divisions(ast.NodeTransformer):
    """`//` and `%` as C has them."""

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        if not isinstance(node.op, ast.FloorDiv | ast.Mod):
            return node
        name = "quotient" if isinstance(node.op, ast.FloorDiv) else "rest"
        return ast.Call(ast.Name(name, ast.Load()), [node.left, node.right], [])


def _quotient(a: int, b: int) -> int:
    found = abs(a) // abs(b)
    return found if (a < 0) == (b < 0) else -found


def _rest(a: int, b: int) -> int:
    return a - b * _quotient(a, b)
