"""`rms_norm_residual` and `layer_norm_residual` as operators of torch (`library`), with their gradients."""

from __future__ import annotations

from typing import Any

from tlx_xdsl.kernels.operator_rows import by_rows
from tlx_xdsl.kernels.operators import MADE, Operator, Run, define


def _operator(name: str, factors: tuple[str, ...]) -> Operator:
    """The operator of a norm with these factors, `weight` first; with a `bias` means are subtracted."""
    centred = "bias" in factors

    def call(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Any:
        *given, _, _ = tensors
        return MADE[name](*given, *options)

    def make(run: Run) -> None:
        def norm(*inputs: Any) -> Any:
            *given, eps = inputs
            return run((*given, None, None), (eps,))

        def fake(x: Any, *rest: Any) -> Any:
            return x.new_empty(x.shape), x.new_empty(x.shape)

        def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            _, _, weight, *bias, ctx.eps = inputs
            ctx.with_bias = any(each is not None for each in bias)
            ctx.save_for_backward(output[1], weight)
            # A result that nothing was made of has no gradient, which then need not be read.
            ctx.set_materialize_grads(False)

        def backward(ctx: Any, dout: Any, dh: Any) -> tuple[Any, ...]:
            h, weight = ctx.saved_tensors
            dout = h.new_zeros(h.shape) if dout is None else by_rows(dout)
            dh = None if dh is None else by_rows(dh)
            dx, *others = MADE["norm_backward"](h, weight, dout, ctx.eps, centred, ctx.with_bias, dh)
            wanted = (weight is not None, ctx.with_bias)
            given = [each if is_wanted else None for each, is_wanted in zip(others, wanted, strict=True)]
            return dx, dx, *given[: len(factors)], None

        schema = "".join(f", Tensor? {each}" for each in factors)
        define(
            name, f"(Tensor x, Tensor residual{schema}, float eps) -> (Tensor, Tensor)", norm, fake,
            gradient=(setup, backward),
        )  # fmt: skip

    return Operator(call, make)


RMS_NORM_RESIDUAL = _operator("rms_norm_residual", ("weight",))
LAYER_NORM_RESIDUAL = _operator("layer_norm_residual", ("weight", "bias"))
