"""The work of `tlx explain --why-slow`: what costs a launch time, at the lines of the kernel."""

from __future__ import annotations

import argparse

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.clock.kernel import timeline_of
from tlx_xdsl.runtime.clock.why_slow import why_slow
from tlx_xdsl.terminal import coloured
from tlx_xdsl.timing.findings import WORTH_A_WORD

from ..documents import diagnostic_as_json, document
from ..launch_line.clocked import configuration_of, hertz_of
from ..launch_line.request import read
from ..output import print_document
from ..timelines import summary


def explain(args: argparse.Namespace) -> None:
    """Predict the launch, and print what it spends its time on, the most expensive first.

    Raises CompilationError for a fault in the kernel, for what does not fit, and where stock Triton is not installed.
    """
    if args.grid is None:
        raise CompilationError("--why-slow: launches have a grid: give --grid, and the arguments by --arg")
    found = why_slow(configuration_of(read(args)), args.chip, hertz_of(args.clock))
    timeline = timeline_of(found.prediction)
    if args.format == "json":
        facts = {
            "kernel": args.kernel, "chip": timeline.chip, "cycles": found.prediction.cycles,
            "milliseconds": found.prediction.milliseconds(), "bound": found.prediction.bound,
            "shares": dict(found.prediction.shares), "sentences": list(timeline.sentences),
            "findings": [diagnostic_as_json(each) for each in found.diagnostics],
        }  # fmt: skip
        print_document(document("tlx explain", facts))
        return
    print(f"{summary(timeline)}; bound by {found.prediction.bound}")
    if timeline.sentences:
        print(" ".join(timeline.sentences))
    for each in found.diagnostics:
        print(coloured(str(each)))
    if not found.diagnostics:
        print(f"nothing was found that costs {WORTH_A_WORD:.0%} of the time")
