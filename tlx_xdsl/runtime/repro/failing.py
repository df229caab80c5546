"""Search for the step of a compile or of a run that fails, and for what that step had got."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tlx_xdsl.analysis.launch_budget import check_launch
from tlx_xdsl.backend import compile_ttgir, installed_triton_version
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.python.source import KernelSource, Signature
from tlx_xdsl.grid import Grid, grid_of
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.profiles import profile_for
from tlx_xdsl.text.verify import verify_module

from ..driver.compilation import compile_text, frontend_module
from ..driver.reproducible import copied
from ..driver.specialization import Specialization
from ..ranks.arguments import ranks_of
from ..simulate.interpret import interpret_source, module_of
from ..simulate.options import PTX, Options

Step: TypeAlias = Literal["frontend", "passes", "Triton", "interpreter", "ranks", "PTX machine", "launch"]
"""Of these, `ranks` is the interpreter with several GPUs."""


@dataclass(frozen=True)
class Failing:
    """A compile to try, or a run of the interpreter where there is a grid."""

    source: KernelSource
    specialization: Specialization | None = None
    num_stages: int = 3
    grid: Grid | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """By parameter."""
    options: Options = field(default_factory=Options)
    """Of the interpreter."""
    types: Mapping[str, Signature] | None = None
    """Those that are not to be derived from values."""


@dataclass(frozen=True)
class Failure:
    """A step that fails."""

    step: Step
    error: CompilationError
    text: str | None = None
    """The IR that the step had got."""
    values: tuple[tuple[str, Any], ...] = ()
    """Arguments of the function in the IR."""
    sizes: tuple[int, int, int] = (1, 1, 1)


def find_failure(what: Failing) -> Failure | None:
    """Run the steps until one fails; None where none does."""
    if what.grid is not None:
        return _of_a_run(what)
    return None if what.specialization is None else _of_a_compile(what, what.specialization)


def _of_a_run(what: Failing) -> Failure | None:
    step: Step = "frontend"
    text, values, sizes = None, (), (1, 1, 1)
    try:
        sizes = grid_of(what.grid, {**what.arguments}) if what.grid is not None else sizes
        if ranks_of(what.arguments, what.options.ranks):
            step = "ranks"
            given = {name: copied(value) for name, value in what.arguments.items()}
            interpret_source(what.source, sizes, given, what.options, what.types)
            return None
        module, found = module_of(what.source, what.arguments, what.options, what.types)
        verify_module(module)
        step = "PTX machine" if what.options.stage == PTX else "interpreter"
        text = print_module(module)
        values = tuple(found)
        interpret_source(
            what.source,
            sizes,
            {name: copied(value) for name, value in what.arguments.items()},
            what.options,
            what.types,
        )
    except CompilationError as error:
        return Failure(step, error, text, values, sizes)
    return None


def _of_a_compile(what: Failing, wanted: Specialization) -> Failure | None:
    version = installed_triton_version()
    step: Step = "frontend"
    text = None
    try:
        module = frontend_module(what.source, wanted, None if version is None else profile_for(version))
        check_launch(module)
        verify_module(module)
        step, text = "passes", print_module(module)
        compiled = compile_text(what.source, wanted, triton_version=version, keep_ttir=False)
        if version is None:
            return None
        step, text = "Triton", compiled.ttgir
        options = wanted.backend_options(num_stages=what.num_stages)
        compile_ttgir(compiled.ttgir, options, source_name=f"{compiled.name}.ttgir")
    except CompilationError as error:
        return Failure(step, error, text)
    return None
