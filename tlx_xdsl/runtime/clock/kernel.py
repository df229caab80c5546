"""`kernel.predict(grid, *arguments)` and `kernel.timeline(grid, *arguments)`: a launch by the clock, without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tlx_xdsl.errors import InputError
from tlx_xdsl.grid import Grid
from tlx_xdsl.timing.predict import Prediction
from tlx_xdsl.timing.timeline import Timeline

from ..driver.host_values import bound, split_options
from ..driver.specialization import CLUSTER_OPTION, cluster_option
from ..ranks.simulated import SymmetricArray
from ..simulate.interpret import source_of_kernel
from .launch import OPTIONS, Configuration, as_launched
from .schedule import schedule
from .why_slow import Explained, why_slow as reasons


def predict(
    kernel: Any, grid: Grid, /, *args: Any, chip: str | None = None, hertz: float | None = None,
    options: Mapping[str, Any] | None = None, **named: Any,
) -> Prediction:  # fmt: skip
    """Predict how long a launch takes: see `Kernel.predict`."""
    return configuration_of(kernel, grid, args, named, options).predict(chip, hertz, timeline=False)


def timeline(
    kernel: Any, grid: Grid, /, *args: Any, chip: str | None = None, hertz: float | None = None,
    options: Mapping[str, Any] | None = None, **named: Any,
) -> Timeline:  # fmt: skip
    """Predict what happens in a launch, and when: see `Kernel.timeline`."""
    if "ranks" in named or any(isinstance(each, SymmetricArray) for each in (*args, *named.values())):
        if chip is not None or hertz is not None:
            raise InputError("chip and hertz: not on several ranks, where the timeline is in steps and not in time")
        return schedule(kernel, grid, args, named, options)
    return timeline_of(configuration_of(kernel, grid, args, named, options).predict(chip, hertz))


def why_slow(
    kernel: Any, grid: Grid, /, *args: Any, chip: str | None = None, hertz: float | None = None,
    options: Mapping[str, Any] | None = None, **named: Any,
) -> Explained:  # fmt: skip
    """Find what costs a launch time: see `Kernel.why_slow`."""
    return reasons(configuration_of(kernel, grid, args, named, options), chip, hertz)


def timeline_of(prediction: Prediction) -> Timeline:
    """Return the timeline of a prediction, with the cycles of the launch."""
    return replace(prediction.timeline, launch_cycles=prediction.cycles)


def configuration_of(
    kernel: Any, grid: Grid, args: tuple[Any, ...], named: Mapping[str, Any], options: Mapping[str, Any] | None
) -> Configuration:
    """Return the launch that a call says, as `kernel[grid](*args, **named)` does.

    Raises TypeError for arguments that do not fit.
    """
    source = source_of_kernel(kernel)
    given, chosen = split_options(source, named, (*OPTIONS, CLUSTER_OPTION))
    chosen |= options or {}
    if (cluster := cluster_option(chosen.pop(CLUSTER_OPTION, None))) is not None:
        chosen["cluster"] = cluster
    return as_launched(kernel, Configuration(source, grid, bound(source, args, given), chosen))
