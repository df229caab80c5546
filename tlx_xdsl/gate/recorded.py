"""Launches of this process as subjects: those that a script makes, and those of a kernel in its configurations."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tlx_xdsl.compat import installed
from tlx_xdsl.compat.frozen import RECORD, Frozen, Recorded
from tlx_xdsl.grid import Grid
from tlx_xdsl.language.core import constexpr
from tlx_xdsl.runtime.simulate.interpret import source_of_kernel

from .configurations import drawn, tuned
from .subject import Subject


def launches_of(script: str, arguments: Sequence[str], target: str) -> list[Subject]:
    """Run a script as `python script.py`, its kernels in the interpreter; return each launch, equal ones once."""
    before, argv, path = len(RECORD), sys.argv, list(sys.path)
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path(script).resolve().parent))
    try:
        with installed(mode="record", target=target):
            runpy.run_path(script, run_name="__main__")
    finally:
        sys.argv, sys.path[:] = argv, path
    return subjects_of(RECORD[before:])


def subjects_of(launches: Iterable[Recorded]) -> list[Subject]:
    """Return recorded launches as subjects, those with equal types, numbers and options once."""
    found = {(each.name, each.identity, each.shown): each for each in map(_subject, launches)}
    return list(found.values())


def _subject(launch: Recorded) -> Subject:
    given = launch.arguments()
    constants = {each.name for each in launch.source.parameters if each.is_constexpr}
    chosen = {name: _shown(value) for name, value in given.items() if name in constants}
    options = {name: value for name, value in launch.options.items() if value is not None and name != "cluster"}
    name = f"{os.path.basename(launch.source.filename)}:{launch.source.name}"
    return Subject(
        name, launch.source, {**chosen, **options}, launch.grid, launch.arguments, launch.identity, launch.target,
        launch.options, is_lenient=True,
    )  # fmt: skip


def _shown(value: Any) -> Any:
    inner = value.value if isinstance(value, constexpr) else value
    return getattr(inner, "__qualname__", inner)


def sampled(subjects: Iterable[Subject], count: int | None, seed: int) -> list[Subject]:
    """Return so many of the launches of each kernel, drawn; all of them for None."""
    kernels: dict[str, list[Subject]] = {}
    for each in subjects:
        kernels.setdefault(each.name, []).append(each)
    return [each for of_one in kernels.values() for each in drawn(of_one, count, seed)]


def varied(subject: Subject, options: Mapping[str, Any]) -> Subject:
    """Return a launch with other options, such as `num_warps` and `num_stages`."""
    return replace(
        subject, options={**subject.options, **options}, configuration={**subject.configuration, **options}
    )  # fmt: skip


def subjects_for(
    kernel: Any,
    grid: Grid,
    arguments: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    *,
    configurations: Sequence[Mapping[str, Any]] | None = None,
    targets: Sequence[str] = ("sm_90a",),
) -> list[Subject]:
    """Return a kernel (ours, stock Triton's, autotuned or not) in its configurations, for each target.

    `arguments` makes the arguments for a configuration, by name, without what that chooses; `configurations` are by
    default those of the kernel's autotuner: values of compile-time arguments and options of the launch.

    Raises TypeError for what is no kernel.
    """
    source = source_of_kernel(kernel)
    constants = {each.name for each in source.parameters if each.is_constexpr}
    found: list[Subject] = []
    for target in targets:
        for each in tuned(kernel) if configurations is None else configurations:
            chosen = {name: constexpr(value) for name, value in each.items() if name in constants}
            frozen = Frozen({**arguments(each), **chosen})
            options = {name: value for name, value in each.items() if name not in constants}
            found.append(
                Subject(
                    source.name, source, dict(each), grid, frozen.thawed, f"{grid} {frozen.identity}", target, options
                )
            )
    return found
