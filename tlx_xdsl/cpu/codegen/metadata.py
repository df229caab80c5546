"""Metadata of an object file: how it is called, and the line of the kernel that each error is of."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Argument:
    """An argument of a kernel."""

    name: str
    type: str
    """`ptr`, `i1` to `i64`, `f16`, `bf16`, `f32` or `f64`."""
    is_only_read: bool = False
    """True for an array that the kernel surely leaves as it is."""


@dataclass(frozen=True)
class Site:
    """A place of a kernel that may end a program with an error."""

    file: str
    """Empty if it is not known."""
    line: int
    column: int
    message: str


@dataclass(frozen=True)
class Metadata:
    """Metadata of an object file, as a launch needs them."""

    name: str
    """The kernel's."""
    symbol: str
    """Of the function that runs programs: `i32 (ptr arguments, ptr launch, ptr scratch)`."""
    arguments: tuple[Argument, ...]
    scratch_bytes: int
    """Memory that each thread needs, aligned to 64 bytes."""
    sites: tuple[Site, ...]
    """The place of status 1, 2, ..."""
    symbols: tuple[str, ...]
    """Functions that it calls: of libm, and those that print."""
    checks: bool
    triple: str
    cpu: str
    """The CPU that it was compiled for, in LLVM's name."""

    def to_json(self) -> str:
        """The text that `from_json` reads."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Metadata:
        """Return what `to_json` wrote.

        Raises ValueError, KeyError or TypeError for any other text.
        """
        held: dict[str, Any] = json.loads(text)
        held["arguments"] = tuple(Argument(**each) for each in held["arguments"])
        held["sites"] = tuple(Site(**each) for each in held["sites"])
        held["symbols"] = tuple(held["symbols"])
        return Metadata(**held)
