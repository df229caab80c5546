"""Final PTX beside the interpreter: `tlx run --stage ptx` says where numbers and reports of the two differ."""

import re

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.unit.ptx.compiled import changed, instead, without
from tlx_xdsl.analysis.roundings import Way
from tlx_xdsl.numerics.difference import difference, tolerance_of
from tlx_xdsl.ptx.launch import PtxRun
from tlx_xdsl.runtime.simulate.interpret import Interpretation
from tlx_xdsl.runtime.simulate.options import Options
from tlx_xdsl.runtime.simulate.ptx_comparison import _but_overflows, both_runs
from tlx_xdsl.tools.tlx import main

pytestmark = pytest.mark.backend

KERNELS = """\
import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def scale(x, out):
    i = tl.arange(0, 128)
    tl.store(out + i, 2 * tl.load(x + i))


@tlx_xdsl.jit
def inline(x, out):
    i = tl.arange(0, 128)
    y = tl.inline_asm_elementwise("activemask.b32 $0;", "=r,r", [tl.load(x + i)], tl.float32, True, 1)
    tl.store(out + i, y)


@tlx_xdsl.jit
def rounded(x, out):
    i = tl.arange(0, 128)
    tl.store(out + i, (tl.load(x + i) * 1.1).to(tl.float16).to(tl.float32))


@tlx_xdsl.jit
def decided(x, out):
    i = tl.arange(0, 128)
    tl.store(out + i, tl.where(tl.load(x + i) * 1.1 > 0.5, 1.0, 0.0))


@tlx_xdsl.jit
def beyond(x, out, far):
    i = tl.arange(0, 128)
    tl.store(out + i, ((tl.load(x + i) + far).to(tl.int8) > 3).to(tl.float32))


@tlx_xdsl.jit
def tickets(x, out):
    tl.store(out + tl.atomic_add(x, 1), tl.program_id(0))


@tlx_xdsl.jit
def tree(x, out):
    tl.store(out, tl.sum(tl.exp(tl.load(x + tl.arange(0, 128))), 0))
"""


@pytest.fixture
def run(tmp_path, capsys):
    file = tmp_path / "kernels.py"
    file.write_text(KERNELS)

    def run(name, *options, out="nan:fp32[128]", x="randn:fp32[128]"):
        arguments = ["--grid", "1", "--arg", f"x={x}", "--arg", f"out={out}"]
        status = main(["run", f"{file}:{name}", "--stage", "ptx", *arguments, *options])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def test_the_same_bits(run):
    status, out, _ = run("scale", "--check", "out=2*x")
    assert status == 0
    assert "the interpreter's run of the TTGIR" in out
    assert "out has the same bits" in out
    assert "interpreter" not in run("scale", "--no-compare")[1]


def test_other_bits_within_the_tolerance(run):
    with changed(instead(r"mul\.f32[^;]*;", r"\g<0>")):
        status, out, _ = run("tree", out="nan:fp32[1]")
    assert status == 0
    assert "out has the same bits" in out or "1 of 1 elements have other bits" in out


def test_other_numbers(run):
    with changed(instead(r"(?:add|mul)(?:\.rn)?\.f32 ([^,]*), ([^,]*), ([^;]*);", r"sub.f32 \1, \2, \2;")):
        status, out, err = run("scale")
    assert status == 1
    assert "the PTX and the interpreter's run of the TTGIR differ: " in err
    assert "elements of 'out' by more than 0.0001 of the largest value: element [0] is 0, the interpreter has " in err
    assert "out differs by up to" in out
    assert err.count("\n") == 1


def test_the_narrowest_type_on_the_way_says_how_far_numbers_may_be_apart(run):
    """Another rounding to fp16 is no fault, a number that is wrong by 3 % is one; so is one by 0.1 % without fp16."""
    with changed(instead(r"cvt\.rn\.f16\.f32", "cvt.rz.f16.f32")):
        status, out, err = run("rounded")
    assert (status, err) == (0, "")
    assert "have other bits" in out
    with changed(instead(r"cvt\.f32\.f16\s+(%\w+),[^;]*;", r"\g<0> mul.f32 \1, \1, 0f3F83D70A;")):
        status, _, err = run("rounded")
    assert status == 1
    assert "elements of 'out' by more than 0.01 of the largest value" in err
    with changed(instead(r"(?:mul|add)(?:\.rn)?\.f32\s+(%\w+),[^;]*;", r"\g<0> mul.f32 \1, \1, 0f3F8020C5;")):
        status, _, err = run("scale")
    assert status == 1
    assert "elements of 'out' by more than 0.0001 of the largest value" in err


def test_a_comparison_may_decide_otherwise_about_few_elements(run):
    half, near, far = "0f3F000000", "0f3F028F5C", "0f40000000"
    for edge, status in ((near, 0), (far, 1)):
        with changed(instead(half, edge)):
            assert run("decided")[0] == status


def test_what_depends_on_the_order_of_programs_is_not_compared(run):
    status, out, _ = run("tickets", "--grid", "8", x="zeros:i32[1]", out="zeros:i32[8]")
    assert status == 0
    assert "out is not compared, it depends on the order of programs" in out


def test_what_comes_of_numbers_out_of_range_is_no_difference(run):
    """LLVM converts to 16 bits, and compares those."""
    status, out, _ = run("beyond", "--arg", "far=200.0")
    assert status == 0
    assert re.search(r"converts numbers that are out of range to integers, .* at .*kernels\.py:33:", out)
    assert "out of range" not in run("beyond", "--arg", "far=0.0")[1]
    with changed(instead(r"setp\.gt\.", "setp.lt.")):
        assert "of 'out' by more than" in run("beyond", "--arg", "far=0.0")[2]


@pytest.mark.parametrize(
    ("fused", "apart", "is_wrong"),
    [(1.0, 1.0, False), (1.5, 1.0, False), (1.5, 1.5, True), (2.0, 1.5, True)],
)
def test_contraction_alone_is_no_difference(fused, apart, is_wrong):
    """The PTX has the interpreter's numbers without contraction."""
    array = np.zeros(8, np.float32)

    def run(more):
        value = 1.0 if more["stage"] == "ttgir" else apart if more.get("enable_fp_fusion") is False else fused
        array[...] = value
        return Interpretation(1, 0, 0.0, (), 1, ptx=PtxRun(0, 0.0) if more["stage"] == "ptx" else None)

    found = both_runs(run, {"out": array}, ModuleOp([]).clone, Options(enable_fp_fusion=True)).comparison
    assert (found.wrong is not None) == is_wrong
    assert found.contracted == (fused != 1.0 and not is_wrong)
    assert (array == fused).all()


def test_a_sum_that_overflows_in_another_order_is_no_difference():
    expected = np.array([60000, -np.inf, 3], np.float16)
    way = Way(frozenset({"f16"}))
    assert (_but_overflows(np.array([np.inf, np.inf, 4], np.float16), expected, way) == [60000, -np.inf, 4]).all()
    # Where nothing is near the edge, an infinity is wrong.
    assert np.isinf(_but_overflows(np.array([np.inf, 3], np.float16), np.array([1, 3], np.float16), way)[0])


@pytest.mark.parametrize(
    ("dtype", "computed_in", "limit"),
    [
        (np.float32, (), 1e-4), (np.float32, ("f32", "f16"), 1e-2), (np.float32, ("bf16",), 3e-2),
        (np.float64, ("f32",), 1e-4), (np.float16, ("f32",), 1e-2), (np.float32, ("f8E5M2",), 0.3),
        (np.float32, ("decided", "f64"), 1e-4), (np.int32, ("f16",), 0.0),
    ],
)  # fmt: skip
def test_tolerances(dtype, computed_in, limit):
    assert tolerance_of(np.dtype(dtype), computed_in) == limit


def test_a_report_of_the_ptx_alone(run):
    with changed(without(r"bar\.sync[^;]*;")):
        status, _, err = run("tree", out="nan:fp32[1]")
    assert status == 1
    assert "nothing" in err
    assert "note: the interpreter's run of the TTGIR has no report" in err


def test_a_report_of_both(run):
    status, _, err = run("scale", x="randn:fp32[100]")
    assert status == 1
    assert "kernels.py:8:" in err
    assert "out of bounds" in err
    assert "note: the interpreter says of the TTGIR: " in err


def test_a_report_of_the_interpreter_alone(run):
    """The PTX that a fault of a pass would make: it does not load what lies outside."""
    with changed(instead(r"ld\.global[^;]*;", r"", 0)):
        status, _, err = run("scale", x="randn:fp32[100]")
    assert status == 1
    assert "note: the interpreter says this of the TTGIR; the run of the final PTX has no report" in err


def test_what_the_interpreter_cannot_run(run):
    status, out, _ = run("inline", x="arange:fp32[128]")
    assert status == 0
    assert "not compared, as the interpreter can't run the TTGIR: " in out


def test_differences():
    a = np.array([1.0, np.nan, np.inf, 4.0], np.float32)
    assert difference(a, a.copy(), 0.0).largest == 0
    b = np.array([1.0, np.nan, np.inf, 4.5], np.float32)
    found = difference(a, b, 1e-4)
    assert (found.wrong, found.other_bits, found.at, found.found, found.expected) == (1, 1, (3,), 4.0, 4.5)
    assert found.largest == pytest.approx(0.5 / 4.5)
    c = np.array([1.0, 0.0, np.inf, 4.0], np.float32)
    assert difference(a, c, 0.5).wrong == 1
    assert difference(np.array([3, 4]), np.array([3, 5]), 0.0).wrong == 1
