"""Choice of ptxas: the newest that the driver allows, what the user says, and what old ones are known to break.

The oracles are stock Triton's own `get_ptxas`, and programs of ours that claim to be a release.
"""

import importlib
import os
import sys
from pathlib import Path

import pytest
from backend_kernels import VECTOR_ADD, needs_triton

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.versions import INSTALLED
from tlx_xdsl.backend import BackendError, BackendOptions, assemblers, compile_ttgir
from tlx_xdsl.backend.assemblers import Assembler, candidates, found, identity, stock_tool
from tlx_xdsl.runtime.driver.compilation import compile_text
from tlx_xdsl.runtime.driver.specialization import Specialization
from tlx_xdsl.targets import targets_of
from tlx_xdsl.text.profiles import parse_version

HOPPER = 90
STOCK_VERSION = {"12.8.93": "8.7", "12.9.86": "8.8", "13.1.80": "9.1", "13.3.33": "9.3", "13.4.59": "9.4"}


def program(path: Path, release: str, then: str = "exit 1") -> str:
    """A program at `path` that claims to be a ptxas of a release; `then` is what it does with PTX."""
    path.parent.mkdir(parents=True, exist_ok=True)
    says = f"echo 'Cuda compilation tools, release {release.rpartition('.')[0]}, V{release}'"
    path.write_text(f'#!/bin/sh\ncase "$*" in *--version*) {says}; exit;; esac\n{then}\n')
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine without an assembler; gives the folder in which Triton's and NVIDIA's may be made."""
    for name in (*assemblers.TOOLS.values(), "TLX_PTXAS", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    monkeypatch.setattr(assemblers, "_INSTALLED", tmp_path / "local")
    monkeypatch.setattr(assemblers, "_of_triton", lambda name: str(tmp_path / "triton" / name))
    return tmp_path


def triton_s(machine: Path, ptxas: str, blackwell: str) -> None:
    program(machine / "triton" / "ptxas", ptxas)
    program(machine / "triton" / "ptxas-blackwell", blackwell)


def texts(chosen) -> list[str]:
    return [str(each) for each in chosen]


# What is here --------------------------------------------------------------------------------------------------------


def test_assemblers_are_found_where_they_are_installed(machine, monkeypatch):
    triton_s(machine, "12.8.93", "12.9.86")
    program(machine / "site" / "nvidia" / "cu13" / "bin" / "ptxas", "13.5.37")
    program(machine / "site" / "nvidia" / "cuda_nvcc" / "bin" / "ptxas", "12.6.85")
    program(machine / "home" / "bin" / "ptxas", "13.4.92")
    monkeypatch.setenv("CUDA_HOME", str(machine / "home"))
    program(machine / "local" / "cuda-13.1" / "bin" / "ptxas", "13.1.115")
    (machine / "local" / "cuda").symlink_to(machine / "local" / "cuda-13.1")
    program(machine / "path" / "ptxas", "13.3.73")
    assert texts(found()) == [
        "ptxas 13.5.37 (nvidia-cuda-nvcc)",
        "ptxas 13.4.92 (CUDA_HOME)",
        "ptxas 13.3.73 (PATH)",
        f"ptxas 13.1.115 ({machine / 'local' / 'cuda'})",
        "ptxas 12.9.86 (triton's ptxas-blackwell)",
        "ptxas 12.8.93 (triton's ptxas)",
        "ptxas 12.6.85 (nvidia-cuda-nvcc-cu12)",
    ]


def test_what_does_not_run_or_says_no_release_is_not_there(machine):
    triton_s(machine, "12.8.93", "12.9.86")
    broken = machine / "path" / "ptxas"
    broken.parent.mkdir()
    broken.write_text("no program")
    assert len(found()) == 2
    broken.write_text("#!/bin/sh\necho nothing of use")
    broken.chmod(0o755)
    assert len(found()) == 2


def test_of_two_of_one_release_triton_s_is_named(machine):
    triton_s(machine, "12.9.86", "13.4.59")
    program(machine / "path" / "ptxas", "13.4.59")
    assert texts(found()) == ["ptxas 13.4.59 (triton's ptxas-blackwell)", "ptxas 12.9.86 (triton's ptxas)"]


# The choice ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("newest_cuda", "first"), [(None, "13.4.59"), (14, "13.4.59"), (13, "13.4.59"), (12, "12.9.86"), (11, "12.9.86")]
)
def test_the_newest_is_taken_whose_binaries_the_driver_loads(machine, newest_cuda, first):
    triton_s(machine, "12.9.86", "13.4.59")
    # Below 90 stock takes the other one, and where the driver loads none, stock's choice is as good as any.
    assert candidates(80, "3.9.0", newest_cuda=newest_cuda)[0].release == first


def test_13_1_comes_before_12_9_which_comes_before_13_0(machine):
    triton_s(machine, "12.8.93", "12.9.86")
    program(machine / "path" / "ptxas", "13.0.88")
    assert [each.release for each in candidates(HOPPER, "3.6.0")] == ["12.9.86", "13.0.88", "12.8.93"]
    program(machine / "site" / "nvidia" / "cu13" / "bin" / "ptxas", "13.1.80")
    assert candidates(HOPPER, "3.6.0")[0].release == "13.1.80"


def test_triton_s_variable_goes_before_our_choice_where_stock_reads_it(machine, monkeypatch):
    triton_s(machine, "12.8.93", "13.1.80")
    other = program(machine / "other", "12.6.85")
    monkeypatch.setenv("TRITON_PTXAS_PATH", other)
    assert texts(candidates(HOPPER, "3.7.1")) == ["ptxas 12.6.85 (TRITON_PTXAS_PATH)"]
    # Stock reads the other variable for these.
    assert candidates(100, "3.7.1")[0].release == candidates(HOPPER, "3.9.0")[0].release == "13.1.80"
    # And its own tool where the variable names none: then the choice is ours again.
    monkeypatch.setenv("TRITON_PTXAS_PATH", "/nowhere")
    assert candidates(HOPPER, "3.7.1")[0].release == "13.1.80"


@pytest.mark.parametrize("by", ["option", "variable"])
def test_a_pin_goes_before_all(machine, monkeypatch, by):
    triton_s(machine, "12.8.93", "13.1.80")
    other = program(machine / "other", "12.6.85")
    monkeypatch.setenv("TRITON_PTXAS_PATH", other)
    pins = {
        str(machine / "other"): "ptxas 12.6.85 (pinned)",
        "13": "ptxas 13.1.80 (triton's ptxas-blackwell, pinned)",
        "12.8": "ptxas 12.8.93 (triton's ptxas, pinned)",
        "stock": "ptxas 12.6.85 (TRITON_PTXAS_PATH)",
    }
    for pin, expected in pins.items():
        if by == "variable":
            monkeypatch.setenv("TLX_PTXAS", pin)
        assert texts(candidates(HOPPER, "3.7.1", pin=None if by == "variable" else pin, newest_cuda=12)) == [expected]


@pytest.mark.parametrize(
    ("pin", "said"),
    [
        ("/nowhere/ptxas", "expected a ptxas that runs, a release or stock, found '/nowhere/ptxas'"),
        ("13.3", "expected one of release 13.3, found ptxas 13.1.80 (triton's ptxas-blackwell), ptxas 12.8.93"),
        ("13.1.8", "expected one of release 13.1.8, found"),
    ],
)
def test_a_pin_that_is_not_here_is_an_error(machine, pin, said):
    triton_s(machine, "12.8.93", "13.1.80")
    with pytest.raises(BackendError) as caught:
        candidates(HOPPER, "3.7.1", pin=pin)
    assert said in str(caught.value)


def test_a_machine_on_which_none_runs_is_an_error(machine):
    with pytest.raises(BackendError, match="Triton's ptxas does not run: reinstall Triton, or set TRITON_PTXAS_PATH"):
        candidates(80, "3.9.0")


def test_the_identity_covers_files_and_variables_and_starts_nothing(machine, monkeypatch):
    triton_s(machine, "12.8.93", "13.1.80")
    monkeypatch.setattr(assemblers, "_release", None)
    seen = {identity(), identity("12.8"), identity(allow_old=True), identity(newest_cuda=12)}
    other = program(machine / "other", "12.6.85")
    for name in ("TRITON_PTXAS_PATH", "TLX_PTXAS"):
        monkeypatch.setenv(name, other)
        seen.add(identity())
    os.utime(other, (1, 1))
    seen.add(identity())
    program(machine / "path" / "ptxas", "13.3.73")
    seen.add(identity())
    monkeypatch.setenv("TLX_ALLOW_OLD_PTXAS", "no")
    assert len(seen | {identity()}) == 9
    assert identity() == identity()


@pytest.mark.parametrize(
    ("release", "ptx"), [("12.4.99", 84), ("12.6.85", 85), ("12.8.93", 87), ("13.0.88", 90), ("13.4.59", 94)]
)
def test_each_release_reads_ptx_up_to_a_version(release, ptx):
    assert Assembler("", "", release).ptx_version == ptx


# With stock Triton ---------------------------------------------------------------------------------------------------


@needs_triton
@pytest.mark.parametrize("target", targets_of(parse_version(INSTALLED or "3.9")), ids=lambda target: target.name)
def test_stock_s_tool_is_the_one_that_stock_takes(target):
    compiler = importlib.import_module("triton.backends.nvidia.compiler")
    path = Path(compiler.get_ptxas(target.capability).path)
    assert path.name == stock_tool(target.capability, INSTALLED)
    own = assemblers.stock_choice(target.capability, INSTALLED)
    assert own.path == str(path)
    assert own.ptx_version == compiler.ptx_get_version(compiler.get_ptxas(target.capability).version)


@needs_triton
def test_the_ptx_has_the_version_that_stock_writes_whichever_assembles():
    own = assemblers.stock_choice(80, INSTALLED)
    text = VECTOR_ADD.replace("cuda:90", "cuda:80")
    result = compile_ttgir(text, BackendOptions("sm_80"))
    stock = compile_ttgir(text, BackendOptions("sm_80", ptxas="stock"))
    assert stock.assembler == str(own)
    assert result.assembler == str(candidates(80, INSTALLED)[0]) != stock.assembler
    assert result.ptx == stock.ptx
    assert f".version {STOCK_VERSION[own.release]}\n" in stock.ptx
    assert result.cubin != stock.cubin


@needs_triton
def test_an_old_driver_gets_an_older_assembler_and_ptx_that_it_reads():
    """3.9 writes PTX 9.4 for Hopper, which no ptxas of CUDA 12 reads."""
    result = compile_ttgir(VECTOR_ADD, BackendOptions("sm_90a", newest_cuda=12))
    assert result.assembler.startswith("ptxas 12.")
    assert ".version 8." in result.ptx
    assert result.cubin.startswith(b"\x7fELF")


REFUSALS = {
    "target": "ptxas fatal   : Value 'sm_90a' is not defined for option 'gpu-name'",
    "version": "ptxas x.ptx, line 5; fatal   : Unsupported .version 8.7; current version is '8.6'",
}


@needs_triton
@pytest.mark.parametrize("refusal", REFUSALS)
def test_one_that_does_not_know_the_target_is_passed_over(tmp_path, monkeypatch, refusal):
    program(tmp_path / "bin" / "ptxas", "99.1.1", f'echo "{REFUSALS[refusal]}" >&2; exit 255')
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert found()[0].release == "99.1.1"
    result = compile_ttgir(VECTOR_ADD, BackendOptions())
    assert result.assembler == str(found()[1])
    assert result.cubin.startswith(b"\x7fELF")


@needs_triton
def test_another_fault_is_no_reason_to_try_the_next_one(tmp_path, monkeypatch):
    program(tmp_path / "bin" / "ptxas", "99.1.1", "echo 'ptxas fatal   : out of tape' >&2; exit 255")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    with pytest.raises(BackendError, match="ptxas: out of tape"):
        compile_ttgir(VECTOR_ADD, BackendOptions(), locate=False)


@needs_triton
def test_13_x_gets_the_option_that_stock_gives_it_since_3_7(tmp_path):
    """The option avoids a defect in 13.x's allocation of registers; 3.6 passes none."""
    noted = tmp_path / "arguments"
    real = found()[0].path
    pinned = program(tmp_path / "ptxas", "13.4.59", f'echo "$@" > {noted}; exec {real} "$@"')
    compile_ttgir(VECTOR_ADD, BackendOptions(ptxas=pinned))
    assert noted.read_text().split().count("--regAllocOptLevel=2") == 1


# What old ones are known to break ------------------------------------------------------------------------------------


@tlx_xdsl.jit
def two_products(x, y, out):
    at = tl.arange(0, 64)
    tile = at[:, None] * 64 + at[None, :]
    left, right = tl.load(x + tile), tl.load(y + tile)
    first = tl.dot(left, right).to(tl.float16)
    tl.store(out + tile, tl.dot(first, right))


SECOND_PRODUCT = two_products.source.tree.lineno + 5 if two_products.source.tree is not None else 0


@pytest.fixture(scope="module")
def products() -> str:
    """Text of a kernel for Hopper whose second product has its operand in registers."""
    signature = {"x": "*fp16:16", "y": "*fp16:16", "out": "*fp32:16"}
    return compile_text(two_products.source, Specialization(signature), triton_version=INSTALLED or "3.9.0").ttgir


@pytest.fixture
def pretend(tmp_path, monkeypatch):
    """A function that gives options with a ptxas that says another release than its own."""
    monkeypatch.delenv("TLX_ALLOW_OLD_PTXAS", raising=False)
    real = found()[0].path

    def options(release: str, **more: object) -> BackendOptions:
        return BackendOptions(ptxas=program(tmp_path / release, release, f'exec {real} "$@"'), **more)

    return options


@pytest.mark.parametrize(
    ("release", "is_right", "is_wrong"),
    [("12.8.93", False, True), ("12.9.86", False, False), ("13.0.88", False, True), ("13.1.80", False, False)]
    + [(release, True, False) for release in ("13.3.33", "13.4.59", "14.0.1")],
)
def test_what_is_known_of_a_release(release, is_right, is_wrong):
    known = Assembler("", "", release)
    assert (known.is_right, known.is_wrong) == (is_right, is_wrong)


@needs_triton
def test_an_old_release_is_warned_of_at_the_product(products, pretend):
    result = compile_ttgir(products, pretend("12.9.86"))
    # The first product has both operands in shared memory.
    (warning,) = result.warnings
    assert warning.location is not None
    assert warning.location.line == SECOND_PRODUCT
    assert warning.text.startswith(
        "old ptxas: ptxas 12.9.86 (pinned) may overwrite, before wgmma has read them, registers"
    )
    assert "pip install nvidia-cuda-nvcc, which is then taken" in warning.text


@needs_triton
def test_who_allows_an_old_release_is_not_warned(products, pretend, monkeypatch):
    monkeypatch.setenv("TLX_ALLOW_OLD_PTXAS", "1")
    assert compile_ttgir(products, pretend("12.9.86")).warnings == ()


@needs_triton
def test_a_right_release_has_no_warning(products, pretend):
    assert compile_ttgir(products, pretend("13.3.33")).warnings == ()


@needs_triton
def test_a_wrong_release_is_refused_and_can_be_allowed(products, pretend):
    with pytest.raises(BackendError) as caught:
        compile_ttgir(products, pretend("12.8.93", newest_cuda=12))
    error = caught.value
    assert error.location is not None
    assert error.location.line == SECOND_PRODUCT
    assert error.message.startswith("ptxas 12.8.93 (pinned) may use wrong addresses for this product")
    assert "need a driver of CUDA 13; for this one of CUDA 12 12.9 is the best" in error.notes[0]
    assert "--allow-old-ptxas or TLX_ALLOW_OLD_PTXAS=1" in error.notes[1]
    (warning,) = compile_ttgir(products, pretend("12.8.93", allow_old_ptxas=True)).warnings
    assert "may use wrong addresses" in warning.text


@needs_triton
def test_a_kernel_without_such_a_product_has_no_warning(pretend):
    assert compile_ttgir(VECTOR_ADD, pretend("12.8.93")).warnings == ()
