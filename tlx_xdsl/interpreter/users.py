"""The uses of a buffer: from its allocation forward, through views, captures, loops, branches and calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import arith, builtin
from xdsl.ir import Block, Operation, SSAValue, Use

from tlx_xdsl.analysis.buffer_users import uses
from tlx_xdsl.analysis.value_classes import ValueClasses
from tlx_xdsl.dialects import tlx, tt, ttg
from tlx_xdsl.dialects.base import Kind, Sync, enclosing, kind_of, sync_of
from tlx_xdsl.errors import Note, SourceLocation
from tlx_xdsl.text.diagnostics import source_line, source_location

from .faults import location_of


def users(allocation: Operation) -> Iterator[Use]:
    """Every use of a buffer of `allocation` that is more than a view or a way to pass it on, in callees, too."""
    todo: list[SSAValue] = [result for result in allocation.results if isinstance(result.type, ttg.MemDescType)]
    seen: set[SSAValue] = set(todo)
    while todo:
        value = todo.pop()
        for use in uses(value, ValueClasses.of(_function_of(value), ttg.MemDescType)):
            if not isinstance(use.operation, tt.CallOp):
                yield use
                continue
            for block in _callee(use.operation):
                argument = block.args[use.index]
                if argument not in seen:
                    seen.add(argument)
                    todo.append(argument)


def _function_of(value: SSAValue) -> Operation:
    """The function that a value is in."""
    op = enclosing(value.owner if isinstance(value.owner, Operation) else value.owner.parent_op(), tt.FuncOp)
    assert op is not None
    return op


def writers(allocation: Operation) -> list[Operation]:
    """The operations that may write to a buffer of `allocation`."""
    kinds = [(use.operation, kind_of(use)) for use in users(allocation)]
    return [op for op, kind in kinds if kind is None or kind & (Kind.WRITE | Kind.INIT)]


def arrivals(allocation: Operation) -> list[Operation]:
    """The operations that may arrive at an mbarrier of `allocation`, or complete bytes there, in the order of lines."""
    kinds = [(use.operation, kind_of(use)) for use in users(allocation)]
    return sorted((op for op, kind in kinds if kind is None or kind & (Kind.ARRIVE | Kind.COMPLETE)), key=_position)


def _position(op: Operation) -> tuple[str, int, int]:
    """A sort key: lines in their order."""
    found = source_location(op.location)
    return ("", 0, 0) if found is None else (found.filename, found.line, found.column)


def _callee(op: tt.CallOp) -> Iterator[Block]:
    module = op.get_toplevel_object()
    assert isinstance(module, Operation)
    for function in module.walk():
        if isinstance(function, tt.FuncOp) and function.sym_name.data == op.callee.string_value():
            yield function.body.blocks[0]


def named_barrier_users(op: Operation, number: int) -> list[Operation]:
    """Operations besides `op` that may arrive at the named barrier `number`: other constants are known not to be it."""
    module = op.get_toplevel_object()
    assert isinstance(module, Operation)
    return [
        other for other in module.walk()
        if other is not op and Sync.NAMED in sync_of(other) and _constant(other) in (None, number)
    ]  # fmt: skip


def _constant(op: Operation) -> int | None:
    """The number of a named barrier where it is a constant of ours."""
    if not isinstance(op, tlx.NamedBarrierWaitOp | tlx.NamedBarrierArriveOp):
        return None
    owner = op.id.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, builtin.IntegerAttr):
        return owner.value.value.data
    return None


def task_of(op: Operation) -> str:
    """Return which task runs an operation that stands in a region of one; else empty."""
    child: Operation = op
    while (parent := child.parent_op()) is not None:
        if isinstance(parent, ttg.WarpSpecializePartitionsOp):
            region = child.parent_region()
            return f"partition {parent.partition_regions.index(region)}" if region is not None else ""
        if isinstance(parent, ttg.WarpSpecializeOp):
            return "the default task"
        child = parent
    return ""


def lines(ops: Sequence[Operation]) -> list[Note]:
    """One text for each source line of the operations: its place, who runs it, and the line itself."""
    tasks: dict[str, dict[str, None]] = {}
    texts: dict[str, str] = {}
    places: dict[str, SourceLocation | None] = {}
    for op in ops:
        where = location_of(op)
        tasks.setdefault(where, {})
        if task := task_of(op):
            tasks[where][task] = None
        places[where] = source_location(op.location)
        texts[where] = (source_line(places[where]) or f"'{op.name}'").strip()
    return [
        Note(f"{where}{f', {_joined(sorted(by))}' if by else ''}: {texts[where]}", places[where])
        for where, by in tasks.items()
    ]


def _joined(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
