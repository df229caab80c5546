"""Attention forward on Hopper, in half precision and in fp8: `attention_forward(q, k, v, causal=True)`.

The kernel is in `device`, its configurations in `config`. Tensors are (batch, heads, length,
head dim) in any order of memory whose last dimension is contiguous, such as a transposed (batch, length, heads, dim):
no copy is made. fp16 and bf16, heads of any multiple of 8 elements up to 256, any lengths, also different ones of
queries and keys; K and V may have fewer heads (grouped queries).

    o = attention_forward(q, k, v, causal=True)
    o, lse = attention_forward(q, k, v, return_lse=True)

Of torch's tensors that want gradients both results have them, by `attention_backward`. What e4m3 tensors come to is in
`attention_fp8`.

Arrays of numpy, and torch's tensors on the CPU, go through the interpreter, which is for looking, not for speed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..calls.launching import Launch, check_hopper, multiprocessors
from ..calls.operands import Operand, check_shape, check_types, empty
from ..calls.planned_function import PlannedFunction
from ..calls.plans import Prepared
from ..operators import attention as operators
from .backward.call import ATTENTION_BACKWARD
from .config import CONSUMER_ROWS, AttentionConfig
from .device import attention
from .fp8.call import ATTENTION_FP8, is_fp8, refuse_fp8_options
from .operands import DTYPES, check_heads, check_lse, check_rows, described_heads, factor_of, operands_of
from .options import (
    ALIGNMENTS,
    OPTION_SOURCES,
    Options,
    check_sinks,
    config_for,
    limits_for,
    named_tensors,
    read_options,
    refuse_options,
    score_arguments,
    turns,
)
from .sequences import Grid


def attention_forward(
    q: Any,
    k: Any,
    v: Any,
    *,
    causal: bool = False,
    scale: float | None = None,
    q_scale: Any = None,
    k_scale: Any = None,
    v_scale: Any = None,
    out_dtype: Any = None,
    out: Any = None,
    return_lse: bool = False,
    window: tuple[int | None, int | None] | None = None,
    align: str = "top-left",
    softcap: float | None = None,
    sinks: Any = None,
    score_mod: Any = None,
    score_args: Sequence[Any] = (),
    config: AttentionConfig | None = None,
) -> Any:
    """Return softmax(q @ k^T * scale) @ v for each head, in the type of `q`; sums and softmax are in f32.

    q: (batch, heads, queries, dim); k, v: (batch, heads of k and v, keys, dim), where each head of `k` and `v` serves
    as many heads of `q` that follow each other. `scale` is dim ** -0.5 by default. With `causal`, query i sees the keys
    0 to i, as in torch's `scaled_dot_product_attention`. `out` receives the result where it is given, of the shape of
    `q`. With `return_lse` the result is (out, lse): the natural logarithm of each row's softmax denominator, in f32,
    (batch, heads, queries).

    The head dim of `v`, and of the result, may be another one. `window` is how many keys before and after its own a
    query sees, (left, right), where None and -1 are no limit; with `align="bottom-right"` the last query stands at the
    last key. `softcap` makes scores softcap * tanh(score / softcap). `sinks`, (heads,), are logits in the denominators.
    `score_mod(score, batch, head, query, key, *score_args)`, a function with `@tlx_xdsl.jit`, computes the scores anew;
    up to four tensors or numbers go with it. A row that sees no key is 0, its logarithm minus infinity. These options
    have no gradient.

    Of e4m3 tensors, `q_scale`, `k_scale` and `v_scale` are positive factors in f32, tensors of one element, of (heads,)
    or of (batch, heads) of the tensor they belong to, and the result is in `out_dtype`, bf16 (the default) or fp16, by
    name or as torch or numpy have it.

    Raises TypeError for what is no tensor of fp16, bf16 or e4m3, and for scales or an `out_dtype` where `q` is not
    e4m3; ValueError for shapes that do not fit, other head dimensions, a scale that is not positive, such options,
    strides or addresses that TMA can't read and tensors in different places; RuntimeError on a GPU that is not Hopper.
    """
    if is_fp8(q):
        refuse_options(_NAME, window=window, softcap=softcap, sinks=sinks, score_mod=score_mod)
        options = (causal, scale, out_dtype or "bf16", config)
        out, lse = ATTENTION_FP8((q, k, v, q_scale, k_scale, v_scale, out, None), options)
        return (out, lse) if return_lse else out
    refuse_fp8_options(q_scale=q_scale, k_scale=k_scale, v_scale=v_scale, out_dtype=out_dtype)
    are_none = window is None and softcap is None and score_mod is None and sinks is None
    if are_none and align == ALIGNMENTS[0] and not len(score_args):
        out, lse = ATTENTION((q, k, v, out, None), (causal, scale, config))
        return (out, lse) if return_lse else out
    options, tensors = read_options(_NAME, causal, window, align, softcap, score_mod, score_args)
    if options.is_plain and sinks is None:
        out, lse = ATTENTION((q, k, v, out, None), (causal, scale, config))
    else:
        out, lse = ATTENTION_OPTIONS((q, k, v, out, None, sinks, *tensors), (options, scale, config))
    return (out, lse) if return_lse else out


def attention_launch(
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    lse: Any,
    *,
    causal: bool = False,
    scale: float | None = None,
    window: tuple[int | None, int | None] | None = None,
    align: str = "top-left",
    softcap: float | None = None,
    sinks: Any = None,
    score_mod: Any = None,
    score_args: Sequence[Any] = (),
    config: AttentionConfig | None = None,
    programs: int | None = None,
) -> Launch:
    """The launch of `attention_forward`, to be bound once and repeated; no extent may be 0.

    `lse` is contiguous. `programs` is how many share the tiles, by default the GPU's multiprocessors. Raises as
    `attention_forward` does.
    """
    options, tensors = read_options(_NAME, causal, window, align, softcap, score_mod, score_args)
    return _launch((q, k, v, out, lse, sinks, *tensors), options, scale, config, programs)


def _launch(
    tensors: tuple[Any, ...],
    options: Options,
    scale: float | None,
    config: AttentionConfig | None,
    programs: int | None = None,
) -> Launch:
    q, k, v, out, lse, sinks, *score_tensors = tensors
    problem = _problem(q, k, v)
    batch, heads, queries, dim = problem.q.shape
    kv_heads, keys, v_dim = problem.v.shape[1:]
    result, sums = operands_of(_NAME, out=out, lse=lse)
    check_types((problem.q, result), DTYPES)
    check_shape(result, (batch, heads, queries, v_dim), "that of 'q', with the head dim of 'v'")
    check_lse(problem.q, sums)
    check_rows(problem.q, queries)
    if sinks is not None:
        check_sinks(problem.q, sinks)
    factor = factor_of(_NAME, scale, dim)
    check_hopper(_NAME, problem.q)

    limits = limits_for(options, queries, keys)
    chosen = config or config_for(options, options.causal, dim, v_dim, queries)
    is_limited = not (limits.lower is None and limits.upper is None)
    tiling = chosen.tiling(
        dim, v_dim, causal=limits.causal, uneven=limits.causal or limits.upper is not None,
        even=keys % chosen.block_n == 0, may_be_empty=is_limited or options.score_mod is not None, **turns(options),
    )  # fmt: skip
    together = batch * heads if chosen.all_heads else 1
    arguments = {
        "q_desc": described_heads(problem.q, CONSUMER_ROWS, tiling.qk.elements),
        "k_desc": described_heads(problem.k, chosen.block_n, tiling.qk.elements),
        "v_desc": described_heads(problem.v, chosen.block_n, tiling.v.elements),
        "o_desc": described_heads(result, CONSUMER_ROWS, tiling.v.elements),
        "lse_ptr": lse,
        "sm_scale": factor,
        "source": Grid(batch * heads, heads, heads // kv_heads, queries, keys, together),
        "lower": limits.lower,
        "upper": limits.upper,
        "softcap": options.softcap,
        "sinks_ptr": sinks,
        "score_args": score_arguments(problem.q, options, score_tensors),
    }
    tiles = -(-queries // chosen.block_m) * batch * heads
    grid = (min(tiles, programs or chosen.resident * multiprocessors(problem.q)),)
    sources = {"q_desc": "q", "k_desc": "k", "v_desc": "v", "o_desc": "out", "lse_ptr": "lse", **OPTION_SOURCES}
    return Launch.of(
        attention, grid, arguments, {"T": tiling}, problem.q.device, sources, maxnreg=chosen.maxnreg
    )  # fmt: skip


_NAME = "attention_forward"


def _prepare(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    causal, scale, config = options
    return _prepare_options((*tensors, None), (Options(causal=bool(causal)), scale, config))


def _prepare_options(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    q, k, v, out, lse, sinks, *score_tensors = tensors
    asked, scale, config = options
    problem = _problem(q, k, v)
    if out is None:
        out = empty(problem.q, (*problem.q.shape[:3], problem.v.shape[3]))
    if lse is None:
        lse = empty(problem.q, problem.q.shape[:3], "fp32")
    named = {"q": q, "k": k, "v": v, "out": out, "lse": lse, "sinks": sinks, **named_tensors(asked, score_tensors)}
    if 0 in problem.q.shape:
        return Prepared(named)
    return Prepared(named, (_launch((q, k, v, out, lse, sinks, *score_tensors), asked, scale, config),))


ATTENTION = PlannedFunction(_NAME, _prepare, results=slice(3, 5), operator=operators.attention(ATTENTION_BACKWARD))
ATTENTION_OPTIONS = PlannedFunction(_NAME, _prepare_options, results=slice(3, 5), operator=operators.ATTENTION_OPTIONS)


class _Problem(NamedTuple):
    q: Operand
    k: Operand
    v: Operand


def _problem(q: Any, k: Any, v: Any) -> _Problem:
    """The inputs, checked."""
    found = _Problem(*operands_of(_NAME, q=q, k=k, v=v))
    check_heads(*found)
    return found
