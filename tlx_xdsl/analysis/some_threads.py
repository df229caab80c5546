"""Stores of tensors that only some threads of a task do, because a branch depends on the thread's index.

Which elements such a store writes depends on the layout, so a kernel with one is no plain Triton, whose layouts are
the choice of upstream Triton's passes.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import builtin, cf, scf
from xdsl.ir import Operation, SSAValue, Use
from xdsl.traits import IsTerminator

from tlx_xdsl.dialects import gpu, tt
from tlx_xdsl.dialects.base import as_tensor

_BOUNDS = 3
"""The operands of a loop that say how often it runs: its bounds and its step."""


def store_by_some_threads(module: builtin.ModuleOp) -> Operation | None:
    """The first store of a tensor that may be done by some of the threads only; a call counts as one.

    Every value that is computed from the index of a thread counts as different in each.
    """
    pending: list[SSAValue] = [op.results[0] for op in module.walk() if isinstance(op, gpu.ThreadIdOp)]
    seen: set[SSAValue] = set(pending)
    while pending:
        for use in pending.pop().uses:
            if (decided := _decided(use)) is not None and (found := next(filter(_stores, decided.walk()), None)):
                return found
            new = [value for value in _results(use.operation) if value not in seen]
            seen.update(new)
            pending += new
    return None


def _results(op: Operation) -> Sequence[SSAValue]:
    """The values that an operand of `op` may become a part of."""
    parent = op.parent_op()
    if not op.has_trait(IsTerminator) or parent is None:
        return [*op.results, *(argument for region in op.regions for block in region.blocks for argument in block.args)]
    inside = [argument for region in parent.regions for block in region.blocks for argument in block.args]
    return inside if op.successors else [*parent.results, *inside]


def _decided(use: Use) -> Operation | None:
    """The operation of which parts run or not as the value that is used says."""
    match use.operation:
        case scf.IfOp() as op:
            return op
        case scf.ForOp() as op:
            return op if use.index < _BOUNDS else None
        case scf.ConditionOp() | cf.ConditionalBranchOp() as op:
            return op.parent_op() if use.index == 0 else None
        case _:
            return None


def _stores(op: Operation) -> bool:
    return isinstance(op, tt.CallOp) or (isinstance(op, tt.StoreOp) and as_tensor(op.value.type) is not None)
