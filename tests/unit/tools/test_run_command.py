"""`tlx run`: kernels and IR on arrays that the command line makes up, what it prints, and what it refuses."""

import json
import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.numerics.uninitialized import UninitializedArray
from tlx_xdsl.tools.commands.array_checks import summary
from tlx_xdsl.tools.launch_line.launches import Hint, argument_value, hint_of_signature
from tlx_xdsl.tools.tlx import main

pytestmark = pytest.mark.quick

GEMM = f"{Path(__file__).parents[3] / 'examples' / 'hopper_gemm_ws.py'}:matmul"
GEMM_ARGUMENTS = (
    *("--grid", "cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)", "--arg", "M=200", "--arg", "N=264", "--arg", "K=136"),
    *("--arg", "a_desc=randn[200,136]", "--arg", "b_desc=randn[136,264]", "--arg", "c_desc=nan[200,264]"),
)

KERNELS = """\
import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def scale(x, out, factor, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * factor, mask=at < n)


@tlx_xdsl.jit
def runs_off(x):
    tl.store(x + tl.program_id(0) * 2, 1)


@tlx_xdsl.jit
def spins(x):
    while tl.load(x) == 0:
        pass


@tlx_xdsl.jit
def reads_nothing(out):
    buffer = tlx.local_alloc((32,), tl.float32, 1)
    tl.store(out + tl.arange(0, 32), tlx.local_load(buffer[0]))


TLX_COMPILE = {
    "scale": {"signature": {"x": "*fp16", "factor": "fp32", "n": "i64"}, "constexprs": {"BLOCK": 32}, "num_warps": 1},
}
"""


@pytest.fixture
def kernels(tmp_path):
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS)
    return path


def run(*arguments) -> int:
    return main(["run", *map(str, arguments)])


@pytest.mark.parametrize("stage", ["frontend", "aliased", "ttgir", "tlx-lower-named-barriers"])
@pytest.mark.parametrize("schedule", ["round-robin", "random", "adversarial"])
def test_the_example_is_right(capsys, stage, schedule):
    assert run(GEMM, *GEMM_ARGUMENTS, "--check", "c_desc=a_desc@b_desc", "--stage", stage, "--schedule", schedule) == 0
    written, ran, checked = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"c_desc: float16\[200, 264\], -\d\S+ to \d\S+, mean \S+, 0 NaN", written)
    assert re.fullmatch(rf"4 programs in \d.\d\d s: [\d,]+ turns, {schedule}, seed 0", ran)
    assert re.fullmatch(r"c_desc = a_desc@b_desc: largest error \d.\de-04 of the largest value", checked)


def test_a_wrong_result_is_an_error(capsys):
    assert run(GEMM, *GEMM_ARGUMENTS, "--check", "c_desc=a_desc@b_desc + 1") == 1
    assert re.match(
        r"error: --check c_desc: 52800 of 52800 elements differ from a_desc@b_desc \+ 1 by more than 0.01 of the "
        r"largest value: element \[0, 0\] is \S+, expected \S+$",
        capsys.readouterr().err,
    )
    assert run(GEMM, *GEMM_ARGUMENTS, "--check", "c_desc=a_desc@b_desc + 1", "--tolerance", "0.1") == 0


def test_defaults_of_the_file_and_files_of_numpy(kernels, tmp_path, capsys):
    x = np.arange(50).astype(np.float16)
    np.save(tmp_path / "x.npy", x)
    arguments = ["--arg", f"x={tmp_path / 'x.npy'}", "--arg", "out=zeros:f16[50]", "--arg", "factor=2", "--arg", "n=50"]
    assert run(f"{kernels}:scale", "--grid", 2, *arguments, "--save", f"out={tmp_path / 'out.npy'}") == 0
    assert (np.load(tmp_path / "out.npy") == 2 * x).all()
    assert capsys.readouterr().out.splitlines()[0] == "out: float16[50], 0 to 98, mean 49, 0 NaN"
    # The number is an fp32, as the file says, and not an i32.
    halves = [text.replace("factor=2", "factor=0.5") for text in arguments]
    assert run(f"{kernels}:scale", "--grid", "4,1", *halves, "--constexpr", "BLOCK=16", "--check", "out=x*0.5") == 0


def test_expressions_may_have_functions_of_their_own(kernels):
    arguments = ["--arg", "x=randn[32]", "--arg", "out=zeros[32]", "--arg", "factor=2", "--arg", "n=32"]
    expected = "out=np.stack([x, x]).sum(axis=0) * factor / 2"
    assert run(f"{kernels}:scale", "--grid", "max(n // BLOCK, 1)", *arguments, "--check", expected) == 0


def test_random_numbers_depend_on_the_seed_and_the_name():
    def numbers(name, seed):
        return argument_value(name, "randn[8]", Hint(), seed)

    assert (numbers("a", 1) == numbers("a", 1)).all()
    assert (numbers("a", 1) != numbers("b", 1)).any()
    assert (numbers("a", 1) != numbers("a", 2)).any()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("zeros[2,3]", np.zeros((2, 3), np.float32)),
        ("ones:float16[2]", np.ones(2, np.float16)),
        ("full(2.5):f64[2]", np.full(2, 2.5)),
        ("arange[4]", np.arange(4, dtype=np.int32)),
        ("arange:bf16[2,2]", np.array([[0, 1], [2, 3]], ml_dtypes.bfloat16)),
        ("full(-1):i8[3]", np.full(3, -1, np.int8)),
        ("nan:fp8e5[1]", np.array([np.nan], ml_dtypes.float8_e5m2)),
        ("zeros:i1[]", np.zeros((), np.bool_)),
    ],
)
def test_an_array_is_made_of_its_description(text, expected):
    found = argument_value("x", text, Hint(), 0)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert found.tobytes() == expected.tobytes()


def test_random_arrays_are_in_their_range():
    integers = argument_value("x", "randint(-3,5)[1000]", Hint(), 0)
    assert (integers.min(), integers.max(), integers.dtype) == (-3, 4, np.int32)
    floats = argument_value("x", "rand:fp64[1000]", Hint(), 0)
    assert 0 <= floats.min() < 0.1 < 0.9 < floats.max() < 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [("5", 5), ("-5", -5), ("2.5", 2.5), ("1e-3", 1e-3), ("True", True), ("None", None)],
)
def test_a_number_is_an_argument_of_its_python_type(text, expected):
    found = argument_value("x", text, Hint(), 0)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(("text", "dtype"), [("5:i64", np.int64), ("0.1:fp16", np.float16), ("1:i1", np.bool_)])
def test_numbers_with_a_type(text, dtype):
    assert type(argument_value("x", text, Hint(), 0)) is dtype


def test_descriptors_and_tuples():
    plain = argument_value("x", "desc(zeros:fp16[64,128], [32,64])", Hint(), 0)
    assert (plain.shape, plain.strides, plain.block_shape, plain.padding) == ([64, 128], [128, 1], [32, 64], "zero")
    assert argument_value("x", "desc(zeros[8,8], [4,4], nan)", Hint(), 0).padding == "nan"
    hinted = argument_value("x", "zeros[64,128]", hint_of_signature("tensordesc<fp8e5[32, 64]>"), 0)
    assert (hinted.block_shape, hinted.base.dtype) == ([32, 64], ml_dtypes.float8_e5m2)
    array, (number, flag) = argument_value("x", "(ones[2], (3, True))", Hint(), 0)
    assert (array.tolist(), number, flag) == ([1, 1], 3, True)


def test_arrays_that_nothing_has_written(kernels, capsys):
    found = argument_value("x", "empty:fp16[4,8]", Hint(), 0)
    assert isinstance(found, UninitializedArray)
    assert (found.dtype, found.shape) == (np.float16, (4, 8))
    described = argument_value("x", "empty[64,128]", hint_of_signature("tensordesc<fp8e5[32, 64]>"), 0)
    assert isinstance(described.base, UninitializedArray)
    arguments = ["--arg", "x=empty[32]", "--arg", "out=empty[32]", "--arg", "factor=2", "--arg", "n=32"]
    assert run(f"{kernels}:scale", "--grid", 1, *arguments) == 1
    assert "error: 'x' in global memory is read before it is written" in capsys.readouterr().err
    arguments[1] = "x=ones[32]"
    assert run(f"{kernels}:scale", "--grid", 1, *arguments) == 0
    assert capsys.readouterr().out.startswith("out: float32[32], 2 to 2")


def test_files_without_the_name_of_their_type(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.array([1.5, 2], ml_dtypes.bfloat16))
    found = argument_value("x", f"{path}:bf16", Hint(), 0)
    assert (found.dtype, found.tolist()) == (ml_dtypes.bfloat16, [1.5, 2])
    np.save(path, np.zeros(2, np.float32))
    with pytest.raises(CompilationError, match="expected elements of the type float16, found 'float32 in "):
        argument_value("x", f"{path}:fp16", Hint(), 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("randn", "expected a shape, as in randn[64,64], found 'randn'"),
        ("noise[4]", "expected a number, an array such as randn:fp16[512,512]"),
        ("full[4]", "expected 1 numbers for 'full', found 'full[4]'"),
        ("randint(1)[4]", "expected 2 numbers for 'randint'"),
        ("zeros(3)[4]", "expected no numbers for 'zeros'"),
        ("full(a)[4]", "expected a number, found 'a'"),
        ("zeros:f17[4]", "expected an element type such as fp16, bf16, float32 or i32, found 'f17'"),
        ("zeros[4,x]", "expected sizes such as 512,512, found '4,x'"),
        ("300:i8", "expected a number of the type int8, found '300:i8'"),
        ("desc(5, [4])", "expected an array, found '5'"),
        ("desc(zeros[4,4])", "expected a descriptor as desc(ARRAY, [64,64])"),
        ("desc(zeros[4,4], [3,4])", "block_shape[0]: expected a power of two, got 3"),
    ],
)
def test_wrong_values(text, message):
    with pytest.raises(CompilationError) as caught:
        argument_value("x", text, Hint(), 0)
    assert str(caught.value).startswith(f"error: --arg x: {message}")


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.array([1.0, np.nan, 3.0], np.float16), "float16[3], 1 to 3, mean 2, 1 NaN"),
        (np.array([[-np.inf, 5.0]]), "float64[1, 2], 5 to 5, mean 5, 0 NaN, 1 infinite"),
        (np.full(2, np.nan, ml_dtypes.bfloat16), "bfloat16[2], 2 NaN"),
        (np.array([True, False]), "bool[2], 0 to 1, mean 0.5, 0 NaN"),
    ],
)
def test_an_array_is_summarised(array, expected):
    assert summary(array) == expected


def test_a_fault_is_the_located_error(kernels, capsys):
    assert run(f"{kernels}:runs_off", "--grid", 3, "--arg", "x=zeros:i32[4]") == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith(f"{kernels}:14:5: error: store out of bounds: 4 bytes at byte 16 of 'x', which has 16")
    assert lines[1:3] == ["    " + KERNELS.splitlines()[13], "        ^"]


def test_programs_may_start_with_the_last_one(kernels, capsys):
    arguments = (f"{kernels}:runs_off", "--grid", 4, "--arg", "x=zeros:i32[4]")
    for order, program in ((), 2), (("--descending",), 3):
        assert run(*arguments, *order) == 1
        assert f"note: in program ({program}, 0, 0)" in capsys.readouterr().err


def test_a_run_without_an_end_is_a_fault(kernels, capsys):
    arguments = (f"{kernels}:spins", "--grid", 1, "--arg", "x=zeros:i32[1]")
    assert run(*arguments) == 1
    assert f"{kernels}:19:" in (error := capsys.readouterr().err)
    assert "deadlock: the default task polls global memory in a loop" in error
    assert run(*arguments, "--no-global-order", "--max-turns", 100) == 1
    assert f"{kernels}:19:" in (error := capsys.readouterr().err)
    assert "no end after 100 turns" in error


def test_a_read_of_uninitialized_memory_may_be_a_warning(kernels, capsys):
    arguments = (f"{kernels}:reads_nothing", "--grid", 1, "--arg", "out=zeros:fp32[32]")
    assert run(*arguments) == 1
    assert "error: 'buffer[0]' is read before it is written: 32 of its 32 elements" in capsys.readouterr().err
    assert run(*arguments, "--unwritten", "warn") == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("out: float32[32], 32 NaN\n")
    first, line, caret, *_ = printed.err.splitlines()
    assert first == f"{kernels}:26:38: warning: 'buffer' is read before it is written, and reads as NaN"
    assert line[caret.index("^") :] == "tlx.local_load(buffer[0]))"


def test_issue_may_order_the_tensor_core(capsys):
    kernel = f"{Path(__file__).parents[1] / 'interpreter' / 'synchronisation' / 'test_tensor_core_order.py'}:copies"
    arguments = ["--grid", 1, "--target", "sm_100a", "--constexpr", "OVERWRITES=True", "--constexpr", "REUSES=False"]
    arguments += ["--arg", "a_ptr=randint(0,8):fp32[128,32]", "--arg", "b_ptr=randint(0,8):fp32[32,64]"]
    arguments += ["--arg", "c_ptr=nan:fp32[2,128,64]", "--check", "c_ptr=np.stack([a_ptr @ b_ptr] * 2)"]
    assert run(kernel, *arguments) == 1
    printed = capsys.readouterr().err
    assert (
        "error: the tcgen05.cp of the default task writes 'a[0]' while an earlier one may still be in flight" in printed
    )
    assert "note: one task issues both: with --tensor-core-order issue (in Python tensor_core_order=" in printed
    assert run(kernel, *arguments, "--tensor-core-order", "issue") == 0
    assert "largest error 0.0e+00" in capsys.readouterr().out


def test_nothing_written(kernels, capsys):
    assert run(f"{kernels}:spins", "--grid", 1, "--arg", "x=ones:i32[1]") == 0
    assert capsys.readouterr().out.splitlines()[0] == "no array has changed"


def test_several_processes_and_a_trace(kernels, tmp_path, capsys):
    arguments = ["--grid", 8, "--arg", "x=ones[256]", "--arg", "out=zeros[256]", "--arg", "factor=3", "--arg", "n=256"]
    assert run(f"{kernels}:scale", *arguments, "--jobs", 2, "--check", "out=3") == 0
    assert capsys.readouterr().out.splitlines()[1].endswith(", round-robin, seed 0, 2 processes")
    path = tmp_path / "trace.json"
    assert run(f"{kernels}:scale", *arguments, "--trace", path) == 0
    assert json.loads(path.read_text())["traceEvents"]


@pytest.mark.parametrize("cluster", ["2", "2,1", "2,1,1"])
def test_clusters_are_counted(kernels, capsys, cluster):
    arguments = ["--arg", "x=ones[256]", "--arg", "out=zeros[256]", "--arg", "factor=3", "--arg", "n=256"]
    assert run(f"{kernels}:scale", "--grid", 8, "--cluster", cluster, *arguments) == 0
    assert "4 clusters in" in capsys.readouterr().out


@pytest.mark.parametrize("emit", ["ttir", "ttgir"])
def test_ir_from_a_file(tmp_path, capsys, emit):
    main(["compile", GEMM, "-o", str(tmp_path), "--emit", emit, "-q"])
    blocks = ["--grid", "4", *GEMM_ARGUMENTS[2:], "--check", "c_desc=a_desc@b_desc"]
    assert run(tmp_path / f"matmul.{emit}", *blocks) == 0
    assert run(f"{tmp_path / f'matmul.{emit}'}:matmul", *blocks, "--schedule", "adversarial") == 0
    assert "largest error" in capsys.readouterr().out


GRID = "expected a grid of one to three numbers of programs, each from 0 to 2,147,483,647"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--grid", "8"], "'matmul' needs values: --arg a_desc=randn[ROWS,COLUMNS] --arg b_desc=randn[ROWS,COLUMNS]"),
        (["--grid", "M+"], "--grid: 'M+' can't be computed: SyntaxError"),
        (["--grid", "1,1,1,1"], f"--grid: {GRID}, found (1, 1, 1, 1)"),
        (["--grid", "0.5"], f"--grid: {GRID}, found 0.5"),
        (["--grid", "1", "--arg", "Q=3"], "--arg: 'matmul' has no parameter 'Q', its parameters are a_desc, b_desc"),
        (["--grid", "1", "--arg", "M"], "--arg: expected NAME=VALUE, found 'M'"),
        (["--grid", "1", "--save", "d=d.npy"], "--save: there is no array 'd', the arrays are a_desc, b_desc, c_desc"),
        (["--grid", "1", "--check", "M=3"], "--check: there is no array 'M'"),
        (
            ["--grid", "1", "--check", "c_desc=a_desc@c"],
            "--check: 'a_desc@c' can't be computed: no name 'c', the names are ",
        ),
        (["--grid", "1", "--check", "c_desc=b_desc"], "--check c_desc: the expression has the shape [136, 264]"),
        (
            ["--grid", "1", "--stage", "sass"],
            "unknown stage 'sass', expected frontend, aliased, ttgir, tlx-check-target",
        ),
        (["--grid", "1", "--jobs", "0"], "jobs must be at least 1, found 0"),
        (["--grid", "1", "--arg", "M=randn[4]"], "'M' must be a number, found ndarray"),
        (["--grid", "1", "--arg", "M=5000000000"], "'M' is an i32, which cannot hold 5000000000"),
        (["--grid", "3", "--cluster", "2,1,1"], "the grid has 3 programs along x, no multiple of the cluster's 2"),
    ],
)
def test_wrong_command_lines(capsys, arguments, message):
    complete = [] if arguments == ["--grid", "8"] else list(GEMM_ARGUMENTS[2:])
    assert run(GEMM, *complete, *arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"error: {message}")
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("{kernels}:nothing", "no kernel 'nothing' in this file, its kernels are scale, runs_off, spins"),
        ("{kernels}", "expected FILE.py:KERNEL, found "),
        ("missing.mlir", "missing.mlir"),
    ],
)
def test_what_can_not_be_loaded(kernels, capsys, spec, message):
    assert run(spec.format(kernels=kernels), "--grid", 1) == 1
    error = capsys.readouterr().err
    assert "error: " in error
    assert message in error
    assert "internal" not in error


@pytest.mark.parametrize("option", ["--profile", "--compare"])
def test_what_only_final_ptx_has(kernels, capsys, option):
    assert main(["run", f"{kernels}:runs_off", "--grid", "1", "--arg", "x=randn:i32[4]", option]) == 1
    assert f"error: {option}: only with --stage ptx" in capsys.readouterr().err
