"""Shapes and strides in CuTe's notation: nested tuples of integers, or their text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from ..core import unwrapped


def at_least(value: Any, low: int, what: str) -> int:
    """`value`, which must be an integer of at least `low`; `what` names it in the ValueError for another one."""
    number = unwrapped(value)
    if isinstance(number, bool) or not isinstance(number, int) or number < low:
        raise ValueError(f"{what} must be an integer of at least {low}, got {number}")
    return number


def power_of_two(value: Any, what: str) -> int:
    """`value`, which must be a power of two; `what` names it in the ValueError for another one."""
    number = at_least(value, 1, what)
    if number & (number - 1):
        raise ValueError(f"{what} must be a power of two, got {number}")
    return number


def is_pair(value: Any) -> bool:
    """Say whether `value` is a tuple or list of two."""
    return isinstance(value, tuple | list) and len(cast(Sequence[Any], value)) == 2


def modes(shape: Any, stride: Any) -> tuple[tuple[int, int], ...]:
    """Pairs of size and stride, in order, of two equally nested tuples.

    Raises ValueError for tuples that are nested differently, and for a size that is no power of two.
    """
    shape, stride = unwrapped(shape), unwrapped(stride)
    if isinstance(shape, int) and isinstance(stride, int):
        return ((power_of_two(shape, "a size"), at_least(stride, 0, "a stride")),)
    if not isinstance(shape, tuple | list) or not isinstance(stride, tuple | list):
        raise ValueError(f"shape and stride must be nested alike, got {shape} and {stride}")
    sizes, steps = cast(Sequence[Any], shape), cast(Sequence[Any], stride)
    if len(sizes) != len(steps):
        raise ValueError(f"shape and stride must be nested alike, got {shape} and {stride}")
    return tuple(mode for size, step in zip(sizes, steps, strict=True) for mode in modes(size, step))


def parse_cute(spec: Any) -> tuple[Any, Any]:
    """The shape and the stride that a text such as `((4,8),2):((2,8),1)` spells.

    Raises ValueError, with what was expected, for any other text.
    """
    if not isinstance(spec, str) or spec.count(":") != 1:
        raise ValueError(f"expected a layout such as '((4,8),2):((2,8),1)', got {spec!r}")
    halves = tuple(_parse_nested(half.replace(" ", "")) for half in spec.split(":"))
    return halves[0], halves[1]


def _parse_nested(text: str) -> Any:
    """The nested tuples of integers that `text` spells."""
    position = 0

    def item() -> Any:
        nonlocal position
        if text[position : position + 1] == "(":
            position += 1
            items = [item()]
            while text[position : position + 1] == ",":
                position += 1
                items.append(item())
            if text[position : position + 1] != ")":
                raise ValueError(f"expected ')' at position {position} of '{text}'")
            position += 1
            return tuple(items)
        # CuTe's mark of a static integer, as it is in what `tlx.dump_layout` prints.
        position += text[position : position + 1] == "_"
        start = position
        while position < len(text) and text[position].isdigit():
            position += 1
        if start == position:
            raise ValueError(f"expected a number or '(' at position {start} of '{text}'")
        return int(text[start:position])

    result = item()
    if position != len(text):
        raise ValueError(f"unexpected '{text[position:]}' after '{text[:position]}'")
    return result
