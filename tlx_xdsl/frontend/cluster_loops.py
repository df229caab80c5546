"""Loops that are the work of all CTAs of a cluster together: `tl.range(..., multi_cta=True)` of Meta's Triton.

The CTAs of the cluster run such a loop on the same data. One that stores is divided among them, so that each iteration
takes place once; one that only loads, and carries what it computes, is repeated by each CTA, so that each has the whole
result. Meta's compiler divides both, and adds up partial results through distributed shared memory; the numbers are
the same up to the order of the additions.

A cluster barrier stands before and after a divided loop: what it overwrites the others have read, and what it writes
they may read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from xdsl.ir import Operation

from tlx_xdsl.dialects import tlx, ttng
from tlx_xdsl.dialects.base import Kind, Space, accesses_of
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.language.core import int32

from . import semantic
from .builder import Builder
from .values import Constexpr, Tensor, Value
from .visitor import Visitor


def stores(visitor: Visitor, node: ast.For, body: Iterable[Operation]) -> bool:
    """True if a loop of all CTAs stores.

    Raises CompilationError where it does anything but compute, load and store: each CTA would do that.
    """
    found = False
    for op in body:
        accesses = accesses_of(op)
        if accesses is None or any(each.kind not in (Kind.READ, Kind.WRITE) for each in accesses):
            raise _refused(visitor, node, op)
        for access in accesses:
            if access.kind is Kind.WRITE and access.space is not Space.GLOBAL:
                raise _refused(visitor, node, op)
            found |= access.kind is Kind.WRITE
    return found


def _refused(visitor: Visitor, node: ast.For, op: Operation) -> CompilationError:
    return visitor.error(
        node.iter,
        f"a loop of all CTAs of the cluster (multi_cta) computes, loads and stores, and has no other effects; "
        f"found '{op.name}'",
    )


def share(builder: Builder, start: Tensor, stop: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
    """The first value and the limit of this CTA's part of a range: as many iterations in a row for each CTA."""
    rank = builder.tensor(tlx.ClusterCTARankOp, int32, ())
    ctas = builder.tensor(tlx.ClusterSizeOp, int32, ())

    def of(symbol: str, lhs: Value, rhs: Value) -> Tensor:
        return semantic.arithmetic(builder, symbol, lhs, rhs)

    one = Constexpr(1)
    turns = of("//", of("-", of("+", of("-", stop, start), step), one), step)
    each = of("*", of("//", of("-", of("+", turns, ctas), one), ctas), step)
    first = of("+", start, of("*", each, rank))
    end = of("+", first, each)
    return first, of("min", end, stop)


def barrier(builder: Builder) -> None:
    """Order what the CTAs of the cluster have done before after what they do next."""
    builder.emit(ttng.ClusterArriveOp, relaxed=False)
    builder.emit(ttng.ClusterWaitOp)
