"""Timelines on command lines: files of the form that their name says, and a line about each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.timing.timeline import Timeline

from .output import write_file

TEXT = "-"
"""The file that stands for a short text on standard output."""


def summary(timeline: Timeline) -> str:
    """Return a line about a launch: its cycles, and its time where the clock of the GPU is known."""
    cycles = timeline.end if timeline.launch_cycles is None else timeline.launch_cycles
    name = " ".join(filter(None, (timeline.kernel, timeline.configuration)))
    time = "" if not timeline.hertz else f", {cycles / timeline.hertz * 1e3:.4g} ms at {timeline.hertz / 1e9:.4g} GHz"
    return f"{name}: {cycles:,.0f} {timeline.unit} {timeline.origin} on {timeline.chip}{time}"


def write_timelines(path: str, form: str, timelines: Sequence[Timeline]) -> None:
    """Write timelines to a file of the form that `form_of` has given, and print a line about each."""
    write_file(Path(path), content(form, timelines))
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


def content(form: str, timelines: Sequence[Timeline]) -> str:
    """Return what a file of a form holds."""
    if form == ".json":
        return "".join(f"{each.to_json()}\n" for each in timelines)
    if form == ".html":
        from tlx_xdsl.timing.show.html import to_html

        return to_html(*timelines)
    from tlx_xdsl.timing.show.perfetto import to_perfetto

    return to_perfetto(*timelines)
