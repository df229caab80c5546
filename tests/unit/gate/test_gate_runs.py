"""Runs of a gate whose verdicts are made up: what is kept, processes that end, and reports."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Container, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kernels_to_judge import elementwise, scale

from tlx_xdsl.backend import Toolchain
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.gate import Manner, Report, Results, Subject, Verdict, gate, run as run_module
from tlx_xdsl.gate.configurations import combined, drawn, heuristics_of, tuned
from tlx_xdsl.gate.environments import toolchains
from tlx_xdsl.gate.judge import blanks
from tlx_xdsl.gate.report import FORMATS
from tlx_xdsl.gate.spread import Ended, TimeOver, spread, time_limit
from tlx_xdsl.runtime.host.autotune import Config, autotune, heuristics

pytestmark = pytest.mark.quick

MANNER = Manner([Toolchain("3.8.0"), Toolchain("3.9.0")])
SUBJECTS = [elementwise(scale), elementwise(scale, block=128)]


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Verdict], Verdict]], None]:
    """Has each verdict made by a function."""

    def give(made: Callable[[Verdict], Verdict]) -> None:
        def judge(subject: Subject, manner: Manner, texts: object, kept: Container[str]) -> Iterator[Verdict]:
            return (made(each) for each, of_ptx in blanks(subject, manner) if of_ptx is None and each.key not in kept)

        monkeypatch.setattr(run_module, "judge", judge)

    return give


def test_what_is_known_is_not_judged_again(made_up: Any, tmp_path: Path):
    made_up(lambda blank: replace(blank, outcome="clean"))
    file = tmp_path / "folder" / "results.jsonl"
    first = gate(SUBJECTS[:1], MANNER, results=Results(file))
    again = gate(SUBJECTS, MANNER, results=Results(file))
    assert (first.judged, again.judged) == (2, 2)
    assert again.verdicts[:2] == first.verdicts
    assert bool(again)
    # A line that was being written when the process ended is judged again; any other that is none is an error.
    text = file.read_text()
    file.write_text(text[:-40])
    assert gate(SUBJECTS, MANNER, results=Results(file)).judged == 1
    file.write_text(f"{{}}\n{text}")
    with pytest.raises(CompilationError, match="this line is no verdict") as error:
        Results(file)
    assert error.value.location is not None
    assert error.value.location.line == 1


def test_several_processes_do_each_once(made_up: Any):
    made_up(lambda blank: replace(blank, outcome="clean"))
    verdicts = gate(SUBJECTS * 2, MANNER, jobs=2).verdicts
    assert [each.configuration for each in verdicts[:4]] == ["BLOCK=64", "BLOCK=64", "BLOCK=128", "BLOCK=128"]


def test_another_kernel_or_launch_is_judged():
    keys = {next(blanks(each, MANNER))[0].key for each in (*SUBJECTS, elementwise(scale, 100), elementwise(scale))}
    assert len(keys) == 3


def test_a_gate_without_a_clean_verdict_is_shut(made_up: Any):
    made_up(lambda blank: blank)
    assert not gate(SUBJECTS, MANNER)


def test_a_process_that_ends_costs_what_it_was_at():
    def work(number: int) -> Iterator[int]:
        yield 10 * number
        if number == 1:
            os._exit(3)
        if number == 2:
            time.sleep(60)
        yield 10 * number + 1

    found: dict[int, list[Any]] = {}
    for number, item in spread(work, range(4), 2, 0.5):
        found.setdefault(number, []).append(item)
    ended = [[10, Ended("its process ended: status 3")], [20, Ended("0.5 s were over")]]
    assert [found[number] for number in range(4)] == [[0, 1], *ended, [30, 31]]


def endless() -> None:
    while True:
        with contextlib.suppress(Exception):
            sum(range(1000))


def test_time_that_is_over_ends_work_that_catches_exceptions():
    with pytest.raises(TimeOver), time_limit(0.05):
        endless()


# --- reports ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def report(made_up: Any, tmp_path: Path) -> Report:
    file = tmp_path / "scale.py"
    file.write_text("def scale():\n    store()\n")

    def judged(blank: Verdict) -> Verdict:
        if blank.triton == "3.9.0":
            return replace(blank, outcome="clean")
        if "128" in blank.configuration:
            return replace(blank, message="8 s were over")
        error = CompilationError("byte 3 is not written", notes=("read here",))
        return replace(blank.about(error, "finding", "Triton"), file=str(file), line=2)

    made_up(judged)
    return gate([*SUBJECTS, elementwise(scale, block=64, num_warps=2)], MANNER)


def test_the_text_says_a_thing_once_with_where_it_was_seen(report: Report):
    text = FORMATS["text"](report).splitlines()
    assert text[0].endswith("scale.py:2: error: byte 3 is not written")
    assert text[1:5] == [
        "note: read here",
        "note: stock Triton is at fault: the kernel is right as it is written",
        "note: Triton 3.8.0, sm_90a: BLOCK=64; BLOCK=64",
        "not run, 1 of 6: 8 s were over",
    ]
    assert text[5:7] == ["Triton 3.8.0: 2 finding, 1 not run", "Triton 3.9.0: 3 clean"]
    assert text[7].startswith("6 verdicts, in ")


def test_json_has_all_verdicts(report: Report):
    made = json.loads(FORMATS["json"](report))
    assert made["counts"] == {"clean": 3, "finding": 2, "differs": 0, "not run": 1}
    assert (made["ok"], made["judged"]) == (False, 6)
    assert made["verdicts"][0]["line"] == 2


def test_the_page_has_a_table_of_kernels_and_tritons(report: Report):
    page = FORMATS["page"](report).splitlines()
    assert "| kernel | target | 3.8.0 | 3.9.0 |" in page
    assert "| scale | sm_90a | 2 finding<br>1 not run | 3 clean |" in page
    assert "## scale: finding" in page


# --- configurations and Tritons ---------------------------------------------------------------------------------------


def test_configurations_of_a_tuner_and_choices():
    configs = [Config({"BLOCK": 64}, num_warps=2), Config({"BLOCK": 128}, num_warps=4)]
    kernel = autotune(configs, ["n"])(heuristics({"EVEN": lambda given: given["n"] % 2 == 0})(scale))
    listed = tuned(kernel)
    assert [(each["BLOCK"], each["num_warps"], each["num_stages"]) for each in listed] == [(64, 2, 3), (128, 4, 3)]
    assert heuristics_of(kernel)["EVEN"]({"n": 3}) is False
    assert tuned(scale) == [{}]
    # A choice comes before the list: what becomes equal is there once.
    assert len(combined(listed, {"num_warps": [4, 8], "BLOCK": [64]})) == 2
    assert len(combined(listed, {"num_stages": [1, 2]})) == 4


def test_a_sample_is_the_same_each_time():
    numbers = list(range(50))
    assert drawn(numbers, 5, 1) == drawn(numbers, 5, 1) != drawn(numbers, 5, 2)
    assert drawn(numbers, 5, 1) == sorted(drawn(numbers, 5, 1))
    assert drawn(numbers, None, 0) == drawn(numbers, 60, 0) == numbers


def test_pip_fetches_a_version_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("TLX_CACHE_DIR", str(tmp_path))
    commands: list[list[str]] = []

    def fetch(command: list[str], **_: object) -> Any:
        commands.append(command)
        folder, version = Path(command[command.index("--target") + 1]), command[-1].partition("==")[2]
        if version == "3.7.1":
            (folder / f"triton-{version}.dist-info").mkdir(parents=True)
        return type("Done", (), {"returncode": int(version != "3.7.1"), "stderr": "ERROR: no matching distribution"})

    monkeypatch.setattr("tlx_xdsl.gate.environments.subprocess.run", fetch)
    monkeypatch.setattr("tlx_xdsl.gate.environments.installed_toolchain", lambda: None)
    for _ in range(2):
        (found,) = toolchains(["3.7.1"], {})
        assert found == Toolchain("3.7.1", tmp_path / "gate" / "triton-3.7.1")
    assert len(commands) == 1
    with pytest.raises(CompilationError, match=r"Triton 3\.8\.9 can't be fetched: ERROR: no matching distribution"):
        toolchains(["3.8.9"], {})
    with pytest.raises(CompilationError, match="no Triton is installed here"):
        toolchains(["installed"], {})
    with pytest.raises(CompilationError, match=r"--triton: .*2\.0"):
        toolchains(["2.0.0"], {})
