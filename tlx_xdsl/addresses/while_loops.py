"""Facts inside of `scf.while`, such as the loop of a persistent kernel over its tiles.

What it carries grows as in `scf.for`. That it does not wrap around follows from the loop's own condition: where an
iteration only begins with `value < bound`, no value is above `bound + step - 1`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects import scf

from tlx_xdsl.analysis.integers.polynomials import Counter, Polynomial
from tlx_xdsl.dialects.regions import edge_to

from .carried import ENDLESS, Carried, Loop, grown, slice_state
from .intervals import Interval
from .values import NO_CONDITIONS, Conditions, Integer, State

if TYPE_CHECKING:
    from .walk import Walk


def enter_while(walk: Walk, op: scf.WhileOp) -> Loop:
    """Set what is known about the carried values, in the first of the loop's two regions."""
    known = walk.known
    counter = Counter(op, f"iteration_{walk.fresh()}")
    known.bounds.known[counter] = ENDLESS
    before, after = op.before_region.block, op.after_region.block
    condition = before.last_op
    assert isinstance(condition, scf.ConditionOp)
    entry, onward, again = edge_to(op, before), edge_to(condition, after), edge_to(after.last_op, before)
    targets, firsts = entry.inputs, [walk.state(value) for value in entry.operands]
    carried = Carried(walk, op, targets)
    test = slice_state(walk, before, carried.states, condition.condition)
    inner = {target: slice_state(walk, before, carried.states, value) for value, target in onward.pairs}
    nexts = [slice_state(walk, after, inner, value) for value in again.operands]
    steps = [carried.step(target, state) for target, state in zip(targets, nexts, strict=True)]
    causes = carried.causes(firsts, nexts)
    limits = [
        None if by is None else _limit(walk, carried, Polynomial.of(carried.symbols[target]), first, by, test)
        if target in carried.symbols and isinstance(first, Integer)
        else None
        for target, first, by in zip(targets, firsts, steps, strict=True)
    ]  # fmt: skip
    for first, by, limit in zip(firsts, steps, limits, strict=True):
        if limit is not None and by is not None and isinstance(first, Integer):
            turns = max(0, limit[0].high - first.range.low) // max(1, known.bounds.of_form(by).low)
            known.bounds.tighten(counter, Interval(0, turns))
    states: list[State] = []
    for target, first, by, limit, state, cause in zip(targets, firsts, steps, limits, nexts, causes, strict=True):
        made = None
        if by is not None:
            rests_on = NO_CONDITIONS if limit is None else limit[1]
            made = grown(walk, target, first, by * Polynomial.of(counter), state, rests_on)
            if limit is not None and isinstance(made, Integer):
                made = Integer(made.form, limit[0], True, made.bits, made.conditions)
        states.append(known.state_of_unknown(target, cause) if made is None else made)
        walk.states[target] = states[-1]
    return Loop(op, counter, None, False, tuple(states), tuple(steps), NO_CONDITIONS)


def _limit(
    walk: Walk, carried: Carried, value: Polynomial, first: Integer, by: Polynomial, test: State
) -> tuple[Interval, Conditions] | None:
    """The range of a carried value that grows by `by` while `test` holds, and on what that rests.

    None where the test does not keep it from wrapping around.
    """
    known = walk.known
    begin, growth = known.whole(first), known.bounds.of_form(by)
    if begin is None or growth.low < 1 or not isinstance(test, Integer):
        return None
    for guard in test.guards:
        if guard.predicate not in ("<", "<=") or not carried.lasts(guard.right):
            continue
        if (ahead := (guard.left - value).number) is None or ahead < 0:
            continue
        # The last value before the bound, and one more step.
        most = guard.right - ahead - (1 if guard.predicate == "<" else 0) + by
        whole = Interval.signed(first.bits)
        reach = Integer(most, known.bounds.of_form(most), known.bounds.of_form(most).within(whole), first.bits)
        exact = known.whole(reach)
        if exact is None:
            continue
        high = min(whole.high, max(begin.range.high, exact.range.high))
        return Interval(begin.range.low, high), begin.conditions.join(exact.conditions).join(test.conditions)
    return None
