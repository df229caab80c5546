"""How much a text grows when its aliases are written out.

An alias of two aliases of two aliases is short, and what it stands for doubles at each step: to hash, compare or print
that takes as long as if it had been written out.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.ir import Attribute, ParametrizedAttribute

_ALLOWANCE = 1_000_000
_PER_CHARACTER = 50
"""Attributes for each character of the text: a location of a deep chain of calls is some hundred, and is used by a
dozen characters."""


class Expansion:
    """Counts the attributes that the uses of aliases stand for."""

    def __init__(self, characters: int):
        self.limit = _ALLOWANCE + _PER_CHARACTER * characters
        self._total = 0
        self._sizes: dict[int, tuple[int, Attribute]] = {}
        """Of each attribute that was met, by its identity, which holding it keeps its own."""

    def add(self, attribute: Attribute) -> bool:
        """Count one use; whether all uses are still within the limit."""
        self._total += self._size(attribute)
        return self._total <= self.limit

    def _size(self, attribute: Attribute) -> int:
        known = self._sizes.get(id(attribute))
        if known is None:
            size = 1 + sum(map(self._size, _parts(attribute)))
            known = self._sizes[id(attribute)] = (size, attribute)
        return known[0]


def _parts(attribute: Attribute) -> Iterable[Attribute]:
    match attribute:
        case ArrayAttr():
            return attribute.data  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        case DictionaryAttr():
            return attribute.data.values()
        case ParametrizedAttribute():
            return attribute.parameters
        case _:
            return ()
