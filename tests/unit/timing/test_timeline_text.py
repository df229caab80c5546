"""Timelines as text and as traces for Perfetto."""

import json
import re
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.unit.timing.ring_timelines import ISSUE, many, ring
from tlx_xdsl.timing.show.perfetto import lanes, to_perfetto, write_perfetto
from tlx_xdsl.timing.show.text import MOST_LINES, to_text
from tlx_xdsl.timing.timeline import Place, Span, Timeline, Track

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("width", [40, 79, 120, 240])
@pytest.mark.parametrize("timeline", [ring(2), many(2_000), Timeline("empty", "H200", "predicted")])
def test_text_fits(timeline: Timeline, width: int):
    lines = to_text(timeline, width).splitlines()
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= width


def test_many_tasks_fit_too():
    tracks = [Track(f"warp {number}", "warp", f"task {number}") for number in range(50)]
    spans = [Span(number, 0, 100, "wait", "wait", -1, f"cause {number}") for number in range(50)]
    text = to_text(Timeline("k", "H200", "predicted", tracks, spans, end=100, sentences=["So it is."] * 40), 80)
    assert len(text.splitlines()) <= MOST_LINES
    assert "and 38 more" in text


def test_text_shows_what_tasks_do():
    text = to_text(ring(2), 120)
    assert text.startswith(
        "matmul, NUM_STAGES=2, predicted on H200: 19,188 cycles shown, 76,752 for the launch (43.7 us"
    )
    assert "The tensor cores work 64 % of the time." in text
    bars = {line.split("  ")[0]: line for line in text.splitlines() if line.startswith(("cons", "prod", "tens"))}
    assert list(bars) == ["producer", "consumer 0", "consumer 1", "tensor core 0"]
    assert bars["producer"].endswith("wait for tensor cores 73 %")
    assert "===" in bars["tensor core 0"]
    assert bars["tensor core 0"].endswith("product 64 %")
    assert "~~~" in bars["consumer 0"]


def test_text_names_the_longest_waits_first():
    waits = to_text(ring(2), 120).partition("waits, of the time")[2].splitlines()
    assert waits[1] == " 62 %  consumer 1, hopper_gemm_ws.py:67, for products before it"
    assert waits[2] == " 51 %  consumer 0, hopper_gemm_ws.py:66, for TMA load of line 57"


def test_a_wait_without_a_line_has_its_name():
    one = Timeline("k", "H200", "predicted", [Track("warp 0", "warp", "t")], [Span(0, 0, 9, "wait", "wait x")], end=9)
    assert "100 %  t, wait x" in to_text(one)
    one.spans[0] = replace(one.spans[0], kind="work")
    assert "waits," not in to_text(one)


def test_a_bar_is_blank_where_nothing_goes_on():
    spans = [Span(0, 0, 30, "work", "w"), Span(1, 0, 30, "work", "w"), Span(1, 90, 100, "work", "w")]
    tracks = [Track(f"warp {number}", "warp", "task") for number in (0, 1)]
    row = next(x for x in to_text(Timeline("k", "H200", "predicted", tracks, spans, end=100)).splitlines() if "#" in x)
    bar = row.removeprefix("task").lstrip().partition("  ")[0]
    assert set(bar) == {"#"}
    assert 10 < len(bar) < 16, "of 48 columns"
    assert row.endswith("work 35 %")


def test_long_timelines_show_some_phases_of_the_middle():
    timeline = ring(3, 60)
    text = to_text(timeline, 120)
    first, last = (float(each.replace(",", "")) for each in re.findall(r"^cycles +([\d,]+) +([\d,]+)$", text, re.M)[0])
    assert 0 < first < timeline.end / 2 < last < timeline.end
    phases = [span.end for span in timeline.spans if timeline.tracks[span.track].name == "full[0]"]
    assert sum(first < end <= last + 1 for end in phases) == 3
    assert "product 95 %" in text, "shares are of the whole"


# Perfetto -------------------------------------------------------------------------------------------------------------


def events(*timelines: Timeline) -> list[dict]:
    return json.loads(to_perfetto(*timelines))["traceEvents"]


def test_every_event_is_of_the_format():
    for event in events(ring(2), ring(3)):
        assert event["ph"] in {"M", "X", "s", "f"}
        assert isinstance(event["pid"], int)
        if event["ph"] != "M":
            assert event["ts"] >= 0
            assert isinstance(event["tid"], int)
        if event["ph"] == "X":
            assert event["dur"] >= 0
            assert event["name"]
        if event["ph"] == "f":
            assert event["bp"] == "e"


def test_times_are_microseconds_at_the_clock():
    issue = next(each for each in events(ring(2)) if each.get("name") == "TMA load")
    assert issue["dur"] == pytest.approx(ISSUE / 1.755e9 * 1e6, abs=1e-6)
    assert issue["args"]["cycles"] == ISSUE
    assert issue["args"]["at"] == "examples/hopper_gemm_ws.py:57"
    assert issue["args"]["line"].startswith("tlx.async_descriptor_load")


def test_without_a_clock_a_nanosecond_is_a_cycle():
    trace = json.loads(to_perfetto(replace(ring(2), hertz=None)))
    issue = next(each for each in trace["traceEvents"] if each.get("name") == "TMA load")
    assert issue["dur"] == pytest.approx(ISSUE / 1000)
    assert trace["otherData"]["timelines"][0]["time"] == "1 ns is one cycle: no clock is known"
    assert trace["displayTimeUnit"] == "ns"


def test_slices_of_a_thread_do_not_cross():
    threads = defaultdict(list)
    for each in events(ring(3)):
        if each["ph"] == "X":
            threads[each["pid"], each["tid"]].append((each["ts"], each["ts"] + each["dur"]))
    for slices in threads.values():
        slices.sort()
        assert all(first[1] <= second[0] + 2e-6 for first, second in pairwise(slices))


def test_arrows_join_two_slices():
    slices, arrows = defaultdict(list), defaultdict(list)
    for each in events(ring(2)):
        if each["ph"] == "X":
            slices[each["pid"], each["tid"]].append((each["ts"], each["ts"] + each["dur"]))
        elif each["ph"] in "sf":
            arrows[each["id"]].append(each)
            assert any(first <= each["ts"] <= last + 1e-6 for first, last in slices[each["pid"], each["tid"]])
    spans = ring(2).spans
    crossing = [span for span in spans if span.after >= 0 and spans[span.after].track != span.track]
    assert len(arrows) == len(crossing) < sum(span.after >= 0 for span in spans)
    for start, end in arrows.values():
        assert (start["ph"], end["ph"]) == ("s", "f")
        assert start["ts"] <= end["ts"]


def test_processes_and_threads_have_names():
    named = {(e["name"], e["args"].get("name")) for e in events(ring(2), ring(3)) if e["ph"] == "M"}
    assert ("process_name", "1. NUM_STAGES=2, predicted: producer") in named
    assert ("process_name", "2. NUM_STAGES=3, predicted: producer") in named
    assert ("thread_name", "TMA (2)") in named
    assert len({e["pid"] for e in events(ring(2), ring(3)) if e["name"] == "process_name"}) == 12


def test_lanes_are_as_few_as_can_be():
    assert lanes([(0, 2), (1, 3), (2, 4), (2, 5), (5, 6)]) == [0, 1, 0, 2, 0]


def test_a_trace_is_written(tmp_path):
    write_perfetto(tmp_path / "trace.json", ring(2))
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]


def test_a_place_on_windows_is_cut_to_its_name():
    one = Timeline("k", "H200", "predicted", [Track("warp 0", "warp", "t")], end=9)
    one.spans, one.places = [Span(0, 0, 9, "wait", "w", 0)], [Place("C:\\kernels\\a.py", 3)]
    assert "t, a.py:3" in to_text(one)
