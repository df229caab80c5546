"""`tlx check` and `tlx_xdsl.check`: what they find in any order, and how they say it."""

import json
from pathlib import Path

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.runtime.simulate.options import STAGES
from tlx_xdsl.tools.tlx import main

# Kernels are read by the frontend, not run by Python.
# pyright: basic

EXAMPLES = Path(__file__).parents[3] / "examples"


@tlx_xdsl.jit
def hand_over(x, flag, out, SEM: tl.constexpr):
    offsets = tl.arange(0, 32)
    if tl.program_id(0) == 0:
        tl.store(x + offsets, offsets)
        tl.atomic_xchg(flag, 1, sem=SEM)
    else:
        while tl.atomic_add(flag, 0, sem="acquire") == 0:
            pass
        tl.store(out + offsets, tl.load(x + offsets))


@tlx_xdsl.jit
def late(flag, out):
    """Goes wrong only where the second task is ahead of the first one."""
    full = tlx.alloc_barriers(1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tl.atomic_xchg(flag, 1)
            tlx.barrier_wait(full[0], 0)
        with tlx.async_task(num_warps=1):
            if tl.atomic_add(flag, 0) == 1:
                tlx.barrier_arrive(full[0])


@tlx_xdsl.jit
def tickets(out, count):
    tl.store(out + tl.program_id(0), tl.atomic_add(count, 1))


def arrays():
    return np.zeros(32, np.int32), np.zeros(1, np.int32), np.zeros(32, np.int32)


def test_nothing_is_found():
    given = arrays()
    report = tlx_xdsl.check(hand_over, 2, *given, "release", seconds=0.1, launches=1, stages=STAGES)
    assert report
    assert report.runs >= 2
    assert str(report).splitlines()[-1].startswith(f"{report.runs} runs at frontend and ttgir in ")
    assert str(report).endswith(": nothing found")
    assert not any(each.any() for each in given)  # as before
    assert hand_over.check(2, *arrays(), SEM="release", seconds=0, stages=STAGES)


def test_a_race():
    report = tlx_xdsl.check(hand_over, 2, *arrays(), SEM="relaxed", seconds=0)
    assert not report
    (finding,) = report.findings
    assert finding.rule == "fault"
    assert finding.options == {"stage": "frontend", "schedule": "round-robin", "seed": 0}
    assert "byte 0 of 'x' in global memory" in finding.diagnostic.message
    assert str(report).endswith(": 1 finding")
    assert "note: seen with --stage frontend --schedule round-robin --seed 0" in str(report)


def test_what_only_some_orders_show():
    with_one_order = tlx_xdsl.check(late, 1, *arrays()[:2], seconds=0, stages=("frontend",))
    assert with_one_order
    report = tlx_xdsl.check(late, 1, *arrays()[:2], seconds=5, stages=("frontend",))
    assert {each.rule for each in report.findings} == {"deadlock"}
    assert report.findings[0].options["schedule"] != "round-robin"


COMPILE = """
TLX_COMPILE = {
    "ring": {
        "signature": {"src": "tensordesc<fp32[16, 16]>", "dst": "*fp32", "T": "i32"},
        "constexprs": {"SLOTS": 2, "BUG": "none"},
    }
}
"""


def test_a_proof_and_what_refutes_it(tmp_path, capsys):
    path = tmp_path / "ring.py"
    text = (Path(__file__).parents[1] / "analysis" / "protocol" / "kernels.py").read_text() + COMPILE
    given = ["--grid", 1, "--size", "T=1", "--seconds", 0.1, "--prove"]
    given += ["--arg", "src=ones[max(T,1)*16,16]", "--arg", "dst=zeros[max(T,1)*256]"]
    path.write_text(text)
    assert run(f"{path}:ring", *given) == 0
    printed = capsys.readouterr().out
    assert "the synchronisation of 'ring' at T=1 in shared memory is proved for all trip counts" in printed
    assert "  not looked at: numbers and layouts, the threads of a task among each other, global memory" in printed
    assert "  proved: no deadlock; " in printed
    assert "  assumed: integer arguments are not negative" in printed
    assert printed.rstrip().endswith(", 1 proved")
    for written, wanted in (
        ("sarif", '"ruleId": "proof"'),
        ("junit", "not looked at: "),
        ("github", "not looked at: "),
    ):
        assert run(f"{path}:ring", *given, "--format", written) == 0
        assert wanted in capsys.readouterr().out
    # With one turn it runs.
    path.write_text(text.replace('"BUG": "none"', '"BUG": "no arrival"'))
    assert run(f"{path}:ring", *given) == 1
    printed = capsys.readouterr().out
    assert "error: deadlock" in printed
    assert "--size T=3" in printed
    assert "error: refuted: deadlock: " in printed or "remark: refuted: deadlock: " in printed
    assert printed.rstrip().endswith(", 1 refuted")


def test_all_orders_are_covered_and_the_check_ends():
    """However long it may take."""
    given = arrays()
    report = tlx_xdsl.check(hand_over, 2, *given, "release", seconds=600, stages=STAGES)
    assert report.runs == 4  # at each stage the first run, and the one order that there is
    assert report.orders() == ["all orders were covered: one at each stage, all others do the same"]
    report = tlx_xdsl.check(tickets, 3, *given[:2], seconds=600, launches=1, stages=STAGES)
    assert [case.orders for case in report.cases] == [6, 6]
    assert str(report).splitlines()[0].endswith(": 6 at frontend, 6 at ttgir")


def test_orders_that_are_left_out_are_said():
    report = tlx_xdsl.check(tickets, 3, *arrays()[:2], seconds=0, launches=1)
    (line,) = report.orders()
    assert line.startswith("not all orders were covered, only the first one was run at frontend and ttgir: there was")
    assert report
    report = tlx_xdsl.check(tickets, 3, *arrays()[:2], seconds=0, launches=1, all_orders=True)
    assert not report
    assert report.summary.endswith(": nothing found, some orders not run")
    assert tlx_xdsl.check(tickets, 3, *arrays()[:2], seconds=600, launches=1, all_orders=True)
    report = tlx_xdsl.check(tickets, 3, *arrays()[:2], seconds=600, launches=1, global_order=False)
    assert "accesses of programs to global memory are not compared" in report.orders()[0]


KERNELS = """\
import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def waits(flag):
    while tl.atomic_add(flag, 0) == 0:
        pass


@tlx_xdsl.jit
def ends(flag):
    tl.store(flag, 1)


@tlx_xdsl.jit
def arrives(count):
    tl.atomic_add(count, 1)
    while tl.atomic_add(count, 0) != tl.num_programs(0):
        pass
"""


@pytest.fixture
def kernels(tmp_path):
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS)
    return path


def run(*args):
    return main(["check", *map(str, args)])


def test_the_command(kernels, capsys):
    assert run(f"{kernels}:ends", "--grid", 1, "--arg", "flag=zeros:i32[1]", "--seconds", 0) == 0
    assert capsys.readouterr().out.endswith("nothing found\n")
    assert run(f"{kernels}:ends", "--grid", 2, "--arg", "flag=zeros:i32[1]", "--seconds", 0) == 1
    assert f"{kernels}:13:5: error: the default task of program (1, 0, 0) writes" in capsys.readouterr().out


def test_for_github_and_in_sarif(kernels, capsys):
    arguments = (f"{kernels}:waits", "--grid", 1, "--arg", "flag=zeros:i32[1]", "--seconds", 0, "--stages", "frontend")
    assert run(*arguments, "--format", "github") == 1
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"::error file={kernels},line=7,col=5::deadlock: the default task polls global memory")
    assert last.startswith("1 run at frontend in ")
    assert run(*arguments, "--format", "sarif") == 1
    (found,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    assert (found["ruleId"], found["level"]) == ("deadlock", "error")
    place = found["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": str(kernels)}, "region": {"startLine": 7, "startColumn": 5}}


def test_several_launches(kernels, capsys):
    arguments = (
        f"{kernels}:arrives",
        "--grid",
        2,
        "--arg",
        "count=zeros:i32[1]",
        "--seconds",
        0,
        "--stages",
        "frontend",
    )
    assert run(*arguments) == 0
    assert "remark: deadlock: the default task polls global memory" in capsys.readouterr().out
    assert run(*arguments, "--launches", 1) == 0
    assert "remark" not in capsys.readouterr().out
    assert run(*arguments, "--launches", 2) == 1
    assert "note: in the second launch: 'count' is left at 2 by the first, which was 0" in capsys.readouterr().out
    assert run(*arguments, "--format", "github") == 0
    assert capsys.readouterr().out.startswith(f"::notice file={kernels},line=19,col=5::deadlock: ")
    assert run(*arguments, "--format", "sarif") == 0
    (found,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    assert (found["ruleId"], found["level"]) == ("relaunch", "note")
    assert run(*arguments, "--launches", 0) == 1
    assert capsys.readouterr().err == "error: launches must be at least 1, found 0\n"


def test_errors(kernels, capsys):
    assert run(f"{kernels}:ends", "--grid", 1) == 1
    assert "--arg flag=VALUE" in capsys.readouterr().err
    arguments = (f"{kernels}:ends", "--grid", 1, "--arg", "flag=zeros:i32[1]")
    assert run(*arguments, "--stages", "nowhere") == 1
    assert "unknown stage 'nowhere'" in capsys.readouterr().err
    assert run(*arguments, "--stages", ",") == 1
    assert "--stages: expected the names of stages" in capsys.readouterr().err


@pytest.mark.parametrize("example", ["hopper_gemm_ws", "hopper_gemm_persistent_pingpong"])
def test_examples_are_clean(example, capsys):
    arguments = [f"--arg={name}=randn[128,128]" for name in ("a_desc", "b_desc")]
    arguments += ["--arg=c_desc=nan[128,128]", *(f"--arg={name}=128" for name in "MNK"), "--seconds", 1]
    assert run(EXAMPLES / f"{example}.py:matmul", "--grid", "cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)", *arguments) == 0
