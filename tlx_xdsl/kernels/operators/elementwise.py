"""`swiglu` and `rope` as operators of torch (`library`), with their gradients."""

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


def swiglu(backward: Run) -> Operator:
    """`swiglu`, with the gradients that `backward` computes of (gate, up, dout, None, None)."""

    def save(ctx: Any, tensors: tuple[Any, ...], options: tuple[Any, ...], results: Any) -> None:
        ctx.save_for_backward(*tensors[:2])

    def gradients(ctx: Any, dout: Any) -> tuple[Any, ...]:
        return *backward((*ctx.saved_tensors, dout.contiguous(), None, None), ()), None

    gradient = Gradient(save, gradients)
    return differentiable(_swiglu, _define_swiglu, gradient)


def rope(inverted: Run) -> Operator:
    """`rope`, whose gradient is `inverted`, which is `rope` itself, with the angles the other way."""

    def save(ctx: Any, tensors: tuple[Any, ...], options: tuple[Any, ...], results: Any) -> None:
        ctx.interleaved, ctx.inverse = options
        ctx.save_for_backward(*tensors[1:3])

    def gradients(ctx: Any, dout: Any) -> tuple[Any, ...]:
        given = (dout.contiguous(), *ctx.saved_tensors, None)
        return inverted(given, (ctx.interleaved, not ctx.inverse)), None, None, None

    gradient = Gradient(save, gradients)
    return differentiable(_rope, _define_rope, gradient)


def _swiglu(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Any:
    gate, up, out = tensors
    if out is None:
        return MADE["swiglu"](gate, up)
    refuse_gradients("swiglu", tensors)
    MADE["swiglu_out"](gate, up, out)
    return out


def _define_swiglu(run: Run, gradient: Gradient) -> None:
    def swiglu(gate: Any, up: Any, out: Any = None) -> Any:
        return run((gate, up, out), ())

    define("swiglu", "(Tensor gate, Tensor up) -> Tensor", swiglu, _like, gradient=gradient.of_operator(2))
    define_out("swiglu", "(Tensor gate, Tensor up, Tensor(a!) out) -> ()", swiglu)


def _swiglu_backward(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Any:
    return MADE["swiglu_backward"](*tensors[:3])


def _define_swiglu_backward(run: Run) -> None:
    def swiglu_backward(gate: Any, up: Any, dout: Any) -> Any:
        return run((gate, up, dout, None, None), ())

    def fake(gate: Any, up: Any, dout: Any) -> Any:
        return gate.new_empty(gate.shape), gate.new_empty(gate.shape)

    define("swiglu_backward", "(Tensor gate, Tensor up, Tensor dout) -> (Tensor, Tensor)", swiglu_backward, fake)


def _rope(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Any:
    x, cos, sin, _ = tensors
    return MADE["rope"](x, cos, sin, *options)


def _define_rope(run: Run, gradient: Gradient) -> None:
    def rope(x: Any, cos: Any, sin: Any, interleaved: bool, inverse: bool) -> Any:
        return run((x, cos, sin, None), (interleaved, inverse))

    schema = "(Tensor x, Tensor cos, Tensor sin, bool interleaved, bool inverse) -> Tensor"
    define("rope", schema, rope, _like, gradient=gradient.of_operator(3))


def _like(first: Any, *rest: Any) -> Any:
    return first.new_empty(first.shape)


SWIGLU_BACKWARD = Operator(_swiglu_backward, _define_swiglu_backward)
