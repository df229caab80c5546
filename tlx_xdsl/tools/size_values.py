"""Named sizes on a command line.

--size M=5             one value
--size M=0..3,7        from 0 to 3, and 7
"""

from __future__ import annotations

from tlx_xdsl.errors import CompilationError

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
    values = size_values(name, text)
    if len(values) > 1:
        raise CompilationError(f"--size: '{name}' has one value in a run, found '{text}': tlx check takes several")
    return values[0]
