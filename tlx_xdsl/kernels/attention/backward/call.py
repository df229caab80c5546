"""The gradients of attention in half precision on Hopper: `dq, dk, dv = attention_backward(q, k, v, out, lse, dout)`.

The products are in `device`, what comes before and after them in `rows`, the configurations in `config`. Heads of more
than 128 elements have dK and dV in a kernel (`wide_device`), and dQ in another one (`dq`).
What `attention_forward` takes is taken here, with its results:

    out, lse = attention_forward(q, k, v, causal=True, return_lse=True)
    dq, dk, dv = attention_backward(q, k, v, out, lse, dout, causal=True)

`attention_forward` of torch's tensors calls it for their gradients (`operators/attention`).

Heads have any multiple of 8 elements up to 256, those of V may have others than those of Q and K: zeros fill the
kernels' blocks.

Sums are in f32, of dQ too: each is rounded once. Programs add to dQ in any order, so that its last bits differ from
call to call; with `deterministic=True` they add in one order, and wait for each other. Heads of more than 128 elements
have one order always.

Arrays of numpy, and torch's tensors on the CPU, go through the interpreter, which is for looking, not for speed.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import accumulate
from typing import Any

from ...calls.launching import Launches, check_hopper, multiprocessors
from ...calls.operands import describe, empty
from ...calls.planned_function import PlannedFunction
from ...calls.plans import Prepared
from ...operators import attention as operators
from ..config import Pieces, pieces_of
from ..operands import (
    by_name,
    check_config,
    check_rows,
    described_heads,
    factor_of,
    operands_of,
    prepared,
    readable_heads,
    strides_in_units,
)
from .config import (
    PART,
    PIECE,
    AnyConfig,
    BackwardConfig,
    Tiling,
    WideBackwardConfig,
    choose_config,
    choose_wide_config,
    is_wide,
    width_of,
)
from .device import attention_backward as backward_kernel
from .dq import attention_backward_dq
from .operands import COUNTERS, NAME, ROWS, Problem
from .rows import attention_backward_after
from .wide_device import attention_backward_wide

HEADS_IN_ORDER = (4, 16)
"""Heads that take their tiles in turn at least where tiles of a head wait for each other, without and with a mask.

Programs are then seldom at tiles of one head that follow each other. More wins nothing more (H200, heads of 64 and 128
elements, 1k to 16k keys), but leaves the L2 cache.
"""


def attention_backward(
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    lse: Any,
    dout: Any,
    *,
    dlse: Any = None,
    causal: bool = False,
    scale: float | None = None,
    dq: Any = None,
    dk: Any = None,
    dv: Any = None,
    deterministic: bool = False,
    config: AnyConfig | None = None,
) -> tuple[Any, Any, Any]:
    """Return the gradients (dq, dk, dv) of a loss whose gradient for `attention_forward`'s `out` is `dout`.

    `q`, `k`, `v`, `causal` and `scale` are what `attention_forward` had, `out` and `lse` what it gave; `dlse` is the
    loss's gradient for `lse`, if it has one. `dq`, `dk` and `dv` receive the results where they are given, of the
    shapes of `q`, `k` and `v`. With `deterministic`, or where torch's switch says so
    (`torch.use_deterministic_algorithms`), the same bits come out at each call. A `dout` or an `out` of torch's that
    TMA can't read is copied.

    Raises TypeError for what is no tensor of fp16 or bf16, ValueError for shapes that do not fit, head dimensions
    that it does not take, a scale that is not positive, strides or addresses that TMA can't read and tensors in
    different places, RuntimeError on a GPU that is not Hopper.
    """
    return ATTENTION_BACKWARD((q, k, v, out, lse, dout, dlse, dq, dk, dv), (causal, scale, deterministic, config))


def attention_backward_launch(
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    lse: Any,
    dout: Any,
    dq: Any,
    dk: Any,
    dv: Any,
    *,
    dlse: Any = None,
    causal: bool = False,
    scale: float | None = None,
    deterministic: bool = False,
    config: AnyConfig | None = None,
    programs: int | None = None,
) -> Launches:
    """The launches of `attention_backward`, to be bound once and repeated; there must be queries.

    `programs` is how many share the tiles of keys, by default the GPU's multiprocessors. Raises as
    `attention_backward` does.
    """
    problem = Problem.of(q, k, v, out, lse, dout, dlse, dq, dk, dv)
    return _launches(problem, causal, scale, deterministic, config, programs)


def _prepare(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    named = by_name(Problem._fields, tensors)
    for each in operands_of(NAME, **{name: named[name] for name in "qkv"}):
        if named[f"d{each.name}"] is None:
            named[f"d{each.name}"] = empty(each, each.shape)
    problem = Problem.of(*named.values())
    is_empty = 0 in problem.q.shape
    if is_empty:
        named["dk"][...] = 0
        named["dv"][...] = 0
    return prepared(named, {}, is_empty, lambda _: _launches(problem, *options))


def _as_they_run(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Gradients come in any order of memory, and torch's switch may change between calls."""
    q, k, v, out, lse, dout, dlse, *results = tensors
    if callable(getattr(dlse, "contiguous", None)):
        dlse = dlse.contiguous()
    causal, scale, deterministic, config = options
    torch = sys.modules.get("torch")  # who has set its switch has imported it
    wanted = deterministic or (torch is not None and torch.are_deterministic_algorithms_enabled())
    return (q, k, v, readable_heads(out), lse, readable_heads(dout), dlse, *results), (causal, scale, wanted, config)


ATTENTION_BACKWARD = PlannedFunction(
    NAME, _prepare, results=slice(7, 10), operator=operators.ATTENTION_BACKWARD, adapt=_as_they_run
)


def _launches(
    problem: Problem,
    causal: bool,
    scale: float | None,
    deterministic: bool,
    config: AnyConfig | None,
    programs: int | None = None,
) -> Launches:
    batch, heads, queries, dim = problem.q.shape
    v_dim = problem.v.shape[3]
    wide = is_wide(dim, v_dim)
    check_config(NAME, config, WideBackwardConfig if wide else BackwardConfig, f"heads of {dim} and {v_dim} elements")
    chosen = config or (choose_wide_config if wide else choose_config)(dim, v_dim)
    # Of a wide head a power of two: what reads O and dO has it in one piece.
    width = 1 << (v_dim - 1).bit_length() if wide else width_of(dim, v_dim)
    blocks = -(-queries // chosen.block_m)
    padded = blocks * chosen.block_m
    check_rows(problem.q, padded)
    factor = factor_of(NAME, scale, dim)
    check_hopper(NAME, problem.q)

    rows = batch * heads * padded
    numbers = (0, 0) if wide else (width * rows, batch * heads * blocks if deterministic else 0)
    ends = list(accumulate((COUNTERS, 2 * rows, *numbers)))
    workspace = empty(problem.q, (ends[-1],), "fp32")
    counter, stats, *parts = (workspace[begin:end] for begin, end in zip([0, *ends], ends, strict=False))
    sums, added = (part if number else None for part, number in zip(parts, numbers, strict=True))
    before = problem.before(chosen.block_m, width, stats, counter, sums, added)
    pieces = (pieces_of(dim, PIECE), pieces_of(v_dim, PIECE)) if wide else (Pieces(width, 1), Pieces(width, 1))
    tiling = Tiling(chosen.consumers, chosen.registers, chosen.block_m, chosen.stages, *pieces, bool(causal))
    places = programs or multiprocessors(problem.q)
    least = HEADS_IN_ORDER[tiling.causal] if deterministic and not wide else int(tiling.causal)
    values = {"stats_ptr": stats, "counter_ptr": counter, "sm_scale": factor}
    if isinstance(chosen, WideBackwardConfig):
        of_queries = replace(tiling, stages=chosen.slots), problem.q, chosen.block_n, places, least
        main = problem.products(attention_backward_wide, tiling, problem.k, chosen.block_m, places, least, values)
        values["num_blocks"] = blocks
        return Launches((before, main, problem.products(attention_backward_dq, *of_queries, values)), workspace)
    described_heads(problem.dq, ROWS, width)  # threads move 16 bytes of it at a time
    one_order = describe(sums, (rows * width // PART, PART), (PART, 1), (PART, PART)) if deterministic else None
    values |= {"added_ptr": added, "sums_desc": one_order, "sums_ptr": None if deterministic else sums}
    main = problem.products(backward_kernel, tiling, problem.k, chosen.block_n, places, least, values)
    after = problem.launch(
        attention_backward_after,
        (batch * heads, padded // ROWS),
        {
            "sums_ptr": sums,
            "dq_ptr": problem.dq,
            "strides": strides_in_units(problem.dq),
            "scale": factor,
            "HEADS": heads,
            "Q_LENGTH": queries,
            "PADDED": padded,
        },
        {"HEAD_DIM": width, "ELEMENTS": dim, "ROWS": ROWS, "PART": PART},
        ("sums_ptr", "dq_ptr"),
    )
    return Launches((before, main, after), workspace)
