"""What goes around loops.

A value that a loop carries is either what it was at first, or grows by the same number in each iteration, or all that
is known is what it depends on. To tell which, the operations between the carried value and what takes its place in the
next iteration are looked at once with an atom for the carried value: `next - carried` says how it grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tlx_xdsl.analysis.program_address.arithmetic import causes_of, causes_of_form, name_of
from tlx_xdsl.analysis.program_address.forms import Atom, Counter, Form, Unknown
from tlx_xdsl.analysis.program_address.intervals import Interval
from tlx_xdsl.analysis.program_address.values import (
    ANYTHING,
    NO_CONDITIONS,
    Causes,
    Conditions,
    Descriptor,
    Integer,
    Pointer,
    State,
)

if TYPE_CHECKING:
    from tlx_xdsl.analysis.program_address.walk import Walk

ENDLESS = Interval(0, (1 << 63) - 1)


@dataclass(frozen=True)
class Loop:
    """A loop around an access."""

    op: Operation
    counter: Counter
    range: Interval
    """Of the counter."""
    trips: Form | None
    """How many iterations there are."""
    runs: bool
    """Whether there is one for certain."""
    carried: tuple[State, ...]
    """What the carried values are in an iteration."""
    steps: tuple[Form | None, ...]
    """By how much each carried value grows (a pointer: in bytes); None where unevenly."""
    conditions: Conditions


def enter_for(walk: Walk, op: scf.ForOp) -> Loop:
    """Set what is known about the induction variable and the carried values of a loop."""
    known = walk.known
    counter = Counter(op, _counter_name(walk, op.body.block.args[0]))
    lower, upper, step = (walk.state(value) for value in (op.lb, op.ub, op.step))
    index, *targets = op.body.block.args
    causes = causes_of([lower, upper, step])
    trips, conditions, variable = None, NO_CONDITIONS, None
    known.bounds.known[counter] = ENDLESS
    if isinstance(lower, Integer) and isinstance(upper, Integer) and isinstance(step, Integer):
        first, by, last = known.whole(lower), known.positive(step), known.whole(upper)
        if first is not None and by is not None:
            bound = upper if last is None else last
            conditions = first.conditions.join(by.conditions).join(bound.conditions)
            # In front of the bound, nothing wraps.
            reach = Interval(first.range.low, max(first.range.low, bound.range.high - 1))
            known.bounds.known[counter] = Interval(0, (reach.high - reach.low) // max(1, by.range.low))
            form = first.form + by.form * Form.of(counter)
            variable = Integer(form, reach, True, lower.bits, conditions)
            if last is not None:
                around = known.simplifier.call("floordiv", (last.form - first.form + by.form - 1, by.form))
                trips = known.simplifier.call("max", (Form({}), around))
    if variable is None:
        variable = known.state_of_unknown(index, causes)
    walk.states[index] = variable
    loop = _carry(walk, op, op.body.block, op.iter_args, targets, counter, trips, conditions)
    for target, state in zip(targets, loop.carried, strict=True):
        walk.states[target] = state
    return loop


def _counter_name(walk: Walk, value: SSAValue) -> str:
    return f"iteration_{name_of(value)}" if value.name_hint else f"iteration_{walk.fresh()}"


def _carry(
    walk: Walk,
    op: Operation,
    body: Block,
    initial: Sequence[SSAValue],
    targets: Sequence[SSAValue],
    counter: Counter,
    trips: Form | None,
    conditions: Conditions,
) -> Loop:
    """Solve for the carried values `targets` of a loop that begin as `initial` and become what `body` yields."""
    end = body.last_op
    assert isinstance(end, scf.YieldOp)
    slice_ = _Slice(walk, body, targets)
    firsts = [walk.state(value) for value in initial]
    nexts = [slice_.state(value) for value in end.operands]
    steps = [slice_.step(target, after, op, counter) for target, after in zip(targets, nexts, strict=True)]
    causes = slice_.causes(firsts, nexts)
    states: list[State] = []
    for target, first, step, after, cause in zip(targets, firsts, steps, nexts, causes, strict=True):
        state = None
        if step is not None:
            state = _grown(walk, target, first, step * Form.of(counter), after, conditions)
        states.append(walk.known.state_of_unknown(target, cause) if state is None else state)
    span = walk.known.bounds.of(counter)
    runs = trips is not None and walk.known.bounds.of_form(trips).low > 0
    return Loop(op, counter, span, trips, runs, tuple(states), tuple(steps), conditions)


def _grown(
    walk: Walk, value: SSAValue, first: State, growth: Form, after: State, conditions: Conditions
) -> State | None:
    """The state of a carried value that has grown by `growth` since it was `first`."""
    match first, after:
        case (Integer(), Integer()) if not growth.terms:
            return first.with_conditions(after.conditions)
        case (Pointer(), Pointer()) if not growth.terms:
            return replace(first, conditions=first.conditions.join(after.conditions))
        case (Descriptor(), Descriptor()) if not growth.terms:
            return first
        case (Integer(), Integer()):
            conditions = first.conditions.join(after.conditions).join(conditions)
            grown = walk.known.made(
                value, first.form + growth, first.range + walk.known.bounds.of_form(growth), exact=first.exact,
                operands=(first,),
            )  # fmt: skip
            return grown.with_conditions(conditions)
        case (Pointer(), Pointer()) if first.base is not None:
            conditions = first.conditions.join(after.conditions).join(conditions)
            return Pointer(first.base, first.offset + growth, conditions)
        case _:
            return None


class _Slice:
    """What the values of a loop's body are in terms of the carried ones, as far as it is looked at."""

    def __init__(self, walk: Walk, body: Block, targets: Sequence[SSAValue]):
        self._walk = walk
        self._body = body
        self._targets = list(targets)
        self._atoms: dict[SSAValue, Unknown] = {}
        self._states: dict[SSAValue, State] = {}
        known = walk.known
        for target in targets:
            state = known.state_of_unknown(target, Causes(on_lanes=True))
            match state:
                case Integer(form):
                    (atom,) = form.atoms
                    assert isinstance(atom, Unknown)
                    self._atoms[target] = atom
                    state = Integer(form, state.range, True, state.bits)
                case Pointer():
                    # An offset behind itself.
                    state = Pointer(target, Form({}))
                case _:
                    pass
            self._states[target] = state

    def state(self, value: SSAValue) -> State:
        """What a value is; the operations that lead to it are looked at once, without recursion."""
        todo = [value]
        while todo:
            current = todo[-1]
            if current in self._states:
                todo.pop()
                continue
            owner = current.owner
            if not isinstance(owner, Operation) or owner.parent is not self._body:
                # From outside of the loop, or the induction variable.
                self._states[current] = self._walk.state(current)
                todo.pop()
            elif owner.regions:
                self._states[current] = self._walk.known.state_of_unknown(current, ANYTHING)
                todo.pop()
            elif missing := [operand for operand in owner.operands if operand not in self._states]:
                todo.extend(missing)
            else:
                operands = [self._states[operand] for operand in owner.operands]
                self._states[current] = self._walk.computed(owner, current, operands)
                todo.pop()
        return self._states[value]

    def step(self, target: SSAValue, after: State, loop: Operation, counter: Counter) -> Form | None:
        """By how much a carried value grows in each iteration; None where that changes."""
        match after:
            case Integer(form) if target in self._atoms:
                growth = form - Form.of(self._atoms[target])
            case Pointer(base, offset) if base is target:
                growth = offset
            case Descriptor(base) if base is target:
                growth = Form({})
            case _:
                return None
        return growth if all(self._lasts(atom, loop, counter) for atom in growth.all_atoms) else None

    def _lasts(self, atom: Atom, loop: Operation, counter: Counter) -> bool:
        """Whether an atom is the same in all iterations."""
        match atom:
            case Unknown():
                return not any(map(loop.is_ancestor, map(_owner, (atom.value, *atom.through))))
            case Counter():
                return not loop.is_ancestor(atom.loop)
            case _:
                return True

    def causes(self, firsts: Sequence[State], nexts: Sequence[State]) -> list[Causes]:
        """What each carried value may depend on, in any iteration."""
        found = [causes_of([first]) for first in firsts]
        own: dict[Atom, int] = {
            atom: number for number, target in enumerate(self._targets) if (atom := self._atoms.get(target))
        }
        parts: list[tuple[Causes, list[int]]] = []
        for target, after in zip(self._targets, nexts, strict=True):
            match after:
                case Integer(form) if target in self._atoms:
                    others = [atom for atom in form.all_atoms if atom not in own]
                    plain = causes_of_form(Form({frozenset([(atom, 1)]): 1 for atom in others}))
                    parts.append((plain, [own[atom] for atom in form.all_atoms if atom in own]))
                case _:
                    parts.append((ANYTHING, []))
        for _ in firsts:
            before = list(found)
            for number, (plain, used) in enumerate(parts):
                for other in (Causes(), *(before[index] for index in used)):
                    found[number] = found[number].join(plain).join(other)
            if before == found:
                break
        return found


def _owner(value: SSAValue) -> Operation | Block:
    return value.owner


def for_results(walk: Walk, op: scf.ForOp, loop: Loop) -> None:
    """Set what is known about the results of a loop."""
    known = walk.known
    bounds = causes_of([walk.state(value) for value in (op.lb, op.ub, op.step)])
    for result, initial, step, carried in zip(op.results, op.iter_args, loop.steps, loop.carried, strict=True):
        state, first = None, walk.state(initial)
        if step is not None and loop.trips is not None:
            state = _grown(walk, result, first, step * loop.trips, carried, loop.conditions)
        elif step is not None and not step.terms:
            state = first
        if state is None:
            state = known.state_of_unknown(result, causes_of([first, carried]).join(bounds))
        walk.states[result] = state


def enter_while(walk: Walk, op: scf.WhileOp) -> Loop:
    """Set that nothing is known about what a `while` loop carries."""
    counter = Counter(op, f"iteration_{walk.fresh()}")
    walk.known.bounds.known[counter] = ENDLESS
    states: list[State] = []
    for target in op.before_region.block.args:
        states.append(walk.known.state_of_unknown(target, ANYTHING))
        walk.states[target] = states[-1]
    return Loop(op, counter, ENDLESS, None, False, tuple(states), (None,) * len(states), NO_CONDITIONS)
