"""`softmax` and `layer_norm` as operators of torch (`library`). They have no gradient yet."""

from __future__ import annotations

from typing import Any

from tlx_xdsl.kernels.operators import MADE, Operator, Run, define, define_out, refuse_gradients


def _softmax(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Any:
    x, out = tensors
    if out is None:
        return MADE["softmax"](x)
    refuse_gradients("softmax", tensors)
    MADE["softmax_out"](x, out)
    return out


def _define_softmax(run: Run) -> None:
    def softmax(x: Any, out: Any = None) -> Any:
        return run((x, out), ())

    define("softmax", "(Tensor x) -> Tensor", softmax, _like)
    define_out("softmax", "(Tensor x, Tensor(a!) out) -> ()", softmax)


def _layer_norm(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Any:
    x, weight, bias, out = tensors
    (eps,) = options
    if out is None:
        return MADE["layer_norm"](x, weight, bias, eps)
    refuse_gradients("layer_norm", tensors)
    MADE["layer_norm_out"](x, weight, bias, eps, out)
    return out


def _define_layer_norm(run: Run) -> None:
    def layer_norm(x: Any, weight: Any, bias: Any, eps: float, out: Any = None) -> Any:
        return run((x, weight, bias, out), (eps,))

    given = "Tensor x, Tensor? weight, Tensor? bias, float eps"
    define("layer_norm", f"({given}) -> Tensor", layer_norm, _like)
    define_out("layer_norm", f"({given}, Tensor(a!) out) -> ()", layer_norm)


def _like(x: Any, *rest: Any) -> Any:
    return x.new_empty(x.shape)


SOFTMAX = Operator(_softmax, _define_softmax)
LAYER_NORM = Operator(_layer_norm, _define_layer_norm)
