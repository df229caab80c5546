"""Loop-carried values.

A value that a loop carries is either what it was at first, or grows by the same number in each iteration, or all that
is known is what it depends on. To decide which, the operations between the carried value and its successor in the next
iteration are looked at once with a symbol for the carried value: `next - carried` says how it grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from xdsl.ir import Block, Operation, SSAValue

from tlx_xdsl.analysis.integers.polynomials import Counter, Polynomial, Symbol, Unknown
from tlx_xdsl.analysis.integers.symbols import ANYTHING, Causes

from .arithmetic import causes_of, causes_of_form
from .intervals import Interval
from .values import (
    Conditions,
    Integer,
    Pointer,
    State,
)

if TYPE_CHECKING:
    from .walk import Walk

ENDLESS = Interval(0, (1 << 63) - 1)


@dataclass(frozen=True)
class Loop:
    """A loop around an access."""

    op: Operation
    counter: Counter
    trips: Polynomial | None
    """The number of iterations."""
    runs: bool
    """True if there is one for certain."""
    carried: tuple[State, ...]
    """The carried values in an iteration."""
    steps: tuple[Polynomial | None, ...]
    """By how much each carried value grows (a pointer: in bytes); None where unevenly."""
    conditions: Conditions


class Carried:
    """The values that a loop carries, as symbols that stand for them in some iteration."""

    def __init__(self, walk: Walk, loop: Operation, targets: Sequence[SSAValue]):
        self.symbols: dict[SSAValue, Unknown] = {}
        self.states: dict[SSAValue, State] = {}
        """The carried values, in terms of the symbols."""
        self._loop = loop
        self._targets = list(targets)
        for target in targets:
            state = walk.known.state_of_unknown(target, Causes.LANES)
            match state:
                case Integer(form):
                    (symbol,) = form.symbols
                    assert isinstance(symbol, Unknown)
                    self.symbols[target] = symbol
                case Pointer():
                    # An offset from itself.
                    state = Pointer(target, Polynomial({}))
                case _:
                    pass
            self.states[target] = state

    def step(self, target: SSAValue, after: State) -> Polynomial | None:
        """Return the growth of a carried value in each iteration; None where that changes."""
        match after:
            case Integer(form) if target in self.symbols:
                growth = form - Polynomial.of(self.symbols[target])
            case Pointer(base, offset) if base is target:
                growth = offset
            case _:
                return None
        return growth if self.lasts(growth) else None

    def lasts(self, form: Polynomial) -> bool:
        """True if a polynomial is the same in all iterations."""
        return not any(is_inside(self._loop, symbol) for symbol in form.all_symbols)

    def causes(self, firsts: Sequence[State], nexts: Sequence[State]) -> list[Causes]:
        """Return all that each carried value may depend on, in any iteration."""
        found = [causes_of([first]) for first in firsts]
        own: dict[Symbol, int] = {
            symbol: number for number, target in enumerate(self._targets) if (symbol := self.symbols.get(target))
        }
        parts: list[tuple[Causes, Sequence[int]]] = []
        for target, after in zip(self._targets, nexts, strict=True):
            if not isinstance(after, Integer) or target not in self.symbols:
                parts.append((ANYTHING, ()))
                continue
            others = [symbol for symbol in after.form.all_symbols if symbol not in own]
            plain = causes_of_form(Polynomial({frozenset([(symbol, 1)]): 1 for symbol in others}))
            used: Sequence[int] = [own[symbol] for symbol in after.form.all_symbols if symbol in own]
            if any(isinstance(symbol, Unknown) and is_inside(self._loop, symbol) for symbol in others):
                # What an unknown of this iteration was made of is forgotten.
                used = range(len(firsts))
            parts.append((plain, used))
        for _ in firsts:
            before = list(found)
            for number, (plain, used) in enumerate(parts):
                for other in (plain, *(before[index] for index in used)):
                    found[number] |= other
            if before == found:
                break
        return found


def is_inside(scope: Operation, symbol: Symbol) -> bool:
    """True if a symbol means something else each time that the operations in `scope` run."""
    match symbol:
        case Unknown():
            return any(scope.is_ancestor(value.owner) for value in (symbol.value, *symbol.through))
        case Counter():
            return scope.is_ancestor(symbol.loop)
        case _:
            return False


def slice_state(walk: Walk, body: Block, states: dict[SSAValue, State], value: SSAValue) -> State:
    """The state of a value that operations of `body` compute from `states`, to which the states in between are added.

    Each operation that leads to it is looked at once, without recursion.
    """
    todo = [value]
    while todo:
        current = todo[-1]
        if current in states:
            todo.pop()
            continue
        owner = current.owner
        if not isinstance(owner, Operation) or owner.parent is not body:
            # From outside of the loop, or its induction variable.
            states[current] = walk.state(current)
        elif owner.regions:
            states[current] = walk.known.state_of_unknown(current, ANYTHING)
        elif missing := [operand for operand in owner.operands if operand not in states]:
            todo.extend(missing)
            continue
        else:
            states[current] = walk.computed(owner, current, [states[operand] for operand in owner.operands])
        todo.pop()
    return states[value]


def grown(
    walk: Walk, value: SSAValue, first: State, growth: Polynomial, after: State, conditions: Conditions
) -> State | None:
    """The state of a carried value that has grown by `growth` since it was `first`."""
    match first, after:
        case (Integer(), Integer()) if not growth.terms:
            return first.with_conditions(after.conditions)
        case (Pointer(), Pointer()) if not growth.terms:
            return replace(first, conditions=first.conditions.join(after.conditions))
        case (Integer(), Integer()):
            conditions = first.conditions.join(after.conditions).join(conditions)
            made = walk.known.made(
                value, first.form + growth, first.range + walk.known.bounds.of_form(growth), exact=first.exact,
                operands=(first,),
            )  # fmt: skip
            return made.with_conditions(conditions)
        case (Pointer(), Pointer()) if first.base is not None:
            conditions = first.conditions.join(after.conditions).join(conditions)
            return Pointer(first.base, first.offset + growth, conditions)
        case _:
            return None
