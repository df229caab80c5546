"""Exact division of polynomials."""

from __future__ import annotations

from tlx_xdsl.analysis.integers.polynomials import Monomial, Polynomial
from tlx_xdsl.analysis.structure.values import ONE


def quotient(form: Polynomial, divisor: Polynomial) -> Polynomial | None:
    """The polynomial whose product with `divisor` is `form`; only products of symbols divide more than themselves."""
    if form == divisor:
        return ONE
    if len(divisor.terms) != 1:
        return None
    ((product, number),) = divisor
    found: dict[Monomial, int] = {}
    for each, factor in form:
        powers = dict(each)
        for symbol, power in product:
            powers[symbol] = powers.get(symbol, 0) - power
        if factor % number or any(power < 0 for power in powers.values()):
            return None
        found[frozenset((symbol, power) for symbol, power in powers.items() if power)] = factor // number
    return Polynomial(found)
