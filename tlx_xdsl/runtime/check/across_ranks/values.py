"""Numbers of a kernel, of which those that data decides are unknown, and those that grow from launch to launch forms.

Launches are counted in periods, such as two where memory takes turns. In period m, a number of launch i of the period
is `first + step * m`: so the epoch of the third launch of periods of two is 3 - 2 + 2 * 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import lcm
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.dialects import arith as upstream
from xdsl.ir import Operation

from tlx_xdsl.dialects import arith
from tlx_xdsl.interpreter.numbers import dtype_of

MOST_PERIOD = 12
"""Launches of a period at most."""


class Unknown:
    """A number that data decides, or that this analysis does not follow."""


UNKNOWN = Unknown()


@dataclass(frozen=True)
class Growing:
    """An integer that grows with the number of the period; it is never constant."""

    first: int
    step: int


@dataclass(frozen=True)
class AtLeast:
    """A counter after a wait for it."""

    value: int | Growing


@dataclass(frozen=True)
class Ticket:
    """The number that a program finds when it adds 1 to a counter of its rank."""

    address: int


@dataclass(frozen=True)
class IsTicket:
    """A condition: that a ticket has that number, which is so for one program in each launch."""

    address: int
    number: int


Value: TypeAlias = Any
"""A numpy scalar or array, or one of the classes above."""


class LongerPeriodError(Exception):
    """The period is too short: a number takes turns with more launches."""

    def __init__(self, launches: int):
        self.launches = launches
        super().__init__(launches)


class Growth:
    """The arithmetic of growing numbers, and the number of periods in which none of them wraps around."""

    def __init__(self, launches: int):
        self.launches = launches
        """Launches of a period."""
        self.periods: int | None = None
        """Periods for which all numbers fit their types; None without a limit."""

    def made(self, first: int, step: int, bits: int) -> Value:
        """The number `first + step * m` of that many bits; unknown where it does not fit at first."""
        most = (1 << (bits - 1)) - 1
        if not -most <= first <= most:
            return UNKNOWN
        if step == 0:
            return np.dtype(f"int{bits}").type(first)
        self.limit((most - abs(first)) // abs(step) + 1)
        return Growing(first, step)

    def limit(self, periods: int) -> None:
        """Note that something holds for so many periods only."""
        self.periods = periods if self.periods is None else min(self.periods, periods)

    def computed(self, op: Operation, operands: list[Value]) -> Value:
        """The result of an operation, one of whose operands grows or is a ticket; else unknown.

        Raises LongerPeriodError where a longer period would make it known.
        """
        if not op.name.startswith("arith.") or len(op.results) != 1:
            return UNKNOWN if len(op.results) == 1 else (UNKNOWN,) * len(op.results)
        if isinstance(op, arith.ExtSIOp) and isinstance(operands[0], Growing | AtLeast | Ticket):
            return operands[0]
        if isinstance(op, arith.CmpiOp) and len(operands) == 2:
            return self._compared(op.predicate_name, operands[0], operands[1])
        bits = dtype_of(op.results[0].type).itemsize * 8
        if isinstance(op, arith.TruncIOp) and isinstance(operands[0], Growing):
            return self.made(operands[0].first, operands[0].step, bits)
        if len(operands) != 2 or dtype_of(op.results[0].type).kind != "i":
            return UNKNOWN
        left, right = form_of(operands[0]), form_of(operands[1])
        if left is None or right is None:
            return UNKNOWN
        return self._combined(op, left, right, bits)

    def _combined(self, op: Operation, left: tuple[int, int], right: tuple[int, int], bits: int) -> Value:
        """The result of arithmetic on two forms."""
        (a, b), (c, d) = left, right
        match op:
            case upstream.AddiOp():
                return self.made(a + c, b + d, bits)
            case upstream.SubiOp():
                return self.made(a - c, b - d, bits)
            case upstream.MuliOp() if not (b and d):
                return self.made(a * c, b * c + a * d, bits)
            case _ if d or c < 0 or a < 0 or b < 0:
                return UNKNOWN
            case upstream.RemSIOp() | upstream.RemUIOp() if c:
                return self.made(a % c, 0, bits) if b % c == 0 else self._longer(c)
            case upstream.DivSIOp() | upstream.DivUIOp() if c:
                return self.made(a // c, b // c, bits) if b % c == 0 else self._longer(c)
            case upstream.AndIOp() if (c + 1) & c == 0:
                return self.made(a & c, 0, bits) if b % (c + 1) == 0 else self._longer(c + 1)
            case upstream.ShRSIOp() | upstream.ShRUIOp() if c < bits - 1:
                return self.made(a >> c, b >> c, bits) if b % (1 << c) == 0 else self._longer(1 << c)
            case _:
                return UNKNOWN

    def _longer(self, divisor: int) -> Value:
        launches = lcm(self.launches, divisor)
        if launches > MOST_PERIOD or launches == self.launches:
            return UNKNOWN
        raise LongerPeriodError(launches)

    @staticmethod
    def _compared(predicate: str, a: Value, b: Value) -> Value:
        if isinstance(a, Ticket) and predicate == "eq" and (number := form_of(b)) is not None:
            return UNKNOWN if number[1] else IsTicket(a.address, number[0])
        least = isinstance(a, AtLeast)
        left, right = form_of(a.value if isinstance(a, AtLeast) else a), form_of(b)
        if left is None or right is None or not predicate.startswith(("s", "e", "n")):
            return UNKNOWN
        first, step = left[0] - right[0], left[1] - right[1]
        # The smallest and the largest difference, in all periods; None where it has no bound.
        low = first if step >= 0 else None
        high = None if least or step > 0 else first
        decided: dict[str, Callable[[], bool | None]] = {
            "slt": lambda: _below(low, high, 0),
            "sle": lambda: _below(low, high, 1),
            "sge": lambda: _not(_below(low, high, 0)),
            "sgt": lambda: _not(_below(low, high, 1)),
            "eq": lambda: _is_zero(low, high),
            "ne": lambda: _not(_is_zero(low, high)),
        }
        answer = decided[predicate]() if predicate in decided else None
        return UNKNOWN if answer is None else np.bool_(answer)


def form_of(value: Value) -> tuple[int, int] | None:
    """The number in the first period, and what each one adds; None where it is not known."""
    if isinstance(value, Growing):
        return value.first, value.step
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        return None
    return int(cast(int, value)), 0


def _below(low: int | None, high: int | None, limit: int) -> bool | None:
    if high is not None and high < limit:
        return True
    return False if low is not None and low >= limit else None


def _is_zero(low: int | None, high: int | None) -> bool | None:
    if low == high == 0:
        return True
    return False if (low is not None and low > 0) or (high is not None and high < 0) else None


def _not(answer: bool | None) -> bool | None:
    return None if answer is None else not answer
