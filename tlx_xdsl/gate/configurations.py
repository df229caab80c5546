"""The configurations of a kernel: an autotuner's list, choices that are given, and a drawn sample of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, cast

LAUNCH_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
"""Options of a launch that a configuration of an autotuner has beside compile-time arguments."""


def tuned(kernel: Any) -> list[dict[str, Any]]:
    """Return what the configurations of an autotuned kernel choose; one without choices for any other kernel."""
    found: list[dict[str, Any]] = [{}]
    for layer in _layers(kernel):
        configs = getattr(layer, "configs", None)
        if isinstance(configs, Sequence) and configs:
            found = [_chosen(each) for each in cast("Sequence[Any]", configs)]
    return found


def _layers(kernel: Any) -> list[Any]:
    """The decorated kernel, and what it decorates, to the function."""
    found: list[Any] = []
    while kernel is not None and kernel not in found:
        found.append(kernel)
        kernel = getattr(kernel, "fn", None)
    return found


def _chosen(config: Any) -> dict[str, Any]:
    options = {name: getattr(config, name, None) for name in LAUNCH_OPTIONS}
    return {**config.kwargs, **{name: value for name, value in options.items() if value is not None}}


def heuristics_of(kernel: Any) -> dict[str, Callable[[dict[str, Any]], Any]]:
    """Return what computes compile-time arguments of a kernel from all its arguments, by name."""
    found: dict[str, Callable[[dict[str, Any]], Any]] = {}
    for layer in _layers(kernel):
        values = getattr(layer, "values", None)
        if isinstance(values, Mapping):
            found |= cast("Mapping[str, Callable[[dict[str, Any]], Any]]", values)
    return found


def combined(listed: Sequence[Mapping[str, Any]], choices: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """All combinations of an autotuner's list with choices, which come first where both choose; each one once."""
    found = [
        {**each, **dict(zip(choices, values, strict=True))} for each in listed for values in product(*choices.values())
    ]
    return list({repr(sorted(each.items())): each for each in found}.values())


def drawn(configurations: Sequence[dict[str, Any]], count: int | None, seed: int) -> list[dict[str, Any]]:
    """Return so many of the configurations, in their order; all of them for None."""
    if count is None or count >= len(configurations):
        return list(configurations)
    chosen = random.Random(seed).sample(range(len(configurations)), count)
    return [configurations[at] for at in sorted(chosen)]
