"""Formats of the reports of `tlx check` and `tlx lint`: for people, for GitHub, as JSON, SARIF and JUnit's XML."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

from tlx_xdsl.errors import Note, SourceLocation
from tlx_xdsl.runtime.check.minimize import Deletion, Minimized
from tlx_xdsl.runtime.check.report import Case, Finding, ProofAt, Report, Sizes, shown
from tlx_xdsl.version import __version__

from ..documents import diagnostic_as_json, document


def _text(report: Report, _kernel: str) -> str:
    return str(report)


def records(report: Report) -> list[Finding]:
    """All that a report has to say at a line: what was found, remarks, and what stops or refutes a proof."""
    proofs = [
        Finding(replace(each.proof.reason, severity="error" if each.answer == "refuted" else "remark"), "proof", {},
                each.sizes)
        for each in report.proofs
        if each.proof.reason is not None
    ]  # fmt: skip
    return [*report.findings, *report.remarks, *proofs]


def _proved(report: Report) -> list[ProofAt]:
    """The proofs: of what is not proved the reason is a record."""
    return [each for each in report.proofs if each.proof]


def _github(report: Report, _kernel: str) -> str:
    """Workflow commands, which GitHub shows at the lines."""
    lines: list[str] = []
    for each in records(report):
        place = each.diagnostic.location
        at = "" if place is None else f" file={place.filename},line={place.line},col={max(place.column, 1)}"
        text = _escaped("\n".join([each.diagnostic.message, *each.diagnostic.notes, *_how(each)]))
        lines.append(f"::{_GITHUB[each.diagnostic.severity]}{at}::{text}")
    if report.unrun:
        lines.append(f"::{_level(report)}::{_escaped(_unrun(report))}")
    return "\n".join([*lines, *report.unlooked(), *map(str, _proved(report)), report.summary])


def _unrun(report: Report) -> str:
    return "; ".join([report.unrun, *report.sizes(), *report.orders()])


def _level(report: Report) -> str:
    """The severity of what was asked for and not run."""
    return "warning" if report.allows_unrun else "error"


def _escaped(text: str) -> str:
    """A text as the message of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def as_json(report: Report, kernel: str) -> str:
    """The report on a kernel, `FILE.py:KERNEL`, for programs: each record with its lines, sizes, order and remedy."""
    ways = [
        {
            "stage": case.stage, "sizes": dict(case.sizes), "runs": case.runs, "orders": case.orders,
            "seconds": round(case.seconds, 3), "unexplored": case.unexplored or None,
        }
        for case in report.cases
    ]  # fmt: skip
    made = {
        "kernel": kernel,
        "summary": report.summary,
        "unrun": report.unrun or None,
        "records": [_record(each, kernel) for each in records(report)],
        "cases": ways,
        "refused": [
            {"sizes": dict(each.sizes), "reason": each.reason, "asked": report.wants_all_sizes}
            for each in report.refusals
        ],
        "left": [dict(sizes) for sizes in report.left],
        "ptx": report.final or None,
        "proofs": [_proof(each) for each in report.proofs],
    }  # fmt: skip
    return document(report.tool, made, ok=bool(report))


def _proof(found: ProofAt) -> dict[str, Any]:
    proof = found.proof
    return {
        "kernel": proof.kernel, "sizes": dict(found.sizes), "answer": found.answer, "states": proof.states,
        "seconds": round(proof.seconds, 3),
        "reason": None if proof.reason is None else diagnostic_as_json(proof.reason),
        "conditions": [str(each) for each in proof.required], "loops": list(proof.constants),
        "unseen": list(proof.unseen), "text": str(found).splitlines(),
    }  # fmt: skip


def _record(finding: Finding, kernel: str) -> dict[str, Any]:
    return {
        "kernel": kernel,
        "rule": finding.rule,
        **diagnostic_as_json(finding.diagnostic),
        "sizes": dict(finding.sizes),
        **{name: finding.options.get(name) for name in ("stage", "schedule", "seed", "order")},
        "replay": finding.seen_with.removeprefix("seen with ") if _how(finding) else None,
    }


def minimized_as_json(found: Minimized, kernel: str) -> str:
    """The verdicts of `tlx minimize-sync` on a kernel, `FILE.py:KERNEL`, for programs."""
    made = {
        "kernel": kernel,
        "deletions": [_deletion(each) for each in found.deletions],
        "together": None if found.together is None else _deletion(found.together),
        "unjudged": [{"place": each.where, "text": each.text} for each in found.unjudged],
    }
    return document("tlx minimize-sync", made)


def _deletion(deletion: Deletion) -> dict[str, Any]:
    wrong = deletion.wrong
    return {
        "operations": [{"place": each.where, "text": each.text} for each in deletion.what],
        "needed": wrong is not None,
        "proved": deletion.is_proved,
        "verdict": deletion.verdict,
        "wrong": None if wrong is None else diagnostic_as_json(wrong),
        "runs": deletion.runs,
        "sizes": deletion.sizes,
        "all_orders": deletion.is_exhaustive,
    }


def _sarif(report: Report, _kernel: str) -> str:
    """SARIF 2.1.0 (OASIS)."""
    driver = {"name": report.tool, "version": __version__, "rules": [{"id": each} for each in report.rules]}
    said: dict[str, Any] = {"executionSuccessful": True}
    if report.unrun:
        said["toolExecutionNotifications"] = [{"level": _level(report), "message": {"text": _unrun(report)}}]
    results = [_result(each) for each in records(report)]
    results += [
        {"ruleId": "proof", "level": "none", "kind": "informational", "message": {"text": str(each)}}
        for each in _proved(report)
    ]
    runs = [{"tool": {"driver": driver}, "invocations": [said], "results": results}]
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": runs}, indent=2)


_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_GITHUB = {"error": "error", "warning": "warning", "remark": "notice"}
_LEVELS = {"error": "error", "warning": "warning", "remark": "note"}


def _how(finding: Finding) -> list[str]:
    return [finding.seen_with] if finding.options or finding.sizes else []


def _result(finding: Finding) -> dict[str, Any]:
    found = finding.diagnostic
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "level": _LEVELS[found.severity],
        "message": {"text": "\n".join([found.message, *found.notes, *_how(finding)])},
    }
    if (place := found.location) is not None and place.line:
        result["locations"] = [{"physicalLocation": _physical(place)}]
    related = [
        {"physicalLocation": _physical(each.place), "message": {"text": each.strip()}}
        for each in found.notes
        if isinstance(each, Note) and each.place is not None and each.place.line
    ]
    return {**result, "relatedLocations": related} if related else result


def _physical(place: SourceLocation) -> dict[str, Any]:
    region = {"startLine": place.line, "startColumn": max(place.column, 1)}
    return {"artifactLocation": {"uri": place.filename}, "region": region}


_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What no XML document may hold (XML 1.0, "Characters")."""


def junit(report: Report, kernel: str) -> str:
    """The report on a kernel, `FILE.py:KERNEL`, as JUnit's XML: a test case for each stage and each size."""
    left_out = [(each.sizes, each.reason) for each in report.refusals]
    left_out += [(sizes, "not run for want of time") for sizes in report.left]
    failed = [case for case in report.cases if case.findings]
    suite = ElementTree.Element(
        "testsuite",
        name=report.tool,
        tests=str(len(report.cases) + len(left_out)),
        failures=str(len(failed)),
        errors="0",
        skipped=str(len(left_out)),
        time=f"{report.seconds:.3f}",
    )
    for case in report.cases:
        _add_case(suite, case, kernel)
    for sizes, reason in left_out:
        _add_skipped(suite, sizes, reason, kernel)
    said = [*map(str, report.remarks), *report.sizes(), *report.unlooked(), *map(str, report.proofs), report.summary]
    ElementTree.SubElement(suite, "system-out").text = _legal("\n".join(said))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, "unicode")


def _add_case(suite: ElementTree.Element, case: Case, kernel: str) -> None:
    element = ElementTree.SubElement(
        suite, "testcase", classname=_legal(kernel), name=case.name, time=f"{case.seconds:.3f}"
    )
    if case.findings:
        first = case.findings[0]
        # One for all: many readers show the first one of a case alone.
        failure = ElementTree.SubElement(
            element, "failure", type=first.rule, message=_legal(first.diagnostic.message)
        )  # fmt: skip
        failure.text = _legal("\n".join(map(str, case.findings)))


def _add_skipped(suite: ElementTree.Element, sizes: Sizes, reason: str, kernel: str) -> None:
    element = ElementTree.SubElement(suite, "testcase", classname=_legal(kernel), name=shown(sizes), time="0.000")
    ElementTree.SubElement(element, "skipped", message=_legal(reason))


def _legal(text: str) -> str:
    return _ILLEGAL.sub("?", text)


FORMATS: dict[str, Callable[[Report, str], str]] = {
    "text": _text, "github": _github, "json": as_json, "sarif": _sarif, "junit": junit
}  # fmt: skip
"""How a report on a kernel, `FILE.py:KERNEL`, is written."""
