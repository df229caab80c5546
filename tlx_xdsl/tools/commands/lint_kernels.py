"""The work of `tlx lint`: the frontend, passes, addresses and the prover of kernels, whose complaints are findings."""

from __future__ import annotations

import argparse
import ast
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from inspect import Parameter
from typing import ClassVar, Literal

from tlx_xdsl.analysis.protocol.prove import prove
from tlx_xdsl.errors import CompilationError, OverBudgetError, SourceLocation
from tlx_xdsl.interpreter.plan import kernel_of
from tlx_xdsl.runtime.check.report import Case, Finding, Report
from tlx_xdsl.runtime.check.run import masked
from tlx_xdsl.runtime.driver.compilation import compile_text, frontend_module
from tlx_xdsl.runtime.driver.defaults import KernelDefaults
from tlx_xdsl.runtime.kernel import Kernel
from tlx_xdsl.text.diagnostics import Diagnostic, collected_diagnostics
from tlx_xdsl.text.verify import verify_module

from ..launch_line.loading import kernels_of_file, load_kernel
from ..launch_line.request import Request, request_of
from ..launch_line.specialization import specialization_of
from ..output import print_document
from .addresses_launch import findings_of, kernel_function, launch_of
from .addresses_text import warn_of_collisions, warn_of_leaving, warn_of_wrapping
from .check_formats import FORMATS

RULES = ("file", "frontend", "budget", "pass", "addresses", "proof", "masked", "unchecked")
"""The kinds of findings: a file that can't be run; what the frontend refuses; what can never launch; what a pass
refuses or warns of; bytes out of bounds, or written by two programs; synchronisation that the prover refutes; what a
mask hides, and is computed with all the same; what could not be checked."""


@dataclass(frozen=True)
class LintFinding(Finding):
    """A fault at its place."""

    def __str__(self) -> str:
        """Return one line."""
        found = self.diagnostic
        where = "" if found.location is None else f"{found.location}: "
        return f"{where}{found.severity}: {found.message} [{self.rule}]"


@dataclass(frozen=True)
class LintReport(Report):
    """Findings in the kernels of files."""

    tool: ClassVar = "tlx lint"
    rules: ClassVar = RULES

    is_strict: bool = False
    """Whether a warning counts as an error does."""

    def __bool__(self) -> bool:
        """True where there is no error."""
        counted = ("error", "warning") if self.is_strict else ("error",)
        return not any(each.diagnostic.severity in counted for each in self.findings)

    def __str__(self) -> str:
        """Return a line for each finding, and a line that sums up."""
        return "\n".join([*map(str, self.findings), *map(str, self.remarks), self.summary])

    @property
    def summary(self) -> str:
        """The line that sums up."""
        kinds = [each.diagnostic.severity for each in self.findings]
        counts = [_count(kinds.count(kind), kind) for kind in ("error", "warning")]
        counts += [_count(len(self.remarks), "remark")] if self.remarks else []
        return f"{_count(len(self.cases), 'kernel')} checked in {self.seconds:.1f} s: {', '.join(counts)}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


@dataclass
class _Lint:
    """The findings so far, each once: what several kernels call is complained of for each of them."""

    found: dict[tuple[str, SourceLocation | None], LintFinding] = field(
        default_factory=dict[tuple[str, SourceLocation | None], LintFinding]
    )

    def add(self, diagnostic: Diagnostic, rule: str) -> None:
        """Keep a finding."""
        self.found.setdefault((diagnostic.message, diagnostic.location), LintFinding(diagnostic, rule, {}))

    @contextmanager
    def step(self, rule: str, severity: Literal["error", "warning"] = "warning") -> Generator[None]:
        """Make an error a finding, and what is reported as a warning one of `severity`.

        Goes on with the error.
        """
        with collected_diagnostics() as said:
            try:
                yield
            except CompilationError as error:
                place = Diagnostic("error", error.message, error.location, error.notes)
                self.add(place, "budget" if isinstance(error, OverBudgetError) else rule)
                raise
            finally:
                for each in said:
                    if each.severity != "remark":
                        self.add(replace(each, severity=severity), rule)


@dataclass
class _Kernels:
    """State of a run: what was checked so far, and what could not be."""

    lint: _Lint = field(default_factory=_Lint)
    cases: list[Case] = field(default_factory=list[Case])
    remarks: list[Finding] = field(default_factory=list[Finding])
    proving: float = 0.0
    """Seconds that the prover may still take."""


def run(args: argparse.Namespace) -> int:
    """Carry the command out; returns 1 where there is an error.

    Raises CompilationError for a command line that does not fit the files.
    """
    start = time.perf_counter()
    path, _, name = args.kernels[0].partition(":")
    if (len(args.kernels) > 1 or not name) and (args.arg or args.signature or args.constexpr or args.grid):
        raise CompilationError(f"--arg, --signature, --constexpr and --grid are of one kernel: {path}:KERNEL")
    done = _Kernels(proving=args.seconds)
    for each in dict.fromkeys(args.kernels):
        _lint_file(done, args, each)
    seconds = time.perf_counter() - start
    report = LintReport(
        tuple(done.lint.found.values()), len(done.cases), ("lint",), seconds, tuple(done.remarks), tuple(done.cases),
        is_strict=args.strict,
    )  # fmt: skip
    print_document(FORMATS[args.format](report, " ".join(args.kernels)))
    return 0 if report else 1


def _lint_file(done: _Kernels, args: argparse.Namespace, spec: str) -> None:
    """Check the kernels of `FILE.py`, or one of them."""
    path, _, name = spec.partition(":")
    lint = done.lint
    try:
        with lint.step("file"):
            kernels = {name: load_kernel(spec)} if name else kernels_of_file(path)
    except CompilationError:
        return
    called = _called(kernels)
    for each, (kernel, defaults) in kernels.items():
        before, began = len(lint.found), time.perf_counter()
        try:
            request = request_of(args, kernel, defaults)
            if missing := _missing(request):
                if each not in called:
                    have = "has" if len(missing) == 1 else "have"
                    names = ", ".join(f"'{one}'" for one in missing)
                    why = f"is not checked: {names} {have} no type or value, in TLX_COMPILE or by --arg"
                    done.remarks.append(_remark(kernel, why))
                continue
            for reason in _check(done, args, request):
                done.remarks.append(_remark(kernel, reason) if isinstance(reason, str) else reason)
        except CompilationError as error:
            # Unless it is among the findings, it is about the options.
            lint.add(Diagnostic("error", error.message, error.location, error.notes), "frontend")
        own = tuple([*lint.found.values()][before:])
        case = each if len(args.kernels) == 1 else f"{path}:{each}"
        done.cases.append(Case(case, {}, 1, time.perf_counter() - began, own))


def _remark(kernel: Kernel, reason: str) -> LintFinding:
    source = kernel.source
    return LintFinding(Diagnostic("remark", f"'{source.name}' {reason}", source.place), "unchecked", {})


def _called(kernels: Mapping[str, tuple[Kernel, KernelDefaults]]) -> set[str]:
    """The functions that others of the file name: they are checked where they are called."""
    found: set[str] = set()
    for name, (kernel, _) in kernels.items():
        try:
            tree = kernel.source.tree
        except CompilationError:
            # It is a finding when the function itself is looked at.
            continue
        found |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id != name}
    return found


def _missing(request: Request) -> list[str]:
    """The parameters of which neither a type nor a value is known."""
    wanted = specialization_of(request)
    return [
        each.name
        for each in request.source.parameters
        if each.name not in (*wanted.signature, *wanted.constexprs) and each.default is Parameter.empty
    ]


def _check(done: _Kernels, args: argparse.Namespace, request: Request) -> Generator[str | LintFinding]:
    """Check one kernel; give the remarks, those of what could not be checked in words.

    Raises CompilationError, which is a finding by then, where a step fails.
    """
    source, wanted, lint = request.source, specialization_of(request), done.lint
    with lint.step("frontend"):
        module = frontend_module(source, wanted)
        verify_module(module)
    for each in masked(module):
        yield LintFinding(each.diagnostic, each.rule, {})
    with lint.step("pass"):
        compile_text(source, wanted, keep_ttir=False)
    for proof in prove(module, seconds=done.proving):
        done.proving = max(done.proving - proof.seconds, 0.0)
        if proof.answer == "refuted" and proof.reason is not None:
            # What the prover takes for a path may be none: a run says which it is.
            notes = (*proof.reason.notes, "no run has shown it: tlx check --prove looks for one")
            lint.add(replace(proof.reason, severity="warning", notes=notes), "proof")
    if args.grid is None:
        return
    function = kernel_function(kernel_of(module, None))
    with lint.step("addresses"):
        launch = launch_of(request, function, wanted.constexprs)
        found = findings_of(module, function, launch, args)
        warn_of_collisions(found)
        warn_of_wrapping(found)
    with lint.step("addresses", "error"):
        warn_of_leaving(found)
    unseen = [] if found.coverage is None else found.coverage.unseen
    if unseen:
        yield f"has accesses ({len(unseen)}) whose addresses are not known, the first because {unseen[0].reason}"
