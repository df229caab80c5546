"""Orders of the tile operations of one block of code, for which DST registers may suffice where another's do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

from .dst_liveness import Node

SEARCHED = 12
"""Operations up to which all orders are searched: at most 4096 sets of operations that are done."""


def orders(nodes: Sequence[Node], outputs: Sequence[Hashable]) -> Iterator[list[Node]]:
    """The orders to try: the program's, then cheap ones with few tiles alive, and at last the best for few operations.

    The best one supposes that tiles of circular buffers are loaded for each of their readers.
    """
    yield list(nodes)
    yield _depth_first(nodes, outputs)
    yield _least_pressure(nodes, outputs)
    if len(nodes) <= SEARCHED:
        yield _best(nodes, outputs)


def _depth_first(nodes: Sequence[Node], outputs: Sequence[Hashable]) -> list[Node]:
    """The order of Sethi and Ullman for trees; a result with several readers is made for the first of them."""
    by_result = {node.result: node for node in nodes}
    needs: dict[Hashable, int] = {}
    for node in nodes:
        wanted = sorted((needs.get(value, 1) for value in node.reads), reverse=True)
        needs[node.result] = max((need + number for number, need in enumerate(wanted)), default=1)
    found: dict[Hashable, Node] = {}

    def neediest_last(values: Sequence[Hashable]) -> list[Hashable]:
        return sorted(values, key=lambda each: -needs.get(each, 1))[::-1]

    # A chain may be longer than Python's stack is deep.
    pending = neediest_last(outputs)
    while pending:
        value = pending[-1]
        if value not in by_result or value in found:
            pending.pop()
            continue
        node = by_result[value]
        missing = [each for each in node.reads if each in by_result and each not in found]
        if missing:
            pending += neediest_last(missing)
        else:
            found[value] = node
            pending.pop()
    return list(found.values())


def _least_pressure(nodes: Sequence[Node], outputs: Sequence[Hashable]) -> list[Node]:
    """Order the nodes that can run: first the one that frees the most registers, and the first of several."""
    results = {node.result for node in nodes}
    left = Counter(value for node in nodes for value in set(node.reads))
    left.update(set(outputs))
    done: set[Hashable] = set()
    todo = list(nodes)
    found: list[Node] = []
    while todo:
        ready = [node for node in todo if all(value in done or value not in results for value in node.reads)]
        best = max(ready, key=lambda node: sum(left[value] == 1 for value in {*node.reads} & results))
        left.subtract(set(best.reads))
        done.add(best.result)
        todo.remove(best)
        found.append(best)
    return found


def _best(nodes: Sequence[Node], outputs: Sequence[Hashable]) -> list[Node]:
    """The order whose largest number of registers in use is the smallest, over all sets of operations that are done."""
    numbers = {node.result: number for number, node in enumerate(nodes)}
    operands = [{numbers[value] for value in node.reads if value in numbers} for node in nodes]
    readers = [sum(1 << user for user, each in enumerate(operands) if number in each) for number in range(len(nodes))]
    kept = {numbers[value] for value in outputs if value in numbers}

    def alive(done: int) -> set[int]:
        """The results that are still read."""
        return {each for each in range(len(nodes)) if done >> each & 1 and (each in kept or readers[each] & ~done)}

    def registers(number: int, before: set[int], after: set[int]) -> int:
        """Return the number of registers in use while an operation runs: results, loaded tiles, and its result's place.

        That is the place of an operand, unless all are read later.
        """
        loaded = len({value for value in nodes[number].reads if value not in numbers})
        has_place = loaded or (operands[number] - after)
        return len(before) + loaded + (0 if has_place else 1)

    # By the set of operations that are done: registers at most, and the last operation.
    found: dict[int, tuple[int, int]] = {0: (0, -1)}
    level = [0]
    for _ in nodes:
        following: dict[int, tuple[int, int]] = {}
        for done in level:
            before = alive(done)
            for number in range(len(nodes)):
                if done >> number & 1 or any(not done >> each & 1 for each in operands[number]):
                    continue
                then = done | 1 << number
                most = max(found[done][0], registers(number, before, alive(then)))
                if then not in following or most < following[then][0]:
                    following[then] = most, number
        found |= following
        level = list(following)
    order: list[Node] = []
    done = (1 << len(nodes)) - 1
    while done:
        number = found[done][1]
        order.append(nodes[number])
        done &= ~(1 << number)
    return order[::-1]
