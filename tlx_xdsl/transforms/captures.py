"""Captures: values that a warp-specialized task takes from the code around it.

A partition of `ttg.warp_specialize` sees nothing but its arguments, and each argument travels through shared memory.
So what pure operations make of scalars and buffers is computed again inside, blocks such as `tl.arange(0, 64) + start`
included, and what is left is passed: the smallest set of scalars and buffers from which everything else follows. That
is a minimum vertex cut between the values that can't be recomputed (arguments of the kernel, results of loads and
loops) and those that the tasks use, found by augmenting paths (Ford and Fulkerson 1956; Menger's theorem); of all
smallest cuts it is the one nearest to the uses, so that the least is recomputed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import is_side_effect_free

from tlx_xdsl.dialects.tlx import LocalAliasOp
from tlx_xdsl.text.diagnostics import error_at, location_of


def isolate(regions: Sequence[Region]) -> list[SSAValue]:
    """Turn outer values that the regions use into arguments; return the values, in order of first use.

    Raises CompilationError, located at the use, for a block that can't be computed again.
    """
    wanted: dict[SSAValue, None] = {}
    for region in regions:
        for value, user in _outer_uses(region):
            if not _blocks_are_recomputable(value):
                name = value.name_hint or "value"
                raise error_at(
                    user,
                    f"a task can't use the block '{name}' that is computed outside of it: "
                    "compute it inside, or pass it through shared memory",
                )
            wanted.setdefault(value)
    captures = _smallest_cut(wanted)
    for region in regions:
        block = region.blocks[0]
        inside: dict[SSAValue, SSAValue] = {}
        for value in captures:
            argument = block.insert_arg(value.type, len(block.args), location_of(value))
            argument.name_hint = value.name_hint
            inside[value] = argument
        uses = list(_outer_uses(region))
        _recompute(block, [value for value, _ in uses], inside)
        for _, user in uses:
            user.operands = [inside.get(operand, operand) for operand in user.operands]
    return captures


def _outer_uses(region: Region) -> list[tuple[SSAValue, Operation]]:
    """Pairs of a value from outside the region and an operation inside that uses it."""
    blocks = {inner for block in region.blocks for inner in block.walk_blocks()}
    uses: list[tuple[SSAValue, Operation]] = []
    for op in region.walk():
        for operand in op.operands:
            owner = operand.owner
            if (owner if isinstance(owner, Block) else owner.parent_block()) not in blocks:
                uses.append((operand, op))
    return uses


def _is_recomputable(value: SSAValue) -> bool:
    """Say whether the operation that gives `value` may be done again elsewhere: a pure one."""
    op = value.owner
    # An alias is an array of buffers like an allocation: made again, it would be another one.
    return not isinstance(op, Block | LocalAliasOp) and not op.regions and is_side_effect_free(op)


def _blocks_are_recomputable(value: SSAValue) -> bool:
    """Say whether `value` is no block, or one that needs no other than what may be computed again."""
    seen: set[SSAValue] = set()
    stack = [value]
    while stack:
        block = stack.pop()
        if block in seen or not isinstance(block.type, TensorType):
            continue
        if not _is_recomputable(block):
            return False
        seen.add(block)
        stack.extend(_inputs(block))
    return True


def _inputs(value: SSAValue) -> Sequence[SSAValue]:
    """Operations that `value` is computed from, when it may be computed again."""
    op = value.owner
    return op.operands if isinstance(op, Operation) and _is_recomputable(value) else ()


_Node: TypeAlias = tuple[SSAValue | None, bool]
"""A value's entrance (False) or its exit (True); of None, the source and the sink of the flow."""

_SOURCE: _Node = (None, False)
_SINK: _Node = (None, True)


def _smallest_cut(wanted: Iterable[SSAValue]) -> list[SSAValue]:
    """The fewest values that everything in `wanted` can be recomputed from, in the order of the walk from there."""
    order: dict[SSAValue, None] = {}
    stack = list(wanted)[::-1]
    flow = _Flow()
    for value in stack:
        flow.connect((value, True), _SINK)
    while stack:
        value = stack.pop()
        if value in order:
            continue
        order[value] = None
        # Blocks are never passed.
        flow.connect((value, False), (value, True), math.inf if isinstance(value.type, TensorType) else 1)
        if not _is_recomputable(value):
            flow.connect(_SOURCE, (value, False))
        for operand in _inputs(value):
            flow.connect((operand, True), (value, False))
        stack.extend(_inputs(value))
    reaching = flow.maximise()
    return [value for value in order if (value, True) in reaching and (value, False) not in reaching]


class _Flow:
    """A network and the flow through it, as what is left of each edge's capacity."""

    def __init__(self) -> None:
        self.left: dict[_Node, dict[_Node, float]] = {}

    def connect(self, start: _Node, end: _Node, capacity: float = math.inf) -> None:
        """Add an edge."""
        self.left.setdefault(start, {})[end] = capacity
        self.left.setdefault(end, {}).setdefault(start, 0)

    def maximise(self) -> set[_Node]:
        """Send units from the source to the sink while there is a path; return the nodes that still reach the sink."""
        while True:
            # From the sink backwards: where a search fails, it has found the nodes that still reach the sink.
            towards: dict[_Node, _Node | None] = {_SINK: None}
            stack = [_SINK]
            while stack and _SOURCE not in towards:
                node = stack.pop()
                for before in self.left.get(node, {}):
                    if self.left[before][node] and before not in towards:
                        towards[before] = node
                        stack.append(before)
            if _SOURCE not in towards:
                return set(towards)
            node = _SOURCE
            while (step := towards[node]) is not None:
                self.left[node][step] -= 1
                self.left[step][node] += 1
                node = step


def _recompute(block: Block, wanted: Iterable[SSAValue], inside: dict[SSAValue, SSAValue]) -> None:
    """Compute `wanted` at the start of `block` from what `inside` holds, and add it there."""
    first = block.first_op
    stack = [(value, False) for value in wanted][::-1]
    while stack:
        value, inputs_are_there = stack.pop()
        if value in inside:
            continue
        op = value.owner
        assert isinstance(op, Operation)
        if not inputs_are_there:
            stack.append((value, True))
            stack.extend((operand, False) for operand in op.operands)
            continue
        copy = op.clone(inside)
        if first is not None:
            block.insert_op_before(copy, first)
        else:
            block.add_op(copy)
        for old, new in zip(op.results, copy.results, strict=True):
            new.name_hint = old.name_hint
            inside[old] = new
