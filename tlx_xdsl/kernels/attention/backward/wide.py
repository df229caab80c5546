"""The launches of attention's backward pass for heads of more than 128 elements: dK and dV, and dQ, each in a kernel.

`wide_device` and `dq` are the kernels. All results have the same bits at each
call.
"""

from __future__ import annotations

from tlx_xdsl.kernels.calls.launching import Launches, check_hopper, multiprocessors
from tlx_xdsl.kernels.calls.operands import empty
from tlx_xdsl.language.core import constexpr

from ..config import Pieces
from ..operands import check_rows, described_heads, factor_of
from ..sequences import Grid
from .config import (
    CONSUMER_KEYS,
    PIECE,
    Tiling,
    WideBackwardConfig,
    choose_wide_config,
    pieces_of,
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

    loaded = {
        "q_desc": described_heads(problem.q, _BLOCK, PIECE),
        "k_desc": described_heads(problem.k, _BLOCK, PIECE),
        "v_desc": described_heads(problem.v, _BLOCK, PIECE),
        "do_desc": described_heads(problem.dout, _BLOCK, PIECE),
    }
    shared = {"stats_ptr": stats, "counter_ptr": counter, "sm_scale": factor}
    group = constexpr(heads // kv_heads)
    pieces = Pieces(PIECE, pieces_of(dim)), Pieces(PIECE, pieces_of(v_dim))
    places = programs or multiprocessors(problem.q)

    tiles = -(-keys // _BLOCK)
    together = heads_together(batch * kv_heads, tiles, places, 1) if causal else 1
    # A causal mask hides keys after the end from all queries, where there are not more of those.
    even = keys % _BLOCK == 0 or (causal and keys >= queries)
    main = problem.launch(
        attention_backward_wide,
        (min(tiles * batch * kv_heads, places),),
        {
            **loaded,
            **shared,
            "dk_desc": described_heads(problem.dk, _BLOCK, PIECE),
            "dv_desc": described_heads(problem.dv, _BLOCK, PIECE),
            "grid": Grid(batch * kv_heads, kv_heads, group, queries, keys, together),
        },
        {"T": Tiling(2, chosen.registers, _BLOCK, chosen.stages, *pieces, causal, even)},
        ("stats_ptr",),
    )
    q_tiles = -(-queries // (_DQ_CONSUMERS * _BLOCK))
    together = heads_together(batch * heads, q_tiles, places, 1) if causal else 1
    dq = problem.launch(
        attention_backward_dq,
        (min(q_tiles * batch * heads, places),),
        {
            **loaded,
            **shared,
            "dq_desc": described_heads(problem.dq, _BLOCK, PIECE),
            "grid": Grid(batch * heads, heads, group, queries, keys, together),
            "num_blocks": blocks,
        },
        {"T": Tiling(_DQ_CONSUMERS, chosen.registers, _BLOCK, chosen.slots, *pieces, causal)},
        ("stats_ptr",),
    )
    return Launches((before, main, dq), workspace)
