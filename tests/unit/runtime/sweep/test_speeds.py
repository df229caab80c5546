"""Reports of speeds: order, table, CSV, JSON, and the picture."""

from __future__ import annotations

import csv
import io
import json
from xml.etree import ElementTree

import pytest

from tlx_xdsl.runtime.measure.speeds import Speed, SpeedReport


def report(source="measured", **more):
    speeds = [
        Speed({"BLOCK": 64, "num_warps": 4}, (2.0, 1.9, 2.2), "spills 8 B"),
        Speed({"BLOCK": 128, "num_warps": 4}, None, "pruned: 'k' needs <more> & more"),
        Speed({"BLOCK": 32, "num_warps": 4}, (1.0, 0.9, 1.5)),
    ]
    return SpeedReport.of("k", "NVIDIA H200", source, speeds, 1.25, **more)


def test_the_table_is_in_order_and_shows_what_differs():
    assert report(checked=True).table().splitlines() == [
        "ms  20 to 80 %  of best  BLOCK",
        " 1  0.9 to 1.5     100%     32  ########################",
        " 2  1.9 to 2.2      50%     64  ############ spills 8 B",
        " -           -        -    128  pruned: 'k' needs <more> & more",
        "k: 2 of 3 configurations measured on NVIDIA H200, checked against the reference; 1.2 s",
    ]


def test_an_estimate_and_what_was_stored_say_so():
    assert "nothing was measured, for there is no GPU here" in report("estimated").summary
    assert "20 to 80" in report("estimated").table()
    assert "0.9 to 1.5" not in report("estimated").table()
    assert "measured on NVIDIA H200 by an earlier process" in report("stored").summary


@pytest.mark.parametrize(("source", "says"), [("estimated", True), ("predicted", True), ("measured", False)])
def test_what_a_model_can_not_separate_is_said(source, says):
    speeds = [Speed({"STAGES": stages}, (0.005889,) * 3) for stages in (2, 3, 4)]
    table = SpeedReport.of("k", "H200 SXM", source, speeds, 0.1).table()
    said = "the model can't tell these apart, they differ by less than 2%: STAGES=2; STAGES=3; STAGES=4"
    assert (said in table) == says


def test_without_a_time_there_is_no_best():
    assert report().best.settings["BLOCK"] == 32
    nothing = SpeedReport.of("k", "gpu", "measured", [Speed({"B": 1}, None, "no")], 0.0)
    assert nothing.best is None
    assert "0 of 1 configurations" in nothing.table()


def test_csv_and_json_have_all():
    rows = list(csv.DictReader(io.StringIO(report().as_csv())))
    assert [row["BLOCK"] for row in rows] == ["32", "64", "128"]
    assert (rows[0]["ms"], rows[0]["num_warps"], rows[2]["ms"], rows[2]["source"]) == ("1.0", "4", "", "measured")
    found = json.loads(report().as_json())
    assert [each["ms"] for each in found["configurations"]] == [[1.0, 0.9, 1.5], [2.0, 1.9, 2.2], None]
    assert found["configurations"][0]["settings"] == {"BLOCK": 32, "num_warps": 4}


def test_the_picture_has_a_bar_for_each_time():
    root = ElementTree.fromstring(report().svg())
    bars = [each for each in root.iter("{http://www.w3.org/2000/svg}rect")][1:]
    widths = [float(bar.get("width")) for bar in bars]
    assert len(widths) == 2
    assert widths[1] == 2 * widths[0]
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "BLOCK=32" in texts
    assert "2 ms spills 8 B" in texts
    assert "pruned: 'k' needs <more> & more" in texts
