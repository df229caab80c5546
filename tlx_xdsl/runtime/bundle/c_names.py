"""Names in C for a kernel's arguments."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

_KEYWORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
    concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete
    do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
    requires restrict return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using virtual void volatile
    wchar_t while xor xor_eq
"""
"""Of C (C23) and of C++ (C++20): the header is for both."""

_TAKEN = """
    NULL linux unix i386 errno memset
    stream gridX gridY gridZ context slot status config attributes parameters maps storage
    global_scratch profile_scratch fail find_loaded encode_tiled loaded binary message
"""
"""Macros that compilers and headers define, and what the launcher's own code calls by these names."""

RESERVED = frozenset((_KEYWORDS + _TAKEN).split())

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_OTHERS = re.compile(r"cu[A-Z]\w*|CU\w*|u?int\w*_t|size_t|U?INT\w+|TLX_\w*|_[A-Z_]\w*", re.ASCII)
"""Names of the CUDA driver, of stdint.h, of compilers, and macros of ours."""

PARTS = ("shape", "strides", "box", "map")
"""Suffixes of a descriptor's name, for the parameters that it becomes."""


def is_identifier(name: str) -> bool:
    """Return whether `name` can be a part of a C identifier."""
    return _IDENTIFIER.fullmatch(name) is not None


def c_names(names: Sequence[str], *, parts: Sequence[str] = PARTS, taken: Collection[str] = ()) -> list[str]:
    """A C name for each name of Python: the same where that is possible, else one that is made of it.

    A name with one of `parts` is no other one's either; those in `taken` are the launcher's own.
    """
    found: list[str] = []
    given: set[str] = set()
    for index, name in enumerate(names):
        name = name if is_identifier(name) else f"argument{index}"
        if name in RESERVED or name in taken or _OTHERS.fullmatch(name):
            name = f"arg_{name}"
        while not given.isdisjoint(_with_parts(name, parts)):
            name += "_"
        given.update(_with_parts(name, parts))
        found.append(name)
    return found


def _with_parts(name: str, parts: Sequence[str]) -> list[str]:
    return [name, *(f"{name}_{part}" for part in parts)]
