"""The picture of a ring: rows, phases and who waited for them."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from tests.unit.timing.ring_timelines import ring
from tlx_xdsl.timing.show.picture import ring_picture

pytestmark = pytest.mark.quick

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*arguments, **options) -> ElementTree.Element:
    return ElementTree.fromstring(ring_picture(*arguments, **options))


def texts(picture: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in picture.iter(f"{SVG}text")]


@pytest.mark.parametrize("stages", [2, 3])
def test_rows_are_tasks_and_slots(stages: int):
    shown = texts(drawn(ring(stages), "A ring"))
    order = [each for each in shown if each.startswith(("producer", "slot", "consumer", "tensor"))]
    slots = [f"slot {number}" for number in range(stages)]
    assert order == ["producer", *slots, "consumer 0", "consumer 1", "tensor core"]


def test_each_wait_for_a_slot_has_an_arrow():
    timeline = ring(2)
    picture = drawn(timeline, "A ring")
    lines = [
        each for each in picture.iter(f"{SVG}path") if each.get("class") in ("full", "empty") and not each.get("stroke")
    ]
    first = {"warp 0", "warp 4", "warp 8"}
    waits = [
        span for span in timeline.spans
        if re.match(r"wait (full|empty)\[", span.name) and timeline.tracks[span.track].name in first
    ]  # fmt: skip
    assert len(lines) == len(waits) > 10


def test_phases_are_numbered_from_the_first():
    shown = [each for each in texts(drawn(ring(2), "A ring", 10)) if re.fullmatch(r"\d", each)]
    assert sorted(shown) == sorted("012345" * 2)
    assert "phase 1" in texts(drawn(ring(2), "A ring", 2000, 6000)), "there is space for the word"


def test_only_the_cycles_asked_for_are_drawn():
    whole, part = drawn(ring(2), "A ring"), drawn(ring(2), "A ring", 4000, 8000)
    count = [sum(1 for _ in each.iter(f"{SVG}rect")) for each in (whole, part)]
    assert count[1] < count[0] / 2
    assert "5,000" in texts(part)
    for bar in part.iter(f"{SVG}rect"):
        assert 0 <= float(bar.get("x", 0)) <= float(bar.get("x", 0)) + float(bar.get("width", 0)) <= 390.1


def test_the_picture_is_dark_where_the_reader_s_system_is():
    text = ring_picture(ring(2), "A ring")
    assert "@media(prefers-color-scheme:dark)" in text
    assert "<script" not in text
    assert re.findall(r"(?:href|url|src)", text) == []


def test_names_are_escaped():
    timeline = ring(2)
    for track in timeline.tracks:
        track.group = f"<{track.group}>&"
    assert "<producer>&" in texts(drawn(timeline, "<b>&"))


def test_a_slot_is_full_until_it_is_released():
    timeline = ring(2, 4)
    bars = [each for each in drawn(timeline, "A ring").iter(f"{SVG}rect") if each.get("y") == "60"]
    uses = [each for each in bars if each.get("class") in ("copy", "buffer")]
    assert [each.get("class") for each in uses] == ["copy", "buffer"] * 2
    ends = [float(each.get("x", 0)) + float(each.get("width", 0)) for each in uses]
    assert ends[1] <= float(uses[2].get("x", 0)) + 0.2
    assert min(float(each.get("width", 0)) for each in uses) > 5


def test_other_names_of_barriers_are_given():
    timeline = ring(2)
    with pytest.raises(ValueError, match="no phases of barriers 'filled' and 'free'"):
        ring_picture(timeline, "A ring", names=("filled", "free"))
    for track in timeline.tracks:
        track.name = track.name.replace("full", "filled").replace("empty", "free")
    timeline.spans = [
        replace(span, name=span.name.replace("full", "filled").replace("empty", "free")) for span in timeline.spans
    ]
    assert ring_picture(timeline, "A ring", names=("filled", "free")) == ring_picture(ring(2), "A ring")
