"""The lattice of the pointer and the mask analysis.

**Linear values.** A tensor of integers with `bits` bits is, at position `(i0, i1, ...)`,

    base + stride0 * i0 + stride1 * i1 + ... + coefficient * term(i) + ...   (mod 2^bits)

Base, strides and coefficients are `Polynomial`s in scalars of the function (`Scalar`) and in functions of such
(`Computed`), so nothing in them depends on a position. Along a dimension of one element the stride is 0. A *term* is
what is not linear: `Wrapped` is a remainder of what is linear along one dimension, `Opaque` is the elements of a tensor
that is computed as it was before. Any tensor is the opaque term of itself: that is the top of the lattice, so every
value has a state, and what one term does not depend on stays known (a gather of rows is linear along the columns).

Modulo 2^bits sums and multiples are exact. Widening, comparing and dividing need the number itself, which is that of
the expression if it does not leave the range of the type: such a `Claim` is proved at once, or kept in `claims`.

**Masks.** A tensor of i1 is the conjunction of: for each dimension a lower and an upper bound of the position (half
open, 64 bits), scalar conditions, and opaque tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TypeVar

from xdsl.ir import SSAValue

from tlx_xdsl.layouts.encodings import Ints

from ..integers.polynomials import Call, Polynomial
from ..integers.symbols import Scalar

T = TypeVar("T")

ZERO, ONE = Polynomial.constant(0), Polynomial.constant(1)


@dataclass(frozen=True)
class Computed(Call):
    """A function of scalars with `bits` bits, as an operation of `arith` computes it.

    `sext`, `zext` and `trunc` are to or from 64 bits, `compare ...` gives an i1; `select` has an i1 first.
    """

    bits: int = 64
    signed: bool = True

    def __hash__(self) -> int:
        """Hash the arguments, which remember their hashes."""
        return hash((self.function, self.arguments, self.bits, self.signed))


@dataclass(frozen=True)
class Opaque:
    """The elements of a tensor (or the number of a scalar), which are extended or truncated to the bits of the sum."""

    value: SSAValue
    dims: tuple[int | None, ...]
    """For each dimension of `value` the dimension along which it lies; None where all its elements are equal."""
    signed: bool = True

    @property
    def varies(self) -> frozenset[int]:
        """The dimensions along which elements differ."""
        return frozenset(dim for dim in self.dims if dim is not None)

    def moved(self, places: dict[int, int]) -> Opaque:
        """The same elements where each dimension has become another one."""
        return Opaque(self.value, tuple(None if dim is None else places[dim] for dim in self.dims), self.signed)


@dataclass(frozen=True)
class Wrapped:
    """The remainder `(start + i) mod modulus`, where `i` is the position along `dim`.

    All have `bits` bits; signed, the remainder has the sign of the dividend, as `arith.remsi`.
    """

    start: Polynomial
    modulus: Polynomial
    dim: int
    bits: int
    signed: bool

    @property
    def varies(self) -> frozenset[int]:
        """The dimension."""
        return frozenset([self.dim])

    def moved(self, places: dict[int, int]) -> Wrapped:
        """The same elements along another dimension."""
        return Wrapped(self.start, self.modulus, places[self.dim], self.bits, self.signed)


Term = Opaque | Wrapped


@dataclass(frozen=True)
class Claim:
    """The claim that a sum of so many bits does not leave the range of signed, or of unsigned numbers."""

    shape: Ints
    base: Polynomial
    strides: tuple[Polynomial, ...]
    bits: int
    signed: bool
    checkable: bool
    """False if the sum has opaque terms, so that no scalars decide."""


Claims = tuple[Claim, ...]
"""Each once, in the order of the program: what is emitted and printed of them is the same in every run."""
NO_CLAIMS: Claims = ()


@dataclass(frozen=True)
class Linear:
    """A tensor of integers, or a scalar, which has no dimensions."""

    shape: Ints
    bits: int
    base: Polynomial
    strides: tuple[Polynomial, ...]
    terms: tuple[tuple[Term, Polynomial], ...] = ()
    """Each term once, with its coefficient."""
    claims: Claims = NO_CLAIMS

    @property
    def is_uniform(self) -> bool:
        """True if all elements are equal, as far as known."""
        return not self.terms and not any(stride.terms for stride in self.strides)

    @cached_property
    def varies(self) -> frozenset[int]:
        """The dimensions along which elements may differ."""
        linear = {dim for dim, stride in enumerate(self.strides) if stride.terms}
        return frozenset(linear.union(*(term.varies for term, _ in self.terms)))

    @property
    def opaque_dims(self) -> frozenset[int]:
        """The dimensions along which opaque terms vary."""
        return frozenset[int]().union(*(term.varies for term, _ in self.terms if isinstance(term, Opaque)))

    def plus(self, other: Linear, sign: int = 1) -> Linear:
        """The sum, or the difference."""
        terms = dict(self.terms)
        for term, coefficient in other.terms:
            terms[term] = terms.get(term, ZERO) + coefficient * sign
        return Linear(
            self.shape,
            self.bits,
            self.base + other.base * sign,
            tuple(a + b * sign for a, b in zip(self.strides, other.strides, strict=True)),
            tuple((term, coefficient) for term, coefficient in terms.items() if coefficient.terms),
            union(self.claims, other.claims),
        )

    def times(self, factor: Polynomial, claims: Claims = NO_CLAIMS) -> Linear:
        """The multiple by a number that all elements have."""
        return self.mapped(lambda each: each * factor, claims)

    def mapped(self, function: Callable[[Polynomial], Polynomial], claims: Claims = NO_CLAIMS) -> Linear:
        """`function` of the base, the strides and the coefficients, where it is linear."""
        terms = tuple((term, function(coefficient)) for term, coefficient in self.terms)
        strides = tuple(function(stride) if stride.terms else ZERO for stride in self.strides)
        kept = tuple((term, coefficient) for term, coefficient in terms if coefficient.terms)
        return Linear(self.shape, self.bits, function(self.base), strides, kept, union(self.claims, claims))

    def rearranged(self, shape: Ints, sources: Sequence[int | None]) -> Linear:
        """The elements along other dimensions: for each the one that it was, or None for a new one."""
        places = {source: dim for dim, source in enumerate(sources) if source is not None}
        strides = tuple(ZERO if source is None else self.strides[source] for source in sources)
        terms = tuple((term.moved(places), coefficient) for term, coefficient in self.terms)
        return Linear(shape, self.bits, self.base, strides, terms, self.claims)


Bound = tuple[Polynomial | None, Polynomial | None]
"""The first position, and the one after the last; None where there is no bound."""


@dataclass(frozen=True)
class Mask:
    """A tensor of i1, or a scalar: true where every part of it is."""

    shape: Ints
    bounds: tuple[Bound, ...]
    conditions: tuple[Polynomial, ...] = ()
    """Scalars of one bit."""
    opaque: tuple[Opaque, ...] = ()
    claims: Claims = NO_CLAIMS

    @property
    def varies(self) -> frozenset[int]:
        """The dimensions along which elements may differ."""
        bounded = {dim for dim, (lower, upper) in enumerate(self.bounds) if lower is not None or upper is not None}
        return frozenset(bounded.union(*(each.varies for each in self.opaque)))

    @property
    def opaque_dims(self) -> frozenset[int]:
        """The dimensions along which opaque parts vary."""
        return frozenset[int]().union(*(each.varies for each in self.opaque))

    @property
    def is_uniform(self) -> bool:
        """True if scalar conditions alone decide."""
        return not self.varies and not self.opaque

    def both(self, other: Mask) -> Mask:
        """The conjunction."""
        bounds = tuple(
            (_tighter("max", first[0], second[0]), _tighter("min", first[1], second[1]))
            for first, second in zip(self.bounds, other.bounds, strict=True)
        )
        return Mask(
            self.shape, bounds, union(self.conditions, other.conditions), union(self.opaque, other.opaque),
            union(self.claims, other.claims),
        )  # fmt: skip

    def negated(self) -> Mask | None:
        """The complement, if that is a mask of this kind: of one bound, or of one condition."""
        if self.opaque:
            return None
        found = [(dim, *bound) for dim, bound in enumerate(self.bounds) if bound != (None, None)]
        if not found and len(self.conditions) == 1:
            (condition,) = self.conditions
            number = condition.number
            inverse = computed("not", [condition], 1) if number is None else Polynomial.constant(1 - (number & 1))
            return Mask(self.shape, self.bounds, (inverse,), claims=self.claims)
        if not found and not self.conditions:
            return empty(self.shape)
        if len(found) != 1 or self.conditions:
            return None
        dim, lower, upper = found[0]
        if lower is not None and upper is not None:
            return None
        bounds = list(self.bounds)
        bounds[dim] = (upper, None) if lower is None else (None, lower)
        return Mask(self.shape, tuple(bounds), claims=self.claims)

    def rearranged(self, shape: Ints, sources: Sequence[int | None]) -> Mask:
        """The elements along other dimensions, as of `Linear`."""
        places = {source: dim for dim, source in enumerate(sources) if source is not None}
        bounds = tuple((None, None) if source is None else self.bounds[source] for source in sources)
        opaque = union([each.moved(places) for each in self.opaque])
        return Mask(shape, bounds, self.conditions, opaque, self.claims)


State = Linear | Mask


def union(*parts: Iterable[T]) -> tuple[T, ...]:
    """All elements, each once, in the order in which they come first."""
    return tuple(dict.fromkeys(chain(*parts)))


def full(shape: Ints) -> Mask:
    """True everywhere."""
    return Mask(shape, ((None, None),) * len(shape))


def empty(shape: Ints) -> Mask:
    """False everywhere."""
    return Mask(shape, ((None, None),) * len(shape), (ZERO,))


def opaque_value(value: SSAValue, shape: Ints, bits: int, varies: Iterable[int] | None = None) -> State:
    """The state of a value of which nothing is known but the dimensions along which its elements may differ."""
    along = frozenset(range(len(shape)) if varies is None else varies)
    term = Opaque(value, tuple(dim if dim in along and size > 1 else None for dim, size in enumerate(shape)))
    if bits == 1:
        return Mask(shape, ((None, None),) * len(shape), opaque=(term,))
    return Linear(shape, bits, ZERO, (ZERO,) * len(shape), ((term, ONE),))


def scalar_state(value: SSAValue, bits: int) -> State:
    """The state of a scalar: itself."""
    form = Polynomial.of(Scalar(value))
    return Mask((), (), (form,)) if bits == 1 else Linear((), bits, form, ())


def computed(function: str, arguments: Sequence[Polynomial], bits: int, *, signed: bool = True) -> Polynomial:
    """A function of scalars that are not all numbers."""
    return Polynomial.of(Computed(function, tuple(arguments), bits, signed))


def _tighter(function: str, first: Polynomial | None, second: Polynomial | None) -> Polynomial | None:
    if first is None or second is None or first == second:
        return second if first is None else first
    numbers = (first.number, second.number)
    if numbers[0] is not None and numbers[1] is not None:
        return Polynomial.constant(max(numbers) if function == "max" else min(numbers))  # pyright: ignore
    return computed(function, [first, second], 64)
