"""The pieces of a dimension along which digits of its position are linear: loops over them, and what holds in each.

A piece ends where a quotient changes or a remainder begins anew, and before a number leaves its type. So addresses are
exact in every piece, and a comparison of digits holds in it for positions that follow one another: a mask leaves one
interval of it. Where pieces end does not depend on masks: those of a window are the same at all of its places. What is
emitted computes each digit once for a piece, by the operations of the kernel.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from xdsl.dialects import arith as upstream
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.analysis.integers.polynomials import Polynomial
from tlx_xdsl.analysis.structure.digits import Comparison, Digit, slope
from tlx_xdsl.analysis.structure.values import Opaque, Wrapped, computed
from tlx_xdsl.dialects import arith

from .emitter import Emitter, Index

_FAR = 1 << 62
"""What digits of 64 bits that a mask compares stay below."""
_PREDICATES = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}


@dataclass
class Point:
    """The place that loops have reached: positions, and sizes of boxes."""

    positions: list[Index]
    sizes: list[Index]
    offset: Index
    strides: list[Index]


def element(term: Opaque, point: Point, emit: Emitter) -> SSAValue:
    """The element of an opaque term at a place."""
    return emit.element(term.value, [0 if dim is None else point.positions[dim] for dim in term.dims])


@dataclass
class Cut:
    """A dimension that is cut into pieces."""

    dim: int
    terms: Sequence[tuple[Digit | Wrapped, Index]]
    """Of the address, with their factors."""
    comparisons: Sequence[Comparison]
    """Those of the mask that vary along this dimension, and else along visited ones."""
    keep_last: bool = False
    """True to leave the last position of each piece, in which all addresses are the same."""

    def prepare(self, emit: Emitter, at: Operation) -> None:
        """Emit the scalars that the pieces ask for, outside of the loop over them."""
        for term, _ in self.terms:
            _prepare(term, emit, at)
        for each in self.comparisons:
            forms = [each.base, each.limit, *(stride for _, stride in each.strides)]
            for form in (*forms, *(factor for _, factor in each.terms)):
                emit.scalars.emit(form, each.bits, for_=at)
            for term, _ in each.terms:
                _prepare(term, emit, at)

    @contextmanager
    def pieces(self, point: Point, emit: Emitter, at: Operation) -> Generator[None]:
        """Do what is emitted for each piece, with the place there."""
        first, count = point.positions[self.dim], point.sizes[self.dim]
        if count == 1:
            _, inside = self._piece(first, 1, point, emit, at)
            with emit.when(inside):
                yield
            return
        end = emit.plus(first, count)
        with emit.chunks(first, end) as (position, length):
            left, inside = self._piece(position, emit.minus(end, position), point, emit, at)
            length.append(left)
            with emit.when(inside):
                yield

    def _piece(
        self, position: Index, left: Index, point: Point, emit: Emitter, at: Operation
    ) -> tuple[Index, SSAValue | None]:
        """Move to the piece at a position; gives its length, and the condition on which it has any elements."""
        digits = Digits(emit, at, self.dim, position)
        is_one = left == 1
        for term, factor in self.terms:
            begin: Index = emit.as_index(digits.of(term).value, signed=term.signed)
            if slope(term) and not is_one:
                # At position p of the piece it is `begin + (p - position)`.
                begin = emit.minus(begin, position)
                point.strides[self.dim] = emit.plus(point.strides[self.dim], factor)
            point.offset = emit.plus(point.offset, emit.times(begin, factor))
        sides = [_Side.of(each, digits, point) for each in self.comparisons]
        inside: SSAValue | None = None
        for side in sides:
            if is_one or not side.slope:
                bit = side.holds(emit)
                inside = bit if inside is None else emit.value(upstream.AndIOp(inside, bit))
        first: Index = 0
        size: Index = 1
        if not is_one:
            compared = [term for each in self.comparisons for term, _ in each.terms if term.dim == self.dim]
            runs = [run for term in (*(each for each, _ in self.terms), *compared) if (run := digits.of(term).run)]
            left = _least(emit, [left, *dict.fromkeys(runs), *(end for side in sides for end in side.room(emit))])
            first, size = _interval(emit, [side.interval(emit) for side in sides if side.slope], left)
        # The sizes of boxes say which pieces have elements: so what reads them can do so without a branch.
        if inside is not None and not is_one:
            size = emit.value(arith.SelectOp(inside, emit.operand(size), emit.operand(0)))
            inside = None
        point.positions[self.dim], point.sizes[self.dim] = emit.plus(position, first), size
        if self.keep_last:
            last = emit.least(size, 1)
            point.positions[self.dim] = emit.minus(emit.plus(point.positions[self.dim], size), last)
            point.sizes[self.dim] = last
        return left, inside


def _prepare(term: Digit | Wrapped, emit: Emitter, at: Operation) -> None:
    of, start, divisor = _parts(term)
    emit.scalars.emit(start, term.bits, for_=at)
    emit.scalars.emit(divisor, term.bits, for_=at)
    if _is_signed(term):
        emit.scalars.emit(_absolute(divisor, term.bits), term.bits, for_=at)
    if of is not None:
        _prepare(of, emit, at)


def _parts(term: Digit | Wrapped) -> tuple[Digit | Wrapped | None, Polynomial, Polynomial]:
    if isinstance(term, Wrapped):
        return None, term.start, term.modulus
    return term.of, term.start, term.divisor


def _is_signed(term: Digit | Wrapped) -> bool:
    return term.signed if isinstance(term, Wrapped) else term.is_signed


def _absolute(divisor: Polynomial, bits: int) -> Polynomial:
    """Return what divides into the same pieces."""
    if (number := divisor.number) is not None:
        return Polynomial.constant(abs(number))
    return computed("max", [divisor, -divisor], bits)


def _least(emit: Emitter, numbers: Sequence[Index]) -> Index:
    """The smallest of several numbers; the next piece waits for it, so that it is found in few steps."""
    if len(numbers) == 1:
        return numbers[0]
    half = len(numbers) // 2
    return emit.least(_least(emit, numbers[:half]), _least(emit, numbers[half:]))


def _interval(emit: Emitter, bounds: Sequence[tuple[Index | None, Index | None]], length: Index) -> tuple[Index, Index]:
    """The first of so many positions that lies between all bounds, and how many do."""
    lows = list(dict.fromkeys(low for low, _ in bounds if low is not None))
    highs = list(dict.fromkeys(high for _, high in bounds if high is not None))
    first: Index = 0
    for low in lows:
        first = _greatest(emit, first, low)
    if lows:
        first = emit.least(first, length)
    end = _least(emit, [length, *highs])
    return first, _greatest(emit, emit.minus(end, first), 0) if highs else emit.minus(end, first)


def _greatest(emit: Emitter, left: Index, right: Index) -> Index:
    if isinstance(left, int) and isinstance(right, int):
        return max(left, right)
    return emit.value(upstream.MaxSIOp(emit.operand(left), emit.operand(right)))


# --- digits ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class At:
    """A number at a position."""

    value: SSAValue
    run: SSAValue | None
    """Positions from there on along which it stays, or grows by 1; None: all of them."""


@dataclass
class Digits:
    """The digits of a position, each computed once."""

    emit: Emitter
    at: Operation
    dim: int
    position: Index
    _dividends: dict[object, At] = field(default_factory=dict[object, At])
    _rests: dict[object, At] = field(default_factory=dict[object, At])
    _made: dict[Digit | Wrapped, At] = field(default_factory=dict["Digit | Wrapped", At])

    def of(self, term: Digit | Wrapped) -> At:
        """A digit."""
        if (found := self._made.get(term)) is None:
            found = self._made[term] = self._computed(term)
        return found

    def _computed(self, term: Digit | Wrapped) -> At:
        emit = self.emit
        _, _, form = _parts(term)
        dividend, rest = self._dividend(term), self._rest(term)
        if isinstance(term, Wrapped) or not term.is_quotient:
            return rest
        divisor = emit.scalars.emit(form, term.bits, for_=self.at)
        divide = upstream.DivSIOp if term.is_signed else upstream.DivUIOp
        return At(emit.value(divide(dividend.value, divisor)), rest.run)

    def _dividend(self, term: Digit | Wrapped) -> At:
        """Return what is divided; it grows as long as it does not leave its type."""
        emit, bits = self.emit, term.bits
        of, start, _ = _parts(term)
        key = (of, start, bits, _is_signed(term))
        if (known := self._dividends.get(key)) is not None:
            return known
        first, run = emit.scalars.emit(start, bits, for_=self.at), None
        if of is None:
            number = emit.operand(self.position)
            if bits < 64:
                number = emit.value(upstream.IndexCastOp(number, IntegerType(bits)))
        else:
            inner = self.of(of)
            number, run = inner.value, inner.run
            if of.bits < bits:
                number = emit.as_index(number, signed=of.signed)
        value = emit.value(upstream.AddiOp(first, number))
        if bits < 64 and (of is None or slope(of)):
            limit = 1 << (bits - 1 if _is_signed(term) else bits)
            run = _shorter(emit, run, emit.minus(limit, emit.as_index(value, signed=_is_signed(term))))
        found = self._dividends[key] = At(value, run)
        return found

    def _rest(self, term: Digit | Wrapped) -> At:
        """The remainder, and how far it goes on, which is as far as the quotient does."""
        emit, bits, signed = self.emit, term.bits, _is_signed(term)
        of, start, form = _parts(term)
        key = (of, start, form, bits, signed)
        if (known := self._rests.get(key)) is not None:
            return known
        dividend = self._dividend(term)
        divisor = emit.scalars.emit(form, bits, for_=self.at)
        rest = emit.value((upstream.RemSIOp if signed else upstream.RemUIOp)(dividend.value, divisor))
        run = dividend.run
        if of is None or slope(of):
            last = divisor
            if signed:
                # The remainder of a negative number is not positive, and 0 ends its run.
                size = emit.scalars.emit(_absolute(form, bits), bits, for_=self.at)
                number = emit.as_index(dividend.value)
                is_negative = emit.value(arith.CmpiOp("slt", number, emit.operand(0)))
                last = emit.value(arith.SelectOp(is_negative, emit.operand(1), emit.as_index(size)))
            length = emit.minus(emit.as_index(last, signed=signed), emit.as_index(rest, signed=signed))
            if not form.number or form.number < 0:
                # A divisor of 0 gives what it gives for each position.
                length = _greatest(emit, length, 1)
            run = _shorter(emit, run, length)
        found = self._rests[key] = At(rest, run)
        return found


def _shorter(emit: Emitter, run: SSAValue | None, length: Index) -> SSAValue:
    return emit.operand(length if run is None else emit.least(run, length))


# --- comparisons -----------------------------------------------------------------------------------------------------


@dataclass
class _Side:
    """The side of a comparison that varies, at the beginning of a piece."""

    comparison: Comparison
    value: SSAValue
    limit: SSAValue
    slope: int

    @staticmethod
    def of(comparison: Comparison, digits: Digits, point: Point) -> _Side:
        """Compute it by sums of the kernel's width; `point` gives the positions along visited dimensions."""
        emit, bits = digits.emit, comparison.bits

        def scalar(form: Polynomial) -> SSAValue:
            return emit.scalars.emit(form, bits, for_=digits.at)

        def narrow(value: SSAValue) -> SSAValue:
            return value if bits == 64 else emit.value(upstream.IndexCastOp(value, IntegerType(bits)))

        def times(value: SSAValue, factor: Polynomial) -> SSAValue:
            return value if factor.number == 1 else emit.value(upstream.MuliOp(value, scalar(factor)))

        parts = [scalar(comparison.base)] if comparison.base.terms else []
        for dim, stride in comparison.strides:
            position = digits.position if dim == digits.dim else point.positions[dim]
            parts.append(times(narrow(emit.operand(position)), stride))
        for term, factor in comparison.terms:
            if term.dim == digits.dim:
                number = digits.of(term).value
            elif isinstance(term, Digit):
                number = element(term, point, emit)
            else:
                number = Digits(emit, digits.at, term.dim, point.positions[term.dim]).of(term).value
            if term.bits < bits:
                number = emit.as_index(number, signed=term.signed)
            parts.append(times(number, factor))
        value = parts[0]
        for part in parts[1:]:
            value = emit.value(upstream.AddiOp(value, part))
        return _Side(comparison, value, scalar(comparison.limit), comparison.slopes.get(digits.dim, 0))

    def room(self, emit: Emitter) -> Generator[Index]:
        """Give the positions from the beginning on before the sum leaves its type, where it may."""
        bits = self.comparison.bits
        if not self.slope or bits == 64:
            return
        signed = self.comparison.is_signed
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        value = emit.as_index(self.value, signed=signed)
        room = emit.minus(high, value) if self.slope > 0 else emit.minus(value, low)
        if abs(self.slope) > 1:
            room = emit.value(upstream.DivUIOp(emit.operand(room), emit.operand(abs(self.slope))))
        yield emit.plus(room, 1)

    def holds(self, emit: Emitter) -> SSAValue:
        """Return whether it holds at the beginning."""
        sign = _PREDICATES[self.comparison.sign]
        prefix = "" if sign in ("eq", "ne") else "s" if self.comparison.is_signed else "u"
        return emit.value(arith.CmpiOp(prefix + sign, self.value, self.limit))

    def interval(self, emit: Emitter) -> tuple[Index | None, Index | None]:
        """The first position of the piece where it holds, and the one after the last, from the piece's beginning.

        None is the first or the last position of the piece. Others may lie outside of it.
        """
        signed, sign = self.comparison.is_signed, self.comparison.sign
        value, limit = (emit.as_index(each, signed=signed) for each in (self.value, self.limit))
        if self.comparison.bits == 64:
            # The difference stays inside of its type.
            limit = emit.operand(_greatest(emit, emit.least(limit, _FAR), -_FAR))
        if self.slope < 0:
            value, limit = limit, value
            sign = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(sign, sign)
        room = emit.minus(limit, value)
        if sign in ("<=", ">"):
            room = emit.plus(room, 1)
        step = abs(self.slope)
        if step > 1:
            room = emit.value(upstream.CeilDivSIOp(emit.operand(room), emit.operand(step)))
        match sign:
            case "<" | "<=":
                return None, room
            case ">" | ">=":
                return room, None
            case _:
                return room, emit.plus(room, 1)
