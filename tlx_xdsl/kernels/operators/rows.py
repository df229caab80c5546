"""Functions of rows and of elements as operators of torch (`library`), with their gradients."""

# torch is no dependency: what a short function has of its tensors is of unknown type to a checker.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

from ..calls.operands import torch_type
from . import Gradient, Operator, Run, Values, operator


def _like(x: Any, *rest: Any) -> Any:
    return x.new_empty(x.shape)


def by_rows(grad: Any) -> Any:
    """A gradient whose rows are contiguous: that of a sum has one element only, repeated."""
    return grad.contiguous()


def softmax(backward: Run) -> Operator:
    """`softmax`, with the gradient that `backward` computes of (y, dout, None)."""

    def save(ctx: Any, tensors: Values, options: Values, results: Any) -> None:
        ctx.save_for_backward(*results)

    def gradients(ctx: Any, dout: Any) -> Values:
        (y,) = ctx.saved_tensors
        return backward((y, by_rows(dout), None), ()), None

    return operator("softmax", "Tensor x", _like, gradient=Gradient(save, gradients))


SOFTMAX_BACKWARD = operator("softmax_backward", "Tensor y, Tensor dout", _like, outs="", tensors="y dout dx")


def norm(name: str, backward: Run) -> Operator:
    """`layer_norm` or `rms_norm`, with the gradient that `backward`, which is `norm_backward`, computes.

    Its tensors are (x, weight, dout, dh, None, None, None), its options (eps, centred, with_bias).
    """
    factors = ("weight", "bias") if name == "layer_norm" else ("weight",)
    inputs, gradient = _of_norm(1, factors, backward)
    return operator(name, f"Tensor x, {inputs}", _like, gradient=gradient)


def norm_residual(name: str, factors: tuple[str, ...], norm_backward: Run) -> Operator:
    """`rms_norm_residual` or `layer_norm_residual`, of a norm with these factors, `weight` first.

    With a `bias` means are subtracted. `norm_backward` is the function of this name, of its tensors and options
    (`norm`).
    """
    inputs, gradient = _of_norm(2, factors, norm_backward)
    return operator(
        name, f"Tensor x, Tensor residual, {inputs}", lambda x, *rest: (_like(x), _like(x)), results=2, outs="",
        tensors=f"x residual {' '.join(factors)} out h", gradient=gradient,
    )  # fmt: skip


def _of_norm(terms: int, factors: tuple[str, ...], backward: Run) -> tuple[str, Gradient]:
    """The inputs of a norm after its terms, and its gradient; the sum of two terms is its second result."""

    def save(ctx: Any, tensors: Values, options: Values, results: Any) -> None:
        weight, *bias = tensors[terms : terms + len(factors)]
        (ctx.eps,) = options
        ctx.with_bias = any(each is not None for each in bias)
        ctx.save_for_backward(tensors[0] if terms == 1 else results[1], weight)
        # A result that nothing was made of has no gradient, which then need not be read.
        ctx.set_materialize_grads(False)

    def gradients(ctx: Any, dout: Any, dh: Any = None) -> Values:
        h, weight = ctx.saved_tensors
        dout = h.new_zeros(h.shape) if dout is None else by_rows(dout)
        dh = None if dh is None else by_rows(dh)
        dx, *others = backward((h, weight, dout, dh, None, None, None), (ctx.eps, "bias" in factors, ctx.with_bias))
        return *(dx,) * terms, *others[: len(factors)], *(None,) * terms

    return f"{', '.join(f'Tensor? {each}' for each in factors)}, float eps", Gradient(save, gradients)


def _norm_backward() -> Operator:
    def fake(x: Any, weight: Any, dout: Any, eps: float, centred: bool, with_bias: bool, dh: Any = None) -> Any:
        columns = x.shape[-1]
        dweight = x.new_empty(0 if weight is None else columns)
        return x.new_empty(x.shape), dweight, x.new_empty(columns if with_bias else 0)

    made = operator(
        "norm_backward",
        "Tensor x, Tensor? weight, Tensor dout, float eps, bool centred, bool with_bias, Tensor? dh=None",
        fake, results=3, outs="", tensors="x weight dout dh dx dweight dbias",
    )  # fmt: skip

    def call(tensors: Values, options: Values) -> Any:
        dx, dweight, dbias = made.call(tensors, options)
        return dx, None if tensors[1] is None else dweight, dbias if options[2] else None

    return made._replace(call=call)


NORM_BACKWARD = _norm_backward()


def swiglu(backward: Run) -> Operator:
    """`swiglu`, with the gradients that `backward` computes of (gate, up, dout, None, None)."""

    def save(ctx: Any, tensors: Values, options: Values, results: Any) -> None:
        ctx.save_for_backward(*tensors[:2])

    def gradients(ctx: Any, dout: Any) -> Values:
        return *backward((*ctx.saved_tensors, by_rows(dout), None, None), ()), None

    return operator("swiglu", "Tensor gate, Tensor up", _like, gradient=Gradient(save, gradients))


SWIGLU_BACKWARD = operator(
    "swiglu_backward", "Tensor gate, Tensor up, Tensor dout", lambda gate, *rest: (_like(gate), _like(gate)),
    results=2, outs="", tensors="gate up dout dgate dup",
)  # fmt: skip


def rope(inverted: Run) -> Operator:
    """`rope`, whose gradient is `inverted`, which is `rope` itself, with the angles the other way."""

    def save(ctx: Any, tensors: Values, options: Values, results: Any) -> None:
        ctx.interleaved, ctx.inverse = options
        ctx.save_for_backward(*tensors[1:3])

    def gradients(ctx: Any, dout: Any) -> Values:
        given = (by_rows(dout), *ctx.saved_tensors, None)
        return inverted(given, (ctx.interleaved, not ctx.inverse)), None, None, None

    return operator(
        "rope", "Tensor x, Tensor cos, Tensor sin, bool interleaved, bool inverse", _like, outs="",
        tensors="x cos sin out", gradient=Gradient(save, gradients),
    )  # fmt: skip


def cross_entropy(backward: Run) -> Operator:
    """`cross_entropy`, with the gradient that `backward` computes.

    Its tensors are (dloss, x, target, lse, scale, None), its options (ignore_index, smoothing).
    """

    def save(ctx: Any, tensors: Values, options: Values, results: Any) -> None:
        x, target = tensors[:2]
        *ctx.options_of_rows, reduction = options[:3]
        _, lse, scale = results
        ctx.is_mean = reduction == "mean"
        ctx.mark_non_differentiable(*(each for each in (lse, scale) if each is not None))
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, target, lse, scale)

    def gradients(ctx: Any, dloss: Any, *rest: Any) -> Values:
        x, target, lse, scale = ctx.saved_tensors
        given = (by_rows(dloss), x, target, lse, scale if ctx.is_mean else None, None)
        return backward(given, tuple(ctx.options_of_rows)), None, None, None, None

    def fake(x: Any, target: Any, ignore_index: int, smoothing: float, reduction: str) -> Any:
        f32, rows = torch_type("fp32"), x.shape[:-1]
        loss = x.new_empty(rows if reduction == "none" else (), dtype=f32)
        return loss, x.new_empty(rows, dtype=f32), x.new_empty(1 if reduction == "mean" else 0, dtype=f32)

    made = operator(
        "cross_entropy", "Tensor x, Tensor target, int ignore_index, float smoothing, str reduction", fake, results=3,
        outs="", tensors="x target loss lse scale", gradient=Gradient(save, gradients),
    )  # fmt: skip

    return made._replace(
        call=lambda tensors, options: made.call(tensors, options[:3]),
        define=lambda run: made.define(lambda tensors, options: run(tensors, (*options, True))),
    )


CROSS_ENTROPY_BACKWARD = operator(
    "cross_entropy_backward",
    "Tensor dloss, Tensor x, Tensor target, Tensor lse, Tensor? scale, int ignore_index, float smoothing",
    lambda dloss, x, *rest: _like(x), outs="", tensors="dloss x target lse scale dx",
)  # fmt: skip
