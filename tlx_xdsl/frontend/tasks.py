"""Warp-specialised tasks: `with tlx.async_tasks():` and the tasks in it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import Attribute, Block, Region

from tlx_xdsl.dialects import ttg
from tlx_xdsl.frontend.calls import Call, bind
from tlx_xdsl.frontend.captures import isolate
from tlx_xdsl.frontend.values import Constexpr
from tlx_xdsl.language.core import builtin_name

if TYPE_CHECKING:
    from tlx_xdsl.frontend.visitor import Visitor


@dataclass(frozen=True)
class Task:
    """One `with tlx.async_task(...)`."""

    node: ast.With
    is_default: bool
    num_warps: int
    registers: int | None
    replicate: int


def visit_with(visitor: Visitor, node: ast.With) -> None:
    """A `with` statement of a kernel: it opens tasks."""
    name, call = _with_call(visitor, node)
    if name == "tlx.async_task":
        raise visitor.error(node, "tlx.async_task must stand directly inside of `with tlx.async_tasks():`")
    if name != "tlx.async_tasks" or call is None:
        raise visitor.error(node, "a 'with' in a kernel opens tlx.async_tasks() or tlx.async_task(...)")
    tasks = _tasks(visitor, node.body)
    _check(visitor, node, tasks)
    default = next(task for task in tasks if task.is_default)
    others = [task for task in tasks if not task.is_default]
    if not others:
        _in_task(visitor, default, 0)
        return
    _emit(visitor, node, default, others)


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
    positional = [(argument, visitor.expression(argument)) for argument in expression.args]
    keywords = {k.arg: (k.value, visitor.expression(k.value)) for k in expression.keywords if k.arg is not None}
    return name, bind(visitor, expression, name, inspect.signature(function), positional, keywords)


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
    is_default = call.given("task")
    if is_default and call.python("task", 'the string "default"') != "default":
        call.fail("task", f'the only task that has a name is "default", found {call.args["task"].describe()}')
    registers = None
    for parameter in ("num_regs", "registers"):
        if call.given(parameter):
            registers = call.integer(parameter, minimum=24)
            if registers % 8 or registers > 256:
                call.fail(parameter, f"'{parameter}' must be a multiple of 8 of at most 256, found {registers}")
    replicate = call.integer("replicate", minimum=1)
    if is_default:
        if call.given("num_warps"):
            call.fail("num_warps", "the default task runs on the kernel's own num_warps")
        if replicate != 1:
            call.fail("replicate", "a replicated default task is not supported yet")
        return Task(node, True, 0, registers, 1)
    if not call.given("num_warps"):
        call.fail(None, "a task other than the default one needs num_warps")
    num_warps = call.integer("num_warps", minimum=1)
    if num_warps & (num_warps - 1):
        call.fail("num_warps", f"'num_warps' must be a power of two, found {num_warps}")
    return Task(node, False, num_warps, registers, replicate)


def _check(visitor: Visitor, node: ast.With, tasks: Sequence[Task]) -> None:
    defaults = [task for task in tasks if task.is_default]
    if len(defaults) != 1:
        raise visitor.error(node, f'tlx.async_tasks() needs exactly one task "default", found {len(defaults)}')
    others = [task for task in tasks if not task.is_default]
    with_registers = [task for task in others if task.registers is not None]
    if with_registers and len(with_registers) != len(others):
        odd = next(task for task in others if task.registers is None)
        raise visitor.error(odd.node, "either all tasks but the default one state their registers, or none does")


def _in_task(visitor: Visitor, task: Task, replica: int) -> None:
    """Compile the body of `task`; names that it assigns do not leave it."""
    outer = dict(visitor.names)
    visitor.replica_ids.append(replica)
    visitor.visit_loop_body(task.node.body)
    visitor.replica_ids.pop()
    visitor.names = outer


def _emit(visitor: Visitor, node: ast.With, default: Task, others: Sequence[Task]) -> None:
    builder = visitor.builder
    location = builder.location
    default_block = Block()
    with builder.at_end_of(default_block):
        _in_task(visitor, default, 0)
        visitor.locate(default.node)
        builder.insert(ttg.WarpYieldOp(operands=[[]]))
    regions: list[Region] = []
    num_warps: list[int] = []
    registers: list[int] = []
    for task in others:
        for replica in range(task.replicate):
            block = Block()
            with builder.frame(block):
                _in_task(visitor, task, replica)
                visitor.locate(task.node)
                builder.insert(ttg.WarpReturnOp())
            regions.append(Region(block))
            num_warps.append(task.num_warps)
            if task.registers is not None:
                registers.append(task.registers)
    captures = isolate(regions)
    attributes: dict[str, Attribute] = {}
    if registers:
        attributes["requestedRegisters"] = DenseArrayBase.from_list(i32, registers)
    builder.location = location
    op = ttg.WarpSpecializeOp.build_with(captures, num_warps, Region(default_block), regions, attributes=attributes)
    op.partitions.location = location
    builder.insert(op)
