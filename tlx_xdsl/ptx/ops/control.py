"""What ends or marks a thread (PTX ISA, "trap", "brkpt", "setmaxnreg")."""

from __future__ import annotations

from tlx_xdsl.ptx.cohort import Cohort, Trap
from tlx_xdsl.ptx.ops.memory import Mask
from tlx_xdsl.ptx.steps import Builder, Context, Step
from tlx_xdsl.ptx.syntax import Number


def _trap(context: Context) -> Step:
    return Step(effect=_stop)


def _stop(cohort: Cohort, mask: Mask) -> None:
    if mask is None or mask.any():
        raise Trap("the kernel stops at a trap")


def _registers(context: Context) -> Step:
    """`setmaxnreg`: checked for its form; how many registers a CTA has in all is ptxas's to know."""
    context.expect(1)
    count = context.operand(0)
    if not isinstance(count, Number) or count.value % 8 or not 24 <= count.value <= 256:
        raise context.refuse("a multiple of 8 from 24 to 256 is wanted")
    return Step(effect=_check_whole)


def _check_whole(cohort: Cohort, mask: Mask) -> None:
    if not cohort.whole or (mask is not None and not mask.all()):
        raise Trap("not all threads of a warp run this instruction together")


BUILDERS: dict[str, Builder] = {"trap": _trap, "brkpt": _trap, "setmaxnreg": _registers}
