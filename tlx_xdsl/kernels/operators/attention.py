"""`attention_forward` and `attention_backward` as operators of torch (`library`): the one is the other's gradient.

Both results of `attention_forward` have one. What is saved is what `attention_backward` reads: the inputs and the
results. `attention_backward` itself has none: attention has no second derivative here.

Whether the gradient is to have the same bits each time is asked as it is computed, of torch's switch
(`torch.use_deterministic_algorithms`): also in graphs that were made before.
"""

from __future__ import annotations

from typing import Any

from ..attention.backward.config import BackwardConfig
from ..attention.config import AttentionConfig
from ..calls.operands import torch_module
from . import (
    MADE,
    Gradient,
    Operator,
    Run,
    as_text,
    define,
    define_out,
    from_text,
    refuse_gradients,
)


def attention(backward: Run) -> Operator:
    """`attention_forward`, with the gradient that `backward` computes.

    backward: `attention_backward` as a function of (q, k, v, out, lse, dout, dlse, dq, dk, dv) and (causal, scale,
        deterministic, config).
    """

    def save(ctx: Any, tensors: tuple[Any, ...], options: tuple[Any, ...], results: Any) -> None:
        ctx.save_for_backward(*tensors[:3], *results)
        ctx.causal, ctx.scale, _ = options
        # A loss seldom has a gradient for the logarithms: none is not the same as zeros, which would be read.
        ctx.set_materialize_grads(False)

    def gradients(ctx: Any, dout: Any, dlse: Any) -> tuple[Any, ...]:
        if dout is None and dlse is None:
            return (None,) * 5
        q, k, v, out, lse = ctx.saved_tensors
        if dout is None:
            dout = torch_module().zeros_like(out)
        options = (ctx.causal, ctx.scale, False, None)
        return *backward((q, k, v, out, lse, dout, dlse, None, None, None), options), None, None

    gradient = Gradient(save, gradients)

    def define_both(run: Run) -> None:
        _define_attention(run, gradient)

    return Operator(_attention, define_both, gradient)


def _attention(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> tuple[Any, Any]:
    q, k, v, out, lse = tensors
    causal, scale, config = options
    given = (q, k, v, bool(causal), scale, as_text(config))
    if out is None:
        return MADE["attention_forward"](*given)
    refuse_gradients("attention_forward", tensors)
    if lse is None:
        lse = q.new_empty(q.shape[:3], dtype=torch_module().float32)
    MADE["attention_forward_out"](*given, out, lse)
    return out, lse


def _define_attention(run: Run, gradient: Gradient) -> None:
    def attention(
        q: Any, k: Any, v: Any, causal: bool, scale: float | None, config: str, out: Any = None, lse: Any = None
    ) -> tuple[Any, Any]:
        return run((q, k, v, out, lse), (causal, scale, from_text(config, AttentionConfig)))

    def fake(q: Any, k: Any, v: Any, *rest: Any) -> tuple[Any, Any]:
        return q.new_empty((*q.shape[:3], v.shape[3])), q.new_empty(q.shape[:3], dtype=torch_module().float32)

    def setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        gradient.save(ctx, inputs[:3], inputs[3:], output)

    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        return *gradient.gradients(ctx, *grads)[:3], None, None, None

    given = "Tensor q, Tensor k, Tensor v, bool causal, float? scale, str config"
    define("attention_forward", f"({given}) -> (Tensor, Tensor)", attention, fake, gradient=(setup, backward))
    define_out("attention_forward", f"({given}, Tensor(a!) out, Tensor(b!) lse) -> ()", attention, ("out", "lse"))


def _attention_backward(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> tuple[Any, ...]:
    *given, dq, dk, dv = tensors
    causal, scale, deterministic, config = options
    settings = (bool(causal), scale, bool(deterministic), as_text(config))
    results = {"dq": dq, "dk": dk, "dv": dv}
    written = [name for name, out in results.items() if out is not None]
    if not written:
        return MADE["attention_backward"](*given, *settings)
    refuse_gradients("attention_backward", tensors, written[0])
    likes = zip(results.values(), given, strict=False)
    made = tuple([like.new_empty(like.shape) if out is None else out for out, like in likes])
    MADE["attention_backward_out"](*given, *settings, *made)
    return made


def _define_backward(run: Run) -> None:
    def attention_backward(
        q: Any, k: Any, v: Any, out: Any, lse: Any, dout: Any, dlse: Any, causal: bool, scale: float | None,
        deterministic: bool, config: str, dq: Any = None, dk: Any = None, dv: Any = None,
    ) -> tuple[Any, ...]:  # fmt: skip
        options = (causal, scale, deterministic, from_text(config, BackwardConfig))
        return run((q, k, v, out, lse, dout, dlse, dq, dk, dv), options)

    def fake(q: Any, k: Any, v: Any, *rest: Any) -> tuple[Any, ...]:
        return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)

    def refuse(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(
            "attention_backward: there is no second derivative of attention: expected one gradient of a loss, "
            "got a gradient of that gradient"
        )

    given = (
        "Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, Tensor dout, Tensor? dlse, bool causal, float? scale, "
        "bool deterministic, str config"
    )
    results = "Tensor(a!) dq, Tensor(b!) dk, Tensor(c!) dv"
    schema = f"({given}) -> (Tensor, Tensor, Tensor)"
    define("attention_backward", schema, attention_backward, fake, gradient=(None, refuse))
    define_out("attention_backward", f"({given}, {results}) -> ()", attention_backward, ("dq", "dk", "dv"))


ATTENTION_BACKWARD = Operator(_attention_backward, _define_backward)
