"""Single instructions: clocks, fences, votes, prefetches, and what a CTA knows of its cluster."""

from __future__ import annotations

from typing import Any

from tlx_xdsl.decompile.function import Function, handles, prop
from tlx_xdsl.decompile.text import Text, call
from tlx_xdsl.decompile.types import dtype
from tlx_xdsl.dialects.tlx.barriers import FenceScope
from tlx_xdsl.dialects.tlx.copies import CacheLevel


@handles("tlx.clock64", "tlx.cluster_cta_rank")
def _without_operands(fn: Function, op: Any) -> Text:
    return call(op.name)


@handles("tlx.cluster_size")
def _cluster_size(fn: Function, op: Any) -> Text:
    return call("tlx.cluster_size_1d")


@handles("tlx.fence")
def _fence(fn: Function, op: Any) -> Text:
    return call("tlx.fence", f'"{FenceScope(prop(op, "scope").value.data).keyword}"')


@handles("tlx.vote_ballot")
def _vote(fn: Function, op: Any) -> Text:
    return call("tlx.vote_ballot_sync", fn.number_or_text(op.mask), fn.typed(op.pred))


@handles("tlx.stoch_round")
def _stochastic_rounding(fn: Function, op: Any) -> Text:
    return call("tlx.stoch_round", fn.typed(op.src), dtype(op.result.type), fn.typed(op.rand_bits))


@handles("tlx.prefetch")
def _prefetch(fn: Function, op: Any) -> Text:
    level = f'"{CacheLevel(prop(op, "level").value.data).keyword}"'
    return call("tlx.prefetch", fn.typed(op.src), level, mask=None if op.mask is None else fn.typed(op.mask))


@handles("tlx.prefetch_tensormap")
def _prefetch_descriptor(fn: Function, op: Any) -> Text:
    return call("tlx.prefetch", fn.text(op.desc), tensormap="True")
