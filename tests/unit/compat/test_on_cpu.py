"""Scripts on the CPU: `python -m tlx_xdsl.compat --cpu`, with Triton and without."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("llvmlite")

from tests.unit.compat import numpy_torch
from tlx_xdsl import compat
from tlx_xdsl.compat.__main__ import main as run
from tlx_xdsl.compat.cuda_as_cpu import replacements_of_torch

pytestmark = pytest.mark.quick

needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")

SCRIPT = """\
import sys
import numpy as np
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.runtime import driver
from triton.tools.tensor_descriptor import TensorDescriptor

@triton.jit
def twice(x):
    return libdevice.floor(x) * 2

@triton.autotune([triton.Config({"BLOCK": block}, num_warps=8) for block in (64, 1024)], key=["n"])
@triton.heuristics({"EVEN": lambda named: named["n"] % 2 == 0})
@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.static_assert(EVEN)
    tl.store(y + at, twice(tl.load(x + at, mask=at < n)), mask=at < n)

assert driver.active.get_current_target().backend == "cuda"
n = 5000
x = np.arange(n, dtype=np.float32) + np.float32(0.5)
y = np.zeros_like(x)
kernel[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](x, y, n)
print((y == np.floor(x) * 2).all(), kernel.best_config.kwargs["BLOCK"] in (64, 1024), triton.next_power_of_2(n))
print(triton.testing.do_bench(lambda: None, rep=1) >= 0, sys.argv[1:])
"""

OUTPUT = "True True 8192\nTrue ['--more']\n"

WITHOUT_TRITON = """
import importlib.util, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "triton":
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
sys.meta_path.insert(0, Absent())
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "triton" else find(name, *rest)
from tlx_xdsl.compat.__main__ import main
status = main(sys.argv[1:])
assert not [name for name in sys.modules if name.split(".")[0] == "triton"]
sys.exit(status)
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TLX_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def script(tmp_path: Path):
    def write(text: str) -> str:
        path = tmp_path / "script.py"
        path.write_text(text)
        return str(path)

    return write


@needs_triton
@pytest.mark.backend
def test_a_script(script: Any, capsys: pytest.CaptureFixture[str]):
    assert run(["--cpu", script(SCRIPT), "--more"]) == 0
    assert capsys.readouterr().out == OUTPUT
    assert not compat.is_installed()


def test_a_script_without_triton(script: Any):
    command = [sys.executable, "-c", WITHOUT_TRITON]
    done = subprocess.run([*command, "--cpu", script(SCRIPT), "--more"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, OUTPUT, "")
    done = subprocess.run([*command, script(SCRIPT)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'tlx-xdsl[nvidia]'" in done.stderr


@needs_triton
@pytest.mark.backend
def test_what_a_launch_returns_compiles_for_the_gpu_when_asked(
    script: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setitem(sys.modules, "torch", numpy_torch.module())
    text = (
        "import torch, triton\n"
        "import triton.language as tl\n"
        "@triton.jit\n"
        "def fill(x, n):\n"
        "    tl.store(x + tl.program_id(0), n)\n"
        "x = torch.empty((4,), device='cuda', dtype=torch.float32)\n"
        "launched = fill[(4,)](x, 7)\n"
        "print(x.array.tolist(), launched.program.metadata.name, launched.metadata.num_warps, 'ptx' in launched.asm)\n"
        "print(fill.warmup(x, 7, grid=(1,)).metadata.name)\n"
    )
    assert run(["--cpu", script(text)]) == 0
    assert capsys.readouterr().out == "[7.0, 7.0, 7.0, 7.0] fill 4 True\nfill\n"


@needs_triton
@pytest.mark.backend
def test_a_kernel_of_tlx_is_an_error_at_its_line(script: Any, capsys: pytest.CaptureFixture[str]):
    text = (
        "import numpy as np, triton\n"
        "import triton.language as tl\n"
        "import triton.language.extra.tlx as tlx\n"
        "@triton.jit\n"
        "def kernel(x):\n"
        "    tlx.local_alloc((16,), tl.float32, 1)\n"
        "kernel[(1,)](np.zeros(1, np.float32))\n"
    )
    path = script(text)
    assert run(["--cpu", path]) == 1
    assert f"{path}:6:5: error: 'ttg.local_alloc' cannot be compiled for the CPU" in capsys.readouterr().err


@needs_triton
@pytest.mark.backend
def test_tensors_of_torch(script: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    if importlib.util.find_spec("torch") is None:
        monkeypatch.setitem(sys.modules, "torch", numpy_torch.module())
    text = (
        "import torch, triton\n"
        "import triton.language as tl\n"
        "@triton.jit\n"
        "def kernel(x, y, BLOCK: tl.constexpr):\n"
        "    at = tl.arange(0, BLOCK)\n"
        "    tl.store(y + at, tl.maximum(tl.load(x + at), 0))\n"
        "x = torch.randn((64,), device='cuda', dtype=torch.float32)\n"
        "y = torch.empty((64,), device='cuda', dtype=torch.float32)\n"
        "kernel[(1,)](x, y, 64)\n"
        "print((y - torch.relu(x)).norm().item(), x.device.type)\n"
    )
    assert run(["--cpu", script(text)]) == 0
    assert capsys.readouterr().out.startswith("0.0 c")


class Tensor:
    """Records how its methods are called."""

    def to(self, *args: Any, **kwargs: Any) -> Any:
        return args, kwargs


def test_requests_for_a_gpu_are_requests_for_the_cpu(monkeypatch: pytest.MonkeyPatch):
    torch: Any = types.ModuleType("torch")
    torch.Tensor = Tensor
    torch.empty = lambda *args, **kwargs: (args, kwargs)
    monkeypatch.setitem(sys.modules, "torch", torch)
    for owner, name, value in replacements_of_torch("sm_90a"):
        monkeypatch.setattr(owner, name, value)
    gpu = type("device", (), {"type": "cuda"})()
    for device in ("cuda", "cuda:1", gpu):
        assert torch.empty(4, device=device) == ((4,), {"device": "cpu"})
        assert Tensor().to(device) == (("cpu",), {})
    assert torch.empty("cuda-like", device="meta", pin_memory=True) == (("cuda-like",), {"device": "meta"})
