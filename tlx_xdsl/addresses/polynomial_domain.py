"""The domain of polynomials in program ids, arguments, positions and loop counters: its transfer functions.

Sums, differences and products of wrapped numbers are right modulo 2^bits, whether their operands wrapped or not. What
asks for the number itself (a quotient, a comparison, a wider type) needs it exact: `Arithmetic.whole`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from xdsl.ir import Operation, SSAValue

from tlx_xdsl.analysis.integers.polynomials import Lane, NumPrograms, Pid, Polynomial, Symbol, Unknown
from tlx_xdsl.analysis.integers.symbols import Causes
from tlx_xdsl.analysis.integers.transfer import Domain, bits_of, pointee_bytes, shape_of
from tlx_xdsl.dialects import arith, tt

from .arithmetic import Arithmetic, name_of
from .bounds import range_of_call
from .intervals import Interval
from .model import Guard
from .values import Descriptor, Integer, Other, Pointer, State

ONE = Polynomial.constant(1)
BIT = Interval(0, 1)
_ROUNDED_DOWN = {"truncdiv": "floordiv", "truncmod": "mod"}
MOST_PRODUCTS = 256
"""Products of terms above which two polynomials are not multiplied."""


class PolynomialDomain(Arithmetic, Domain[State]):
    """Transfer functions that give None where only what the result may depend on is known."""

    def constant(self, op: Operation, numbers: Sequence[int], bits: int) -> State | None:
        """One number for all elements."""
        return self.number(numbers[0], bits) if len(numbers) == 1 else None

    def program_id(self, op: tt.GetProgramIdOp) -> State:
        """A symbol."""
        return self.symbol(Pid(op.axis.value.data), 32)

    def num_programs(self, op: tt.GetNumProgramsOp) -> State:
        """A symbol, or the number of the launch."""
        symbol = NumPrograms(op.axis.value.data)
        number = self.bounds.of(symbol).number
        return self.symbol(symbol, 32) if number is None else self.number(number, 32)

    def make_range(self, op: tt.MakeRangeOp, start: int, end: int) -> State:
        """The position and a constant."""
        form = _lane(0, end - start) + start
        return Integer(form, self.bounds.of_form(form), True, 32)

    # Arithmetic ----------------------------------------------------------------------------------------------------

    def binary(self, op: Operation, function: str, left: State, right: State, *, signed: bool) -> State | None:
        """A polynomial of those of the operands, or a call of the function."""
        if not isinstance(left, Integer) or not isinstance(right, Integer):
            return None
        match function:
            case "add":
                return self._made(op, left.form + right.form, left.range + right.range, left, right)
            case "sub":
                return self._made(op, left.form - right.form, left.range - right.range, left, right)
            case "mul" if len(left.form.terms) * len(right.form.terms) <= MOST_PRODUCTS:
                return self._made(op, left.form * right.form, left.range * right.range, left, right)
            case "shl" | "shr":
                return self._shifted(op, function, left, right, signed=signed)
            case "floordiv" | "truncdiv" | "mod" | "truncmod":
                return self._divided(op, function, left, right, signed=signed)
            case "and" | "or" | "xor":
                return self._bitwise(op, function, left, right)
            case "min" | "max":
                return self._call(op, function, self._read(left, signed=signed), self._read(right, signed=signed))
            case _:
                return None

    def _read(self, value: Integer, *, signed: bool) -> Integer | None:
        """The number itself, as `whole` or `natural` give it."""
        return self.whole(value) if signed else self.natural(value)

    def _made(self, op: Operation, form: Polynomial, interval: Interval, *operands: Integer) -> Integer:
        exact = all(operand.exact for operand in operands)
        return self.made(op.results[0], form, interval, exact=exact, operands=operands)

    def _call(self, op: Operation, function: str, left: Integer | None, right: Integer | None) -> Integer | None:
        if left is None or right is None:
            return None
        form = self.simplifier.call(function, (left.form, right.form))
        return self._made(op, form, range_of_call(function, [left.range, right.range]), left, right)

    def _shifted(self, op: Operation, function: str, left: Integer, right: Integer, *, signed: bool) -> Integer | None:
        by = right.form.number
        if by is None or not 0 <= by < left.bits or not right.exact:
            return None
        power = replace(right, form=Polynomial.constant(1 << by), range=Interval.point(1 << by))
        if function == "shr":
            return self._call(op, "floordiv", self._read(left, signed=signed), power)
        return self._made(op, left.form * power.form, left.range * power.range, left, power)

    def _divided(self, op: Operation, function: str, left: Integer, right: Integer, *, signed: bool) -> Integer | None:
        divisor, natural = self.at_least(1, right), self.natural(left)
        if natural is not None:
            # Rounded down or towards zero, it is the same.
            return self._call(op, _ROUNDED_DOWN.get(function, function), natural, divisor)
        return self._call(op, function, self.whole(left), divisor) if signed else None

    def _bitwise(self, op: Operation, function: str, left: Integer, right: Integer) -> Integer | None:
        for value, other in ((left, right), (right, left)):
            if (made := self._with_bits(op, function, value, other)) is not None:
                return made
        return self._call(op, function, self.whole(left), self.whole(right))

    def _with_bits(self, op: Operation, function: str, value: Integer, other: Integer) -> Integer | None:
        """The polynomial of bits where there is one: of single bits, and where `other` is a mask, or far above."""
        number = other.form.number
        match function:
            case "and" if value.bits == 1:
                made = self._made(op, value.form * other.form, BIT, value, other)
                is_exact = value.guards_exact and other.guards_exact
                return replace(made, guards=value.guards + other.guards, guards_exact=is_exact)
            case "and" if number is not None and number >= 0 and number & (number + 1) == 0:
                # The low bits of a number are those of what it is modulo 2^bits.
                form = self.simplifier.call("mod", (value.form, Polynomial.constant(number + 1)))
                return self._made(op, form, Interval(0, number), value, other)
            case "and" if number is not None and number < 0 and -number & (-number - 1) == 0:
                form = value.form - self.simplifier.call("mod", (value.form, Polynomial.constant(-number)))
                return self._made(op, form, value.range - Interval(0, -number - 1), value, other)
            case "or" if value.bits == 1:
                return self._made(op, value.form + other.form - value.form * other.form, BIT, value, other)
            case "or" if other.exact and other.range.within(Interval(0, _free(value.form) - 1)):
                # Bits that are in one of the two only add up.
                return self._made(op, value.form + other.form, value.range + other.range, value, other)
            case "xor" if number == 1 and value.exact and value.range.within(BIT):
                return self._made(op, ONE - value.form, BIT, value, other)
            case "xor" if number == -1 and value.bits > 1:
                return self._made(op, -value.form - 1, -value.range - Interval.point(1), value, other)
            case _:
                return None

    def compare(self, op: Operation, sign: str, left: State, right: State, *, signed: bool) -> State | None:
        """A bit with a guard."""
        if not isinstance(left, Integer) or not isinstance(right, Integer):
            return None
        first, second = self._read(left, signed=signed), self._read(right, signed=signed)
        if first is None or second is None:
            return None
        name = "equal" if sign in ("==", "!=") else "less"
        forms = (second.form, first.form) if sign in ("<=", ">") else (first.form, second.form)
        form = self.simplifier.call(name, forms)
        made = self._made(op, ONE - form if sign in ("!=", "<=", ">=") else form, BIT, first, second)
        return replace(made, guards=(Guard(first.form, sign, second.form),), guards_exact=True)

    def extend(self, op: Operation, value: State, *, signed: bool) -> State | None:
        """The number itself; as a signed number, the bit 1 is -1."""
        if not isinstance(value, Integer) or (number := self._read(value, signed=signed)) is None:
            return None
        is_negative = signed and number.bits == 1
        return self._made(
            op, -number.form if is_negative else number.form, -number.range if is_negative else number.range, number
        )

    def truncate(self, op: Operation, value: State) -> State | None:
        """The same polynomial, which may wrap around."""
        if not isinstance(value, Integer):
            return None
        if bits_of(op.results[0]) == 1:
            return self._made(op, self.simplifier.call("mod", (value.form, Polynomial.constant(2))), BIT, value)
        return self._made(op, value.form, value.range, value)

    def select(self, op: arith.SelectOp, condition: State, left: State, right: State) -> State | None:
        """A choice."""
        return self.choose(op.result, condition, left, right)

    def choose(self, result: SSAValue, condition: State, left: State, right: State) -> State | None:
        """Choose `left` if `condition` is 1, and else `right`: `right + condition * (left - right)`."""
        if left == right and not isinstance(left, Other):
            return left
        if not isinstance(condition, Integer) or not condition.exact:
            return None
        match left, right:
            case (Integer(), Integer()):
                if (number := condition.form.number) is not None:
                    return (left if number else right).with_conditions(condition.conditions)
                form = right.form + condition.form * (left.form - right.form)
                exact = left.exact and right.exact
                operands = (condition, left, right)
                return self.made(result, form, left.range.join(right.range), exact=exact, operands=operands)
            case (Pointer(base=a), Pointer(base=b)) if a is not None and a is b:
                offset = right.offset + condition.form * (left.offset - right.offset)
                return Pointer(a, offset, condition.conditions.join(left.conditions).join(right.conditions))
            case _:
                return None

    # Shapes --------------------------------------------------------------------------------------------------------

    def rearrange(self, op: Operation, value: State, sources: Sequence[int | None]) -> State | None:
        """The same polynomial of other positions."""
        if not shape_of(op.operands[0]):
            return value if isinstance(value, Integer | Pointer) else None
        return self._moved(op.results[0], value, lambda lane: _lane(sources.index(lane.dim), lane.extent))

    def reshape(self, op: tt.ReshapeOp, value: State) -> State | None:
        """Positions of the operand are quotients and remainders of those of the result."""
        before, position = shape_of(op.src), Polynomial({})
        for dim, extent in enumerate(shape_of(op.result)):
            position = position * extent + _lane(dim, extent)

        def place(lane: Lane) -> Polynomial:
            after = Polynomial.constant(prod(before[lane.dim + 1 :]))
            whole = self.simplifier.call("floordiv", (position, after))
            return self.simplifier.call("mod", (whole, Polynomial.constant(lane.extent)))

        return self._moved(op.result, value, place)

    def _moved(self, result: SSAValue, value: State, place: Callable[[Lane], Polynomial]) -> State | None:
        """The tensor `result`, whose elements are those of a tensor, each at another position: `place` of each lane.

        What is not known of the elements becomes another unknown: the element at a position is another one.
        """

        def replaced(symbol: Symbol) -> Polynomial | None:
            match symbol:
                case Lane():
                    return place(symbol)
                case Unknown(causes=causes) if Causes.LANES in causes:
                    moved = replace(symbol, through=(*symbol.through, result))
                    self.bounds.known[moved] = self.bounds.of(symbol)
                    return Polynomial.of(moved)
                case _:
                    return None

        def moved(form: Polynomial) -> Polynomial:
            return form.substitute(replaced, self.simplifier.call)

        match value:
            case Integer():
                # Guards are about the positions of the operand, too.
                guards = tuple(Guard(moved(each.left), each.predicate, moved(each.right)) for each in value.guards)
                return replace(value, form=moved(value.form), guards=guards)
            case Pointer():
                return replace(value, offset=moved(value.offset))
            case _:
                return None

    # Pointers and descriptors --------------------------------------------------------------------------------------

    def add_pointer(self, op: tt.AddPtrOp, pointer: State, offset: State) -> State | None:
        """The sum of bytes; addresses are numbers modulo 2^64, so that an offset of 64 bits may have wrapped."""
        if not isinstance(pointer, Pointer) or not isinstance(offset, Integer):
            return None
        if pointer.base is None:
            return pointer
        if offset.bits < 64:
            exact = self.whole(offset)
            if exact is None:
                reason = f"the offset '{name_of(op.offset)}' may wrap around in {offset.bits} bits"
                return Pointer(None, Polynomial({}), reason=reason)
            offset = exact
        form = pointer.offset + offset.form * pointee_bytes(op.ptr)
        conditions = pointer.conditions.join(offset.conditions)
        if self.is_too_large(form) or conditions.too_many:
            return Pointer(None, Polynomial({}), reason="the expression of the address is too large")
        return Pointer(pointer.base, form, conditions)

    def describe(self, op: Operation, pointer: State, shape: Sequence[State], strides: Sequence[State]) -> State | None:
        """A descriptor whose sizes and strides are not negative."""
        if not isinstance(pointer, Pointer):
            return None
        conditions, forms = pointer.conditions, list[Polynomial]()
        for number in (*shape, *strides):
            exact = self.natural(number) if isinstance(number, Integer) else None
            if exact is None:
                return None
            conditions = conditions.join(exact.conditions)
            forms.append(exact.form)
        block = op.results[0].type
        assert isinstance(block, tt.TensorDescType)
        rank, size = len(shape), -(-block.element_bits // 8)
        return Descriptor(
            pointer.base, pointer.offset, tuple(forms[:rank]), tuple(forms[rank:]), tuple(block.shape), size,
            conditions, pointer.reason,
        )  # fmt: skip


def _lane(dim: int, extent: int) -> Polynomial:
    return Polynomial({}) if extent == 1 else Polynomial.of(Lane(dim, extent))


def _free(form: Polynomial) -> int:
    """The power of two below which no value of a polynomial has a bit."""
    return min((number & -number for number in form.terms.values()), default=1 << 62)
