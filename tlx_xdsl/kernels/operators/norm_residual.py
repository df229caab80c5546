"""`rms_norm_residual` and `layer_norm_residual` as operators of torch (`library`), with their gradients."""

from __future__ import annotations

from typing import Any

from . import MADE, Gradient, Operator, Run, define
from .rows import by_rows


def norm_residual(name: str, factors: tuple[str, ...], norm_backward: Run) -> Operator:
    """The operator of a norm with these factors, `weight` first; with a `bias` means are subtracted.

    `norm_backward` is the function of this name, of its tensors and options (`operator_rows.norm`).
    """
    centred = "bias" in factors

    def save(ctx: Any, tensors: tuple[Any, ...], options: tuple[Any, ...], results: Any) -> None:
        weight, *bias = tensors[2 : 2 + len(factors)]
        (ctx.eps,) = options
        ctx.with_bias = any(each is not None for each in bias)
        ctx.save_for_backward(results[1], weight)
        # A result that nothing was made of has no gradient, which then need not be read.
        ctx.set_materialize_grads(False)

    def gradients(ctx: Any, dout: Any, dh: Any) -> tuple[Any, ...]:
        h, weight = ctx.saved_tensors
        dout = h.new_zeros(h.shape) if dout is None else by_rows(dout)
        dh = None if dh is None else by_rows(dh)
        dx, *others = norm_backward((h, weight, dout, dh, None, None, None), (ctx.eps, centred, ctx.with_bias))
        return dx, dx, *others[: len(factors)], None, None

    gradient = Gradient(save, gradients)

    def call(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Any:
        *given, _, _ = tensors
        return MADE[name](*given, *options)

    def make(run: Run) -> None:
        def norm(*inputs: Any) -> Any:
            *given, eps = inputs
            return run((*given, None, None), (eps,))

        def fake(x: Any, *rest: Any) -> Any:
            return x.new_empty(x.shape), x.new_empty(x.shape)

        schema = "".join(f", Tensor? {each}" for each in factors)
        define(
            name, f"(Tensor x, Tensor residual{schema}, float eps) -> (Tensor, Tensor)", norm, fake,
            gradient=gradient.of_operator(2 + len(factors)),
        )  # fmt: skip

    return Operator(call, make, gradient)
