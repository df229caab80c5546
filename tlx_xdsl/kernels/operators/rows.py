"""`softmax`, `layer_norm` and `rms_norm` as operators of torch (`library`), with their gradients."""

from __future__ import annotations

from typing import Any

from . import (
    MADE,
    Gradient,
    Operator,
    Run,
    define,
    define_out,
    differentiable,
    refuse_gradients,
)


def softmax(backward: Run) -> Operator:
    """`softmax`, with the gradient that `backward` computes of (y, dout, None)."""

    def save(ctx: Any, tensors: tuple[Any, ...], options: tuple[Any, ...], results: Any) -> None:
        ctx.save_for_backward(*results)

    def gradients(ctx: Any, dout: Any) -> tuple[Any, ...]:
        (y,) = ctx.saved_tensors
        return backward((y, by_rows(dout), None), ()), None

    gradient = Gradient(save, gradients)
    return differentiable(_softmax, _define_softmax, gradient)


def norm(name: str, backward: Run) -> Operator:
    """`layer_norm` or `rms_norm`, with the gradient that `backward`, which is `norm_backward`, computes.

    Its tensors are (x, weight, dout, dh, None, None, None), its options (eps, centred, with_bias).
    """
    centred = name == "layer_norm"

    def save(ctx: Any, tensors: tuple[Any, ...], options: tuple[Any, ...], results: Any) -> None:
        x, weight, *bias = tensors[: 2 + centred]
        (ctx.eps,) = options
        ctx.with_bias = any(each is not None for each in bias)
        ctx.save_for_backward(x, weight)

    def gradients(ctx: Any, dout: Any) -> tuple[Any, ...]:
        x, weight = ctx.saved_tensors
        given = (x, weight, by_rows(dout), None, None, None, None)
        found = backward(given, (ctx.eps, centred, ctx.with_bias))
        return *found[: 2 + centred], None

    gradient = Gradient(save, gradients)
    if centred:
        return differentiable(_layer_norm, _define_layer_norm, gradient)
    return differentiable(_rms_norm, _define_rms_norm, gradient)


def _softmax(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Any:
    x, out = tensors
    if out is None:
        return MADE["softmax"](x)
    refuse_gradients("softmax", tensors)
    MADE["softmax_out"](x, out)
    return out


def _define_softmax(run: Run, gradient: Gradient) -> None:
    def softmax(x: Any, out: Any = None) -> Any:
        return run((x, out), ())

    define("softmax", "(Tensor x) -> Tensor", softmax, _like, gradient=gradient.of_operator(1))
    define_out("softmax", "(Tensor x, Tensor(a!) out) -> ()", softmax)


def _softmax_backward(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Any:
    y, dout, _ = tensors
    return MADE["softmax_backward"](y, dout)


def _define_softmax_backward(run: Run) -> None:
    def softmax_backward(y: Any, dout: Any) -> Any:
        return run((y, dout, None), ())

    define("softmax_backward", "(Tensor y, Tensor dout) -> Tensor", softmax_backward, _like)


def _layer_norm(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Any:
    x, weight, bias, out = tensors
    (eps,) = options
    if out is None:
        return MADE["layer_norm"](x, weight, bias, eps)
    refuse_gradients("layer_norm", tensors)
    MADE["layer_norm_out"](x, weight, bias, eps, out)
    return out


def _define_layer_norm(run: Run, gradient: Gradient) -> None:
    def layer_norm(x: Any, weight: Any, bias: Any, eps: float, out: Any = None) -> Any:
        return run((x, weight, bias, out), (eps,))

    given = "Tensor x, Tensor? weight, Tensor? bias, float eps"
    define("layer_norm", f"({given}) -> Tensor", layer_norm, _like, gradient=gradient.of_operator(3))
    define_out("layer_norm", f"({given}, Tensor(a!) out) -> ()", layer_norm)


def _rms_norm(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Any:
    x, weight, out = tensors
    (eps,) = options
    if out is None:
        return MADE["rms_norm"](x, weight, eps)
    refuse_gradients("rms_norm", tensors)
    MADE["rms_norm_out"](x, weight, eps, out)
    return out


def _define_rms_norm(run: Run, gradient: Gradient) -> None:
    def rms_norm(x: Any, weight: Any, eps: float, out: Any = None) -> Any:
        return run((x, weight, out), (eps,))

    given = "Tensor x, Tensor? weight, float eps"
    define("rms_norm", f"({given}) -> Tensor", rms_norm, _like, gradient=gradient.of_operator(2))
    define_out("rms_norm", f"({given}, Tensor(a!) out) -> ()", rms_norm)


def _norm_backward(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Any:
    x, weight, dout, dh, *_ = tensors
    eps, centred, with_bias = options
    dx, dweight, dbias = MADE["norm_backward"](x, weight, dout, eps, centred, with_bias, dh)
    return dx, None if weight is None else dweight, dbias if with_bias else None


def _define_norm_backward(run: Run) -> None:
    def norm_backward(
        x: Any, weight: Any, dout: Any, eps: float, centred: bool, with_bias: bool, dh: Any = None
    ) -> Any:
        dx, *others = run((x, weight, dout, dh, None, None, None), (eps, centred, with_bias))
        return dx, *(x.new_empty(0) if each is None else each for each in others)

    def fake(x: Any, weight: Any, dout: Any, eps: float, centred: bool, with_bias: bool, dh: Any = None) -> Any:
        columns = x.shape[-1]
        dweight = x.new_empty(0 if weight is None else columns)
        return x.new_empty(x.shape), dweight, x.new_empty(columns if with_bias else 0)

    schema = "(Tensor x, Tensor? weight, Tensor dout, float eps, bool centred, bool with_bias, Tensor? dh=None)"
    define("norm_backward", f"{schema} -> (Tensor, Tensor, Tensor)", norm_backward, fake)


def _like(x: Any, *rest: Any) -> Any:
    return x.new_empty(x.shape)


def by_rows(grad: Any) -> Any:
    """A gradient whose rows are contiguous: that of a sum has one element only, repeated."""
    return grad.contiguous()


SOFTMAX_BACKWARD = Operator(_softmax_backward, _define_softmax_backward)
NORM_BACKWARD = Operator(_norm_backward, _define_norm_backward)
