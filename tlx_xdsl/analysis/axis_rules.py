"""What each operation makes of the regularity of its operands (see `axis_info.py`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any, TypeAlias, cast

from xdsl.dialects import arith as upstream
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, IntegerType
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects import arith, tt, ttg
from tlx_xdsl.dialects.base.tensors import as_tensor, element_bits
from tlx_xdsl.dialects.tt.types import PointerType
from tlx_xdsl.layouts.encodings import Ints

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
        """What holds for both."""
        contiguity = _each(gcd, self.contiguity, other.contiguity)
        return AxisInfo(
            contiguity,
            tuple(gcd(self.first(d, c), other.first(d, c)) for d, c in enumerate(contiguity)),
            _each(gcd, self.constancy, other.constancy),
            self.value if self.value == other.value else None,
        )

    def first(self, axis: int, group: int, unit: int = 1) -> int:
        """What divides the first value of each `group` elements along `axis`, which differ by `unit`."""
        if group >= self.contiguity[axis]:
            return self.divisibility[axis]
        # The group begins inside of a contiguous one.
        return gcd(self.divisibility[axis], group * unit)

    def each(self, axis: int, unit: int = 1) -> int:
        """What divides each value along `axis`."""
        return self.first(axis, 1, unit)


Rule: TypeAlias = Callable[[Any, Sequence[AxisInfo]], AxisInfo]

RULES: dict[type[Operation], Rule] = {}
"""By the class of the operation; what is not here gives values of which nothing is known."""


def shape_of(value: SSAValue) -> Ints:
    """The axes of a value: those of a tensor, or one of a single element."""
    tensor = as_tensor(value.type)
    return (1,) if tensor is None else tuple(tensor.get_shape())


def unknown(value: SSAValue) -> AxisInfo:
    """Nothing is known about `value`."""
    ones = (1,) * len(shape_of(value))
    return AxisInfo(ones, ones, ones)


def _each(function: Callable[[int, int], int], left: Ints, right: Ints) -> Ints:
    return tuple(map(function, left, right))


def _power(number: int) -> int:
    """The largest power of two that divides `number`."""
    return MOST if number == 0 else number & -number


def _same(number: int, shape: Ints) -> AxisInfo:
    """All elements are `number`."""
    ones = (1,) * len(shape)
    return AxisInfo(ones, (_power(number),) * len(shape), tuple(map(_power, shape)), number)


def _rule(*classes: type[Operation]) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(classes, rule))
        return rule

    return register


def _pointee_bytes(value: SSAValue) -> int:
    tensor = as_tensor(value.type)
    pointer = value.type if tensor is None else tensor.element_type
    return max(1, element_bits(pointer.pointee) // 8) if isinstance(pointer, PointerType) else 1


# --- where regularity begins ----------------------------------------------------------------------------------------


@_rule(tt.MakeRangeOp)
def _make_range(op: tt.MakeRangeOp, _: Sequence[AxisInfo]) -> AxisInfo:
    return AxisInfo(tuple(map(_power, shape_of(op.result))), (_power(op.start.value.data),), (1,))


@_rule(upstream.ConstantOp)
def _constant(op: upstream.ConstantOp, _: Sequence[AxisInfo]) -> AxisInfo:
    match op.value:
        case IntegerAttr():
            return _same(op.value.value.data, (1,))
        case DenseIntOrFPElementsAttr() if op.value.is_splat() and isinstance(op.value.get_element_type(), IntegerType):
            return _same(int(cast(int, op.value.get_values()[0])), shape_of(op.result))
        case _:
            return unknown(op.result)


# --- shapes ---------------------------------------------------------------------------------------------------------


@_rule(tt.SplatOp)
def _splat(op: tt.SplatOp, infos: Sequence[AxisInfo]) -> AxisInfo:
    shape, (source,) = shape_of(op.result), infos
    return AxisInfo((1,) * len(shape), source.divisibility * len(shape), tuple(map(_power, shape)), source.value)


@_rule(tt.ExpandDimsOp)
def _expand_dims(op: tt.ExpandDimsOp, infos: Sequence[AxisInfo]) -> AxisInfo:
    (source,), axis, unit = infos, op.axis.value.data, _pointee_bytes(op.result)
    # Along the new axis each element is a group of its own, wherever it lies along the others.
    each = gcd(*(source.each(d, unit) for d in range(len(source.contiguity))))

    def insert(numbers: Ints, number: int) -> Ints:
        return (*numbers[:axis], number, *numbers[axis:])

    return AxisInfo(
        insert(source.contiguity, 1), insert(source.divisibility, each), insert(source.constancy, 1), source.value
    )


@_rule(tt.BroadcastOp)
def _broadcast(op: tt.BroadcastOp, infos: Sequence[AxisInfo]) -> AxisInfo:
    (source,), before, after = infos, shape_of(op.src), shape_of(op.result)
    constancy = tuple(
        _power(new) if old != new else known for old, new, known in zip(before, after, source.constancy, strict=True)
    )
    return AxisInfo(source.contiguity, source.divisibility, constancy, source.value)


@_rule(tt.TransOp)
def _trans(op: tt.TransOp, infos: Sequence[AxisInfo]) -> AxisInfo:
    (source,), order = infos, [int(dim) for dim in op.order.get_values()]

    def permuted(numbers: Ints) -> Ints:
        return tuple(numbers[dim] for dim in order)

    return AxisInfo(
        permuted(source.contiguity), permuted(source.divisibility), permuted(source.constancy), source.value
    )


@_rule(
    arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp, upstream.ExtSIOp, upstream.ExtUIOp, upstream.TruncIOp,
    tt.BitcastOp, ttg.ConvertLayoutOp,
)  # fmt: skip
def _unchanged(op: Operation, infos: Sequence[AxisInfo]) -> AxisInfo:
    # Of a pointer that is cast, contiguity counts elements of another size.
    if _pointee_bytes(op.operands[0]) != _pointee_bytes(op.results[0]):
        source = infos[0]
        each = tuple(source.each(d, _pointee_bytes(op.operands[0])) for d in range(len(source.contiguity)))
        return AxisInfo((1,) * len(each), each, source.constancy)
    return infos[0]


# --- arithmetic -----------------------------------------------------------------------------------------------------


def _sum(op: Operation, left: AxisInfo, right: AxisInfo, *, unit: int, negative: bool) -> AxisInfo:
    """`left + right`, or with `negative` their difference; `right` counts units of `unit` bytes of `left`."""
    rank = len(left.contiguity)
    contiguity = tuple(
        max(
            gcd(left.contiguity[d], right.constancy[d]),
            1 if negative else gcd(left.constancy[d], right.contiguity[d]),
        )
        for d in range(rank)
    )
    divisibility = tuple(gcd(left.first(d, c, unit), right.first(d, c) * unit) for d, c in enumerate(contiguity))
    value = None
    if left.value is not None and right.value is not None and not isinstance(op, tt.AddPtrOp):
        value = left.value - right.value if negative else left.value + right.value
    return AxisInfo(contiguity, divisibility, _each(gcd, left.constancy, right.constancy), value)


@_rule(upstream.AddiOp)
def _addi(op: upstream.AddiOp, infos: Sequence[AxisInfo]) -> AxisInfo:
    return _sum(op, *infos, unit=1, negative=False)


@_rule(upstream.SubiOp)
def _subi(op: upstream.SubiOp, infos: Sequence[AxisInfo]) -> AxisInfo:
    return _sum(op, *infos, unit=1, negative=True)


@_rule(tt.AddPtrOp)
def _addptr(op: tt.AddPtrOp, infos: Sequence[AxisInfo]) -> AxisInfo:
    return _sum(op, *infos, unit=_pointee_bytes(op.ptr), negative=False)


def _product(left: AxisInfo, right: AxisInfo) -> AxisInfo:
    for info, other in ((left, right), (right, left)):
        if other.value == 1:
            return info
    rank = len(left.contiguity)
    value = left.value * right.value if left.value is not None and right.value is not None else None
    divisibility = tuple(min(MOST, left.each(d) * right.each(d)) for d in range(rank))
    return AxisInfo((1,) * rank, divisibility, _each(gcd, left.constancy, right.constancy), value)


@_rule(upstream.MuliOp)
def _muli(_: upstream.MuliOp, infos: Sequence[AxisInfo]) -> AxisInfo:
    return _product(*infos)


@_rule(upstream.ShLIOp)
def _shli(op: upstream.ShLIOp, infos: Sequence[AxisInfo]) -> AxisInfo:
    left, right = infos
    if right.value is None or not 0 <= right.value < 62:
        return _loose(op, infos)
    return _product(left, _same(1 << right.value, shape_of(op.result)))


def _quotient(op: Operation, left: AxisInfo, divisor: int | None, right: AxisInfo) -> AxisInfo:
    if divisor is None or divisor <= 0:
        return _loose(op, (left, right))
    if divisor == 1:
        return left
    # Counting up from a multiple of k, the quotient by k stays for k elements.
    constancy = tuple(
        max(gcd(c, d, _power(divisor)) if divisor == _power(divisor) else 1, k)
        for c, d, k in zip(left.contiguity, left.divisibility, left.constancy, strict=True)
    )
    rank = len(left.contiguity)
    each = [left.each(d) for d in range(rank)]
    divisibility = tuple(number // divisor if divisor == _power(divisor) <= number else 1 for number in each)
    value = None if left.value is None or left.value < 0 else left.value // divisor
    return AxisInfo((1,) * rank, divisibility, constancy, value)


@_rule(upstream.DivSIOp, upstream.DivUIOp)
def _divide(op: Operation, infos: Sequence[AxisInfo]) -> AxisInfo:
    left, right = infos
    return _quotient(op, left, right.value, right)


@_rule(upstream.ShRSIOp, upstream.ShRUIOp)
def _shift_right(op: Operation, infos: Sequence[AxisInfo]) -> AxisInfo:
    left, right = infos
    divisor = 1 << right.value if right.value is not None and 0 <= right.value < 62 else None
    return _quotient(op, left, divisor, right)


@_rule(upstream.RemSIOp, upstream.RemUIOp)
def _remainder(_: Operation, infos: Sequence[AxisInfo]) -> AxisInfo:
    left, right = infos
    rank = len(left.contiguity)
    # Counting up from a multiple of a divisor of k, the remainder by k counts up as well, until the next multiple.
    contiguity = tuple(
        gcd(left.contiguity[d], left.divisibility[d], right.each(d), right.constancy[d]) for d in range(rank)
    )
    divisibility = tuple(gcd(left.first(d, c), right.each(d)) for d, c in enumerate(contiguity))
    return AxisInfo(contiguity, divisibility, _each(gcd, left.constancy, right.constancy))


# --- masks and choices ----------------------------------------------------------------------------------------------


@_rule(arith.CmpiOp)
def _compare(op: arith.CmpiOp, infos: Sequence[AxisInfo]) -> AxisInfo:
    left, right = infos
    constancy = _each(gcd, left.constancy, right.constancy)
    # Counting up from a multiple of k, a bound that is a multiple of k is not crossed inside of k elements.
    if (predicate := op.predicate_name[1:]) in ("lt", "ge"):
        constancy = _each(max, constancy, _below(left, right))
    elif predicate in ("gt", "le"):
        constancy = _each(max, constancy, _below(right, left))
    ones = (1,) * len(constancy)
    return AxisInfo(ones, ones, constancy)


def _below(counting: AxisInfo, bound: AxisInfo) -> Ints:
    """In groups of how many elements `counting < bound` is the same."""
    return tuple(
        gcd(c, counting.divisibility[d], bound.each(d), bound.constancy[d]) for d, c in enumerate(counting.contiguity)
    )


def _loose(op: Operation, infos: Sequence[AxisInfo]) -> AxisInfo:
    """Equal operands give equal results; of more nothing is known."""
    ones = (1,) * len(shape_of(op.results[0]))
    constancy = infos[0].constancy
    for info in infos[1:]:
        constancy = _each(gcd, constancy, info.constancy)
    return AxisInfo(ones, ones, constancy)


_rule(upstream.XOrIOp, upstream.OrIOp, tt.LoadOp, tt.MulhiUIOp)(_loose)


@_rule(upstream.AndIOp)
def _and(op: upstream.AndIOp, infos: Sequence[AxisInfo]) -> AxisInfo:
    result, (left, right) = _loose(op, infos), infos
    # A low bit that is zero on one side is zero in the result.
    divisibility = tuple(max(left.each(d), right.each(d)) for d in range(len(left.contiguity)))
    return AxisInfo(result.contiguity, divisibility, result.constancy)


@_rule(upstream.MinSIOp, upstream.MaxSIOp, upstream.MinUIOp, upstream.MaxUIOp)
def _extreme(op: Operation, infos: Sequence[AxisInfo]) -> AxisInfo:
    result, (left, right) = _loose(op, infos), infos
    divisibility = tuple(gcd(left.each(d), right.each(d)) for d in range(len(left.contiguity)))
    return AxisInfo(result.contiguity, divisibility, result.constancy)


@_rule(arith.SelectOp, upstream.SelectOp)
def _select(op: arith.SelectOp, infos: Sequence[AxisInfo]) -> AxisInfo:
    condition, chosen, other = infos
    both = chosen.meet(other)
    if as_tensor(op.condition.type) is None:
        return both
    contiguity = _each(gcd, both.contiguity, condition.constancy)
    divisibility = tuple(gcd(chosen.first(d, c), other.first(d, c)) for d, c in enumerate(contiguity))
    return AxisInfo(contiguity, divisibility, _each(gcd, both.constancy, condition.constancy), both.value)
