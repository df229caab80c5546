"""The proof of a check: for all trip counts, where runs are for some; and runs that show what is refuted."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.analysis.protocol.prove import SECONDS, Proof, prove
from tlx_xdsl.errors import CompilationError, InputError, InputOverflowError, InputTypeError

from ..simulate.options import Options
from .explore import Limits, explore
from .report import ProofAt, Report
from .sizes import Scope, Sizes

MOST_TURNS = 8
"""Turns of each loop up to which a run is looked for that shows what is refuted."""
REPLAY_SECONDS = 10.0
"""Time for these runs."""


def with_proofs(
    report: Report,
    scopes: Sequence[Scope],
    settings: Options,
    limits: Limits,
    module_at: Callable[[Sizes], ModuleOp],
    scope_at: Callable[[Sizes], Scope],
) -> Report:
    """The report with a proof for each module that the sizes give, all of them together in at most a minute.

    What is refuted is looked for in runs: at the sizes of the report, else with up to 8 turns of each loop. A path that
    no run shows may be one that there is not, and refutes nothing.
    """
    until = time.process_time() + SECONDS
    refused = [each.sizes for each in report.refusals]
    proofs: list[ProofAt] = []
    known: set[str] = set()
    for scope in scopes:
        if scope.sizes in refused:
            continue
        module = module_at(scope.sizes)
        if (text := str(module)) in known:
            continue
        known.add(text)
        for proof in prove(module, seconds=max(until - time.process_time(), 0.0)):
            if proof.answer == "refuted":
                if not _shows(report):
                    report = _replayed(report, proof, scope.sizes, settings, limits, scope_at)
                if not _shows(report):
                    proof = _unconfirmed(proof)
            proofs.append(ProofAt(scope.sizes, proof))
    return replace(report, proofs=tuple(proofs))


def _shows(report: Report) -> bool:
    return any(each.rule in ("deadlock", "fault") for each in report.findings)


def _replayed(
    report: Report, proof: Proof, sizes: Sizes, settings: Options, limits: Limits, scope_at: Callable[[Sizes], Scope]
) -> Report:
    """The report with what runs show with few turns of each loop."""
    steps = sorted({turns * step for step in (1, *proof.steps) for turns in range(MOST_TURNS + 1)})
    tried = [case.sizes for case in report.cases]
    wanted = [dict(zip(sizes, each, strict=True)) for each in product(steps, repeat=len(sizes))]
    scopes = [scope_at(each) for each in sorted(wanted, key=lambda each: sum(each.values())) if each not in tried]
    until = time.perf_counter() + REPLAY_SECONDS
    for scope in scopes if sizes else ():
        if time.perf_counter() > until:
            break
        try:
            more = explore([scope], settings, replace(limits, seconds=0.0))
        except (CompilationError, InputError, InputTypeError, InputOverflowError):
            # The size is not right for the kernel.
            continue
        report = replace(
            report, findings=(*report.findings, *more.findings), runs=report.runs + more.runs,
            seconds=report.seconds + more.seconds, cases=(*report.cases, *more.cases),
        )  # fmt: skip
        if _shows(more):
            break
    return report


def _unconfirmed(proof: Proof) -> Proof:
    assert proof.reason is not None
    note = "no run shows it; name what loops depend on with --size, and runs with more turns are tried"
    return replace(proof, answer="unproved", reason=replace(proof.reason, notes=(*proof.reason.notes, note)))
