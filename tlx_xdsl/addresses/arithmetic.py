"""Abstract integers: when a polynomial is the number itself, and the conditions for that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import gcd, prod
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from tlx_xdsl.analysis.integers.functions import apply
from tlx_xdsl.analysis.integers.polynomials import (
    ONE,
    Argument,
    Call,
    Counter,
    Extent,
    Lane,
    NumPrograms,
    Pid,
    Polynomial,
    Symbol,
    Unknown,
)
from tlx_xdsl.analysis.integers.symbols import ANYTHING, NOTHING, Causes
from tlx_xdsl.analysis.integers.transfer import bits_of, is_pointer, shape_of

from .bounds import Bounds
from .intervals import Interval
from .simplify import Simplifier
from .values import (
    NO_CONDITIONS,
    Conditions,
    Integer,
    Other,
    Pointer,
    State,
)

MOST_TERMS = 48
"""Products of a polynomial above which it is given up, so that the time per operation has a bound."""
MOST_CALLS = 12
"""Calls inside of each other above which a polynomial is given up."""
MOST_TRIALS = 1 << 14
"""Combinations of values of the symbols of a polynomial that are tried: as much time as a few operations take."""
LARGEST = 1 << 62


def name_of(value: SSAValue) -> str:
    """A name for people."""
    return value.name_hint or "value"


class Arithmetic:
    """Operations on `Integer`s."""

    def __init__(self, bounds: Bounds, *, strict: bool = False):
        self.bounds = bounds
        self.simplifier = Simplifier(bounds)
        self._strict = strict

    # Making --------------------------------------------------------------------------------------------------------

    def number(self, number: int, bits: int) -> Integer:
        """A constant."""
        if bits == 1:
            number &= 1
        return Integer(Polynomial.constant(number), Interval.point(number), True, bits)

    def symbol(self, symbol: Symbol, bits: int, conditions: Conditions = NO_CONDITIONS) -> Integer:
        """A symbol, which is a number of so many bits."""
        return Integer(Polynomial.of(symbol), self.bounds.of(symbol), True, bits, conditions)

    def made(
        self, value: SSAValue, form: Polynomial, interval: Interval, *, exact: bool, operands: Iterable[Integer]
    ) -> Integer:
        """The result `value` of an operation on `operands`: the polynomial `form`, as a number in `interval`.

        `exact`: whether the polynomial is that number where it does not wrap around.
        """
        operands = tuple(operands)
        bits = bits_of(value)
        assert bits is not None
        conditions = NO_CONDITIONS
        for operand in operands:
            conditions = conditions.join(operand.conditions)
        if self.is_too_large(form) or conditions.too_many:
            return self.unknown(value, causes_of(operands))
        whole = Interval.signed(bits)
        if exact and interval.within(whole):
            return Integer(form, interval, True, bits, conditions)
        computed = self.bounds.of_form(form)
        if computed.within(whole):
            # What is a number of so many bits is the number modulo 2^bits.
            return Integer(form, computed, True, bits, conditions)
        return Integer(form, whole, False, bits, conditions)

    def unknown(self, value: SSAValue, causes: Causes, interval: Interval | None = None) -> Integer:
        """A number that only depends on `causes`."""
        bits = bits_of(value)
        assert bits is not None
        symbol = Unknown(value, name_of(value), causes if shape_of(value) else causes & ~Causes.LANES, bits)
        if interval is not None:
            self.bounds.known[symbol] = interval.meet(Interval.signed(bits))
        return self.symbol(symbol, bits)

    def state_of_unknown(self, value: SSAValue, causes: Causes) -> State:
        """The state of a `value` of which nothing is known but that it only depends on `causes`."""
        if bits_of(value) is not None:
            return self.unknown(value, causes)
        if is_pointer(value):
            return Pointer(None, Polynomial({}), reason=f"the pointer '{name_of(value)}' is not known")
        return Other(causes)

    def is_too_large(self, form: Polynomial) -> bool:
        """True if a polynomial is given up."""
        return len(form.terms) > MOST_TERMS or form.depth > MOST_CALLS

    # Asking --------------------------------------------------------------------------------------------------------

    def whole(self, value: Integer) -> Integer | None:
        """The same number, as one whose polynomial is exact: under a condition if need be, None where there is none."""
        if value.exact:
            return value
        return self.bounded(value, Interval.signed(value.bits))

    def natural(self, value: Integer) -> Integer | None:
        """The same number, as an exact one that is not negative, as `whole`."""
        return self.at_least(0, value)

    def at_least(self, least: int, value: Integer) -> Integer | None:
        """The same number, as an exact one that is not less than `least`, as `whole`."""
        exact = self.whole(value)
        if exact is None or exact.range.low >= least:
            return exact
        return self.bounded(exact, Interval(least, Interval.signed(value.bits).high))

    def bounded(self, value: Integer, interval: Interval) -> Integer | None:
        """The same number under the condition that its polynomial is in `interval`; None where that is no condition."""
        conditions = self._condition(value.form, interval)
        if conditions is None:
            return None
        computed = self.bounds.of_form(value.form).meet(interval)
        if value.exact:
            computed = computed.meet(value.range)
        return replace(value, range=computed, exact=True, conditions=value.conditions.join(conditions))

    def _condition(self, form: Polynomial, interval: Interval) -> Conditions | None:
        """The condition that `form` is in `interval` for all programs, positions and iterations.

        None where it holds for no launch of several programs, or does not only depend on the launch.
        """
        if self.bounds.of_form(form).within(interval):
            return NO_CONDITIONS
        if self._strict or any(isinstance(symbol, Unknown) for symbol in form.all_symbols):
            return None
        if not any(isinstance(symbol, Argument | Extent | NumPrograms) for symbol in form.all_symbols):
            if self.bounds.facts.grid is not None:
                # All of the launch is known.
                return NO_CONDITIONS if _is_always_within(form, interval, self.bounds) else None
            # Launches have a program 0 and a program 1, and all positions: what fails there always fails.
            if not _FirstPrograms(self.bounds).of_form(form).within(interval):
                return None
        return _normalised(form, interval, self.bounds)


class _FirstPrograms(Bounds):
    """The bounds of the first two programs along each axis, in the first two iterations."""

    def __init__(self, bounds: Bounds):
        super().__init__(bounds.facts)
        self._all = bounds

    def of(self, symbol: Symbol) -> Interval:
        """The range of a symbol."""
        known = self._all.of(symbol)
        if isinstance(symbol, Call):
            return self.of_call(symbol).meet(known)
        return known.meet(Interval(0, 1)) if isinstance(symbol, Pid | Counter) else known


def _normalised(form: Polynomial, interval: Interval, bounds: Bounds) -> Conditions:
    """Drop positions and the constant, and divide by what divides everything."""
    lanes = form.part(lambda symbol: isinstance(symbol, Lane))
    if not any(_mixes(product) for product in lanes.terms) and all(
        isinstance(symbol, Lane) for symbol in lanes.symbols
    ):
        spread = bounds.of_form(lanes)
        form, interval = form - lanes, Interval(interval.low - spread.low, interval.high - spread.high)
    interval = Interval(interval.low - form.offset, interval.high - form.offset)
    form = form - form.offset
    factor = gcd(*form.terms.values())
    if form.terms and factor:
        sign = -1 if all(number < 0 for number in form.terms.values()) else 1
        if sign < 0:
            form, interval = -form, -interval
        form = Polynomial({product: number // factor for product, number in form})
        interval = Interval(-(-interval.low // factor), interval.high // factor)
    return Conditions({form: interval})


def _mixes(product: frozenset[tuple[Symbol, int]]) -> bool:
    return product != ONE and len({type(symbol) for symbol, _ in product}) > 1


def _is_always_within(form: Polynomial, interval: Interval, bounds: Bounds) -> bool:
    """True if `form` is in `interval` for each combination of the values of its symbols; False where they are many."""
    symbols = [symbol for symbol in form.all_symbols if not isinstance(symbol, Call)]
    ranges = [bounds.of(symbol) for symbol in symbols]
    if prod(max(0, each.high - each.low) + 1 for each in ranges) > MOST_TRIALS:
        return False
    if any(max(abs(each.low), abs(each.high)) > LARGEST for each in [bounds.of_form(form), *ranges]):
        # Numbers of 64 bits would wrap around.
        return False
    trials = np.meshgrid(*(np.arange(each.low, each.high + 1, dtype=np.int64) for each in ranges), sparse=True)
    values: dict[Symbol, Any] = dict(zip(symbols, trials, strict=True))
    numbers = np.asarray(form.evaluate(values.__getitem__, apply))
    return bool((numbers >= interval.low).all() and (numbers <= interval.high).all())


def causes_of_form(form: Polynomial) -> Causes:
    """Return all that the value of a polynomial may depend on."""
    total = NOTHING
    for symbol in form.all_symbols:
        match symbol:
            case Pid():
                total |= Causes.PID
            case Lane():
                total |= Causes.LANES
            case Unknown():
                total |= symbol.causes
            case _:
                pass
    return total


def causes_of(states: Iterable[State]) -> Causes:
    """Return all that the values of `states` may depend on."""
    total = NOTHING
    for state in states:
        match state:
            case Integer(form):
                total |= causes_of_form(form)
            case Other(causes):
                total |= causes
            case Pointer(base, offset) if base is not None:
                total |= causes_of_form(offset)
            case _:
                total |= ANYTHING
    return total
