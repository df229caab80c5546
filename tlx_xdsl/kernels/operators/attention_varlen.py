"""`attention/varlen` as an operator of torch (`library`): without a gradient."""

from __future__ import annotations

from typing import Any

from ..attention.config import AttentionConfig
from ..calls.operands import torch_module
from . import MADE, Operator, Run, as_text, define, define_out, from_text, refuse_gradients
from .attention_options import options_from, options_text

NAME = "attention_varlen"


def _call(tensors: tuple[Any, ...], settings: tuple[Any, ...]) -> tuple[Any, Any]:
    q, k, v, out, lse, q_sums, k_sums, sinks, *score_tensors = tensors
    options, scale, config = settings
    given = (q, k, v, q_sums, k_sums, sinks, score_tensors, scale, options_text(options), as_text(config))
    if out is None:
        return MADE[NAME](*given)
    refuse_gradients(NAME, tensors)
    if lse is None:
        lse = q.new_empty((q.shape[1], q.shape[0]), dtype=torch_module().float32)
    MADE[f"{NAME}_out"](*given, out, lse)
    return out, lse


def _define(run: Run) -> None:
    def attention_varlen(
        q: Any, k: Any, v: Any, q_sums: Any, k_sums: Any, sinks: Any, score_tensors: list[Any], scale: float | None,
        options: str, config: str, out: Any = None, lse: Any = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        settings = (options_from(options), scale, from_text(config, AttentionConfig))
        return run((q, k, v, out, lse, q_sums, k_sums, sinks, *score_tensors), settings)

    def fake(q: Any, k: Any, v: Any, *rest: Any) -> tuple[Any, Any]:
        rows, heads, _ = q.shape
        return q.new_empty((rows, heads, v.shape[2])), q.new_empty((heads, rows), dtype=torch_module().float32)

    given = (
        "Tensor q, Tensor k, Tensor v, Tensor q_sums, Tensor k_sums, Tensor? sinks, Tensor[] score_tensors, "
        "float? scale, str options, str config"
    )
    define(NAME, f"({given}) -> (Tensor, Tensor)", attention_varlen, fake)
    define_out(NAME, f"({given}, Tensor(a!) out, Tensor(b!) lse) -> ()", attention_varlen, ("out", "lse"))


ATTENTION_VARLEN = Operator(_call, _define)
