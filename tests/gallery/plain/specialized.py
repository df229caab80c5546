"""A plain kernel and what the passes make of it, run side by side in the interpreter on the same arguments.

The module of the passes is run as it is, without its source: what it needs of the host (descriptors, values of the
grid, conditions of a launch) is worked out here from the attributes that the passes leave, independently of the
runtime, which reads the same attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp

from tests.gallery.plain.family import Problem
from tlx_xdsl import TensorDescriptor
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.dialects.tt.types import TensorDescType
from tlx_xdsl.frontend.compile import build_module
from tlx_xdsl.frontend.python.foreign import source_of
from tlx_xdsl.interpreter.plan import kernel_of
from tlx_xdsl.runtime.driver.host_values import typed
from tlx_xdsl.runtime.simulate.interpret import argument_types, interpret_module
from tlx_xdsl.runtime.simulate.options import Options
from tlx_xdsl.text.verify import verify_module
from tlx_xdsl.transforms.warp_specialize.specialize import Decisions, specialize

PROGRAMS = 3
"""Programs of a persistent kernel."""


@dataclass
class Made:
    """The modules of a kernel for some types and constants."""

    plain: ModuleOp
    specialized: ModuleOp
    num_warps: int

    def conditions(self, problem: Problem) -> list[str]:
        """What of a launch's conditions does not hold for a problem: the runtime then launches the plain kernel."""
        kernel = kernel_of(self.specialized, None)
        wanted = kernel.attributes.get("tlx.launch_conditions", ArrayAttr([]))
        names = _names(problem.arguments)
        return [each.data for each in wanted if not eval(each.data, {"__builtins__": {}}, names)]

    def run_plain(self, problem: Problem, **more: Any) -> Any:
        """Run what the frontend has made."""
        return self._run(self.plain, problem.grid, problem.arguments, more)

    def run_specialized(self, problem: Problem, **more: Any) -> Any:
        """Run what the passes have made; its launch conditions hold."""
        kernel = kernel_of(self.specialized, None)
        names = _names(problem.arguments)
        found = dict(problem.arguments)
        grid = problem.grid
        attributes = kernel.arg_attrs.data if kernel.arg_attrs is not None else ()
        inputs = kernel.function_type.inputs.data
        for at, attribute in enumerate(attributes):
            name = kernel.body.block.args[at].name_hint or f"arg{at}"
            if "tlx.host_value" in attribute.data:
                # A kernel that goes over the tiles itself runs as any number of programs.
                grid = (min(PROGRAMS, prod(problem.grid)),)
                sizes = {**names, "grid": (*problem.grid, 1, 1)}
                found[name] = eval(attribute.data["tlx.host_value"].data, {"__builtins__": {}}, sizes)
            elif "tlx.host_descriptor" in attribute.data:
                found[name] = _descriptor(attribute.data["tlx.host_descriptor"], inputs[at], problem.arguments, names)
        return self._run(self.specialized, grid, found, more)

    def _run(self, module: ModuleOp, grid: Any, arguments: Mapping[str, Any], more: Mapping[str, Any]) -> Any:
        wanted = argument_types(kernel_of(module, None))
        given = {name: arguments[name] for name in wanted}
        return interpret_module(module, grid, given, Options(num_warps=self.num_warps, **{"jobs": 1, **more}))


def make(
    kernel: Any,
    problem: Problem,
    constexprs: Mapping[str, Any],
    num_warps: int,
    decisions: Decisions,
    types: Mapping[str, Any] | None = None,
) -> Made:
    """Compile a kernel, and specialise a second module of it; types are those of the values, or given.

    Raises WarpSpecializeRefusal where the passes refuse.
    """
    made = plain_of(kernel, problem, constexprs, num_warps, types)
    changed = plain_of(kernel, problem, constexprs, num_warps, types).plain
    specialize(changed, make_context(), decisions)
    verify_module(changed)
    return Made(made.plain, changed, num_warps)


def plain_of(
    kernel: Any, problem: Problem, constexprs: Mapping[str, Any], num_warps: int, types: Mapping[str, Any] | None = None
) -> Made:
    """Compile a kernel as it is."""
    source = source_of(kernel)
    assert source is not None, kernel
    found = typed(source, {**problem.arguments, **constexprs}, types)
    module = build_module(source, found.signature, found.constexprs, num_warps=num_warps)
    return Made(module, module, num_warps)


def _names(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as the conditions know them: a pointer is its address."""
    return {name: value.ctypes.data if isinstance(value, np.ndarray) else value for name, value in arguments.items()}


def _descriptor(facts: DictionaryAttr, type_: Any, arguments: Mapping[str, Any], names: Mapping[str, Any]) -> Any:
    assert isinstance(type_, TensorDescType), type_
    shape, strides = (
        [eval(each.data, {"__builtins__": {}}, dict(names)) for each in facts.data[what]]
        for what in ("shape", "strides")
    )
    base = arguments[facts.data["pointer"].data]
    return TensorDescriptor(base, shape, strides, [int(size) for size in type_.shape.data])
