"""`tlx check`: what the compiler refuses and what was not run count, and all formats have the same records."""

import json
import pickle

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.errors import Note, SourceLocation
from tlx_xdsl.tools.tlx import main

# Kernels are read by the frontend, not run by Python.
# pyright: basic

KERNELS = """\
import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def both_write(x):
    tl.store(x, tl.program_id(0))


@tlx_xdsl.jit
def block(x, B: tl.constexpr):
    tl.store(x + tl.arange(0, B), 1.0)


@tlx_xdsl.jit
def large(x):
    buffers = tlx.local_alloc((256, 256), tl.float32, 2)
    tlx.local_store(buffers[0], tl.zeros((256, 256), tl.float32))
    tl.store(x, 1.0)


@tlx_xdsl.jit
def hand_over(x, flag, out):
    offsets = tl.arange(0, 32)
    if tl.program_id(0) == 0:
        tl.store(x + offsets, offsets)
        tl.atomic_xchg(flag, 1, sem="relaxed")
    else:
        while tl.atomic_add(flag, 0, sem="acquire") == 0:
            pass
        tl.store(out + offsets, tl.load(x + offsets))


@tlx_xdsl.jit
def outside(x):
    tl.store(x + tl.arange(0, 8), 1.0)
"""


@pytest.fixture
def check(tmp_path, capsys):
    """Run the command on a kernel of the file: its status, and what it prints."""
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS)

    def run(kernel, *arguments):
        status = main(["check", f"{path}:{kernel}", "--seconds", "0", *map(str, arguments)])
        captured = capsys.readouterr()
        assert not captured.err
        return status, captured.out.replace(f"{tmp_path}/", "")

    return run


HAND_OVER = ("--grid", 2, "--arg", "x=zeros:i32[32]", "--arg", "flag=zeros:i32[1]", "--arg", "out=zeros:i32[32]")


def test_an_error_of_the_frontend_is_a_finding(check):
    status, out = check("block", "--grid", 1, "--arg", "x=zeros[24]", "--constexpr", "B=24")
    assert status == 1
    assert "kernels.py:13:18: error: tl.arange: the range 0 to 24 must have a power of two of elements" in out
    assert "note: seen with --stage frontend\n" in out
    assert out.endswith("0 runs at frontend and ttgir in 0.0 s: 1 finding\n")


def test_what_never_fits_is_a_finding_of_the_later_stage(check):
    status, out = check("large", "--grid", 1, "--arg", "x=zeros[1]")
    assert status == 1
    assert out.count("kernels.py:18") == 2  # the line, and in the note the buffer
    assert "note: seen with --stage ttgir\n" in out
    status, out = check("large", "--grid", 1, "--arg", "x=zeros[1]", "--format", "json")
    (record,) = json.loads(out)["records"]
    assert (record["rule"], record["stage"], record["line"]) == ("budget", "ttgir", 18)


def test_a_size_that_was_asked_for_and_refused_is_status_1(check):
    given = ("--grid", 1, "--arg", "x=zeros[B]")
    status, out = check("block", *given, "--size", "B=2,3", "--seconds", 1)
    assert status == 1
    assert "refused at B=3: tl.arange" in out
    assert out.endswith(": nothing found, 1 size not run\n")
    assert check("block", *given, "--size", "B=2,4", "--seconds", 1)[0] == 0
    # Small sizes are tried as they come.
    status, out = check("block", *given, "--size", "B=small", "--seconds", 1)
    assert status == 0
    assert "refused at B=" in out
    # No size is right for the kernel: then the kernel is wrong.
    status, out = check("block", *given, "--size", "B=3,5", "--seconds", 1)
    assert status == 1
    assert "kernels.py:13:18: error: tl.arange" in out
    assert "--size B=3" in out


def test_sizes_that_there_was_no_time_for_are_status_1(check):
    status, out = check("block", "--grid", 1, "--arg", "x=zeros[B]", "--size", "B=2,4,8", "--format", "github")
    assert status == 1
    first, last = out.splitlines()
    assert first.startswith("::error::2 sizes not run; run at 1 of 3 sizes: B=2; not run for want of time")
    assert last.endswith(": nothing found, 2 sizes not run")


def test_what_was_not_run_may_be_allowed(check):
    given = ("--grid", 1, "--arg", "x=zeros[B]", "--size", "B=2,4,8", "--allow-unrun")
    status, out = check("block", *given)
    assert status == 0
    assert out.endswith(": nothing found, 2 sizes not run\n")
    assert check("block", *given, "--format", "github")[1].startswith("::warning::2 sizes not run; ")
    assert json.loads(check("block", *given, "--format", "json")[1])["ok"]
    # What is found counts all the same.
    assert check("block", "--grid", 1, "--arg", "x=zeros[B]", "--size", "B=3,4", "--allow-unrun")[0] == 0
    assert check("block", "--grid", 1, "--arg", "x=zeros[B]", "--size", "B=3,5", "--allow-unrun")[0] == 1


def test_json_has_both_lines_the_remedy_and_what_shows_it_again(check):
    status, out = check("hand_over", *HAND_OVER, "--stages", "frontend", "--format", "json")
    assert status == 1
    report = json.loads(out)
    assert (report["tool"], report["ok"], report["unrun"]) == ("tlx check", False, None)
    (record,) = report["records"]
    assert record["kernel"].endswith("kernels.py:hand_over")
    assert (record["rule"], record["severity"]) == ("fault", "error")
    assert (record["line"], record["column"]) == (32, 33)
    (other,) = record["related"]
    assert (other["line"], other["text"]) == (27, "written at kernels.py:27:9")
    assert "an atomic operation with sem='release' after that line" in record["remedy"]
    assert record["sizes"] == {}
    assert (record["stage"], record["schedule"], record["seed"], record["order"]) == (
        "frontend",
        "round-robin",
        0,
        None,
    )
    assert record["replay"] == "--stage frontend --schedule round-robin --seed 0"
    (case,) = report["cases"]
    assert (case["stage"], case["runs"]) == ("frontend", 1)


def test_all_formats_have_the_same_records(check):
    given = ("hand_over", *HAND_OVER, "--stages", "frontend,cpu")
    _, text = check(*given)
    _, out = check(*given, "--format", "json")
    messages = [each["message"] for each in json.loads(out)["records"]]
    assert messages
    _, out = check(*given, "--format", "sarif")
    results = json.loads(out)["runs"][0]["results"]
    assert [each["message"]["text"].splitlines()[0] for each in results] == messages
    assert results[0]["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 27
    _, out = check(*given, "--format", "github")
    assert [each.split("::")[2].split("%0A")[0] for each in out.splitlines()[:-1]] == messages
    assert all(f": {each}" in text for each in messages)


def test_the_machine_code_of_the_cpu_is_a_stage(check):
    pytest.importorskip("llvmlite")
    status, out = check("outside", "--grid", 1, "--arg", "x=zeros[4]", "--stages", "cpu", "--format", "json")
    assert status == 1
    report = json.loads(out)
    (record,) = report["records"]
    assert (record["rule"], record["stage"], record["line"]) == ("fault", "cpu", 37)
    assert check("outside", "--grid", 1, "--arg", "x=zeros[8]", "--stages", "frontend,cpu")[0] == 0


def test_a_percent_sign_survives_a_workflow_command():
    from tlx_xdsl.runtime.check.report import Finding, Report
    from tlx_xdsl.text.diagnostics import Diagnostic
    from tlx_xdsl.tools.commands.check_formats import FORMATS

    found = Finding(Diagnostic("error", "'%x' is\nlate", None), "fault", {})
    assert FORMATS["github"](Report((found,), 1, ("frontend",), 0.0), "k").startswith("::error::'%25x' is%0Alate")


@tlx_xdsl.jit
def too_many_registers(x, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(x + at, at)


def test_what_is_wrong_with_the_call_is_no_finding():
    with pytest.raises(TypeError):
        tlx_xdsl.check(too_many_registers, 1, np.zeros(4, np.int32), B=4, C=1)
    with pytest.raises(ValueError, match="unknown stage"):
        tlx_xdsl.check(too_many_registers, 1, np.zeros(4, np.int32), B=4, stages=("nowhere",))
    assert tlx_xdsl.check(too_many_registers, 1, np.zeros(4, np.int32), B=4, seconds=1)


def test_a_note_keeps_its_place_in_another_process():
    note = Note("written at f.py:3", SourceLocation("f.py", 3), is_remedy=True)
    again = pickle.loads(pickle.dumps(note)).after("  ")
    assert (again, again.place, again.is_remedy) == ("  written at f.py:3", SourceLocation("f.py", 3), True)
