"""Attention forward on Hopper, in half precision and in fp8: `attention_forward(q, k, v, causal=True)`.

The kernel is in `device`, its configurations in `config`. Tensors are (batch, heads, length,
head dim) in any order of memory whose last dimension is contiguous, such as a transposed (batch, length, heads, dim):
no copy is made. fp16 and bf16, heads of any multiple of 8 elements up to 256, any lengths, also different ones of
queries and keys; K and V may have fewer heads (grouped queries).

    o = attention_forward(q, k, v, causal=True)
    o, lse = attention_forward(q, k, v, return_lse=True)

Of torch's tensors that want gradients both results have them, by `attention_backward`. The scales of e4m3 tensors are
positive f32 tensors of one element, of (heads,) or of (batch, heads), and multiply; those of K and V are for the heads
of K and V. V is transposed by a launch before (`fp8/values`).

Arrays of numpy, and torch's tensors on the CPU, go through the interpreter, which is for looking, not for speed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tlx_xdsl.runtime.launch.tensor_descriptor import dtype_name

from ..calls.launching import Launch, Launches, check_hopper, multiprocessors
from ..calls.operands import (
    Operand,
    check_places,
    check_shape,
    check_types,
    empty,
    operand,
    torch_module,
    type_of_result,
)
from ..calls.planned_function import PlannedFunction
from ..calls.plans import WORKSPACE, Prepared
from ..operators import attention as operators
from .backward.call import ATTENTION_BACKWARD
from .config import CONSUMER_ROWS, FP8_HEAD_DIMS, OUT_DTYPES, AttentionConfig, AttentionFp8Config, choose_fp8_config
from .device import attention
from .fp8.values import attention_fp8_values
from .operands import (
    DTYPES,
    FP8_DTYPES,
    check_config,
    check_heads,
    check_lse,
    check_rows,
    described_heads,
    operands_of,
    prepared,
    scale_of,
    scale_strides,
    strides_in_units,
)
from .options import (
    ALIGNMENTS,
    Options,
    arguments_of,
    config_for,
    facts_of,
    limits_for,
    named_tensors,
    read_options,
    refuse_options,
)
from .scores import Scales
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
    if _is_fp8(q):
        refuse_options(_NAME, "is float8_e4m3fn", window=window, softcap=softcap, sinks=sinks, score_mod=score_mod)
        options = (causal, scale, out_dtype or "bf16", config)
        found = ATTENTION_FP8((q, k, v, out, None, q_scale, k_scale, v_scale), options)
        return found if return_lse else found[0]
    others = "is not float8_e4m3fn"
    refuse_options(_NAME, others, q_scale=q_scale, k_scale=k_scale, v_scale=v_scale, out_dtype=out_dtype)
    are_none = window is None and softcap is None and score_mod is None and sinks is None
    asked, tensors = None, ()
    if not (are_none and align == ALIGNMENTS[0] and not len(score_args)):
        asked, tensors = read_options(_NAME, causal, window, align, softcap, score_mod, score_args)
    if asked is None or (asked.is_plain and sinks is None):
        found = ATTENTION((q, k, v, out, None), (causal, scale, config))
    else:
        found = ATTENTION_OPTIONS((q, k, v, out, None, sinks, *tensors), (asked, scale, config))
    return found if return_lse else found[0]


def attention_launch(
    q: Any, k: Any, v: Any, out: Any, lse: Any, *, causal: bool = False, scale: float | None = None,
    window: tuple[int | None, int | None] | None = None, align: str = "top-left", softcap: float | None = None,
    sinks: Any = None, score_mod: Any = None, score_args: Sequence[Any] = (), config: AttentionConfig | None = None,
    programs: int | None = None,
) -> Launch:  # fmt: skip
    """The launch of `attention_forward`, to be bound once and repeated; no extent may be 0.

    `lse` is contiguous. `programs` is how many share the tiles, by default the GPU's multiprocessors. Raises as
    `attention_forward` does.
    """
    asked, tensors = read_options(_NAME, causal, window, align, softcap, score_mod, score_args)
    named = named_tensors(_TENSORS, asked, (q, k, v, out, lse, sinks, *tensors))
    return _launches(named, asked, scale, config, programs).parts[0]


def attention_fp8_launch(
    q: Any, k: Any, v: Any, out: Any, lse: Any, *, q_scale: Any = None, k_scale: Any = None, v_scale: Any = None,
    causal: bool = False, scale: float | None = None, config: AttentionFp8Config | None = None,
    programs: int | None = None,
) -> Launches:  # fmt: skip
    """The launches of `attention_forward` of e4m3 tensors, as `attention_launch` has that of others."""
    asked = Options(bool(causal))
    named = named_tensors(_FP8_TENSORS, asked, (q, k, v, out, lse, q_scale, k_scale, v_scale))
    return _launches(named, asked, scale, config, programs)


_NAME = "attention_forward"
BLOCK_KEYS = 128
"""Keys of a program that transposes V; the transposed rows are padded to a multiple of it."""

_TENSORS = ("q", "k", "v", "out", "lse", "sinks")
_SCALES = ("q_scale", "k_scale", "v_scale")
_FP8_TENSORS = (*_TENSORS[:-1], *_SCALES)


class _Problem(NamedTuple):
    """The inputs, checked; of e4m3 tensors with their scales."""

    q: Operand
    k: Operand
    v: Operand
    scales: Scales | None = None

    @classmethod
    def of(cls, named: Mapping[str, Any]) -> _Problem:
        q, k, v = heads = operands_of(_NAME, **{name: named[name] for name in _TENSORS[:3]})
        if not _is_fp8(named["q"]):
            check_heads(q, k, v)
            return cls(q, k, v)
        check_heads(q, k, v, dtypes=FP8_DTYPES, head_dims=FP8_HEAD_DIMS)
        found = [scale_of(each, name, named[name]) for each, name in zip(heads, _SCALES, strict=True)]
        of_q, of_k, of_v = found
        return cls(q, k, v, Scales(of_q, of_k, of_v, tuple([scale_strides(each) for each in found])))


def _launches(
    named: Mapping[str, Any],
    options: Options,
    scale: float | None,
    config: AttentionConfig | None,
    programs: int | None = None,
) -> Launches:
    """The launch of a call; of e4m3 tensors that which transposes V goes before."""
    q, k, v, scales = _Problem.of(named)
    batch, heads, queries, dim = q.shape
    kv_heads, keys, v_dim = v.shape[1:]
    result, lse = operands_of(_NAME, out=named["out"], lse=named["lse"])
    if scales is None:
        check_types((q, result), DTYPES)
    else:
        check_types((result,), OUT_DTYPES)
        check_places((q, result))
    check_shape(result, (batch, heads, queries, v_dim), "that of 'q', with the head dim of 'v'")
    check_lse(q, lse)
    check_rows(q, queries)
    limits = limits_for(options, queries, keys)
    arguments = arguments_of(q, named, options, limits, scale)
    check_config(_NAME, config, AttentionConfig if scales is None else AttentionFp8Config, f"tensors of {q.dtype}")
    check_hopper(_NAME, q)

    chosen: AttentionConfig = config or (
        config_for(options, options.causal, dim, v_dim, queries)
        if scales is None
        else choose_fp8_config(dim, options.causal)
    )
    is_limited = not (limits.lower is None and limits.upper is None)
    tiling = chosen.tiling(
        dim, v_dim, even=keys % chosen.block_n == 0, may_be_empty=is_limited or options.score_mod is not None,
        **facts_of(options, limits),
    )  # fmt: skip
    together = batch * heads if chosen.all_heads else 1
    arguments |= {
        "q_desc": described_heads(q, CONSUMER_ROWS, tiling.qk.elements),
        "k_desc": described_heads(k, chosen.block_n, tiling.qk.elements),
        "o_desc": described_heads(result, CONSUMER_ROWS, tiling.v.elements),
        "source": Grid(batch * heads, heads, heads // kv_heads, queries, keys, together),
        "scales": scales,
    }
    before, values = (), None
    if scales is None:
        arguments["v_desc"] = described_heads(v, chosen.block_n, tiling.v.elements)
    else:
        values, launch = _transposed_values(v)
        arguments["v_desc"] = described_heads(operand(_NAME, WORKSPACE, values), dim, chosen.block_n)
        before = (launch,)
    tiles = -(-queries // chosen.block_m) * batch * heads
    grid = (min(tiles, programs or chosen.resident * multiprocessors(q)),)
    main = Launch.of(attention, grid, arguments, {"T": tiling}, q.device, maxnreg=chosen.maxnreg)
    return Launches((*before, main), values)


def _is_fp8(q: Any) -> bool:
    """Return whether a tensor's elements are e4m3."""
    return dtype_name(getattr(q, "dtype", None)) in FP8_DTYPES


def _transposed_values(v: Operand) -> tuple[Any, Launch]:
    """The memory for V as the kernel wants it, (batch, heads, dim, keys), and the launch that writes it."""
    described_heads(v, BLOCK_KEYS)  # threads move 16 bytes at a time
    batch, heads, keys, dim = v.shape
    blocks = -(-keys // BLOCK_KEYS)
    values = empty(v, (batch, heads, dim, blocks * BLOCK_KEYS))
    arguments = {
        "v_ptr": v,
        "words_ptr": values.view(_word_type(values)),
        "strides": strides_in_units(v),
        "KV_HEADS": heads,
        "KV_LENGTH": keys,
        "BLOCKS": blocks,
    }
    constants = {"HEAD_DIM": dim, "KEYS": BLOCK_KEYS}
    grid = (batch * heads, blocks)
    aligned = ("v_ptr", "words_ptr")
    return values, Launch.of(attention_fp8_values, grid, arguments, constants, v.device, aligned=aligned)


def _word_type(values: Any) -> Any:
    """The type of 32-bit integers, where a tensor or an array is from."""
    if hasattr(values, "data_ptr"):
        return torch_module().int32
    return "int32"


def _prepared(
    named: dict[str, Any], options: Options, scale: float | None, config: Any, dtype: str | None = None
) -> Prepared:
    problem = _Problem.of(named)
    rows, v_dim = problem.q.shape[:3], problem.v.shape[3]
    results = {
        "out": lambda: empty(problem.q, (*rows, v_dim), dtype),
        "lse": lambda: empty(problem.q, rows, "fp32"),
    }
    return prepared(named, results, 0 in problem.q.shape, lambda named: _launches(named, options, scale, config))


def _prepare(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    causal, *others = options
    return _prepare_options((*tensors, None), (Options(bool(causal)), *others))


def _prepare_options(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    return _prepared(named_tensors(_TENSORS, options[0], tensors), *options)


def _prepare_fp8(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    causal, scale, out_dtype, config = options
    asked, dtype = Options(bool(causal)), type_of_result(_NAME, out_dtype, OUT_DTYPES)
    return _prepared(named_tensors(_FP8_TENSORS, asked, tensors), asked, scale, config, dtype)


_RESULTS = slice(3, 5)
ATTENTION = PlannedFunction(_NAME, _prepare, results=_RESULTS, operator=operators.attention(ATTENTION_BACKWARD))
ATTENTION_OPTIONS = PlannedFunction(_NAME, _prepare_options, results=_RESULTS, operator=operators.ATTENTION_OPTIONS)
ATTENTION_FP8 = PlannedFunction(_NAME, _prepare_fp8, results=_RESULTS, operator=operators.ATTENTION_FP8)
