"""Configurations of a search in the order that a model expects.

A roofline (`measure/profile_report.py`) needs no compile; the clock (`clock/model.py`) has the final code of each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from math import prod
from typing import Any

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.grid import grid_of
from tlx_xdsl.targets import target_named

from ..clock.launch import Configuration
from ..clock.model import KernelClock
from ..clock.stand_ins import standing_in
from ..driver.host_values import defaults_of, is_constant, signature_of
from ..driver.specialization import CLUSTER_OPTION, Specialization, cluster_option
from ..measure.profile_report import estimated
from ..measure.speeds import Speed
from ..profile import launch_work
from .ahead import Answer, compiled_ahead
from .stand_in_driver import leave_the_gpu


def ranked(
    source: KernelSource, configs: Sequence[Any], arguments: Mapping[str, Any], grid: Any, target: str
) -> list[tuple[Any, Speed]]:
    """Each configuration with its estimate; one that the frontend refuses, or that can't be launched, has none.

    `arguments` are those of the launch by name, which may be tensors of any device.
    """
    return [(config, _estimate(source, config, arguments, grid, target)) for config in configs]


def predicted(
    model: KernelClock, configs: Sequence[Any], named: Mapping[str, Any], processes: int | None
) -> list[tuple[Any, Speed]]:
    """Each configuration with what the clock predicts; one that does not compile has none.

    `named` are the arguments of the launch and its grid by name. Forked processes compile and predict.
    """
    launches = [_launch(model, config, named) for config in configs]
    capability = target_named(model.target).capability

    def predict(number: int) -> tuple[float, float]:
        found = launches[number].predict(model.chip, timeline=False)
        return found.cycles, found.milliseconds()

    def predict_there(number: int) -> tuple[float, float]:
        leave_the_gpu(capability)
        return predict(number)

    speeds: dict[int, Speed] = {}
    with closing(compiled_ahead(predict_there, range(len(configs)), processes)) as answers:
        for found in answers:
            answer = found if isinstance(found, Answer) and not found.failure else _here(predict, found)
            settings = {name: value for name, value in configs[answer.number].all_kwargs().items() if value is not None}
            if answer.error is not None:
                speeds[answer.number] = Speed(settings, None, answer.error.message)
            else:
                cycles, ms = answer.value
                speeds[answer.number] = Speed(settings, (ms, ms, ms), cycles=cycles)
    return [(config, speeds[number]) for number, config in enumerate(configs)]


def _launch(model: KernelClock, config: Any, named: Mapping[str, Any]) -> Configuration:
    known = {**named, **config.all_kwargs()}
    if config.pre_hook is not None:
        # It may say the block of a descriptor.
        config.pre_hook(known)
    found = model.configuration(known)
    # What is in a GPU's memory is copied before processes are forked.
    return replace(found, arguments=standing_in(found.arguments))


def _here(predict: Callable[[int], tuple[float, float]], found: int | Answer) -> Answer:
    """Predict in this process, where none could be forked, or something failed there."""
    number = found.number if isinstance(found, Answer) else found
    try:
        return Answer(number, value=predict(number))
    except CompilationError as error:
        return Answer(number, error)


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
