"""Messages that the user reads when stock Triton refuses, prints, or dies."""

import pickle
from pathlib import Path

import pytest
from backend_kernels import (
    ABORTING,
    SHARED_TOO_LARGE,
    TMEM_TOO_LARGE,
    VECTOR_ADD,
    inline_asm,
    needs_triton,
)

from tests.versions import INSTALLED
from tlx_xdsl.backend import (
    BackendError,
    BackendOptions,
    BackendTimeoutError,
    OutOfResourcesError,
    compile_ttgir,
    stages,
    stop_worker,
)
from tlx_xdsl.backend.stock_passes import StockPass
from tlx_xdsl.errors import CompilationError, SourceLocation

pytestmark = needs_triton

HOPPER = BackendOptions(target="sm_90a")


def failure_of(text: str, options: BackendOptions = HOPPER, **keywords) -> BackendError:
    with pytest.raises(BackendError) as info:
        compile_ttgir(text, options, **keywords)
    return info.value


@pytest.mark.parametrize("isolation", ["process", "none"])
def test_a_syntax_error_points_into_the_text(isolation):
    line = "    %sum = arith.addf %vx, : tensor<128xf32, #block>"
    text = VECTOR_ADD.replace('    %sum = arith.addf %vx, %vy : tensor<128xf32, #block> loc("user.py":5:11)', line)
    number = text.splitlines().index(line) + 1
    error = failure_of(text, source_name="add.ttgir", isolation=isolation)
    assert error.location == SourceLocation("add.ttgir", number, 27)
    assert str(error).splitlines() == [
        f"add.ttgir:{number}:27: error: expected SSA operand",
        f"    {line}",
        " " * 30 + "^",
        f"note: stock Triton {INSTALLED} failed in stage 'parse'",
    ]
    assert error.stage == "parse"
    assert isinstance(error, CompilationError)


def test_a_verifier_error_points_at_the_user_s_line(tmp_path: Path):
    source = tmp_path / "user.py"
    source.write_text("def add(x, y):\n    index = range(100)\n")
    text = VECTOR_ADD.replace("end = 128", "end = 100").replace("user.py", str(source))
    error = failure_of(text)
    assert error.location == SourceLocation(str(source), 2, 5)
    assert error.source_line is not None
    assert error.source_line.strip() == "index = range(100)"
    assert "100" in error.message


def test_an_abort_is_an_error_and_the_next_compile_works():
    error = failure_of(ABORTING)
    assert "died of SIGABRT" in error.message
    assert "assertion `" in error.message
    assert error.stage == "parse"
    assert "Assertion" in error.log
    assert compile_ttgir(VECTOR_ADD, HOPPER).cubin


def test_a_death_in_a_later_stage_names_that_stage():
    error = failure_of(inline_asm("mov.b32", "=r,r,r"))
    assert "number of input constraints does not match number of parameters" in error.message
    assert error.stage == "llir"


def test_an_error_that_is_only_printed_fails_the_compile():
    # 3.6 exits over an unknown constraint; 3.9 prints an error and would go on without the instruction.
    error = failure_of(inline_asm("mov.b32", "=Q,Q"))
    assert "allocate output register for constraint 'Q'" in error.message
    assert error.stage == "ptx"


def test_a_ptxas_error_points_at_the_user_s_line_and_keeps_the_ptx_to_the_log(capfd):
    error = failure_of(inline_asm("no.such.instruction", "=r,r"))
    assert error.location == SourceLocation("user.py", 5, 11)
    assert error.message.startswith("ptxas: ")
    assert len(str(error).splitlines()) == 2
    assert ".visible .entry add" in error.log
    assert capfd.readouterr() == ("", "")


def test_a_failing_pass_is_named():
    text = VECTOR_ADD.replace(
        "tt.store %ay, %sum",
        "%bare = builtin.unrealized_conversion_cast %sum : tensor<128xf32, #block> to tensor<128xf32>\n"
        "    %twice = arith.addf %bare, %bare : tensor<128xf32>\n"
        "    %back = builtin.unrealized_conversion_cast %twice : tensor<128xf32> to tensor<128xf32, #block>\n"
        "    tt.store %ay, %back",
    )
    error = failure_of(text)
    assert error.message == "the pass ConvertTritonGPUToLLVM failed without saying why"
    assert error.stage == "llir"


def test_shared_memory_over_budget():
    error = failure_of(SHARED_TOO_LARGE)
    assert isinstance(error, OutOfResourcesError)
    assert (error.resource, error.required, error.limit) == ("shared memory", 262144, 232448)
    assert "262144" in error.message
    assert "232448" in error.message


def test_tensor_memory_over_budget():
    error = failure_of(TMEM_TOO_LARGE, BackendOptions(target="sm_100a"))
    assert isinstance(error, OutOfResourcesError)
    assert (error.resource, error.required, error.limit) == ("tensor memory", 576, 512)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (BackendOptions(num_warps=8), "the module says ttg.num-warps:4, but the option num_warps says 8"),
        (BackendOptions(num_ctas=2), "the module says ttg.num-ctas:1, but the option num_ctas says 2"),
        (
            BackendOptions(target="sm_100a"),
            "the module says ttg.target = cuda:90, but the option target says 100",
        ),
    ],
)
def test_options_that_contradict_the_module(options: BackendOptions, message: str):
    assert failure_of(VECTOR_ADD, options).message == message


def test_a_module_without_a_kernel():
    error = failure_of(VECTOR_ADD.replace("public", "private"))
    assert error.message == "the module has no public function to compile"


def test_a_timeout_ends_the_compile_and_the_next_one_works():
    error = failure_of(VECTOR_ADD, timeout_s=1e-4)
    assert isinstance(error, BackendTimeoutError)
    assert compile_ttgir(VECTOR_ADD, HOPPER).cubin


def test_a_pass_that_triton_lacks_is_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stages, "stock_passes", lambda *_: (StockPass("ttgpuir", "fly", "to test this"),))
    error = failure_of(VECTOR_ADD, isolation="none")
    assert error.message == "this Triton has no pass ttgpuir.fly"
    assert error.stage == "passes"


def test_without_triton_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tlx_xdsl.backend.compile.find_spec", lambda name: None)
    assert "pip install" in failure_of(VECTOR_ADD).message


def test_a_worker_that_can_not_start_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "__init__.py").write_text("raise ImportError('broken installation')")
    stop_worker()
    monkeypatch.syspath_prepend(str(tmp_path))
    error = failure_of(VECTOR_ADD)
    assert error.message == "the stock Triton process exited with code 1: ImportError: broken installation"
    assert error.stage == "start"


def test_errors_survive_pickling():
    for text in (SHARED_TOO_LARGE, ABORTING):
        error = failure_of(text)
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error)
        assert (str(copy), copy.log, vars(copy)) == (str(error), error.log, vars(error))
