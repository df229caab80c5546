"""`tlx run --timeline`, `tlx sweep --clock`, `tlx explain --why-slow`: what they ask the clock, and what they print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.runtime.clock.stand_in import StandIn
from tlx_xdsl.runtime.clock import why_slow
from tlx_xdsl.timing import predict as clock
from tlx_xdsl.timing.predict import ENDS_EARLY
from tlx_xdsl.timing.timeline import Timeline
from tlx_xdsl.tools.launch_line.clocked import hertz_of
from tlx_xdsl.tools.tlx import main

pytestmark = pytest.mark.backend

KERNEL = """import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def scale(x, y, n, BLOCK: tl.constexpr, STAGES: tl.constexpr = 1):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, STAGES * tl.load(x + at, at < n), at < n)
"""
LAUNCH = ["--arg", "x=randn:fp32[4096]", "--arg", "y=empty:fp32[4096]", "--size", "n=4096", "--grid", "cdiv(n, BLOCK)"]


@pytest.fixture
def tlx(in_this_process, tmp_path, monkeypatch, capsys):
    """Runs a command about the kernel with a stand-in for the clock; the exit status and both streams."""
    monkeypatch.chdir(tmp_path)
    Path("scale.py").write_text(KERNEL)

    stand_in = StandIn()
    monkeypatch.setattr(clock, "predict", stand_in)

    def run(command, *options):
        status = main([command, "scale.py:scale", *options])
        return status, *capsys.readouterr()

    run.asked, run.stand_in = stand_in.asked, stand_in
    return run


def test_a_timeline_is_written_in_the_form_that_the_file_s_name_says(tlx):
    launch = [*LAUNCH, "--constexpr", "BLOCK=1024", "--clock", "1 GHz", "--timeline"]
    assert tlx("run", *launch, "out/t.json") == (
        0, "scale: 100,000 cycles predicted on H200, 0.1 ms at 1 GHz\nwritten to out/t.json\n", ""
    )  # fmt: skip
    found = Timeline.from_json(Path("out/t.json").read_text().strip())
    assert (found.launch_cycles, found.hertz) == (100_000.0, 1e9)
    (asked,) = tlx.asked
    # Numbers in arrays are not made up: nothing depends on them.
    assert not asked["args"][0].any()
    assert asked["grid"] == (4, 1, 1)
    assert tlx("run", *launch, "t.html", "--chip", "H100")[0] == 0
    assert Path("t.html").read_text().startswith("<!doctype html>")
    assert tlx.asked[1]["chip"] == "H100"
    assert tlx("run", *launch, "t.perfetto.json")[0] == 0
    assert "traceEvents" in json.loads(Path("t.perfetto.json").read_text())
    status, out, _ = tlx("run", *launch)
    assert status == 0
    assert "scale, predicted on H200" in out


def test_configurations_stand_beside_each_other(tlx):
    status, out, _ = tlx(
        "run", *LAUNCH, "--constexpr", "BLOCK=1024", "--timeline", "t.json", "--beside", "BLOCK=256,num_warps=8",
        "--beside", "BLOCK=512",
    )  # fmt: skip
    assert status == 0
    assert out.splitlines()[1].startswith("scale BLOCK=256, num_warps=8: 100,000 cycles")
    assert [(each["grid"][0], each["num_warps"]) for each in tlx.asked] == [(4, 4), (16, 8), (8, 4)]
    found = [Timeline.from_json(line).configuration for line in Path("t.json").read_text().splitlines()]
    assert found == ["BLOCK=1024, num_warps=4", "BLOCK=256, num_warps=8", "BLOCK=512, num_warps=4"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--timeline", "t.txt"], "--timeline: expected a file .html, .json or .perfetto.json, or -, found 't.txt'"),
        (["--timeline", "--check", "y=x"], "--check: not with --timeline, which predicts the launch and runs nothing"),
        (["--timeline", "--chip", "H900"], "the clock has no constants of 'H900', only of H200"),
        (["--timeline", "--beside", "BLOK=3"], "--beside: 'BLOK' can't be chosen: expected a compile-time argument"),
        (["--timeline", "--clock", "fast"], "--clock: expected a frequency such as 1.7GHz or 1755MHz, found 'fast'"),
        (["--timeline", "--target", "sm_80"], "the clock knows no GPU of sm_80: it has sm_90 (H200)"),
        (["--beside", "BLOCK=64"], "--beside: only with --timeline"),
    ],
)
def test_what_does_not_fit_a_timeline_is_refused(tlx, options, message):
    status, _, err = tlx("run", *LAUNCH, "--constexpr", "BLOCK=1024", *options)
    assert status == 1
    assert f"error: {message}" in err
    assert not tlx.asked


def test_frequencies():
    assert hertz_of("1.7GHz") == 1.7e9
    assert hertz_of(" 1755 MHz") == 1755e6
    assert hertz_of("1.98e9") == 1.98e9
    assert hertz_of(None) is None


def test_a_sweep_is_ranked_by_predicted_cycles_and_ties_are_said(tlx):
    by_block = {64: 2000.0, 128: 1010.0, 256: 1000.0}
    tlx.stand_in.cycles = lambda asked: by_block[4096 // asked["grid"][0]]
    sweep = ["--set", "BLOCK=64,100,128,256", *LAUNCH, "-q", "--clock"]
    status, out, _ = tlx("sweep", *sweep, "1GHz", "--csv", "t.csv")
    assert status == 0
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["ms", "cycles", "of", "best", "BLOCK"]
    assert lines[1][:4] == ["0.001", "1,000", "100%", "256"]
    assert lines[2][:4] == ["0.00101", "1,010", "99%", "128"]
    assert lines[3][:4] == ["0.002", "2,000", "50%", "64"]
    assert "must have a power of two" in out.splitlines()[4]
    assert (
        "the model can't tell these apart, they differ by less than 2%: BLOCK=256; BLOCK=128\n"
        "scale: 3 of 4 configurations predicted for H200 by the clock: nothing was measured; "
    ) in out
    assert ",predicted," in Path("t.csv").read_text()
    status, out, _ = tlx("sweep", "--set", "BLOCK=64,100", *sweep[2:], "--json")
    assert [each.get("cycles") for each in json.loads(out)["configurations"]] == [2000, None]
    assert "at least" not in out
    tlx.stand_in.notes = [ENDS_EARLY]
    assert "at least" in tlx("sweep", "--set", "BLOCK=64,128", *sweep[2:])[1]


def test_where_the_clock_knows_no_gpu_the_roofline_remains(tlx):
    status, out, _ = tlx("sweep", "--set", "BLOCK=64,128", *LAUNCH, "-q", "--clock", "--target", "sm_80")
    assert status == 0
    assert "2 of 2 configurations estimated for sm_80" in out
    assert not tlx.asked


def test_a_sweep_by_the_clock_needs_a_launch(tlx):
    assert "--clock: launches have a grid: give --grid" in tlx("sweep", "--set", "BLOCK=64", "--clock")[2]
    assert "--chip: only with --clock" in tlx("sweep", "--set", "BLOCK=64", "--bench", *LAUNCH, "--chip", "H100")[2]


def test_what_is_slow_is_printed_with_its_line(tlx, monkeypatch):
    seen = []

    def explained(configuration, chip, hertz):
        seen.append((configuration.sizes, chip, hertz))
        prediction = configuration.predict(chip, hertz)
        place = why_slow.SourceLocation("scale.py", 8, 31)
        finding = why_slow.Finding("latency", "warps wait for this load", 0.5, place, "load more at once")
        return why_slow.Explained(prediction, (why_slow.diagnostic(finding),))

    monkeypatch.setattr("tlx_xdsl.tools.commands.explain_slow.why_slow", explained)
    options = ["--constexpr", "BLOCK=1024", "--why-slow"]
    status, out, _ = tlx("explain", *LAUNCH, *options, "--chip", "H100")
    assert status == 0
    assert seen == [((4, 1, 1), "H100", None)]
    assert out.splitlines()[0] == "scale: 100,000 cycles predicted on H100, 0.05 ms at 2 GHz; bound by latency"
    assert "scale.py:8:31: warning: warps wait for this load" in out
    assert "note: load more at once" in out
    assert "--why-slow: launches have a grid: give --grid" in tlx("explain", *options)[2]
    assert "--grid: only with --why-slow" in tlx("explain", *LAUNCH)[2]
