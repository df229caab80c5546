"""The tile, the schedule and the division of work of a GEMM, by a model of the time; the same for the same shape.

`tiles` has the configurations, `division` the ways to divide the work, and `model` the microseconds
that each should take; `choose` takes the first.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf

from .division import Choice, clusters_on, divisions, orientations
from .model import BY_LINES, TIMES, Reading, fetching, predict, together
from .tiles import CONFIGS, LARGE, MEDIUM, SMALL, TINY, GemmConfig

__all__ = ["CONFIGS", "LARGE", "MEDIUM", "SMALL", "TINY", "Choice", "GemmConfig", "choose", "choose_config"]

_STEPS = {config: TIMES[name].step for name, config in CONFIGS.items()}


@lru_cache(maxsize=4096)
def choose(
    m: int,
    n: int,
    k: int,
    multiprocessors: int = 132,
    reading: Reading = BY_LINES,
    ending: float = 0.0,
) -> Choice:
    """The candidate that should be done first; `reading` and `ending` are as for `predict`.

    Configurations go by what their products and the memory need at least, until that is more than the best takes.
    """
    memory = fetching(m, n, k)
    bounds: list[tuple[float, int, GemmConfig, bool]] = []
    for number, (config, swapped) in enumerate(orientations(m, n)):
        if programs := clusters_on(multiprocessors, config.cluster):
            tiles = config.tiles(n, m) if swapped else config.tiles(m, n)
            busy = tiles * -(-k // config.block_k) * _STEPS[config] / programs
            bounds.append((together(busy, memory), number, config, swapped))
    best, least = None, inf
    for bound, _, config, swapped in sorted(bounds):
        if bound > least:
            break
        rows, columns = (n, m) if swapped else (m, n)
        for choice in divisions(config, rows, columns, k, multiprocessors, swapped):
            time = predict(choice, m, n, k, reading, ending)
            if time < least:
                best, least = choice, time
    assert best is not None, "a cluster of one always runs"
    return best


def choose_config(m: int, n: int, k: int, multiprocessors: int = 132) -> GemmConfig:
    """The configuration of the choice for operands that lie by rows and begin at lines of 128 bytes."""
    return choose(m, n, k, multiprocessors).config
