"""`attention_forward` of e4m3 tensors as an operator of torch (`library`).

It has no gradient: its operands were rounded to 8 bits before.
"""

from __future__ import annotations

from typing import Any

from ..attention.fp8.config import OUT_DTYPES, AttentionFp8Config
from ..calls.operands import torch_module, torch_type, type_of_result
from . import MADE, Operator, Run, as_text, define, define_out, from_text, refuse_gradients


def _attention(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> tuple[Any, Any]:
    *inputs, out, lse = tensors
    causal, scale, out_dtype, config = options
    dtype = torch_type(type_of_result("attention_forward", out_dtype, OUT_DTYPES))
    given = (*inputs, bool(causal), scale, dtype, as_text(config))
    if out is None:
        return MADE["attention_forward_fp8"](*given)
    refuse_gradients("attention_forward", tensors)
    if lse is None:
        lse = out.new_empty(out.shape[:3], dtype=torch_module().float32)
    MADE["attention_forward_fp8_out"](*given, out, lse)
    return out, lse


def _define(run: Run) -> None:
    def attention(
        q: Any, k: Any, v: Any, q_scale: Any, k_scale: Any, v_scale: Any,
        causal: bool, scale: float | None, out_dtype: Any, config: str, out: Any = None, lse: Any = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        options = (causal, scale, out_dtype, from_text(config, AttentionFp8Config))
        return run((q, k, v, q_scale, k_scale, v_scale, out, lse), options)

    given = (
        "Tensor q, Tensor k, Tensor v, Tensor? q_scale, Tensor? k_scale, Tensor? v_scale, "
        "bool causal, float? scale, ScalarType out_dtype, str config"
    )
    define("attention_forward_fp8", f"({given}) -> (Tensor, Tensor)", attention, _fake)
    define_out("attention_forward_fp8", f"({given}, Tensor(a!) out, Tensor(b!) lse) -> ()", attention, ("out", "lse"))


def _fake(
    q: Any, k: Any, v: Any, q_scale: Any, k_scale: Any, v_scale: Any,
    causal: bool, scale: float | None, out_dtype: Any, config: str,
) -> tuple[Any, Any]:  # fmt: skip
    return q.new_empty(q.shape, dtype=out_dtype), q.new_empty(q.shape[:3], dtype=torch_module().float32)


ATTENTION_FP8 = Operator(_attention, _define)
