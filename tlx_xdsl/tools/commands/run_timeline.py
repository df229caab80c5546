"""The work of `tlx run --timeline`: what the clock predicts of a launch, as a page, as JSON, or as text."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shutil import get_terminal_size

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.clock.kernel import timeline_of
from tlx_xdsl.timing.timeline import Timeline

from ..launch_line.clocked import beside, configuration_of, hertz_of, settings_of
from ..launch_line.request import read
from ..output import write_file

TEXT = "-"
"""The file that stands for a short text on standard output."""

_IN_VAIN = ("check", "save", "trace", "watch", "profile", "compare", "order")
"""Options of a run that have no meaning where nothing is run."""


def show(args: argparse.Namespace) -> None:
    """Predict what the command line says, and write or print the timelines.

    Raises CompilationError for a fault in the kernel, for what does not fit, and where stock Triton is not installed.
    """
    given = next((name for name in _IN_VAIN if getattr(args, name)), None)
    if given is not None:
        raise CompilationError(f"--{given}: not with --timeline, which predicts the launch and runs nothing")
    form = form_of(args.timeline)
    hertz = hertz_of(args.clock)
    base = configuration_of(read(args))
    others = [beside(base, text) for text in args.beside]
    names = list(dict.fromkeys(name for _, settings in others for name in settings))
    timelines: list[Timeline] = []
    for configuration in (base, *(each for each, _ in others)):
        found = timeline_of(configuration.predict(args.chip, hertz))
        text = ", ".join(f"{name}={value}" for name, value in settings_of(configuration, names).items())
        timelines.append(replace(found, configuration=text))
    if form == TEXT:
        from tlx_xdsl.timing.show.text import to_text

        width = get_terminal_size().columns
        print("\n\n".join(to_text(each, width) for each in timelines))
        return
    write_timelines(args.timeline, form, timelines)


def summary(timeline: Timeline) -> str:
    """Return a line about a launch: its cycles, and its time where the clock of the GPU is known."""
    cycles = timeline.end if timeline.launch_cycles is None else timeline.launch_cycles
    name = " ".join(filter(None, (timeline.kernel, timeline.configuration)))
    time = "" if not timeline.hertz else f", {cycles / timeline.hertz * 1e3:.4g} ms at {timeline.hertz / 1e9:.4g} GHz"
    return f"{name}: {cycles:,.0f} cycles predicted on {timeline.chip}{time}"


def write_timelines(path: str, form: str, timelines: Sequence[Timeline]) -> None:
    """Write timelines to a file of the form that `form_of` has given, and print a line about each."""
    write_file(Path(path), _content(form, timelines))
    for each in timelines:
        print(summary(each))
    print(f"written to {path}")


def form_of(path: str) -> str:
    """Return what is to be written, by the name of the file. Raises CompilationError for a name that says nothing."""
    for form in (".perfetto.json", ".json", ".html"):
        if path.endswith(form):
            return form
    if path == TEXT:
        return TEXT
    raise CompilationError(f"--timeline: expected a file .html, .json or .perfetto.json, or -, found '{path}'")


def _content(form: str, timelines: Sequence[Timeline]) -> str:
    if form == ".json":
        return "".join(f"{each.to_json()}\n" for each in timelines)
    if form == ".html":
        from tlx_xdsl.timing.show.html import to_html

        return to_html(*timelines)
    from tlx_xdsl.timing.show.perfetto import to_perfetto

    return to_perfetto(*timelines)
