"""Buffers that hold several results or operands of products, which are never there at the same time.

What no loop carries is there from its product to the wait for it, in one block of code. So the numbers of operations in
the order of the program say which such spans meet: a loop begins and ends them anew in each turn.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

from xdsl.ir import Attribute

from tlx_xdsl.dialects import tt

from .accumulators import Accumulator, Accumulators

Span = tuple[int, int]
"""The numbers of the first and the last operation between which something is in memory."""

KeyT = TypeVar("KeyT", bound=Hashable)


def span_of(accumulator: Accumulator, accumulators: Accumulators) -> Span | None:
    """Return where a result is in its buffer; None where loops carry it, or nothing says when it is done."""
    if accumulator.loops or not accumulator.signals_each:
        return None
    last = accumulator.dots[-1]
    uses = [accumulators.position(use.operation) for use in last.d.uses if not accumulators.stays(use)]
    return accumulators.position(accumulator.dots[0]), min(uses)


def span_of_operand(dot: tt.DotOp, accumulators: Accumulators) -> Span | None:
    """Return where an operand is in its buffer: until the product is done."""
    found = span_of(accumulators.of[dot.d], accumulators)
    return None if found is None else (accumulators.position(dot), found[1])


def shared(wanted: Sequence[tuple[KeyT, Attribute, Span | None]]) -> list[list[KeyT]]:
    """Deal what is to be in memory to buffers: those of one type whose spans do not meet have one."""
    buffers: list[tuple[list[KeyT], Attribute, list[Span]]] = []
    for key, type_, span in sorted(wanted, key=lambda each: each[2] or (-1, -1)):
        if span is not None:
            for keys, other, spans in buffers:
                if other == type_ and spans and all(_are_apart(span, each) for each in spans):
                    keys.append(key)
                    spans.append(span)
                    break
            else:
                buffers.append(([key], type_, [span]))
        else:
            buffers.append(([key], type_, []))
    return [keys for keys, _, _ in buffers]


def _are_apart(one: Span, other: Span) -> bool:
    return one[1] < other[0] or other[1] < one[0]
