"""The work of `tlx run --timeline`: what the clock predicts of a launch, or what simulated ranks do, page or text."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.clock.kernel import timeline_of
from tlx_xdsl.runtime.clock.schedule import Steps
from tlx_xdsl.runtime.simulate.interpret import interpret_source
from tlx_xdsl.runtime.simulate.options import Options
from tlx_xdsl.timing.timeline import Timeline

from ..documents import document
from ..launch_line.clocked import beside, configuration_of, hertz_of, settings_of
from ..launch_line.kernel_options import run_options
from ..launch_line.launches import launch_at
from ..launch_line.request import read
from ..output import print_document, write_file
from ..timelines import TEXT, content, form_of, summary, write_timelines

_IN_VAIN = ("check", "save", "trace", "watch", "profile", "compare", "order")
"""Options of a run that have no meaning where nothing is run."""
WIDTH = 100
"""Columns of a timeline in words, in a document."""


def show(args: argparse.Namespace) -> None:
    """Predict what the command line says, and write or print the timelines.

    Raises CompilationError for a fault in the kernel, for what does not fit, and where stock Triton is not installed.
    """
    given = next((name for name in _IN_VAIN if getattr(args, name)), None)
    if given is not None:
        what = "shows the launch and nothing else" if args.ranks else "predicts the launch and runs nothing"
        raise CompilationError(f"--{given}: not with --timeline, which {what}")
    # Nothing else needs it.
    from tlx_xdsl.timing.show.text import to_text

    form = form_of(args.timeline)
    timelines = [_on_ranks(args)] if args.ranks else _predicted(args)
    if args.format == "json":
        if form != TEXT:
            write_file(Path(args.timeline), content(form, timelines))
        found = [
            {**json.loads(each.to_json()), "summary": summary(each), "text": to_text(each, WIDTH).splitlines()}
            for each in timelines
        ]
        facts = {"kernel": args.kernel, "timelines": found}
        print_document(document("tlx run", facts))
        return
    if form == TEXT:
        width = get_terminal_size().columns
        print("\n\n".join(to_text(each, width) for each in timelines))
        return
    write_timelines(args.timeline, form, timelines)


def _on_ranks(args: argparse.Namespace) -> Timeline:
    """Run the launch on simulated ranks, in steps."""
    given = next((name for name in ("beside", "chip", "clock") if getattr(args, name)), None)
    if given is not None:
        raise CompilationError(f"--{given}: not with --ranks, whose timeline is in steps and not in time")
    request = read(args)
    launch = launch_at(request, request.sizes, ranks=args.ranks)
    steps = Steps(launch.source.name)
    options: dict[str, Any] = {**launch.options, **run_options(args), "steps": steps}
    interpret_source(launch.source, launch.grid, launch.arguments, Options(**options), launch.types)
    return steps.timeline()


def _predicted(args: argparse.Namespace) -> list[Timeline]:
    """Predict the launch, and those that are to be shown beside it."""
    hertz = hertz_of(args.clock)
    base = configuration_of(read(args))
    others = [beside(base, text) for text in args.beside]
    names = list(dict.fromkeys(name for _, settings in others for name in settings))
    timelines: list[Timeline] = []
    for configuration in (base, *(each for each, _ in others)):
        found = timeline_of(configuration.predict(args.chip, hertz))
        text = ", ".join(f"{name}={value}" for name, value in settings_of(configuration, names).items())
        timelines.append(replace(found, configuration=text))
    return timelines
