"""A launch of a kernel for the clock: its final code, and the prediction that the clock makes of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

from tlx_xdsl.backend import BackendResult, KernelResources
from tlx_xdsl.errors import CompilationError, InputError, InputTypeError
from tlx_xdsl.frontend.python.source import KernelSource, Signature
from tlx_xdsl.grid import Grid, grid_of
from tlx_xdsl.language.compile_time import constexpr, unwrapped
from tlx_xdsl.sass.text import disassembly, find_nvdisasm
from tlx_xdsl.targets import target_named
from tlx_xdsl.timing import chips, predict as clock
from tlx_xdsl.timing.predict import Prediction

from ..driver.compilation import frontend_module, installed_profile
from ..driver.host_values import Typed, defaults_of, typed
from ..driver.specialization import Specialization
from ..simulate.options import PTX, Options
from ..simulate.ptx_stage import PtxLaunch, compiled, launch_of
from .stand_ins import standing_in
from .tasks import warp_ranges

OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "cluster", "target", "enable_fp_fusion", "passes")
"""Options of a launch, by the names that the fields of `Specialization` and of `Options` have."""

CHIPS = {90: "H200", 100: "B200"}
"""The GPU that a launch is predicted for where none is named, by the compute capability of the target."""


@dataclass(frozen=True)
class Configuration:
    """A kernel with the arguments and the options of one launch."""

    source: KernelSource
    grid: Grid
    arguments: Mapping[str, Any]
    """Values by parameter, compile-time ones included; arrays of this process, which are not written."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Those of `OPTIONS` that are not the usual ones."""
    types: Mapping[str, Signature] = field(default_factory=dict[str, Signature])
    """What is not to be derived from values."""

    def changed(self, settings: Mapping[str, Any]) -> Configuration:
        """Return the same launch with other compile-time arguments, and other options.

        Raises TypeError for a name that is neither.
        """
        known = {each.name for each in self.source.parameters if each.is_constexpr}
        for name in settings:
            if name not in known and name not in OPTIONS:
                raise InputTypeError(
                    f"'{name}' can't be chosen: expected a compile-time argument ({', '.join(sorted(known)) or 'none'})"
                    f" or one of {', '.join(OPTIONS)}"
                )
        constants = {name: constexpr(value) for name, value in settings.items() if name in known}
        options = {name: value for name, value in settings.items() if name not in known}
        return replace(self, arguments={**self.arguments, **constants}, options={**self.options, **options})

    @cached_property
    def sizes(self) -> tuple[int, int, int]:
        """The grid in numbers."""
        given = {**defaults_of(self.source), **self.arguments}
        return grid_of(self.grid, {name: unwrapped(value) for name, value in given.items()})

    @cached_property
    def typed(self) -> Typed:
        """The types of the arguments, and their values in the order of the function's arguments."""
        return typed(self.source, standing_in(self.arguments), self.types)

    @cached_property
    def specialization(self) -> Specialization:
        """Return what the kernel is compiled for. Raises TypeError for options that there are not."""
        chosen = {name: value for name, value in self.options.items() if name != "num_stages" and value is not None}
        try:
            return Specialization(self.typed.signature, self.typed.constexprs, **chosen)
        except TypeError as error:
            raise InputTypeError(f"{self.source.name}: {error}") from error

    @property
    def num_stages(self) -> int:
        """Return the depth of the pipeline that stock Triton makes of the loops of a plain kernel."""
        return self.options.get("num_stages") or 3

    @cached_property
    def module(self) -> Any:
        """The module that the frontend makes of the kernel."""
        return frontend_module(self.source, self.specialization, installed_profile())

    @cached_property
    def code(self) -> BackendResult:
        """The final PTX and the cubin, which stock Triton makes.

        Raises CompilationError for a fault in the kernel, and where stock Triton is not installed.
        """
        wanted = self.specialization
        options = Options(
            wanted.num_warps, wanted.num_ctas, wanted.cluster, wanted.target, PTX,
            num_stages=self.num_stages, enable_fp_fusion=wanted.enable_fp_fusion,
        )  # fmt: skip
        return compiled(self.source, wanted, options, "cubin")

    def predict(
        self, chip: str | None = None, hertz: float | None = None, *, timeline: bool = True
    ) -> Prediction:  # fmt: skip
        """Predict the launch on a GPU, by default the one that the target is of, at a clock of its multiprocessors.

        Raises CompilationError for a fault in the kernel, for a GPU that the clock does not know, and where stock
        Triton is not installed; ValueError for a grid without programs.
        """
        specialization = self.specialization
        wanted = chip_for(specialization.target, chip)
        if not prod(self.sizes):
            raise InputError(f"the grid {'x'.join(map(str, self.sizes))} has no programs: there is nothing to predict")
        tasks = warp_ranges(self.module, specialization.num_warps) if timeline else []
        launch = launch_of(self.code, specialization.cluster, self.typed.values, self.sizes, specialization.target)
        return predict_launch(self.code, launch, wanted, hertz, tasks=tasks, timeline=timeline)


def as_launched(kernel: Any, configuration: Configuration) -> Configuration:
    """Return what a launch of a kernel runs: a kernel that is warp-specialised has another in its place."""
    change = getattr(kernel, "as_launched", None)
    return configuration if change is None else change(configuration)


def predict_launch(
    code: BackendResult, launch: PtxLaunch, chip: str, hertz: float | None, *, tasks: list[tuple[int, int, str]],
    timeline: bool,
) -> Prediction:  # fmt: skip
    """Predict a launch of final code, at the clock in Hz that it takes the GPU to run at, or a given one."""
    return clock.predict(
        code.ptx, launch.grid, launch.values, chip=chip, kernel=code.metadata.name or None,
        num_warps=launch.num_warps, cluster=launch.cluster, shared=launch.shared, scratch=launch.scratch,
        registers=code.resources.registers if code.resources != KernelResources() else None,
        machine_code=_machine_code(code.cubin), tasks=tasks, timeline=timeline, hertz=hertz,
    )  # fmt: skip


def chip_for(target: str, chip: str | None) -> str:
    """Return the name of a GPU: the one that is named, or that of a target.

    Raises CompilationError where the clock knows neither.
    """
    found = chip or CHIPS.get(target_named(target).capability)
    if found is None:
        known = ", ".join(f"sm_{capability} ({name})" for capability, name in CHIPS.items())
        raise CompilationError(f"the clock knows no GPU of {target}: it has {known}")
    try:
        return chips.chip_named(found).name
    except ValueError as error:
        raise CompilationError(str(error)) from error


def _machine_code(cubin: bytes) -> str | None:
    """The disassembly, where there is a cubin and a disassembler."""
    tool = find_nvdisasm() if cubin else None
    return None if tool is None else disassembly(cubin, tool, lines_of_ptx=True)
