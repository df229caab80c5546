"""Run one launch after the other: at each size and stage, in each order that makes a difference, for a limited time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tlx_xdsl.errors import CompilationError, InputError, InputOverflowError, InputTypeError
from tlx_xdsl.progress import Progress

from ..simulate.options import Options
from .launches import DEPENDENT, REFUSALS, UNRUN, Arrays, FirstLaunches, Seen, launched
from .on_ranks import launched_on_ranks
from .report import Case, Finding, Refusal, Report, Scope, Sizes


@dataclass(frozen=True)
class Limits:
    """Limits of a check: seconds, stages and launches."""

    seconds: float
    """For all sizes and orders; the first size is run once at each stage whatever it takes."""
    stages: Sequence[str]
    launches: int | None = None
    """Launches in a row on the same arrays; by default two where programs communicate, else one. On several ranks,
    those of each one's stream, with no barrier between ranks; by default as many as arguments have values for."""
    stops: bool = False
    """Whether the first finding ends it."""
    every: bool = False
    """Whether all sizes are run, whatever it takes: the time is for the orders after the first one."""


def explore(scopes: Sequence[Scope], settings: Options, limits: Limits) -> Report:
    """Run the launches of all scopes, which have the smallest sizes first.

    Each scope is run once at each stage, for at most half of the time; then all of them in one order after the other,
    as long as there are orders that make a difference. What the compiler refuses at all sizes is a finding; at some,
    these sizes are refused. Raises what is wrong with the arguments of all scopes.
    """
    if limits.launches is not None and limits.launches < 1:
        raise InputError(f"launches must be at least 1, found {limits.launches}")
    return _Exploration(scopes, settings, limits, time.perf_counter()).report()


FIRST, OTHERS = "round-robin", "adversarial"
"""The schedules of the first run at each stage, which completes asynchronous operations as early as can be, and of what
makes no difference in the others, which complete them as late as can be."""


def strict(settings: Options) -> dict[str, Any]:
    """The options of which a check asks for more than a run, unless they are given."""
    return {each: True for each in ("global_order", "copy_fences") if getattr(settings, each) is None}


@dataclass
class _Exploration:
    scopes: Sequence[Scope]
    settings: Options
    limits: Limits
    began: float
    tried: int = 0
    """Scopes that have been run, or are refused."""
    refused: dict[int, Exception] = field(default_factory=dict[int, Exception])
    uncompiled: dict[int, tuple[str, Seen]] = field(default_factory=dict[int, tuple[str, Seen]])
    """Of those, which the compiler refuses: the stage, and what it says."""
    found: dict[tuple[str, str], tuple[int, Finding]] = field(
        default_factory=dict[tuple[str, str], tuple[int, Finding]]
    )
    """With the number of the scope, which is the smallest so far."""
    remarks: dict[tuple[str, str], tuple[int, Finding]] = field(
        default_factory=dict[tuple[str, str], tuple[int, Finding]]
    )
    cases: dict[tuple[int, str], Case] = field(default_factory=dict[tuple[int, str], Case])
    """By the number of the scope, and the stage."""
    launches: dict[tuple[int, str], FirstLaunches] = field(default_factory=dict[tuple[int, str], FirstLaunches])
    not_run: set[tuple[int, str]] = field(default_factory=set[tuple[int, str]])
    """Where there is nothing to run: the compiler refuses it, or the interpreter has no code for it."""

    ranks: int = 0
    """The most GPUs of a launch so far; 0 where each was on one alone."""

    def report(self) -> Report:
        stages = self.limits.stages
        if not stages:
            self.tried = len(self.scopes)
            return self._summed_up()
        with Progress(len(self.scopes), "sizes") as progress:
            for number in range(len(self.scopes)):
                if self.cases and (self._has_found or (not self.limits.every and self._is_over(0.5))):
                    break
                for stage in stages:
                    if not self._has_found:
                        self._run(number, stage, is_first=True)
                self.tried += 1
                progress.advance()
        if len(self.refused) == len(self.scopes):
            if not self.uncompiled:
                raise self.refused[0]
            self._accept(min(self.uncompiled))
        with Progress(1, "orders") as progress:
            while left := [
                key for key, each in self.launches.items() if not (each.orders.is_over or key in self.not_run)
            ]:
                for number, stage in left:
                    if self._is_over(1.0) or self._has_found:
                        return self._summed_up()
                    self._run(number, stage)
                    progress.expect(sum(each.orders.known for each in self.launches.values()))
                    progress.advance()
        return self._summed_up()

    @property
    def _has_found(self) -> bool:
        return self.limits.stops and bool(self.found)

    def _is_over(self, share: float) -> bool:
        return time.perf_counter() - self.began > self.limits.seconds * share

    def _run(self, number: int, stage: str, *, is_first: bool = False) -> None:
        """Run a scope in the next order, and note what is found."""
        if number in self.refused:
            return
        scope, began = self.scopes[number], time.perf_counter()
        launches = self.launches.setdefault((number, stage), FirstLaunches())
        orders = launches.orders
        seen: list[Seen] = []
        order: dict[str, Any] = {"stage": stage, "schedule": FIRST if is_first else OTHERS, "seed": 0}
        try:
            if not is_first:
                orders.begin()
            launch = scope.make()
            arrays = Arrays(launch.arrays)
            before = arrays.state()
            how = {**order, **strict(self.settings)}
            if launch.ranks:
                count = self.limits.launches or 0
                seen = [*launched_on_ranks(launch, arrays, how, count, launches, is_first=is_first)]
                latest = max((each.launch for each in seen), default=1)
                order |= {"ranks": launch.ranks, "launches": max(count or launch.launches, latest)}
                self.ranks = max(self.ranks, launch.ranks)
            else:
                seen = [*launched(launch.run, arrays, how, self.limits.launches, launches, is_first=is_first)]
            arrays.restore(before)
        except (CompilationError, InputError, InputTypeError, InputOverflowError) as error:
            if not scope.sizes:
                raise
            self._refuse(number, error)
            return
        if scope.sizes and (refusal := next((each for each in seen if each.rule in REFUSALS), None)) is not None:
            # Other sizes may be right for the kernel: whether one is, is reported at the end.
            self.uncompiled[number] = stage, refusal
            said = refusal.diagnostic
            self._refuse(number, CompilationError(said.message, said.location, notes=said.notes))
            return
        is_run = not any(each.rule in UNRUN for each in seen)
        if not is_run:
            self.not_run.add((number, stage))
            order = {name: order[name] for name in ("stage", "ranks") if name in order}
        if not is_first and (text := orders.text):
            order["order"] = text
        findings: list[Finding] = []
        for each in seen:
            is_sure = each.launch == 1 or (self.limits.launches or 0) >= each.launch
            is_sure &= each.diagnostic.severity != "remark"
            # Whether the host sets arrays back between launches is not known.
            diagnostic = each.diagnostic if is_sure else replace(each.diagnostic, severity="remark")
            rule = each.rule if each.launch == 1 or each.rule == DEPENDENT else "relaunch"
            finding = Finding(diagnostic, rule, order, scope.sizes, each.left)
            known = self.found if is_sure else self.remarks
            if each.key not in known or known[each.key][0] > number:
                known[each.key] = (number, finding)
            findings.extend([finding] if is_sure else [])
        self._note(number, stage, scope.sizes, time.perf_counter() - began, findings, is_run=is_run)

    def _refuse(self, number: int, error: Exception) -> None:
        self.refused[number] = error
        for key in [key for key in self.launches if key[0] == number]:
            del self.launches[key]

    def _accept(self, number: int) -> None:
        """Take what the compiler refuses at a size for a finding: it does at all others, too."""
        stage, seen = self.uncompiled[number]
        sizes = self.scopes[number].sizes
        self.found[seen.key] = number, Finding(seen.diagnostic, seen.rule, {"stage": stage}, sizes)

    def _note(
        self, number: int, stage: str, sizes: Sizes, seconds: float, findings: Sequence[Finding], *, is_run: bool
    ) -> None:
        case = self.cases.get((number, stage), Case(stage, sizes, 0, 0.0, ()))
        known = {(each.rule, each.diagnostic.location, each.diagnostic.message) for each in case.findings}
        new = [each for each in findings if (each.rule, each.diagnostic.location, each.diagnostic.message) not in known]
        self.cases[number, stage] = Case(
            stage, sizes, case.runs + is_run, case.seconds + seconds, (*case.findings, *new)
        )  # fmt: skip

    def _case(self, key: tuple[int, str]) -> Case:
        orders = self.launches[key].orders
        unexplored = orders.unexplored or ("" if orders.is_over else "there was no time, --seconds gives more")
        return replace(self.cases[key], orders=orders.runs, unexplored=unexplored)

    def _summed_up(self) -> Report:
        only = [remark for key, (_, remark) in self.remarks.items() if key not in self.found]
        found = [finding for _, finding in self.found.values()]
        # What a pass refuses, the run before it has warned of.
        refused = tuple(f": {each.diagnostic.message}" for each in found if each.rule == "budget")
        return Report(
            tuple(each for each in found if each.rule != "warning" or not each.diagnostic.message.endswith(refused)),
            sum(case.runs for case in self.cases.values()),
            tuple(self.limits.stages),
            time.perf_counter() - self.began,
            tuple(only),
            tuple(self._case(key) for key in sorted(self.launches)),
            tuple(Refusal(self.scopes[number].sizes, error) for number, error in sorted(self.refused.items())),
            tuple(scope.sizes for scope in self.scopes[self.tried :]),
            ranks=self.ranks,
        )
