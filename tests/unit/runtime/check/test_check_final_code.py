"""The final PTX as the last stage of a check: what it finds, whose fault that is, and when it is not looked at."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.passes import ModulePass

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.unit.ptx.compiled import changed, compiled_once, instead, without
from tests.versions import INSTALLED, NEWEST, is_installed
from tlx_xdsl.dialects import ttg
from tlx_xdsl.errors import CompilationError, InputError
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.ptx.read.faults import PtxFault
from tlx_xdsl.runtime.check import final_code
from tlx_xdsl.runtime.simulate import ptx_comparison, ptx_stage
from tlx_xdsl.tools.commands.check_formats import as_json
from tlx_xdsl.tools.tlx import main

# Kernels are read by the frontend, not run by Python.
# pyright: basic
pytestmark = pytest.mark.backend


@pytest.fixture(autouse=True)
def _compile_once(monkeypatch):
    monkeypatch.setattr(ptx_stage, "compiled", compiled_once)


@tlx_xdsl.jit
def through_halves(x, out, counts, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.store(out + at, (value * value + value).to(tl.float16).to(tl.float32))
    tl.store(counts + at, at * 3)


@tlx_xdsl.jit
def turned(x, out, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)[:, None]
    columns = tl.arange(0, BLOCK)[None, :]
    tile = tl.load(x + rows * BLOCK + columns)
    tl.store(out + rows * BLOCK + columns, tl.trans(tile))
    total = tl.sum(tile, 0)
    tl.store(out + BLOCK * BLOCK + tl.arange(0, BLOCK), total)


@tlx_xdsl.jit
def overwritten(x, out, WAITS: tl.constexpr):
    """A copy to shared memory that is read too early without WAITS."""
    at = tl.arange(0, 128)
    buffer = tlx.local_alloc((128,), tl.float32, 1)[0]
    token = tlx.async_load(x + at, buffer)
    tlx.async_load_commit_group([token])
    if WAITS:
        tlx.async_load_wait_group(0)
    tl.store(out + at, tlx.local_load(buffer))


@tlx_xdsl.jit
def promised(x, out, shift):
    at = tl.max_contiguous(tl.multiple_of(shift + tl.arange(0, 256), 16), 16)
    tl.store(out + tl.arange(0, 256), tl.load(x + at))


def halves():
    x = np.random.default_rng(0).standard_normal(128).astype(np.float32)
    return x, np.zeros(128, np.float32), np.zeros(128, np.int32), 128


def check_halves(**options):
    return tlx_xdsl.check(through_halves, 1, *halves(), seconds=0, **options)


def check_turned(**options):
    x = np.arange(32 * 32, dtype=np.float32).reshape(32, 32)
    return tlx_xdsl.check(turned, 1, x, np.zeros(32 * 33, np.float32), 32, seconds=0, **options)


def line_of(text):
    """The first line of this file that has a text."""
    return next(number for number, line in enumerate(Path(__file__).read_text().splitlines(), 1) if text in line)


ALL_BARRIERS = re.compile(r"bar\.sync[^;]*;")


def test_a_right_kernel_is_clean():
    report = check_halves()
    assert report, str(report)
    assert report.stages == ("frontend", "ttgir", "ptx")
    assert [case.stage for case in report.cases] == ["frontend", "ttgir", "ptx"]
    assert report.summary.startswith("3 runs at frontend, ttgir and ptx in ")
    assert json.loads(as_json(report, "kernel"))["ptx"] is None


@pytest.mark.parametrize(
    ("change", "array", "text"),
    [
        # 3 % of a number that fp16 holds to 0.1 %.
        (instead(r"cvt\.f32\.f16\s+(%\w+),[^;]*;", r"\g<0> mul.f32 \1, \1, 0f3F83D70A;"), "out", "value * value"),
        (instead(r"(mul\.lo\.s32.*), 3;", r"\1, 4;"), "counts", "at * 3"),
    ],
)  # fmt: skip
def test_wrong_numbers_are_a_finding_of_stock(change, array, text):
    with changed(change):
        report = check_halves()
    (finding,) = report.findings
    assert finding.rule == "stock"
    assert f"elements of '{array}' by more than" in finding.diagnostic.message
    assert finding.diagnostic.location.line == line_of(text)
    assert f"stock Triton {INSTALLED} is at fault" in str(finding)
    assert finding.seen_with == "seen with --stage ptx"


def test_a_missing_barrier_is_a_finding_of_stock_at_its_line():
    with changed(without(r"bar\.sync[^;]*;")):
        report = check_turned()
    assert [each.rule for each in report.findings] == ["stock"]
    (finding,) = report.findings
    assert "nothing orders it after what was written by warp" in finding.diagnostic.message
    assert finding.diagnostic.location.line == line_of("tl.trans(tile)")
    assert "it is no known defect, please report it" in str(finding)


def test_all_lines_are_listed_each_once():
    with changed(lambda text: ALL_BARRIERS.sub("", text)):
        report = check_turned()
    lines = {each.diagnostic.location.line for each in report.findings}
    assert line_of("tl.trans(tile)") in lines
    assert len(lines) >= 2
    assert len(report.findings) == len({str(each.diagnostic) for each in report.findings}) <= ptx_stage.MOST_FAULTS


def test_a_known_defect_is_named_with_the_release_that_has_it_right(monkeypatch):
    defect = SimpleNamespace(sentence=lambda version: f"stock Triton {version} leaves out a barrier", mended_in="9.9")
    monkeypatch.setattr(ptx_comparison, "cause_of", lambda message, version: defect)
    with changed(without(r"bar\.sync[^;]*;")):
        report = check_turned()
    assert f"the kernel has no report before the PTX: stock Triton {INSTALLED} leaves out a barrier" in str(report)
    assert "use Triton 9.9 or later" in json.loads(as_json(report, "kernel"))["records"][0]["remedy"]


def test_what_our_own_compile_has_right_is_said(monkeypatch):
    broken = without(r"bar\.sync[^;]*;")

    def compiled(source, specialization, options):
        result = compiled_once(source, specialization, options)
        if options.mends:
            return result
        with changed(broken):
            return ptx_stage.compiled(source, specialization, options)

    monkeypatch.setattr(ptx_stage, "compiled", compiled)
    assert "tlx_xdsl's own compile of this kernel has it right" in str(check_turned())


def test_the_kernels_own_fault_comes_first():
    x, out = np.ones(128, np.float32), np.zeros(128, np.float32)
    report = tlx_xdsl.check(overwritten, 1, x, out, False, seconds=0)
    assert {each.options["stage"] for each in report.findings} == {"frontend"}
    assert report.final == "what is found before it comes first"
    assert "ptx not looked at: what is found before it comes first" in str(report)
    # Where it is asked for, it is run all the same, and says whose fault it is.
    report = tlx_xdsl.check(overwritten, 1, x, out, False, seconds=0, stages=("ptx",))
    assert {each.rule for each in report.findings} == {"fault"}
    assert "the kernel's own fault: of what the frontend makes, the interpreter says" in str(report.findings[0])
    assert tlx_xdsl.check(overwritten, 1, x, out, True, seconds=0, stages=("ptx",))


@tlx_xdsl.jit
def loaded(src, LOADS: tl.constexpr):
    """LOADS tiles on their way, of which the kernel waits for one."""
    tiles, full = tlx.local_alloc((64, 64), tl.float16, 2), tlx.alloc_barriers(2)
    for t in tl.static_range(LOADS):
        tlx.barrier_expect_bytes(full[t], 64 * 64 * 2)
        tlx.async_descriptor_load(src, tiles[t], [0, 0], full[t])
    tlx.barrier_wait(full[0], 0)


def test_what_the_interpreter_warns_of_is_not_blamed_on_stock():
    tile = tlx_xdsl.TensorDescriptor.from_tensor(np.ones((64, 64), np.float16), [64, 64])
    assert tlx_xdsl.check(loaded, 1, tile, 1, seconds=0)
    warning, fault = tlx_xdsl.check(loaded, 1, tile, 2, seconds=0).findings
    assert "no task has waited for phase 0 of 'full[1]'" in warning.diagnostic.message
    assert fault.rule == "fault"
    assert fault.diagnostic.message.startswith("the CTA ends, and nothing orders that after its shared memory")
    assert "perhaps the kernel's own fault: the interpreter warns: " in str(fault)
    assert "no task has waited" in str(fault)
    assert "stock Triton" not in str(fault)


def test_a_fault_of_our_passes_is_said_to_be_one(monkeypatch):
    report_of = final_code._Look._report_of

    def of_passes(self, stage):
        return Fault("a race") if stage == "ttgir" else report_of(self, stage)

    monkeypatch.setattr(final_code._Look, "_report_of", of_passes)
    with changed(without(r"bar\.sync[^;]*;")):
        report = check_turned()
    (finding,) = report.findings
    assert finding.rule == "fault"
    assert "a fault of tlx_xdsl's passes, please report it: the interpreter says of the TTGIR: a race" in str(finding)


class DropWaits(ModulePass):
    """Lets waits for copies wait for nothing, as a pass of ours that is wrong would."""

    name = "drop-waits"

    def apply(self, ctx, op):
        for each in op.walk():
            if isinstance(each, ttg.AsyncWaitOp):
                each.properties["num"] = IntegerAttr(8, i32)


def test_a_fault_that_only_the_ttgir_has_is_of_our_passes():
    x, out = np.ones(128, np.float32), np.zeros(128, np.float32)
    passes = (f"before:end={__name__}:DropWaits",)
    report = tlx_xdsl.check(overwritten, 1, x, out, True, seconds=0, passes=passes)
    assert {each.options["stage"] for each in report.findings} == {"ttgir"}
    assert "a fault of tlx_xdsl's passes, please report it: the interpreter has no report of what" in str(report)
    # The kernel's own is not.
    assert "tlx_xdsl's passes" not in str(tlx_xdsl.check(overwritten, 1, x, out, False, seconds=0, stages=("ttgir",)))


def test_a_promise_that_does_not_hold_is_not_stocks_fault():
    x, out = np.arange(512, dtype=np.float32), np.zeros(256, np.float32)
    assert tlx_xdsl.check(promised, 1, x, out, 16, seconds=0)
    report = tlx_xdsl.check(promised, 1, x, out, 17, seconds=0)
    (finding,) = report.findings
    assert finding.rule == "fault"
    assert "misaligned load" in finding.diagnostic.message
    assert "promises something of its numbers at" in str(finding)


def test_a_run_that_takes_too_long_is_said_to_be_unfinished(monkeypatch):
    monkeypatch.setattr(final_code, "PTX_SECONDS", -1.0)
    report = check_halves()
    assert report
    assert report.final.startswith("the run was not finished after ")
    assert "nothing found" in report.summary
    report = check_halves(stages=("ptx",))
    assert not report
    assert report.summary.endswith("the PTX not run")


def test_without_stock_triton_the_report_says_so(monkeypatch):
    monkeypatch.setattr(final_code, "installed_triton_version", lambda: None)
    report = check_halves()
    assert report
    assert report.stages == ("frontend", "ttgir")
    assert "ptx not looked at: stock Triton is not installed" in str(report)
    with pytest.raises(CompilationError, match="the stage 'ptx' can't be looked at: stock Triton is not installed"):
        check_halves(stages=("frontend", "ptx"))


def test_a_target_that_triton_does_not_know(monkeypatch):
    monkeypatch.setattr(final_code, "installed_triton_version", lambda: "3.5.0")
    assert "sm_90a needs Triton 3.6 or later, found Triton 3.5.0" in check_halves().final


def test_an_unknown_stage():
    expected = r"unknown stage 'ptxx', did you mean 'ptx'\? expected frontend, aliased, ttgir"
    with pytest.raises(InputError, match=expected):
        check_halves(stages=("frontend", "ptxx"))


PIPELINED = """
import triton
import triton.language as tl

@triton.jit
def gemm(a, b, c, K, B: tl.constexpr):
    r = tl.arange(0, B)
    acc = tl.zeros([B, B], tl.float32)
    for k in range(0, K, B):
        acc += tl.dot(tl.load(a + r[:, None] * K + k + r[None, :]), tl.load(b + (k + r[:, None]) * B + r[None, :]))
    tl.store(c + r[:, None] * B + r[None, :], acc)
"""
GIVEN = ["--grid", "1", "--arg", "a=randn:fp16[64,256]", "--arg", "b=randn:fp16[256,64]", "--arg", "c=zeros[64,64]",
         "--arg", "K=256", "--constexpr", "B=64"]  # fmt: skip
UNFENCED = ("3.6.0", "3.7.0")
"""Releases that put no proxy fence between `cp.async` and the product that reads what it wrote."""


def test_what_single_releases_leave_out_of_plain_kernels(tmp_path, capsys):
    (tmp_path / "plain.py").write_text(PIPELINED)
    where = f"{tmp_path / 'plain.py'}:gemm"
    status = main(["check", where, *GIVEN, "--seconds", "0"])
    printed = capsys.readouterr().out
    if INSTALLED not in UNFENCED:
        assert (status, "nothing found" in printed) == (0, True), printed
        return
    assert status == 1
    assert "plain.py:10:16: error: the async proxy reads byte" in printed
    assert f"stock Triton {INSTALLED} leaves out the proxy fence" in printed
    assert "mended in 3.7.1" in printed
    assert main(["run", where, *GIVEN, "--stage", "ptx"]) == 1
    assert "--keep-going goes on past it" in capsys.readouterr().err
    assert main(["run", where, *GIVEN, "--stage", "ptx", "--keep-going", "--check", "c=a@b"]) == 0
    assert "without a proxy fence" in capsys.readouterr().err


def test_going_on_past_what_is_no_known_defect_ends_in_an_error(tmp_path, capsys):
    (tmp_path / "plain.py").write_text(PIPELINED)
    given = ["run", f"{tmp_path / 'plain.py'}:gemm", *GIVEN, "--stage", "ptx", "--no-compare"]
    with changed(lambda text: ALL_BARRIERS.sub("", text)):
        assert main([*given, "--keep-going"]) == 1
    out, err = capsys.readouterr()
    assert "error: " in err
    assert "instructions of warps" in out  # the run went on to its end
    assert main(["run", f"{tmp_path / 'plain.py'}:gemm", *GIVEN, "--keep-going"]) == 1
    assert "--keep-going: only with --stage ptx" in capsys.readouterr().err


@pytest.mark.skipif(not is_installed(NEWEST), reason="the barriers are those of the newest Triton")
def test_faults_are_in_the_result():
    x, out = np.arange(32 * 32, dtype=np.float32).reshape(32, 32), np.zeros(32 * 33, np.float32)
    with changed(without(r"bar\.sync[^;]*;")):
        with pytest.raises(PtxFault):
            turned.interpret(1, x, out, 32, stage="ptx")
        result = turned.interpret(1, x, out, 32, stage="ptx", keep_going=True)
    assert len(result.faults) == 1
    assert result.ptx is not None
    assert not turned.interpret(1, x, out, 32, stage="ptx", keep_going=True).faults
