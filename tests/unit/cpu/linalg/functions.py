"""Functions of values, as text, run in the interpreter before and after `linalg-lower-tensors`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Region
from xdsl.rewriter import Rewriter

from tlx_xdsl.cpu.linalg.lower_tensors import LowerTensorsPass
from tlx_xdsl.dialects import tt
from tlx_xdsl.interpreter.code import FunctionPlan, Plan
from tlx_xdsl.interpreter.global_memory import GlobalMemory
from tlx_xdsl.interpreter.launch import Settings, clusters, run_clusters
from tlx_xdsl.interpreter.machine import Launch
from tlx_xdsl.interpreter.plan import make_plan
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.profiles import mlir_profile
from tlx_xdsl.text.verify import verify_module


class _Recorded(FunctionPlan):
    """A function whose results are kept."""

    results: Sequence[Any] = ()

    def call(self, task: Any, arguments: Sequence[Any]) -> Any:
        self.results = yield from super().call(task, arguments)
        return self.results


def results_of(module: ModuleOp, *arguments: Any) -> list[np.ndarray]:
    """The results of the only public function of a module, which takes and gives tensors and numbers."""
    plan: Plan = make_plan(module)
    name = plan.function.sym_name.data
    planned = plan.functions[name]
    recorded = plan.functions[name] = _Recorded(planned.op, planned.graph, planned.slots)
    launch = Launch(plan, GlobalMemory(), (1, 1, 1), (1, 1, 1), list(arguments))
    list(run_clusters(launch, list(clusters(launch)), Settings()))
    return [np.asarray(result) for result in recorded.results]


def lowered(text: str, **options: Any) -> ModuleOp:
    """The verified module of a text after the pass."""
    module = parse_module(text)
    verify_module(module)
    LowerTensorsPass(**options).run(module)
    verify_module(module)
    return module


def upstream_text(module: ModuleOp) -> str:
    """The text of a module without pointers for upstream MLIR, with its functions as `func.func`."""
    for op in list(module.ops):
        if isinstance(op, tt.FuncOp):
            for end in [each for each in op.walk() if isinstance(each, tt.ReturnOp)]:
                Rewriter.replace_op(end, func.ReturnOp(*end.operands))
            body = Region()
            op.body.move_blocks(body)
            Rewriter.replace_op(op, func.FuncOp(op.sym_name.data, op.function_type, body), [])
    return print_module(module, profile=mlir_profile("newest"))


def before_and_after(text: str, *arguments: Any, **options: Any) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The results of a function as it is and after the pass."""
    return results_of(parse_module(text), *arguments), results_of(lowered(text, **options), *arguments)


def assert_same(before: Sequence[np.ndarray], after: Sequence[np.ndarray]) -> None:
    """Check that all results have the same bits; every NaN is NaN."""
    for have, want in zip(after, before, strict=True):
        assert have.dtype == want.dtype
        assert have.shape == want.shape
        nan = want != want
        np.testing.assert_array_equal(have != have, nan)
        np.testing.assert_array_equal(_bits(have)[~nan], _bits(want)[~nan])


def _bits(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")
