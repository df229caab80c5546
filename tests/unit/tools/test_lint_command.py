"""`tlx lint`: findings of each kind, what could not be checked, the formats, and the exit status."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tlx_xdsl.tools.tlx import main

KERNELS = '''"""Kernels with something wrong."""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def twice(x):
    return x + x


@tlx_xdsl.jit
def front(x):
    tl.store(x, undefined_name)


@tlx_xdsl.jit
def budget(x):
    buffers = tlx.local_alloc((8192,), tl.float32, 16)
    tlx.local_store(buffers[0], tl.zeros((8192,), tl.float32))
    tl.store(x + tl.arange(0, 8192), tlx.local_load(buffers[0]))


@tlx_xdsl.jit
def good(x, n=5, BLOCK: tl.constexpr = 8):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, twice(tl.load(x + at, at < 20)), at < 20)


@tlx_xdsl.jit
def outside(x, BLOCK: tl.constexpr = 8):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, 1.0)


@tlx_xdsl.jit
def same(x):
    tl.store(x, 1.0)


@tlx_xdsl.jit
def untyped(x, n):
    tl.store(x, n)


TLX_COMPILE = {name: {"signature": {"x": "*fp32"}} for name in ("front", "budget", "good", "outside", "same")}
'''


@pytest.fixture
def lint(tmp_path, capsys):
    """Lints the file, or a kernel in it; the exit status and the lines, without the folder."""
    (tmp_path / "kernels.py").write_text(KERNELS)

    def run(kernel="", *options):
        file = f"{tmp_path / 'kernels.py'}{kernel and ':'}{kernel}"
        status = main(["lint", file, *options])
        return status, capsys.readouterr().out.replace(f"{tmp_path}/", "")

    return run


def test_a_file_is_checked_kernel_by_kernel(lint):
    status, said = lint()
    *lines, summary = said.splitlines()
    assert status == 1
    assert lines == [
        "kernels.py:15:17: error: name 'undefined_name' is not defined [frontend]",
        "kernels.py:20:15: error: 'budget' needs 524,288 B of shared memory, sm_90a has 232,448 [budget]",
        "kernels.py:42: remark: 'untyped' is not checked: 'x', 'n' have no type or value, in TLX_COMPILE or by --arg "
        "[unchecked]",
    ]
    assert summary.startswith("5 kernels checked in ")
    assert summary.endswith(" s: 2 errors, 0 warnings, 1 remark")


def test_a_kernel_without_faults_has_status_0(lint):
    status, said = lint("good")
    assert status == 0
    assert said.startswith("1 kernel checked in ")
    assert said.endswith(" s: 0 errors, 0 warnings\n")


def test_types_may_be_given_for_one_kernel(lint):
    assert lint("untyped", "--signature", "x=*fp32", "--signature", "n=i32")[0] == 0
    assert lint("untyped", "--arg", "x=empty:fp32[4]", "--arg", "n=1")[0] == 0


def test_an_access_out_of_bounds_is_an_error(lint):
    status, said = lint("outside", "--grid", "3", "--arg", "x=empty:fp32[20]")
    assert status == 1
    assert said.startswith("kernels.py:34:5: error: 'x': program (2, 0, 0) leaves the array")
    assert "[addresses]" in said
    assert lint("good", "--grid", "3", "--arg", "x=empty:fp32[20]")[0] == 0


def test_programs_that_write_the_same_bytes_are_a_warning(lint):
    status, said = lint("same", "--grid", "2", "--arg", "x=empty:fp32[20]")
    assert status == 0
    assert ": warning: programs " in said
    assert said.endswith("0 errors, 1 warning\n")


def test_what_is_of_one_kernel_is_refused_for_a_file(lint, capsys):
    assert main(["lint", "kernels.py", "--grid", "2"]) == 1
    assert "are of one kernel: kernels.py:KERNEL" in capsys.readouterr().err


def test_a_file_that_can_not_be_run_is_a_finding(tmp_path, capsys):
    (tmp_path / "broken.py").write_text("import tlx_xdsl\n\nx = (\n")
    assert main(["lint", str(tmp_path / "broken.py")]) == 1
    assert "broken.py:3:5: error: '(' was never closed [file]" in capsys.readouterr().out


def test_github_shows_findings_at_their_lines(lint):
    _, said = lint("front", "--format", "github")
    assert said.startswith("::error file=kernels.py,line=15,col=17::name 'undefined_name' is not defined\n")


def test_sarif_names_the_tool_and_the_rules(lint):
    (run,) = json.loads(lint("", "--format", "sarif")[1])["runs"]
    assert run["tool"]["driver"]["name"] == "tlx lint"
    assert [each["ruleId"] for each in run["results"]] == ["frontend", "budget", "unchecked"]
    assert {each["id"] for each in run["tool"]["driver"]["rules"]} >= {"frontend", "budget", "unchecked"}
    assert run["results"][0]["message"]["text"] == "name 'undefined_name' is not defined"


def test_junit_has_a_case_for_each_kernel(lint):
    root = ElementTree.fromstring(lint("", "--format", "junit")[1].partition("?>")[2])
    assert root[0].get("name") == "tlx lint"
    assert [case.get("name") for case in root.iter("testcase")] == ["front", "budget", "good", "outside", "same"]
    assert [each.get("type") for each in root.iter("failure")] == ["frontend", "budget"]


STUCK = """import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def stuck(x):
    full = tlx.alloc_barriers(1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tlx.barrier_wait(full[0], 0)
        with tlx.async_task(num_warps=4):
            tl.store(x, 1.0)


TLX_COMPILE = {"stuck": {"signature": {"x": "*fp32"}}}
"""


def test_what_the_prover_refutes_is_a_warning(tmp_path, capsys):
    (tmp_path / "stuck.py").write_text(STUCK)

    def lint(*options):
        status = main(["lint", str(tmp_path / "stuck.py"), *options])
        return status, capsys.readouterr().out.replace(f"{tmp_path}/", "").splitlines()

    status, (first, summary) = lint()
    assert first == (
        "stuck.py:11:13: warning: deadlock: the default task waits at 'full[0]', which lacks 1 of 1 arrivals [proof]"
    )
    assert (status, summary.rpartition(": ")[2]) == (0, "0 errors, 1 warning")
    assert lint("--strict")[0] == 1
    # Without time nothing is asked of it.
    assert len(lint("--seconds", "0", "--strict")[1]) == 1


def test_several_files_are_one_report(tmp_path, capsys):
    for name, body in (("one", "tl.store(x, nothing)"), ("two", "tl.store(x, 1.0)"), ("three", "tl.store(y, 1.0)")):
        (tmp_path / f"{name}.py").write_text(
            "import tlx_xdsl\nimport tlx_xdsl.language as tl\n\n\n@tlx_xdsl.jit\ndef k(x):\n    " + body
            + '\n\n\nTLX_COMPILE = {"k": {"signature": {"x": "*fp32"}}}\n'
        )  # fmt: skip
    (tmp_path / "broken.py").write_text("x = (\n")
    files = [str(tmp_path / f"{name}.py") for name in ("one", "two", "broken", "three", "two")]
    assert main(["lint", *files]) == 1
    *lines, summary = capsys.readouterr().out.replace(f"{tmp_path}/", "").splitlines()
    assert [line.partition(": error: ")[0] for line in lines] == ["one.py:7:17", "broken.py:1:5", "three.py:7:14"]
    assert summary.startswith("3 kernels checked in ")
    assert main(["lint", files[1], f"{files[3]}:k", "--format", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert [record["file"] for record in report["records"]] == [files[3]]
    assert main(["lint", *files[:2], "--arg", "x=1"]) == 1
    assert "are of one kernel" in capsys.readouterr().err


def test_the_hook_is_one_that_pre_commit_runs(tmp_path):
    pytest.importorskip("pre_commit")
    root = Path(__file__).parents[3]
    if not (root / ".git").exists():
        pytest.skip("this is no clone")
    shutil.copy(root / ".pre-commit-hooks.yaml", tmp_path / ".pre-commit-hooks.yaml")
    (tmp_path / "my_kernels.py").write_text(KERNELS)
    (tmp_path / "other.py").write_text("raise SystemExit('not to be run')\n")
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.com"]
    for command in ([*git, "init", "-q"], [*git, "add", "."], [*git, "commit", "-qm", "all"]):
        subprocess.run(command, cwd=tmp_path, check=True)
    environment = {
        **os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PRE_COMMIT_HOME": str(tmp_path / "cache"), "PYTHONPATH": str(root),
    }  # fmt: skip
    hook = [sys.executable, "-m", "pre_commit", "try-repo", ".", "tlx-lint", "--all-files"]
    ran = subprocess.run(hook, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.returncode == 1, ran
    assert "my_kernels.py:15:17: error: name 'undefined_name' is not defined [frontend]" in ran.stdout
    assert "other.py" not in ran.stdout
