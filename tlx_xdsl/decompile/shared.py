"""Names that the functions of a decompiled module share, and operations that it can't express."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass, field

from xdsl.ir import Operation


@dataclass
class Module:
    """State that the functions of a module share."""

    refused: list[Operation] = field(default_factory=list[Operation])
    """Operations that the language can't express."""
    skipped: set[Operation] = field(default_factory=set[Operation])
    """Operations that are part of what another one was written as."""
    named_barriers: dict[str, int] = field(default_factory=dict[str, int])
    """A number of its own for each of the hardware's named barriers."""
    _names: dict[str, str] = field(default_factory=dict[str, str])
    """Python's name of each function."""
    _helpers: dict[str, str] = field(default_factory=dict[str, str])
    """The name of each helper function by its text without a name."""

    _constants: dict[str, str] = field(default_factory=dict[str, str])
    """The name of each compile-time value by its text."""

    def constant(self, stem: str, text: str) -> str:
        """The name of a compile-time value that is defined before the functions."""
        return self._constants.setdefault(text, f"{stem}_{len(self._constants)}")

    def constants(self) -> list[str]:
        """The compile-time values as text."""
        lines = [f"{name} = tl.constexpr({text})\n" for text, name in self._constants.items()]
        return ["".join(lines)] if lines else []

    def name_of(self, symbol: str) -> str:
        """The Python name of a function of the module."""
        if symbol not in self._names:
            stem = re.sub(r"\W", "_", symbol)
            stem = f"f_{stem}" if not stem.isidentifier() or keyword.iskeyword(stem) else stem
            while stem in self.function_names():
                stem += "_"
            self._names[symbol] = stem
        return self._names[symbol]

    def function_names(self) -> set[str]:
        """The names of all functions so far, which nothing inside of a function may have."""
        return {*self._names.values(), *self._helpers.values(), *self._constants.values()}

    def helper(self, stem: str, names: list[str], lines: list[str]) -> str:
        """The name of a function with this body: one function for all that are alike."""
        text = "\n".join([f"({', '.join(names)}):", *lines])
        if text not in self._helpers:
            number = sum(name.startswith(stem) for name in self._helpers.values())
            self._helpers[text] = f"{stem}_{number}"
        return self._helpers[text]

    def helpers(self) -> list[str]:
        """The helper functions as text."""
        return [f"@tlx_xdsl.jit\ndef {name}{text}\n" for text, name in self._helpers.items()]
