"""Named sizes on a command line.

--size M=5             one value
--size M=0..3,7        from 0 to 3, and 7
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.check.options import SMALL

if TYPE_CHECKING:
    from tlx_xdsl.runtime.check.sizes import Sizes

MOST_VALUES = 10_000
"""Values of one size."""


def size_values(name: str, text: str) -> tuple[int, ...]:
    """The values that `--size name=text` lists, in this order. Raises CompilationError for another text."""
    values: list[int] = []
    for item in text.split(","):
        first, dots, last = (part.strip() for part in item.partition(".."))
        if not first.isdecimal() or (dots and not last.isdecimal()):
            raise CompilationError(f"--size: expected values such as {name}=0..3,7, found '{name}={text}'")
        low, high = int(first), int(last or first)
        if low > high:
            raise CompilationError(f"--size: '{item.strip()}' of '{name}' has no values, the smaller number is first")
        if len(values) + high - low + 1 > MOST_VALUES:
            raise CompilationError(f"--size: '{name}' has more than {MOST_VALUES:,} values")
        values.extend(range(low, high + 1))
    return tuple(dict.fromkeys(values))


def one_size(name: str, text: str) -> int:
    """The one value that `--size name=text` gives. Raises CompilationError for another text, or several."""
    value, *others = size_values(name, text)
    if others:
        raise CompilationError(f"--size: '{name}' has one value in a run, found '{text}': tlx check takes several")
    return value


def size_ranges(texts: Mapping[str, str], small: Callable[[Sizes], tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """The values of all sizes; `small` gives those that are called so, from the sizes of the largest launch.

    Raises CompilationError for a text that means nothing.
    """
    values = {name: size_values(name, text) for name, text in texts.items() if text != SMALL}
    if len(values) == len(texts):
        return values
    chosen = small({name: max(values.get(name, (1,))) for name in texts})
    return {name: values.get(name, chosen) for name in texts}
