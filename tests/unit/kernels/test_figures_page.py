"""The page of all figures: what is written again from the records, what runs become, and what other pages quote."""

import copy
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from benchmarks.gpu import dashboard, kernels
from release import figures

ROOT = Path(__file__).parents[3]

RECORDS = dashboard.read()


def record(family):
    return next(each for each in RECORDS if each["family"] == family)


def test_page_and_plot_are_those_of_the_records():
    why = "python -m benchmarks.gpu.dashboard"
    assert (ROOT / "docs/figures.md").read_text() == dashboard.page(RECORDS), why
    assert (ROOT / "docs/images/figures.svg").read_text() == dashboard.plot(RECORDS), why
    # In one of them a figure that changes shows.
    changed = copy.deepcopy(RECORDS)
    changed[0]["cases"][0]["ratio"] += 0.1
    assert dashboard.page(changed) != dashboard.page(RECORDS)
    assert dashboard.plot(changed) != dashboard.plot(RECORDS)


def test_records_say_where_they_come_from():
    for each in RECORDS:
        assert {"family", "title", "unit", "versions", "cases", *dashboard.RECORDED} <= each.keys()
        assert each["card"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", each["date"])
        assert each["versions"]["torch"]
        for case in each["cases"]:
            assert case["ratio"] is None or 0.1 < case["ratio"] < 10


@pytest.mark.parametrize("family", ["all_reduce", "linear-cross-entropy", "all_gather_gemm"])
def test_ratios_are_those_of_the_times(family):
    for case in record(family)["cases"]:
        assert case["ratio"] == pytest.approx(min(case["peers"].values()) / case["ours"], abs=6e-4)


def test_plot_fits_a_phone_in_light_and_dark():
    text = dashboard.plot(RECORDS)
    root = ElementTree.fromstring(text)
    width = float(root.get("viewBox").split()[2])
    assert width <= 390
    for circle in root.iter("{http://www.w3.org/2000/svg}circle"):
        assert 0 < float(circle.get("cx")) < width
    assert "prefers-color-scheme:dark" in text
    assert len(list(root.iter("{http://www.w3.org/2000/svg}circle"))) == sum(map(len, map(dashboard.ratios, RECORDS)))


def test_sentences_quote_the_records():
    """README says what the records of these families have."""
    text = (ROOT / "README.md").read_text()
    families = {"gemm-fp16": ["gemm-fp16"], "attention-fp16": ["attention-128-fp16", "attention-64-fp16"]}
    quoted = dict(re.findall(r"<!-- figure: ([\w-]+) -->(.*?)<!-- end -->", text))
    assert {"gemm-fp16", "attention-fp16"} <= quoted.keys()
    for name, said in quoted.items():
        of = name.removesuffix("-mean").removesuffix("-count")
        values = [each for family in families[of] for each in dashboard.ratios(record(family))]
        assert figures.FIGURES[name][1](values) == said, name


def test_the_page_of_kernels_quotes_the_records():
    text = (ROOT / "docs/kernels.md").read_text()
    rows = [line.split("|")[1:-1] for line in text.splitlines() if re.match(r"\| [^|]*\| \d+\.\d \| \d+\.\d \|", line)]
    cases = {case["problem"].removeprefix("forward "): case for case in record("linear-cross-entropy")["cases"]}
    both, forward = cases["and both gradients"], cases["alone"]
    in_bf16, longer = (cases[f"and both gradients, {each}"] for each in ("sums in bf16", "4096 rows"))
    said = {name.strip(): [each.strip() for each in row] for name, *row in rows}
    assert said["`linear_cross_entropy`"][0] == f"{both['ours']:.1f}"
    assert said["`linear_cross_entropy`"][3] == f"{forward['ours']:.1f}"
    assert said['with `sum_dtype="bf16"`'][0] == f"{in_bf16['ours']:.1f}"
    assert said["with `logits_bytes=1100 << 20` (4096 rows)"][0] == f"{longer['ours']:.1f}"
    for name, peer in (
        ("torch", "torch"),
        ("`torch.compile`", "torch.compile"),
        ("Liger 0.8.5 (sums in bf16)", "Liger"),
    ):
        assert said[name][0] == f"{both['peers'][peer]:.1f}"
        assert said[name][3] == f"{forward['peers'][peer]:.1f}"


def test_runs_become_records(tmp_path, monkeypatch):
    monkeypatch.setattr(dashboard, "DOCS", tmp_path)
    (tmp_path / "images").mkdir()
    (tmp_path / "figures.json").write_text(json.dumps([record("all_gather_gemm"), record("gemm-fp16")]))
    product = {"function": "all_gather_gemm", "shape": "8x8x8", "NCCL": 30.0, "ours": 20.0}
    run = {"world": 2, "card": "NVIDIA H200", "torch": "2", "nccl": "3", "products": [product]}
    (tmp_path / "ranks-2.json").write_text(json.dumps(run))
    dashboard.main(["--add", str(tmp_path / "ranks-2.json"), "--set", "commit=0123abcd"])
    first, second = dashboard.read()
    assert first == record("gemm-fp16")
    assert second["cases"] == [
        {"problem": "8x8x8", "ours": 20.0, "peers": {"NCCL and mm": 30.0}, "beside": "NCCL and mm", "ratio": 1.5}
    ]
    assert second["commit"] == "0123abcd"
    assert "commit 0123abcd; driver not recorded" in (tmp_path / "figures.md").read_text()
    with pytest.raises(SystemExit):
        dashboard.main(["--add", str(tmp_path / "images")])


def test_runs_of_rows_become_the_committed_records():
    """The records of rows are what docs/performance-rows.json has, whose page the release's check reads."""
    run = json.loads((ROOT / "docs/performance-rows.json").read_text())
    for each in dashboard.of_kernels(run):
        assert record(each["family"]) == each


@pytest.mark.parametrize("script", ["launch.py", "kernels.py", "linear_cross_entropy.py"])
def test_without_a_gpu_programs_say_so_in_one_line(script, tmp_path):
    command = [sys.executable, str(ROOT / "benchmarks/gpu" / script), *(["--quick"] if script == "kernels.py" else [])]
    environment = {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 1
    assert re.fullmatch(r"\w+\.py: error: expected a Hopper GPU .*; nothing was measured or written\n", done.stderr)
    assert done.stdout == ""
    assert not list(tmp_path.iterdir())


def test_the_quick_families_exist():
    assert kernels.selected(",".join(kernels.QUICK_FAMILIES)) == list(kernels.QUICK_FAMILIES)
    assert kernels.QUICK_BUDGET_S < 180
