"""Accumulators: which results of products one buffer in tensor memory holds, one after the other.

A loop that carries a result carries it in tensor memory: its values before, in and after the loop have one buffer. So
have products that add to each other. Threads load what they need of a result, once in a block of code.

A barrier says that a product is done. It completes with each product where each turn waits once before the next one
(`signals_each`): then work between the product and the wait runs meanwhile. Elsewhere a commit just before each wait
arrives at it, so that there are as many phases as waits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue, Use

from tlx_xdsl.dialects import tt

from ..products.dot_operands import is_zero
from ..products.products_in_flight import in_block


@dataclass(eq=False)
class Accumulator:
    """A buffer in tensor memory."""

    dots: list[tt.DotOp]
    """The products, in the order of the program."""
    values: set[SSAValue]
    loops: list[tuple[scf.ForOp, int]] = field(default_factory=list[tuple[scf.ForOp, int]])
    """The loops that carry it, with the number of the value."""
    signals: set[tt.DotOp] = field(default_factory=set[tt.DotOp])
    """Products whose end completes a phase of the barrier; none where commits before waits do."""

    @property
    def signals_each(self) -> bool:
        """True where products complete the phases themselves."""
        return bool(self.signals)


class Accumulators:
    """The accumulators of a task."""

    def __init__(self, region: Region, dots: Collection[tt.DotOp], stored: Collection[tt.DotOp]):
        """Find them; `stored` are the products with operands that the task itself writes to memory."""
        self.all: list[Accumulator] = []
        self.of: dict[SSAValue, Accumulator] = {}
        self.carried: dict[scf.ForOp, dict[int, Accumulator]] = {}
        self._stored = set(stored)
        self._position = {op: number for number, op in enumerate(region.walk())}
        for dot in dots:
            accumulator = Accumulator([dot], {dot.d})
            self.all.append(accumulator)
            self.of[dot.d] = accumulator
        for dot in dots:
            if _is_chained(dot, self.of):
                self._merge(self.of[dot.c], self.of[dot.d])
        for loop in reversed([op for op in region.walk() if isinstance(op, scf.ForOp)]):
            self._carry(loop)
        for accumulator in self.all:
            accumulator.dots.sort(key=self._position.__getitem__)
            accumulator.signals = self._signals(accumulator)

    def is_fresh(self, loop: scf.ForOp, number: int) -> bool:
        """True where a loop adds to zeros: its first product overwrites the buffer."""
        argument = loop.body.block.args[1 + number]
        uses = list(argument.uses)
        return is_zero(loop.iter_args[number]) and len(uses) == 1 and self._adds_in(uses[0], loop.body.block)

    def stays(self, use: Use) -> bool:
        """True for a use that leaves a value in tensor memory: a product that adds to it, or a loop that carries it."""
        value, op = use.operation.operands[use.index], use.operation
        accumulator = self.of[value]
        match op:
            case tt.DotOp():
                return value is op.c and value is not op.a and value is not op.b and self.of.get(op.d) is accumulator
            case scf.ForOp():
                return self.carried.get(op, {}).get(use.index - 3) is accumulator
            case scf.YieldOp():
                loop = op.parent_op()
                return isinstance(loop, scf.ForOp) and self.carried.get(loop, {}).get(use.index) is accumulator
            case _:
                return False

    def loaded_in(self, root: Operation) -> Iterator[SSAValue]:
        """The values that operations inside of a loop or branch need in registers, each once."""
        found: dict[SSAValue, None] = {}
        for op in root.walk():
            if op is root:
                continue
            for index, operand in enumerate(op.operands):
                if operand in self.of and not self.stays(Use(op, index)):
                    found.setdefault(operand)
        return iter(found)

    def waits_in(self, root: Operation, accumulator: Accumulator) -> bool:
        """True if threads wait for products of the accumulator inside of a loop or branch."""
        if any(self.of[value] is accumulator for value in self.loaded_in(root)):
            return True
        dots = [op for op in root.walk() if isinstance(op, tt.DotOp) and self.of.get(op.d) is accumulator]
        return any(dot in self._stored or self.is_replaced(dot) for dot in dots)

    def is_replaced(self, dot: tt.DotOp) -> bool:
        """True if threads write what the product adds to."""
        return not is_zero(dot.c) and not (dot.c in self.of and self.of[dot.c] is self.of[dot.d])

    def is_needed_later(self, value: SSAValue, op: Operation) -> bool:
        """True if an operation after `op` needs the value in registers."""
        after = self._position[op]
        return any(self._position[use.operation] > after and not self.stays(use) for use in value.uses)

    def position(self, op: Operation) -> int:
        """Return the number of an operation in the order of the program."""
        return self._position[op]

    def is_before(self, op: Operation, other: Operation) -> bool:
        """True if an operation comes before another one in the program."""
        return self._position[op] < self._position[other]

    def _adds_in(self, use: Use, block: Block) -> bool:
        op = use.operation
        return isinstance(op, tt.DotOp) and op.parent is block and self.stays(use)

    def _merge(self, into: Accumulator, other: Accumulator) -> None:
        if into is other:
            return
        into.dots += other.dots
        into.loops += other.loops
        into.values |= other.values
        for value in other.values:
            self.of[value] = into
        for numbers in self.carried.values():
            for number, accumulator in numbers.items():
                if accumulator is other:
                    numbers[number] = into
        self.all.remove(other)

    def _carry(self, loop: scf.ForOp) -> None:
        """Keep what a loop carries in tensor memory, where that is a result of its own products."""
        body = loop.body.block
        end = body.last_op
        assert end is not None, "a block ends in an operation"
        numbers = self.carried.setdefault(loop, {})
        for number, value in enumerate(end.operands):
            accumulator = self.of.get(value)
            if accumulator is None or accumulator in numbers.values() or not isinstance(value, OpResult):
                continue
            argument = body.args[1 + number]
            if self._last_writer(accumulator, body) is not value.op or not self._is_read_before(argument, accumulator):
                continue
            numbers[number] = accumulator
            for held in (argument, loop.results[number]):
                accumulator.values.add(held)
                self.of[held] = accumulator
            accumulator.loops.append((loop, number))
            self._join_following(loop, number, accumulator)

    def _last_writer(self, accumulator: Accumulator, body: Block) -> Operation | None:
        inside = [in_block(dot, body) for dot in accumulator.dots if lies_in(dot, body)]
        return max(inside, key=self._position.__getitem__, default=None)

    def _is_read_before(self, argument: SSAValue, accumulator: Accumulator) -> bool:
        """True if what adds to the carried value is the first product of the body, where any does."""
        adding = [
            use.operation
            for use in argument.uses
            if (isinstance(use.operation, tt.DotOp) and use.operation in accumulator.dots)
            or (isinstance(use.operation, scf.ForOp) and accumulator in self.carried.get(use.operation, {}).values())
        ]
        if not adding:
            return True
        body = argument.owner
        assert isinstance(body, Block)
        writers = [in_block(dot, body) for dot in accumulator.dots if lies_in(dot, body)]
        return len(adding) == 1 and adding[0] is min(writers, key=self._position.__getitem__)

    def _join_following(self, loop: scf.ForOp, number: int, accumulator: Accumulator) -> None:
        """Let a loop that goes on with the result of this one have the same buffer."""
        uses = list(loop.results[number].uses)
        if len(uses) != 1 or not isinstance(uses[0].operation, scf.ForOp):
            return
        following, position = uses[0].operation, uses[0].index - 3
        other = self.carried.get(following, {}).get(position)
        if other is None or other is accumulator or following.parent is not loop.parent:
            return
        if all(self._waits_each_turn(each) for each in (accumulator, other)):
            self._merge(accumulator, other)

    # --- signals -------------------------------------------------------------------------------------------------

    def _signals(self, accumulator: Accumulator) -> set[tt.DotOp]:
        if accumulator.loops:
            if not self._waits_each_turn(accumulator):
                return set()
            return {_last_dot(accumulator, loop.body.block) for loop, _ in accumulator.loops}
        last = accumulator.dots[-1]
        same_block = all(dot.parent is last.parent for dot in accumulator.dots)
        is_loaded_between = any(not self.stays(use) for dot in accumulator.dots[:-1] for use in dot.d.uses)
        return {last} if same_block and not is_loaded_between and last.d.first_use is not None else set()

    def _waits_each_turn(self, accumulator: Accumulator) -> bool:
        """True if each turn of the loops waits for the product of the turn before, and has one signal."""
        loops = {loop: number for loop, number in accumulator.loops}
        for loop, number in loops.items():
            body = loop.body.block
            dots = [dot for dot in accumulator.dots if lies_in(dot, body)]
            end = body.last_op
            if not dots or any(dot.parent is not body for dot in dots) or end is None:
                return False
            if any(not self.stays(use) for dot in dots[:-1] for use in dot.d.uses):
                return False
            argument = body.args[1 + number]
            first = dots[0]
            is_loaded = any(not self.stays(use) for use in argument.uses)
            if not is_loaded and first not in self._stored and not self.is_replaced(first):
                return False
        return all(any(dot.parent is loop.body.block for loop in loops) for dot in accumulator.dots)


def _is_chained(dot: tt.DotOp, of: dict[SSAValue, Accumulator]) -> bool:
    """True if a product adds to the result of another one of its block, and no other product or loop does."""
    before = dot.c
    if before not in of or not isinstance(before, OpResult) or before.op.parent is not dot.parent:
        return False
    if before in (dot.a, dot.b):
        return False
    return not any(
        use.operation is not dot and isinstance(use.operation, tt.DotOp | scf.ForOp | scf.YieldOp)
        for use in before.uses
    )


def lies_in(op: Operation, block: Block) -> bool:
    """Return whether a block holds an operation, or one around it."""
    parent: Operation | None = op
    while parent is not None and parent.parent is not block:
        parent = parent.parent_op()
    return parent is not None


def _last_dot(accumulator: Accumulator, block: Block) -> tt.DotOp:
    return [dot for dot in accumulator.dots if dot.parent is block][-1]
