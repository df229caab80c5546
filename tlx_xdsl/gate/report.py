"""The report of a gate: for people, for programs, and as a page in Markdown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict

from tlx_xdsl.errors import shown_path
from tlx_xdsl.version import __version__

from .run import Report
from .verdict import Verdict, counted

_MOST_LISTED = 6
"""Configurations of a finding that a report names."""


def as_text(report: Report) -> str:
    """Each thing that was found, with all configurations that have it; what was not run, and why; counts."""
    lines: list[str] = []
    for group in grouped(each for each in report.verdicts if each.is_bad):
        lines += [str(group[0]), f"note: {_who(group[0])}", *(f"note: {each}" for each in _where(group))]
    reasons: dict[str, list[Verdict]] = {}
    for each in report.verdicts:
        if each.outcome == "not run":
            reasons.setdefault(each.message, []).append(each)
    lines += [f"not run, {len(each)} of {len(report.verdicts)}: {why}" for why, each in reasons.items()]
    lines += [f"Triton {version}: {_sum(each)}" for version, each in by_version(report.verdicts).items()]
    known = len(report.verdicts) - report.judged
    kept = f", {known} of them known from before" if known else ""
    lines.append(f"{len(report.verdicts)} verdicts{kept}, in {report.seconds:.1f} s: {_sum(report.verdicts)}")
    return "\n".join(lines)


def as_json(report: Report) -> str:
    """All verdicts, for programs: a document of `tlx_xdsl/tools/documents.schema.json`."""
    made = {
        "tool": "tlx gate", "version": __version__, "format": 1, "ok": bool(report),
        "seconds": round(report.seconds, 2), "judged": report.judged, "counts": counted(report.verdicts),
        "verdicts": [asdict(each) for each in report.verdicts],
    }  # fmt: skip
    return json.dumps(made, indent=1)


def as_page(report: Report) -> str:
    """A page in Markdown: a table of kernels and Tritons, and below it what was found."""
    versions = by_version(report.verdicts)
    kernels: dict[tuple[str, str], list[Verdict]] = {}
    for each in report.verdicts:
        kernels.setdefault((each.kernel, each.target), []).append(each)
    lines = [
        "# What final code does", "", f"{len(report.verdicts)} verdicts of `tlx gate`: {_sum(report.verdicts)}.", "",
        f"| kernel | target | {' | '.join(versions)} |", f"|---|---|{'---|' * len(versions)}",
    ]  # fmt: skip
    for (kernel, target), verdicts in kernels.items():
        cells = [_cell([each for each in verdicts if _version(each) == version]) for version in versions]
        lines.append(f"| {kernel} | {target} | {' | '.join(cells)} |")
    for group in grouped(each for each in report.verdicts if each.is_bad):
        first = group[0]
        place = "" if first.location is None else f"{shown_path(str(first.location))}: "
        lines += ["", f"## {first.kernel}: {first.outcome}", "", f"{place}{first.message}", ""]
        lines += [f"- {note}" for note in (_who(first), *_where(group), *first.notes)]
    return "\n".join(lines)


def grouped(verdicts: Iterable[Verdict]) -> list[list[Verdict]]:
    """Verdicts that say the same at the same place of a kernel, together: numbers aside."""
    groups: dict[object, list[Verdict]] = {}
    for each in verdicts:
        said = each.message if each.outcome == "finding" else ""
        key = each.kernel, each.outcome, each.fault, each.file, each.line, "".join(c for c in said if not c.isdigit())
        groups.setdefault(key, []).append(each)
    return list(groups.values())


def by_version(verdicts: Iterable[Verdict]) -> dict[str, list[Verdict]]:
    """Verdicts by the Triton that has compiled, and the assembler where it was another one than that Triton's."""
    found: dict[str, list[Verdict]] = {}
    for each in verdicts:
        found.setdefault(_version(each), []).append(each)
    return found


def _version(verdict: Verdict) -> str:
    return f"{verdict.triton} with ptxas {verdict.assembler}" if verdict.assembler else verdict.triton


_AT_FAULT: Mapping[str, str] = {
    "kernel": "the kernel is at fault, as it is written",
    "passes": "our passes are at fault: the kernel is right as it is written",
    "Triton": "stock Triton is at fault: the kernel is right as it is written",
    "ptxas": "the assembler is at fault: the PTX is right",
    "": "whose fault it is, is not known",
}


def _who(verdict: Verdict) -> str:
    return _AT_FAULT[verdict.fault]


def _where(group: Sequence[Verdict]) -> list[str]:
    """A line for each Triton: the configurations that have it."""
    lines: list[str] = []
    for version, verdicts in by_version(group).items():
        names = [each.configuration or "as it stands" for each in verdicts]
        more = f", and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
        lines.append(f"Triton {version}, {verdicts[0].target}: {'; '.join(names[:_MOST_LISTED])}{more}")
    return lines


def _sum(verdicts: Iterable[Verdict]) -> str:
    return ", ".join(f"{count} {what}" for what, count in counted(verdicts).items() if count) or "nothing to run"


def _cell(verdicts: Sequence[Verdict]) -> str:
    return _sum(verdicts).replace(", ", "<br>") if verdicts else ""


FORMATS: Mapping[str, Callable[[Report], str]] = {"json": as_json, "page": as_page, "text": as_text}
"""How a report is written."""
