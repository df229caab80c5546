"""`attention_forward` as an operator of torch (`library`). It has no gradient yet."""

from __future__ import annotations

from typing import Any

from tlx_xdsl.kernels.attention_config import AttentionConfig
from tlx_xdsl.kernels.operands import torch_module
from tlx_xdsl.kernels.operators import MADE, Operator, Run, as_text, define, define_out, from_text, refuse_gradients


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


def _define(run: Run) -> None:
    def attention(
        q: Any, k: Any, v: Any, causal: bool, scale: float | None, config: str, out: Any = None, lse: Any = None
    ) -> tuple[Any, Any]:
        return run((q, k, v, out, lse), (causal, scale, from_text(config, AttentionConfig)))

    def fake(q: Any, *rest: Any) -> tuple[Any, Any]:
        return q.new_empty(q.shape), q.new_empty(q.shape[:3], dtype=torch_module().float32)

    given = "Tensor q, Tensor k, Tensor v, bool causal, float? scale, str config"
    define("attention_forward", f"({given}) -> (Tensor, Tensor)", attention, fake)
    define_out("attention_forward", f"({given}, Tensor(a!) out, Tensor(b!) lse) -> ()", attention, ("out", "lse"))


ATTENTION = Operator(_attention, _define)
