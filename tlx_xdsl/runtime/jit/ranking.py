"""Configurations of a search, not yet compiled, in the order that a roofline expects (`measure/profile_report.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.grid import grid_of
from tlx_xdsl.targets import target_named

from ..driver.host_values import defaults_of, is_constant, signature_of
from ..driver.specialization import CLUSTER_OPTION, Specialization, cluster_option
from ..measure.profile_report import estimated
from ..measure.speeds import Speed
from ..profile import launch_work


def ranked(
    source: KernelSource, configs: Sequence[Any], arguments: Mapping[str, Any], grid: Any, target: str
) -> list[tuple[Any, Speed]]:
    """Each configuration with its estimate; one that the frontend refuses, or that can't be launched, has none.

    `arguments` are those of the launch by name, which may be tensors of any device.
    """
    return [(config, _estimate(source, config, arguments, grid, target)) for config in configs]


def _estimate(source: KernelSource, config: Any, arguments: Mapping[str, Any], grid: Any, target: str) -> Speed:
    chosen: dict[str, Any] = config.all_kwargs()
    known = {**defaults_of(source), **arguments, **chosen}
    if config.pre_hook is not None:
        # It may say the block of a descriptor.
        config.pre_hook(known)
    settings = {name: value for name, value in chosen.items() if value is not None}
    try:
        wanted = _specialization(source, known, target)
        sizes = grid_of(grid, known)
        work = launch_work(source, wanted, sizes, known)
    except CompilationError as error:
        return Speed(settings, None, error.message)
    ms = estimated(work, prod(sizes), None, target_named(target), wanted.num_warps).milliseconds
    return Speed(settings, (ms, ms, ms))


def _specialization(source: KernelSource, known: Mapping[str, Any], target: str) -> Specialization:
    signature: dict[str, Any] = {}
    constexprs: dict[str, Any] = {}
    for parameter in source.parameters:
        name = parameter.name
        if name in known and (parameter.is_constexpr or is_constant(known[name])):
            constexprs[name] = known[name]
        elif name in known:
            signature[name] = signature_of(name, known[name])
    cluster = cluster_option(known.get(CLUSTER_OPTION)) or (1, 1, 1)
    return Specialization(signature, constexprs, target, known.get("num_warps", 4), cluster=cluster)
