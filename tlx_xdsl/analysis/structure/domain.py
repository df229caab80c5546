"""The transfer functions of the pointer and the mask analysis; the lattice is that of `values.py`.

| operation | linear | else |
|---|---|---|
| `make_range`, `splat`, `expand_dims`, `broadcast`, `trans` | positions and places | |
| `addi`, `subi`; `muli`, `shli` by what is uniform | sums and multiples, modulo 2^bits | opaque |
| `remsi`, `remui` of what grows by 1, by what is uniform; `andi` with 2^k - 1 | a `Wrapped` term | opaque |
| any function of uniform operands | the same function of scalars | |
| `extsi`, `extui` | of a sum with a `Claim`; of one term exactly | |
| `trunci` | of each part, exactly | |
| `select` with a uniform condition | of each part | opaque |
| `cmpi` along one dimension with a constant stride | one bound (`eq` with stride 1: two) | opaque |
| `andi` of masks; `xori` with true of one bound | conjunction; complement | opaque |
| `select` of masks with false on one side | conjunction | opaque |

An opaque result varies along the dimensions along which some operand does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.ir import Operation

from tlx_xdsl.dialects import arith, tt
from tlx_xdsl.layouts.encodings import Ints

from ..integers.functions import DIVISIONS, FUNCTIONS
from ..integers.polynomials import Polynomial, Symbol
from ..integers.transfer import Domain, bits_of, shape_of
from .values import (
    NO_CLAIMS,
    ONE,
    ZERO,
    Bound,
    Claim,
    Claims,
    Computed,
    Linear,
    Mask,
    Opaque,
    State,
    Wrapped,
    computed,
    empty,
    full,
    union,
)

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def flipped(sign: str) -> str:
    """The comparison with its sides exchanged."""
    return _FLIPPED[sign]


class StructureDomain(Domain[State]):
    """Transfer functions that give None for what is opaque."""

    def constant(self, op: Operation, numbers: Sequence[int], bits: int) -> State | None:
        """One number for all elements."""
        if len(numbers) != 1:
            return None
        shape = shape_of(op.results[0])
        if bits == 1:
            return full(shape) if numbers[0] & 1 else empty(shape)
        return _uniform(shape, bits, Polynomial.constant(numbers[0]))

    def make_range(self, op: tt.MakeRangeOp, start: int, end: int) -> State:
        """The position and a constant."""
        size = end - start
        return Linear((size,), 32, Polynomial.constant(start), (ONE if size > 1 else ZERO,))

    # Arithmetic ------------------------------------------------------------------------------------------------------

    def binary(self, op: Operation, function: str, left: State, right: State, *, signed: bool) -> State | None:
        """Sums, multiples and remainders, and every function of what is uniform."""
        if isinstance(left, Mask) and isinstance(right, Mask):
            return _of_masks(function, left, right)
        if not isinstance(left, Linear) or not isinstance(right, Linear):
            return None
        match function:
            case "add":
                return left.plus(right)
            case "sub":
                return left.plus(right, -1)
            case "mul" if right.is_uniform:
                return left.times(right.base, right.claims)
            case "mul" if left.is_uniform:
                return right.times(left.base, left.claims)
            case "shl" if (number := right.base.number) is not None and right.is_uniform and 0 <= number < left.bits:
                return left.times(Polynomial.constant(1 << number))
            case _ if left.is_uniform and right.is_uniform:
                form = _function(function, left.base, right.base, left.bits, signed=signed)
                return _uniform(left.shape, left.bits, form, union(left.claims, right.claims))
            case "mod" | "truncmod" if right.is_uniform:
                return _wrapped(left, right.base, right.claims, signed=signed)
            case "and" if right.is_uniform and _is_low_bits(right.base.number):
                return _wrapped(left, right.base + 1, NO_CLAIMS, signed=False)
            case _:
                return None

    def extend(self, op: Operation, value: State, *, signed: bool) -> State | None:
        """The number itself in more bits."""
        bits = bits_of(op.results[0])
        return None if bits is None or not isinstance(value, Linear) else widened(value, bits, signed=signed)

    def truncate(self, op: Operation, value: State) -> State | None:
        """Each part by itself: sums and products of low bits are the low bits of sums and products."""
        bits = bits_of(op.results[0])
        if bits is None or bits == 1 or not isinstance(value, Linear):
            return None
        narrowed = value.mapped(lambda form: _converted("trunc", form, bits))
        return replace(narrowed, bits=bits)

    def select(self, op: arith.SelectOp, condition: State, left: State, right: State) -> State | None:
        """Choose between two linear values, or join masks by a conjunction."""
        shape = shape_of(op.result)
        if isinstance(condition, Mask) and condition.shape != shape:
            condition = condition.rearranged(shape, (None,) * len(shape))
        if not isinstance(condition, Mask):
            return None
        if isinstance(left, Mask) and isinstance(right, Mask):
            return _chosen_mask(condition, left, right)
        if not isinstance(left, Linear) or not isinstance(right, Linear):
            return None
        if left == right:
            return left
        if not condition.is_uniform or len(condition.conditions) != 1 or left.terms != right.terms:
            return None
        (scalar,) = condition.conditions

        def chosen(yes: Polynomial, no: Polynomial) -> Polynomial:
            return yes if yes == no else computed("select", [scalar, yes, no], left.bits)

        strides = tuple(chosen(a, b) for a, b in zip(left.strides, right.strides, strict=True))
        claims = union(left.claims, right.claims, condition.claims)
        return Linear(left.shape, left.bits, chosen(left.base, right.base), strides, left.terms, claims)

    # Masks -----------------------------------------------------------------------------------------------------------

    def compare(self, op: Operation, sign: str, left: State, right: State, *, signed: bool) -> State | None:
        """A bound of the position along the one dimension in which the two sides differ, or a scalar condition."""
        if not isinstance(left, Linear) or not isinstance(right, Linear):
            return None
        if left.is_uniform and right.is_uniform:
            form = _compared(sign, left.base, right.base, left.bits, signed=signed)
            return replace(full(left.shape), conditions=(form,), claims=union(left.claims, right.claims))
        # Unsigned, negative numbers are large: the order is that of signed ones where both sides are not negative.
        sides = [_range(side) for side in (left, right)]
        is_natural = all(low >= 0 and high < 1 << (left.bits - 1) for low, high in sides)
        if not signed and sign not in ("==", "!=") and not is_natural:
            return None
        exact = [widened(side, 64, signed=True) for side in (left, right)]
        difference = exact[0].plus(exact[1], -1)
        if difference.terms or not all(claim.checkable for claim in difference.claims):
            return None
        along = [(dim, stride.number) for dim, stride in enumerate(difference.strides) if stride.terms]
        if not along:
            form = _compared(sign, difference.base, ZERO, 64, signed=True)
            return replace(full(left.shape), conditions=(form,), claims=difference.claims)
        if len(along) > 1 or along[0][1] is None:
            return None
        dim, stride = along[0]
        if (bound := _bound(sign, difference.base, stride)) is None:
            return None
        claims = difference.claims
        if left.bits == 64:
            # The difference itself may leave 64 bits.
            claims = union(claims, [_claim(side) for side in (left, right) if side.base.number is None])
        bounds = tuple(bound if at == dim else (None, None) for at in range(len(left.shape)))
        return Mask(left.shape, bounds, claims=claims)

    # Places ----------------------------------------------------------------------------------------------------------

    def rearrange(self, op: Operation, value: State, sources: Sequence[int | None]) -> State | None:
        """The parts along the dimensions where they go."""
        return value.rearranged(shape_of(op.results[0]), sources)

    def reshape(self, op: tt.ReshapeOp, value: State) -> State | None:
        """Return where only dimensions of one element come or go."""
        before, after = shape_of(op.src), shape_of(op.result)
        kept = [dim for dim, size in enumerate(before) if size > 1]
        if [before[dim] for dim in kept] != [size for size in after if size > 1]:
            return value.rearranged(after, (None,) * len(after)) if value.is_uniform else None
        sources = iter(kept)
        return value.rearranged(after, [next(sources) if size > 1 else None for size in after])


def widened(value: Linear, bits: int, *, signed: bool) -> Linear:
    """The number that `value` is, in more bits, if its sum does not leave its type; the claim is added if not proved.

    A sum of 64 bits is taken as it is.
    """
    if value.bits >= bits:
        return value
    name = "sext" if signed else "zext"
    extended = replace(
        value.mapped(lambda form: _converted(name, form, value.bits)),
        bits=bits,
    )
    if not signed:
        extended = replace(extended, terms=tuple((_unsigned(term), factor) for term, factor in extended.terms))
    if value.is_uniform or _is_one_term(value) or _in_range(value, signed=signed):
        return extended
    return replace(extended, claims=union(extended.claims, [_claim(value, signed=signed)]))


def _unsigned(term: Opaque | Wrapped) -> Opaque | Wrapped:
    return replace(term, signed=False) if isinstance(term, Opaque) else term


def _is_one_term(value: Linear) -> bool:
    return not value.base.terms and [factor for _, factor in value.terms] == [ONE] and not _has_strides(value)


def _has_strides(value: Linear) -> bool:
    return any(stride.terms for stride in value.strides)


def _range(value: Linear) -> tuple[int, int]:
    """The least and the greatest sum, as far as numbers say."""
    numbers = [value.base.number, *(stride.number for stride in value.strides)]
    if value.terms or any(number is None for number in numbers):
        return -(1 << 63), 1 << 63
    low = high = numbers[0] or 0
    for size, stride in zip(value.shape, value.strides, strict=True):
        step = (stride.number or 0) * (size - 1)
        low, high = low + min(step, 0), high + max(step, 0)
    return low, high


def _in_range(value: Linear, *, signed: bool) -> bool:
    low, high = _range(value)
    limit = 1 << (value.bits - 1 if signed else value.bits)
    return (-limit if signed else 0) <= low and high < limit


def _claim(value: Linear, *, signed: bool = True) -> Claim:
    return Claim(value.shape, value.base, value.strides, value.bits, signed, not value.terms)


def _uniform(shape: Ints, bits: int, form: Polynomial, claims: Claims = NO_CLAIMS) -> Linear:
    return Linear(shape, bits, form, (ZERO,) * len(shape), (), claims)


def _converted(name: str, form: Polynomial, bits: int) -> Polynomial:
    """A scalar in more bits than `bits` (`sext`, `zext`), or in these (`trunc`)."""
    if (number := form.number) is not None:
        wrapped = number % (1 << bits)
        is_negative = name != "zext" and wrapped >> (bits - 1)
        return Polynomial.constant(wrapped - (1 << bits) if is_negative else wrapped)
    extended = _only_symbol(form) if name == "trunc" else None
    if isinstance(extended, Computed) and extended.function in ("sext", "zext") and extended.bits == bits:
        return extended.arguments[0]
    return computed(name, [form], bits, signed=name != "zext")


def _only_symbol(form: Polynomial) -> Symbol | None:
    """The symbol that an expression is, if it is one."""
    if list(form.terms.values()) != [1] or len(product := next(iter(form.terms))) != 1:
        return None
    ((symbol, power),) = product
    return symbol if power == 1 else None


def _function(function: str, left: Polynomial, right: Polynomial, bits: int, *, signed: bool) -> Polynomial:
    a, b = left.number, right.number
    if a is not None and b is not None and signed and function in FUNCTIONS and (b or function not in DIVISIONS):
        return _converted("trunc", Polynomial.constant(int(FUNCTIONS[function](a, b))), bits)
    return computed(function, [left, right], bits, signed=signed)


def _is_low_bits(number: int | None) -> bool:
    return number is not None and number > 0 and number & (number + 1) == 0


def _wrapped(value: Linear, modulus: Polynomial, claims: Claims, *, signed: bool) -> Linear | None:
    along = [dim for dim, stride in enumerate(value.strides) if stride.terms]
    if value.terms or len(along) != 1 or value.strides[along[0]] != ONE:
        return None
    low, high = _range(value)
    number = modulus.number
    if number is not None and low >= 0 and high < number:
        return value
    term = Wrapped(value.base, modulus, along[0], value.bits, signed)
    shape = value.shape
    return Linear(shape, value.bits, ZERO, (ZERO,) * len(shape), ((term, ONE),), union(value.claims, claims))


def _compared(sign: str, left: Polynomial, right: Polynomial, bits: int, *, signed: bool) -> Polynomial:
    a, b = left.number, right.number
    if a is not None and b is not None and (signed or sign in ("==", "!=")):
        found = {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}
        return Polynomial.constant(int(found[sign]))
    return computed(f"compare {sign}", [left, right], bits, signed=signed)


def _bound(sign: str, base: Polynomial, stride: int | None) -> Bound | None:
    """The positions `i` with `base + stride * i` `sign` 0, in 64 bits."""
    assert stride
    if stride < 0:
        sign, base, stride = _FLIPPED[sign], -base, -stride
    match sign:
        case "<":
            return None, _quotient(-base, stride)
        case "<=":
            return None, _quotient(1 - base, stride)
        case ">=":
            return _quotient(-base, stride), None
        case ">":
            return _quotient(1 - base, stride), None
        case "==" if stride == 1:
            return -base, 1 - base
        case _:
            return None


def _quotient(form: Polynomial, divisor: int) -> Polynomial:
    """Rounded up."""
    if divisor == 1:
        return form
    if (number := form.number) is not None:
        return Polynomial.constant(-(-number // divisor))
    return computed("ceildiv", [form, Polynomial.constant(divisor)], 64)


def _of_masks(function: str, left: Mask, right: Mask) -> Mask | None:
    match function:
        case "and":
            return left.both(right)
        case "xor" if right == full(right.shape):
            return left.negated()
        case "xor" if left == full(left.shape):
            return right.negated()
        case "or" if right == empty(right.shape) or left == full(left.shape):
            return left
        case "or" if left == empty(left.shape) or right == full(right.shape):
            return right
        case "or" | "xor" if all(side.is_uniform and len(side.conditions) == 1 for side in (left, right)):
            ((first,), (second,)) = left.conditions, right.conditions
            claims = union(left.claims, right.claims)
            return replace(full(left.shape), conditions=(computed(function, [first, second], 1),), claims=claims)
        case _:
            return None


def _chosen_mask(condition: Mask, left: Mask, right: Mask) -> Mask | None:
    if left == right:
        return left
    if right == empty(right.shape):
        return condition.both(left)
    if left == empty(left.shape) and (inverse := condition.negated()) is not None:
        return inverse.both(right)
    if left == full(left.shape) and right == empty(right.shape):
        return condition
    return None
