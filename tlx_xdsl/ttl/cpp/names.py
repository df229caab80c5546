"""Names of C++ variables: those of the values where they can be, each once in a function."""

from __future__ import annotations

import re
from collections.abc import Iterable

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

_WORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete
do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable
namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
requires return short signed sizeof static static_assert static_cast struct switch template this thread_local throw
true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
"""
_KEYWORDS = frozenset(_WORDS.split())

_OF_THE_API = "MAIN NAMESPACE REDUCE_OP REDUCE_DIM INFINITY NULL ALWI main my_x my_y noc_index kernel_main"
"""Macros and variables."""


class Names:
    """The names of one function, whose callees keep theirs."""

    def __init__(self, callees: Iterable[str]) -> None:
        self._used = {*_KEYWORDS, *_OF_THE_API.split(), *callees}

    def new(self, hint: str | None, fallback: str) -> str:
        """A name like `hint` if that is a valid one, else like `fallback`."""
        # Two underscores are the implementation's.
        valid = hint is not None and _IDENTIFIER.fullmatch(hint) and not hint.startswith("_") and "__" not in hint
        base = hint if hint is not None and valid and hint not in _KEYWORDS else fallback
        name = base
        number = 0
        while name in self._used:
            number += 1
            name = f"{base}_{number}"
        self._used.add(name)
        return name
