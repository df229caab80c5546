"""Timelines as HTML: `write_html("out.html", timeline)`, or two of them with one axis."""

from __future__ import annotations

from pathlib import Path

from ..timeline import Timeline
from .page import DIGITS, document


def to_html(*timelines: Timeline) -> str:
    """Return a page that shows timelines below each other with one axis of time, in cycles.

    Of a prediction and a measurement rows of the same name stand in pairs. The page holds all it needs.

    Raises ValueError without a timeline, and for one that names what is not there (`Timeline.check`).

    ```python
    Path("stages.html").write_text(to_html(two_stages, three_stages), encoding="utf-8")
    ```
    """
    if not timelines:
        raise ValueError("there is no timeline to show")
    for timeline in timelines:
        timeline.check()
    title = ", ".join(dict.fromkeys(timeline.kernel for timeline in timelines))
    lines = ((place.file, place.line, place.text) for timeline in timelines for place in timeline.places)
    return document(title, [timeline.to_json(DIGITS) for timeline in timelines], lines)


def write_html(path: str | Path, *timelines: Timeline) -> None:
    """Write the page of `to_html` into a file.

    Raises OSError where the file can't be written, and ValueError as `to_html` does.
    """
    Path(path).write_text(to_html(*timelines), encoding="utf-8")
