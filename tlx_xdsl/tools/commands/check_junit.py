"""The report of `tlx check` as JUnit's XML, which CI servers show: a test case for each stage and each size."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from tlx_xdsl.runtime.check.report import Case, Report
from tlx_xdsl.runtime.check.sizes import Sizes, shown

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What no XML document may hold (XML 1.0, "Characters")."""


def junit(report: Report, kernel: str) -> str:
    """The report on a kernel, `FILE.py:KERNEL`, as XML."""
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
    said = [*map(str, report.remarks), *report.sizes(), report.summary]
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
