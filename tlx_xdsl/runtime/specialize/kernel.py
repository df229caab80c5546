"""Kernels of `jit(warp_specialize=...)`: their methods take the specialised kernel where there is one."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

from tlx_xdsl.errors import InputTypeError
from tlx_xdsl.grid import Grid, grid_of

from ..host.kernel import CpuKernel
from ..kernel import Kernel
from .decision import NotSpecialisedError
from .settings import Settings

if TYPE_CHECKING:
    from ..check.report import Report
    from ..clock.launch import Configuration
    from ..driver.compilation import CompiledText
    from ..driver.specialization import Specialization
    from ..measure.profile_report import Profile
    from ..simulate.interpret import Interpretation
    from .choice import Choices
    from .specialized import Specialized

TARGETS = ("sm_90a", "sm_100a")
"""Targets that kernels are specialised for."""

LAUNCHED = ("sm_90a",)
"""Those on which they are launched: for the others nothing was measured yet."""


class Specializing(CpuKernel):
    """A plain kernel, and what it becomes when it is warp-specialised.

    What can't be specialised, and what runs elsewhere than on a GPU of TARGETS, is the plain kernel.
    """

    settings: Settings

    @cached_property
    def choices(self) -> Choices:
        """Choices for launches."""
        from .choice import Choices

        return self.__dict__.setdefault("choices", Choices(self, self.settings))

    def specialized(
        self,
        /,
        *args: Any,
        grid: Grid | None = None,
        target: str = "sm_90a",
        num_warps: int = 4,
        **named: Any,
    ) -> Specialized:
        """Return the specialised kernel for a launch's arguments, or why there is none: `print(...)` says all of it.

        With a grid it is what `kernel[grid](...)` launches on a GPU: the clock, or who else `warp_specialize` names,
        has chosen. Without one the rules have.
        """
        return self.choices.of(self._named(args, named), grid=grid, target=target, options={"num_warps": num_warps})

    def in_its_place(
        self, grid: Grid, args: tuple[Any, ...], given: Mapping[str, Any], chosen: Mapping[str, Any]
    ) -> tuple[Specialized, tuple[int, int, int], list[Any]] | None:
        """The specialised kernel with its grid and arguments for a run on the CPU; None where the plain one runs.

        `chosen` are options of the run. Rules decide: a run that is to show what is wrong must not depend on times.
        """
        target = chosen.get("target", "sm_90a")
        if target not in TARGETS or chosen.get("num_ctas", 1) != 1 or prod(chosen.get("cluster", (1,))) != 1:
            return None
        named = self._named(args, given)
        found = self.choices.of(named, target=target, options=_plain_options(chosen), rules=True)
        fitted = found.fitted(grid, named)
        return None if isinstance(fitted, str) else (found, *fitted)

    # --- methods of kernels -------------------------------------------------------------------------------------------

    def interpret(self, grid: Grid, /, *args: Any, **named: Any) -> Interpretation:
        """Run the kernel on the CPU, specialised where that is possible: see `Kernel.interpret`."""
        from ..simulate.options import FRONTEND, Options

        given, chosen = self._split(named, [each.name for each in fields(Options)])
        place = None
        if chosen.get("stage", FRONTEND) not in _elsewhere():
            place = self.in_its_place(grid, args, given, chosen)
        if place is None:
            return super().interpret(grid, *args, **named)
        found, over, values = place
        if self.settings.check:
            self.compare(found, grid, args, given)
        return found.kernel.interpret(over, *values, options={**chosen, **found.run_options})

    def check(self, grid: Grid, /, *args: Any, **named: Any) -> Report:
        """Run the specialised kernel in all orders that matter: see `Kernel.check`.

        Raises TypeError for `sizes` and `arguments`: each size may be another kernel.
        """
        from ..simulate.options import check_options

        given, chosen = self._split(named, inspect.signature(check_options).parameters)
        if chosen.get("sizes") or chosen.get("arguments"):
            raise InputTypeError(
                "check: a kernel with warp_specialize is checked at one size; check the kernel of the file that "
                "`kernel.specialized(...)` names for others"
            )
        place = self.in_its_place(grid, args, given, chosen)
        if place is None:
            return super().check(grid, *args, **named)
        found, over, values = place
        known = {**chosen, **found.run_options}
        own = {name: known.pop(name) for name in list(known) if name in OWN_OF_CHECK}
        return found.kernel.check(over, *values, options=known, **own)

    def compare(self, found: Specialized, grid: Grid, args: tuple[Any, ...], given: Mapping[str, Any]) -> None:
        """Run both kernels in the interpreter on copies of the arguments.

        Raises ComparisonError where they compute something else, CompilationError for what the plain kernel does wrong.
        """
        from .equality import compared_on

        named = found.named(args, given)
        compared_on(found, grid_of(grid, named), named)

    def profile(self, grid: Grid, /, *args: Any, **named: Any) -> Profile:
        """Time launches of what `kernel[grid](...)` launches: see `Kernel.profile`."""
        own = [*inspect.signature(Kernel.profile).parameters, *_OF_LAUNCH]
        given, chosen = self._split(named, own)
        place = None
        if chosen.get("target", TARGETS[0]) in TARGETS and chosen.get("num_ctas", 1) == 1:
            known = self._named(args, given)
            found = self.choices.of(known, grid=grid, options=_plain_options(chosen))
            fitted = found.fitted(grid, known)
            place = None if isinstance(fitted, str) else (found, *fitted)
        if place is None:
            return super().profile(grid, *args, **named)
        found, over, values = place
        options = {name: chosen.pop(name) for name in _OF_LAUNCH if name in chosen}
        options = {name: value for name, value in options.items() if name not in ("num_stages", "ctas_per_cga")}
        return found.kernel.profile(over, *values, options={**options, **found.run_options}, **chosen)

    def _named(self, args: tuple[Any, ...], given: Mapping[str, Any]) -> dict[str, Any]:
        from ..driver.host_values import bound, defaults_of

        return {**defaults_of(self.source), **bound(self.source, args, given)}

    def as_launched(self, configuration: Configuration) -> Configuration:
        """Return the launch that the clock looks at in the place of the plain kernel's."""
        from dataclasses import replace

        from ..driver.host_values import defaults_of

        target = configuration.specialization.target
        if target not in TARGETS or configuration.specialization.num_ctas != 1:
            return configuration
        named = {**defaults_of(self.source), **configuration.arguments}
        options = _plain_options(configuration.options)
        found = self.choices.of(named, grid=configuration.grid, target=target, options=options)
        fitted = found.fitted(configuration.grid, named)
        if isinstance(fitted, str):
            return configuration
        over, values = fitted
        names = [each.name for each in found.kernel.source.parameters]
        return replace(
            configuration, source=found.kernel.source, grid=over, arguments=dict(zip(names, values, strict=True)),
            options={"target": target, **found.run_options},
        )  # fmt: skip

    def compile(self, /, *args: Any, options: Mapping[str, Any] | None = None, **named: Any) -> CompiledText:
        """Compile the specialised kernel to text, where there is one: see `Kernel.compile`."""
        from ..compile_kernel import specialization_of_call
        from ..driver.compilation import compile_text

        wanted, version = specialization_of_call(self, args, named, options)
        found = self.for_types(wanted)
        if not found:
            return Kernel.compile(self, *args, options=options, **named)
        return compile_text(found.kernel.source, found.specialization, triton_version=version)

    def for_types(self, wanted: Specialization) -> Specialized:
        """Return the kernel that the rules specialise for types and constants, or why there is none."""
        from .specialized import Specialized

        if wanted.target not in TARGETS or wanted.num_ctas != 1 or prod(wanted.cluster) != 1:
            refused = NotSpecialisedError(f"not warp-specialised: one CTA of {' or '.join(TARGETS)} is what can be")
            return Specialized(self, self, refused=refused)
        return self.choices.for_types(wanted)

    def _split(self, named: Mapping[str, Any], names: Iterable[str]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arguments of the kernel and options, apart; a dictionary `options` means options only."""
        from ..driver.host_values import split_options

        known = dict(named)
        more: Mapping[str, Any] = {}
        if "options" in known and "options" not in self.source.signature.parameters:
            more = known.pop("options") or {}
        given, chosen = split_options(self.source, known, list(names))
        return given, {**chosen, **more}


OWN_OF_CHECK = ("seconds", "stages", "launches", "ranks", "prove", "all_orders", "sweep")
"""Options of a check that are none of a run."""


_OF_LAUNCH = ("num_warps", "num_stages", "num_ctas", "maxnreg", "target", "enable_fp_fusion", "ctas_per_cga")
"""Options of a launch that a profile takes."""


def _plain_options(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The options that the plain kernel's time depends on."""
    return {name: chosen[name] for name in ("num_warps", "num_stages") if chosen.get(name) is not None}


def _elsewhere() -> set[str]:
    """Stages that a plain kernel alone has: those of other backs."""
    from tlx_xdsl import wings

    return {*wings.names("stages"), *wings.names("launchers")}
