"""`attention/decode/mla` as an operator of torch (`library`): without a gradient."""

from __future__ import annotations

from typing import Any

from . import MADE, Operator, Run, define, define_out, refuse_gradients

NAME = "attention_mla"


def _call(tensors: tuple[Any, ...], settings: tuple[Any, ...]) -> Any:
    q, cache, out, lengths, pages = tensors
    given = (q, cache, lengths, pages, *settings)
    if out is None:
        return MADE[NAME](*given)
    refuse_gradients(NAME, tensors)
    MADE[f"{NAME}_out"](*given, out)
    return out


def _define(run: Run) -> None:
    def attention_mla(
        q: Any, cache: Any, lengths: Any, pages: Any, v_dim: int, scale: float, causal: bool, out: Any = None
    ) -> Any:
        return run((q, cache, out, lengths, pages), (v_dim, scale, causal))

    def fake(q: Any, cache: Any, lengths: Any, pages: Any, v_dim: int, *rest: Any) -> Any:
        return q.new_empty((*q.shape[:3], v_dim))

    given = "Tensor q, Tensor cache, Tensor? lengths, Tensor? pages, int v_dim, float scale, bool causal"
    define(NAME, f"({given}) -> Tensor", attention_mla, fake)
    define_out(NAME, f"({given}, Tensor(a!) out) -> ()", attention_mla)


ATTENTION_MLA = Operator(_call, _define)
