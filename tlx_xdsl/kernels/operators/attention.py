"""The kinds of attention as operators of torch (`library`).

`attention_forward` and `attention_backward`: the one is the other's gradient. Both results of `attention_forward` have
one. What is saved is what `attention_backward` reads: the inputs and the results. `attention_backward` itself has none:
attention has no second derivative here. Whether the gradient is to have the same bits each time is asked as it is
computed, of torch's switch (`torch.use_deterministic_algorithms`): also in graphs that were made before.

The others have no gradient; of e4m3 tensors, because these were rounded to 8 bits before. Options hold a function of
the user, which goes by its place, as the epilogues of `gemm` do.
"""

# torch is no dependency: what a short function has of its tensors is of unknown type to a checker.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import ast
from typing import Any

from ..attention.backward.config import BackwardConfig, WideBackwardConfig
from ..attention.config import OUT_DTYPES, AttentionConfig, AttentionFp8Config
from ..attention.options import Options
from ..calls.operands import torch_module, torch_type, type_of_result
from . import Gradient, Operator, Run, Values, found_at, operator, place_of


def _like_q_and_v(q: Any, k: Any, v: Any, *rest: Any) -> Any:
    return q.new_empty((*q.shape[:3], v.shape[3]))


def _with_lse(q: Any, k: Any, v: Any, *rest: Any) -> tuple[Any, Any]:
    return _like_q_and_v(q, k, v), q.new_empty(q.shape[:3], dtype=torch_module().float32)


def attention(backward: Run) -> Operator:
    """`attention_forward`, with the gradient that `backward` computes.

    backward: `attention_backward` as a function of (q, k, v, out, lse, dout, dlse, dq, dk, dv) and (causal, scale,
        deterministic, config).
    """

    def save(ctx: Any, tensors: Values, options: Values, results: Any) -> None:
        ctx.save_for_backward(*tensors[:3], *results)
        ctx.causal, ctx.scale, _ = options
        # A loss seldom has a gradient for the logarithms: none is not the same as zeros, which would be read.
        ctx.set_materialize_grads(False)

    def gradients(ctx: Any, dout: Any, dlse: Any) -> Values:
        if dout is None and dlse is None:
            return (None,) * 5
        q, k, v, out, lse = ctx.saved_tensors
        if dout is None:
            dout = torch_module().zeros_like(out)
        options = (ctx.causal, ctx.scale, False, None)
        return *backward((q, k, v, out, lse, dout, dlse, None, None, None), options), None, None

    return operator(
        "attention_forward", "Tensor q, Tensor k, Tensor v, bool causal, float? scale, str config", _with_lse,
        results=2, outs="out lse", configs=(AttentionConfig,), gradient=Gradient(save, gradients),
    )  # fmt: skip


def _refuse_second_derivative(ctx: Any, *grads: Any) -> Any:
    raise RuntimeError(
        "attention_backward: there is no second derivative of attention: expected one gradient of a loss, "
        "got a gradient of that gradient"
    )


ATTENTION_BACKWARD = operator(
    "attention_backward",
    "Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, Tensor dout, Tensor? dlse, bool causal, float? scale, "
    "bool deterministic, str config",
    lambda *given: tuple([each.new_empty(each.shape) for each in given[:3]]),
    results=3,
    outs="dq dk dv",
    configs=(BackwardConfig, WideBackwardConfig),
    autograd=(None, _refuse_second_derivative),
)

ATTENTION_FP8 = operator(
    "attention_forward_fp8",
    "Tensor q, Tensor k, Tensor v, Tensor? q_scale, Tensor? k_scale, Tensor? v_scale, "
    "bool causal, float? scale, ScalarType out_dtype, str config",
    lambda q, *rest: (q.new_empty(q.shape, dtype=rest[-2]), q.new_empty(q.shape[:3], dtype=torch_module().float32)),
    results=2,
    outs="out lse",
    tensors="q k v out lse q_scale k_scale v_scale",
    configs=(AttentionFp8Config,),
    codecs={"out_dtype": (lambda asked: torch_type(type_of_result("attention_forward", asked, OUT_DTYPES)), None)},
    title="attention_forward",
)

ATTENTION_DECODE = operator(
    "attention_decode",
    "Tensor q, Tensor k, Tensor v, Tensor? lengths, Tensor? pages, Tensor? k_scale, Tensor? v_scale, "
    "bool causal, int? window, float? softcap, float? scale",
    _like_q_and_v,
    tensors="q k v out lengths pages k_scale v_scale",
)

ATTENTION_MLA = operator(
    "attention_mla",
    "Tensor q, Tensor cache, Tensor? lengths, Tensor? pages, int v_dim, float scale, bool causal",
    lambda q, cache, lengths, pages, v_dim, *rest: q.new_empty((*q.shape[:3], v_dim)),
    tensors="q cache out lengths pages",
)


# --- options --------------------------------------------------------------------------------------------------------


def options_text(options: Options) -> str:
    """Return what `options_from` reads. Raises ValueError for a score_mod that is not at the top level of a module."""
    values = [options.causal, options.window, options.align, options.softcap, options.numbers]
    return repr((*values, "" if options.score_mod is None else place_of(options.score_mod)))


def options_from(text: str) -> Options:
    """The options that `options_text` was given."""
    causal, window, align, softcap, numbers, place = ast.literal_eval(text)
    return Options(causal, window, align, softcap, found_at(place) if place else None, numbers)


def _packed(q: Any, k: Any, v: Any, *rest: Any) -> tuple[Any, Any]:
    rows, heads, _ = q.shape
    return q.new_empty((rows, heads, v.shape[2])), q.new_empty((heads, rows), dtype=torch_module().float32)


ATTENTION_OPTIONS = operator(
    "attention_forward_options",
    "Tensor q, Tensor k, Tensor v, Tensor? sinks, Tensor[] score_tensors, float? scale, str options, str config",
    _with_lse,
    results=2,
    outs="out lse",
    tensors="q k v out lse sinks score_tensors",
    options="options scale config",
    configs=(AttentionConfig,),
    codecs={"options": (options_text, options_from)},
)

ATTENTION_VARLEN = operator(
    "attention_varlen",
    "Tensor q, Tensor k, Tensor v, Tensor q_sums, Tensor k_sums, Tensor? sinks, Tensor[] score_tensors, float? scale, "
    "str options, str config",
    _packed,
    results=2,
    outs="out lse",
    tensors="q k v out lse q_sums k_sums sinks score_tensors",
    options="options scale config",
    configs=(AttentionConfig,),
    codecs={"options": (options_text, options_from)},
)
