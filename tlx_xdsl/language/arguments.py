"""Types of arguments, as names for signatures. `constexpr` is what is known when a kernel is compiled.

They are for people and type checkers: the frontend checks arguments itself, with errors that name the kernel's line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from .compile_time import constexpr
from .dtypes import dtype
from .objects import tensor

Value: TypeAlias = tensor | constexpr | int | float
"""A block or scalar, or a number, which becomes a constant."""

Int: TypeAlias = int | constexpr
"""An integer that is known at compile time."""

Flag: TypeAlias = bool | constexpr
"""Yes or no, known at compile time."""

Text: TypeAlias = str | constexpr
"""A word that is known at compile time."""

Type: TypeAlias = dtype | constexpr
"""An element type."""

Shape: TypeAlias = Sequence[int | constexpr] | constexpr
"""Sizes that are known at compile time, in elements."""

Axes: TypeAlias = int | Sequence[int | constexpr] | constexpr
"""A dimension, or several."""

Values: TypeAlias = Sequence[tensor | constexpr | int]
"""Offsets, sizes or strides that may be known at run time only."""
