"""Stores, and asynchronous ones to other CTAs (PTX ISA, "st", "st.async")."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arithmetic.kinds import KINDS, PLAIN, TYPES
from ..cohort import Cohort
from ..steps import Builders, Context, Step
from .mbarriers import barrier_at, each, plus, shared_address
from .memory import LANES, Mask, build_store


def _build(context: Context) -> Step:
    if context.instruction.modifiers[:1] == ("async",):
        return _build_asynchronous(context)
    return build_store(context)


def _build_asynchronous(context: Context) -> Step:
    """`st.async`: to another CTA's memory, whose mbarrier counts the bytes."""
    parts = [part for part in context.instruction.modifiers[1:] if part != "weak"]
    if parts[:2] != ["shared::cluster", "mbarrier::complete_tx::bytes"] or not 3 <= len(parts) <= 4:
        raise context.refuse()
    lanes, type_ = LANES.get(parts[2], 1), parts[-1]
    if type_ not in TYPES or len(parts) != 3 + (lanes > 1):
        raise context.refuse()
    context.expect(3)
    kind = KINDS[TYPES[type_]]
    target, offset = shared_address(context, 0)
    values = context.values(context.operand(1), PLAIN[kind.size])
    barrier, barrier_offset = shared_address(context, 2)
    if len(values) != lanes:
        raise context.refuse(f"it has {len(values)} values, not {lanes}")

    def effect(cohort: Cohort, mask: Mask, targets: Any, barriers: Any, *held: Any) -> None:
        rows = held[0] if lanes == 1 else np.stack(held, -1)
        to = plus(targets, offset)
        shared, size = cohort.wave.shared, kind.size * lanes
        for at, threads, _ in each(cohort, mask, plus(barriers, barrier_offset)):
            chosen = np.zeros(cohort.n, np.bool_)
            chosen[threads] = True
            places = shared.places(cohort, to[chosen], chosen, size, "store")
            found = barrier_at(cohort, at)
            cohort.wave.order.remote_stores(cohort, chosen, places, size, found, at)
            shared.store(places, rows[chosen], kind.size, lanes)
            found.bytes -= size * int(np.count_nonzero(chosen))
            found.complete()

    return Step((target, barrier, *values), effect=effect)


BUILDERS: Builders = {"st": _build}
