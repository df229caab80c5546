"""Sizes, strides and offsets: Python integers where the types state them, so that they are folded, else values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from .builder import Builder
from .values import I64, Value, constant

Number: TypeAlias = "int | Value"
"""In elements, 64 bits."""


def as_value(number: Number) -> Value:
    """The number as an i64."""
    return constant(number, I64) if isinstance(number, int) else number


def add(b: Builder, first: Number, second: Number) -> Number:
    """The sum."""
    if isinstance(first, int) and isinstance(second, int):
        return first + second
    if first == 0:
        return second
    if second == 0:
        return first
    return b.binary("add nsw", as_value(first), as_value(second))


def multiply(b: Builder, first: Number, second: Number) -> Number:
    """The product."""
    if isinstance(first, int) and isinstance(second, int):
        return first * second
    if first == 0 or second == 0:
        return 0
    if first == 1:
        return second
    if second == 1:
        return first
    return b.binary("mul nsw", as_value(first), as_value(second))


def total(b: Builder, start: Number, factors: Sequence[Number], strides: Sequence[Number]) -> Number:
    """`start` and the products."""
    for factor, stride in zip(factors, strides, strict=True):
        start = add(b, start, multiply(b, factor, stride))
    return start
