"""Who uses a buffer: from its allocation forward, through views, captures, loops, branches and calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from xdsl.dialects import arith, cf, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, SSAValue, Use

from tlx_xdsl.dialects import nvvm, tlx, tt, ttg, ttng
from tlx_xdsl.dialects.scf import WhileOp
from tlx_xdsl.dialects.ttg import WarpSpecializeOp, WarpSpecializePartitionsOp
from tlx_xdsl.interpreter.faults import place
from tlx_xdsl.text.diagnostics import source_line, source_location

_VIEWS = (
    ttg.MemDescIndexOp, ttg.MemDescSubsliceOp, ttg.MemDescTransOp, ttg.MemDescReshapeOp, ttg.MemDescReinterpretOp,
    ttng.TMEMSubSliceOp, tlx.MemDescDynamicSubsliceOp, tlx.LocalAliasOp, tlx.MapToRemoteOp, tlx.RequireLayoutOp,
    tlx.ReleaseLayoutOp,
)  # fmt: skip

_NAMED = (tlx.NamedBarrierWaitOp, tlx.NamedBarrierArriveOp, nvvm.BarrierOp, nvvm.BarrierArriveOp, nvvm.InlinePtxOp)


def users(allocation: Operation) -> Iterator[Use]:
    """Every use of a buffer of `allocation` that is more than a view or a way to pass it on."""
    todo: list[SSAValue] = list(allocation.results)
    seen: set[SSAValue] = set(todo)
    while todo:
        for use in todo.pop().uses:
            passed = _passed_on(use.operation, use.index)
            if passed is None:
                yield use
                continue
            for value in passed:
                if value not in seen:
                    seen.add(value)
                    todo.append(value)


_READERS = (
    ttg.LocalLoadOp, ttg.LocalDeallocOp, ttg.LocalGatherOp, ttng.TMEMLoadOp, ttng.WarpGroupDotOp,
    ttng.AsyncTMACopyLocalToGlobalOp, ttng.AsyncTMAReduceOp, ttng.AsyncTMAScatterOp, ttng.WaitBarrierOp,
)  # fmt: skip


def writers(allocation: Operation) -> list[Operation]:
    """What may write to a buffer of `allocation`."""
    found: list[Operation] = []
    for use in users(allocation):
        op = use.operation
        is_operand = isinstance(op, ttng.TCGen5MMAOp | ttng.TCGen5MMAScaledOp) and op.operands[use.index] is not op.d
        if not isinstance(op, _READERS) and not is_operand:
            found.append(op)
    return found


def _passed_on(op: Operation, index: int) -> Sequence[SSAValue] | None:
    """The values that operand `index` of `op` goes on as; None where it is used up."""
    match op:
        case WarpSpecializePartitionsOp():
            return [region.block.args[index] for region in op.partition_regions]
        case scf.ForOp():
            return [op.body.block.args[index - 2], op.results[index - 3]] if index >= 3 else []
        case scf.WhileOp() | WhileOp():
            return [op.before_region.block.args[index]]
        case scf.ConditionOp():
            holder = cast(Any, op.parent_op())
            return [holder.after_region.block.args[index - 1], holder.results[index - 1]] if index else []
        case scf.YieldOp():
            return _yielded(op, index)
        case cf.BranchOp():
            return [op.successor.args[index]]
        case cf.ConditionalBranchOp():
            return _branched(op, index)
        case tt.CallOp():
            return [block.args[index] for block in _callee(op)]
        case tlx.ReuseGroupOp():
            return []
        case _ if isinstance(op, _VIEWS):
            return op.results if index == 0 else []
        case _:
            return None


def _yielded(op: scf.YieldOp, index: int) -> Sequence[SSAValue]:
    match holder := op.parent_op():
        case scf.ForOp():
            return [holder.results[index], holder.body.block.args[index + 1]]
        case scf.WhileOp() | WhileOp():
            return [holder.before_region.block.args[index]]
        case None:
            return []
        case _:
            return [holder.results[index]]


def _branched(op: cf.ConditionalBranchOp, index: int) -> Sequence[SSAValue]:
    if index == 0:
        return []
    many = len(op.then_arguments)
    return [op.then_block.args[index - 1] if index <= many else op.else_block.args[index - 1 - many]]


def _callee(op: tt.CallOp) -> Iterator[Block]:
    module = op.get_toplevel_object()
    assert isinstance(module, Operation)
    for function in module.walk():
        if isinstance(function, tt.FuncOp) and function.sym_name.data == op.callee.string_value():
            yield function.body.blocks[0]


def named_barrier_users(op: Operation, number: int) -> list[Operation]:
    """What stands beside `op` and may arrive at the named barrier `number`: other numbers are known not to be it."""
    module = op.get_toplevel_object()
    assert isinstance(module, Operation)
    return [
        other for other in module.walk()
        if other is not op and isinstance(other, _NAMED) and _constant(other) in (None, number)
    ]  # fmt: skip


def _constant(op: Operation) -> int | None:
    """The number of a named barrier where it is a constant of ours."""
    if not isinstance(op, tlx.NamedBarrierWaitOp | tlx.NamedBarrierArriveOp):
        return None
    owner = op.id.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None


def task_of(op: Operation) -> str:
    """Which task runs an operation that stands in a region of one; else empty."""
    child: Operation = op
    while (parent := child.parent_op()) is not None:
        if isinstance(parent, WarpSpecializePartitionsOp):
            region = child.parent_region()
            return f"partition {parent.partition_regions.index(region)}" if region is not None else ""
        if isinstance(parent, WarpSpecializeOp):
            return "the default task"
        child = parent
    return ""


def lines(ops: Sequence[Operation]) -> list[str]:
    """One text for each source line of the operations: its place, who runs it, and the line itself."""
    tasks: dict[str, dict[str, None]] = {}
    texts: dict[str, str] = {}
    for op in ops:
        where = place(op)
        tasks.setdefault(where, {})
        if task := task_of(op):
            tasks[where][task] = None
        texts[where] = (source_line(source_location(op.location)) or f"'{op.name}'").strip()
    return [f"{where}{f', {_joined(sorted(by))}' if by else ''}: {texts[where]}" for where, by in tasks.items()]


def _joined(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
