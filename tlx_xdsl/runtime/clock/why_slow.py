"""The reasons why a launch takes as long as it does: findings of its replay, and rings that are too shallow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tlx_xdsl.dialects import tlx, ttg
from tlx_xdsl.errors import CompilationError, Note, OverBudgetError, SourceLocation
from tlx_xdsl.language.compile_time import unwrapped
from tlx_xdsl.text.diagnostics import Diagnostic, source_location
from tlx_xdsl.timing.findings import FULL, WORTH_A_WARNING, WORTH_A_WORD, Finding, LoadWait, findings, load_waits
from tlx_xdsl.timing.predict import Prediction

from .launch import Configuration


@dataclass(frozen=True)
class Explained:
    """A prediction, and what costs the launch time."""

    prediction: Prediction
    diagnostics: tuple[Diagnostic, ...]
    """The most expensive first; warnings say what to do."""

    def __str__(self) -> str:
        return "\n".join(map(str, self.diagnostics))


def why_slow(configuration: Configuration, chip: str | None = None, hertz: float | None = None) -> Explained:
    """Predict a launch, and find what costs it time; for that, rings are also predicted with one stage more.

    Raises as `Configuration.predict` does.
    """
    prediction = configuration.predict(chip, hertz)
    evidence = prediction.evidence
    assert evidence is not None, "a timeline was asked for"
    found = list(findings(evidence))
    waits = [wait for wait in load_waits(evidence) if wait.share >= WORTH_A_WARNING]
    if waits:
        found += _rings(configuration, prediction, waits[0], chip, hertz)
    placed = [each if each.at is not None else replace(each, at=configuration.source.place) for each in found]
    placed.sort(key=lambda each: -each.share)
    return Explained(prediction, tuple(map(diagnostic, placed)))


def diagnostic(finding: Finding) -> Diagnostic:
    """Return a finding as commands print it."""
    notes = (Note(finding.remedy, is_remedy=True),) if finding.remedy else ()
    return Diagnostic(finding.severity, finding.message, finding.at, notes)


# Rings ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Deeper:
    """The same launch with one stage more."""

    name: str
    """The compile-time argument, or the option `num_stages`."""
    stages: int
    configuration: Configuration
    allocated: SourceLocation | None
    """Where the ring is allocated, if the kernel says it."""


def deeper(configuration: Configuration, *, is_pipelined: bool) -> Iterator[Deeper]:
    """Yield the launches that have one stage more in a ring of buffers.

    Of a kernel with buffers that are those with a compile-time argument that is larger by one, if that adds buffers and
    changes no shape; of a plain kernel whose loops stock Triton has pipelined, `num_stages`.
    """
    before = _buffers(configuration)
    if not before:
        if is_pipelined:
            more = configuration.num_stages + 1
            yield Deeper("num_stages", more, configuration.changed({"num_stages": more}), None)
        return
    for parameter in configuration.source.parameters:
        value = unwrapped(configuration.typed.constexprs.get(parameter.name))
        if not parameter.is_constexpr or type(value) is not int or value < 1:
            continue
        changed = configuration.changed({parameter.name: value + 1})
        try:
            after = _buffers(changed)
        except CompilationError:
            continue
        if len(before) != len(after) or [each[1:] for each, _ in before] != [each[1:] for each, _ in after]:
            continue
        added = [place for (old, place), (new, _) in zip(before, after, strict=True) if new[0] > old[0]]
        if added and all(new[0] >= old[0] for (old, _), (new, _) in zip(before, after, strict=True)):
            yield Deeper(parameter.name, value + 1, changed, added[0])


def _buffers(configuration: Configuration) -> list[tuple[tuple[Any, ...], SourceLocation | None]]:
    """The number of buffers, their shape and their type, for each allocation of shared memory; and where it stands."""
    found: list[tuple[tuple[Any, ...], SourceLocation | None]] = []
    for op in configuration.module.walk():
        if isinstance(op, ttg.LocalAllocOp | tlx.StorageAliasLocalAllocOp):
            kind = op.result.type
            found.append(((*kind.shape, kind.element_type), source_location(op.location)))
    return found


def _rings(
    configuration: Configuration, prediction: Prediction, wait: LoadWait, chip: str | None, hertz: float | None
) -> Iterator[Finding]:
    """Find a ring with which the launch takes more time than with one stage more."""
    of = "" if wait.load is None else f" of line {wait.load.line}"
    waits = f"warps wait {wait.share:.0%} of the time for the load{of}"
    for each in deeper(configuration, is_pipelined=True):
        now = each.stages - 1
        try:
            time = each.configuration.predict(chip, hertz, timeline=False).milliseconds()
        except OverBudgetError as error:
            if max(prediction.shares.values(), default=0.0) >= FULL:
                # More stages would not help.
                continue
            yield Finding(
                "wait for loads", f"{waits}, and there is no room for {each.name}={each.stages}: {error.message}",
                min(wait.share, WORTH_A_WARNING), wait.at,
            )  # fmt: skip
            continue
        gain = 1 - time / prediction.milliseconds()
        if gain >= WORTH_A_WORD:
            where = "" if each.allocated is None else f" (the ring is allocated in line {each.allocated.line})"
            yield Finding(
                "wait for loads",
                f"the ring is too shallow: {waits}; with {each.name}={each.stages} the launch takes {gain:.0%} less",
                gain, wait.at, f"choose {each.name}={each.stages} or more in the place of {now}{where}",
            )  # fmt: skip
