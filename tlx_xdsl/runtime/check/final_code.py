"""The last stage of a check: what stock Triton makes of the kernel, run once on the PTX machine, and whose fault it is.

A fault that the interpreter shows of what the frontend makes is the kernel's own; one that it shows of the TTGIR alone
is of our passes. What only the final PTX does wrong is stock Triton's (the rule `stock`), with the release that has it
right where that is known. Numbers are compared with the interpreter's run of the TTGIR.

Plain Triton kernels are compiled as stock Triton alone does, which is how others launch them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.backend import installed_triton_version
from tlx_xdsl.dialects import tt
from tlx_xdsl.errors import CompilationError, Note, OverBudgetError, SourceLocation
from tlx_xdsl.ptx.dependent_launches import TOO_EARLY
from tlx_xdsl.ptx.read.faults import PtxBudget, PtxDeadlock, PtxError, PtxFault
from tlx_xdsl.targets import target_named
from tlx_xdsl.text.diagnostics import Diagnostic, source_location
from tlx_xdsl.text.profiles import parse_version, version_name

from ..simulate.interpret import Interpretation
from ..simulate.options import FRONTEND, PTX, PTX_SECONDS, SECONDS, TTGIR, Options
from ..simulate.ptx_comparison import BothRuns, both_runs, defect_of, reports
from ..simulate.ptx_stage import is_stock, kind_of
from .explore import strict
from .launches import DEPENDENT, UNRUN, Arrays, Recorded
from .report import OF_PASSES, Case, Finding, Launchable, Report, Scope, Sizes

_OF_RUNS = ("deadlock", "fault", "relaunch", "dependent")
"""Findings of a run in the interpreter, after which the PTX says nothing new."""


@dataclass(frozen=True)
class Wanted:
    """Request for a check of the final PTX."""

    is_asked: bool
    """Whether it was asked for by name: at all sizes, whatever the stages before have found, and with an error where
    it can't be made."""
    seconds: float
    """Time of the whole check."""

    @property
    def limit(self) -> float:
        """Seconds of one run."""
        return max(self.seconds, PTX_SECONDS) if self.is_asked else max(PTX_SECONDS, self.seconds * _SHARE)


_SHARE = PTX_SECONDS / SECONDS


def with_final_code(
    report: Report,
    scopes: list[Scope],
    settings: Options,
    module_at: Callable[[Sizes], ModuleOp],
    wanted: Wanted,
    recorded: Recorded,
) -> Report:
    """The report with what the final PTX does at the smallest size, or at all where that is asked for.

    `recorded` has the interpreter's run of the TTGIR, if the stages before had one.

    Raises CompilationError where it was asked for, and there is no stock Triton or it does not know the target.
    """
    why = _unavailable(settings)
    if why and wanted.is_asked:
        raise CompilationError(f"the stage 'ptx' can't be looked at: {why}")
    if not why and not wanted.is_asked:
        why = _passed_over(report)
    refused = [each.sizes for each in report.refusals]
    scopes = [each for each in scopes if each.sizes not in refused]
    if why or not scopes:
        return replace(report, final=why)
    until = time.perf_counter() + wanted.limit
    report = replace(report, stages=(*report.stages, PTX))
    for number, scope in enumerate(scopes if wanted.is_asked else scopes[:1]):
        if number and time.perf_counter() > until:
            left = len(scopes) - number
            return replace(report, final=f"no time for {left} of {len(scopes)} sizes, --seconds gives more")
        report = _at(report, scope, settings, module_at, wanted, recorded)
    return report


def _unavailable(settings: Options) -> str:
    """Return why there is no PTX of any kernel; empty where there is."""
    version = installed_triton_version()
    if version is None:
        return "stock Triton is not installed: pip install 'tlx-xdsl[nvidia]' (Linux only)"
    target = target_named(settings.target)
    if parse_version(version) < target.first_triton:
        return f"{target.name} needs Triton {version_name(target.first_triton)} or later, found Triton {version}"
    return ""


def _passed_over(report: Report) -> str:
    """Return why the PTX is not looked at by default; empty where it is."""
    is_found = any(each.rule in (*_OF_RUNS, *UNRUN) for each in report.findings)
    return "what is found before it comes first" if is_found else ""


def _at(
    report: Report,
    scope: Scope,
    settings: Options,
    module_at: Callable[[Sizes], ModuleOp],
    wanted: Wanted,
    recorded: Recorded,
) -> Report:
    """The report with a run of the PTX at some sizes."""
    began, launch = time.perf_counter(), scope.make()
    arrays = Arrays(launch.arrays)
    before = arrays.state()
    is_said = any(each.rule == DEPENDENT for each in (*report.findings, *report.remarks))
    warned = next((each.diagnostic for each in report.findings if each.rule == "warning"), None)
    look = _Look(launch, settings, lambda: module_at(scope.sizes), wanted.limit, recorded, before, is_said, warned)
    findings: list[Finding] = []
    remarks: list[Finding] = []
    final = ""
    try:
        found, final = look.found()
        findings = [Finding(diagnostic, rule, {"stage": PTX}, scope.sizes) for diagnostic, rule in found]
    except PtxError as error:
        final = f"the PTX machine can't run it: {error.message} ({error.location})"
    except CompilationError as error:
        rule = "budget" if isinstance(error, OverBudgetError) else "compile"
        severity = "error" if wanted.is_asked else "remark"
        said = Finding(Diagnostic(severity, error.message, error.location, error.notes), rule, {"stage": PTX})
        (findings if wanted.is_asked else remarks).append(replace(said, sizes=scope.sizes))
    arrays.restore(before)
    seconds = time.perf_counter() - began
    case = Case(PTX, scope.sizes, int(not (remarks or final)), seconds, tuple(findings))
    known = {(each.rule, each.diagnostic.location, each.diagnostic.message) for each in report.findings}
    new = [each for each in findings if (each.rule, each.diagnostic.location, each.diagnostic.message) not in known]
    return replace(
        report, findings=(*report.findings, *new), remarks=(*report.remarks, *remarks), final=final or report.final,
        runs=report.runs + case.runs, seconds=report.seconds + seconds, cases=(*report.cases, case),
        wants_final=wanted.is_asked,
    )  # fmt: skip


_PROMISES = frozenset(("tt.divisibility", "tt.contiguity", "tt.constancy"))


@dataclass
class _Look:
    launch: Launchable
    settings: Options
    module: Callable[[], ModuleOp]
    seconds: float
    recorded: Recorded
    before: Mapping[str, NDArray[Any]]
    """What the arrays held before the first run."""
    is_said: bool
    """Whether it is said already that the launch begins too early for one before it."""
    warned: Diagnostic | None
    """The first warning of the interpreter, such as of a copy that nothing has waited for."""

    def found(self) -> tuple[list[tuple[Diagnostic, str]], str]:
        """Return what is wrong, each with its rule; and why the run did not get to its end, empty where it did.

        Raises PtxError for PTX that is not known, and CompilationError for what does not compile.
        """
        both = both_runs(self._run, self.launch.arrays, self.module, self.settings)
        assert isinstance(both.ptx, Interpretation)
        faults = [each for each in both.ptx.faults if not isinstance(each, PtxBudget)]
        final = ""
        if len(faults) < len(both.ptx.faults):
            final = f"the run was not finished after {self.seconds:g} s, --seconds gives more"
        faults = [each for each in faults if not (self.is_said and TOO_EARLY in each.message)]
        found = [*self._blamed(faults, both)] if faults else []
        if not faults and (wrong := both.comparison.wrong) is not None:
            name, compared = wrong
            place, *others = (*compared.writers, None)
            notes = [Note(f"also written at {each}", each) for each in others if each is not None]
            rule = "fault" if self._is_doubted() else "stock"
            found.append((Diagnostic("error", compared.sentence(name), place, (*notes, *self._stock(None))), rule))
        return found, final

    def _run(self, more: Mapping[str, Any]) -> Interpretation:
        stage = more.get("stage")
        # What is asked for besides makes it another run.
        is_known = more.keys() <= {"stage", "profile"} and stage == TTGIR
        if is_known and (known := self.recorded.again(Arrays(self.launch.arrays))) is not None:
            return known
        limits: dict[str, Any] = {"keep_going": True, "max_seconds": self.seconds} if stage == PTX else {}
        return self.launch.run({**limits, **more})

    def _blamed(self, faults: list[PtxFault], both: BothRuns) -> Iterator[tuple[Diagnostic, str]]:
        """The faults, with whose fault they are."""
        frontend = self._report_of(FRONTEND)
        ttgir = both.ttgir if reports(both.ttgir) else self._report_of(TTGIR)
        unknown = both.ttgir if isinstance(both.ttgir, CompilationError) and not reports(both.ttgir) else None
        mended = self._mended() if frontend is None and ttgir is None else set[tuple[object, str]]()
        for fault in faults:
            rule = "deadlock" if isinstance(fault, PtxDeadlock) else "fault"
            if isinstance(frontend, CompilationError):
                notes = [f"the kernel's own fault: of what the frontend makes, the interpreter says: {_line(frontend)}"]
            elif isinstance(ttgir, CompilationError):
                notes = [f"{OF_PASSES}: the interpreter says of the TTGIR: {_line(ttgir)}"]
            elif unknown is not None:
                notes = [f"whose fault it is is not known: the interpreter can't run the kernel: {_line(unknown)}"]
            else:
                notes = self._stock(fault)
                rule = rule if defect_of(fault) is None and self._is_doubted() else "stock"
                if mended and kind_of(fault) not in mended:
                    notes.append(Note("tlx_xdsl's own compile of this kernel has it right", is_remedy=True))
            yield Diagnostic("error", fault.message, fault.location, (*fault.notes, *notes)), rule

    def _stock(self, fault: PtxFault | None) -> list[str]:
        """Say that stock Triton is at fault, of which release, and what to do."""
        where = "the kernel has no report before the PTX"
        version = installed_triton_version() or ""
        defect = None if fault is None else defect_of(fault)
        if defect is not None:
            notes = [f"{where}: {defect.sentence(version)}"]
            if defect.mended_in:
                notes.append(Note(f"use Triton {defect.mended_in} or later", is_remedy=True))
            return notes
        if self.warned is not None:
            return [f"perhaps the kernel's own fault: the interpreter warns: {_line(self.warned)}"]
        who = f"stock Triton {version}"
        if not is_stock(self.module()):
            who += ", or what tlx_xdsl gives it,"
        if (promise := self._promise()) is not None:
            where += f", but promises something of its numbers at {promise}: unless that does not hold"
            return [Note(f"{where}, {who} is at fault", promise)]
        return [f"{where}: {who} is at fault; it is no known defect, please report it"]

    def _is_doubted(self) -> bool:
        """Return whether the kernel itself may be wrong, though no run before has a fault."""
        return self.warned is not None or self._promise() is not None

    def _promise(self) -> SourceLocation | None:
        """The first place where the kernel says what the compiler can't see and the interpreter does not check."""
        for op in self.module().walk():
            is_promise = op.name == "llvm.intr.assume" or not _PROMISES.isdisjoint(op.attributes)
            if is_promise and not isinstance(op, tt.FuncOp):
                return source_location(op.location)
        return None

    def _report_of(self, stage: str) -> CompilationError | None:
        """Return what the interpreter finds wrong at a stage."""
        Arrays(self.launch.arrays).restore(self.before)
        try:
            self._run({"stage": stage, **strict(self.settings)})
        except CompilationError as error:
            return error if reports(error) else None
        return None

    def _mended(self) -> set[tuple[object, str]]:
        """The faults of our own compile of a plain kernel; of another one, which had no other, none."""
        if self.settings.mends is not None or not is_stock(self.module()):
            return set()
        Arrays(self.launch.arrays).restore(self.before)
        return {("", ""), *map(kind_of, self._run({"stage": PTX, "mends": True}).faults)}


def _line(said: CompilationError | Diagnostic) -> str:
    return f"{'' if said.location is None else f'{said.location}: '}{said.message}"
