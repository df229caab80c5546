"""`tlx gate` as a command: kernels of files and folders, launches of scripts, exit statuses, errors in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tlx_xdsl.tools.tlx import main

pytestmark = pytest.mark.backend

KERNELS = """import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def scale(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, at < n), at < n)


@tlx_xdsl.jit
def beyond(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at))
"""
TABLE = """

TLX_GATE = {
    "scale": "--grid cdiv(n,BLOCK) --size n=200 --arg x=randn:TYPE[n],y=zeros:TYPE[n] --set BLOCK=64,128",
    "beyond": "--grid 1 --arg x=randn[32],y=zeros[64]",
}
"""
SCRIPT = """import numpy as np
import triton
import triton.language as tl


@triton.jit
def negated(x, y, BLOCK: tl.constexpr, TYPE: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, -tl.load(x + at).to(TYPE))


x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
for _ in range(3):
    negated[(1,)](x, y, BLOCK=64, TYPE=tl.float32, num_warps=2)
assert (y == -x).all()
"""
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TLX_CACHE_DIR", str(tmp_path / "cache"))
    Path("kernels.py").write_text(KERNELS)

    def gate(*args: str) -> tuple[int, str, str]:
        status = main(["gate", *args, "-j", "1"])
        return status, *capsys.readouterr()

    return gate


def test_a_folder_with_tables_of_launches(run: Run):
    Path("folder").mkdir()
    Path("folder", "judged.py").write_text(KERNELS + TABLE)
    Path("folder", "others.py").write_text("raise SystemExit('not run')\n")
    status, out, _ = run("folder", "--set", "TYPE=fp16,fp32", "--set", "BLOCK=64", "--format", "json")
    assert status == 1
    found = [(each["kernel"], each["configuration"], each["outcome"]) for each in json.loads(out)["verdicts"]]
    assert found == [
        ("folder/judged.py:scale", "BLOCK=64 TYPE=fp16", "clean"),
        ("folder/judged.py:scale", "BLOCK=64 TYPE=fp32", "clean"),
        ("folder/judged.py:beyond", "BLOCK=64", "finding"),
    ]


def test_launches_of_a_script_are_recorded_and_equal_ones_judged_once(run: Run):
    Path("script.py").write_text(SCRIPT)
    status, out, _ = run("script.py", "--format", "json", "-o", "page.json")
    assert (status, out) == (0, "")
    (found,) = json.loads(Path("page.json").read_text())["verdicts"]
    assert (found["kernel"], found["configuration"], found["outcome"]) == (
        "script.py:negated", "BLOCK=64 TYPE=fp32 num_warps=2", "clean"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["kernels.py:scale"], "kernels.py:scale: a launch has a grid: give --grid and --arg"),
        (["kernels.py:scales", "--grid", "1"], "kernels.py: error: no kernel 'scales' in this file"),
        (["kernels.py:scale", "--grid", "1", "--set", "BLOCKS=64"],
         "--set: nothing of the launch of 'scale' is called 'BLOCKS'"),
        (["none.py"], "none.py: error: no such file"),
        (["kernels.py:scale", "--grid", "1", "--triton", "3.7.1", "--triton-path", "3.7.1=."],
         "--triton: expected Triton 3.7.1 in ., found no Triton"),
        (["kernels.py:scale", "--grid", "1", "--triton-path", "3.7.1"], "expected VERSION=FOLDER, found '3.7.1'"),
        (["kernels.py:scale", "--grid", "1", "--ptxas", "kernels.py"],
         "--ptxas: expected a ptxas that runs, found 'kernels.py'"),
        (["kernels.py:scale", "--grid", "1", "--arg", "x=randn[64],y=zeros[64],n=64"], "'scale' needs values: "),
    ],
)  # fmt: skip
def test_a_command_line_that_does_not_fit_is_an_error_of_one_line(run: Run, args: list[str], message: str):
    status, out, err = run(*args)
    assert (status, out) == (1, "")
    assert message in err
    assert "Traceback" not in err


def test_a_table_that_names_no_kernel(run: Run):
    Path("kernels.py").write_text(KERNELS + '\nTLX_GATE = {"scaled": "--grid 1"}\n')
    status, _, err = run("kernels.py")
    assert status == 1
    assert err.startswith("kernels.py: error: TLX_GATE names 'scaled', which is no kernel of this file")
