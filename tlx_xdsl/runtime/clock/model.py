"""`tlx_xdsl.clock`: the clock as a model of performance, by which autotuners choose what they measure."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

from tlx_xdsl.errors import CompilationError, InputTypeError

from ..driver.specialization import CLUSTER_OPTION, cluster_option

_NAMES = ("num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion")
"""Options of Triton's launches that the time depends on."""

CLOSE = 0.2
"""How much longer than the fastest prediction a configuration may take to be worth a measurement: 87 % of predictions
are within 20 % of what is measured (docs/clock.md)."""


class KernelClock:
    """The clock on launches of one kernel, as Triton's autotuner calls a model: with all arguments by name."""

    def __init__(self, kernel: Any, *, target: str = "sm_90a", chip: str | None = None):
        self.kernel, self.target, self.chip = kernel, target, chip

    def __call__(self, **named: Any) -> float:
        """Return the milliseconds of a launch, whose `grid` is an argument; infinity where it does not compile."""
        try:
            return self.configuration(named).predict(self.chip, timeline=False).milliseconds()
        except CompilationError:
            return inf

    def configuration(self, named: Mapping[str, Any]) -> Any:
        """Return the launch with these arguments, options and grid by name; other names count for nothing."""
        from ..simulate.interpret import source_of_kernel
        from .launch import Configuration, as_launched

        source = source_of_kernel(self.kernel)
        options = {name: named[name] for name in _NAMES if named.get(name) is not None}
        cluster = cluster_option(named.get(CLUSTER_OPTION))
        options |= {"target": self.target, **({} if cluster is None else {"cluster": cluster})}
        arguments = {each.name: named[each.name] for each in source.parameters if each.name in named}
        return as_launched(self.kernel, Configuration(source, named["grid"], arguments, options))


def clock(kernel: Any = None, /, **named: Any) -> KernelClock:
    """A model for `prune_configs_by={"perf_model": tlx_xdsl.clock, "top_k": 4}` of `tlx_xdsl.autotune`, or `prune=`.

    The configurations are compiled, and the clock predicts each from its final PTX (docs/clock.md); those that it
    expects to be the fastest are measured. Other autotuners give a model no kernel: they take
    `clock(kernel)`, which has the options `target` and `chip`.

    Raises TypeError where the kernel is not given.
    """
    if kernel is None:
        raise InputTypeError("clock: this autotuner does not say which kernel it tunes: use tlx_xdsl.autotune")
    return KernelClock(kernel, **named)


def chip_named_in(device: str) -> str | None:
    """Return the GPU that the clock knows by a part of a device's name, such as `NVIDIA H100 80GB HBM3`."""
    return next((name for name in ("H100", "H200", "B200") if name in device), None)
