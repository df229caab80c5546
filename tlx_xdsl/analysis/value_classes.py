"""Equivalence classes of SSA values through control flow, selects, captures and returns.

`scf.for` gives its initial value, its block argument, what it yields and its result four names; they have one type
and, when a pass changes what they stand for, one meaning. A *class* is all values that forwarded operands connect with
the successor inputs which they define (`dialects/regions.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import IsTerminator

from tlx_xdsl.dialects.arith import SelectOp
from tlx_xdsl.dialects.regions import edges, incoming, region_edges
from tlx_xdsl.dialects.tt import FuncOp, ReturnOp


@dataclass
class ValueClasses:
    """The classes of a function's values of one kind; a value that nothing forwards is a class of its own."""

    forwarding: set[Operation] = field(default_factory=set[Operation])
    """Operations that only forward their operands of that kind."""
    successor_inputs: set[SSAValue] = field(default_factory=set[SSAValue])
    """Values that forwarded operands define; all others in a class are its sources."""
    _parent: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    _members: dict[SSAValue, list[SSAValue]] = field(default_factory=lambda: defaultdict(list))
    _unknown: set[SSAValue] = field(default_factory=set[SSAValue])
    """Arguments of blocks that an unknown kind of branch jumps to."""

    @classmethod
    def of(cls, func: Operation, kind: type[Attribute]) -> ValueClasses:
        """The classes of values of type `kind` in `func`, in time linear in its operations."""
        classes = cls()
        for op in func.walk():
            classes._add(op, kind)
        # What else may come from a branch that is not known here is a source.
        classes.successor_inputs -= classes._unknown
        for value in classes._parent:
            classes._members[classes.representative(value)].append(value)
        return classes

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
        """All names of `value`, in the order in which the function mentions them; not what was joined later."""
        return self._members.get(self.representative(value)) or [value]

    def forwarded_by(self, value: SSAValue) -> Operation | None:
        """The first operation that forwards `value`, as the user sees it: of a terminator the one that it ends."""
        for use in value.uses:
            if use.operation in self.forwarding:
                return visible(use.operation)
        return None

    def join(self, *values: SSAValue) -> None:
        """Make one class of those of `values`."""
        first = self.representative(values[0])
        for value in values:
            self._parent.setdefault(value, value)
            self._parent[self.representative(value)] = first

    def values(self) -> Sequence[SSAValue]:
        """All values that were joined with others, in the order in which they were."""
        return list(self._parent)

    def _add(self, op: Operation, kind: type[Attribute]) -> None:
        if isinstance(op, SelectOp | arith.SelectOp):
            self._connect({op.results[0]: op.operands[1:]}, kind)
            self.forwarding.add(op)
            return
        if op.next_op is not None and not op.regions:
            # Control only passes it, as it does most operations.
            return
        # Branches are visited themselves, so that names come in the function's order.
        if (found := edges(op) if op.successors else region_edges(op)) is None:
            self._unknown.update(argument for block in op.successors for argument in block.args)
            return
        self._connect(incoming(found), kind)
        self.forwarding.update(edge.source for edge in found if edge.inputs)
        if isinstance(op, FuncOp):
            self._join_returns([edge.source for edge in found if isinstance(edge.source, ReturnOp)], kind)

    def _connect(self, incoming: Mapping[SSAValue, Sequence[SSAValue]], kind: type[Attribute]) -> None:
        for target, operands in incoming.items():
            if values := [value for value in (*operands, target) if isinstance(value.type, kind)]:
                self.successor_inputs.add(target)
                self.join(*values)

    def _join_returns(self, returns: Sequence[Operation], kind: type[Attribute]) -> None:
        """Join the values that are returned: they have one type, by which callers know it."""
        self.forwarding.update(returns)
        for values in zip(*(end.operands for end in returns), strict=True):
            if isinstance(values[0].type, kind):
                self.join(*values)


def visible(op: Operation) -> Operation:
    """`op`, or the operation whose region it ends."""
    parent = op.parent_op()
    if parent is None or isinstance(parent, FuncOp) or op.successors or not op.has_trait(IsTerminator):
        return op
    return parent
