"""The cross-entropy of a linear layer as an operator of torch (`library`), with its gradients."""

# torch is no dependency: what a short function has of its tensors is of unknown type to a checker.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

from ..calls.operands import dispatch_modes, is_last_backward, torch_module, torch_type, transforms_are_active
from . import Gradient, Operator, Run, Values, operator
from .rows import by_rows

_TEMPORARIES = 4
"""Tensors of a call that are neither given nor results."""


def linear_cross_entropy(backward: Run, scaling: Run) -> Operator:
    """`linear_cross_entropy`, with the gradients that `backward` computes of rows whose losses are results each.

    Those of a mean or a sum are there after the forward pass, up to a factor, by which `scaling` multiplies them in
    their place.
    """

    def save(ctx: Any, tensors: Values, options: Values, results: Any) -> None:
        x, w, target = tensors[:3]
        ctx.smoothing = options[:2]
        reduction, *ctx.others = options[2:]
        ctx.is_each = reduction == "none"
        _, dx, dw, lse = results
        ctx.mark_non_differentiable(*(each for each in (dx, dw, lse) if each is not None))
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*((x, w, target, lse) if ctx.is_each else (dx, dw)))

    def gradients(ctx: Any, dloss: Any, *rest: Any) -> Values:
        with_dx, with_dw = ctx.others[:2]
        if ctx.is_each:
            x, w, target, lse = ctx.saved_tensors
            given = (by_rows(dloss), x, w, target, lse, *(None,) * 4)
            dx, dw = backward(given, (*ctx.smoothing, *ctx.others))
        else:
            dx, dw = (
                each if wanted else None for each, wanted in zip(ctx.saved_tensors, (with_dx, with_dw), strict=True)
            )
            if _has_to_be_seen():
                dx, dw = (None if each is None else (each.float() * dloss).to(each.dtype) for each in (dx, dw))
            else:
                if not is_last_backward(torch_module()):
                    dx, dw = (None if each is None else each.clone() for each in (dx, dw))
                scaling((dloss, dx, dw), ())
        return dx, dw, None, *(None,) * (_TEMPORARIES + 4)

    def fake(
        x: Any, w: Any, target: Any, ignore_index: int, smoothing: float, reduction: str, with_dx: bool, with_dw: bool,
        logits_bytes: int, sum_dtype: str,
    ) -> Any:  # fmt: skip
        check = torch_module()._check
        check(w.dim() == 2, lambda: "linear_cross_entropy: argument 'w': expected 2 dimensions")
        check(x.shape[-1] == w.shape[1], lambda: "linear_cross_entropy: argument 'x': expected rows as 'w' has")
        f32, rows, is_each = torch_type("fp32"), x.shape[:-1], reduction == "none"
        return (
            x.new_empty(rows if is_each else (), dtype=f32),
            x.new_empty(x.shape if with_dx and not is_each else 0),
            w.new_empty(w.shape if with_dw and not is_each else 0),
            x.new_empty(rows if is_each and (with_dx or with_dw) else 0, dtype=f32),
        )

    return operator(
        "linear_cross_entropy",
        "Tensor x, Tensor w, Tensor target, int ignore_index, float smoothing, str reduction, bool with_dx, "
        "bool with_dw, int logits_bytes, str sum_dtype",
        fake, results=4, outs="", tensors="x w target scale losses logits sums loss dx dw lse",
        gradient=Gradient(save, gradients),
    )  # fmt: skip


def _has_to_be_seen() -> bool:
    """Return whether torch has to see each operation: while a graph is recorded, and under its transformations."""
    torch = torch_module()
    return bool(dispatch_modes(torch)() or transforms_are_active(torch)())


def _backward() -> Operator:
    def fake(
        dloss: Any, x: Any, w: Any, target: Any, lse: Any, ignore_index: int, smoothing: float, with_dx: bool,
        with_dw: bool, logits_bytes: int, sum_dtype: str,
    ) -> Any:  # fmt: skip
        return x.new_empty(x.shape if with_dx else 0), w.new_empty(w.shape if with_dw else 0)

    made = operator(
        "linear_cross_entropy_backward",
        "Tensor dloss, Tensor x, Tensor w, Tensor target, Tensor lse, int ignore_index, float smoothing, bool with_dx, "
        "bool with_dw, int logits_bytes, str sum_dtype",
        fake, results=2, outs="", tensors="dloss x w target lse logits sums dx dw",
    )  # fmt: skip

    def call(tensors: Values, options: Values) -> Any:
        dx, dw = made.call(tensors, options)
        return dx if options[2] else None, dw if options[3] else None

    return made._replace(call=call)


LINEAR_CROSS_ENTROPY_BACKWARD = _backward()
