"""Plans of modules, and the kernel of a module that is to run."""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.dialects.base import module_integer
from tlx_xdsl.dialects.func import program_arguments
from tlx_xdsl.errors import InputError

from .code import Debugger, Function, FunctionPlan, Plan, Watcher
from .faults import fault_at
from .ops import register_all
from .planner import Planner
from .threads import reads_threads


def make_plan(
    module: ModuleOp, kernel: str | None = None, *, watcher: Watcher | None = None, debugger: Debugger | None = None
) -> Plan:
    """Plan a module of any stage of the pipeline.

    `kernel` is the name of the function to run, by default the only public one; `watcher` receives what runs, and
    `debugger` stands before it.
    Raises Fault for operations that the interpreter does not know, and ValueError when there is no such kernel.
    """
    register_all()
    warps, ctas = module_integer(module, "ttg.num-warps") or 4, module_integer(module, "ttg.num-ctas") or 1
    function = kernel_of(module, kernel)
    plan = Plan(
        module, function, warps, ctas, coordinates=coordinates_of(function), watcher=watcher,
        debugger=debugger, by_threads=reads_threads(module),
    )  # fmt: skip
    for op in module.ops:
        if isinstance(op, Function):
            plan.functions[op.sym_name.data] = FunctionPlan(op)
    for made in plan.functions.values():
        made.graph = Planner(plan, made).graph(made.op.body)
    return plan


def coordinates_of(function: Function) -> int:
    """The number of last arguments of a kernel that a launch gives.

    Raises Fault where the function says what can't be.
    """
    try:
        return program_arguments(function) if isinstance(function, func.FuncOp) else 0
    except VerifyException as error:
        raise fault_at(function, str(error)) from error


def kernel_of(module: ModuleOp, name: str | None = None) -> Function:
    """The function of that name, by default the only public one.

    Raises ValueError when there is none.
    """
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, Function)}
    if name is not None:
        if name not in functions:
            raise InputError(f"no function '{name}', there are {', '.join(functions) or 'none'}")
        return functions[name]
    public = [op for op in functions.values() if _visibility(op) != "private"]
    if len(public) != 1:
        raise InputError(f"expected one public function, found {', '.join(functions) or 'none'}: name the kernel")
    return public[0]


def _visibility(op: Function) -> str:
    attribute = cast(Any, op.sym_visibility)
    return "public" if attribute is None else attribute.data
