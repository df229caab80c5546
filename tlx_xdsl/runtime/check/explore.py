"""Run one launch after the other: at each size and stage, in each order that makes a difference, for a limited time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tlx_xdsl.errors import CompilationError, InputError, InputOverflowError, InputTypeError
from tlx_xdsl.progress import Progress

from ..simulate.options import Options
from .launches import DEPENDENT, Arrays, FirstLaunches, launched
from .report import Case, Finding, Refusal, Report, Scope, Sizes


@dataclass(frozen=True)
class Limits:
    """How much is tried."""

    seconds: float
    """For all sizes and orders; the first size is run once at each stage whatever it takes."""
    stages: Sequence[str]
    launches: int | None = None
    """Launches in a row on the same arrays; by default two where programs communicate, else one."""
    stops: bool = False
    """Whether the first finding ends it."""
    every: bool = False
    """Whether all sizes are run, whatever it takes: the time is for the orders after the first one."""


def explore(scopes: Sequence[Scope], settings: Options, limits: Limits) -> Report:
    """Run the launches of all scopes, which have the smallest sizes first.

    Each scope is run once at each stage, for at most half of the time; then all of them in one order after the other,
    as long as there are orders that make a difference.
    Raises what is wrong with all scopes, such as a kernel that does not compile.
    """
    if limits.launches is not None and limits.launches < 1:
        raise InputError(f"launches must be at least 1, found {limits.launches}")
    return _Exploration(scopes, settings, limits, time.perf_counter()).report()


FIRST, OTHERS = "round-robin", "adversarial"
"""The schedules of the first run at each stage, which completes asynchronous operations as early as can be, and of what
makes no difference in the others, which complete them as late as can be."""


_STRICT = ("global_order", "copy_fences")
"""Options of which a check asks for more than a run, unless they are given."""


@dataclass
class _Exploration:
    scopes: Sequence[Scope]
    settings: Options
    limits: Limits
    began: float
    tried: int = 0
    """Scopes that have been run, or are refused."""
    refused: dict[int, Exception] = field(default_factory=dict[int, Exception])
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

    def report(self) -> Report:
        stages = self.limits.stages
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
            raise self.refused[0]
        with Progress(1, "orders") as progress:
            while left := [key for key, each in self.launches.items() if not each.orders.is_over]:
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
        everywhere = {each: True for each in _STRICT if getattr(self.settings, each) is None}
        order: dict[str, Any] = {"stage": stage, "schedule": FIRST if is_first else OTHERS, "seed": 0}
        try:
            if not is_first:
                orders.begin()
            launch = scope.make()
            arrays = Arrays(launch.arrays)
            before = arrays.state()
            how = {**order, **everywhere}
            seen = [*launched(launch.run, arrays, how, self.limits.launches, launches, is_first=is_first)]
            arrays.restore(before)
        except (CompilationError, InputError, InputTypeError, InputOverflowError) as error:
            if not scope.sizes:
                raise
            # Other sizes may be right for the kernel: whether one is, is reported at the end.
            self.refused[number] = error
            for key in [key for key in self.launches if key[0] == number]:
                del self.launches[key]
            return
        if not is_first and (text := orders.text):
            order["order"] = text
        findings: list[Finding] = []
        for each in seen:
            is_sure = each.launch == 1 or (self.limits.launches or 0) >= each.launch
            is_sure &= each.diagnostic.severity != "remark"
            # Whether the host sets arrays back between launches is not known.
            diagnostic = each.diagnostic if is_sure else replace(each.diagnostic, severity="remark")
            rule = each.rule if each.launch == 1 or each.rule == DEPENDENT else "relaunch"
            finding = Finding(diagnostic, rule, order, scope.sizes)
            known = self.found if is_sure else self.remarks
            if each.key not in known or known[each.key][0] > number:
                known[each.key] = (number, finding)
            findings.extend([finding] if is_sure else [])
        self._note(number, stage, scope.sizes, time.perf_counter() - began, findings)

    def _note(self, number: int, stage: str, sizes: Sizes, seconds: float, findings: Sequence[Finding]) -> None:
        case = self.cases.get((number, stage), Case(stage, sizes, 0, 0.0, ()))
        known = {(each.rule, each.diagnostic.location, each.diagnostic.message) for each in case.findings}
        new = [each for each in findings if (each.rule, each.diagnostic.location, each.diagnostic.message) not in known]
        self.cases[number, stage] = Case(
            stage, sizes, case.runs + 1, case.seconds + seconds, (*case.findings, *new)
        )  # fmt: skip

    def _case(self, key: tuple[int, str]) -> Case:
        orders = self.launches[key].orders
        unexplored = orders.unexplored or ("" if orders.is_over else "there was no time, --seconds gives more")
        return replace(self.cases[key], orders=orders.runs, unexplored=unexplored)

    def _summed_up(self) -> Report:
        only = [remark for key, (_, remark) in self.remarks.items() if key not in self.found]
        return Report(
            tuple(finding for _, finding in self.found.values()),
            sum(case.runs for case in self.cases.values()),
            tuple(self.limits.stages),
            time.perf_counter() - self.began,
            tuple(only),
            tuple(self._case(key) for key in sorted(self.launches)),
            tuple(Refusal(self.scopes[number].sizes, error) for number, error in sorted(self.refused.items())),
            tuple(scope.sizes for scope in self.scopes[self.tried :]),
        )
