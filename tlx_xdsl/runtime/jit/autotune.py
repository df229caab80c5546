"""Autotuning with Triton: compiled in parallel, checked, stored; with clusters, and an account of what was left out.

Triton's autotuner compiles and measures one configuration after the other. Here forked processes compile (`ahead.py`)
while the GPU measures what is ready, and what was found is on disk for the next process (`winners.py`).
"""

# Triton's runtime has no types: what comes from it is of unknown type to a checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false, reportMissingTypeStubs=false
# pyright: reportAttributeAccessIssue=false, reportUntypedBaseClass=false, reportPrivateUsage=false

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from math import inf
from typing import Any, cast

import triton
from triton import knobs
from triton.runtime.autotuner import Autotuner, Heuristics
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

from tlx_xdsl.by_name import ByName
from tlx_xdsl.errors import CompilationError, InputTypeError
from tlx_xdsl.progress import Progress
from tlx_xdsl.targets import target_of

from ..clock.model import CLOSE, KernelClock, chip_named_in, clock
from ..driver.specialization import CLUSTER_OPTION, HINTS, REGISTER_HINTS, cluster_option
from ..host.autotune import CpuAutotuner
from ..measure.reference_check import Reference, difference, expected_of, poison
from ..measure.speeds import Source, Speed, SpeedReport
from .ahead import Answer, compiled_ahead
from .stand_in_driver import leave_the_gpu
from .triton_compile import warn_again
from .triton_errors import DoesNotFitError
from .triton_kernel import TritonKernel
from .winners import Winners, device_name

LOG = logging.getLogger("tlx_xdsl.autotune")


class Config(triton.Config):
    """A `triton.Config` that may ask for clusters.

    ctas_per_cga: CTAs of a cluster along x, y and z, each with tensors of its own; the grid counts CTAs, and must
    be a multiple of it. `num_ctas` is another thing: CTAs that share each tensor. Hints of Meta's Triton
    (`specialization.HINTS`) are dropped.

    Raises ValueError for anything but one to three positive numbers, and for registers that no thread can have.
    """

    # Only configurations with clusters have it as their own: Triton's autotuner writes what a configuration has to the
    # disk, and reads it back as one of stock Triton's.
    ctas_per_cga: tuple[int, int, int] | None = None

    def __init__(self, kwargs: dict[str, Any], *positional: Any, ctas_per_cga: Any = None, **options: Any):
        for name in REGISTER_HINTS & options.keys():
            if options[name] is not None and options[name] % 8:
                raise ValueError(f"{name}: registers per thread must be divisible by 8, got {options[name]}")
        super().__init__(kwargs, *positional, **{name: options[name] for name in options if name not in HINTS})
        if ctas_per_cga is not None:
            self.ctas_per_cga = cluster_option(ctas_per_cga)

    def all_kwargs(self) -> dict[str, Any]:
        """Return what the kernel is called with."""
        cluster = {} if self.ctas_per_cga is None else {CLUSTER_OPTION: self.ctas_per_cga}
        return {**super().all_kwargs(), **cluster}

    def __str__(self) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return all settings."""
        text = super().__str__()
        return text if self.ctas_per_cga is None else f"{text}, {CLUSTER_OPTION}: {self.ctas_per_cga}"

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore what was pickled."""
        super().__setstate__(state)
        if state.get(CLUSTER_OPTION) is not None:
            self.ctas_per_cga = state[CLUSTER_OPTION]

    __hash__ = triton.Config.__hash__


class TLXAutotuner(ByName, Autotuner):
    """Triton's autotuner, which compiles in parallel, checks, keeps what it finds, and tunes for the CPU, too.

    report: the configurations of the last search in the order of their speed; None before the first.
    pruned: the configurations that could never launch, with the reason for each.
    wrong: those whose results differ from the reference, with the difference.
    compile_seconds, measure_seconds: of the last search, the first over all processes that have compiled.
    on_cpu: the search by times of the CPU, for launches on arrays that are there.
    """

    def __init__(
        self,
        *args: Any,
        reference: Reference | None = None,
        tolerance: float | None = None,
        keep: float | None = None,
        prune: Any = None,
        processes: int | None = None,
        progress: bool | None = None,
        cache_results: bool | None = None,
        **kwargs: Any,
    ):
        # Triton is to ask us for what is on disk, whatever that is.
        super().__init__(*args, **kwargs, cache_results=True)
        if prune not in (None, clock):
            raise InputTypeError(f"prune: expected tlx_xdsl.clock, found {prune!r}")
        if self.perf_model is clock:
            self.perf_model = self._clock
        self.pruned: dict[triton.Config, str] = {}
        self.wrong: dict[triton.Config, str] = {}
        self._left: dict[triton.Config, str] = {}
        self.report: SpeedReport | None = None
        self.compile_seconds = self.measure_seconds = 0.0
        self.on_cpu = CpuAutotuner(*args, **kwargs, cache_results=bool(cache_results))
        self._reference, self._tolerance, self._keep, self._prune = reference, tolerance, keep, prune
        self._processes, self._progress = processes, progress
        self._in_tritons_file = bool(cache_results) or knobs.autotuning.cache
        self._keeps = cache_results if cache_results is not None else os.environ.get("TRITON_CACHE_AUTOTUNING") != "0"
        self._expected: dict[str, Any] = {}
        self._call: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})
        self.nargs: Any = None
        """Arguments by position, by their names; while a launch is under way."""

    @property
    def kernel(self) -> Any:
        """The kernel itself, below heuristics and the like."""
        fn: Any = self.fn
        while not isinstance(fn, JITFunction):
            fn = fn.fn
        return cast(Any, fn)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Launch with the best configuration, which the first launch for new values of the key looks for.

        What that leaves out because it could never launch, or computes something else than the reference, is logged
        as a warning of `tlx_xdsl.autotune`.

        Raises CompilationError where none computes what the reference says, and as launches do.
        """
        kernel = self.kernel
        if isinstance(kernel, TritonKernel) and kernel.runs_here(args, kwargs):
            result = self.on_cpu.run(*args, **kwargs)
            self.best_config = self.on_cpu.best_config
            return result
        self._call = args, kwargs
        try:
            return super().run(*args, **kwargs)
        finally:
            # Tensors must not live as long as the kernel.
            self._call, self._expected = ((), {}), {}

    def warmup(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Compile all configurations but those that could never launch."""
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        compiled: list[Any] = []
        for config in self.prune_configs(kwargs):
            try:
                compiled.append(self.fn.warmup(*args, **kwargs, **cast("dict[str, Any]", config.all_kwargs())))
            except DoesNotFitError as error:
                self.pruned[config] = error.message
        self.nargs = None
        return compiled

    def rank(self, *args: Any, grid: Any, **kwargs: Any) -> SpeedReport:
        """The configurations in the order that a model expects, without a compile and without a GPU.

        Takes the arguments of a launch; tensors may be numpy arrays, or of any device.
        """
        start = time.perf_counter()
        named = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}
        found = [speed for _, speed in self._ranked(self.configs, named, grid)]
        target, source = target_of(_capability()).name, "estimated" if self._prune is None else "predicted"
        return SpeedReport.of(self.kernel.__name__, target, source, found, time.perf_counter() - start)

    def _ranked(self, configs: Sequence[Any], named: Mapping[str, Any], grid: Any) -> list[tuple[Any, Speed]]:
        """Return each configuration with what the model expects: the clock, where it is to prune, or the roofline."""
        # A launch whose configuration is known loads no xDSL.
        from .ranking import predicted, ranked

        capability = _capability()
        if self._prune is None:
            return ranked(self.kernel.source, configs, named, grid, target_of(capability).name)
        return predicted(self._clock_of(capability), configs, {**named, "grid": grid}, self._processes)

    def _clock(self, **named: Any) -> float:
        """Return the milliseconds that the clock predicts for a launch."""
        config = next((each for each in self.configs if each.all_kwargs().items() <= named.items()), None)
        if config is not None and config.pre_hook is not None:
            # It may say the block of a descriptor.
            config.pre_hook(named)
        return self._clock_of(_capability())(**named)

    def _clock_of(self, capability: int) -> KernelClock:
        return KernelClock(self.kernel, target=target_of(capability).name, chip=chip_named_in(device_name()))

    def check_disk_cache(self, tuning_key: Any, configs: Sequence[Any], bench_fn: Callable[[], None]) -> bool:
        """Take the times of these configurations from the disk, or measure them; return whether they were there."""
        start = time.perf_counter()
        place = None
        if self._keeps and isinstance(self.kernel, TritonKernel):
            settings = self._reference is not None, self._keep, *(() if self._prune is None else ("clock",))
            place = Winners.of(self.kernel, tuning_key, configs, *settings)
            if (stored := place.read(configs)) is not None:
                self._choose(tuning_key, stored)
                self._report("stored", start)
                return True

        def search() -> None:
            self._search(tuning_key, configs, self._first_ones(configs))

        # Triton reads back its own settings only.
        knows = all(getattr(config, CLUSTER_OPTION, None) is None for config in configs)
        if self._in_tritons_file and knows:
            found = super().check_disk_cache(tuning_key, configs, search)
            by_name = {str(config): times for config, times in self.configs_timings.items()}
            self.configs_timings = {config: by_name.get(str(config), [inf] * 3) for config in configs}
        else:
            search()
            found = False
        self._report("stored" if found else "measured", start)
        if place is not None and any(times[0] < inf for times in self.configs_timings.values()):
            place.write(configs, self.configs_timings, device_name())
        return found

    def _first_ones(self, configs: Sequence[Any]) -> Sequence[Any]:
        """The configurations that are worth a measurement: the first ones of the model, where `keep` says how many."""
        if (self._keep is None and self._prune is None) or not isinstance(self.kernel, TritonKernel):
            return configs
        args, kwargs = self._call
        named = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}
        order = self._ranked(configs, named, named.pop("grid"))
        for config, speed in order:
            if speed.milliseconds is None:
                self.pruned[config] = speed.remark
        order = sorted((each for each in order if each[1].milliseconds is not None), key=lambda each: each[1].median)
        if self._keep is None:
            most = sum(each.median <= order[0][1].median * (1 + CLOSE) for _, each in order)
        else:
            most = self._keep if isinstance(self._keep, int) else max(1, round(len(configs) * self._keep))
        for config, speed in order[int(most) :]:
            self._left[config] = f"not measured: the model expects {speed.median:.4g} ms"
        # Where the model knows nothing of any of them, compiling says why.
        return [config for config, _ in order[: int(most)]] or configs

    # --- the search ----------------------------------------------------------------------------------------------

    def _search(self, tuning_key: Any, known: Sequence[Any], configs: Sequence[Any]) -> None:
        """Measure configurations, each as soon as it is compiled, and choose the fastest of all that are known."""
        args, kwargs = self._call
        start = time.time()
        refused = set(self.pruned) | set(self.wrong)
        if self._reference is not None:
            self._expected = expected_of(self._reference, {**self.nargs, **kwargs})
        timings: dict[Any, Any] = {}
        self.compile_seconds, self.measure_seconds = 0.0, 0.0
        capability = _capability()
        ready = compiled_ahead(
            lambda number: self._compile(configs[number], capability), range(len(configs)), self._processes
        )
        failures: list[str] = []
        with closing(ready), Progress(len(configs), "configurations", wanted=self._progress) as progress:
            for found in ready:
                answer = found if isinstance(found, Answer) else Answer(found)
                failures += [answer.failure] if answer.failure else []
                for warning in answer.warnings:
                    warn_again(*warning)
                config = configs[answer.number]
                self.compile_seconds += answer.seconds
                begin = time.perf_counter()
                if isinstance(answer.error, DoesNotFitError):
                    self.kernel.refusal, self.pruned[config] = answer.error, answer.error.message
                    timings[config] = [inf] * 3
                else:
                    timings[config] = self._bench(*args, config=config, **kwargs)
                best = min(timings, key=_median_in(timings))
                self.measure_seconds += time.perf_counter() - begin
                progress.advance()
                progress.note(f"best {_median_in(timings)(best):.4g} ms")
        if failures:
            name = self.kernel.__name__
            LOG.warning(
                "%s: %d of %d configurations were compiled one after the other, since forked processes failed: %s",
                name, len(failures), len(configs), failures[0],
            )  # fmt: skip
        self._warn([config for config in known if {config} & (set(self.pruned) | set(self.wrong)) - refused])
        if self.wrong and all(timings[config][0] == inf for config in configs):
            first = next(f"{each}: {self.wrong[each]}" for each in configs if each in self.wrong)
            name = self.kernel.__name__
            raise CompilationError(f"{name}: no configuration computes what the reference says", notes=(first,))
        self.bench_time = time.time() - start
        self._choose(tuning_key, {config: timings.get(config, [inf] * 3) for config in known})
        self.pre_hook({**self.nargs, **kwargs, **self.cache[tuning_key].all_kwargs()}, reset_only=True)

    def _choose(self, tuning_key: Any, timings: Mapping[Any, Sequence[float]]) -> None:
        self.configs_timings = dict(timings)
        self.cache[tuning_key] = min(timings, key=_median_in(timings))

    def _compile(self, config: Any, capability: int) -> None:
        """Compile one configuration in a forked process, for the cache."""
        leave_the_gpu(capability)
        args, kwargs = self._call
        current = {**kwargs, **config.all_kwargs()}
        if config.pre_hook is not None:
            # It may say the block of a descriptor.
            config.pre_hook({**self.nargs, **current})
        self.fn.run(*args, **{**current, "warmup": True})

    def _bench(self, *args: Any, config: triton.Config, **meta: Any) -> Any:
        kernel = self.kernel
        kernel.refusal = None
        if self._expected:
            try:
                text = self._checked(args, config, meta)
            except DoesNotFitError as error:
                self.pruned[config] = error.message
                return [inf] * 3
            if text is not None:
                self.wrong[config] = text
                return [inf] * 3
        timings = super()._bench(*args, config=config, **meta)
        if kernel.refusal is not None:
            self.pruned[config] = kernel.refusal.message
        return timings

    def _checked(self, args: Sequence[Any], config: Any, meta: Mapping[str, Any]) -> str | None:
        """Launch once, and compare with the reference; return the difference in words, None for none."""
        current = {**meta, **config.all_kwargs()}
        named = {**self.nargs, **current}
        if config.pre_hook is not None:
            config.pre_hook(named)
        self.pre_hook(named)
        kept = {*self.reset_to_zero, *self.restore_value}
        if not self.user_defined_pre_hook:
            poison({name: named[name] for name in self._expected if name not in kept})
        failure: Exception | None = None
        try:
            self.fn.run(*args, **current)
            return difference(named, self._expected, self._tolerance)
        except Exception as error:
            failure = error
            raise
        finally:
            self.post_hook(named, exception=failure)

    # --- reports -------------------------------------------------------------------------------------------------

    def _report(self, source: Source, start: float) -> None:
        timings = self.configs_timings
        reasons = {**self._left, **self.pruned, **self.wrong}
        speeds = [
            Speed(
                {name: value for name, value in config.all_kwargs().items() if value is not None},
                None if times[0] == inf else cast("tuple[float, float, float]", tuple(times)),
                "" if times[0] < inf else reasons.get(config, ""),
            )
            for config, times in timings.items()
        ]
        self.report = SpeedReport.of(
            self.kernel.__name__,
            device_name(),
            source,
            speeds,
            time.perf_counter() - start,
            checked=self._reference is not None,
        )

    def _warn(self, new: Sequence[Any]) -> None:
        if pruned := [config for config in new if config in self.pruned]:
            LOG.warning("%s", self._account("could never launch", self.pruned, pruned))
        if wrong := [config for config in new if config in self.wrong]:
            LOG.warning("%s", self._account("compute something else", self.wrong, wrong))

    def _account(self, why: str, reasons: Mapping[Any, str], configs: Sequence[Any]) -> str:
        head = f"{self.kernel.__name__}: {len(configs)} of {len(self.configs)} configurations were left out"
        return "\n".join((f"{head}, because they {why}:", *(f"  {config}: {reasons[config]}" for config in configs)))


class TLXHeuristics(ByName, Heuristics):
    """Triton's kernel some of whose parameters are computed, which is pickled by name."""


def heuristics(values: Mapping[str, Callable[[dict[str, Any]], Any]]) -> Callable[[Any], TLXHeuristics]:
    """Decorate a kernel: each of the named parameters is computed by a function of all arguments by name."""
    return lambda fn: TLXHeuristics(fn, fn.arg_names, values)


def _capability() -> int:
    """The compute capability of the GPU that launches go to, or is assumed; that of an H200 where there is none."""
    try:
        return int(driver.active.get_current_target().arch)
    except RuntimeError:
        return 90


def _median_in(timings: Mapping[Any, Sequence[float]]) -> Callable[[Any], float]:
    return lambda config: timings[config][0]


def autotune(configs: list[Any], key: list[str], **options: Any) -> Callable[[Any], TLXAutotuner]:
    """Decorate a kernel as `triton.autotune` does, with the same options, and these.

    `reference` takes the arguments of a launch by name and gives what some of them must hold after it, by name:
    configurations that compute something else are left out. `tolerance` is the largest error, of the largest value
    (by default it follows from the type). `keep` has that many, or that share, of the configurations measured: those
    that a model of the launch expects to be the fastest (`TLXAutotuner.rank`). With `prune=tlx_xdsl.clock` that is the
    clock (docs/clock.md), and without `keep` those are measured that it predicts to be close to the fastest;
    `prune_configs_by` takes it as `perf_model`, too. `processes` compile (one for each core but one; with 0 this
    process does). `progress` says whether to draw a bar (None: where standard error is a terminal). What is found is
    kept on disk, where `cache_results` is not False; with True in the file of Triton's autotuner as well.
    """
    positional = [options.pop(name, None) for name in ("reset_to_zero", "restore_value")]
    return lambda fn: TLXAutotuner(fn, fn.arg_names, configs, key, *positional, **options)
