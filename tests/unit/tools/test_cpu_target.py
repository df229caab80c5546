"""`tlx compile` and `tlx explain` with the target cpu, and what `tlx doctor` says of the CPU, as a user types them."""

# covers: target.cpu, tlx compile, tlx explain, tlx doctor

import json
import re
import sys
from pathlib import Path

import pytest

from tests.unit.docs.documents import blocks, printed
from tlx_xdsl.cpu.bufferize.bufferize import bufferize_pipeline
from tlx_xdsl.cpu.codegen.host import host
from tlx_xdsl.cpu.tools import doctor as doctor_cpu
from tlx_xdsl.cpu.tools.compile_cpu import instruction_counts
from tlx_xdsl.runtime.driver import cache
from tlx_xdsl.tools.commands.doctor import Finding
from tlx_xdsl.tools.launch_line.kernel_options import CPU_STAGES as STAGES
from tlx_xdsl.tools.opt.main import main as tlx_opt
from tlx_xdsl.tools.tlx import main

EXAMPLE = Path(__file__).parents[3] / "examples" / "hopper_gemm_ws.py"

KERNEL = """\
import tlx_xdsl
import tlx_xdsl.language as tl

TLX_COMPILE = {"softmax": {"signature": {"x": "*fp32", "out": "*fp32", "n": "i32"}, "num_warps": 8}}


@tlx_xdsl.jit
def softmax(x, out, n, BLOCK: tl.constexpr = 64):
    index = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * n + index, mask=index < n, other=-float("inf"))
    top = tl.exp(row - tl.max(row))
    tl.store(out + tl.program_id(0) * n + index, top / tl.sum(top), mask=index < n)
"""


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    (tmp_path / "kernel.py").write_text(KERNEL)
    monkeypatch.chdir(tmp_path)
    return "kernel.py:softmax"


@pytest.fixture
def without_llvmlite(monkeypatch):
    """Let it be not installed."""
    from tlx_xdsl.cpu.codegen import host as home

    home.llvm.cache_clear()
    home.host.cache_clear()
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    monkeypatch.delitem(sys.modules, "llvmlite.binding", raising=False)
    yield
    home.llvm.cache_clear()
    home.host.cache_clear()


# --- tlx compile -----------------------------------------------------------------------------------------------------


def test_what_is_written_and_reported(kernel, capsys):
    assert main(["compile", kernel, "--target", "cpu"]) == 0
    names = [f"softmax.{end}" for end in ("ll", "s", "o", "h", "c", "json")]
    assert sorted(path.name for path in Path("build").iterdir()) == sorted(names)
    head, *lines = capsys.readouterr().out.splitlines()
    assert head == f"softmax for {host().cpu} ({host().triple})"
    assert lines[-len(names) :] == [f"    build/{name}" for name in names]
    figures = {
        name.strip(): float(number) for name, number in re.findall(r"^    (\S.*?) +([\d.]+)$", "\n".join(lines), re.M)
    }
    known = json.loads(Path("build/softmax.json").read_text())
    assert figures["scratch memory, bytes per thread"] == known["scratch_bytes"]
    assert 0 < figures["machine code, bytes"] < len(Path("build/softmax.o").read_bytes())
    assert 0 < figures["linalg-bufferize"] < figures["total"]
    assert 0 < figures[f"on {8 * host().features.vector_bytes}-bit registers"] < figures["all"]
    assert known["symbol"] == "softmax_run"
    assert known["constants"] == {"BLOCK": 64}


def test_text_is_printed(kernel, capsys):
    assert main(["compile", kernel, "--target", "cpu", "-o", "-"]) == 0
    assert re.search(r"^_?softmax_run:$", capsys.readouterr().out, re.MULTILINE)
    assert main(["compile", kernel, "--target", "cpu", "-o", "-", "--emit", "ll,h"]) == 0
    text = capsys.readouterr().out
    assert 'define i32 @"softmax_run"(ptr %arguments' in text
    assert "int softmax_launch(" in text
    assert not Path("build").exists()


def test_the_commands_of_the_page_about_compiling(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("relu.py").write_text(blocks("docs/compile.md", "python")[0])
    shown = [re.split(r"  +#", line)[0] for line in blocks("docs/compile.md", "sh")[0].splitlines()]
    written, listed = (printed(line.removeprefix("tlx ")) for line in shown if "--target cpu" in line)
    assert [line.strip() for line in written.splitlines()[-6:]] == [f"build/relu.{stage}" for stage in STAGES]
    assert listed == Path("build/relu.s").read_text()


def test_the_module_after_each_pass(kernel, capsys):
    assert main(["compile", kernel, "--target", "cpu", "-q", "--print-after-all", "--emit", "ll"]) == 0
    names = sorted(path.name for path in Path("build").iterdir())
    assert names[0] == "softmax.00-frontend.mlir"
    assert names[-4].endswith("-memref-plan-arena.mlir")
    assert names[-3].endswith("-to-llvm.ll")
    assert names[-2].endswith("-llvm-passes.ll")
    assert Path("build", names[-3]).read_text() == Path("build/softmax.ll").read_text()
    # What was printed is read again, and goes on from there.
    passes = [each.name for each in bufferize_pipeline()]
    before = next(path for path in Path("build").iterdir() if path.name.endswith("-canonicalize.mlir"))
    capsys.readouterr()
    assert tlx_opt([str(before), "-p", ",".join(passes)]) == 0
    assert capsys.readouterr().out.count("arena.offset") == Path("build", names[-4]).read_text().count("arena.offset")
    assert main(["compile", kernel, "--target", "cpu", "--print-after-all", "--emit", "json", "-o", "-"]) == 0
    shown = capsys.readouterr()
    assert "// -----// IR Dump After linalg-bufferize //----- //" in shown.err
    assert json.loads(shown.out)["name"] == "softmax"


def test_a_bundle_and_its_name(kernel):
    arguments = ["compile", kernel, "--target", "cpu", "--bundle", "out", "--bundle-name", "rows", "-q", "--checks"]
    assert main([*arguments, "--cpu", "native"]) == 0
    assert sorted(str(path) for path in Path("out").rglob("*.*")) == [
        f"out/rows/rows.{end}" for end in ("c", "h", "json", "o")
    ]
    assert "size_t x_bytes" in Path("out/rows/rows.h").read_text()
    assert not Path("build").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--target", "cpu", "--emit", "ptx"],
            "--emit: with --target cpu expected stages of ll, s, o, h, c, json, found 'ptx'",
        ),
        (["--target", "cpu", "--emit", "s,o", "-o", "-"], "--output -: only ll, s, h, c, json are printed"),
        (["--target", "cpu", "--cpu", "pdp11"], "unknown CPU 'pdp11', expected one of native"),
        (["--target", "cpu", "--triton-version", "3.9"], "--triton-version: it is for GPUs"),
        (["--target", "cpu", "--bundle-name", "x"], "--bundle-name: there is no bundle that it is for"),
        (["--target", "cpu", "--bundle", "out", "-o", "-"], "--output -: text is printed, while --bundle writes"),
        (["--target", "cpu", "--bundle", "out", "--bundle-name", "a b"], "is an identifier of C, found 'a b'"),
        (["--checks"], "--checks: it is for --target cpu"),
        (["--target", "linalg", "--cpu", "native"], "--cpu: it is for --target cpu"),
    ],
)
def test_wrong_arguments_are_one_line(kernel, capsys, arguments, message):
    assert main(["compile", kernel, *arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error
    assert error.count("\n") == 1


def test_a_kernel_of_tlx_is_refused_at_its_line(capsys):
    assert main(["compile", f"{EXAMPLE}:matmul", "--target", "cpu", "-o", "-"]) == 1
    error = capsys.readouterr().err
    assert "error: 'tlx.storage_alias_spec' cannot be compiled for the CPU\n" in error
    assert "storage = tlx.storage_alias_spec" in error
    assert "'tlx run'" in error


def test_without_llvmlite(kernel, capsys, without_llvmlite):
    assert main(["compile", kernel, "--target", "cpu"]) == 1
    error = capsys.readouterr().err
    assert "pip install 'tlx-xdsl[cpu]'" in error
    assert error.count("\n") == 1


def test_instructions_are_counted():
    text = """\
\t.text
softmax:                                # @softmax
\tvmovups\t(%rdi), %zmm0
\tvfmadd231ps\t%ymm1, %ymm2, %ymm0       # ymm0
.LBB0_1:
\tfmla\tv0.4s, v1.4s, v2.4s
\tretq
"""
    assert instruction_counts(text) == {
        "all": 4,
        "on 512-bit registers": 1,
        "on 256-bit registers": 1,
        "on 128-bit registers": 1,
        "fused multiply-adds": 2,
    }


# --- tlx explain -----------------------------------------------------------------------------------------------------


def test_an_explanation(kernel, capsys, without_llvmlite):
    assert main(["explain", kernel, "--target", "cpu"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("softmax for CPUs\n")
    assert re.search(r"^linalg-bufferize +[\d.]+ +\d+  ", out, re.MULTILINE)
    bytes_, *_ = re.findall(r"^memory of softmax: (\d+) bytes for each thread$", out, re.MULTILINE)
    buffers = re.findall(r"^  from byte +(\d+)  memref<64xf32>, .*kernel\.py:\d+:\d+$", out, re.MULTILINE)
    assert buffers
    assert all(int(begin) + 64 * 4 <= int(bytes_) for begin in buffers)
    assert "tt.load is structured" in out


def test_the_difference_that_a_pass_makes(kernel, capsys):
    assert main(["explain", kernel, "--target", "cpu", "--diff", "memref-plan-arena"]) == 0
    assert re.search(r"^\+.*arena\.offset = 0", capsys.readouterr().out, re.MULTILINE)
    assert main(["explain", kernel, "--target", "cpu", "--why", "row"]) == 1
    assert "--why: with --target cpu values have no layouts" in capsys.readouterr().err


# --- tlx doctor ------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / "kernels"))
    return tmp_path / "kernels" / "cpu"


def found() -> dict[str, Finding]:
    return {each.subject: each for each in doctor_cpu.findings()}


def test_the_cpu_is_described(folder):
    shown = found()
    assert re.fullmatch(r"0\.\d+\.\d+, LLVM \d+\.\d+\.\d+", shown["llvmlite"].found)
    assert re.fullmatch(rf"{re.escape(host().cpu)}, \d+-bit vectors, f16 conversions .*", shown["CPU"].found)
    assert shown["CPU cache"].found == f"{folder} ({cache.FOLDER}), not made yet"
    assert all(each.remedy is None for each in shown.values())


def test_llvmlite_is_missing(without_llvmlite, folder):
    shown = found()
    assert "CPU" not in shown
    assert "pip install 'tlx-xdsl[cpu]'" in (shown["llvmlite"].remedy or "")


def test_the_threads(monkeypatch, folder):
    from tlx_xdsl.cpu.runtime import pool

    monkeypatch.setattr(pool._State, "pool", None)
    monkeypatch.setenv(pool.VARIABLE, "3")
    assert found()["CPU threads"].found == f"3 ({pool.VARIABLE})"
    monkeypatch.setattr(pool._State, "pool", None)
    monkeypatch.setenv(pool.VARIABLE, "many")
    assert "expected a number of threads from 1, found 'many'" in found()["CPU threads"].found


def test_the_cache_of_objects(folder, monkeypatch):
    assert cache.store("a" * 64, bytes(3 << 20))
    assert cache.store("b" * 64, b"")
    assert found()["CPU cache"] == Finding("CPU cache", f"{folder} ({cache.FOLDER}), 3 MiB in 2 kernels")
    monkeypatch.setattr(doctor_cpu, "LITTLE", 1 << 62)
    monkeypatch.setattr(doctor_cpu, "MANY", 1)
    shown = found()["CPU cache"]
    assert "more than " in shown.found
    assert f"empty the folder, or set {cache.FOLDER}" in (shown.remedy or "")
