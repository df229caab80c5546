"""How the reports of `tlx check` and `tlx lint` are written: for people, for GitHub, as SARIF, and as JUnit's XML."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

from tlx_xdsl.runtime.check.report import Case, Finding, Report, Sizes, shown
from tlx_xdsl.version import __version__


def _text(report: Report, _kernel: str) -> str:
    return str(report)


def _github(report: Report, _kernel: str) -> str:
    """Workflow commands, which GitHub shows at the lines."""
    lines: list[str] = []
    for each in (*report.findings, *report.remarks):
        place = each.diagnostic.location
        at = "" if place is None else f" file={place.filename},line={place.line},col={max(place.column, 1)}"
        text = "%0A".join([each.diagnostic.message, *each.diagnostic.notes, *_how(each)]).replace("\r", "%0D")
        lines.append(f"::{_GITHUB[each.diagnostic.severity]}{at}::{text}")
    return "\n".join([*lines, *map(str, report.proofs), report.summary])


def _sarif(report: Report, _kernel: str) -> str:
    """SARIF 2.1.0 (OASIS)."""
    driver = {"name": report.tool, "version": __version__, "rules": [{"id": each} for each in report.rules]}
    results = [_result(each) for each in (*report.findings, *report.remarks)]
    results += [
        {"ruleId": "proof", "level": "none", "kind": "informational", "message": {"text": str(each)}}
        for each in report.proofs
    ]
    runs = [{"tool": {"driver": driver}, "results": results}]
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
        region = {"startLine": place.line, "startColumn": max(place.column, 1)}
        physical = {"artifactLocation": {"uri": place.filename}, "region": region}
        result["locations"] = [{"physicalLocation": physical}]
    return result


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
    said = [*map(str, report.remarks), *report.sizes(), *map(str, report.proofs), report.summary]
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
    "text": _text, "github": _github, "sarif": _sarif, "junit": junit
}  # fmt: skip
"""How a report on a kernel, `FILE.py:KERNEL`, is written."""
