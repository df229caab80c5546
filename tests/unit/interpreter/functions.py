"""Runs functions of IR text on values, without a kernel around them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlx_xdsl.interpreter.clocks import Clock
from tlx_xdsl.interpreter.global_memory import GlobalMemory
from tlx_xdsl.interpreter.machine import Cluster, Launch
from tlx_xdsl.interpreter.plan import make_plan
from tlx_xdsl.text.parser import parse_module


def call(text: str, *values: Any, memory: GlobalMemory | None = None) -> Any:
    """Call the only function of a module with values of its arguments: arrays, numpy scalars, addresses."""
    plan = make_plan(parse_module(text))
    cluster = Cluster(Launch(plan, memory or GlobalMemory(), (1, 1, 1), (1, 1, 1), values))
    cluster.begin((0, 0, 0))
    task = cluster.blocks[0].start("the default task", 0, 4, [], Clock())
    running = plan.kernel.call(task, values)
    with np.errstate(all="ignore"):
        while True:
            try:
                next(running)
            except StopIteration as end:
                return end.value[0] if len(end.value) == 1 else end.value


def function(body: str, arguments: str, results: str) -> str:
    """The text of a module with one function."""
    arrow = f" -> {results}" if results else ""
    return f"module {{\n  tt.func public @f({arguments}){arrow} {{\n{body}\n  }}\n}}\n"


def apply(operation: str, *operands: np.ndarray, types: str, result: str) -> Any:
    """The result of one operation such as `arith.addi %0, %1 : T`.

    `types` are those of the operands, separated by `;`, in which `T` stands for `tensor<Nx...>`: the element type
    is written as `T<f32>`. N is the number of elements of the first operand.
    """
    count = len(operands[0])

    def spelled(text: str) -> str:
        return text.replace("T<", f"tensor<{count}x")

    arguments = ", ".join(f"%{number}: {spelled(type_.strip())}" for number, type_ in enumerate(types.split(";")))
    body = f"    %r = {spelled(operation)}\n    tt.return %r : {spelled(result)}"
    return call(function(body, arguments, spelled(result)), *operands)
