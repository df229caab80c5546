"""Timelines of simulated ranks: what lies beside what, who has waited for whom, and the same results as any run."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from docs.site import ranks as picture, ring
from tests.unit.docs.documents import ROOT
from tlx_xdsl.errors import InputError
from tlx_xdsl.interpreter.faults import Deadlock
from tlx_xdsl.timing.timeline import Timeline
from tlx_xdsl.tools.tlx import main

# Kernels are read by the frontend, not run by Python.
# pyright: basic

KERNEL = f"{__file__}:hand_over"


@tlx_xdsl.jit
def hand_over(x, pads, out, TURNS: tl.constexpr, LIMIT: tl.constexpr = None, COMES: tl.constexpr = True):
    """Rank 0 works, stores to rank 1 and signals; rank 1 waits for that."""
    rank = tlx.rank(x)
    if rank == 0:
        for i in range(TURNS):
            tl.atomic_add(out + 1, i)
        tl.store(tlx.peer(x, 1), 5)
        if COMES:
            tlx.signal(tlx.peer(pads, 1) + 4, 0)
    else:
        tlx.wait_signal(tlx.peer(pads, 1) + 4, 0, 1, limit_ns=LIMIT)
        tl.store(out, tl.load(tlx.peer(x, 1)))


def symmetric(count, ranks=2):
    return tlx_xdsl.symmetric([np.zeros(count, np.int32) for _ in range(ranks)])


def handed(turns, limit=None, **options):
    out = [np.zeros(2, np.int32) for _ in range(2)]
    return hand_over.timeline(1, symmetric(1), symmetric(8), out, turns, limit, **options), out


def spans(timeline, group, kind):
    tracks = {number for number, track in enumerate(timeline.tracks) if track.group == group}
    return [span for span in timeline.spans if span.track in tracks and span.kind == kind]


@pytest.mark.quick
@pytest.mark.parametrize("options", [{}, {"ranks": 2}])
def test_a_wait_ends_when_the_other_rank_has_signalled(options):
    timeline, out = handed(30, **options)
    timeline.check()
    assert (out[1][0], timeline.origin, timeline.unit, timeline.chip) == (5, "simulated", "steps", "2 ranks")
    (signal,), (wait,) = spans(timeline, "rank 0", "issue"), spans(timeline, "rank 1", "wait")
    assert wait.start < 10 < 30 <= signal.start < wait.end <= signal.end + 1
    assert timeline.spans[wait.after] is signal
    assert "of rank 0" in wait.cause
    lines = Path(__file__).read_text().splitlines()
    assert "tlx.signal(" in lines[timeline.places[signal.place].line - 1]
    assert "tlx.wait_signal(" in lines[timeline.places[wait.place].line - 1]
    assert Timeline.from_json(timeline.to_json()) == timeline


@tlx_xdsl.jit
def alone(pads, out, TURNS: tl.constexpr):
    for i in range(TURNS):
        tl.atomic_add(out, i + tlx.rank(pads))


def test_ranks_and_programs_lie_beside_each_other():
    """Three ranks of four programs take as many steps as one program alone, and each has a row."""
    ends = {}
    for ranks, grid in ((1, 1), (3, 4)):
        out = [np.zeros(1, np.int32) for _ in range(ranks)]
        timeline = alone.timeline(grid, symmetric(1, ranks), out, 20)
        ends[ranks] = timeline.end
        assert [int(each[0]) for each in out] == [grid * (190 + 20 * rank) for rank in range(ranks)]
    assert ends[1] == ends[3] >= 20
    assert [track.group for track in timeline.tracks[::3]] == [f"rank 0 program {number}" for number in range(4)]


def test_deadlocks_and_limits_are_those_of_any_run():
    with pytest.raises(Deadlock, match="waits until signal 4 of 'pads of rank 1' is at least 1, and it stays 0"):
        handed(3, COMES=False)
    _, out = handed(3, limit=1)
    assert out[1][0] == 5
    _, out = handed(3, limit=1, COMES=False)
    assert out[1][0] == 0
    with pytest.raises(InputError, match="chip and hertz: not on several ranks"):
        handed(3, chip="H200")


ARGUMENTS = (
    "--grid", "1", "--arg", "x=symmetric:zeros:i32[1]", "--arg", "pads=symmetric:zeros:i32[8]", "--arg",
    "out=zeros:i32[2]", "--constexpr", "TURNS=30", "--ranks", "2",
)  # fmt: skip


def test_a_command_line_writes_it(capsys, tmp_path):
    assert main(["run", KERNEL, *ARGUMENTS, "--timeline"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("hand_over, simulated on 2 ranks: ")
    assert re.search(r"^steps +0 +\d+$", said, re.MULTILINE)
    assert re.search(r"^rank 1 .*\.\.\.\.\.\.\.\.\.\.", said, re.MULTILINE)
    for name in ("t.html", "t.json", "t.perfetto.json"):
        assert main(["run", KERNEL, *ARGUMENTS, "--timeline", str(tmp_path / name)]) == 0
    assert re.search(r"hand_over: \d+ steps simulated on 2 ranks", capsys.readouterr().out)
    assert Timeline.from_json((tmp_path / "t.json").read_text()).unit == "steps"
    events = json.loads((tmp_path / "t.perfetto.json").read_text())["traceEvents"]
    assert {"steps", "from step"} <= next(each["args"].keys() for each in events if each["ph"] == "X")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--chip", "H200"), "--chip: not with --ranks, whose timeline is in steps and not in time"),
        (("--check", "out=x"), "--check: not with --timeline, which shows the launch and nothing else"),
    ],
)
def test_what_a_command_line_refuses(capsys, given, said):
    assert main(["run", KERNEL, *ARGUMENTS, "--timeline", *given]) == 1
    assert said in capsys.readouterr().err


def test_the_picture_of_the_page():
    """Rows for each rank, and an arrow from each rank to the other; on a page, legible on a phone, light and dark."""
    kept = (ring.IMAGES / picture.PICTURE).read_text(encoding="utf-8")
    # Steps, and who has to wait, change with the kernel.
    for text in (kept, picture.picture()):
        svg = ElementTree.fromstring(text)
        assert svg.get("viewBox", "").startswith("0 0 390 ")
        assert "prefers-color-scheme:dark" in text
        texts = [each.text for each in svg.iter("{http://www.w3.org/2000/svg}text")]
        rows = [
            f"rank {rank} {row}" for rank in range(2) for row in ("copier 1", "producer", "consumer", "tensor core")
        ]
        assert [each for each in texts if each in rows] == rows
    tips = re.findall(r'class="full" stroke="none" d="M[0-9.]+ [0-9.]+l-3 (-?5)h6z', kept)
    assert set(tips) == {"5", "-5"}
    assert f"(images/{picture.PICTURE})" in (ROOT / "docs" / "comm.md").read_text(encoding="utf-8")
