"""What `arith` does to integers.

Sums, differences and products of wrapped numbers are right modulo 2^bits, whether their operands wrapped or not. What
asks for the number itself (a quotient, a comparison, a wider type) needs it exact: `Arithmetic.whole`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.dialects import arith as upstream
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, IntegerType
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.addresses.arithmetic import Arithmetic, bits_of
from tlx_xdsl.addresses.forms import Form
from tlx_xdsl.addresses.intervals import Interval
from tlx_xdsl.addresses.model import Guard
from tlx_xdsl.addresses.rules import rule
from tlx_xdsl.addresses.values import Integer, Other, Pointer, State
from tlx_xdsl.dialects import arith

ONE = Form.constant(1)


def integers(states: Sequence[State]) -> tuple[Integer, ...] | None:
    """The states, where all of them are integers."""
    return tuple(state for state in states if isinstance(state, Integer)) if _all_integers(states) else None


def _all_integers(states: Sequence[State]) -> bool:
    return all(isinstance(state, Integer) for state in states)


def _made(known: Arithmetic, value: SSAValue, form: Form, interval: Interval, operands: Sequence[Integer]) -> Integer:
    exact = all(operand.exact for operand in operands)
    return known.made(value, form, interval, exact=exact, operands=operands)


# --- constants, sums and products ---------------------------------------------------------------------------------


@rule(upstream.ConstantOp)
def _constant(known: Arithmetic, op: upstream.ConstantOp, _: Sequence[State]) -> State | None:
    bits = bits_of(op.result)
    if bits is None:
        return None
    match op.value:
        case IntegerAttr(value=number):
            return known.number(number.data, bits)
        case DenseIntOrFPElementsAttr() if op.value.is_splat() and isinstance(op.value.get_element_type(), IntegerType):
            return known.number(int(cast(int, op.value.get_values()[0])), bits)
        case _:
            return None


@rule(upstream.AddiOp)
def _add(known: Arithmetic, op: upstream.AddiOp, states: Sequence[State]) -> State | None:
    if (operands := integers(states)) is None or operands[0].bits == 1:
        return None
    left, right = operands
    return _made(known, op.result, left.form + right.form, left.range + right.range, operands)


@rule(upstream.SubiOp)
def _subtract(known: Arithmetic, op: upstream.SubiOp, states: Sequence[State]) -> State | None:
    if (operands := integers(states)) is None or operands[0].bits == 1:
        return None
    left, right = operands
    return _made(known, op.result, left.form - right.form, left.range - right.range, operands)


@rule(upstream.MuliOp)
def _multiply(known: Arithmetic, op: upstream.MuliOp, states: Sequence[State]) -> State | None:
    if (operands := integers(states)) is None or len(operands[0].form.terms) * len(operands[1].form.terms) > 256:
        return None
    left, right = operands
    return _made(known, op.result, left.form * right.form, left.range * right.range, operands)


@rule(upstream.ShLIOp)
def _shift_left(known: Arithmetic, op: upstream.ShLIOp, states: Sequence[State]) -> State | None:
    if (operands := integers(states)) is None or (by := _shift(operands)) is None:
        return None
    left = operands[0]
    return _made(known, op.result, left.form * (1 << by), left.range * Interval.point(1 << by), operands)


def _shift(operands: Sequence[Integer]) -> int | None:
    """The number of bits of a shift that is known, and defined."""
    number = operands[1].form.number
    return number if number is not None and 0 <= number < operands[0].bits and operands[1].exact else None


# --- quotients and remainders -------------------------------------------------------------------------------------


def _divide(known: Arithmetic, value: SSAValue, states: Sequence[State], names: tuple[str, str]) -> State | None:
    """A quotient or a remainder that rounds towards zero, whose function is one of `names`: down, towards zero."""
    if (operands := integers(states)) is None:
        return None
    divisor = known.positive(operands[1])
    if divisor is None:
        return None
    if (left := known.natural(operands[0])) is not None:
        form = known.simplifier.call(names[0], (left.form, divisor.form))
    elif (left := known.whole(operands[0])) is not None:
        form = known.simplifier.call(names[1], (left.form, divisor.form))
    else:
        return None
    return _made(known, value, form, _divided_range(names[0], left.range, divisor.range), (left, divisor))


def _divided_range(name: str, left: Interval, right: Interval) -> Interval:
    if name == "mod":
        low = max(1 - right.high, left.low) if left.low < 0 else 0
        return Interval(low, max(0, min(right.high - 1, left.high)))
    corners = [abs(a) // b * (-1 if a < 0 else 1) for a in (left.low, left.high) for b in (right.low, right.high)]
    return Interval(min(corners), max(corners))


@rule(upstream.DivSIOp)
def _quotient(known: Arithmetic, op: upstream.DivSIOp, states: Sequence[State]) -> State | None:
    return _divide(known, op.result, states, ("floordiv", "truncdiv"))


@rule(upstream.RemSIOp)
def _remainder(known: Arithmetic, op: upstream.RemSIOp, states: Sequence[State]) -> State | None:
    return _divide(known, op.result, states, ("mod", "truncmod"))


def _divide_unsigned(known: Arithmetic, op: Operation, states: Sequence[State], name: str) -> State | None:
    if (operands := integers(states)) is None:
        return None
    left, divisor = known.natural(operands[0]), known.positive(operands[1])
    if left is None or divisor is None:
        return None
    form = known.simplifier.call(name, (left.form, divisor.form))
    return _made(known, op.results[0], form, _divided_range(name, left.range, divisor.range), (left, divisor))


@rule(upstream.DivUIOp)
def _unsigned_quotient(known: Arithmetic, op: Operation, states: Sequence[State]) -> State | None:
    return _divide_unsigned(known, op, states, "floordiv")


@rule(upstream.RemUIOp)
def _unsigned_remainder(known: Arithmetic, op: Operation, states: Sequence[State]) -> State | None:
    return _divide_unsigned(known, op, states, "mod")


@rule(upstream.ShRSIOp, upstream.ShRUIOp)
def _shift_right(known: Arithmetic, op: Operation, states: Sequence[State]) -> State | None:
    if (operands := integers(states)) is None or (by := _shift(operands)) is None:
        return None
    signed = isinstance(op, upstream.ShRSIOp)
    left = known.whole(operands[0]) if signed else known.natural(operands[0])
    if left is None:
        return None
    form = known.simplifier.call("floordiv", (left.form, Form.constant(1 << by)))
    interval = Interval(left.range.low >> by, left.range.high >> by)
    return _made(known, op.results[0], form, interval, (left, operands[1]))


# --- bits ---------------------------------------------------------------------------------------------------------


@rule(upstream.AndIOp)
def _and(known: Arithmetic, op: upstream.AndIOp, states: Sequence[State]) -> State | None:
    if (operands := integers(states)) is None:
        return None
    left, right = operands
    if left.bits == 1:
        made = _made(known, op.result, left.form * right.form, Interval(0, 1), operands)
        return Integer(
            made.form, made.range, made.exact, 1, made.conditions, left.guards + right.guards,
            left.guards_exact and right.guards_exact,
        )  # fmt: skip
    for value, mask in (operands, operands[::-1]):
        number = mask.form.number
        if number is None:
            continue
        if number >= 0 and number & (number + 1) == 0:
            # The low bits of a number are those of what it is modulo 2^bits.
            form = known.simplifier.call("mod", (value.form, Form.constant(number + 1)))
            return _made(known, op.result, form, Interval(0, number), (value, mask))
        if number < 0 and -number & (-number - 1) == 0:
            form = value.form - known.simplifier.call("mod", (value.form, Form.constant(-number)))
            return _made(known, op.result, form, value.range - Interval(0, -number - 1), (value, mask))
    return _bitwise(known, op, operands, "and")


@rule(upstream.OrIOp)
def _or(known: Arithmetic, op: upstream.OrIOp, states: Sequence[State]) -> State | None:
    if (operands := integers(states)) is None:
        return None
    left, right = operands
    if left.bits == 1:
        form = left.form + right.form - left.form * right.form
        return _made(known, op.result, form, Interval(0, 1), operands)
    for high, low in (operands, operands[::-1]):
        # Bits that are in one of the two only add up.
        free = min((number & -number for number in high.form.terms.values()), default=1 << 62)
        if low.exact and low.range.within(Interval(0, free - 1)):
            return _made(known, op.result, high.form + low.form, high.range + low.range, operands)
    return _bitwise(known, op, operands, "or")


@rule(upstream.XOrIOp)
def _exclusive_or(known: Arithmetic, op: upstream.XOrIOp, states: Sequence[State]) -> State | None:
    if (operands := integers(states)) is None:
        return None
    for value, mask in (operands, operands[::-1]):
        if mask.form.number == 1 and value.exact and value.range.within(Interval(0, 1)):
            return _made(known, op.result, ONE - value.form, Interval(0, 1), operands)
        if mask.form.number == -1 and value.bits > 1:
            return _made(known, op.result, -value.form - 1, -value.range - Interval.point(1), operands)
    return _bitwise(known, op, operands, "xor")


def _bitwise(known: Arithmetic, op: Operation, operands: Sequence[Integer], name: str) -> State | None:
    left, right = known.whole(operands[0]), known.whole(operands[1])
    if left is None or right is None:
        return None
    form = known.simplifier.call(name, (left.form, right.form))
    size = max(abs(number) for side in (left, right) for number in (side.range.low, side.range.high)).bit_length()
    low = 0 if left.range.low >= 0 and right.range.low >= 0 else -(1 << size)
    return _made(known, op.results[0], form, Interval(low, (1 << size) - 1), (left, right))


# --- widths -------------------------------------------------------------------------------------------------------


@rule(upstream.ExtSIOp, arith.ExtSIOp)
def _extend(known: Arithmetic, op: Operation, states: Sequence[State]) -> State | None:
    if (operands := integers(states)) is None or (value := known.whole(operands[0])) is None:
        return None
    if value.bits == 1:
        return _made(known, op.results[0], -value.form, -value.range, (value,))
    return _made(known, op.results[0], value.form, value.range, (value,))


@rule(upstream.ExtUIOp, arith.ExtUIOp)
def _extend_unsigned(known: Arithmetic, op: Operation, states: Sequence[State]) -> State | None:
    if (operands := integers(states)) is None or (value := known.natural(operands[0])) is None:
        return None
    return _made(known, op.results[0], value.form, value.range, (value,))


@rule(upstream.TruncIOp, arith.TruncIOp)
def _truncate(known: Arithmetic, op: Operation, states: Sequence[State]) -> State | None:
    if (operands := integers(states)) is None:
        return None
    (value,) = operands
    if bits_of(op.results[0]) == 1:
        form = known.simplifier.call("mod", (value.form, Form.constant(2)))
        return _made(known, op.results[0], form, Interval(0, 1), operands)
    return _made(known, op.results[0], value.form, value.range, operands)


@rule(upstream.IndexCastOp)
def _index_cast(known: Arithmetic, op: Operation, states: Sequence[State]) -> State | None:
    if (operands := integers(states)) is None or (value := known.whole(operands[0])) is None:
        return None
    return _made(known, op.results[0], value.form, value.range, (value,))


# --- choices ------------------------------------------------------------------------------------------------------


def _extreme(name: str, *, signed: bool) -> Callable[[Arithmetic, Any, Sequence[State]], State | None]:
    def make(known: Arithmetic, op: Operation, states: Sequence[State]) -> State | None:
        if (operands := integers(states)) is None:
            return None
        left, right = (known.whole(each) if signed else known.natural(each) for each in operands)
        if left is None or right is None:
            return None
        pick = min if name == "min" else max
        interval = Interval(pick(left.range.low, right.range.low), pick(left.range.high, right.range.high))
        form = known.simplifier.call(name, (left.form, right.form))
        return _made(known, op.results[0], form, interval, (left, right))

    return make


rule(upstream.MinSIOp)(_extreme("min", signed=True))
rule(upstream.MaxSIOp)(_extreme("max", signed=True))
rule(upstream.MinUIOp)(_extreme("min", signed=False))
rule(upstream.MaxUIOp)(_extreme("max", signed=False))

_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


@rule(arith.CmpiOp)
def _compare(known: Arithmetic, op: arith.CmpiOp, states: Sequence[State]) -> State | None:
    if (operands := integers(states)) is None:
        return None
    predicate = op.predicate_name
    sign = _SIGNS[predicate if predicate in _SIGNS else predicate[1:]]
    unsigned = predicate[0] == "u"
    left, right = (known.natural(each) if unsigned else known.whole(each) for each in operands)
    if left is None or right is None:
        return None
    return compared(known, op.result, left, sign, right)


def compared(known: Arithmetic, value: SSAValue, left: Integer, sign: str, right: Integer) -> Integer:
    """The bit `value` that says how two exact numbers compare."""
    a, b = left.form, right.form
    call = known.simplifier.call
    form = {
        "==": lambda: call("equal", (a, b)),
        "!=": lambda: ONE - call("equal", (a, b)),
        "<": lambda: call("less", (a, b)),
        "<=": lambda: ONE - call("less", (b, a)),
        ">": lambda: call("less", (b, a)),
        ">=": lambda: ONE - call("less", (a, b)),
    }[sign]()
    made = _made(known, value, form, Interval(0, 1), (left, right))
    return Integer(made.form, made.range, made.exact, 1, made.conditions, (Guard(a, sign, b),), True)


@rule(upstream.SelectOp, arith.SelectOp)
def _select(known: Arithmetic, op: Operation, states: Sequence[State]) -> State | None:
    return chosen(known, op.results[0], states[0], states[1], states[2])


def chosen(known: Arithmetic, value: SSAValue, condition: State, left: State, right: State) -> State | None:
    """What is `left` where `condition` is 1, and else `right`: `right + condition * (left - right)`."""
    if left == right and not isinstance(left, Other):
        return left
    if not isinstance(condition, Integer) or not condition.exact:
        return None
    match left, right:
        case (Integer(), Integer()):
            if (number := condition.form.number) is not None:
                picked = left if number else right
                return picked.with_conditions(condition.conditions)
            form = right.form + condition.form * (left.form - right.form)
            return _made(known, value, form, left.range.join(right.range), (condition, left, right))
        case (Pointer(base=a), Pointer(base=b)) if a is not None and a is b:
            offset = right.offset + condition.form * (left.offset - right.offset)
            conditions = condition.conditions.join(left.conditions).join(right.conditions)
            return Pointer(a, offset, conditions)
        case _:
            return None
