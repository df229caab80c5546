"""The domain of regularity along each axis: contiguity, divisibility and constancy (see `analysis/axis_info.py`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import gcd

from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects import arith, tt
from tlx_xdsl.layouts.encodings import Ints

from .transfer import Domain, bits_of, pointee_bytes, shape_of

MOST = 1 << 62
"""The divisibility of zero."""


@dataclass(frozen=True)
class AxisInfo:
    """Contiguity, divisibility and constancy along each axis; all are powers of two."""

    contiguity: Ints
    divisibility: Ints
    constancy: Ints
    value: int | None = None
    """The number that all elements are, if that is known."""

    def meet(self, other: AxisInfo) -> AxisInfo:
        """The facts that hold for both."""
        contiguity = _each(gcd, self.contiguity, other.contiguity)
        return AxisInfo(
            contiguity,
            tuple(gcd(self.first(d, c), other.first(d, c)) for d, c in enumerate(contiguity)),
            _each(gcd, self.constancy, other.constancy),
            self.value if self.value == other.value else None,
        )

    def first(self, axis: int, group: int, unit: int = 1) -> int:
        """A divisor of the first value of each `group` elements along `axis`, which differ by `unit`."""
        if group >= self.contiguity[axis]:
            return self.divisibility[axis]
        # The group begins inside of a contiguous one.
        return gcd(self.divisibility[axis], group * unit)

    def each(self, unit: int = 1) -> Ints:
        """A divisor of every value, along each axis."""
        return tuple(self.first(axis, 1, unit) for axis in range(len(self.contiguity)))


def axes_of(value: SSAValue) -> Ints:
    """The axes of a value: those of a tensor, or one of a single element."""
    return shape_of(value) or (1,)


def unknown(value: SSAValue) -> AxisInfo:
    """Claim no facts about `value`."""
    ones = (1,) * len(axes_of(value))
    return AxisInfo(ones, ones, ones)


def _each(function: Callable[[int, int], int], left: Ints, right: Ints) -> Ints:
    return tuple(map(function, left, right))


def _power(number: int) -> int:
    """The largest power of two that divides `number`."""
    return MOST if number == 0 else number & -number


def _all(number: int, shape: Ints) -> AxisInfo:
    """All elements are `number`."""
    ones = (1,) * len(shape)
    return AxisInfo(ones, (_power(number),) * len(shape), tuple(map(_power, shape)), number)


class AxisDomain(Domain[AxisInfo]):
    """Transfer functions that take indices as not negative: layouts are chosen by these facts, results are not."""

    def constant(self, op: Operation, numbers: Sequence[int], bits: int) -> AxisInfo | None:
        """One number is the same along all axes."""
        return _all(numbers[0], axes_of(op.results[0])) if len(numbers) == 1 else None

    def make_range(self, op: tt.MakeRangeOp, start: int, end: int) -> AxisInfo:
        """One contiguous group."""
        return AxisInfo((_power(end - start),), (_power(start),), (1,))

    def rearrange(self, op: Operation, value: AxisInfo, sources: Sequence[int | None]) -> AxisInfo:
        """Rearrange the axes: along a new one each element is a group of its own, wherever it lies along the others."""
        before, each = axes_of(op.operands[0]), gcd(*value.each(pointee_bytes(op.results[0])))
        found = [
            (1, each, _power(extent))
            if source is None
            else (
                value.contiguity[source],
                value.divisibility[source],
                value.constancy[source] if before[source] == extent else _power(extent),
            )
            for source, extent in zip(sources or (None,), axes_of(op.results[0]), strict=True)
        ]
        contiguity, divisibility, constancy = zip(*found, strict=True)
        return AxisInfo(contiguity, divisibility, constancy, value.value)

    def extend(self, op: Operation, value: AxisInfo, *, signed: bool) -> AxisInfo:
        """Indices are the same number in any width; as a signed number, the bit 1 is -1."""
        return replace(value, value=-1) if signed and value.value and bits_of(op.operands[0]) == 1 else value

    def truncate(self, op: Operation, value: AxisInfo) -> AxisInfo:
        """Indices are the same number in any width."""
        return value

    def bitcast(self, op: tt.BitcastOp, value: AxisInfo) -> AxisInfo:
        """Recount a pointer's contiguity in elements, which may now have another size."""
        if (unit := pointee_bytes(op.src)) == pointee_bytes(op.result):
            return value
        return AxisInfo((1,) * len(value.contiguity), value.each(unit), value.constancy)

    def add_pointer(self, op: tt.AddPtrOp, pointer: AxisInfo, offset: AxisInfo) -> AxisInfo:
        """A sum that counts bytes."""
        return _sum(pointer, offset, unit=pointee_bytes(op.ptr))

    def binary(self, op: Operation, function: str, left: AxisInfo, right: AxisInfo, *, signed: bool) -> AxisInfo:
        """Compute a binary function; if `right` is one number, shifts are products and quotients."""
        by = right.value
        power = 1 << by if by is not None and 0 <= by < 62 else None
        match function:
            case "add":
                value = None if left.value is None or by is None else left.value + by
                return _sum(left, right, value=value)
            case "sub":
                value = None if left.value is None or by is None else left.value - by
                return _sum(left, right, value=value, negative=True)
            case "mul":
                return _product(left, right)
            case "shl" if power is not None:
                return _product(left, _all(power, axes_of(op.results[0])))
            case "shr" if power is not None:
                return _quotient(left, power)
            case "truncdiv" | "floordiv" if by is not None and by > 0:
                return _quotient(left, by)
            case "truncmod" | "mod":
                return _remainder(left, right)
            case _:
                loose = self.elementwise(op, (left, right))
                # A low bit that is zero on one side of an `and` is zero in the result.
                common = {"and": max, "min": gcd, "max": gcd}.get(function)
                divisibility = loose.divisibility if common is None else _each(common, left.each(), right.each())
                return AxisInfo(loose.contiguity, divisibility, loose.constancy)

    def compare(self, op: Operation, sign: str, left: AxisInfo, right: AxisInfo, *, signed: bool) -> AxisInfo:
        """Counting up from a multiple of k, a bound that is a multiple of k is not crossed inside of k elements."""
        loose = self.elementwise(op, (left, right))
        if sign in ("==", "!="):
            return loose
        counting, bound = (left, right) if sign in ("<", ">=") else (right, left)
        groups = map(gcd, counting.contiguity, counting.divisibility, bound.each(), bound.constancy)
        return AxisInfo(loose.contiguity, loose.divisibility, tuple(map(max, loose.constancy, groups)))

    def select(self, op: arith.SelectOp, condition: AxisInfo, left: AxisInfo, right: AxisInfo) -> AxisInfo:
        """Groups in which the condition is the same are those of one side."""
        both = left.meet(right)
        if not shape_of(op.condition):
            return both
        contiguity = _each(gcd, both.contiguity, condition.constancy)
        divisibility = tuple(gcd(left.first(d, c), right.first(d, c)) for d, c in enumerate(contiguity))
        return AxisInfo(contiguity, divisibility, _each(gcd, both.constancy, condition.constancy), both.value)

    def elementwise(self, op: Operation, operands: Sequence[AxisInfo]) -> AxisInfo:
        """Equal operands give equal results; of more nothing is known."""
        ones = (1,) * len(axes_of(op.results[0]))
        return AxisInfo(ones, ones, tuple(map(gcd, *(operand.constancy for operand in operands))))


def _sum(
    left: AxisInfo, right: AxisInfo, *, unit: int = 1, value: int | None = None, negative: bool = False
) -> AxisInfo:
    """`left + right`, or with `negative` their difference; `right` counts units of `unit` bytes of `left`."""
    contiguity = _each(gcd, left.contiguity, right.constancy)
    if not negative:
        contiguity = _each(max, contiguity, _each(gcd, left.constancy, right.contiguity))
    divisibility = tuple(gcd(left.first(d, c, unit), right.first(d, c) * unit) for d, c in enumerate(contiguity))
    return AxisInfo(contiguity, divisibility, _each(gcd, left.constancy, right.constancy), value)


def _product(left: AxisInfo, right: AxisInfo) -> AxisInfo:
    for info, other in ((left, right), (right, left)):
        if other.value == 1:
            return info
    value = left.value * right.value if left.value is not None and right.value is not None else None
    divisibility = tuple(min(MOST, a * b) for a, b in zip(left.each(), right.each(), strict=True))
    return AxisInfo((1,) * len(divisibility), divisibility, _each(gcd, left.constancy, right.constancy), value)


def _quotient(left: AxisInfo, divisor: int) -> AxisInfo:
    if divisor == 1:
        return left
    # Counting up from a multiple of k, the quotient by k stays for k elements.
    power = divisor if divisor == _power(divisor) else 1
    groups = map(gcd, left.contiguity, left.divisibility, (power,) * len(left.contiguity))
    divisibility = tuple(number // divisor if power <= number and power == divisor else 1 for number in left.each())
    value = None if left.value is None or left.value < 0 else left.value // divisor
    return AxisInfo((1,) * len(divisibility), divisibility, tuple(map(max, groups, left.constancy)), value)


def _remainder(left: AxisInfo, right: AxisInfo) -> AxisInfo:
    # Counting up from a multiple of a divisor of k, the remainder by k counts up as well, until the next multiple.
    each = right.each()
    contiguity = tuple(map(gcd, left.contiguity, left.divisibility, each, right.constancy))
    divisibility = tuple(gcd(left.first(d, c), each[d]) for d, c in enumerate(contiguity))
    return AxisInfo(contiguity, divisibility, _each(gcd, left.constancy, right.constancy))
