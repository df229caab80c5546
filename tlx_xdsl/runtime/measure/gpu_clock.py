"""Times of launches on a GPU, by CUDA events of torch's."""

# torch is no dependency: what comes from it is of unknown type to a checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

_FLUSH_BYTES = 256 << 20
"""More than the L2 cache of any GPU (B200: 126 MB)."""


_WARM_UP, _FEWEST, _MOST = 3, 5, 1000
"""Launches before the first that counts, and how many count."""


def timed_launches(launch: Callable[[], Any], seconds: float) -> tuple[float, ...]:
    """Milliseconds of each of so many launches, as fit into about `seconds`; before each the L2 cache is emptied.

    The write that does so keeps the GPU busy while the host prepares the launch: the host's time does not count.
    """
    torch: Any = import_module("torch")
    flush = torch.empty(_FLUSH_BYTES, dtype=torch.int8, device="cuda")
    for _ in range(_WARM_UP):
        launch()
    first = _timed(torch, launch, flush, _FEWEST)
    # An emptied cache costs 0.1 ms.
    once = max(1e-6, (sum(first) / len(first) + 0.1) * 1e-3)
    return tuple(first + _timed(torch, launch, flush, max(0, min(_MOST, int(seconds / once)) - _FEWEST)))


def _timed(torch: Any, launch: Callable[[], Any], flush: Any, count: int) -> list[float]:
    spans: list[tuple[Any, Any]] = []
    for _ in range(count):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        flush.zero_()
        start.record()
        launch()
        end.record()
        spans.append((start, end))
    torch.cuda.synchronize()
    return [start.elapsed_time(end) for start, end in spans]
