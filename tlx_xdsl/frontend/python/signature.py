"""The types of a kernel's arguments as callers spell them. xDSL is not loaded for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Fixed:
    """A compile-time value within a tuple of runtime arguments."""

    value: Any


Signature: TypeAlias = "str | Fixed | tuple[Signature, ...]"
"""The type of an argument: a text such as `*fp16`, or a tuple of types (which `"(*fp16, i32)"` is too)."""
