"""Running TTL kernels here: by their meaning, on the checking machine, or as C++ against stub headers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from tlx_xdsl.errors import CompilationError, InputError, SourceLocation
from tlx_xdsl.runtime.driver.host_values import on_host
from tlx_xdsl.text.diagnostics import report_again, source_line

from ..cost import Profile, profile
from ..interpreter import run as run_tensors
from ..interpreter.ttkernel import Exploration, Plan, Report, explore, make_plan, run as run_ttkernel
from ..language.kernel import Kernel
from ..language.tensors import TensorSpec
from ..metalium.machine import MetaliumError, run as run_sources
from ..tiles import PageLayout, from_pages, to_pages
from .compilation import CompiledKernel, Options, compile_kernel, synchronized_module
from .specs import parameters, specs_of
from .stand_in import Nothing

MACHINES = ("ttkernel", "tensors", "cpp")
"""What runs a kernel.

`tensors` runs the module after `ttl-insert-synchronization` on whole blocks; `ttkernel` the calls of TT-Metalium that
it becomes, with checks of every step; `cpp` the C++ text, compiled by g++ against headers of ours.
"""


class Prepared:
    """A kernel that is compiled for a machine, to be run any number of times."""

    def __init__(
        self, kernel: Kernel, arguments: Sequence[Any], machine: str = MACHINES[0], options: Options | None = None
    ) -> None:
        """Compile a kernel for the shapes, types and numbers of these arguments.

        Raises CompilationError for an error in the kernel; InputError and InputTypeError for wrong arguments.
        """
        if machine not in MACHINES:
            raise InputError(f"unknown machine '{machine}', expected one of {', '.join(MACHINES)}")
        self._machine = machine
        self._names = parameters(kernel)
        specs = specs_of(kernel, self._on_host(arguments))
        self._specs = [spec for spec in specs if isinstance(spec, TensorSpec)]
        if machine == "tensors":
            self._module = synchronized_module(kernel, specs, options)
        else:
            self._compiled = compile_kernel(kernel, specs, options)
            self._module = self._compiled.module

    def _on_host(self, arguments: Sequence[Any]) -> list[Any]:
        known = [on_host(name, each) for name, each in zip(self._names, arguments, strict=False)]
        return [*known, *arguments[len(known) :]]

    def _arrays(self, arguments: Sequence[Any]) -> list[Any]:
        return [each for each in self._on_host(arguments) if not isinstance(each, bool | int | float)]

    def run(
        self, arguments: Sequence[Any], *, schedule: str | Sequence[int] = "round-robin", seed: int = 0
    ) -> Report | None:
        """Run the kernel on arrays like those that it was compiled for, which it reads and writes in place.

        The report says what was strange; the C++ gives none.

        Raises Fault, a CompilationError, for what it does wrong.
        """
        arrays = self._arrays(arguments)
        match self._machine:
            case "tensors":
                return run_tensors(self._module, arrays, schedule=schedule, seed=seed)
            case "ttkernel":
                return run_ttkernel(self._plan, arrays, schedule=schedule, seed=seed, capacity=self._capacity)
            case _:
                run_cpp(self._compiled, self._specs, arrays, seed=seed)
                return None

    def profile(
        self, arguments: Sequence[Any], *, schedule: str | Sequence[int] = "round-robin", seed: int = 0
    ) -> Profile:
        """Run the kernel as `run` does, and give what it moves and computes.

        Raises InputError for a machine other than `ttkernel`.
        """
        if self._machine != "ttkernel":
            raise InputError(f"a profile is of a run on the machine 'ttkernel', found '{self._machine}'")
        fidelity: str = self._compiled.manifest["options"].get("math_fidelity") or "HiFi4"
        return profile(
            self._module, self._arrays(arguments), fidelity=fidelity, schedule=schedule, seed=seed,
            capacity=self._capacity,
        )  # fmt: skip

    def explore(self, arguments: Sequence[Any], budget: int = 1000) -> Exploration | None:
        """Run the kernel in every order of its threads that makes a difference, `budget` runs at most.

        The arrays stay as they are. None for machines that have no such search.
        """
        if self._machine != "ttkernel":
            return None
        return explore(self._plan, self._arrays(arguments), budget, capacity=self._capacity)

    @cached_property
    def _plan(self) -> Plan:
        return make_plan(self._module)

    @property
    def _capacity(self) -> int:
        return self._compiled.manifest["options"]["dst_capacity"]


def run(
    kernel: Kernel,
    *arguments: Any,
    machine: str = MACHINES[0],
    options: Options | None = None,
    schedule: str | Sequence[int] = "round-robin",
    seed: int = 0,
) -> None:
    """Run a kernel on arrays of numpy or tensors of torch, which it reads and writes in place, and on numbers.

    `schedule` and `seed` choose who goes on when several threads can (`interpreter/scheduler.py`); a schedule can also
    be the choices of an exploration.

    Raises CompilationError for an error in the kernel; of that class, a Fault for what it does wrong in the run.
    """
    if any(isinstance(each, Nothing) for each in arguments):
        # The file is loaded for its kernels only.
        return
    report = Prepared(kernel, arguments, machine, options).run(arguments, schedule=schedule, seed=seed)
    for warning in () if report is None else report.warnings:
        report_again(warning)


def run_cpp(
    compiled: CompiledKernel, specs: Sequence[TensorSpec], arrays: Sequence[NDArray[Any]], *, seed: int = 0
) -> None:
    """Compile the C++ of a kernel against our stub headers, and run it on arrays, which it writes in place.

    Raises CompilationError for what it does wrong in the run, and where there is no C++ compiler.
    """
    layouts = [_layout(spec) for spec in specs]
    names = [each["name"] for each in compiled.manifest["tensors"]]
    pages = {
        name: to_pages(array, spec.dtype.name, layout)
        for name, array, spec, layout in zip(names, arrays, specs, layouts, strict=True)
    }
    try:
        run_sources(compiled.sources, compiled.manifest, pages, seed=seed)
    except MetaliumError as error:
        place = None if not error.file else SourceLocation(error.file, error.line)
        raise CompilationError(error.message, place, source_line=source_line(place)) from error
    for name, array, spec, layout in zip(names, arrays, specs, layouts, strict=True):
        array[...] = from_pages(pages[name], spec.shape, spec.dtype.name, layout).astype(array.dtype)


def _layout(spec: TensorSpec) -> PageLayout:
    match spec.layout.kind:
        case "sharded":
            assert spec.layout.grid is not None and spec.layout.tiles_per_shard is not None
            return PageLayout("sharded", spec.layout.grid, spec.layout.tiles_per_shard)
        case "interleaved":
            return PageLayout("interleaved")
        case _:
            return PageLayout()
