"""Timelines: what warps, tensor cores, TMA and barriers of a few CTAs do, and when.

The clock makes them from PTX (`origin="predicted"`), and a run with probes from a GPU (`origin="measured"`). Both have
one form, so that one viewer shows either, or both above each other. Times are cycles of a multiprocessor, from the
start of the first CTA shown. The interpreter makes them of several GPUs, in steps (`origin="simulated"`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import astuple, dataclass, field, fields
from math import inf
from typing import Any, Literal, TypeAlias

from .show import page

SpanKind: TypeAlias = Literal[
    "work",  # a warp computes or moves data itself
    "wait",  # a warp waits; `cause` says for what
    "issue",  # a warp starts a copy or a product (short)
    "copy",  # TMA or cp.async under way
    "product",  # a tensor core at work
    "store",  # data on the way to global memory
    "phase",  # a phase of a barrier, from its first arrival to its end
    "buffer",  # a slot of a ring holds data, from the write to the last read
]
TrackKind: TypeAlias = Literal["warp", "tensor core", "tma", "barrier", "buffer"]


@dataclass(slots=True)
class Track:
    """A row of the timeline."""

    name: str
    """As a user reads it: `warp 4`, `tensor core 0`, `full[1]`."""
    kind: TrackKind
    group: str
    """The heading it stands under: the task's name, or that of a unit, after the CTA where there are several."""

    @property
    def cta(self) -> str:
        """The beginning of the heading that names a CTA, `CTA 3 `; nothing where one CTA is shown."""
        found = re.match(r"CTA \d+ ", self.group)
        return found[0] if found else ""


@dataclass(slots=True)
class Span:
    """An interval of time on one track."""

    track: int
    """The place of its track in `Timeline.tracks`."""
    start: float
    end: float
    kind: SpanKind
    name: str
    """A few words: `wait full[0] phase 3`, `wgmma m64n256k16`."""
    place: int = -1
    """The place of its line in `Timeline.places`; -1 if it has none."""
    cause: str = ""
    """Why a wait ended when it did: `TMA load of line 62`, `arrival of warp 5`."""
    after: int = -1
    """The span whose end let this one begin or end, by its place in `Timeline.spans`; -1 if none is known."""


@dataclass(slots=True)
class Place:
    """A line of the user's source."""

    file: str
    line: int
    text: str = ""


@dataclass(slots=True)
class Timeline:
    """Spans on tracks, with the critical path and what limits the kernel."""

    kernel: str
    chip: str
    """The GPU, as people call it: `H200`."""
    origin: Literal["predicted", "measured", "simulated"]
    tracks: list[Track] = field(default_factory=list[Track])
    spans: list[Span] = field(default_factory=list[Span])
    places: list[Place] = field(default_factory=list[Place])
    end: float = 0.0
    """Cycles from the start of the first CTA that is shown to the end of the last."""
    launch_cycles: float | None = None
    """Cycles of the whole launch; None where that is not known."""
    hertz: float | None = None
    """The clock of the multiprocessors, given or measured."""
    critical: list[int] = field(default_factory=list[int])
    """The critical path: places of spans in `spans`, in the order of time."""
    sentences: list[str] = field(default_factory=list[str])
    """What limits this kernel, in three sentences."""
    notes: list[str] = field(default_factory=list[str])
    """What the model leaves out here, or what the probes cost."""
    configuration: str = ""
    """What sets it apart from others of the kernel that it is shown beside: `NUM_STAGES=2`."""
    unit: str = "cycles"
    """The unit of all times: `steps` where ranks are simulated, which are no time."""

    @property
    def title(self) -> str:
        """The configuration and the origin, as a heading: `NUM_STAGES=2, predicted`."""
        return ", ".join(filter(None, (self.configuration, self.origin)))

    def _repr_html_(self) -> str:
        lines = ((place.file, place.line, place.text) for place in self.places)
        return page.frame(page.document(self.kernel, [self.to_json(page.DIGITS)], lines), f"Timeline of {self.kernel}")

    def to_json(self, digits: int | None = None) -> str:
        """Return the timeline as JSON of one line, which `from_json` reads back.

        Spans are columns, `{"track": [0, ...], "start": [0.0, ...], ...}`, in which kinds, names and causes are places
        in `strings`. Tracks and places are rows. With `digits` times are rounded to so many decimals of a cycle.
        """
        strings: dict[str, int] = {}

        def numbers(texts: Iterable[str]) -> list[int]:
            return [strings.setdefault(text, len(strings)) for text in texts]

        def times(values: Iterable[float]) -> list[float]:
            return list(values) if digits is None else [round(value, digits) for value in values]

        held = {each.name: getattr(self, each.name) for each in fields(self)}
        held["tracks"] = [astuple(track) for track in self.tracks]
        held["places"] = [astuple(place) for place in self.places]
        held["spans"] = {
            "track": [span.track for span in self.spans],
            "start": times(span.start for span in self.spans),
            "end": times(span.end for span in self.spans),
            "kind": numbers(span.kind for span in self.spans),
            "name": numbers(span.name for span in self.spans),
            "place": [span.place for span in self.spans],
            "cause": numbers(span.cause for span in self.spans),
            "after": [span.after for span in self.spans],
        }
        return json.dumps({**held, "strings": list(strings)}, separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> Timeline:
        """Return the timeline that `to_json` has written.

        Raises ValueError for text that is no timeline.
        """
        try:
            held: dict[str, Any] = json.loads(text)
            strings, columns = held.pop("strings"), held["spans"]
            for name in ("kind", "name", "cause"):
                columns[name] = [strings[number] for number in columns[name]]
            order = [columns[each.name] for each in fields(Span)]
            held["tracks"] = [Track(*each) for each in held["tracks"]]
            held["places"] = [Place(*each) for each in held["places"]]
            held["spans"] = [Span(*each) for each in zip(*order, strict=True)]
            timeline = Timeline(**held)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"this is no timeline: {error}") from None
        timeline.check()
        return timeline

    def check(self) -> None:
        """Raise ValueError where a span, or the critical path, names a track, place or span that is not there."""
        spans = len(self.spans)
        for number, span in enumerate(self.spans):
            if not 0 <= span.track < len(self.tracks):
                raise ValueError(f"span {number} is on track {span.track}, of {len(self.tracks)}")
            if not (-1 <= span.place < len(self.places) and -1 <= span.after < spans):
                raise ValueError(f"span {number} names place {span.place} and span {span.after}, which are not there")
            if not span.start <= span.end < inf:
                raise ValueError(f"span {number} lasts from {span.start} to {span.end}")
        if any(not 0 <= number < spans for number in self.critical):
            raise ValueError("the critical path names a span that is not there")
