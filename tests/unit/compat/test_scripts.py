"""Scripts for Meta's TLX as they are: interpreted, compiled, read by the command lines, and wrong ones."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")

from triton import knobs

from tests.unit.compat import numpy_torch
from tlx_xdsl.compat import is_installed
from tlx_xdsl.compat.__main__ import main as run
from tlx_xdsl.compat.without_gpu import InterpreterWarning
from tlx_xdsl.tools.tlx import main as tlx

pytestmark = pytest.mark.backend

ROOT = Path(__file__).parents[3]
SCRIPT = str(ROOT / "examples" / "drop_in" / "hopper_gemm_tlx.py")


@pytest.fixture(params=["numpy", *(["torch"] if importlib.util.find_spec("torch") else [])])
def torch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    """Provide the torch that scripts import: a stand-in made of numpy, and the real one where there is one."""
    if request.param == "numpy":
        monkeypatch.setitem(sys.modules, "torch", numpy_torch.module())


@pytest.fixture
def script(tmp_path: Path):
    def write(text: str) -> str:
        path = tmp_path / "script.py"
        path.write_text(text)
        return str(path)

    return write


@pytest.mark.usefixtures("torch")
def test_interpreted(capsys: pytest.CaptureFixture[str]):
    assert run(["--interpret", SCRIPT, "-m", "256", "-n", "256", "-k", "128", "--bench"]) == 0
    best, error, speed = capsys.readouterr().out.splitlines()
    # The tuner has tried each configuration in the interpreter; which is the fastest there means nothing.
    assert best.startswith("best configuration: BLOCK_M: 128, BLOCK_N: ")
    assert 0 < float(error.removeprefix("relative error: ")) < 1e-3
    assert speed.endswith(" TFLOP/s")
    assert not is_installed()


@pytest.mark.usefixtures("torch")
def test_final_ptx(capsys: pytest.CaptureFixture[str]):
    assert run(["--ptx", SCRIPT, "-m", "128", "-n", "128", "-k", "64"]) == 0
    _, error = capsys.readouterr().out.splitlines()
    assert 0 < float(error.removeprefix("relative error: ")) < 1e-3


@pytest.mark.usefixtures("torch")
def test_compiled(tmp_path: Path):
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path)
        assert run(["--compile-only", SCRIPT, "--no-check"]) == 0
    # The kernel of the three configurations that is too big is skipped.
    first, _ = tmp_path.rglob("gemm_kernel.ptx")
    assert "wgmma.mma_async" in first.read_text()
    assert "cp.async.bulk.tensor" in first.read_text()
    binaries = list(tmp_path.rglob("*.cubin"))
    assert len(binaries) == 3
    assert all(path.read_bytes().startswith(b"\x7fELF") for path in binaries)
    assert len(list(tmp_path.rglob("gemm_kernel.handoff"))) == 2
    # The kernel without tlx is stock Triton's work.
    assert list(tmp_path.rglob("bias_relu_kernel.ttgir"))
    assert not list(tmp_path.rglob("bias_relu_kernel.handoff"))


KERNEL = """\
import triton
import triton.language as tl
import triton.language.extra.tlx as tlx

@triton.jit
def kernel(x_ptr):
    buffer = tlx.local_alloc((64,), tl.float32, 1)
    offs = tl.arange(0, 64)
    tlx.local_store(buffer[0], tl.load(x_ptr + offs))
    tl.store(x_ptr, 2 * tl.sum(tlx.local_load(buffer[0])) / 64)
"""
LAUNCH = """
import torch
x = torch.randn(64, device="cpu", dtype=torch.float32)
x = x / x
kernel[(1,)](x)
"""


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize("mode", ["--interpret", "--compile-only"])
def test_a_wrong_kernel_is_an_error_at_its_line(script, mode: str, capsys: pytest.CaptureFixture[str]):
    path = script(f"{KERNEL}    tlx.local_wrong(buffer[0])\n{LAUNCH}")
    assert run([mode, path]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith(f"{path}:11:5: error: ")
    assert "'local_wrong'" in printed


def test_a_script_s_own_failure_is_its_own(script, tmp_path: Path):
    (tmp_path / "helper.py").write_text("")
    path = script("import sys, helper\nassert sys.argv == [__file__, '-x', '--help']\n1 / 0\n")
    before = list(sys.argv), list(sys.path)
    with pytest.raises(ZeroDivisionError):
        run(["--interpret", path, "-x", "--help"])
    assert (sys.argv, sys.path) == before
    assert not is_installed()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.py"], "none.py: error: no such file\n"),
        (["--target", "sm_1", SCRIPT], "error: unknown target 'sm_1': the targets are sm_80, "),
    ],
)
def test_what_can_t_be_started(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]):
    assert run(arguments) == 1
    assert capsys.readouterr().err.startswith(message)


def test_stock_s_switch_for_its_interpreter_means_ours(script):
    """Run in a process of its own: Triton reads the variable when it is imported, too."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.compat.numpy_torch", script(KERNEL + LAUNCH + "print(x.array[:2])\n")],
        cwd=ROOT, env=os.environ | {"TRITON_INTERPRET": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "[2. 1.]\n"), done.stderr


@pytest.mark.usefixtures("torch")
def test_what_a_kernel_leaves_undone_is_a_warning(script):
    unfinished = "    tlx.async_load(x_ptr + offs, buffer[0])\n    tlx.async_load_commit_group()\n"
    with pytest.warns(InterpreterWarning, match="without waiting"):
        assert run(["--interpret", script(KERNEL + unfinished + LAUNCH)]) == 0


@pytest.mark.usefixtures("torch")
def test_what_was_interpreted_can_be_looked_at(script, tmp_path: Path):
    """A launch's result compiles when a script looks at the binary; a warm-up compiles."""
    launch = LAUNCH.replace("kernel[", "launched = kernel[")
    asks = 'assert launched.interpretation.clusters == 1\nassert b"ELF" in launched.asm["cubin"][:4]\n'
    warms = 'assert ".target sm_100a" in kernel.warmup(x, grid=(1,)).asm["ptx"]\n'
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        assert run(["--interpret", "--target", "sm_100a", script(KERNEL + launch)]) == 0
        assert not list(tmp_path.rglob("*.cubin"))
        assert run(["--interpret", "--target", "sm_100a", script(KERNEL + launch + asks + warms)]) == 0


@pytest.mark.usefixtures("torch")
def test_uninitialized_memory_is_a_warning(script):
    """Scripts for GPUs read it where nothing comes of it."""
    reads = "    other = tlx.local_alloc((64,), tl.float32, 1)\n    tl.store(x_ptr + offs, tlx.local_load(other[0]))\n"
    path = script(f"{KERNEL}{reads}{LAUNCH}x = getattr(x, 'array', x)\nassert (x != x).all()\n")
    with pytest.warns(InterpreterWarning, match="'other' is read before it is written, and reads as NaN") as reported:
        assert run(["--interpret", path]) == 0
    (warning,) = reported
    assert (warning.filename, warning.lineno) == (path, 12)


ISSUED = """import torch
import triton
import triton.language as tl
import triton.language.extra.tlx as tlx


@triton.jit
def kernel(x_ptr):
    at = tl.arange(0, 128)[:, None] * 128 + tl.arange(0, 128)[None, :]
    q, k = tlx.local_alloc((128, 128), tl.float16, 1), tlx.local_alloc((128, 128), tl.float16, 1)
    shared = tlx.storage_alias_spec(storage=tlx.storage_kind.tmem)
    s = tlx.local_alloc((128, 128), tl.float32, 1, tlx.storage_kind.tmem, reuse=shared)
    p = tlx.local_alloc((128, 128), tl.float16, 1, tlx.storage_kind.tmem, reuse=shared)
    o = tlx.local_alloc((128, 128), tl.float32, 1, tlx.storage_kind.tmem)
    done = tlx.alloc_barriers(1)
    ones = tl.full((128, 128), 1.0, tl.float16)
    tlx.local_store(q[0], ones)
    tlx.local_store(k[0], ones)
    tlx.local_store(p[0], ones + ones)
    tlx.async_dot(p[0], k[0], o[0], use_acc=False, force_async=True)
    tlx.async_dot(q[0], k[0], s[0], use_acc=False, force_async=True)
    tlx.tcgen05_commit(done[0])
    tlx.barrier_wait(done[0], 0)
    tl.store(x_ptr + at, tlx.local_load(o[0]) + tlx.local_load(s[0]))


x = torch.empty((128, 128), device="cpu", dtype=torch.float32)
kernel[(1,)](x)
x = getattr(x, "array", x)
assert (x == 3 * 128).all()
"""


@pytest.mark.usefixtures("torch")
def test_the_order_of_issue_counts(script):
    """Scripts for Blackwell rely on it: scores are written where the MMA before theirs reads its operand."""
    assert run(["--interpret", "--target", "sm_100a", script(ISSUED)]) == 0


@pytest.mark.usefixtures("torch")
def test_an_unknown_option_is_refused_as_by_stock(script):
    with pytest.raises(KeyError, match="Keyword argument num_wraps was specified but unrecognised"):
        run(["--interpret", script(KERNEL + LAUNCH.replace("(x)", "(x, num_wraps=4)"))])


# --- the command lines ----------------------------------------------------------------------------------------------


READABLE = f"""{KERNEL}
# As scripts have it at their top.
DEVICE = triton.runtime.driver.active.get_current_target()
kernel = triton.autotune([triton.Config({{}}, ctas_per_cga=(1, 1, 1))], key=[])(kernel)
TLX_COMPILE = {{"kernel": {{"signature": {{"x_ptr": "*fp32"}}}}}}
"""


def test_commands_read_such_files(script, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = script(READABLE)
    assert tlx(["compile", f"{path}:kernel", "--emit", "ttgir", "-o", str(tmp_path)]) == 0
    assert "ttg.local_alloc" in (tmp_path / "kernel.ttgir").read_text()
    assert tlx(["map", f"{path}:kernel"]) == 0
    assert tlx(["run", f"{path}:kernel", "--grid", "1", "--arg", "x_ptr=ones[64]"]) == 0
    assert "1 to 2" in capsys.readouterr().out
    import triton

    assert triton.Config.__module__ == "triton.runtime.autotuner"
    assert "triton.language.extra.tlx" not in sys.modules


def test_what_reading_needs_is_reported(script, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    for name in [name for name in sys.modules if name.split(".")[0] == "triton"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "triton", None)
    path = script(READABLE)
    assert tlx(["map", f"{path}:kernel"]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith(f"{path}:1:1: error: ModuleNotFoundError: ")
    assert printed.endswith("note: it needs Triton: pip install 'tlx-xdsl[nvidia]' (Linux only)\n")
