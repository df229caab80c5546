"""`cross_entropy` as an operator of torch (`library`), with its gradient."""

from __future__ import annotations

from typing import Any

from ..calls.operands import torch_type
from . import MADE, Gradient, Operator, Run, define, differentiable


def cross_entropy(backward: Run) -> Operator:
    """`cross_entropy`, with the gradient that `backward` computes.

    Its tensors are (dloss, x, target, lse, scale, None), its options (ignore_index, smoothing).
    """

    def save(ctx: Any, tensors: tuple[Any, ...], options: tuple[Any, ...], results: Any) -> None:
        x, target = tensors[:2]
        *ctx.options_of_rows, reduction = options[:3]
        _, lse, scale = results
        ctx.is_mean = reduction == "mean"
        ctx.mark_non_differentiable(*(each for each in (lse, scale) if each is not None))
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, target, lse, scale)

    def gradients(ctx: Any, dloss: Any, *rest: Any) -> tuple[Any, ...]:
        x, target, lse, scale = ctx.saved_tensors
        given = (dloss.contiguous(), x, target, lse, scale if ctx.is_mean else None, None)
        return backward(given, tuple(ctx.options_of_rows)), None, None, None, None

    gradient = Gradient(save, gradients)
    return differentiable(_call, _define, gradient)


def _call(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Any:
    x, target, *_ = tensors
    return MADE["cross_entropy"](x, target, *options[:3])


def _define(run: Run, gradient: Gradient) -> None:
    def cross_entropy(x: Any, target: Any, ignore_index: int, smoothing: float, reduction: str) -> Any:
        loss, lse, scale = run((x, target, None, None, None), (ignore_index, smoothing, reduction, True))
        return loss, lse, lse.new_empty(0) if scale is None else scale

    def fake(x: Any, target: Any, ignore_index: int, smoothing: float, reduction: str) -> Any:
        f32, rows = torch_type("fp32"), x.shape[:-1]
        loss = x.new_empty(rows if reduction == "none" else (), dtype=f32)
        return loss, x.new_empty(rows, dtype=f32), x.new_empty(1 if reduction == "mean" else 0, dtype=f32)

    schema = "(Tensor x, Tensor target, int ignore_index, float smoothing, str reduction) -> (Tensor, Tensor, Tensor)"
    define("cross_entropy", schema, cross_entropy, fake, gradient=gradient.of_operator(2))


def _call_backward(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Any:
    *given, _ = tensors
    return MADE["cross_entropy_backward"](*given, *options)


def _define_backward(run: Run) -> None:
    def backward(dloss: Any, x: Any, target: Any, lse: Any, scale: Any, ignore_index: int, smoothing: float) -> Any:
        return run((dloss, x, target, lse, scale, None), (ignore_index, smoothing))

    def fake(dloss: Any, x: Any, *rest: Any) -> Any:
        return x.new_empty(x.shape)

    given = "Tensor dloss, Tensor x, Tensor target, Tensor lse, Tensor? scale, int ignore_index, float smoothing"
    define("cross_entropy_backward", f"({given}) -> Tensor", backward, fake)


CROSS_ENTROPY_BACKWARD = Operator(_call_backward, _define_backward)
