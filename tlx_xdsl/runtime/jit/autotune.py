"""Autotuning with Triton: configurations with clusters, an account of those that could never launch, and the CPU."""

# Triton's runtime has no types: what comes from it is of unknown type to a checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false, reportMissingTypeStubs=false
# pyright: reportAttributeAccessIssue=false, reportUntypedBaseClass=false, reportPrivateUsage=false

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, cast

import triton
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from tlx_xdsl.runtime.cpu.autotune import CpuAutotuner
from tlx_xdsl.runtime.jit.triton_errors import DoesNotFitError
from tlx_xdsl.runtime.jit.triton_kernel import TritonKernel
from tlx_xdsl.runtime.launch_options import CLUSTER_OPTION, HINTS, REGISTER_HINTS, cluster_option

LOG = logging.getLogger("tlx_xdsl.autotune")


class Config(triton.Config):
    """A `triton.Config` that may ask for clusters.

    ctas_per_cga: CTAs of a cluster along x, y and z, each with tensors of its own; the grid counts CTAs, and must
    be a multiple of it. `num_ctas` is another thing: CTAs that share each tensor. Hints of Meta's Triton
    (`launch_options.HINTS`) are dropped.

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


class TLXAutotuner(Autotuner):
    """Triton's autotuner, which reports what it left out, and finds the best configuration for the CPU, too.

    pruned: the configurations that could never launch, with the reason for each.
    on_cpu: the search by times of the CPU, for launches on arrays that are there.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.pruned: dict[triton.Config, str] = {}
        self.on_cpu = CpuAutotuner(*args, **kwargs)

    @property
    def kernel(self) -> Any:
        """The kernel itself, below heuristics and the like."""
        fn: Any = self.fn
        while not isinstance(fn, JITFunction):
            fn = fn.fn
        return cast(Any, fn)

    def _bench(self, *args: Any, config: triton.Config, **meta: Any) -> Any:
        kernel = self.kernel
        kernel.refusal = None
        timings = super()._bench(*args, config=config, **meta)
        if kernel.refusal is not None:
            self.pruned[config] = kernel.refusal.message
        return timings

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Launch with the best configuration, which the first launch for new values of the key looks for.

        What that leaves out because it could never launch is logged as a warning of `tlx_xdsl.autotune`.
        """
        kernel = self.kernel
        if isinstance(kernel, TritonKernel) and kernel.runs_here(args, kwargs):
            result = self.on_cpu.run(*args, **kwargs)
            self.best_config = self.on_cpu.best_config
            return result
        before = set(self.pruned)
        result = super().run(*args, **kwargs)
        new = {config: reason for config, reason in self.pruned.items() if config not in before}
        if new:
            LOG.warning("%s", self._account(new))
        return result

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

    def check_disk_cache(self, tuning_key: Any, configs: Any, bench_fn: Callable[[], None]) -> bool:
        """Take timings from the disk, where none are of clusters: Triton reads back its own settings only."""
        if any(getattr(config, CLUSTER_OPTION, None) is not None for config in configs):
            bench_fn()
            return False
        return super().check_disk_cache(tuning_key, configs, bench_fn)

    def _account(self, pruned: dict[triton.Config, str]) -> str:
        head = f"{self.kernel.__name__}: {len(pruned)} of {len(self.configs)} configurations were left out"
        return "\n".join((f"{head}, because they could never launch:", *(f"  {c}: {why}" for c, why in pruned.items())))


def autotune(configs: list[Any], key: list[str], **options: Any) -> Callable[[Any], TLXAutotuner]:
    """Decorate a kernel as `triton.autotune` does, with the same options; see `TLXAutotuner` for what is added."""
    positional = [options.pop(name, None) for name in ("reset_to_zero", "restore_value")]
    return lambda fn: TLXAutotuner(fn, fn.arg_names, configs, key, *positional, **options)
