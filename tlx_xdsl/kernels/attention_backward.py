"""The gradients of attention in half precision on Hopper: `dq, dk, dv = attention_backward(q, k, v, out, lse, dout)`.

The products are in `attention_backward_device`, what comes before and after them in `attention_backward_rows`, the
configurations in `attention_backward_config`. What `attention_forward` takes is taken here, with its results:

    out, lse = attention_forward(q, k, v, causal=True, return_lse=True)
    dq, dk, dv = attention_backward(q, k, v, out, lse, dout, causal=True)

`attention_forward` of torch's tensors calls it for their gradients (`operator_attention`).

Heads have any multiple of 8 elements up to 128, those of V may have others than those of Q and K: zeros fill the
kernels' blocks.

Sums are in f32, of dQ too: each is rounded once. Programs add to dQ in any order, so that its last bits differ from
call to call; with `deterministic=True` they add in one order, and wait for each other.

Arrays of numpy, and torch's tensors on the CPU, go through the interpreter, which is for looking, not for speed.
"""

from __future__ import annotations

import sys
from itertools import accumulate
from typing import Any, NamedTuple

from tlx_xdsl.kernels import operator_attention
from tlx_xdsl.kernels.attention_backward_config import CONSUMER_KEYS, WIDTHS, BackwardConfig, choose_config, width_of
from tlx_xdsl.kernels.attention_backward_device import attention_backward as backward_kernel
from tlx_xdsl.kernels.attention_backward_rows import attention_backward_after, attention_backward_before
from tlx_xdsl.kernels.attention_operands import (
    DTYPES,
    check_heads,
    check_lse,
    check_rows,
    described_heads,
    factor_of,
    readable_heads,
    strides_in_units,
)
from tlx_xdsl.kernels.launching import Launch, Launches, check_hopper, multiprocessors
from tlx_xdsl.kernels.operands import Operand, check_shape, check_types, describe, empty, operand
from tlx_xdsl.kernels.planned_function import PlannedFunction
from tlx_xdsl.kernels.plans import WORKSPACE, Prepared

ROWS = 32
"""Queries of a program before and after the products: 8 to 16 elements for each thread."""

COUNTERS = 8
"""Numbers of 32 bits for the counter of tiles, of which the first is used: 32 bytes."""

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
    config: BackwardConfig | None = None,
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
    config: BackwardConfig | None = None,
    programs: int | None = None,
) -> Launches:
    """The launches of `attention_backward`, to be bound once and repeated; there must be queries.

    `programs` is how many share the tiles of keys, by default the GPU's multiprocessors. Raises as
    `attention_backward` does.
    """
    problem = _Problem.of(q, k, v, out, lse, dout, dlse, dq, dk, dv)
    return problem.launches(causal, scale, deterministic, config, programs)


_NAME = "attention_backward"


def _prepare(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    q, k, v, out, lse, dout, dlse, dq, dk, dv = tensors
    like = {name: operand(_NAME, name, value) for name, value in (("q", q), ("k", k), ("v", v))}
    dq = empty(like["q"], like["q"].shape) if dq is None else dq
    dk = empty(like["k"], like["k"].shape) if dk is None else dk
    dv = empty(like["v"], like["v"].shape) if dv is None else dv
    given = (q, k, v, out, lse, dout, dlse, dq, dk, dv)
    problem = _Problem.of(*given)
    named = dict(zip(_Problem._fields, given, strict=True))
    if 0 in problem.q.shape:
        dk[...] = 0
        dv[...] = 0
        return Prepared(named)
    launches = problem.launches(*options)
    return Prepared({**named, WORKSPACE: launches.workspace}, launches.parts)


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
    _NAME, _prepare, results=slice(7, 10), operator=operator_attention.ATTENTION_BACKWARD, adapt=_as_they_run
)


class _Problem(NamedTuple):
    """The tensors, checked."""

    q: Operand
    k: Operand
    v: Operand
    out: Operand
    lse: Operand
    dout: Operand
    dlse: Operand | None
    dq: Operand
    dk: Operand
    dv: Operand

    @classmethod
    def of(cls, *tensors: Any) -> _Problem:
        named = zip(cls._fields, tensors, strict=True)
        of: Any = [None if name == "dlse" and value is None else operand(_NAME, name, value) for name, value in named]
        found = cls(*of)
        check_heads(found.q, found.k, found.v, head_dims=None)
        if (longest := max(found.q.shape[3], found.v.shape[3])) > WIDTHS[-1]:
            raise ValueError(f"{_NAME}: expected heads of at most {WIDTHS[-1]} elements, got {longest}")
        check_types([found.q, found.k, found.v, found.out, found.dout, found.dq, found.dk, found.dv], DTYPES)
        for each, like in ((found.dq, found.q), (found.dk, found.k), (found.dv, found.v)):
            check_shape(each, like.shape, f"that of '{like.name}'")
        for each in (found.out, found.dout):
            check_shape(each, (*found.q.shape[:3], found.v.shape[3]), "that of 'q', with the head dim of 'v'")
        check_lse(found.q, found.lse)
        if found.dlse is not None:
            check_lse(found.q, found.dlse)
        return found

    def launches(
        self,
        causal: bool,
        scale: float | None,
        deterministic: bool,
        config: BackwardConfig | None,
        programs: int | None = None,
    ) -> Launches:
        batch, heads, queries, dim = self.q.shape
        kv_heads, keys = self.k.shape[1:3]
        v_dim = self.v.shape[3]
        width = width_of(dim, v_dim)
        chosen = config or choose_config(dim, v_dim)
        blocks = -(-queries // chosen.block_m)
        padded = blocks * chosen.block_m
        check_rows(self.q, padded)
        factor = factor_of(_NAME, scale, dim)
        check_hopper(_NAME, self.q)
        for each in (self.out, self.dout, self.dq):
            described_heads(each, ROWS, width)  # threads move 16 bytes of them at a time

        rows = batch * heads * padded
        ends = list(accumulate((COUNTERS, 2 * rows, width * rows, batch * heads * blocks if deterministic else 0)))
        workspace = empty(self.q, (ends[-1],), "fp32")
        counter, stats, sums, added = (workspace[begin:end] for begin, end in zip([0, *ends], ends, strict=False))
        sizes = {"HEADS": heads, "Q_LENGTH": queries}
        grid = (batch * heads, padded // ROWS)
        before = self._launch(
            attention_backward_before,
            grid,
            {
                "out_ptr": self.out.value,
                "dout_ptr": self.dout.value,
                "lse_ptr": self.lse.value,
                "dlse_ptr": None if self.dlse is None else self.dlse.value,
                "stats_ptr": stats,
                "sums_ptr": sums,
                "counter_ptr": counter,
                "added_ptr": added if deterministic else None,
                **strides_in_units(self.out, "out"),
                **strides_in_units(self.dout, "dout"),
                **sizes,
                "BLOCKS": blocks,
            },
            {"BLOCK_M": chosen.block_m, "HEAD_DIM": width, "V_DIM": width, "V_ELEMENTS": v_dim, "ROWS": ROWS},
            ("out_ptr", "dout_ptr", "stats_ptr", "sums_ptr"),
        )
        constants = {
            "GROUP": heads // kv_heads,
            "CONSUMERS": chosen.consumers,
            "REGISTERS": chosen.registers,
            "BLOCK_M": chosen.block_m,
            "HEAD_DIM": width,
            "NUM_STAGES": chosen.stages,
            "CAUSAL": bool(causal),
            # A causal mask hides keys after the end from all queries, where there are not more of those.
            "EVEN": keys % chosen.block_n == 0 or (causal and keys >= queries),
        }
        tiles = -(-keys // chosen.block_n)
        places = programs or multiprocessors(self.q)
        least = HEADS_IN_ORDER[bool(causal)] if deterministic else 1
        together = heads_together(batch * kv_heads, tiles, places, least) if causal or deterministic else 1
        main = self._launch(
            backward_kernel,
            (min(tiles * batch * kv_heads, places),),
            {
                "q_desc": described_heads(self.q, chosen.block_m, width),
                "k_desc": described_heads(self.k, CONSUMER_KEYS, width),
                "v_desc": described_heads(self.v, CONSUMER_KEYS, width),
                "do_desc": described_heads(self.dout, chosen.block_m, width),
                "dk_desc": described_heads(self.dk, CONSUMER_KEYS, width),
                "dv_desc": described_heads(self.dv, CONSUMER_KEYS, width),
                "stats_ptr": stats,
                "counter_ptr": counter,
                "added_ptr": added if deterministic else None,
                "sums_desc": describe(sums, (rows, width), (width, 1), (64, 64)),
                "sm_scale": factor,
                "BATCH_HEADS": batch * kv_heads,
                "KV_HEADS": kv_heads,
                "Q_LENGTH": queries,
                "KV_LENGTH": keys,
                "HEADS_TOGETHER": together,
            },
            constants,
            ("stats_ptr",),
        )
        after = self._launch(
            attention_backward_after,
            grid,
            {
                "sums_ptr": sums,
                "dq_ptr": self.dq.value,
                **strides_in_units(self.dq, "dq"),
                "scale": factor,
                **sizes,
                "PADDED": padded,
            },
            {"HEAD_DIM": width, "ELEMENTS": dim, "ROWS": ROWS},
            ("sums_ptr", "dq_ptr"),
        )
        return Launches((before, main, after), workspace)

    def _launch(
        self,
        kernel: Any,
        grid: tuple[int, ...],
        values: dict[str, Any],
        constants: dict[str, Any],
        aligned: tuple[str, ...],
    ) -> Launch:
        return Launch.of(kernel, grid, values, constants, self.q.device, _SOURCES, aligned)


def heads_together(heads: int, tiles: int, programs: int, least: int) -> int:
    """How many heads take their tiles in turn, so that programs have tiles of like lengths: a divisor of `heads`.

    More than the programs have at a time, or `least`, would leave the L2 cache between two of their tiles.
    """
    return max(each for each in range(1, heads + 1) if heads % each == 0 and each <= max(least, programs // tiles))


_SOURCES = {
    "q_desc": "q",
    "k_desc": "k",
    "v_desc": "v",
    "do_desc": "dout",
    "dk_desc": "dk",
    "dv_desc": "dv",
    "out_ptr": "out",
    "dout_ptr": "dout",
    "lse_ptr": "lse",
    "dlse_ptr": "dlse",
    "dq_ptr": "dq",
    "stats_ptr": WORKSPACE,
    "counter_ptr": WORKSPACE,
    "added_ptr": WORKSPACE,
    "sums_ptr": WORKSPACE,
    "sums_desc": WORKSPACE,
}
