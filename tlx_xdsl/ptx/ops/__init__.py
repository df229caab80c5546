"""Instructions with effects: what makes a step of each, by its name."""

from __future__ import annotations

from ..steps import Builders
from . import (
    atomics,
    barriers,
    calls,
    clusters,
    control,
    copies,
    fences,
    launch_control,
    matrices,
    mbarriers,
    memory,
    stores,
    tcgen05,
    tensormaps,
    warps,
    wgmma,
)

_MODULES = (
    atomics, barriers, calls, clusters, control, copies, fences, launch_control, matrices, mbarriers, memory, stores,
    tcgen05, tensormaps, warps, wgmma,
)  # fmt: skip
BUILDERS: Builders = {name: builder for module in _MODULES for name, builder in module.BUILDERS.items()}
