"""docs/gate.md shows what happens: its kernel is judged as there, its Python runs, its YAML is what CI systems read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.versions import INSTALLED
from tlx_xdsl.tools.tlx import main

PAGE = (Path(__file__).parents[3] / "docs" / "gate.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.backend
def test_the_kernel_is_judged_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    module, script = blocks("python")
    Path("kernels.py").write_text(module)
    (shown,) = blocks("console")
    expected = {line.partition(": ")[0]: line for line in shown.splitlines() if line.startswith("Triton ")}
    status = main(["gate", "kernels.py", "-j", "1"])
    out = capsys.readouterr().out.splitlines()
    assert status == int(INSTALLED == "3.6.0")
    if f"Triton {INSTALLED}" in expected:
        assert expected[f"Triton {INSTALLED}"] in out
    if INSTALLED == "3.6.0":
        assert out[0] == shown.splitlines()[1]
    elif INSTALLED != "3.7.0":
        exec(compile(script, "gate.md", "exec"), {})


def test_the_workflow_and_the_hook_are_of_the_form_that_their_programs_read():
    workflow, hooks = (yaml.safe_load(each) for each in blocks("yaml"))
    steps: list[dict[str, Any]] = workflow["jobs"]["gate"]["steps"]
    # YAML 1.1 reads the key `on` as true.
    assert workflow[True] == ["pull_request"]
    assert all(("uses" in each) != ("run" in each) for each in steps)
    assert steps[-1]["run"].startswith("tlx gate kernels/ --triton 3.6.0,3.7.1,3.8.0,3.9.0 --results verdicts.jsonl")
    (hook,) = hooks["repos"][0]["hooks"]
    assert {"id", "name", "entry", "language", "files"} <= hook.keys()
    assert re.match(hook["files"], "kernels/softmax.py")
    for command in (steps[-1]["run"], hook["entry"]):
        options = re.findall(r"--[a-z-]+", command)
        assert set(options) <= set(re.findall(r"--[a-z-]+", gate_help()))


def gate_help() -> str:
    from tlx_xdsl.tools.tlx import parser

    return parser("gate").commands["gate"].format_help()
