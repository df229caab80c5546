"""How the reports of `tlx check` and `tlx lint` are written: for people, for GitHub, as SARIF, and as JUnit's XML."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tlx_xdsl.runtime.check.report import Finding, Report
from tlx_xdsl.tools.commands.check_junit import junit
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
    return "\n".join([*lines, report.summary])


def _sarif(report: Report, _kernel: str) -> str:
    """SARIF 2.1.0 (OASIS)."""
    driver = {"name": report.tool, "version": __version__, "rules": [{"id": each} for each in report.rules]}
    runs = [{"tool": {"driver": driver}, "results": [_result(each) for each in (*report.findings, *report.remarks)]}]
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


FORMATS: dict[str, Callable[[Report, str], str]] = {
    "text": _text, "github": _github, "sarif": _sarif, "junit": junit
}  # fmt: skip
"""How a report on a kernel, `FILE.py:KERNEL`, is written."""
