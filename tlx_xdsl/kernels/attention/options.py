"""Options for the scores of attention: windows, caps, sinks and functions of the user, checked.

`Options` are what a caller says, hashable and without tensors, so that plans (`plans`) can be found by them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, NamedTuple, cast

from ..calls.operands import Operand, check_places, operand
from .config import AttentionConfig, choose_config
from .operands import by_name, check_plain, factor_of

ALIGNMENTS = ("top-left", "bottom-right")
SINK_DTYPES = ("fp32", "fp16", "bf16")

SCORE_ARGS = 4
"""Arguments that a score_mod takes at most."""


@dataclass(frozen=True)
class Options:
    """The options of a call, without its tensors.

    `numbers` are the arguments of `score_mod` in their order, None where one is a tensor.
    """

    causal: bool = False
    window: tuple[int | None, int | None] = (None, None)
    align: str = ALIGNMENTS[0]
    softcap: float | None = None
    score_mod: Any = None
    numbers: tuple[float | None, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Return whether nothing but a causal mask is asked for."""
        return self == Options(causal=self.causal)


def config_for(options: Options, causal: bool, head_dim: int, v_dim: int, queries: int) -> AttentionConfig:
    """The configuration of a call: with the 160 registers of three consumers, a score_mod spills."""
    found = choose_config(head_dim, causal, v_dim, queries)
    return found if options.score_mod is None or found.consumers == 2 else AttentionConfig(consumers=2, registers=240)


class Limits(NamedTuple):
    """Query i sees the keys i + lower to i + upper; None is no limit. `causal` is an upper of 0."""

    causal: bool
    lower: int | None
    upper: int | None


def read_options(
    function: str,
    causal: bool = False,
    window: Any = None,
    align: str = ALIGNMENTS[0],
    softcap: float | None = None,
    score_mod: Any = None,
    score_args: Sequence[Any] = (),
) -> tuple[Options, tuple[Any, ...]]:
    """The options, and the tensors among the arguments of `score_mod`.

    Raises TypeError for a window that is no pair of integers or a score_mod that is no jitted function, ValueError for
    values that no option has.
    """
    if align not in ALIGNMENTS:
        raise ValueError(f"{function}: argument 'align': expected {' or '.join(ALIGNMENTS)}, got {align!r}")
    if softcap is not None and not (softcap > 0 and math.isfinite(softcap)):
        raise ValueError(f"{function}: argument 'softcap': expected a positive number, got {softcap}")
    if score_mod is None and len(score_args):
        raise ValueError(f"{function}: argument 'score_args': expected none without 'score_mod', got {len(score_args)}")
    if score_mod is not None and not hasattr(score_mod, "arg_names"):
        raise TypeError(
            f"{function}: argument 'score_mod': expected a function with @tlx_xdsl.jit, got {type(score_mod).__name__}"
        )
    if len(score_args) > SCORE_ARGS:
        raise ValueError(f"{function}: argument 'score_args': expected at most {SCORE_ARGS}, got {len(score_args)}")
    tensors = tuple([each for each in score_args if hasattr(each, "dtype")])
    numbers = tuple([None if hasattr(each, "dtype") else float(each) for each in score_args])
    cap = None if softcap is None else float(softcap)
    return Options(bool(causal), _window(function, window), align, cap, score_mod, numbers), tensors


def _window(function: str, window: Any) -> tuple[int | None, int | None]:
    if window is None:
        return None, None
    what = f"{function}: argument 'window': expected (left, right), each None or a number of keys"
    if not isinstance(window, (tuple, list)):
        raise TypeError(f"{what}, got {window!r}")
    sides = cast(Sequence[Any], window)
    if len(sides) != 2 or any(isinstance(each, bool) or not isinstance(each, (int, NoneType)) for each in sides):
        raise TypeError(f"{what}, got {window!r}")
    if any(each is not None and each < -1 for each in sides):
        raise ValueError(f"{what}, got {window!r}")
    left, right = (None if each == -1 else each for each in sides)
    return left, right


def limits_of(options: Options) -> tuple[int | None, int | None]:
    """The first and the last key that a query sees, less its own number, where sequences are as long as their keys."""
    left, right = options.window
    return None if left is None else -left, 0 if options.causal else right


def limits_for(options: Options, queries: int, keys: int) -> Limits:
    """The limits for so many queries and keys; those that hide nothing are left out."""
    offset = keys - queries if options.align == "bottom-right" else 0
    lower, upper = (None if each is None else each + offset for each in limits_of(options))
    if lower is not None and lower + queries <= 1:
        lower = None
    if upper is not None and upper >= keys - 1:
        upper = None
    return Limits(True, lower, None) if upper == 0 else Limits(False, lower, upper)


def refuse_options(function: str, where: str, **options: Any) -> None:
    """Refuse options that belong to tensors of another type. Raises TypeError."""
    for name, value in options.items():
        if value is not None:
            raise TypeError(f"{function}: argument '{name}': expected None where 'q' {where}, got {value!r}")


def named_tensors(names: Sequence[str], options: Options, tensors: Sequence[Any]) -> dict[str, Any]:
    """The tensors of a call by its names, and those after them, which are arguments of `score_mod`."""
    places = [at for at, number in enumerate(options.numbers) if number is None]
    return by_name([*names, *(f"score_args[{at}]" for at in places)], tensors)


def arguments_of(
    q: Operand, named: Mapping[str, Any], options: Options, limits: Limits, scale: float | None
) -> dict[str, Any]:
    """The arguments of the kernel that are numbers, limits or options. Raises TypeError or ValueError for them."""
    sinks = None
    if named.get("sinks") is not None:
        sinks = operand(q.function, "sinks", named["sinks"])
        check_plain(q, sinks, SINK_DTYPES, (q.shape[-3],), "heads of 'q'")
    score_args = [
        operand(q.function, name, named[name]) if (name := f"score_args[{at}]") in named else number
        for at, number in enumerate(options.numbers)
    ]
    check_places((q, *[each for each in score_args if isinstance(each, Operand)]))
    return {
        "lse_ptr": operand(q.function, "lse", named["lse"]),
        "sm_scale": factor_of(q.function, scale, q.shape[-1]),
        "lower": limits.lower,
        "upper": limits.upper,
        "softcap": options.softcap,
        "sinks_ptr": sinks,
        "score_args": tuple(score_args),
        "scales": None,
    }


def facts_of(options: Options, limits: Limits) -> dict[str, Any]:
    """Return the facts about limits and turned scores, as `Tiling` has them."""
    return {
        "causal": limits.causal,
        "uneven": limits.causal or limits.upper is not None,
        "turned": not (options.softcap is None and options.score_mod is None),
        "score_mod": options.score_mod,
    }
