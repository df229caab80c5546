"""`swiglu` and `rope` as operators of torch (`library`), with their gradients."""

from __future__ import annotations

from typing import Any

from tlx_xdsl.kernels.operators import MADE, Operator, Run, define, define_out, refuse_gradients


def _swiglu(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Any:
    gate, up, out = tensors
    if out is None:
        return MADE["swiglu"](gate, up)
    refuse_gradients("swiglu", tensors)
    MADE["swiglu_out"](gate, up, out)
    return out


def _define_swiglu(run: Run) -> None:
    def swiglu(gate: Any, up: Any, out: Any = None) -> Any:
        return run((gate, up, out), ())

    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(*inputs)

    def backward(ctx: Any, grad: Any) -> Any:
        gate, up = ctx.saved_tensors
        return MADE["swiglu_backward"](gate, up, grad.contiguous())

    define("swiglu", "(Tensor gate, Tensor up) -> Tensor", swiglu, _like, gradient=(setup, backward))
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


def _define_rope(run: Run) -> None:
    def rope(x: Any, cos: Any, sin: Any, interleaved: bool, inverse: bool) -> Any:
        return run((x, cos, sin, None), (interleaved, inverse))

    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        _, cos, sin, ctx.interleaved, ctx.inverse = inputs
        ctx.save_for_backward(cos, sin)

    def backward(ctx: Any, grad: Any) -> Any:
        cos, sin = ctx.saved_tensors
        return MADE["rope"](grad.contiguous(), cos, sin, ctx.interleaved, not ctx.inverse), None, None, None, None

    schema = "(Tensor x, Tensor cos, Tensor sin, bool interleaved, bool inverse) -> Tensor"
    define("rope", schema, rope, _like, gradient=(setup, backward))


def _like(first: Any, *rest: Any) -> Any:
    return first.new_empty(first.shape)


SWIGLU = Operator(_swiglu, _define_swiglu)
SWIGLU_BACKWARD = Operator(_swiglu_backward, _define_swiglu_backward)
ROPE = Operator(_rope, _define_rope)
