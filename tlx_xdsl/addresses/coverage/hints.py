"""Hints from the addresses of an access: the widest vectors, the obstacles to coalescing, the data to prefetch."""

from __future__ import annotations

from dataclasses import dataclass

from tlx_xdsl.analysis.integers.axis_domain import AxisInfo
from tlx_xdsl.analysis.integers.polynomials import Polynomial

from .. import Access, AccessKind
from .disjointness import is_of_the_launch

VECTOR = 16
"""Bytes that one thread loads or stores by one instruction, at most (PTX ISA, "ld", `.v4.b32`)."""

_BY_THREADS = (AccessKind.LOAD, AccessKind.STORE, AccessKind.ASYNC_COPY)
"""Accesses that threads make element by element: TMA and bulk copies have no vectors."""


@dataclass(frozen=True)
class Prefetch:
    """An access in a loop whose block moves by the same number of bytes in each iteration."""

    access: Access
    stride: Polynomial
    """Bytes from the block of one iteration to that of the next."""


def regularity(access: Access) -> AxisInfo | None:
    """Contiguity, divisibility and constancy of an access's pointers, as `axis_info` has them; None for a scalar.

    They are facts for the launches that the access's `conditions` allow, with indices of any sign.
    """
    if not access.dimensions or not access.is_known:
        return None
    return AxisInfo(
        tuple(each.contiguity for each in access.dimensions),
        tuple(each.divisibility for each in access.dimensions),
        tuple(each.constancy for each in access.dimensions),
    )


def vector_bytes(access: Access) -> int | None:
    """Bytes that a thread may access at once; None for what is not done by threads, and what is not known."""
    if access.kind not in _BY_THREADS or not access.is_known:
        return None
    best = access.element_size
    for each in access.dimensions:
        run = each.contiguity * access.element_size
        best = max(best, min(VECTOR, run & -run, each.divisibility))
    return best


def coalescing_hint(access: Access) -> str | None:
    """The reason why neighbouring threads' accesses lie apart, or their vectors are narrow; None if there is none."""
    if access.kind not in _BY_THREADS or not access.is_known or not access.dimensions:
        return None
    if not access.is_coalesced:
        fastest = access.dimensions[-1]
        apart = "not evenly apart" if fastest.stride is None else f"{fastest.stride} bytes apart"
        return f"not coalesced: elements along the last dimension lie {apart}"
    width = vector_bytes(access)
    assert width is not None
    longest = max(each.contiguity for each in access.dimensions) * access.element_size
    if width < min(VECTOR, longest):
        return f"narrow: {width} bytes at once, as no more is known of how its addresses are aligned"
    return None


def prefetch_hint(access: Access) -> Prefetch | None:
    """The next iteration's block of an access that reads and moves evenly in its innermost loop."""
    if access.kind.writes or access.kind is AccessKind.PREFETCH or not access.loops or not access.is_known:
        return None
    stride = access.loops[-1].stride
    if stride is None or stride.number == 0 or not is_of_the_launch(stride):
        return None
    return Prefetch(access, stride)
