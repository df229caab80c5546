"""Timelines: what warps, tensor cores, TMA and barriers of a few CTAs do, and when.

The clock makes them from PTX (`origin="predicted"`), and a run with probes from a GPU (`origin="measured"`). Both have
one form, so that one viewer shows either, or both above each other. Times are cycles of a multiprocessor, from the start
of the first CTA shown.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

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
    """The heading it stands under: the task's name, or `CTA 3`."""


@dataclass(slots=True)
class Span:
    """Something that takes time, on one track."""

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
    origin: Literal["predicted", "measured"]
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

    def to_json(self) -> str:
        """Return the timeline as JSON of one line, which `from_json` reads back."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> Timeline:
        """Return the timeline that `to_json` has written.

        Raises ValueError for text that is no timeline.
        """
        try:
            held: dict[str, Any] = json.loads(text)
            return Timeline(
                **{
                    **held,
                    "tracks": [Track(**each) for each in held["tracks"]],
                    "spans": [Span(**each) for each in held["spans"]],
                    "places": [Place(**each) for each in held["places"]],
                }
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"this is no timeline: {error}") from None
