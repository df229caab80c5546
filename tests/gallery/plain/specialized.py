"""A plain kernel and what the passes make of it, run side by side in the interpreter on the same arguments.

The module of the passes is run as it is, without its source: `host_part` makes the arguments of its launch, as it does
for launches of the written kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tests.gallery.plain.family import Problem
from tests.gallery.plain.numpy_arrays import check, expected
from tlx_xdsl import CompilationError
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.frontend.compile import build_module
from tlx_xdsl.frontend.python.foreign import source_of
from tlx_xdsl.interpreter.plan import kernel_of
from tlx_xdsl.runtime.driver.host_values import typed
from tlx_xdsl.runtime.simulate.interpret import argument_types, interpret_module, interpret_source
from tlx_xdsl.runtime.simulate.options import Options
from tlx_xdsl.runtime.specialize.host_part import HostPart
from tlx_xdsl.runtime.specialize.read_host_part import host_part_of
from tlx_xdsl.runtime.specialize.specialized import Specialized, warp_specialized
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
    constexprs: Mapping[str, Any]

    @cached_property
    def host(self) -> HostPart:
        """Return what makes the arguments of the specialised kernel."""
        return host_part_of(self.specialized)

    def why_not(self, problem: Problem) -> str:
        """Return why the runtime would launch the plain kernel; empty where it takes the specialised one."""
        found = self._launch(problem)
        return found if isinstance(found, str) else ""

    def run_plain(self, problem: Problem, **more: Any) -> Any:
        """Run what the frontend has made."""
        wanted = argument_types(kernel_of(self.plain, None))
        return self._run(self.plain, problem.grid, [problem.arguments[name] for name in wanted], more)

    def run_specialized(self, problem: Problem, **more: Any) -> Any:
        """Run what the passes have made, for a launch that fits."""
        found = self._launch(problem)
        assert not isinstance(found, str), found
        return self._run(self.specialized, *found, more)

    def _launch(self, problem: Problem) -> tuple[tuple[int, int, int], list[Any]] | str:
        return self.host.arguments(problem.grid, {**self.constexprs, **problem.arguments}, PROGRAMS)

    def _run(self, module: ModuleOp, grid: Sequence[int], given: Sequence[Any], more: Mapping[str, Any]) -> Any:
        return interpret_module(module, tuple(grid), given, Options(num_warps=self.num_warps, **{"jobs": 1, **more}))


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
    plain, changed = (plain_of(kernel, problem, constexprs, num_warps, types).plain for _ in range(2))
    specialize(changed, make_context(), decisions)
    verify_module(changed)
    return Made(plain, changed, num_warps, constexprs)


@dataclass
class MadeBySource(Made):
    """A kernel, and the kernel of the file that was written of its specialised module."""

    found: Specialized

    @cached_property
    def host(self) -> HostPart:
        """Return what makes the arguments of the specialised kernel."""
        return self.found.host

    def run_specialized(self, problem: Problem, **more: Any) -> Any:
        """Run the written kernel, for the types that it was written for."""
        fitted = self._launch(problem)
        assert not isinstance(fitted, str), fitted
        grid, values = fitted
        source = source_of(self.found.kernel)
        assert source is not None, self.found
        types = self.found.table.signature
        names = [each.name for each in source.parameters if each.name in types]
        options = Options(**{**self.found.run_options, "jobs": 1, **more})
        given = {**self.found.table.constexprs, **dict(zip(names, values, strict=True))}
        return interpret_source(source, grid, given, options, types)


def made_by_source(
    kernel: Any,
    problem: Problem,
    constexprs: Mapping[str, Any],
    num_warps: int,
    decisions: Decisions,
    types: Mapping[str, Any] | None = None,
) -> MadeBySource:
    """Compile a kernel, and specialise it to a file; types are those of the values, or given.

    Raises the error for which there is no specialised kernel.
    """
    plain = plain_of(kernel, problem, constexprs, num_warps, types).plain
    source = source_of(kernel)
    assert source is not None, kernel
    wanted = typed(source, {**problem.arguments, **constexprs}, types)
    found = warp_specialized(kernel, wanted.signature, wanted.constexprs, decisions, num_warps=num_warps)
    if found.refused is not None:
        raise found.refused
    return MadeBySource(plain, plain, num_warps, constexprs, found)


def goes_wrong(run: Callable[[], Any], problem: Problem, tolerance: float) -> bool:
    """Return whether a run ends in an error, warns, or computes something else: what a test wants of a mutant."""
    try:
        if any(each.severity != "remark" for each in run().warnings):
            return True
        check(problem, expected(problem), tolerance)
    except (CompilationError, AssertionError):
        return True
    return False


def plain_of(
    kernel: Any, problem: Problem, constexprs: Mapping[str, Any], num_warps: int, types: Mapping[str, Any] | None = None
) -> Made:
    """Compile a kernel as it is."""
    source = source_of(kernel)
    assert source is not None, kernel
    found = typed(source, {**problem.arguments, **constexprs}, types)
    module = build_module(source, found.signature, found.constexprs, num_warps=num_warps)
    return Made(module, module, num_warps, constexprs)
