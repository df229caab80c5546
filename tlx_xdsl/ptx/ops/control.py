"""Instructions that end or mark a thread (PTX ISA, "trap", "brkpt", "setmaxnreg")."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..cohort import LANES, Cohort, Item, Wait
from ..memory.surroundings import Trap
from ..read.syntax import Number
from ..steps import Builders, Context, Step
from .memory import Mask


def _trap(context: Context) -> Step:
    return Step(effect=_stop)


def _stop(cohort: Cohort, mask: Mask) -> None:
    if mask is None or mask.any():
        raise Trap("the kernel stops at a trap")


def _registers(context: Context) -> Step:
    """`setmaxnreg`: warps give registers back to the CTA's, or wait for more of them."""
    context.expect(1)
    parts = context.instruction.modifiers
    count = context.operand(0)
    if parts[1:] != ("sync", "aligned", "u32") or parts[0] not in ("inc", "dec"):
        raise context.refuse()
    if not isinstance(count, Number) or count.value % 8 or not 24 <= count.value <= 256:
        raise context.refuse("a multiple of 8 from 24 to 256 is wanted")
    wanted = count.value
    if parts[0] == "dec":
        return Step(effect=partial(_give, wanted))
    return Step(effect=partial(_take, wanted), suspends=True)


class _Pool:
    """The registers of a CTA: those that each warp may use, and those that are free."""

    def __init__(self, launch: int, warps: int):
        self.held = [launch] * warps
        self.free = 0

    def passed(self, phase: int) -> bool:
        """Return whether so many are free."""
        return self.free >= phase

    def describe(self, phase: int) -> str:
        """Say what is waited for."""
        return f"{phase * LANES} registers, of which its CTA has {self.free * LANES} free"


def _pools(cohort: Cohort, mask: Mask) -> list[tuple[_Pool, list[int], Any]] | None:
    """The pool of each CTA, with its warps that run this, and their threads; None where no launch's number is known."""
    if not cohort.whole or (mask is not None and not mask.all()):
        raise Trap("not all threads of a warp run this instruction together")
    wave = cohort.wave
    launch = wave.program.function.directives.get("maxnreg")
    if launch is None:
        return None
    found: list[tuple[_Pool, list[int], Any]] = []
    per_cta = wave.padded_threads // LANES
    for cta, threads in cohort.cta_groups:
        if (pool := wave.state.get(("registers", cta))) is None:
            pool = wave.state["registers", cta] = _Pool(launch[0], per_cta)
        warps = [int(warp) % per_cta for warp in cohort.warps if warp // per_cta == cta]
        chosen = np.zeros(cohort.n, np.bool_)
        chosen[threads] = True
        found.append((pool, warps, chosen))
    return found


def _give(count: int, cohort: Cohort, mask: Mask) -> None:
    for pool, warps, _ in _pools(cohort, mask) or ():
        for warp in warps:
            pool.free += max(pool.held[warp] - count, 0)
            pool.held[warp] = min(pool.held[warp], count)


def _take(count: int, cohort: Cohort, mask: Mask) -> Any:
    items: list[Item] = []
    for pool, warps, chosen in _pools(cohort, mask) or ():
        missing = sum(max(count - pool.held[warp], 0) for warp in warps)
        if missing > pool.free:
            items.append(Item(chosen, pool, missing))
            continue
        pool.free -= missing
        for warp in warps:
            pool.held[warp] = max(pool.held[warp], count)
    if items:
        cohort.waiting = Wait(tuple(items))
        return None
    return ()


BUILDERS: Builders = {"trap": _trap, "brkpt": _trap, "setmaxnreg": _registers}
