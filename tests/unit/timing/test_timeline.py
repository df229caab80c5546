"""The form of timelines: JSON and back, and what no timeline may say."""

import json
from dataclasses import replace

import pytest

from tests.unit.timing.ring_timelines import many, ring
from tlx_xdsl.timing.timeline import Span, Timeline

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("timeline", [ring(2), ring(3, 4, origin="measured"), Timeline("empty", "H200", "predicted")])
def test_json_brings_back_the_timeline(timeline: Timeline):
    assert Timeline.from_json(timeline.to_json()) == timeline


def test_json_is_short_and_one_line():
    text = many(20_000).to_json()
    assert "\n" not in text
    assert len(text) < 20_000 * 60


def test_digits_round_times_alone():
    timeline = ring(2, 2)
    timeline.spans[0] = replace(timeline.spans[0], end=300.123456)
    held = json.loads(timeline.to_json(2))
    assert held["spans"]["end"][0] == 300.12
    assert held["hertz"] == timeline.hertz


def test_columns_have_one_entry_for_each_span():
    held = json.loads(ring(2).to_json())
    assert {len(column) for column in held["spans"].values()} == {len(ring(2).spans)}
    assert held["strings"][held["spans"]["kind"][0]] == "work"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kernel": "a"}', '{"strings": [], "spans": {}}', "null"])
def test_other_json_is_no_timeline(text: str):
    with pytest.raises(ValueError, match="this is no timeline"):
        Timeline.from_json(text)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"track": 99}, "is on track 99"),
        ({"track": -1}, "is on track -1"),
        ({"place": 99}, "names place 99"),
        ({"after": 10_000}, "span 10000, which"),
        ({"start": 5.0, "end": 4.0}, r"lasts from 5\.0 to 4\.0"),
        ({"end": float("inf")}, "lasts from"),
        ({"end": float("nan")}, "lasts from"),
    ],
)
def test_a_span_names_what_is_there(wrong: dict, message: str):
    timeline = ring(2, 2)
    timeline.check()
    timeline.spans[3] = replace(timeline.spans[3], **wrong)
    with pytest.raises(ValueError, match=message):
        timeline.check()


def test_the_critical_path_names_spans():
    timeline = ring(2, 2)
    timeline.critical.append(len(timeline.spans))
    with pytest.raises(ValueError, match="critical path"):
        Timeline.from_json(timeline.to_json())


def test_the_ring_of_the_tests_is_faster_with_three_stages():
    """Tests of pictures rest on it: two slots keep the tensor cores waiting, three do not."""
    assert ring(3).end < 0.9 * ring(2).end
    assert all(isinstance(span, Span) and span.start <= span.end for span in ring(3).spans)


def test_a_title_has_configuration_and_origin():
    assert ring(2).title == "NUM_STAGES=2, predicted"
    assert replace(ring(2), configuration="").title == "predicted"
