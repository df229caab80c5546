"""Other CTAs of a cluster, and kinds of addresses (PTX ISA, "mapa", "getctarank", "isspacep", "st.async").

A shared address has the rank of its CTA in the bits from 24 on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..cohort import Cohort
from ..memory.surroundings import Trap
from ..read.symbols import LOCAL_WINDOW, PARAM_WINDOW, RANK_SHIFT, SHARED_WINDOW
from ..steps import Builders, Context, Step
from .memory import Mask


def _mapa(context: Context) -> Step:
    parts = [part for part in context.instruction.modifiers]
    kind = "u8" if "u64" in parts else "u4"
    if set(parts) - {"shared::cluster", "u32", "u64"}:
        raise context.refuse()
    context.expect(3)

    def effect(cohort: Cohort, mask: Mask, addresses: Any, ranks: Any) -> Any:
        chosen = ranks if mask is None else ranks[mask]
        if len(chosen) and int(chosen.max()) >= cohort.wave.cluster_size:
            raise Trap(f"there is no CTA of rank {int(chosen.max())}: the cluster has {cohort.wave.cluster_size}")
        dtype = addresses.dtype.type
        wide = ranks.astype(addresses.dtype) << dtype(RANK_SHIFT)
        return addresses & ~dtype(0xFF << RANK_SHIFT) | wide

    reads = (context.read(1, kind), context.read(2, "u4"))
    return Step(reads, context.written(0, kind), effect=effect)


def _rank(context: Context) -> Step:
    context.expect(2)
    kind = "u8" if "u64" in context.instruction.modifiers else "u4"
    code = "(({0}>>shift)&low).astype(dtype)"
    type_ = np.uint64 if kind == "u8" else np.uint32
    names = {"shift": type_(RANK_SHIFT), "low": type_(0xFF), "dtype": np.uint32}
    return Step((context.read(1, kind),), context.written(0, "u4"), code, names)


_WINDOWS = {
    "shared": (SHARED_WINDOW, PARAM_WINDOW), "shared::cta": (SHARED_WINDOW, PARAM_WINDOW),
    "shared::cluster": (SHARED_WINDOW, PARAM_WINDOW), "param": (PARAM_WINDOW, LOCAL_WINDOW),
    "local": (LOCAL_WINDOW, 1 << 63), "global": (0, SHARED_WINDOW), "const": (0, 0),
}  # fmt: skip


def _is_space(context: Context) -> Step:
    context.expect(2)
    space = ".".join(context.instruction.modifiers)
    if space not in _WINDOWS:
        raise context.refuse()
    low, high = _WINDOWS[space]
    names = {"low": np.uint64(low), "high": np.uint64(high)}
    code = "(({0}>=low)&({0}<high))"
    return Step((context.read(1, "u8"),), context.written(0, "b"), code, names)


BUILDERS: Builders = {"mapa": _mapa, "getctarank": _rank, "isspacep": _is_space}
