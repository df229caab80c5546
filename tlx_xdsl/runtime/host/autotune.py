"""Configurations of a kernel, the best of which is found by running them; and heuristics.

The decorators are those of Triton's runtime, for kernels on the CPU and where Triton is not installed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, Protocol, cast

import numpy as np

from tlx_xdsl.by_name import ByName
from tlx_xdsl.errors import CompilationError, InputError, InputTypeError

from ..driver.specialization import CLUSTER_OPTION, HINTS
from .measure import do_bench as measured

LOG = logging.getLogger("tlx_xdsl.autotune")


class Configuration(Protocol):
    """A configuration, as a tuner needs it: ours and Triton's have these members."""

    kwargs: dict[str, Any]
    pre_hook: Callable[[dict[str, Any]], Any] | None

    def all_kwargs(self) -> dict[str, Any]:
        """Return what the kernel is called with."""
        ...


class Config:
    """Values of a kernel's compile-time parameters, and options of its launch, which change nothing on the CPU.

    `pre_hook` is called with all arguments by name before each launch with this configuration.
    """

    def __init__(
        self,
        kwargs: dict[str, Any],
        num_warps: int = 4,
        num_stages: int = 3,
        num_ctas: int = 1,
        maxnreg: int | None = None,
        pre_hook: Callable[[dict[str, Any]], Any] | None = None,
        ir_override: str | None = None,
        **hints: Any,
    ):
        unknown = next((name for name in hints if name not in HINTS | {CLUSTER_OPTION}), None)
        if unknown is not None:
            raise TypeError(f"Config got an unexpected keyword argument '{unknown}'")
        self.kwargs = kwargs
        self.num_warps = num_warps
        self.num_stages = num_stages
        self.num_ctas = num_ctas
        self.maxnreg = maxnreg
        self.pre_hook = pre_hook
        self.ir_override = ir_override

    def all_kwargs(self) -> dict[str, Any]:
        """Return what the kernel is called with."""
        options = {
            name: getattr(self, name) for name in ("num_warps", "num_ctas", "num_stages", "maxnreg", "ir_override")
        }
        return {**self.kwargs, **{name: value for name, value in options.items() if value is not None}}

    def __eq__(self, other: object) -> bool:
        """Return whether the kernel is called in the same way."""
        if not isinstance(other, Config):
            return NotImplemented
        return self.all_kwargs() == other.all_kwargs() and self.pre_hook is other.pre_hook

    def __hash__(self) -> int:
        """Agree with `__eq__`."""
        return hash((*self.all_kwargs().items(), self.pre_hook))

    def __str__(self) -> str:
        """Return all settings."""
        return ", ".join(f"{name}: {value}" for name, value in self.all_kwargs().items())

    __repr__ = __str__


class _Decorated(ByName):
    """Wrapper around a kernel, which is launched as the kernel is."""

    def __init__(self, fn: Any, arg_names: Sequence[str]):
        self.fn = fn
        self.arg_names = list(arg_names)
        self.__name__ = _name(fn)

    @property
    def source(self) -> Any:
        """Return what was written of the kernel: by it the interpreter and the command lines know one."""
        return self.fn.source

    @property
    def base_fn(self) -> Any:
        """The function that was decorated."""
        return self.source.fn

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """Launch on a grid of programs."""
        return partial(self.run, grid=grid, warmup=False)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Launch, or only compile."""
        raise NotImplementedError

    def warmup(self, *args: Any, **kwargs: Any) -> Any:
        """Compile."""
        return self.run(*args, **{"grid": None, **kwargs, "warmup": True})


class Heuristics(_Decorated):
    """A kernel some of whose parameters are computed from its other arguments: see `heuristics`."""

    def __init__(self, fn: Any, arg_names: Sequence[str], values: Mapping[str, Callable[[dict[str, Any]], Any]]):
        super().__init__(fn, arg_names)
        self.values = values

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Launch with what was computed."""
        for name, compute in self.values.items():
            kwargs[name] = compute({**dict(zip(self.arg_names, args, strict=False)), **kwargs})
        return self.fn.run(*args, **kwargs)


def heuristics(values: Mapping[str, Callable[[dict[str, Any]], Any]]) -> Callable[[Any], Heuristics]:
    """Decorate a kernel: each of the named parameters is computed by a function of all arguments by name."""
    return lambda fn: Heuristics(fn, fn.arg_names, values)


class CpuAutotuner(_Decorated):
    """A kernel with configurations: the first launch for new values of `key` runs all of them, and keeps the best.

    `cache` holds the best one for each key, `best_config` the last that was chosen, `configs_timings` the times in
    milliseconds (median, 20 % and 80 %) of the last search, `pruned` the configurations that could not be compiled,
    with the reason.

    Raises ValueError where a name is no parameter of the kernel.
    """

    def __init__(
        self,
        fn: Any,
        arg_names: Sequence[str],
        configs: Sequence[Any],
        key: Sequence[str],
        reset_to_zero: Sequence[str] | None = None,
        restore_value: Sequence[str] | None = None,
        pre_hook: Callable[..., Any] | None = None,
        post_hook: Callable[..., Any] | None = None,
        prune_configs_by: Mapping[str, Any] | None = None,
        warmup: float | None = None,
        rep: float | None = None,
        use_cuda_graph: bool = False,
        do_bench: Callable[..., Any] | None = None,
        cache_results: bool = False,
    ):
        super().__init__(fn, arg_names)
        self.configs: list[Any] = list(configs) or [Config({})]
        self.keys = list(key)
        self.reset_to_zero = list(reset_to_zero or ())
        self.restore_value = list(restore_value or ())
        for what in ("keys", "reset_to_zero", "restore_value"):
            unknown = [name for name in getattr(self, what) if name not in self.arg_names]
            if unknown:
                raise InputError(
                    f"{what.removesuffix('s')}: no arguments of '{self.__name__}': {', '.join(unknown)}; "
                    f"it has {', '.join(self.arg_names)}"
                )
        self._pre_hook, self._post_hook = pre_hook, post_hook
        self._prune_by = dict(prune_configs_by or {})
        self._bench = do_bench or partial(measured, warmup=warmup, rep=rep)
        self.cache: dict[tuple[Any, ...], Any] = {}
        self.best_config: Any = None
        self.configs_timings: dict[Any, Any] = {}
        self.pruned: dict[Any, str] = {}

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Launch with the best configuration.

        Raises CompilationError where none of them can be compiled.
        """
        if kwargs.get("warmup"):
            return [self.fn.run(*args, **{**kwargs, **each.all_kwargs()}) for each in self._remaining(args, kwargs)]
        config = self.configs[0] if len(self.configs) == 1 else self._best(args, kwargs)
        self.best_config = config
        if config.pre_hook is not None:
            config.pre_hook(self._named(args, kwargs, config))
        return self.fn.run(*args, **{**kwargs, **config.all_kwargs()})

    def _named(self, args: Sequence[Any], kwargs: Mapping[str, Any], config: Any) -> dict[str, Any]:
        return {**dict(zip(self.arg_names, args, strict=False)), **kwargs, **config.all_kwargs()}

    def _best(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        given = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}
        known = {name: value for name, value in given.items() if name in self.arg_names}
        dtypes = [str(value.dtype) for value in known.values() if hasattr(value, "dtype")]
        key = (*(known[name] for name in self.keys if name in known), *dtypes)
        if key not in self.cache:
            remaining = self._remaining(args, kwargs)
            self.cache[key] = remaining[0] if len(remaining) == 1 else self._search(remaining, args, kwargs)
        return self.cache[key]

    def _search(self, configs: Sequence[Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        refused: dict[Any, CompilationError] = {}
        timings: dict[Any, Any] = {}
        for config in configs:
            again = config.kwargs.keys() & kwargs.keys()
            if again:
                raise InputError(f"a launch of '{self.__name__}' gives what its configurations do: {', '.join(again)}")
            try:
                timings[config] = self._bench(partial(self._once, config, args, kwargs), quantiles=(0.5, 0.2, 0.8))
            except CompilationError as error:
                # One that can't be compiled may still leave others.
                refused[config], timings[config] = error, (inf, inf, inf)
        if len(refused) == len(configs):
            raise next(iter(refused.values()))
        for config, error in refused.items():
            LOG.warning("%s: %s was left out: %s", self.__name__, config, error.message)
            self.pruned[config] = error.message
        self.configs_timings = timings
        best = min(timings, key=lambda each: _first(timings[each]))
        self._reset(self._named(args, kwargs, best))
        return best

    def _once(self, config: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        named = self._named(args, kwargs, config)
        if config.pre_hook is not None:
            config.pre_hook(named)
        if self._pre_hook is not None:
            self._pre_hook(named)
        else:
            self._reset(named)
        kept = {name: _copy(named[name]) for name in self.restore_value if named[name] is not None}
        failure: Exception | None = None
        try:
            self.fn.run(*args, **{**kwargs, **config.all_kwargs()})
        except Exception as error:
            failure = error
            raise
        finally:
            for name, value in kept.items():
                _write(named[name], value)
            if self._post_hook is not None:
                self._post_hook(named, exception=failure)

    def _reset(self, named: Mapping[str, Any]) -> None:
        if self._pre_hook is not None:
            self._pre_hook(named, reset_only=True)
            return
        for name in self.reset_to_zero:
            if named[name] is not None:
                _write(named[name], 0)

    def _remaining(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The configurations that are worth a run."""
        given = dict(zip(self.arg_names, args, strict=False))
        configs = self.configs
        if (early := self._prune_by.get("early_config_prune")) is not None:
            configs = list(early(configs, given, **kwargs))
            if not configs:
                raise InputError(f"early_config_prune left no configuration of '{self.__name__}'")
        if (model := self._prune_by.get("perf_model")) is None:
            return configs
        top = self._prune_by.get("top_k", 1.0)
        if isinstance(top, float) and top <= 1.0:
            top = max(1, int(len(configs) * top))
        elif not isinstance(top, int):
            raise InputTypeError(
                f"top_k: expected a number of configurations or a share of them up to 1.0, found {top}"
            )
        if len(configs) <= top:
            return configs
        return sorted(configs, key=lambda each: model(**given, **kwargs, **each.all_kwargs()))[:top]


def autotune(configs: Sequence[Any], key: Sequence[str], **options: Any) -> Callable[[Any], CpuAutotuner]:
    """Decorate a kernel as `triton.autotune` does, with the same options; see `CpuAutotuner`."""
    return lambda fn: CpuAutotuner(fn, fn.arg_names, configs, key, **options)


def _name(fn: Any) -> str:
    return getattr(fn, "__name__", type(fn).__name__)


def _first(timing: Any) -> float:
    return float(cast(Any, timing)[0]) if isinstance(timing, Sequence) else float(timing)


def _copy(value: Any) -> Any:
    return value.clone() if hasattr(value, "clone") else np.array(value)


def _write(target: Any, value: Any) -> None:
    """Put a value, or a copy of the same shape, into an array or a tensor."""
    if isinstance(target, np.ndarray):
        np.copyto(cast(Any, target), value)
    elif isinstance(value, int):
        target.zero_()
    else:
        target.copy_(value)
