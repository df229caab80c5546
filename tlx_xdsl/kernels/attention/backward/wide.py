"""The launches of attention's backward pass for heads of more than 128 elements: dK and dV, and dQ, each in a kernel.

`wide_device` and `dq` are the kernels. All results have the same bits at each
call.
"""

from __future__ import annotations

from dataclasses import replace

from tlx_xdsl.kernels.calls.launching import Launches, check_hopper, multiprocessors
from tlx_xdsl.kernels.calls.operands import empty
from tlx_xdsl.language.core import constexpr

from ..config import pieces_of
from ..operands import check_rows, factor_of
from ..sequences import Grid
from .config import (
    CONSUMER_KEYS,
    PIECE,
    Tiling,
    WideBackwardConfig,
    choose_wide_config,
)
from .dq import attention_backward_dq
from .operands import COUNTERS, NAME, Problem, heads_together
from .wide_device import attention_backward_wide

_BLOCK = CONSUMER_KEYS
"""Queries and keys of a block."""

_DQ_CONSUMERS = 2


def wide_launches(
    problem: Problem, causal: bool, scale: float | None, config: WideBackwardConfig | None, programs: int | None = None
) -> Launches:
    """The launches for heads that `is_wide` says are; `programs` share the tiles. Raises as `attention_backward`."""
    batch, heads, queries, dim = problem.q.shape
    kv_heads, keys = problem.k.shape[1:3]
    v_dim = problem.v.shape[3]
    causal = bool(causal)
    chosen = config or choose_wide_config(dim, v_dim)
    blocks = -(-queries // _BLOCK)
    rows = batch * heads * blocks * _BLOCK
    check_rows(problem.q, blocks * _BLOCK)
    factor = factor_of(NAME, scale, dim)
    check_hopper(NAME, problem.q)
    workspace = empty(problem.q, (COUNTERS + 2 * rows,), "fp32")
    counter, stats = workspace[:COUNTERS], workspace[COUNTERS:]
    # A power of two: what reads O and dO has it in one piece.
    before = problem.before(_BLOCK, 1 << (v_dim - 1).bit_length(), stats, counter)

    shared = {"stats_ptr": stats, "counter_ptr": counter, "sm_scale": factor}
    pieces = pieces_of(dim, PIECE), pieces_of(v_dim, PIECE)
    tiling = Tiling(2, chosen.registers, _BLOCK, chosen.stages, *pieces, causal)
    places = programs or multiprocessors(problem.q)
    main = problem.products(attention_backward_wide, tiling, _BLOCK, places, int(causal), shared)
    q_tiles = -(-queries // (_DQ_CONSUMERS * _BLOCK))
    together = heads_together(batch * heads, q_tiles, places, 1) if causal else 1
    dq = problem.launch(
        attention_backward_dq,
        (min(q_tiles * batch * heads, places),),
        {
            **problem.described("q k v do dq", _BLOCK, PIECE),
            **shared,
            "grid": Grid(batch * heads, heads, constexpr(heads // kv_heads), queries, keys, together),
            "num_blocks": blocks,
        },
        {"T": replace(tiling, consumers=_DQ_CONSUMERS, stages=chosen.slots)},
        ("stats_ptr",),
    )
    return Launches((before, main, dq), workspace)
