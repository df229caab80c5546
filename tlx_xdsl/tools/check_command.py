"""`tlx check FILE.py:KERNEL`: run a kernel in many orders on arrays made up here, and report what is wrong in any."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.check import SECONDS, STAGES, Finding, Report, arrays_of, explore
from tlx_xdsl.runtime.interpret import interpret_source
from tlx_xdsl.runtime.interpret_options import Options
from tlx_xdsl.tools.run_command import VALUES, add_launch_arguments, read_kernel
from tlx_xdsl.version import __version__


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"{VALUES}\nThe exit status is 1 where something was found.\n"
    parser.add_argument("kernel", metavar="FILE", help="FILE.py:KERNEL")
    add_launch_arguments(parser)
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"time for all orders ({SECONDS:g})")
    parser.add_argument("--stages", default=",".join(STAGES), help=f"stages of the pipeline ({','.join(STAGES)})")
    parser.add_argument("--seed", type=int, default=0, help="of random numbers (0)")
    parser.add_argument("--format", choices=sorted(FORMATS), default="text", help="of the report (text)")


def run(args: argparse.Namespace) -> int:
    """Carry the command out; returns 1 where something was found.

    Raises CompilationError for a kernel that does not compile, and for a command line that does not fit it.
    """
    kernel = read_kernel(args)
    launch: dict[str, Any] = {**kernel.launch, "jobs": 1}

    def once(order: Any) -> Any:
        return interpret_source(kernel.source, kernel.grid, kernel.arguments, Options(**launch, **order), kernel.types)

    stages = [each.strip() for each in args.stages.split(",") if each.strip()]
    if not stages:
        raise CompilationError("--stages: expected the names of stages with commas between them, found none")
    report = explore(once, arrays_of(kernel.arguments), Options(**launch), args.seconds, stages)
    print(FORMATS[args.format](report))
    return 0 if report else 1


def _github(report: Report) -> str:
    """Workflow commands, which GitHub shows at the lines."""
    lines: list[str] = []
    for each in report.findings:
        place = each.diagnostic.location
        at = "" if place is None else f" file={place.filename},line={place.line},col={max(place.column, 1)}"
        level = "warning" if each.rule == "warning" else "error"
        text = "%0A".join([each.diagnostic.message, *each.diagnostic.notes]).replace("\r", "%0D")
        lines.append(f"::{level}{at}::{text}")
    return "\n".join([*lines, str(report).splitlines()[-1]])


def _sarif(report: Report) -> str:
    """SARIF 2.1.0 (OASIS)."""
    driver = {"name": "tlx check", "version": __version__, "rules": [{"id": each} for each in _RULES]}
    runs = [{"tool": {"driver": driver}, "results": [_result(each) for each in report.findings]}]
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": runs}, indent=2)


_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_RULES = ("deadlock", "fault", "warning")


def _result(finding: Finding) -> dict[str, Any]:
    found = finding.diagnostic
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "level": "warning" if finding.rule == "warning" else "error",
        "message": {"text": "\n".join([found.message, *found.notes])},
    }
    if (place := found.location) is not None and place.line:
        region = {"startLine": place.line, "startColumn": max(place.column, 1)}
        physical = {"artifactLocation": {"uri": place.filename}, "region": region}
        result["locations"] = [{"physicalLocation": physical}]
    return result


FORMATS: dict[str, Callable[[Report], str]] = {"text": str, "github": _github, "sarif": _sarif}
"""How a report is written."""
