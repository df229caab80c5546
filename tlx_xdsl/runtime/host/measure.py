"""Time of a function on this CPU, in milliseconds, for autotuners."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

WARMUP_MS, REP_MS = 5.0, 40.0
"""A CPU needs no more to get its caches and its clock up, and for a median that 5 % shows in."""

_MOST_RUNS = 1000
_LEAST_RUNS = 3


def do_bench(
    fn: Callable[[], Any],
    warmup: float | None = None,
    rep: float | None = None,
    grad_to_none: Any = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """The time of `fn` in milliseconds, as `triton.testing.do_bench` gives it: `warmup` and `rep` are milliseconds.

    With `quantiles` those of the times, else what `return_mode` says: `min`, `max`, `mean`, `median` or `all`.
    """
    # Whatever has to be compiled is compiled then.
    fn()
    first = _timed(fn, grad_to_none)
    for _ in range(_runs(WARMUP_MS if warmup is None else warmup, first) if first < WARMUP_MS else 0):
        fn()
    estimate = _timed(fn, grad_to_none)
    times = [_timed(fn, grad_to_none) for _ in range(max(_LEAST_RUNS, _runs(REP_MS if rep is None else rep, estimate)))]
    if quantiles is not None:
        return [_quantile(times, each) for each in quantiles]
    if return_mode == "all":
        return times
    return {"min": min, "max": max, "mean": statistics.fmean, "median": statistics.median}[return_mode](times)


def do_bench_without_warmup(fn: Callable[[], Any], rep: float | None = None, *rest: Any, **options: Any) -> Any:
    """`triton.testing.do_bench_cudagraph` on the CPU, which has no graphs: it has no time to warm up."""
    return do_bench(fn, 0, rep, *rest, **options)


def _timed(fn: Callable[[], Any], grad_to_none: Any) -> float:
    for each in grad_to_none or ():
        each.grad = None
    before = time.perf_counter_ns()
    fn()
    return max(time.perf_counter_ns() - before, 1) * 1e-6


def _runs(budget_ms: float, each_ms: float) -> int:
    return min(_MOST_RUNS, int(budget_ms / each_ms))


def _quantile(times: Sequence[float], at: float) -> float:
    """Interpolate between the two nearest times."""
    ordered = sorted(times)
    place = at * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
