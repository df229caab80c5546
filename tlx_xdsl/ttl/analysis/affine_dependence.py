"""Dependence tests for affine accesses: which iterations of two loop nests touch the same element.

An access touches a box of elements: in each dimension, `extent` elements from an affine expression of the loops'
indices on. Two accesses conflict when their boxes overlap in some pair of iterations. Of each such pair, the distance
counts: by how much the indices of the loops around both differ, the sink's less the source's, outermost loop first.

1. Each dimension gives an inequality: sink's first element - source's first element is more than minus the sink's
   extent and less than the source's. The test of the greatest common divisor asks whether integers can do that,
   Banerjee's test whether the bounds of the loops allow it. Both are asked per direction (a distance is positive, zero
   or negative in each loop), from the outermost loop on, and bounds are propagated from one dimension to the others.
   What remains is an interval of distances per loop: it never misses a conflict, but may hold more than there are.
2. Where something remains and there are few iterations, these are enumerated: the set of distances is exact.
3. An index of which nothing is known (None) is no inequality: every pair may conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import gcd, inf, isinf

from .linear import UNBOUNDED, Bound, Interval, Linear, interval_of, quotient, scaled

ENUMERATED = 4096
"""Elements that an access touches in all its iterations, about, up to which they are enumerated."""
_ROUNDS = 4
"""Bounds are propagated so often: each round is sound, and later ones rarely change anything."""


@dataclass(frozen=True)
class Loop:
    """The numbers from the largest of `lower` in steps to below the smallest of `upper`.

    An empty tuple is an unknown bound. A parameter, the same in all iterations, is a loop that accesses share.
    """

    variable: Hashable
    lower: tuple[Linear, ...]
    upper: tuple[Linear, ...]
    step: int = 1

    def values(self, outer: Mapping[Hashable, int]) -> range:
        """The numbers, where those of the loops around are known."""
        low = max(each.value(outer) for each in self.lower)
        return range(low, min(each.value(outer) for each in self.upper), self.step)


@dataclass(frozen=True)
class Access:
    """A box of elements in each iteration of loops, outermost first."""

    loops: tuple[Loop, ...]
    box: tuple[tuple[Linear | None, int], ...]
    """The first element, where it is known, and how many, in each dimension."""
    is_write: bool

    def renamed(self, names: Mapping[Hashable, Hashable]) -> Access:
        """The access with other names for some variables."""

        def new(variable: Hashable) -> Linear:
            return Linear.of(names.get(variable, variable))

        def bounds(given: tuple[Linear, ...]) -> tuple[Linear, ...]:
            return tuple(each.replaced(new) for each in given)

        return Access(
            tuple(
                Loop(names.get(each.variable, each.variable), bounds(each.lower), bounds(each.upper), each.step)
                for each in self.loops
            ),
            tuple((None if first is None else first.replaced(new), extent) for first, extent in self.box),
            self.is_write,
        )


Distance = tuple[Interval, ...]
"""An interval per common loop."""


@dataclass(frozen=True)
class Conflicts:
    """The pairs of iterations in which two accesses touch the same element."""

    distances: frozenset[Distance]
    """All distances are in one of these; no distance means no conflict."""
    exact: bool
    """Whether there is a conflict at each distance in them."""

    def __bool__(self) -> bool:
        """Return whether there may be a conflict."""
        return bool(self.distances)

    @property
    def directions(self) -> frozenset[tuple[int, ...]]:
        """The signs of the distances."""
        return frozenset(tuple(_sign(each) for each in distance) for distance in self.distances)

    def carried(self, level: int) -> bool:
        """Return whether iterations of a loop conflict, in one iteration of the loops around it."""
        return any(not any(each[:level]) and each[level] for each in self.directions)

    def nearest(self, level: int) -> Bound:
        """The smallest distance, without its sign, between such iterations of a loop; infinite when there is none."""
        return min(
            (
                min(abs(bound) for bound in each[level])
                for each in self.distances
                if _sign(each[level]) and not any(map(_sign, each[:level]))
            ),
            default=inf,
        )

    @property
    def any_backward(self) -> bool:
        """Return whether the sink's iteration may come before the source's."""
        return any(next(filter(None, each), 0) < 0 for each in self.directions)

    @property
    def any_forward(self) -> bool:
        """Return whether the sink's iteration may come after the source's."""
        return any(next(filter(None, each), 0) > 0 for each in self.directions)

    @property
    def in_same_iteration(self) -> bool:
        """Return whether both accesses may touch the same element in one iteration of all common loops."""
        return any(not any(each) for each in self.directions)


def conflicts(
    source: Access, sink: Access, parameters: Sequence[Loop] = (), *, enumerated: int = ENUMERATED
) -> Conflicts:
    """The pairs of iterations of two accesses to the same memory in which they touch the same element.

    About `enumerated` iterations are enumerated. Loops with the same variable are common: they must be the same, and
    the outermost ones of both.
    """
    if _are_apart(source, sink):
        return Conflicts(frozenset(), True)
    common = 0
    for one, other in zip(source.loops, sink.loops, strict=False):
        if one.variable != other.variable:
            break
        common += 1
    bounds = frozenset(_System(source, sink, parameters, common).distances())
    # Nothing is left to enumerate for an access and itself, when no two iterations meet.
    if not bounds or (source is sink and all(not any(map(any, each)) for each in bounds)):
        return Conflicts(bounds, True)
    if enumerated and (exact := _enumerate(source, sink, parameters, common, enumerated)) is not None:
        return Conflicts(exact, True)
    return Conflicts(bounds, False)


def _are_apart(source: Access, sink: Access) -> bool:
    """Return whether boxes at places that are numbers do not overlap: most of the pairs of a long kernel."""
    for (first, extent), (other, other_extent) in zip(source.box, sink.box, strict=True):
        if first is None or other is None or first.factors or other.factors:
            continue
        if not -extent < first.constant - other.constant < other_extent:
            return True
    return False


def _sign(interval: Interval) -> int:
    low, high = interval
    return 1 if low > 0 else -1 if high < 0 else 0


# --- enumeration ----------------------------------------------------------------------------------------------------


def _enumerate(
    source: Access, sink: Access, parameters: Sequence[Loop], common: int, limit: int
) -> frozenset[Distance] | None:
    """The exact distances, or None where they are too many to enumerate or not known."""
    if not (_is_closed(source, parameters) and _is_closed(sink, parameters)):
        return None
    found: set[Distance] = set()
    # A round is an element that the source touches, or a comparison of the sink with one of those.
    rounds = iter(range(limit * 4))
    for setting in _iterations(tuple(parameters), {}):
        elements: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        for index, element in _touched(source, setting, common):
            elements.setdefault(element, []).append(index)
            if next(rounds, None) is None:
                return None
        for index, element in _touched(sink, setting, common):
            for other in (None, *elements.get(element, [])):
                if next(rounds, None) is None:
                    return None
                if other is not None:
                    found.add(tuple((j - i, j - i) for i, j in zip(other, index, strict=True)))
    return frozenset(found)


def _is_closed(access: Access, parameters: Sequence[Loop]) -> bool:
    """Return whether all numbers of an access follow from those of loops with known bounds."""
    bound: set[Hashable] = set()
    for each in (*parameters, *access.loops):
        ends = (*each.lower, *each.upper)
        if not each.lower or not each.upper or any(not end.variables() <= bound for end in ends):
            return False
        bound.add(each.variable)
    return all(first is not None and first.variables() <= bound for first, _ in access.box)


def _touched(
    access: Access, setting: Mapping[Hashable, int], common: int
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The indices of the common loops, and an element that the access touches then."""
    for values in _iterations(access.loops, setting):
        index = tuple(values[each.variable] for each in access.loops[:common])
        for element in _elements(access, values):
            yield index, element


def _iterations(loops: tuple[Loop, ...], outer: Mapping[Hashable, int]) -> Iterator[dict[Hashable, int]]:
    """The values of all variables, in the order of the loops."""
    if not loops:
        yield dict(outer)
        return
    for value in loops[0].values(outer):
        yield from _iterations(loops[1:], {**outer, loops[0].variable: value})


def _elements(access: Access, values: Mapping[Hashable, int]) -> Iterator[tuple[int, ...]]:
    """The elements that an access touches in one iteration."""
    corner = [(first.value(values), extent) for first, extent in access.box if first is not None]
    return product(*(range(first, first + extent) for first, extent in corner))


# --- inequalities ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Side:
    """The name of a variable, or of a division, of one of the two accesses."""

    name: Hashable
    is_sink: bool


@dataclass(frozen=True)
class _Delta:
    """The distance in a common loop, in steps."""

    level: int


class _System:
    """The inequalities of two accesses, over the indices of the source, the distances, and the sink's other indices.

    A loop with a constant lower bound counts its iterations from 0: then the step is a factor, which the test of the
    greatest common divisor sees.
    """

    def __init__(self, source: Access, sink: Access, parameters: Sequence[Loop], common: int) -> None:
        self.source, self.sink, self.common = source, sink, common
        self.steps: list[int] = []
        self.intervals: dict[Hashable, Interval] = {}
        self.numbered: dict[Hashable, Linear] = {}
        self.inequalities: list[tuple[Linear, Interval]] = []
        for each in parameters:
            self.numbered[_Side(each.variable, False)] = self.numbered[_Side(each.variable, True)] = Linear.of(
                each.variable
            )
            self.intervals[each.variable] = self._interval(each, False)
        for level, each in enumerate(source.loops):
            counted = self._count(each, False)
            if level < common:
                self.steps.append(each.step if counted else 1)
        for level, each in enumerate(sink.loops):
            if level >= common:
                self._count(each, True)
                continue
            low, high = self.intervals[_Side(each.variable, False)]
            self.intervals[_Delta(level)] = (low - high, high - low) if low <= high else (1, 0)
            self.numbered[_Side(each.variable, True)] = self.numbered[_Side(each.variable, False)] + (
                Linear.of(_Delta(level)) * self.steps[level]
            )
            self._bound(each, True)

    def _bound(self, loop: Loop, is_sink: bool) -> None:
        """Enter that an index lies between the bounds of its loop."""
        index = self._numbered(Linear.of(loop.variable), is_sink)
        for each in loop.lower:
            self.inequalities.append((index - self._numbered(each, is_sink), (0, inf)))
        for each in loop.upper:
            self.inequalities.append((self._numbered(each, is_sink) - index, (1, inf)))

    def _count(self, loop: Loop, is_sink: bool) -> bool:
        """Enter a loop of one side; whether its iterations are counted from 0."""
        low, high = self._interval(loop, is_sink)
        key = _Side(loop.variable, is_sink)
        counted = len(loop.lower) == 1 and not loop.lower[0].factors
        if counted:
            self.numbered[key] = Linear.of(key) * loop.step + loop.lower[0].constant
            self.intervals[key] = (0, quotient(high - low, loop.step))
        else:
            self.numbered[key] = Linear.of(key)
            self.intervals[key] = (low, high)
        if any(each.factors for each in (*loop.lower, *loop.upper)):
            self._bound(loop, is_sink)
        return counted

    def _interval(self, loop: Loop, is_sink: bool) -> Interval:
        lows = [self._numbered(each, is_sink).interval(self.intervals)[0] for each in loop.lower]
        highs = [self._numbered(each, is_sink).interval(self.intervals)[1] - 1 for each in loop.upper]
        return max(lows, default=-inf), min(highs, default=inf)

    def _numbered(self, expression: Linear, is_sink: bool) -> Linear:
        """An expression of one side over the variables of the system."""

        def new(variable: Hashable) -> Linear:
            # What no loop binds is one and the same unknown on both sides.
            return self.numbered.get(_Side(variable, is_sink), Linear.of(variable))

        return expression.replaced(new)

    def distances(self) -> Iterator[Distance]:
        """The intervals of the distances for each direction that cannot be refuted."""
        inequalities = self.inequalities
        for (first, extent), (other, other_extent) in zip(self.source.box, self.sink.box, strict=True):
            if first is not None and other is not None:
                difference = self._numbered(other, True) - self._numbered(first, False)
                inequalities.append((difference, (1 - other_extent, extent - 1)))
        yield from self._refine(inequalities, dict(self.intervals), 0)

    def _refine(
        self, inequalities: list[tuple[Linear, Interval]], intervals: dict[Hashable, Interval], level: int
    ) -> Iterator[Distance]:
        if not _satisfiable(inequalities, intervals):
            return
        if level == self.common:
            yield tuple(scaled(intervals.get(_Delta(each), (0, 0)), self.steps[each]) for each in range(self.common))
            return
        low, high = intervals[_Delta(level)]
        for part in ((low, min(high, -1)), (0, 0), (max(low, 1), high)):
            if part[0] > part[1] or part[0] > high or part[1] < low:
                continue
            refined, given = dict(intervals), inequalities
            refined[_Delta(level)] = part
            if part == (0, 0):
                # Divisions of both sides over the same numbers become one variable, and cancel.
                given = [(each.replaced(_without(_Delta(level))), limits) for each, limits in inequalities]
            yield from self._refine(given, refined, level + 1)


def _without(zero: _Delta) -> Callable[[Hashable], Linear]:
    return lambda variable: Linear(0) if variable == zero else Linear.of(variable)


def _satisfiable(inequalities: list[tuple[Linear, Interval]], intervals: dict[Hashable, Interval]) -> bool:
    """Return whether the tests refute no inequality; what they show of the variables is entered in `intervals`."""
    if any(low > high for low, high in intervals.values()):
        return False
    inequalities = _merged(inequalities)
    for _ in range(_ROUNDS):
        changed = False
        for expression, limits in inequalities:
            low, high = expression.interval(intervals)
            if low > limits[1] or high < limits[0] or not _has_integers(expression, limits, intervals):
                return False
            for variable, factor in expression.factors:
                # The variable times its factor is the limits less all the rest.
                others = replace(expression, factors=tuple(each for each in expression.factors if each[0] != variable))
                least, most = others.interval(intervals)
                new = _divided((limits[0] - most, limits[1] - least), factor)
                old = interval_of(variable, intervals)
                tight = max(old[0], new[0]), min(old[1], new[1])
                if tight[0] > tight[1]:
                    return False
                if tight != old:
                    intervals[variable] = tight
                    changed = True
        if not changed:
            break
    return True


def _merged(inequalities: list[tuple[Linear, Interval]]) -> list[tuple[Linear, Interval]]:
    """The inequalities with all limits of one combination of variables together: `i - j` and `j - i` are one."""
    merged: dict[frozenset[tuple[Hashable, int]], tuple[Linear, Interval]] = {}
    for expression, (low, high) in inequalities:
        terms, mirrored = frozenset(expression.factors), frozenset((expression * -1).factors)
        low, high = low - expression.constant, high - expression.constant
        if mirrored in merged:
            terms, low, high = mirrored, -high, -low
        kept, (least, most) = merged.get(terms, (Linear(0, expression.factors), UNBOUNDED))
        merged[terms] = kept, (max(low, least), min(high, most))
    return list(merged.values())


def _has_integers(expression: Linear, limits: Interval, intervals: Mapping[Hashable, Interval]) -> bool:
    """The test of the greatest common divisor: whether a number between the limits has the right remainder."""
    if isinf(limits[0]) or isinf(limits[1]):
        return True
    divisor, constant = 0, expression.constant
    for variable, factor in expression.factors:
        low, high = interval_of(variable, intervals)
        if low == high and not isinf(low):
            constant += int(low) * factor
        else:
            divisor = gcd(divisor, factor)
    low, high = int(limits[0]) - constant, int(limits[1]) - constant
    return low <= 0 <= high if divisor == 0 else -(-low // divisor) * divisor <= high


def _divided(interval: Interval, factor: int) -> Interval:
    """The integers that times a number are in an interval."""
    low, high = interval if factor > 0 else (-interval[1], -interval[0])
    divisor = abs(factor)
    return -quotient(-low, divisor), quotient(high, divisor)
