"""Launches of `jit(warp_specialize=...)` kernels on a GPU: the specialised kernel where there is one.

The plain kernel is one of Triton's runtime as before, and so is the specialised one: autotuners, heuristics and
`do_bench` see the plain one, whose launch becomes the other's. What is launched again with the same numbers goes to the
driver at once (`planned.py`).
"""

# Triton's runtime has no types: what comes from it is of unknown type to a checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false, reportAttributeAccessIssue=false
# pyright: reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, cast

from triton.compiler import ASTSource
from triton.runtime._async_compile import FutureKernel
from triton.runtime.driver import driver

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.targets import target_of

from ..clock.model import chip_named_in
from ..driver.host_values import defaults_of, is_descriptor
from ..kernel_call import Launch
from ..launch.cuda_driver import CudaDriverError, default_driver
from ..measure.reference_check import difference
from ..specialize.decision import ComparisonError
from ..specialize.kernel import LAUNCHED, Specializing
from ..specialize.search import Measure, Wanted
from ..specialize.settings import Settings
from ..specialize.specialized import PROGRAMS, Specialized, refused_by_choice
from .planned import Plan, Plans, hooks_listen, plan_of
from .triton_kernel import TritonKernel
from .winners import device_name

LOG = logging.getLogger("tlx_xdsl.specialize")

_OF_PLAIN = ("num_ctas", "maxnreg", "ctas_per_cga")
"""Options that ask for something that specialised kernels do not have: with them the plain one is launched."""


class SpecializingTritonKernel(Specializing, TritonKernel):
    """A plain kernel whose launches on a GPU are those of its specialised form."""

    def __init__(self, fn: Callable[..., Any], *, settings: Settings | None = None, **options: Any):
        self.settings = settings or Settings()
        TritonKernel.__init__(self, fn, **options)

    @cached_property
    def plans(self) -> Plans:
        """Plans of launches that were made."""
        return self.__dict__.setdefault("plans", Plans())

    def compile(self, *args: Any, **kwargs: Any) -> Any:
        """Compile to text, specialised; asked by Triton's runtime, the plain kernel to a binary."""
        if args and isinstance(args[0], ASTSource):
            return TritonKernel.compile(self, *args, **kwargs)
        return Specializing.compile(self, *args, **kwargs)

    def __getitem__(self, grid: Any) -> Launch:
        """The kernel on a grid of CTAs: one to three numbers, or a function of the arguments by name."""

        def launch(*args: Any, **kwargs: Any) -> Any:
            if self.runs_here(args, kwargs):
                return self.run_here(grid, args, kwargs)
            return self.run_there(*args, grid=grid, warmup=False, **kwargs)

        setattr(launch, "__wrapped__", self.launch_shape)  # noqa: B010
        return launch

    def run_there(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        """Launch on a GPU, or only compile for it."""
        if warmup or self.pre_run_hooks or hooks_listen():
            return self._run_choice(grid, args, kwargs, warmup=warmup)
        sizes = grid
        if callable(grid):
            sizes = grid({**self._defaults_by_name, **dict(zip(self.arg_names, args, strict=False)), **kwargs})
        found = self.plans.key(tuple(sizes) if isinstance(sizes, list) else sizes, args, kwargs)
        if found is None:
            return self._run_choice(grid, args, kwargs, warmup=False)
        if self.plans.is_plain(found[0]):
            return super().run_there(*args, grid=grid, warmup=False, **kwargs)
        plan = self.plans.get(found[0])
        if plan is not None:
            self._check_globals()
            return plan.run(found[1])
        return self._run_choice(grid, args, kwargs, warmup=False, keyed=found)

    @cached_property
    def _defaults_by_name(self) -> dict[str, Any]:
        return defaults_of(self.source)

    def _check_globals(self) -> None:
        """Raise RuntimeError where a global that the kernel reads has changed, as Triton's launches do."""
        missing = object()
        for (name, _), (value, names) in self.used_global_vals.items():
            if (now := names.get(name, missing)) != value:
                raise RuntimeError(
                    f"Global variable {name} has changed since we compiled this kernel, from {value} to {now}"
                )

    def _run_choice(
        self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, warmup: bool,
        keyed: tuple[Any, list[int]] | None = None,
    ) -> Any:  # fmt: skip
        """Launch or compile what was chosen for the arguments."""
        given = {name: value for name, value in kwargs.items() if name in self.arg_names}
        options = {name: value for name, value in kwargs.items() if name not in given and name != "target"}
        choice = self._choice(grid, args, given, options)
        if choice is None or (over := self._fitted(choice, grid, args, given)) is None:
            if keyed is not None:
                self.plans.keep_plain(keyed[0])
            return super().run_there(*args, grid=grid, warmup=warmup, **kwargs)
        sizes, values = over
        passed = {name: value for name, value in options.items() if name not in ("num_warps", "num_stages")}
        passed = {**passed, **choice.options}
        for hook in self.pre_run_hooks:
            hook(*args, **kwargs)
        try:
            if self.settings.check and not warmup:
                self._compare_there(choice, grid, args, given, options)
            plan = None
            if keyed is not None:
                compiled = choice.kernel.run_there(*values, grid=sizes, warmup=True, **passed)
                plan = self._plan(choice, compiled, sizes, values, args, given, keyed[1])
            if plan is None or keyed is None:
                return choice.kernel.run_there(*values, grid=sizes, warmup=warmup, **passed)
        except CompilationError as error:
            LOG.warning("%s: the plain kernel is launched: %s", self.source.name, error.message)
            self.choices.refuse(choice, error)
            return super().run_there(*args, grid=grid, warmup=warmup, **kwargs)
        key, addresses = keyed
        self.plans.keep(key, plan)
        return plan.run(addresses)

    def _choice(
        self, grid: Any, args: tuple[Any, ...], given: Mapping[str, Any], options: Mapping[str, Any]
    ) -> Specialized | None:
        """Return what was chosen; None where nothing can be, on this GPU or with these options."""
        target = target_of(int(driver.active.get_current_target().arch)).name
        if target not in LAUNCHED or any(options.get(name) not in (None, 1) for name in _OF_PLAIN):
            return None
        named = self._named(args, given)
        device = device_name()

        def measure(wanted: Wanted) -> Measure:
            del wanted
            return lambda choice: self._milliseconds(choice, grid, args, given, options)

        known = {name: value for name, value in options.items() if name in ("num_warps", "num_stages")}
        choice = self.choices.of(
            named, grid=grid, target=target, options=known, device=device if self.settings.by == "measure" else "",
            chip=chip_named_in(device), measure=measure,
        )  # fmt: skip
        return choice if choice else None

    def _fitted(
        self, choice: Specialized, grid: Any, args: tuple[Any, ...], given: Mapping[str, Any]
    ) -> tuple[tuple[int, int, int], list[Any]] | None:
        found = choice.fitted(grid if grid is not None else 1, self._named(args, given), multiprocessors())
        return None if isinstance(found, str) else found

    def _plan(
        self, choice: Specialized, compiled: Any, sizes: tuple[int, int, int], values: list[Any],
        args: tuple[Any, ...], given: Mapping[str, Any], addresses: list[int],
    ) -> Plan | None:  # fmt: skip
        """Return what launches like this one take from now on; None where Triton has to make each."""
        if isinstance(compiled, FutureKernel):
            compiled = compiled.result()
        if compiled is None:
            # A `jit_cache_hook` has kept it from being compiled.
            return None
        order = [*zip(self.arg_names, args, strict=False), *given.items()]
        tensors = [name for name, value in order if hasattr(value, "data_ptr") or is_descriptor(value)]
        # Reading it has the record of the globals made.
        assert self.cache_key
        return plan_of(choice, compiled, sizes, values, dict(zip(tensors, addresses, strict=True)))

    def bind(self, grid: Any, *args: Any, **kwargs: Any) -> Callable[[], Any]:
        """Compile, read the arguments, and return a launch that repeats: see `TritonKernel.bind`."""
        if self.runs_here(args, kwargs):
            return TritonKernel.bind(self, grid, *args, **kwargs)
        given = {name: value for name, value in kwargs.items() if name in self.arg_names}
        options = {name: value for name, value in kwargs.items() if name not in given and name != "target"}
        stream = options.pop("stream", None)
        choice = self._choice(grid, args, given, options)
        if choice is not None and choice.host.has_memory:
            # Its zeros may be cleared in another stream than that of the launch, and not in time.
            choice = None
        if choice is None or (over := self._fitted(choice, grid, args, given)) is None:
            return TritonKernel.bind(self, grid, *args, **kwargs)
        sizes, values = over
        passed = {name: value for name, value in options.items() if name not in ("num_warps", "num_stages")}
        return choice.kernel.bind(sizes, *values, stream=stream, **{**passed, **choice.options})

    # --- measurements and comparisons on the GPU ----------------------------------------------------------------------

    def _milliseconds(
        self, choice: Specialized, grid: Any, args: tuple[Any, ...], given: Mapping[str, Any],
        options: Mapping[str, Any],
    ) -> float:  # fmt: skip
        """The median of a launch's time, of the plain kernel where the choice is that; infinity where it fails."""
        from triton.testing import do_bench

        try:
            return cast(float, do_bench(lambda: self._launch(choice, grid, args, given, options), return_mode="median"))
        except CompilationError as error:
            LOG.warning("%s: a candidate could not be launched: %s", self.source.name, error.message)
            return float("inf")

    def _launch(
        self, choice: Specialized, grid: Any, args: tuple[Any, ...], given: Mapping[str, Any],
        options: Mapping[str, Any],
    ) -> None:  # fmt: skip
        over = self._fitted(choice, grid, args, given) if choice else None
        if over is None:
            TritonKernel.run_there(self, *args, grid=grid, warmup=False, **given, **options)
            return
        sizes, values = over
        choice.kernel.run_there(*values, grid=sizes, warmup=False, **choice.options)

    def _compare_there(
        self, choice: Specialized, grid: Any, args: tuple[Any, ...], given: Mapping[str, Any],
        options: Mapping[str, Any],
    ) -> None:  # fmt: skip
        """Launch both kernels on copies of the tensors, and compare what they have written.

        Raises CompilationError where they differ.
        """
        results: list[dict[str, Any]] = []
        for each in (refused_by_choice(choice, "compared"), choice):
            copied = tuple(map(_copied, args)), {name: _copied(value) for name, value in given.items()}
            self._launch(each, grid, *copied, options)
            results.append(self._named(*copied))
        plain, other = ({name: value for name, value in named.items() if _has_memory(value)} for named in results)
        if found := difference(other, {name: _memory_of(value) for name, value in plain.items()}):
            raise ComparisonError(
                f"check: '{self.source.name}' computes something else when it is specialised: {found}"
            )


def _has_memory(value: Any) -> bool:
    return hasattr(_memory_of(value), "data_ptr")


def _memory_of(value: Any) -> Any:
    return value.base if is_descriptor(value) else value


def _copied(value: Any) -> Any:
    """A tensor's copy with the same strides."""
    if is_descriptor(value):
        from copy import copy

        made = copy(value)
        made.base = _copied(value.base)
        return made
    if not hasattr(value, "data_ptr"):
        return value
    return value.new_empty_strided(value.size(), value.stride()).copy_(value)


def multiprocessors() -> int:
    """The multiprocessors of the current GPU; those of an H200 where there is none."""
    try:
        return default_driver().multiprocessor_count()
    except CudaDriverError:
        return PROGRAMS
