"""Milliseconds that the clock expects of a launch, of the plain kernel and of specialised ones."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.grid import Grid
from tlx_xdsl.targets import target_named

from ..clock.launch import CHIPS, Configuration
from ..simulate.interpret import source_of_kernel
from .specialized import Specialized

TIE = 0.02
"""The part of the time by which predictions must differ to count: below that the clock's order is chance."""
DOUBT = 0.1
"""The part by which a form that no GPU has timed must be expected to be faster."""


def is_known(target: str) -> bool:
    """Return whether the clock can say something of a target here: it needs Triton's final code."""
    return find_spec("triton") is not None and target_named(target).capability in CHIPS


def plain_milliseconds(
    kernel: Any, grid: Grid, named: Mapping[str, Any], target: str, options: Mapping[str, Any], chip: str | None = None
) -> float | str:
    """Return what the clock expects of the plain launch, or why it expects nothing."""
    return _milliseconds(Configuration(source_of_kernel(kernel), grid, named, {**options, "target": target}), chip)


def specialised_milliseconds(
    specialized: Specialized, grid: Grid, named: Mapping[str, Any], chip: str | None = None
) -> float | str:
    """Return what the clock expects of the specialised launch, or why it expects nothing."""
    fitted = specialized.fitted(grid, named)
    if isinstance(fitted, str):
        return fitted
    over, values = fitted
    source = specialized.kernel.source
    arguments = dict(zip([each.name for each in source.parameters], values, strict=True))
    table = specialized.table.options
    options = {name: value for name, value in table.items() if value is not None}
    return _milliseconds(Configuration(source, over, arguments, options), chip)


def _milliseconds(configuration: Configuration, chip: str | None) -> float | str:
    try:
        return configuration.predict(chip, timeline=False).milliseconds()
    except CompilationError as error:
        return error.message
