"""Calls of CUDA's device runtime: `vprintf` and `__assertfail` (PTX interoperability guide, "System Calls")."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ..cohort import Cohort
from ..memory.surroundings import Trap
from ..read.inlining import call_parts
from ..read.syntax import Symbol
from ..steps import Builders, Context, Step
from .memory import Mask, load_rows

_FORMAT = re.compile(r"%[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(hh|h|ll|l|z|j|t)?([diouxXeEfFgGcsp%])")
_LONGEST = 4096


def _build(context: Context) -> Step:
    parts = call_parts(context.instruction)
    if parts is None or parts[1] not in ("vprintf", "__assertfail"):
        raise context.refuse("only functions of this module, vprintf and __assertfail are known")
    reads = tuple(_parameter(context, each) for each in parts[2])
    if parts[1] == "vprintf" and len(reads) == 2:
        return Step(reads, effect=_print)
    if parts[1] == "__assertfail" and len(reads) == 5:
        return Step(reads, effect=_fail)
    raise context.refuse()


def _parameter(context: Context, operand: Any) -> tuple[Any, str]:
    if not isinstance(operand, Symbol):
        raise context.refuse("arguments of calls are variables")
    return operand, "u8"


def _wide(cohort: Cohort, mask: Mask, places: Any, size: int) -> Any:
    chosen = places if mask is None else places[mask]
    return load_rows(cohort, mask, "local", chosen, 0, size, 1)


def _text(cohort: Cohort, address: int) -> str:
    """The characters at an address, up to a zero."""
    found = bytearray()
    memory = cohort.wave.machine.memory
    while len(found) < _LONGEST and (byte := int(memory.bytes_at(address + len(found), 1, "read of a text")[0])):
        found.append(byte)
    return found.decode(errors="replace")


def _fail(cohort: Cohort, mask: Mask, *places: Any) -> None:
    if mask is not None and not mask.any():
        return
    message, file = (_text(cohort, int(_wide(cohort, mask, place, 8)[0])) for place in places[:2])
    line = int(_wide(cohort, mask, places[2], 4)[0])
    raise Trap(f"assertion failed: {message}", (f"asserted at {file}:{line}",))


def _print(cohort: Cohort, mask: Mask, formats: Any, buffers: Any) -> None:
    threads = np.arange(cohort.n) if mask is None else np.flatnonzero(mask)
    for thread in threads.tolist():
        only = np.zeros(cohort.n, np.bool_)
        only[thread] = True
        text = _text(cohort, int(_wide(cohort, only, formats, 8)[0]))
        buffer = int(_wide(cohort, only, buffers, 8)[0])
        print(_formatted(cohort, only, text, buffer), end="")


def _formatted(cohort: Cohort, only: Any, text: str, buffer: int) -> str:
    at = 0

    def number(kind: str, size: int) -> Any:
        nonlocal at
        at = -(-at // size) * size
        raw = load_rows(cohort, only, "generic", np.array([buffer + at], np.uint64), 0, size, 1)
        at += size
        return raw.view(f"{kind}{size}")[0]

    def item(match: re.Match[str]) -> str:
        length, letter = match[1], match[2]
        if letter == "%":
            return "%"
        form = match[0].replace(length, "") if length else match[0]
        wide = 8 if length in ("l", "ll", "z", "j", "t") else 4
        for _ in range(match[0].count("*")):
            form = form.replace("*", str(int(number("i", 4))), 1)
        if letter in "eEfFgG":
            return form % float(number("f", 8))
        if letter == "s":
            return form % _text(cohort, int(number("u", 8)))
        if letter == "p":
            return f"{int(number('u', 8)):#x}"
        value = int(number("i" if letter in "di" else "u", wide))
        return form.replace("i", "d").replace("u", "d") % (chr(value) if letter == "c" else value)

    return _FORMAT.sub(item, text)


BUILDERS: Builders = {"call": _build}
