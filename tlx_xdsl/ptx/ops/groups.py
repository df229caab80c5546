"""Groups of asynchronous operations, which warps close and wait for (PTX ISA, "commit_group", "wait_group")."""

from __future__ import annotations

from collections.abc import Callable

from ..cohort import Cohort
from ..read.syntax import Number
from ..steps import Context, Step
from .memory import Mask


def commit_group(context: Context, kind: str) -> Step:
    """Close a group of operations of a kind."""
    context.expect(0)

    def run(cohort: Cohort, mask: Mask) -> None:
        cohort.wave.order.commit(cohort, mask, kind)

    return Step(effect=run)


def wait_group(context: Context, kind: str) -> Step:
    """Wait for all groups but the last ones, whose number is a constant."""
    context.expect(1)
    count = context.operand(0)
    if not isinstance(count, Number):
        raise context.refuse("the number of groups must be a constant")
    return Step(effect=waiting(kind, count.value))


def waiting(kind: str, count: int) -> Callable[[Cohort, Mask], None]:
    """The effect of a wait for all groups but the last `count`."""

    def run(cohort: Cohort, mask: Mask) -> None:
        cohort.wave.order.wait_group(cohort, mask, kind, count)

    return run
