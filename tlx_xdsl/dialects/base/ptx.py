"""The instructions in a text of PTX, and the synchronisation that they bring (PTX ISA, "Memory Consistency Model")."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from .effects import NO_EFFECTS, UNKNOWN, Effects, Sync, is_set

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_OPCODE = re.compile(r"(?<![\w.%$])[a-z]\w*(?:\.[\w:]+)+")

_ORDERING = {
    "release": Sync.RELEASE,
    "acquire": Sync.ACQUIRE,
    "acq_rel": Sync.RELEASE | Sync.ACQUIRE,
    "sc": Sync.RELEASE | Sync.ACQUIRE,
}


def opcodes(code: str) -> Iterator[list[str]]:
    """The parts of each operation code that has modifiers, in order: `["st", "global", "b32"]`."""
    for found in _OPCODE.findall(_COMMENT.sub(" ", code)):
        yield found.split(".")


def effects_of_ptx(op: Operation, name: str) -> Effects:
    """The effects of an operation whose property `name` is PTX: any access, unless it is pure."""
    code = op.properties.get(name)
    if is_set(op, "pure"):
        return NO_EFFECTS
    return Effects(sync=sync_of_ptx(code.data), known=False) if isinstance(code, StringAttr) else UNKNOWN


@lru_cache(maxsize=1024)
def sync_of_ptx(code: str) -> Sync:
    """The synchronisation that the instructions of `code` bring."""
    sync = Sync.NONE
    for parts in opcodes(code):
        sync |= _sync_of(parts)
    return sync


def _sync_of(parts: list[str]) -> Sync:
    match parts:
        case ["fence", "proxy", "async" | "async::generic", *_]:
            return Sync.FENCE_PROXY
        case ["fence", "mbarrier_init", *_]:
            return Sync.FENCE
        case ["bar" | "barrier", *rest] if "cluster" not in rest:
            return Sync.NAMED | (Sync.RELEASE if "arrive" in rest else Sync.RELEASE | Sync.ACQUIRE)
        case ["mbarrier" | "barrier", *rest] if "wait" in rest or "try_wait" in rest or "test_wait" in rest:
            return Sync.ACQUIRE
        case ["mbarrier" | "barrier", *rest] if "relaxed" not in rest and {"arrive", "arrive_drop"} & {*rest}:
            return Sync.RELEASE
        case ["tcgen05", "commit", *_] | ["cp", "async", "mbarrier", *_]:
            return Sync.RELEASE
        case ["membar", *_]:
            return Sync.RELEASE | Sync.ACQUIRE | Sync.FENCE
        case [opcode, *modifiers]:
            sync = Sync.NONE
            for part in modifiers:
                sync |= _ORDERING.get(part, Sync.NONE)
            is_fence = opcode == "fence" and "proxy" not in modifiers and Sync.RELEASE in sync
            return sync | Sync.FENCE if is_fence else sync
        case _:
            return Sync.NONE
