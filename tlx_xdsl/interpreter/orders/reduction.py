"""Orders of steps that are left to run: dynamic partial-order reduction, without states that are kept.

A run is a sequence of steps, each by an agent, and each with what it touches. Two steps are ordered if one agent makes
both, if the second knows of the first, if their order matters, or by a chain of these. For each two steps whose order
matters, and that nothing else orders, a later run has the second one first: where the first one was made, one of the
agents goes on that begin all that leads to the second one and needs nothing of the first ("source sets"; P. A. Abdulla,
S. Aronis, B. Jonsson, K. Sagonas, POPL 2014). What has gone first in an earlier run sleeps in later ones until a step
makes a difference for it (P. Godefroid, LNCS 1032), so no two runs that end are the same up to the order of steps that
does not matter (a Mazurkiewicz trace): a run in which all agents sleep is given up.

An agent that polls and finds nothing makes no step. That it was tried is kept, since it need not be tried there again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tlx_xdsl.errors import InputError

from ..touches import Touches, depend, wake

MOST_STEPS = 1000
"""Steps of a run whose order is looked at: of each the earlier ones are gone through."""


@dataclass(eq=False, slots=True)
class _Node:
    """A state in which an agent makes a step, and that step."""

    enabled: tuple[str, ...]
    """The agents that can make one: names of tasks and asynchronous operations, the same in all runs."""
    sleep: dict[str, Touches]
    """Agents that have gone first in an earlier run, with what they have touched."""
    chosen: str
    backtrack: set[str]
    tried: list[str]
    """Agents that have polled here in vain."""
    default: str
    """Who goes on where no run before has a say."""
    polling: frozenset[str] = frozenset()
    """Agents that have polled in vain before, and wait for something to change."""
    touches: Touches = ()
    before: int = 0
    """The steps before this one, as bits."""
    done: dict[str, Touches] = field(default_factory=dict[str, Touches])

    def left(self) -> list[str]:
        """The agents that are still to go first."""
        over = {*self.done, *self.sleep, *self.tried}
        return [agent for agent in self.enabled if agent in self.backtrack and agent not in over]


class Orders:
    """The orders of a launch, of which `begin` starts the next one.

    With `fixed`, as `text` gives it, there is one.
    """

    def __init__(self, fixed: str = ""):
        self.runs = 0
        """Runs that went to their end."""
        self.repeats = 0
        """Runs that were given up, since all that could go on had gone on in another order."""
        self.unexplored = ""
        """Why orders are left out, where they are."""
        self._fixed = _parsed(fixed)
        self._nodes: list[_Node] = []
        self._depth = 0
        self._failed: list[str] = []
        """Agents that have polled in vain since the last step."""
        self._fresh = 0
        """The number of the first step that no run before has made."""
        self._last: dict[str, int] = {}
        self._begun = False

    def begin(self) -> bool:
        """Start the next order; False where there is none."""
        if self._begun and not self._advance():
            return False
        self._begun = True
        self._depth = 0
        self._failed = []
        self._last = {}
        self._fresh = max(len(self._nodes) - 1, 0)
        return True

    def end(self, *, whole: bool) -> None:
        """Count the run that has ended, or was given up."""
        self.runs += whole
        self.repeats += not whole

    @property
    def known(self) -> int:
        """Runs so far, and those that are known to be left."""
        return self.runs + self.repeats + sum(len({*node.left()} - {node.chosen}) for node in self._nodes)

    @property
    def is_over(self) -> bool:
        """Return whether no order is left."""
        return self._begun and not any(self._unfinished(node) for node in self._nodes)

    def _unfinished(self, node: _Node) -> bool:
        return any(agent != node.chosen for agent in node.left())

    @property
    def text(self) -> str:
        """The order of this run, for `fixed`: where another agent goes on than would anyhow, and which of them."""
        return ",".join(
            f"{number}:{node.chosen}"
            for number, node in enumerate(self._nodes[: self._depth + 1])
            if node.chosen != node.default
        )

    # One run ---------------------------------------------------------------------------------------------------------

    def see(self, enabled: Sequence[str]) -> None:
        """Take the agents that can make a step now: those that the last step blocks go before it in another run."""
        last = self._depth - 1
        if last >= self._fresh and self._depth == len(self._nodes) and not self._failed:
            node = self._nodes[last]
            node.backtrack.update({*node.enabled} - {node.chosen, *enabled, *node.tried})

    def choose(self, enabled: Sequence[str], polling: frozenset[str]) -> str | None:
        """Return who makes the next step, of those that can in the order of preference; None to give the run up.

        Those that are `polling` have found nothing, and nothing has changed since.
        """
        if self._depth < len(self._nodes):
            node = self._nodes[self._depth]
            if len(self._failed) < len(node.tried):
                return node.tried[len(self._failed)]
            return node.chosen if node.chosen in enabled else None
        default = enabled[0]
        if (chosen := self._fixed.get(self._depth)) not in enabled:
            awake = self._awake(enabled)
            if not awake:
                return None
            chosen = awake[0]
        assert chosen is not None
        self._nodes.append(_Node(tuple(enabled), self._sleeping(), chosen, {chosen}, [*self._failed], default, polling))
        return chosen

    def _sleeping(self) -> dict[str, Touches]:
        if not self._depth:
            return {}
        before = self._nodes[self._depth - 1]
        asleep = {**before.sleep, **before.done}
        return {agent: held for agent, held in asleep.items() if not wake(before.touches, held)}

    def _awake(self, enabled: Sequence[str]) -> list[str]:
        asleep = self._sleeping()
        return [agent for agent in enabled if agent not in asleep]

    def made(self, touches: Touches, known: int) -> None:
        """The chosen agent has made its step; `known` are steps that it knew of before, as bits."""
        number, node = self._depth, self._nodes[self._depth]
        if number >= self._fresh:
            node.touches = touches
            node.before = self._closed(node.chosen, known)
            self._look_for_races(number, node)
        self._last[node.chosen] = number
        self._depth += 1
        self._failed = []

    def nothing_made(self) -> None:
        """The chosen agent has gone on, and touched nothing."""
        if self._depth >= self._fresh and self._depth == len(self._nodes) - 1 and not self._nodes[-1].done:
            self._nodes.pop()

    def failed(self, touches: Touches, known: int) -> bool:
        """The chosen agent has polled in vain; False where the run was for that alone, and is to be given up."""
        node = self._nodes[self._depth]
        if len(self._failed) < len(node.tried):
            self._failed.append(node.tried[len(self._failed)])
            return True
        agent = node.chosen
        if self._depth >= self._fresh:
            poll = _Node(
                node.enabled, {}, agent, set(), [], node.default, node.polling, touches, self._closed(agent, known)
            )
            self._look_for_races(self._depth, poll)
        self._failed.append(agent)
        node.tried.append(agent)
        if node.done:
            return False
        self._nodes.pop()
        return True

    def _closed(self, agent: str, known: int) -> int:
        """The steps that come before the next one of an agent, whatever it touches."""
        own = self._last.get(agent)
        if own is not None:
            known |= 1 << own
        return known | self._before(known)

    def _before(self, steps: int) -> int:
        found, rest = 0, steps
        while rest:
            number = rest.bit_length() - 1
            rest ^= 1 << number
            found |= self._nodes[number].before
            rest &= ~found
        return found

    # Other orders ----------------------------------------------------------------------------------------------------

    def _look_for_races(self, number: int, node: _Node) -> None:
        """Add to `node` the steps before it that it depends on, and let it go before those that nothing else orders."""
        if number > MOST_STEPS:
            self.unexplored = f"more than {MOST_STEPS} steps depend on their order"
            return
        before = node.before
        for earlier in range(number - 1, -1, -1):
            if before >> earlier & 1:
                continue
            other = self._nodes[earlier]
            if depend(other.touches, node.touches):
                self._reverse(earlier, number, node, before)
                before |= 1 << earlier | other.before
        node.before = before

    def _reverse(self, earlier: int, number: int, later: _Node, causes: int) -> None:
        """Let the step `number`, which comes after `causes`, come before an earlier one.

        All that is not after that one may come before it, too.
        """
        node, agent = self._nodes[earlier], later.chosen
        between = [each for each in range(earlier + 1, number) if not self._nodes[each].before >> earlier & 1]
        is_next = self._last.get(agent, -1) < earlier
        was_in_vain = is_next and (agent in node.tried or agent in node.polling)
        if was_in_vain and not any(depend(self._nodes[each].touches, later.touches) for each in between):
            # It would poll in vain there again: nothing that matters for it comes between.
            return
        passed, firsts = 0, list[str]()
        for each in between:
            if not self._nodes[each].before & passed:
                firsts.append(self._nodes[each].chosen)
            passed |= 1 << each
        if not causes & passed:
            firsts.insert(0, agent)
        if node.backtrack.intersection(firsts):
            return
        able = [first for first in firsts if first in node.enabled]
        node.backtrack.update(able[:1] or node.enabled)

    def _advance(self) -> bool:
        """Drop what is done, and choose who goes first instead."""
        while self._nodes:
            last = self._nodes[-1]
            if last.chosen not in last.tried:
                last.done[last.chosen] = last.touches
            if left := last.left():
                last.chosen, last.touches, last.before = left[0], (), 0
                return True
            self._nodes.pop()
        return False


def _parsed(text: str) -> dict[int, str]:
    """The choices of an order. Raises ValueError for what is none."""
    try:
        pairs = [each.split(":") for each in text.split(",") if each]
        return {int(number): agent for number, agent in pairs}
    except ValueError as error:
        raise InputError(f"order: expected STEP:WHO with commas between them, found '{text}'") from error
