"""Which values are one value under several names: control flow, branches, selects, captures and calls carry it on.

`scf.for` gives its initial value, its block argument, what it yields and its result four names; they have one type
and, when a pass changes what they stand for, one meaning. A *class* is all names that are connected this way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.dialects import arith, cf, scf
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tlx_xdsl.dialects.arith import SelectOp
from tlx_xdsl.dialects.tt import FuncOp, ReturnOp
from tlx_xdsl.dialects.ttg import WarpSpecializeOp, WarpSpecializePartitionsOp, WarpYieldOp

Tie: TypeAlias = tuple[Sequence[SSAValue], Sequence[SSAValue]]
"""Values that are carried, and names under which they arrive; no other value arrives there."""


@dataclass
class CarriedValues:
    """The classes of a function's values of one kind; a value that nothing carries is a class of its own."""

    carriers: set[Operation] = field(default_factory=set[Operation])
    """Operations that hand their operands of that kind on and do nothing else with them."""
    arrivals: set[SSAValue] = field(default_factory=set[SSAValue])
    """Values that are defined by being carried to; all others in a class are its sources."""
    _parent: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    _members: dict[SSAValue, list[SSAValue]] = field(default_factory=lambda: defaultdict(list))
    _unknown: set[SSAValue] = field(default_factory=set[SSAValue])
    """Arguments of blocks that an unknown kind of branch jumps to."""

    @classmethod
    def of(cls, func: Operation, kind: type[Attribute]) -> CarriedValues:
        """The classes of values of type `kind` in `func`, in time linear in its operations."""
        carried = cls()
        for op in func.walk():
            carried._add(op, kind)
        # What else may arrive from a branch that is not known here is a source.
        carried.arrivals -= carried._unknown
        for value in carried._parent:
            carried._members[carried.representative(value)].append(value)
        return carried

    def representative(self, value: SSAValue) -> SSAValue:
        """The same value for every member of a class."""
        root = value
        while (parent := self._parent.get(root, root)) is not root:
            root = parent
        while value is not root:
            following = self._parent[value]
            self._parent[value] = root
            value = following
        return root

    def members(self, value: SSAValue) -> Sequence[SSAValue]:
        """All names of `value`, in the order in which the function mentions them."""
        return self._members.get(self.representative(value)) or [value]

    def carrier_of(self, value: SSAValue) -> Operation | None:
        """The first operation that carries `value` on, as the user sees it: of a terminator the one that it ends."""
        for use in value.uses:
            if use.operation in self.carriers:
                return visible(use.operation)
        return None

    def _add(self, op: Operation, kind: type[Attribute]) -> None:
        handler = next((handler for type_, handler in _HANDLERS if isinstance(op, type_)), None)
        if handler is None:
            self._unknown.update(argument for block in op.successors for argument in block.args)
            return
        for inputs, targets in handler(op):
            values = [value for value in (*inputs, *targets) if isinstance(value.type, kind)]
            if not values:
                continue
            self.arrivals.update(targets)
            first = self.representative(values[0])
            for value in values:
                self._parent.setdefault(value, value)
                self._parent[self.representative(value)] = first
        self.carriers.add(op)
        self.carriers.update(_terminators(op))


def visible(op: Operation) -> Operation:
    """`op`, or the operation whose region it ends."""
    if isinstance(op, WarpSpecializePartitionsOp):
        return op.parent_op() or op
    if isinstance(op, scf.YieldOp | scf.ConditionOp | WarpYieldOp):
        return op.parent_op() or op
    return op


# --- what each operation ties together ------------------------------------------------------------------------------


def _last(region: Region) -> Operation | None:
    return region.blocks[-1].last_op if region.blocks else None


def _columns(*rows: Iterable[SSAValue] | None) -> Iterator[tuple[SSAValue, ...]]:
    """The values with the same number in each row; a row that does not exist has none."""
    return zip(*(row for row in rows if row is not None), strict=True)


def _operands(op: Operation | None) -> Sequence[SSAValue] | None:
    return None if op is None else op.operands


def _if(op: scf.IfOp) -> Iterator[Tie]:
    if op.results:
        for result, *yielded in _columns(
            op.results, _operands(_last(op.true_region)), _operands(_last(op.false_region))
        ):
            yield yielded, [result]


def _for(op: scf.ForOp) -> Iterator[Tie]:
    body = op.body.block
    for start, argument, end, result in _columns(op.iter_args, body.args[1:], _operands(body.last_op), op.results):
        yield [start, end], [argument, result]


def _while(op: scf.WhileOp) -> Iterator[Tie]:
    before, after = op.before_region.block, op.after_region.block
    for start, argument, end in _columns(op.arguments, before.args, _operands(after.last_op)):
        yield [start, end], [argument]
    condition = before.last_op
    if isinstance(condition, scf.ConditionOp):
        for value, argument, result in _columns(condition.args, after.args, op.results):
            yield [value], [argument, result]


def _select(op: Operation) -> Iterator[Tie]:
    yield op.operands[1:], op.results


def _branch(op: cf.BranchOp) -> Iterator[Tie]:
    yield from _jump(op.arguments, op.successor)


def _cond_branch(op: cf.ConditionalBranchOp) -> Iterator[Tie]:
    yield from _jump(op.then_arguments, op.then_block)
    yield from _jump(op.else_arguments, op.else_block)


def _jump(values: Sequence[SSAValue], target: Block) -> Iterator[Tie]:
    for value, argument in _columns(values, target.args):
        yield [value], [argument]


def _captures(op: WarpSpecializePartitionsOp) -> Iterator[Tie]:
    for capture, *arguments in _columns(op.explicit_captures, *(r.blocks[0].args for r in op.partition_regions)):
        yield [capture], arguments


def _warp_specialize(op: WarpSpecializeOp) -> Iterator[Tie]:
    ends = [block.last_op for block in op.default_region.blocks if isinstance(block.last_op, WarpYieldOp)]
    for result, *values in _columns(op.default_passthrough, *(end.operands for end in ends)):
        yield values, [result]


def _func(op: FuncOp) -> Iterator[Tie]:
    ends = [block.last_op for block in op.body.blocks if isinstance(block.last_op, ReturnOp)]
    for values in _columns(*(end.operands for end in ends)):
        yield values, []


def _terminators(op: Operation) -> Iterator[Operation]:
    """What ends the regions of `op` and is known to hand values to it."""
    for region in op.regions:
        for block in region.blocks:
            if isinstance(block.last_op, scf.YieldOp | scf.ConditionOp | WarpYieldOp | ReturnOp):
                yield block.last_op


_HANDLERS: tuple[tuple[type[Operation], Callable[..., Iterator[Tie]]], ...] = (
    (scf.IfOp, _if),
    (scf.ForOp, _for),
    (scf.WhileOp, _while),
    (SelectOp, _select),
    (arith.SelectOp, _select),
    (cf.BranchOp, _branch),
    (cf.ConditionalBranchOp, _cond_branch),
    (WarpSpecializePartitionsOp, _captures),
    (WarpSpecializeOp, _warp_specialize),
    (FuncOp, _func),
)
