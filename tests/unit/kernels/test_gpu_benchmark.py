"""The GPU benchmark without a GPU: its page and plot, what becomes of a process that dies, and a dry run with torch."""

import importlib.util
import json
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

import pytest

from benchmarks.gpu import kernels, measure, report
from release import figures
from tests.unit import volume


def a_case(ours, peer, **changes):
    times = {"cuBLAS": peer, "tlx_xdsl": ours}
    regime = {"times": {name: each for name, each in times.items() if each}, "clocks": [1980, None, 1965]}
    return {
        "flops": 2e9, "peer": "cuBLAS", "target": 1.0, "config": "large", "errors": {}, "cool": regime, "hot": regime,
    } | changes  # fmt: skip


def a_record(**changes):
    cases = {"a < b": a_case([1.0, 2.0, 4.0], [2.0, 2.2, 8.4])}
    return {
        "family": "gemm-fp16", "title": "GEMM", "checks": [], "cases": cases,
        "skipped": {}, "running": None, "finished": True,
        "machine": {"device": "H200", "triton": "3.6.0", "date": "2026-11-21"},
    } | changes  # fmt: skip


def test_ratio_is_the_median_of_the_rounds():
    """The ratio of the medians would be 1.1: what slows both down in a round leaves its ratio as it is."""
    assert report.ratio(a_case([1.0, 2.0, 4.0], [2.0, 2.2, 8.4]), "cool") == 2.0
    assert report.ratio(a_case([], [2.0]), "cool") is None
    assert report.geometric_mean([1.0, 4.0]) == 2.0


def test_page():
    page = report.page([a_record()], "2026-11-22", "images/performance.png")
    assert "H200, Triton 3.6.0, torch ?" in page
    assert "| a < b | 1 (1) | 1 (1) | **2.000** (2.000) | 1965 to 1980 (1965 to 1980) | large |" in page
    assert "Failed" not in page
    assert "Not finished" not in page


def test_page_says_what_is_missing():
    failed = {"label": "gemm 1x1x1", "error": None, "limit": 0, "ok": False, "why": "exit status 3"}
    cases = {"lost": a_case([], [2.0], errors={"tlx_xdsl": "exit status 3"})}
    page = report.page([a_record(checks=[failed], cases=cases, finished=False, skipped={"x": "y"})], "today", None)
    assert "- **Failed**: gemm 1x1x1: None exit status 3" in page
    assert "- lost: tlx_xdsl: exit status 3" in page
    assert "- 0 of 1 checks" in page
    assert "- **Not finished.**" in page
    assert "- **Stopped** at x: y" in page
    assert "| lost | 1 (1) | - | - |" in page


def test_plot_without_a_library(tmp_path, monkeypatch):
    monkeypatch.setattr(report.importlib.util, "find_spec", lambda name: None)
    path = report.plot([a_record()], tmp_path / "images" / "performance.png")
    assert path == tmp_path / "images" / "performance.svg"
    texts = [each.text for each in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]
    assert {"GEMM, TFLOP/s", "cuBLAS", "tlx_xdsl", "a < b"} <= set(texts)
    assert report.plot([a_record(cases={})], tmp_path / "none.png") is None


def in_bytes(times, peer="copy"):
    """A case of rows, where candidates move different numbers of bytes."""
    regime = {"times": times, "clocks": [1980]}
    traffic = {"copy": 2e9, "torch": 8e8, "tlx_xdsl": 3e9}
    return a_case([], []) | {"peer": peer, "traffic": traffic, "cool": regime, "hot": regime}


def test_rates_of_memory():
    """A candidate's rate is of what it moves itself, and so is the ratio."""
    case = in_bytes({"copy": [0.5, 0.5], "torch": [1.0, 0.1], "tlx_xdsl": [1.0, 1.0]})
    assert report.rates(case, "cool") == pytest.approx({"copy": 4000, "torch": 800 / 0.55, "tlx_xdsl": 3000})
    assert report.ratio(case, "cool") == 0.75
    # The faster of both in each round.
    assert report.ratio(case | {"peer": "copy, torch"}, "cool") == pytest.approx((0.75 + 0.375) / 2)
    assert report.ratio(case | {"peer": "torch, missing"}, "cool") == pytest.approx((3.75 + 0.375) / 2)
    assert report.ratio(case | {"peer": "missing"}, "cool") is None
    page = report.page([a_record(title="Rows", cases={"8 x 4": case})], "today", None)
    assert "## Rows, GB/s" in page
    assert "| ratio to copy | clock, MHz |" in page
    assert "| 8 x 4 | 4000 (4000) | 1455 (1455) | 3000 (3000) | **0.750** (0.750) | 1980" in page
    # What sentences elsewhere quote of it.
    assert figures.ratios(page, "Rows") == [0.75]
    assert "Rows, GB/s" in report.svg([a_record(title="Rows", cases={"8 x 4": case})])


def test_families_by_their_first_word():
    assert kernels.selected("gemm,decode,gemm-fp16") == ["gemm-fp16", "gemm-bf16", "decode"]
    assert kernels.selected("rows-softmax") == ["rows-softmax"]
    assert len(kernels.selected("rows")) == 15
    with pytest.raises(ValueError, match="unknown family 'row', expected some of gemm-fp16"):
        kernels.selected("row")


def test_pages_of_several_runs(tmp_path):
    files = [tmp_path / "one.json", tmp_path / "two.json"]
    for file, names in zip(files, (("decode", "gemm-fp16"), ("decode",)), strict=True):
        families = [a_record(family=name, title=file.stem) for name in names]
        file.write_text(json.dumps({"date": file.stem, "families": families}))
    records, date = kernels.merged(files)
    assert [(each["family"], each["title"]) for each in records] == [("gemm-fp16", "one"), ("decode", "two")]
    assert date == "two"


def child(tmp_path, body):
    """A stand-in for a family's process: `known` is what was written so far, `path` the file."""
    script = tmp_path / "child.py"
    script.write_text(
        "import json, pathlib, sys, time\n"
        "path = pathlib.Path(sys.argv[sys.argv.index('--result') + 1])\n"
        "empty = {'family': 'f', 'checks': [], 'cases': {}, 'skipped': {}, 'running': None}\n"
        "known = json.loads(path.read_text()) if path.exists() else empty\n"
        "def write(**changes): path.write_text(json.dumps(known | changes))\n" + body
    )
    return str(script)


def test_a_process_that_dies_loses_what_was_running_only(tmp_path, monkeypatch):
    body = (
        "if not known['skipped']:\n"
        "    write(running='b: ours', cases={'a': 1}, checked=True)\n"
        "    sys.exit(3)\n"
        "write(running=None, cases=known['cases'] | {'b': known['skipped']}, finished=True)\n"
    )
    monkeypatch.setattr(kernels, "__file__", child(tmp_path, body))
    known = kernels.supervise("f", tmp_path / "f.json", [], time.monotonic() + 60)
    assert known["cases"] == {"a": 1, "b": {"b: ours": "exit status 3"}}
    assert kernels.failures([known]) == 0


def test_a_check_that_hangs_is_a_failure(tmp_path, monkeypatch):
    body = (
        "if not known.get('checked'):\n"
        "    write(running='check 1')\n"
        "    time.sleep(60)\n"
        "write(running=None, cases={'a': 1}, finished=True)\n"
    )
    monkeypatch.setattr(kernels, "__file__", child(tmp_path, body))
    monkeypatch.setattr(kernels, "FAMILY_LIMIT_S", 2.0)
    # On a busy machine the process may not get as far as to say so within the limit.
    (tmp_path / "f.json").write_text(json.dumps(kernels.read(tmp_path / "f.json", "f") | {"running": "check 1"}))
    known = kernels.supervise("f", tmp_path / "f.json", [], time.monotonic() + 60)
    assert [check["label"] for check in known["checks"]] == ["check 1"]
    assert "still running" in known["checks"][0]["why"]
    assert kernels.failures([known]) == 1


def test_no_time_left(tmp_path):
    known = kernels.supervise("f", tmp_path / "f.json", [], time.monotonic())
    assert kernels.failures([known]) == 1


@pytest.mark.backend
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_dry_run(tmp_path):
    """All but the GPU runs: kernels in the interpreter, rivals compiled or on the CPU, made-up times."""
    families = (
        [
            "gemm-fp16", "attention-64-fp16", "attention-backward-bf16", "decode",
            "rows-rms-norm", "rows-layer-norm-backward", "rows-softmax-backward",
        ]
        if volume.is_full() else ["attention-64-fp16", "rows-layer-norm-backward"]
    )  # fmt: skip
    command = [sys.executable, kernels.__file__, "--dry", "--only", "4096", "--rounds", "2"]
    done = subprocess.run(
        [*command, "--families", ",".join(families), "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads((tmp_path / "performance.json").read_text())
    assert [each["family"] for each in figures["families"]] == families
    for record in figures["families"]:
        assert record["finished"]
        assert record["checks"]
        assert all(check["ok"] for check in record["checks"])
        assert record["cases"]
        assert all(case["errors"] == {} for case in record["cases"].values())


def test_without_a_gpu_one_line_says_so(monkeypatch):
    """The program ends before it writes anything."""
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SystemExit, match=r"^bench: error: expected a Hopper GPU .*, found no torch; nothing was"):
        measure.need_hopper("bench")
