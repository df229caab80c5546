"""`tlx check --size`: named sizes in arguments and grid, all of their combinations, and the report as JUnit's XML."""

from xml.etree import ElementTree

import numpy as np
import pytest

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.check.report import Case, Report
from tlx_xdsl.tools.commands.check_formats import junit
from tlx_xdsl.tools.launch_line.launches import Hint, argument_value
from tlx_xdsl.tools.launch_line.request import Said, size_values
from tlx_xdsl.tools.tlx import main

KERNELS = """\
import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def fill(x, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + offsets, 1.0)


@tlx_xdsl.jit
def fills_all(x, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + offsets, 1.0, mask=offsets < n)
"""


@pytest.fixture
def kernels(tmp_path):
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS)
    return path


@pytest.fixture
def run(kernels, capsys):
    """Run the command on a kernel of the file: its status, standard output and error."""

    def run(kernel, *arguments, command="check"):
        seconds = ("--seconds", "1", "--stages", "frontend") if command == "check" else ()
        spec = f"{kernels}:{kernel}"
        status = main([command, spec, "--grid", "cdiv(n, BLOCK)", "--arg", "x=zeros[n]", *arguments, *seconds])
        found = capsys.readouterr()
        return status, found.out, found.err

    return run


SIZES = ("--size", "n=0..5", "--size", "BLOCK=2,4")


def test_a_finding_names_the_smallest_sizes(run):
    status, out, _ = run("fill", *SIZES)
    assert status == 1
    assert "error: store out of bounds: 4 bytes at byte 4 of 'x'" in out
    assert "note: seen with --stage frontend --schedule round-robin --seed 0 --size n=1 --size BLOCK=2\n" in out
    assert "run at 12 of 12 sizes: n=0..5 BLOCK=2,4\n" in out
    status, out, _ = run("fill", "--size", "n=1", "--size", "BLOCK=2", command="run")
    assert status == 1


def test_a_kernel_that_is_right_at_all_sizes(run):
    status, out, _ = run("fills_all", *SIZES)
    assert status == 0
    assert out.startswith("run at 12 of 12 sizes: n=0..5 BLOCK=2,4\n")
    assert out.endswith(": nothing found\n")
    status, out, _ = run("fills_all", "--size", "n=3", "--size", "B=1", "--constexpr", "BLOCK=2*B", command="run")
    assert status == 0
    assert out.startswith("x: float32[3], 1 to 1")


def test_the_first_values_alone(run):
    assert run("fill", "--size", "n=4,3", "--constexpr", "BLOCK=4", "--no-sweep")[0] == 0
    assert run("fill", "--size", "n=4,3", "--constexpr", "BLOCK=4")[0] == 1


def test_without_sizes_nothing_is_said_of_them(run):
    status, out, _ = run("fills_all", "--arg", "n=4", "--arg", "x=zeros[4]", "--constexpr", "BLOCK=4")
    assert status == 0
    orders, report = out.splitlines()
    assert orders == "all orders were covered: one at each stage, all others do the same"
    assert "size" not in report


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--size", "n=a"), "error: --size: expected values such as n=0..3,7, found 'n=a'\n"),
        (("--size", "n=-1"), "error: --size: expected values such as n=0..3,7, found 'n=-1'\n"),
        (("--size", "n=1,,2"), "error: --size: expected values such as n=0..3,7, found 'n=1,,2'\n"),
        (("--size", "n=3..1"), "error: --size: '3..1' of 'n' has no values, the smaller number is first\n"),
        (("--size", "n=0..10000"), "error: --size: 'n' has more than 10,000 values\n"),
        (("--size", "n"), "error: --size: expected NAME=VALUE, found 'n'\n"),
        (
            ("--size", "n=1", "--arg", "x=zeros[m]"),
            "error: --arg x: 'm' can't be computed: no name 'm', the names are n",
        ),
        (("--size", "n=1", "--arg", "x=zeros[n/2]"), "error: --arg x: expected sizes such as 512,512, found 'n/2'\n"),
        (("--size", "n=1", "--arg", "x=zeros[n-2]"), "error: --arg x: expected sizes such as 512,512, found 'n-2'\n"),
        (("--size", "n=1", "--constexpr", "BLOCK=m"), "error: --constexpr: 'm' can't be computed: no name 'm'"),
        (
            ("--size", "n=1", "--size", "m=2"),
            "error: --size: no parameter, --arg, --constexpr or --grid names 'm'",
        ),
        (("--arg", "n=1"), "error: --arg x: expected sizes such as 512,512, found 'n'\n"),
    ],
)
def test_errors(run, arguments, message):
    constants = () if "--constexpr" in arguments else ("--constexpr", "BLOCK=4")
    status, _, error = run("fill", *constants, *arguments)
    assert status == 1
    assert error.startswith(message)
    assert error.count("\n") == 1


def test_a_run_has_one_value(run):
    status, _, error = run("fill", "--size", "n=1,2", "--constexpr", "BLOCK=4", command="run")
    assert status == 1
    assert error == "error: --size: 'n' has one value in a run, found '1,2': tlx check takes several\n"


def test_values_of_sizes():
    assert size_values("M", "0..3,7, 2") == (0, 1, 2, 3, 7)
    said = Said({"size": {"M": "small", "K": "3,5"}}, {}, None, 0)
    assert said.size_ranges(lambda sizes: (sizes["K"], 9)) == {"M": (5, 9), "K": (3, 5)}
    assert Said({"size": {}}, {}, None, 0).size_ranges(lambda _: ()) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("zeros:fp16[M,2*K]", np.zeros((3, 8), np.float16)),
        ("full(K)[cdiv(M, 2), max(M, K)]", np.full((2, 4), 4, np.float32)),
        ("M*K", 12),
        ("M:i64", np.int64(3)),
        ("(K, zeros[M])", (4, np.zeros(3, np.float32))),
    ],
)
def test_arguments_over_sizes(text, expected):
    found = argument_value("x", text, Hint(), 0, {"M": 3, "K": 4})
    if isinstance(expected, tuple):
        assert found[0] == expected[0]
        found, expected = found[1], expected[1]
    assert type(found) is type(expected)
    assert np.array_equal(found, expected)
    if isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype


def test_a_descriptor_over_sizes():
    found = argument_value("x", "desc(zeros:fp16[M*16,K*8], [M,K*8])", Hint(), 0, {"M": 4, "K": 2})
    assert (list(found.shape), list(found.block_shape)) == ([64, 16], [4, 16])
    with pytest.raises(CompilationError) as error:
        argument_value("x", "desc(zeros:fp16[64,64], [M,K])", Hint(), 0)
    assert error.value.message == "--arg x: expected sizes such as 512,512, found 'M,K'"


def test_junit(run, kernels):
    status, out, _ = run("fill", "--size", "n=0..2", "--size", "BLOCK=2,3", "--format", "junit")
    assert status == 1
    (suite,) = ElementTree.fromstring(out)
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    assert {case.get("classname") for case in cases.values()} == {f"{kernels}:fill"}
    skipped = {name: case for name, case in cases.items() if case.find("skipped") is not None}
    assert "power of" in skipped["n=1 BLOCK=3"].find("skipped").get("message")
    assert [suite.get(name) for name in ("tests", "failures", "skipped")] == [str(len(cases)), "1", str(len(skipped))]
    failure = cases["frontend n=1 BLOCK=2"].find("failure")
    assert failure.get("type") == "fault"
    assert failure.get("message").startswith("store out of bounds")
    assert f"{kernels}:8:5: error: store out of bounds" in failure.text
    assert "--size n=1 --size BLOCK=2" in failure.text
    assert not list(cases["frontend n=0 BLOCK=2"])
    assert suite.find("system-out").text.endswith(": 1 finding, 3 sizes not run")


def test_junit_of_one_launch(run):
    arguments = ("--arg", "n=4", "--arg", "x=zeros[4]", "--constexpr", "BLOCK=4", "--format", "junit")
    status, out, _ = run("fills_all", *arguments)
    assert status == 0
    (suite,) = ElementTree.fromstring(out)
    assert [case.get("name") for case in suite.iter("testcase")] == ["frontend"]


def test_junit_holds_no_illegal_character():
    report = Report((), 1, ("frontend",), 0.5, cases=(Case("frontend", {}, 1, 0.5, ()),))
    text = junit(report, "a\x1b<b>.py:k")
    assert ElementTree.fromstring(text).find(".//testcase").get("classname") == "a?<b>.py:k"
