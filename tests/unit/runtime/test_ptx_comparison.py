"""Final PTX beside the interpreter: `tlx run --stage ptx` says where numbers and reports of the two differ."""

import numpy as np
import pytest

from tests.unit.ptx.compiled import changed, instead, without
from tlx_xdsl.numerics.difference import difference
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
    with changed(instead(r"add\.f32 ([^,]*), ([^,]*), ([^;]*);", r"sub.f32 \1, \2, \3;")):
        status, out, err = run("scale")
    assert status == 1
    assert "the PTX and the interpreter's run of the TTGIR differ: " in err
    assert "elements of 'out' by more than 0.0001 of the largest value: element [0] is 0, the interpreter has " in err
    assert "out differs by up to" in out
    assert err.count("\n") == 1


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
