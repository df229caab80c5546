"""Cluster launch control: a running cluster takes over one that has not been launched.

PTX ISA, "clusterlaunchcontrol". A response is opaque there; here it has the indices of the cluster's first CTA and a
word that says that there is one, as in the interpreter (`numerics/ptx/instructions.py`, which reads it).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import compute
from ..cohort import Cohort
from ..steps import Builders, Context, Step
from .mbarriers import plus, shared_address
from .memory import Mask
from .tma import deliver


def _build(context: Context) -> Step:
    parts = list(context.instruction.modifiers)
    if parts[:1] != ["try_cancel"]:
        step = compute.build(context)
        if step is None:
            raise context.refuse()
        return step
    for_all = "multicast::cluster::all" in parts
    rest = [part for part in parts[1:] if part != "multicast::cluster::all"]
    if rest != ["async", "shared::cta", "mbarrier::complete_tx::bytes", "b128"]:
        raise context.refuse()
    context.expect(2)
    target, offset = shared_address(context, 0)
    barrier, barrier_offset = shared_address(context, 1)

    def effect(cohort: Cohort, mask: Mask, targets: Any, barriers: Any) -> None:
        to, at = plus(targets, offset), plus(barriers, barrier_offset)
        ranks = list(range(cohort.wave.cluster_size)) if for_all else None
        for thread in range(cohort.n) if mask is None else np.flatnonzero(mask).tolist():
            words = np.zeros(4, np.uint32)
            found = cohort.wave.machine.take_over()
            if found is not None:
                words[:3], words[3] = found, 1
            deliver(cohort, thread, int(to[thread]), int(at[thread]), words.view(np.uint8), 0, ranks)

    return Step((target, barrier), effect=effect)


BUILDERS: Builders = {"clusterlaunchcontrol": _build}
