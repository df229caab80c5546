"""States of values inside of `scf.for` and after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects import scf
from xdsl.ir import SSAValue

from tlx_xdsl.analysis.integers.polynomials import Counter, Polynomial
from tlx_xdsl.dialects.regions import edge_to

from .arithmetic import causes_of, name_of
from .carried import ENDLESS, Carried, Loop, grown, slice_state
from .intervals import Interval
from .values import NO_CONDITIONS, Integer, State

if TYPE_CHECKING:
    from .walk import Walk


def enter_for(walk: Walk, op: scf.ForOp) -> Loop:
    """Set what is known about the induction variable and the carried values of a loop."""
    known = walk.known
    counter = Counter(op, _counter_name(walk, op.body.block.args[0]))
    lower, upper, step = (walk.state(value) for value in (op.lb, op.ub, op.step))
    body = op.body.block
    index, entry, again = body.args[0], edge_to(op, body), edge_to(body.last_op, body)
    trips, conditions, variable = None, NO_CONDITIONS, None
    known.bounds.known[counter] = ENDLESS
    if isinstance(lower, Integer) and isinstance(upper, Integer) and isinstance(step, Integer):
        begin, stride, last = known.whole(lower), known.at_least(1, step), known.whole(upper)
        if begin is not None and stride is not None:
            bound = upper if last is None else last
            conditions = begin.conditions.join(stride.conditions).join(bound.conditions)
            # Before the bound, nothing wraps.
            reach = Interval(begin.range.low, max(begin.range.low, bound.range.high - 1))
            known.bounds.known[counter] = Interval(0, (reach.high - reach.low) // max(1, stride.range.low))
            form = begin.form + stride.form * Polynomial.of(counter)
            variable = Integer(form, reach, True, lower.bits, conditions)
            if last is not None:
                around = known.simplifier.call("floordiv", (last.form - begin.form + stride.form - 1, stride.form))
                trips = known.simplifier.call("max", (Polynomial({}), around))
    if variable is None:
        variable = known.state_of_unknown(index, causes_of([lower, upper, step]))
    walk.states[index] = variable
    targets = entry.inputs
    carried = Carried(walk, op, targets)
    firsts = [walk.state(value) for value in entry.operands]
    nexts = [slice_state(walk, body, carried.states, value) for value in again.operands]
    steps = [carried.step(target, after) for target, after in zip(targets, nexts, strict=True)]
    causes = carried.causes(firsts, nexts)
    states: list[State] = []
    for target, first, by, after, cause in zip(targets, firsts, steps, nexts, causes, strict=True):
        state = None if by is None else grown(walk, target, first, by * Polynomial.of(counter), after, conditions)
        states.append(walk.known.state_of_unknown(target, cause) if state is None else state)
        walk.states[target] = states[-1]
    runs = trips is not None and known.bounds.of_form(trips).low > 0
    return Loop(op, counter, trips, runs, tuple(states), tuple(steps), conditions)


def _counter_name(walk: Walk, value: SSAValue) -> str:
    return f"iteration_{name_of(value)}" if value.name_hint else f"iteration_{walk.fresh()}"


def for_results(walk: Walk, op: scf.ForOp, loop: Loop) -> None:
    """Set what is known about the results of a loop."""
    known = walk.known
    bounds = causes_of([walk.state(value) for value in (op.lb, op.ub, op.step)])
    for (initial, result), step, carried in zip(edge_to(op, op).pairs, loop.steps, loop.carried, strict=True):
        state, first = None, walk.state(initial)
        if step is not None and loop.trips is not None:
            state = grown(walk, result, first, step * loop.trips, carried, loop.conditions)
        elif step is not None and not step.terms:
            state = first
        if state is None:
            state = known.state_of_unknown(result, causes_of([first, carried]) | bounds)
        walk.states[result] = state
