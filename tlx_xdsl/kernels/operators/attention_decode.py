"""`attention_decode` as an operator of torch (`library`): without a gradient."""

from __future__ import annotations

from typing import Any

from . import MADE, Operator, Run, define, define_out, refuse_gradients

NAME = "attention_decode"


def _call(tensors: tuple[Any, ...], settings: tuple[Any, ...]) -> Any:
    q, k, v, out, lengths, pages, k_scale, v_scale = tensors
    given = (q, k, v, lengths, pages, k_scale, v_scale, *settings)
    if out is None:
        return MADE[NAME](*given)
    refuse_gradients(NAME, tensors)
    MADE[f"{NAME}_out"](*given, out)
    return out


def _define(run: Run) -> None:
    def attention_decode(
        q: Any, k: Any, v: Any, lengths: Any, pages: Any, k_scale: Any, v_scale: Any, causal: bool,
        window: int | None, softcap: float | None, scale: float | None, out: Any = None,
    ) -> Any:  # fmt: skip
        return run((q, k, v, out, lengths, pages, k_scale, v_scale), (causal, window, softcap, scale))

    def fake(q: Any, k: Any, v: Any, *rest: Any) -> Any:
        return q.new_empty((*q.shape[:3], v.shape[3]))

    given = "Tensor q, Tensor k, Tensor v, Tensor? lengths, Tensor? pages, Tensor? k_scale, Tensor? v_scale"
    given += ", bool causal, int? window, float? softcap, float? scale"
    define(NAME, f"({given}) -> Tensor", attention_decode, fake)
    define_out(NAME, f"({given}, Tensor(a!) out) -> ()", attention_decode)


ATTENTION_DECODE = Operator(_call, _define)
