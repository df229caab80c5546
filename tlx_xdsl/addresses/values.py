"""Facts that the analysis knows about one value of a kernel."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from xdsl.ir import SSAValue

from tlx_xdsl.analysis.integers.polynomials import Polynomial
from tlx_xdsl.analysis.integers.symbols import Causes
from tlx_xdsl.layouts.encodings import Ints

from .intervals import Interval
from .model import Guard

MOST_CONDITIONS = 24
"""Conditions of a value above which nothing is known about it. Kernels have a handful; sets of them are copied."""


@dataclass(frozen=True)
class Conditions:
    """A set of conditions, at most one for each polynomial; `None` in place of a set that grew too large."""

    bounds: dict[Polynomial, Interval] = field(default_factory=dict[Polynomial, Interval])

    def add(self, form: Polynomial, interval: Interval) -> Conditions:
        """Return these conditions and one more: `form` lies in `interval`."""
        known = self.bounds.get(form)
        if known is not None and known.within(interval):
            return self
        return Conditions({**self.bounds, form: interval if known is None else known.meet(interval)})

    def join(self, other: Conditions) -> Conditions:
        """Return the conditions of both."""
        if not other.bounds or self is other:
            return self
        if not self.bounds:
            return other
        total = self
        for form, interval in other.bounds.items():
            total = total.add(form, interval)
        return total

    @property
    def too_many(self) -> bool:
        """True if there are too many to keep."""
        return len(self.bounds) > MOST_CONDITIONS


NO_CONDITIONS = Conditions()


@dataclass(frozen=True)
class Integer:
    """An integer, or a tensor of integers. One bit counts as 0 or 1."""

    form: Polynomial
    """Its value modulo 2^bits; in the positions of its tensor (`Lane`)."""
    range: Interval
    """Its range as a signed number."""
    exact: bool
    """True if it is `form` as a signed number, without wrap-around."""
    bits: int
    conditions: Conditions = NO_CONDITIONS
    """Preconditions of all of this."""
    guards: tuple[Guard, ...] = ()
    """For one bit: comparisons that hold where it is 1."""
    guards_exact: bool = False
    """True if it is 1 wherever they hold."""

    def with_conditions(self, conditions: Conditions) -> Integer:
        """The same, under more conditions."""
        return self if conditions is self.conditions else replace(self, conditions=conditions.join(self.conditions))


@dataclass(frozen=True)
class Pointer:
    """A pointer, or a tensor of them."""

    base: SSAValue | None
    """The kernel's argument that it points into; None where that is not known."""
    offset: Polynomial
    """Bytes after it, modulo 2^64."""
    conditions: Conditions = NO_CONDITIONS
    reason: str | None = None
    """Why nothing is known."""


@dataclass(frozen=True)
class Descriptor:
    """A tensor descriptor."""

    base: SSAValue | None
    offset: Polynomial
    """Bytes from the base to the tensor's first element."""
    shape: tuple[Polynomial, ...]
    """Elements along each dimension."""
    strides: tuple[Polynomial, ...]
    """Elements."""
    block: Ints
    element_size: int
    conditions: Conditions = NO_CONDITIONS
    reason: str | None = None


@dataclass(frozen=True)
class Other:
    """A value that is no integer, pointer or descriptor, such as a float."""

    causes: Causes


State: TypeAlias = Integer | Pointer | Descriptor | Other
