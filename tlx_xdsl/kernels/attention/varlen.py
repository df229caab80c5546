"""Attention forward of sequences of many lengths in one tensor: `attention_varlen(q, k, v, cu_seqlens)`.

Tensors are (rows of all sequences, heads, head dim), in any order of memory whose last dimension is contiguous, such as
parts of one (rows, 3, heads, dim). Prefix sums on the GPU say where sequences begin and end: the host never waits for
them, and a plan or a captured graph serves all sums. The kernel is in `device`.

    out = attention_varlen(q, k, v, cu_seqlens, causal=True)
    out, lse = attention_varlen(q, k, v, cu_seqlens_q, cu_seqlens_k, return_lse=True)

Types, head dimensions and options are those of `attention_forward`. There is no gradient yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tlx_xdsl.runtime.launch.tensor_descriptor import TensorDescriptor

from ..calls.launching import Launch, Launches, check_hopper, multiprocessors
from ..calls.operands import Operand, check_shape, check_types, describe, empty
from ..calls.planned_function import PlannedFunction
from ..calls.plans import Prepared
from ..gemm.grouped.call import LARGEST_EXTENT, MAX_ROWS
from ..operators import attention as operators
from .config import CONSUMER_ROWS, AttentionConfig
from .device import attention, clear_counter
from .operands import DTYPES, check_config, check_heads, check_plain, described_heads, operands_of, prepared
from .options import (
    Limits,
    Options,
    arguments_of,
    config_for,
    facts_of,
    limits_of,
    named_tensors,
    read_options,
)
from .sequences import Sequences

CACHED_BYTES = 16 << 20
"""K and V of the heads that take their tiles in turn: a third of the L2 cache, which all programs use at once."""

COUNTERS = 4
"""Numbers of 32 bits for the counter of tiles, of which the first is used."""


def attention_varlen(
    q: Any,
    k: Any,
    v: Any,
    cu_seqlens_q: Any,
    cu_seqlens_k: Any = None,
    *,
    causal: bool = False,
    scale: float | None = None,
    window: tuple[int | None, int | None] | None = None,
    align: str = "top-left",
    softcap: float | None = None,
    sinks: Any = None,
    score_mod: Any = None,
    score_args: Sequence[Any] = (),
    out: Any = None,
    return_lse: bool = False,
    config: AttentionConfig | None = None,
) -> Any:
    """Return `attention_forward` of each sequence: its queries see its own keys only.

    q: (rows, heads, dim); k, v: (rows of keys, heads of k and v, dim). Sequence i has the rows cu_seqlens_q[i] to
    cu_seqlens_q[i + 1], and the keys that `cu_seqlens_k` says, by default the same; both are int32, have one number
    more than there are sequences, begin with 0 and do not fall. Sequences may be empty; a query without keys gives 0.
    Rows after the last sequence are not written. With `return_lse` the result is (out, lse), of (heads, rows). The
    numbers of queries and keys that `score_mod` takes, and those of `window`, count from the start of a sequence; its
    batch is the number of the sequence.

    Raises as `attention_forward` does, and TypeError for sums that are not int32.
    """
    options, tensors = read_options(_NAME, causal, window, align, softcap, score_mod, score_args)
    keys = cu_seqlens_q if cu_seqlens_k is None else cu_seqlens_k
    out, lse = ATTENTION_VARLEN(
        (q, k, v, out, None, cu_seqlens_q, keys, sinks, *tensors), (options, scale, config)
    )  # fmt: skip
    return (out, lse) if return_lse else out


def attention_varlen_launch(
    q: Any, k: Any, v: Any, cu_seqlens_q: Any, cu_seqlens_k: Any, out: Any, lse: Any,
    *, scale: float | None = None, sinks: Any = None, score_args: Sequence[Any] = (),
    config: AttentionConfig | None = None, programs: int | None = None, **options: Any,
) -> Launches:  # fmt: skip
    """The launches of `varlen`, to be bound once and repeated; no extent may be 0.

    `lse` is contiguous. `programs` is how many share the tiles, by default the GPU's multiprocessors. `options` are
    `causal`, `window`, `align`, `softcap` and `score_mod`. Raises as `varlen` does.
    """
    asked, tensors = read_options(_NAME, score_args=score_args, **options)
    given = (q, k, v, out, lse, cu_seqlens_q, cu_seqlens_k, sinks, *tensors)
    return _launches(named_tensors(_TENSORS, asked, given), asked, scale, config, programs)


_NAME = "attention_varlen"
_TENSORS = ("q", "k", "v", "out", "lse", "q_sums", "k_sums", "sinks")


def _prepare(tensors: tuple[Any, ...], settings: tuple[Any, ...]) -> Prepared:
    named = named_tensors(_TENSORS, settings[0], tensors)
    problem = _Problem.of(named)
    rows, heads, _ = problem.q.shape
    results = {
        "out": lambda: empty(problem.q, (rows, heads, problem.v.shape[2])),
        "lse": lambda: empty(problem.q, (heads, rows), "fp32"),
    }
    is_empty = 0 in problem.q.shape or not problem.sequences
    return prepared(named, results, is_empty, lambda named: _launches(named, *settings))


ATTENTION_VARLEN = PlannedFunction(_NAME, _prepare, results=slice(3, 5), operator=operators.ATTENTION_VARLEN)


class _Problem(NamedTuple):
    """The inputs, checked."""

    q: Operand
    k: Operand
    v: Operand
    sequences: int

    @classmethod
    def of(cls, named: Mapping[str, Any]) -> _Problem:
        q, k, v = heads = operands_of(_NAME, **{name: named[name] for name in _TENSORS[:3]})
        for each in heads:
            if len(each.shape) != 3:
                raise ValueError(f"{each.what}: expected (rows, heads, head dim), got the shape {each.shape}")
            if each.shape[0] * each.shape[1] > LARGEST_EXTENT or each.shape[0] > MAX_ROWS:
                raise ValueError(f"{each.what}: expected at most {MAX_ROWS} rows, got {each.shape[0]}")
        check_heads(*map(_as_batch, heads))
        sums = operands_of(_NAME, cu_seqlens_q=named["q_sums"], cu_seqlens_k=named["k_sums"])
        for each in sums:
            if len(each.shape) != 1 or not each.shape[0]:
                raise ValueError(f"{each.what}: expected one contiguous dimension with elements, got {each.shape}")
            check_plain(q, each, ("i32",), sums[0].shape, "that of 'cu_seqlens_q'")
        return cls(q, k, v, sums[0].shape[0] - 1)


def _as_batch(each: Operand) -> Operand:
    """(rows, heads, dim) as (1, heads, rows, dim)."""
    rows, heads, dim = each.shape
    row, head, element = each.strides
    return Operand(
        each.function, each.name, each.value, (1, heads, rows, dim), (row * rows, head, row, element), each.dtype,
        each.device,
    )  # fmt: skip


def _ragged(each: Operand, rows: int, columns: int) -> TensorDescriptor:
    """A descriptor of rows that are cut where a sequence ends; `gemm/grouped/parts` explains its numbers."""
    _, heads, dim = each.shape
    _, head, row, _ = described_heads(_as_batch(each), rows, columns).strides
    shape = (LARGEST_EXTENT, LARGEST_EXTENT, heads, MAX_ROWS, dim)
    return describe(each.value, shape, ((1 << 34) - row, row, head, row, 1), (1, 1, 1, rows, columns), each.name)


def heads_together(heads: int, group: int, keys: int, row_bytes: int) -> int:
    """Return how many heads take their tiles in turn, of sequences of so many keys: as many as the cache holds.

    They divide all heads. `row_bytes` are those of a row of K and of V.
    """
    fitting = [
        count
        for count in range(1, heads + 1)
        if heads % count == 0 and -(-count // group) * keys * row_bytes <= CACHED_BYTES
    ]
    return max(fitting, default=1)


def _launches(
    named: Mapping[str, Any],
    options: Options,
    scale: float | None,
    config: AttentionConfig | None,
    programs: int | None = None,
) -> Launches:
    q, k, v, sequences = _Problem.of(named)
    rows, heads, dim = q.shape
    keys, kv_heads, v_dim = v.shape
    result, lse = operands_of(_NAME, out=named["out"], lse=named["lse"])
    check_types((q, result), DTYPES)
    check_shape(result, (rows, heads, v_dim), "that of 'q', with the head dim of 'v'")
    check_plain(q, lse, ("fp32",), (heads, rows), "heads and rows of 'q'")
    lower, upper = limits_of(options)
    is_causal = upper == 0 and options.align == "top-left"
    limits = Limits(is_causal, lower, None if is_causal else upper)
    arguments = arguments_of(_as_batch(q), named, options, limits, scale)
    check_config(_NAME, config, AttentionConfig, f"tensors of {q.dtype}")
    check_hopper(_NAME, q)

    group = heads // kv_heads
    chosen = config or config_for(options, is_causal, dim, v_dim, -(-rows // sequences))
    is_limited = not (lower is None and upper is None)
    tiling = chosen.tiling(
        dim, v_dim, may_be_empty=True, sequences=True, bottom_right=options.align == "bottom-right" and is_limited,
        **facts_of(options, limits),
    )  # fmt: skip
    of_q, of_k = operands_of(_NAME, q_sums=named["q_sums"], k_sums=named["k_sums"])
    counter = empty(q, (COUNTERS,), "fp32")
    together = heads_together(heads, group, -(-keys // sequences), (dim + v_dim) * 2)
    arguments |= {
        "q_desc": described_heads(_as_batch(q), CONSUMER_ROWS, tiling.qk.elements),
        "k_desc": described_heads(_as_batch(k), chosen.block_n, tiling.qk.elements),
        "v_desc": _ragged(v, chosen.block_n, tiling.v.elements),
        "o_desc": _ragged(result, CONSUMER_ROWS, tiling.v.elements),
        "source": Sequences(of_q, of_k, counter, rows, keys, sequences, heads, group, together),
    }
    # Each sequence may end in a tile that is not full.
    tiles = (rows // chosen.block_m + sequences) * heads
    grid = (min(tiles, programs or chosen.resident * multiprocessors(q)),)
    before = Launch.of(clear_counter, (1,), {"counter_ptr": counter}, {}, q.device, num_warps=1)
    main = Launch.of(attention, grid, arguments, {"T": tiling}, q.device, maxnreg=chosen.maxnreg)
    return Launches((before, main), counter)
