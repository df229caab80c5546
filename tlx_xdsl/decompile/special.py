"""Single instructions: clocks, fences, votes, prefetches, and what a CTA knows of its cluster."""

from __future__ import annotations

from typing import Any

from tlx_xdsl.dialects.tlx.barriers import FenceScope
from tlx_xdsl.dialects.tlx.copies import CacheLevel

from .function import Function, handles, prop
from .types import Text, call, dtype

_PLAIN = {
    "llvm.intr.assume": "tl.assume",
    "tlx.clock64": "tlx.clock64",
    "tlx.cluster_cta_rank": "tlx.cluster_cta_rank",
    "tlx.cluster_size": "tlx.cluster_size_1d",
    "tlx.fence_mbarrier_init_cluster": "tlx.fence_mbarrier_init_cluster",
    "tt.grid_dependency_launch_dependents": "tl.extra.cuda.gdc_launch_dependents",
    "tt.grid_dependency_wait": "tl.extra.cuda.gdc_wait",
    "tt.join": "tl.join",
    "tt.split": "tl.split",
    "ttg.barrier": "tl.debug_barrier",
    "ttng.fence_async_shared": "tlx.fence_async_shared",
    "ttng.fence_mbarrier_init_release_cluster": "tlx.fence_mbarrier_init_cluster",
    "ttng.tmem_copy": "tlx.tmem_copy",
}
"""Functions whose arguments are the operands in order."""


@handles(*_PLAIN)
def _plain(fn: Function, op: Any) -> Text:
    return call(_PLAIN[op.name], *(fn.typed(value) for value in op.operands))


@handles("tlx.fence")
def _fence(fn: Function, op: Any) -> Text:
    return call("tlx.fence", f'"{FenceScope(prop(op, "scope")).keyword}"')


@handles("tlx.vote_ballot")
def _vote(fn: Function, op: Any) -> Text:
    return call("tlx.vote_ballot_sync", fn.number_or_text(op.mask), fn.typed(op.pred))


@handles("tlx.stoch_round")
def _stochastic_rounding(fn: Function, op: Any) -> Text:
    return call("tlx.stoch_round", fn.typed(op.src), dtype(op.result.type), fn.typed(op.rand_bits))


@handles("tlx.prefetch")
def _prefetch(fn: Function, op: Any) -> Text:
    level = f'"{CacheLevel(prop(op, "level")).keyword}"'
    return call("tlx.prefetch", fn.typed(op.src), level, mask=fn.optional(op.mask))


@handles("tlx.prefetch_tensormap")
def _prefetch_descriptor(fn: Function, op: Any) -> Text:
    return fn.call("tlx.prefetch", op.desc, tensormap=True)
