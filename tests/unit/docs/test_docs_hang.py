"""The page about hangs shows what happens: its kernels run, and each mistake has the report beside it."""

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.unit.docs.documents import ROOT, blocks, changed, consoles, printed, shows, stable
from tlx_xdsl.interpreter.faults import Deadlock
from tlx_xdsl.tools.tlx import main

PAGE = "docs/debug-a-hang.md"


@pytest.fixture(autouse=True)
def _inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def sections() -> dict[str, str]:
    """The classic mistakes: what stands below each heading."""
    text = (ROOT / PAGE).read_text(encoding="utf-8").partition("## The classic mistakes")[2]
    title_and_text = [part.partition("\n") for part in text.split("\n### ")[1:]]
    return {title: text for title, _, text in title_and_text}


def test_the_real_one():
    gemm, *_ = blocks(PAGE, "python")
    (right, right_output), (wrong, report), (again, repaired_output), _ = consoles(PAGE)
    Path("gemm.py").write_text(gemm)
    assert stable(printed(right)) == stable(right_output)
    assert "largest error" in right_output
    assert wrong == right.replace("256", "200")
    assert printed(wrong) == report
    # The lines that the text names.
    lines = gemm.splitlines()
    assert "barrier_wait(full[slot], phase)" in lines[25]
    assert "barrier_expect_bytes" in lines[18]
    assert "b_desc, b[slot]" in lines[20]

    (command,) = [line for block in blocks(PAGE, "sh") for line in block.splitlines()]
    assert main(shlex.split(command.removeprefix("tlx "))) == 1
    events = json.loads(Path("hang.json").read_text())["traceEvents"]
    rows = {each["tid"]: each["args"]["name"] for each in events if each["name"] == "thread_name"}
    assert {rows[each["tid"]]: each["name"] for each in events if each.get("args", {}).get("unfinished")} == {
        "partition 0": "wait full[1] phase 1",
        "the default task": "wait for the end of partition 0",
    }
    assert [each["name"] for each in events if "full" in rows.get(each.get("tid"), "")][
        -1
    ] == "full[0] completes phase 1"

    Path("gemm.py").write_text(changed(gemm, blocks(PAGE, "diff")[0]))
    assert again == f"{wrong} --schedule adversarial"
    assert stable(printed(again)) == stable(repaired_output)
    assert "largest error" in repaired_output


def run_test_of_the_page(monkeypatch, source: str, k: int, schedule: str) -> None:
    """Run the test function that the page shows, with a version of the kernel."""
    _, test_gemm, _ = blocks(PAGE, "python")
    Path("gemm.py").write_text(source)
    monkeypatch.syspath_prepend(str(Path.cwd()))
    monkeypatch.delitem(sys.modules, "gemm", raising=False)
    namespace: dict = {}
    exec(compile(test_gemm, "test_gemm.py", "exec"), namespace)
    namespace["test_gemm"](k, schedule)
    monkeypatch.delitem(sys.modules, "gemm")


@pytest.mark.parametrize("k", [192, 200])
def test_the_test_that_the_page_shows(monkeypatch, k):
    gemm, test_gemm, _ = blocks(PAGE, "python")
    assert f"{k}," in re.search(r'parametrize\("k", (.*)\)', test_gemm)[1]
    run_test_of_the_page(monkeypatch, changed(gemm, blocks(PAGE, "diff")[0]), k, "adversarial")
    if k == 200:
        with pytest.raises(Deadlock):
            run_test_of_the_page(monkeypatch, gemm, k, "adversarial")


@pytest.mark.parametrize("schedule", ["round-robin", "random", "adversarial"])
def test_the_pipeline_without_a_mistake(schedule):
    *_, pipeline = blocks(PAGE, "python")
    *_, (command, output) = consoles(PAGE)
    Path("pipeline.py").write_text(pipeline)
    assert stable(printed(command).replace(schedule, "adversarial")) == stable(output)
    # As long as the slots that a task holds.
    assert "largest error 0.0e+00" in printed(f"{command} --schedule {schedule} --constexpr SLOTS=2")


@pytest.mark.parametrize("title", sections())
def test_a_classic_mistake(title):
    text, (*_, pipeline) = sections()[title], blocks(PAGE, "python")
    command = consoles(PAGE)[-1][0].removesuffix(" --schedule adversarial")
    diff = re.search(r"^```diff\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    options = re.search(r"`(--constexpr \S+)`", text)
    assert (diff is None) != (options is None)
    Path("pipeline.py").write_text(pipeline if diff is None else changed(pipeline, diff[1]))
    output = printed(command if options is None else f"{command} {options[1]}")
    shown = re.search(r"^```text\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)[1]
    assert "error: " in shown
    assert shows(shown, output), output
    if "fence" in title:
        assert "largest error 0.0e+00" in printed(f"{command} --stage ttgir")


def test_the_usual_suspects_are_all_there():
    text = " ".join(sections()).lower()
    for word in ("arrive count", "phase", "expect", "fence", "ring", "named barriers"):
        assert word in text
