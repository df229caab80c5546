"""Ways through structured control flow from one operation to another, with what runs between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile

from xdsl.dialects import scf
from xdsl.ir import Block, Operation

from tlx_xdsl.dialects.scf import LOOPS

BODIES = (*LOOPS, scf.IfOp)
"""Operations that do nothing but run their regions."""


def ways(first: Operation, second: Operation) -> Iterator[list[Operation]]:
    """The operations between two, on the straight way and on those once round a loop around both.

    Only ways through loops and branches of structured control flow are looked at, those with the fewest turns.
    """
    above = {block: op for block, op in _places(first)}
    for block, op in _places(second):
        if (mine := above.get(block)) is None:
            continue
        rest, beginning = [*_rest(first, mine)], [*_beginning(second, op)]
        ops = list(block.ops)
        if mine is not op and ops.index(mine) < ops.index(op):
            yield [*rest, *ops[ops.index(mine) + 1 : ops.index(op)], *beginning]
        if isinstance(block.parent_op(), LOOPS):
            yield [*rest, *ops[ops.index(mine) + 1 :], *ops[: ops.index(op)], *beginning]


def _places(op: Operation) -> Iterator[tuple[Block, Operation]]:
    """The blocks around an operation, innermost first, each with the operation in it that holds this one."""
    here = op
    while (block := here.parent_block()) is not None:
        yield block, here
        above = block.parent_op()
        if not isinstance(above, BODIES):
            return
        here = above


def _rest(op: Operation, top: Operation) -> Iterable[Operation]:
    """Yield what comes after `op` inside of `top`."""
    for block, each in takewhile(lambda place: place[1] is not top, _places(op)):
        ops = list(block.ops)
        yield from ops[ops.index(each) + 1 :]


def _beginning(op: Operation, top: Operation) -> Iterable[Operation]:
    """Yield what comes before `op` inside of `top`."""
    for block, each in takewhile(lambda place: place[1] is not top, _places(op)):
        yield from takewhile(lambda other, each=each: other is not each, block.ops)
