"""Warp-specialised tasks: `with tlx.async_tasks():` and the tasks in it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, UnitAttr, i32
from xdsl.ir import Attribute, Block, Region

from tlx_xdsl.dialects import ttg
from tlx_xdsl.language.core import builtin_name
from tlx_xdsl.transforms.captures import isolate

from .calls import Call, bind
from .expressions import call_site
from .values import Constexpr
from .visitor import Visitor


@dataclass(frozen=True)
class Task:
    """One `with tlx.async_task(...)`."""

    node: ast.With
    is_default: bool
    num_warps: int
    registers: int | None
    """Per thread."""
    replicate: int
    start: int | None
    """The first warp of the first copy."""


def visit_with(visitor: Visitor, node: ast.With) -> None:
    """A `with` statement of a kernel: it opens tasks."""
    if len(node.items) > 1:
        # `with a, b:` is `with a:` around `with b:`.
        inner = ast.copy_location(ast.With(node.items[1:], node.body), node)
        node = ast.copy_location(ast.With(node.items[:1], [inner]), node)
    name, call = _with_call(visitor, node)
    if name == "tlx.async_task":
        raise visitor.error(node, "tlx.async_task must stand directly inside of `with tlx.async_tasks():`")
    if name != "tlx.async_tasks" or call is None:
        raise visitor.error(node, "a 'with' in a kernel opens tlx.async_tasks() or tlx.async_task(...)")
    if visitor.replica_ids:
        raise visitor.error(node, "tasks can't be split into tasks: tlx.async_tasks() stands inside of a task")
    attributes = _options(call)
    tasks = _tasks(visitor, node.body)
    _check(visitor, node, tasks)
    default = next(task for task in tasks if task.is_default)
    others = [task for task in tasks if not task.is_default]
    if not others and default.replicate == 1:
        _in_task(visitor, default, 0)
        return
    _emit(visitor, node, default, others, attributes)


def _options(call: Call) -> dict[str, Attribute]:
    """Options of `with tlx.async_tasks(...)`, as attributes of the operation."""
    attributes: dict[str, Attribute] = {}
    for option in ("exclusive", "no_ending_cluster_sync"):
        if call.flag(option):
            attributes[f"tlx.{option}"] = UnitAttr()
    if not call.flag("warp_specialize"):
        call.fail("warp_specialize", "tasks always run on warps of their own: leave the statement out")
    option = "mbarrier_try_wait_suspend_ns"
    if call.given(option):
        attributes[f"tlx.{option}"] = IntegerAttr(call.integer(option, minimum=0), i32)
    return attributes


def _with_call(visitor: Visitor, node: ast.With) -> tuple[str | None, Call | None]:
    """The function of the language that the `with` calls, and the bound call."""
    if len(node.items) != 1 or not isinstance(node.items[0].context_expr, ast.Call):
        return None, None
    expression = node.items[0].context_expr
    callee = visitor.expression(expression.func)
    function: Any = callee.value if isinstance(callee, Constexpr) else None
    name = builtin_name(function)
    if name is None:
        return None, None
    return name, bind(call_site(visitor, expression), name, inspect.signature(function))


def _tasks(visitor: Visitor, body: Sequence[ast.stmt]) -> list[Task]:
    """The tasks in the body of `async_tasks`; a compile-time `if` may choose between them."""
    tasks: list[Task] = []
    for statement in body:
        if isinstance(statement, ast.If):
            test = visitor.expression(statement.test)
            if not isinstance(test, Constexpr):
                raise visitor.error(
                    statement.test,
                    f"tasks can't depend on {test.describe()}: the condition must be a constexpr",
                )
            tasks.extend(_tasks(visitor, statement.body if test.value else statement.orelse))
            continue
        if isinstance(statement, ast.Pass) or _is_docstring(statement):
            continue
        name, call = _with_call(visitor, statement) if isinstance(statement, ast.With) else (None, None)
        if name != "tlx.async_task" or call is None or not isinstance(statement, ast.With):
            raise visitor.error(statement, "the body of tlx.async_tasks() may hold `with tlx.async_task(...):` only")
        tasks.append(_task(statement, call))
    return tasks


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _task(node: ast.With, call: Call) -> Task:
    registers = _registers(call)
    replicate = call.integer("replicate", minimum=1)
    start = call.integer("warp_group_start_id", minimum=0) if call.given("warp_group_start_id") else None
    if _is_default(call):
        if call.given("num_warps"):
            call.fail("num_warps", "the default task runs on the kernel's own num_warps")
        return Task(node, True, call.visitor.unit.num_warps, registers, replicate, None)
    if not call.given("num_warps"):
        call.fail(None, "a task other than the default one needs num_warps")
    num_warps = call.integer("num_warps", minimum=1)
    if num_warps & (num_warps - 1):
        call.fail("num_warps", f"'num_warps' must be a power of two, found {num_warps}")
    return Task(node, False, num_warps, registers, replicate, start)


def _is_default(call: Call) -> bool:
    """Say whether this is the task "default"."""
    if not call.given("task"):
        return False
    task = call.args["task"]
    if call.visitor.items_of(task) is not None:
        call.fail("task", 'a list of task ids is not taken any more: write "default", or num_warps=... for other tasks')
    if not isinstance(task, Constexpr) or task.value != "default":
        call.fail("task", f'the only task that has a name is "default", found {task.describe()}')
    return True


def _registers(call: Call) -> int | None:
    """Registers per thread; `num_regs` and `registers` are two names of one option."""
    given = [parameter for parameter in ("num_regs", "registers") if call.given(parameter)]
    if not given:
        return None
    if len(given) > 1:
        call.fail("registers", "'num_regs' and 'registers' mean the same: give one of them")
    registers = call.integer(given[0], minimum=ttg.MIN_REGISTERS)
    if registers % 8 or registers > ttg.MAX_REGISTERS:
        call.fail(given[0], f"'{given[0]}' must be a multiple of 8 of at most {ttg.MAX_REGISTERS}, found {registers}")
    return registers


def _check(visitor: Visitor, node: ast.With, tasks: Sequence[Task]) -> None:
    defaults = [task for task in tasks if task.is_default]
    if len(defaults) != 1:
        raise visitor.error(node, f'tlx.async_tasks() needs exactly one task "default", found {len(defaults)}')
    others = [task for task in tasks if not task.is_default]
    for what, stated in (
        ("registers", [task for task in others if task.registers is not None]),
        ("warp_group_start_id", [task for task in others if task.start is not None]),
    ):
        if stated and len(stated) != len(others):
            odd = next(task for task in others if task not in stated)
            what = "their registers" if what == "registers" else f"their {what}"
            raise visitor.error(odd.node, f"either all tasks but the default one state {what}, or none does")
    _check_starts(visitor, others)


def _check_starts(visitor: Visitor, tasks: Sequence[Task]) -> None:
    """The warps of tasks that say where they begin are theirs alone."""
    taken = [(0, visitor.unit.num_warps, "the default task")]
    for task in tasks:
        if task.start is None:
            continue
        end = task.start + task.replicate * task.num_warps
        for low, high, whose in taken:
            if task.start < high and low < end:
                raise visitor.error(
                    task.node, f"warps {task.start} to {end - 1} overlap warps {low} to {high - 1} of {whose}"
                )
        taken.append((task.start, end, f"the task on line {task.node.lineno}"))


def _in_task(visitor: Visitor, task: Task, replica: int) -> None:
    """Compile the body of `task`; names that it assigns do not leave it."""
    outer, unit = dict(visitor.names), visitor.unit
    warps, unit.num_warps = unit.num_warps, task.num_warps
    visitor.replica_ids.append(replica)
    visitor.visit_body(task.node.body)
    visitor.replica_ids.pop()
    unit.num_warps = warps
    visitor.names = outer


def _emit(
    visitor: Visitor, node: ast.With, default: Task, others: Sequence[Task], attributes: dict[str, Attribute]
) -> None:
    builder = visitor.builder
    location = builder.location
    visitor.unit.has_tasks = True
    default_block = Block()
    with builder.at_end_of(default_block):
        _in_task(visitor, default, 0)
        visitor.locate(default.node)
        builder.emit(ttg.WarpYieldOp, [])
    # Copies of the default task are partitions like any other.
    copies = [(default, replica) for replica in range(1, default.replicate)]
    copies += [(task, replica) for task in others for replica in range(task.replicate)]
    regions: list[Region] = []
    for task, replica in copies:
        block = Block()
        with builder.frame(block):
            _in_task(visitor, task, replica)
            visitor.locate(task.node)
            builder.insert(ttg.WarpReturnOp())
        regions.append(Region(block))
    captures = isolate(regions)
    attributes |= _placement(visitor, default, others, copies)
    builder.location = location
    num_warps = [task.num_warps for task, _ in copies]
    op = ttg.WarpSpecializeOp.build_with(captures, num_warps, Region(default_block), regions, attributes=attributes)
    op.partitions.location = location
    builder.insert(op)


def _placement(
    visitor: Visitor, default: Task, others: Sequence[Task], copies: Sequence[tuple[Task, int]]
) -> dict[str, Attribute]:
    """The registers and the first warp of each partition, where the tasks state them."""
    attributes: dict[str, Attribute] = {}
    if default.registers is not None:
        # Upstream Triton has no attribute for it: the default region gets what the partitions leave.
        attributes["tlx.default_registers"] = IntegerAttr(default.registers, i32)
    if any(task.registers is not None for task in others):
        if default.replicate > 1 and default.registers is None:
            raise visitor.error(default.node, "the copies of the default task need registers, as the other tasks do")
        registers = [task.registers or 0 for task, _ in copies]
        attributes["requestedRegisters"] = DenseArrayBase.from_list(i32, registers)
    if any(task.start is not None for task in others):
        if default.replicate > 1:
            raise visitor.error(
                default.node, "tasks with a warp_group_start_id leave no warps to copies of the default"
            )
        starts = [(task.start or 0) + replica * task.num_warps for task, replica in copies]
        attributes["warpGroupStartIds"] = DenseArrayBase.from_list(i32, starts)
    return attributes
