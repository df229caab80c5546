"""Fences (PTX ISA, "membar, fence", "fence.proxy")."""

from __future__ import annotations

from ..cohort import Cohort
from ..steps import NOTHING, Builder, Context, Step
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
        return Step(effect=_order)
    raise context.refuse()


def _proxy(cohort: Cohort, mask: Mask) -> None:
    cohort.wave.order.proxy_fence(cohort, mask)


def _order(cohort: Cohort, mask: Mask) -> None:
    cohort.wave.order.fence(cohort, mask)


BUILDERS: dict[str, Builder] = {"fence": _fence, "membar": _fence}
