"""Fences (PTX ISA, "membar, fence", "fence.proxy"), and what changes nothing here: hints, and orders that hold anyway.

Launches follow each other, so `griddepcontrol` never waits; what comes before it is looked at. What is written is seen
at once, so the fences of memory order nothing but the clocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cohort import Cohort
from ..global_order import CLUSTER, SHARED, WEAK, sync_of
from ..steps import NOTHING, Builders, Context, Step
from .memory import Mask

_PROXY = (
    "proxy.async",
    "proxy.async.shared::cta",
    "proxy.async.shared::cluster",
    "proxy.async.global",
    "proxy.async::generic",
)


def _fence(context: Context) -> Step:
    kind = ".".join(context.instruction.modifiers)
    if kind in _PROXY[:3]:
        return Step(effect=_proxy)
    if kind.startswith(("proxy.async::generic", "proxy.async.global", "proxy.alias", "proxy.tensormap")):
        return NOTHING
    if kind.split(".")[0] in (
        "acq_rel",
        "sc",
        "acquire",
        "release",
        "mbarrier_init",
        "cta",
        "gl",
        "sys",
        "gpu",
        "cluster",
    ):
        # A fence with restricted scope, as `fence.mbarrier_init`, orders nothing in global memory.
        named = sync_of(context.instruction.modifiers)
        scope = WEAK if "_" in kind.replace("acq_rel", "") else named.scope
        acquires = named.acquires or context.instruction.name == "membar"
        return Step(effect=_order(scope, _acquired(kind) if acquires and named.scope >= CLUSTER else slice(0)))
    raise context.refuse()


def _proxy(cohort: Cohort, mask: Mask) -> None:
    cohort.wave.order.proxy_fence(cohort, mask)


def _acquired(kind: str) -> slice:
    """The memories of other CTAs of which a fence acquires what was waited for."""
    if "sync_restrict" in kind:
        return slice(SHARED, SHARED + 1 if "sync_restrict::shared::cluster" in kind else SHARED)
    return slice(None)


def _order(scope: int, acquires: slice) -> Callable[[Cohort, Mask], None]:
    def run(cohort: Cohort, mask: Mask) -> None:
        cohort.wave.order.fence(cohort, mask, scope, acquires)

    return run


def _grids(context: Context) -> Step:
    def wait(cohort: Cohort, mask: Mask) -> None:
        cohort.wave.order.grid_wait(cohort, mask)

    return Step(effect=wait) if context.instruction.modifiers == ("wait",) else NOTHING


def _nothing(context: Context) -> Step:
    return NOTHING


def _policy(context: Context) -> Step:
    """`createpolicy`: an opaque number, which loads and stores take for a hint."""

    def run(cohort: Cohort, mask: Mask) -> NDArray[Any]:
        return np.zeros(1, np.uint64)

    return Step((), context.written(0, "u8"), effect=run)


BUILDERS: Builders = {
    "fence": _fence,
    "membar": _fence,
    **dict.fromkeys(("prefetch", "prefetchu", "discard", "applypriority", "pmevent", "nanosleep"), _nothing),
    "griddepcontrol": _grids,
    "createpolicy": _policy,
}
