"""`attention_forward` with options as an operator of torch (`library`): without a gradient.

A function of the user goes by its place, as the epilogues of `gemm` do.
"""

from __future__ import annotations

import ast
from typing import Any

from ..attention.config import AttentionConfig
from ..attention.options import Options
from ..calls.operands import torch_module
from . import (
    MADE,
    Operator,
    Run,
    as_text,
    define,
    define_out,
    found_at,
    from_text,
    place_of,
    refuse_gradients,
)

NAME = "attention_forward_options"


def options_text(options: Options) -> str:
    """What `options_from` reads. Raises ValueError for a score_mod that is not at the top level of a module."""
    values = [options.causal, options.window, options.align, options.softcap, options.numbers]
    return repr((*values, "" if options.score_mod is None else place_of(options.score_mod)))


def options_from(text: str) -> Options:
    """The options that `options_text` was given."""
    causal, window, align, softcap, numbers, place = ast.literal_eval(text)
    return Options(causal, window, align, softcap, found_at(place) if place else None, numbers)


def _call(tensors: tuple[Any, ...], settings: tuple[Any, ...]) -> tuple[Any, Any]:
    q, k, v, out, lse, sinks, *score_tensors = tensors
    options, scale, config = settings
    given = (q, k, v, sinks, score_tensors, scale, options_text(options), as_text(config))
    if out is None:
        return MADE[NAME](*given)
    refuse_gradients(NAME, tensors)
    if lse is None:
        lse = q.new_empty(q.shape[:3], dtype=torch_module().float32)
    MADE[f"{NAME}_out"](*given, out, lse)
    return out, lse


def _define(run: Run) -> None:
    def attention(
        q: Any, k: Any, v: Any, sinks: Any, score_tensors: list[Any], scale: float | None, options: str, config: str,
        out: Any = None, lse: Any = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        settings = (options_from(options), scale, from_text(config, AttentionConfig))
        return run((q, k, v, out, lse, sinks, *score_tensors), settings)

    def fake(q: Any, k: Any, v: Any, *rest: Any) -> tuple[Any, Any]:
        return q.new_empty((*q.shape[:3], v.shape[3])), q.new_empty(q.shape[:3], dtype=torch_module().float32)

    given = "Tensor q, Tensor k, Tensor v, Tensor? sinks, Tensor[] score_tensors, float? scale, str options, str config"
    define(NAME, f"({given}) -> (Tensor, Tensor)", attention, fake)
    define_out(NAME, f"({given}, Tensor(a!) out, Tensor(b!) lse) -> ()", attention, ("out", "lse"))


ATTENTION_OPTIONS = Operator(_call, _define)
