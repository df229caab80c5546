"""Quotients and remainders of positions, one of another: the row and the column of a flat index, and of its row.

    at // W           the quotient of the position by `W`
    at % W            a remainder (`Wrapped`)
    at // W % H       the remainder of a quotient, a `Digit` of a `Digit`

Between two multiples of the divisor a quotient stays what it is, and a remainder grows by 1. So along a *piece*, the
positions from one such place to the next, an address made of digits is linear, and a comparison of it with one number
holds for positions that follow one another.

A quotient times its divisor and the remainder are the number itself again, wherever they come together in a sum:
`(at // W + c * H) * W + at % W` is `at + c * H * W`.

Terms of this kind are opaque ones of which more is known: what does not ask for it takes the elements of their value.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from xdsl.ir import Operation, SSAValue

from ..integers.polynomials import Polynomial
from ..integers.transfer import shape_of
from .domain import StructureDomain, flipped
from .values import ONE, ZERO, Claims, Linear, Mask, Opaque, State, Term, Wrapped, full, union

_SHORT = 4
"""Pieces below so many elements are not worth a loop over pieces."""


@dataclass(frozen=True)
class Digit(Opaque):
    """The quotient or the remainder of `start + x` by a number, where `x` is a position or another digit.

    All numbers have `bits` bits. Divisions round to 0 where `is_signed`, as those of `arith` do.
    """

    value: SSAValue = field(compare=False)
    dims: tuple[int | None, ...] = field(compare=False)
    is_quotient: bool = True
    start: Polynomial = ZERO
    divisor: Polynomial = ZERO
    of: Digit | Wrapped | None = None
    """What is divided beside `start`; None: the position along `dim`."""
    dim: int = 0
    bits: int = 32
    is_signed: bool = True

    def moved(self, places: dict[int, int]) -> Digit:
        """The same elements along another dimension."""
        return Digit(
            self.value, tuple(None if dim is None else places[dim] for dim in self.dims), self.signed, self.is_quotient,
            self.start, self.divisor, self.of and self.of.moved(places), places[self.dim], self.bits, self.is_signed,
        )  # fmt: skip

    def __str__(self) -> str:
        """Print the term in Python's spelling."""
        what = f"i{self.dim}" if self.of is None else spelled_term(self.of)
        start = f"{self.start} + " if self.start.terms else ""
        return f"(({start}{what}) {'//' if self.is_quotient else 'mod'} {self.divisor})"


def spelled_term(term: Digit | Wrapped) -> str:
    """A digit in Python's spelling."""
    return str(term) if isinstance(term, Digit) else f"(({term.start} + i{term.dim}) mod {term.modulus})"


def slope(term: Term) -> int:
    """Return how much a digit grows from one position of a piece to the next."""
    if isinstance(term, Digit):
        return 0 if term.is_quotient or (term.of is not None and not slope(term.of)) else 1
    return 1


@dataclass(frozen=True)
class Comparison(Opaque):
    """The positions at which a sum of digits, and of multiples of positions, compares with one number for all."""

    value: SSAValue = field(compare=False)
    dims: tuple[int | None, ...] = field(compare=False)
    sign: str = "<"
    base: Polynomial = ZERO
    strides: tuple[tuple[int, Polynomial], ...] = ()
    """Those that are not 0, by the dimension."""
    terms: tuple[tuple[Digit | Wrapped, Polynomial], ...] = ()
    limit: Polynomial = ZERO
    bits: int = 32
    is_signed: bool = True

    @property
    def slopes(self) -> dict[int, int]:
        """Return how much the sum grows along each dimension along which it does, inside of pieces."""
        found = {dim: stride.number or 0 for dim, stride in self.strides}
        for term, factor in self.terms:
            if slope(term):
                found[term.dim] = found.get(term.dim, 0) + (factor.number or 0)
        return {dim: step for dim, step in found.items() if step}

    def moved(self, places: dict[int, int]) -> Comparison:
        """The same bits along other dimensions."""
        return Comparison(
            self.value, tuple(None if dim is None else places[dim] for dim in self.dims), self.signed, self.sign,
            self.base, tuple((places[dim], stride) for dim, stride in self.strides),
            tuple((term.moved(places), factor) for term, factor in self.terms), self.limit, self.bits, self.is_signed,
        )  # fmt: skip

    def __str__(self) -> str:
        """Print the comparison in Python's spelling."""
        parts = [f"{self.base}"] if self.base.terms else []
        parts += [f"({stride})*i{dim}" for dim, stride in self.strides]
        parts += [f"({factor})*{spelled_term(term)}" for term, factor in self.terms]
        return f"{' + '.join(parts)} {self.sign} {self.limit}"


class DigitDomain(StructureDomain):
    """The domain of structure with digits, and with comparisons of them."""

    def binary(self, op: Operation, function: str, left: State, right: State, *, signed: bool) -> State | None:
        """Quotients by what is uniform, and remainders of digits."""
        known = super().binary(op, function, left, right, signed=signed)
        if isinstance(known, Linear) and function in ("add", "sub"):
            return _joined(known)
        if known is not None or not isinstance(left, Linear) or not isinstance(right, Linear) or not right.is_uniform:
            return known
        match function, signed:
            case ("truncdiv", True) | ("floordiv", False):
                return _digit(op, left, right.base, right.claims, is_quotient=True, is_signed=signed)
            case ("truncmod", True) | ("mod", False):
                return _digit(op, left, right.base, right.claims, is_quotient=False, is_signed=signed)
            case _:
                return None

    def compare(self, op: Operation, sign: str, left: State, right: State, *, signed: bool) -> State | None:
        """A comparison of digits with what is uniform."""
        known = super().compare(op, sign, left, right, signed=signed)
        if known is not None or not isinstance(left, Linear) or not isinstance(right, Linear):
            return known
        if left.is_uniform:
            left, right, sign = right, left, flipped(sign)
        if not right.is_uniform or (left.bits == 64 and not signed and sign not in ("==", "!=")):
            return None
        terms = [(term, factor) for term, factor in left.terms if isinstance(term, Digit | Wrapped)]
        claims = union(left.claims, right.claims)
        if not terms or len(terms) != len(left.terms) or not all(claim.checkable for claim in claims):
            return None
        if not all(_fits(term, left.bits) for term, _ in terms):
            return None
        strides = [(dim, stride) for dim, stride in enumerate(left.strides) if stride.terms]
        growing = [*(each for _, each in strides), *(factor for term, factor in terms if slope(term))]
        if any(each.number is None for each in growing):
            return None
        shape = shape_of(op.results[0])
        dims = tuple(dim if dim in left.varies and size > 1 else None for dim, size in enumerate(shape))
        found = Comparison(
            op.results[0], dims, True, sign, left.base, tuple(strides), tuple(terms), right.base, left.bits, signed
        )
        steps = found.slopes.values()
        if (sign == "!=" and steps) or (sign == "==" and any(abs(step) > 1 for step in steps)):
            return None
        return Mask(shape, full(shape).bounds, opaque=(found,), claims=claims)


def _fits(term: Digit | Wrapped, bits: int) -> bool:
    """Return whether a digit is a number of so many bits, without a conversion between two narrow types."""
    return bits in (term.bits, 64)


def _joined(value: Linear) -> Linear:
    """The same sum with `start + x` in the place of a quotient of it and the remainder, modulo the bits of all."""
    for quotient, factor in value.terms:
        if not isinstance(quotient, Digit) or not quotient.is_quotient or quotient.bits != value.bits:
            continue
        for rest, least in value.terms:
            if _is_rest(rest, quotient) and least * quotient.divisor == factor:
                of, dim = quotient.of, quotient.dim
                strides = tuple(ONE if of is None and at == dim else ZERO for at in range(len(value.shape)))
                terms = () if of is None else ((of, ONE),)
                whole = Linear(value.shape, value.bits, quotient.start, strides, terms)
                kept = tuple(each for each in value.terms if each[0] not in (quotient, rest))
                return _joined(replace(value, terms=kept).plus(whole.times(least)))
    return value


def _is_rest(term: Term, quotient: Digit) -> bool:
    """Return whether a term is the remainder of the division that gives a quotient."""
    if isinstance(term, Wrapped):
        found = Wrapped(quotient.start, quotient.divisor, quotient.dim, quotient.bits, quotient.is_signed)
        return quotient.of is None and term == found
    return isinstance(term, Digit) and replace(quotient, is_quotient=False) == replace(term, signed=quotient.signed)


def _digit(
    op: Operation, value: Linear, divisor: Polynomial, claims: Claims, *, is_quotient: bool, is_signed: bool
) -> Linear | None:
    along = [dim for dim, stride in enumerate(value.strides) if stride.terms]
    of: Digit | Wrapped | None = None
    if not value.terms and len(along) == 1 and value.strides[along[0]].number == 1:
        dim = along[0]
    elif not along and len(value.terms) == 1 and value.terms[0][1].number == 1:
        of = value.terms[0][0] if isinstance(value.terms[0][0], Digit | Wrapped) else None
        if of is None or not _fits(of, value.bits):
            return None
        dim = of.dim
    else:
        return None
    is_piecewise = of is None or slope(of) == 1
    if is_piecewise and (number := divisor.number) is not None and abs(number) < _SHORT:
        return None
    shape = value.shape
    dims = tuple(at if at == dim else None for at in range(len(shape)))
    term = Digit(
        op.results[0], dims, True, is_quotient, value.base, divisor, of, dim, value.bits, is_signed,
    )  # fmt: skip
    zeros = (ZERO,) * len(shape)
    return Linear(shape, value.bits, ZERO, zeros, ((term, Polynomial.constant(1)),), union(value.claims, claims))
