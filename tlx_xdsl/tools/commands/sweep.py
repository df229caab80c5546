"""`tlx sweep FILE.py:KERNEL --set NAME=VALUE,VALUE`: compile all combinations of choices, with a verdict on each."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tlx_xdsl.errors import CompilationError

from ..launch_line.kernel_options import KERNEL, add_format_argument, add_kernel_arguments
from ..launch_line.request import assignments, constexpr_value, read
from ..launch_line.specialization import specialization_of
from ..output import print_document

if TYPE_CHECKING:
    from tlx_xdsl.runtime.sweep import JobResult, SweepReport

_BRACKETS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("kernel", **KERNEL)
    parser.add_argument(
        "--set",
        dest="choices",
        action="append",
        default=[],
        metavar="NAME=VALUE,VALUE",
        help="values to choose from: of a compile-time argument, or of num_warps, num_stages, num_ctas, maxnreg, "
        "cluster as (X,Y,Z), or target",
    )
    parser.add_argument("-j", "--jobs", type=int, metavar="N", help="processes (one for each core)")
    parser.add_argument("--timeout", type=float, default=600.0, metavar="SECONDS", help="for each configuration (600)")
    parser.add_argument("--no-prune", action="store_true", help="compile even what can't fit the target")
    add_format_argument(parser, also="--json")
    parser.add_argument("-q", "--quiet", action="store_true", help="no bar on standard error")
    bench = parser.add_argument_group(
        "times", "with --bench or --clock, which take the arguments of the launch by --arg"
    )  # fmt: skip
    bench.add_argument("--bench", action="store_true", help="time each on the GPU, or estimate where there is none")
    bench.add_argument(
        "--clock", nargs="?", const="", metavar="HERTZ",
        help="predict each from its final PTX, in cycles and in time at this clock; no GPU is used (docs/clock.md)",
    )  # fmt: skip
    bench.add_argument("--chip", metavar="NAME", help="of --clock: H200, H100 or B200 (what the target is of)")
    bench.add_argument(
        "--grid", metavar="X,Y,Z", help="programs along each axis; expressions over arguments and choices"
    )
    bench.add_argument(
        "--check", action="append", default=[], metavar="NAME=EXPR",
        help="what an array must hold, over the arrays from before: others have no time",
    )  # fmt: skip
    bench.add_argument("--tolerance", type=float, help="of --check, relative to the largest value (by the type)")
    bench.add_argument("--seconds", type=float, default=0.2, help="of launches of each configuration (0.2)")
    bench.add_argument("--csv", metavar="FILE", help="write the times as CSV")
    bench.add_argument("--plot", metavar="FILE.svg", help="write the times as a picture")
    add_kernel_arguments(parser)


def run(args: argparse.Namespace) -> None:
    """Carry the command out.

    Raises CompilationError when no configuration can be launched, for a kernel that can't be loaded, and for choices
    that don't fit it.
    """
    # It takes a second, and `--help` does without.
    from tlx_xdsl.runtime.sweep import compile_many, sweep_jobs

    from ..documents import document

    choices = {name: choice_values(name, text) for name, text in assignments(args.choices, "--set").items()}
    _check_bench(args)
    request = read(args)
    jobs = sweep_jobs(
        request.kernel, specialization_of(request), choices, num_stages=request.options["num_stages"]
    )  # fmt: skip
    report = compile_many(
        jobs,
        workers=args.jobs,
        progress=False if args.quiet else None,
        prune=not args.no_prune,
        timeout_s=args.timeout,
        keep="nothing" if not _has_times(args) else "binary" if args.clock is None else "all",
    )
    if _has_times(args):
        from .sweep_bench import print_times

        print_times(args, request, report)
        return
    ok = any(result.is_launchable for result in report)
    print_document(
        document("tlx sweep", {"kernel": args.kernel, **report_as_json(report, list(choices))}, ok=ok)
        if args.format == "json"
        else report.table()
    )
    if not ok:
        raise CompilationError(f"no configuration can be launched, of {len(report)}")


def _has_times(args: argparse.Namespace) -> bool:
    return args.bench or args.clock is not None


def _check_bench(args: argparse.Namespace) -> None:
    """Check that what only `--bench` and `--clock` look at is given with them."""
    what = "--bench" if args.clock is None else "--clock"
    if _has_times(args) and args.grid is None:
        raise CompilationError(f"{what}: launches have a grid: give --grid, and the arguments by --arg")
    given = next((name for name in ("grid", "check", "tolerance", "csv", "plot") if getattr(args, name)), None)
    if given is not None and not _has_times(args):
        raise CompilationError(f"--{given}: only with --bench or --clock")
    if args.chip is not None and args.clock is None:
        raise CompilationError("--chip: only with --clock")


def choice_values(name: str, text: str) -> list[Any]:
    """The values between the commas, those inside brackets aside."""
    parts, depth = [""], 0
    for character in text:
        depth += _BRACKETS.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    if not all(part.strip() for part in parts):
        raise CompilationError(f"--set: expected {name}=VALUE,VALUE, found '{name}={text}'")
    if name == "target":
        return [part.strip() for part in parts]
    return [constexpr_value(name, part.strip(), "--set") for part in parts]


def report_as_json(report: SweepReport, names: Sequence[str]) -> dict[str, Any]:
    """A report for other programs: each configuration with its value of `names`."""
    from ..documents import plain

    return {
        "seconds": round(report.seconds, 3),
        "workers": report.workers,
        "notes": list(report.notes),
        "configurations": [
            {"settings": {name: plain(result.job.settings[name]) for name in names}, **_as_json(result)}
            for result in report
        ],
    }


def _as_json(result: JobResult) -> dict[str, Any]:
    found: dict[str, Any] = {
        "verdict": result.kind,
        "text": result.text,
        "seconds": round(result.seconds, 3),
        "same_as": result.same_as,
        "warnings": list(result.warnings),
    }
    if result.error is not None:
        found["error"] = str(result.error)
    if result.metadata is not None and result.resources is not None:
        found |= asdict(result.resources)
        found |= {name: getattr(result.metadata, name) for name in ("shared", "tmem_size", "num_warps")}
    return found
