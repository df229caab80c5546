"""Natural loops and chains of basic blocks (Aho, Lam, Sethi, Ullman, "Compilers", 2nd edition, section 9.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

OUTSIDE = -1
"""No loop, and no block."""


@dataclass(slots=True)
class Loop:
    """The blocks that run again and again."""

    header: int
    blocks: set[int] = field(default_factory=set[int])
    parent: int = OUTSIDE
    """The place of the loop around it."""


@dataclass(slots=True)
class Loops:
    """The loops of a function, the inner ones before those around them."""

    loops: list[Loop]
    innermost: list[int]
    """For each block the place of the innermost loop that it is in, or OUTSIDE."""


def find_loops(successors: Sequence[Sequence[int]]) -> Loops:
    """Return the loops; `successors` has the blocks that may follow each, of which negative ones are none."""
    before: list[list[int]] = [[] for _ in successors]
    for block, following in enumerate(successors):
        for each in following:
            if each >= 0:
                before[each].append(block)
    by_header: dict[int, set[int]] = {}
    for latch, header in _back_edges(successors):
        body = by_header.setdefault(header, {header})
        waiting = [latch]
        while waiting:
            block = waiting.pop()
            if block not in body:
                body.add(block)
                waiting.extend(before[block])
    found = [Loop(header, body) for header, body in sorted(by_header.items(), key=lambda each: len(each[1]))]
    innermost = [OUTSIDE] * len(successors)
    for place in range(len(found) - 1, -1, -1):
        loop = found[place]
        loop.parent = innermost[loop.header]
        for block in loop.blocks:
            innermost[block] = place
    return Loops(found, innermost)


def _back_edges(successors: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """The branches to a block from which the search, depth first, has come."""
    found: list[tuple[int, int]] = []
    state = [0] * len(successors)
    for root in range(len(successors)):
        if state[root]:
            continue
        state[root] = 1
        stack = [(root, iter(successors[root]))]
        while stack:
            block, rest = stack[-1]
            following = next((each for each in rest if each >= 0 and state[each] < 2), None)
            if following is None:
                state[block] = 2
                stack.pop()
            elif state[following] == 1:
                found.append((block, following))
            else:
                state[following] = 1
                stack.append((following, iter(successors[following])))
    return found


def find_chains(successors: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return blocks that always run one after the other, as lists: nothing else leads to them, or from them."""
    count = [1] + [0] * (len(successors) - 1)
    for following in successors:
        for each in following:
            if each >= 0:
                count[each] += 1
    follows = [found[0] if len(found) == 1 and found[0] >= 0 and count[found[0]] == 1 else OUTSIDE
               for found in successors]  # fmt: skip
    heads = set(range(len(successors))) - set(follows)
    chains: list[list[int]] = []
    for block in sorted(heads):
        chain = [block]
        while (block := follows[block]) != OUTSIDE:
            chain.append(block)
        chains.append(chain)
    # What is left are circles that nothing leads to.
    left = set(range(len(successors))).difference(*chains)
    return [*chains, *([block] for block in sorted(left))]
