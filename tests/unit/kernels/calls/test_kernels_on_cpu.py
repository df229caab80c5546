"""Kernels to import on arrays of the CPU: plain `tl` is machine code, the rest is interpreted, with a warning."""

import subprocess
import sys
import warnings
from typing import ClassVar

import ml_dtypes
import numpy as np
import pytest

from tlx_xdsl.kernels.calls import launching, operands
from tlx_xdsl.kernels.calls.launching import InterpretedWarning
from tlx_xdsl.kernels.gemm import gemm
from tlx_xdsl.kernels.rows.cross_entropy import cross_entropy
from tlx_xdsl.kernels.rows.norm import layer_norm, rms_norm
from tlx_xdsl.kernels.rows.rope import rope
from tlx_xdsl.kernels.rows.softmax import softmax, softmax_backward
from tlx_xdsl.kernels.rows.swiglu import swiglu

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.native

FENCE = 7.0
DTYPES = {"fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16}


@pytest.fixture
def machine_code(monkeypatch):
    """Fail where the interpreter runs."""
    monkeypatch.setattr(launching.Launch, "interpret", lambda self: pytest.fail(f"{self.kernel} was interpreted"))


def random(*shape, dtype="fp32", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(DTYPES[dtype])


def softmax_of(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize("columns", [5, 781, 1024, 20000])
def test_softmax(machine_code, dtype, columns):
    x = random(3, columns, dtype=dtype)
    memory = np.full((5, columns), FENCE, x.dtype)
    softmax(x, memory[1:4])
    exact = softmax_of(x.astype(np.float64))
    tolerance = {"fp32": 1e-6, "fp16": 1e-3, "bf16": 8e-3}[dtype]
    assert np.abs(memory[1:4].astype(np.float64) - exact).max() <= tolerance * exact.max()
    assert (memory[[0, 4]] == FENCE).all()


def test_the_gradient_of_softmax(machine_code):
    y, slope = softmax_of(random(7, 300)), random(7, 300, seed=1)
    exact = y * (slope - (y * slope).sum(-1, keepdims=True))
    np.testing.assert_allclose(softmax_backward(y, slope), exact, atol=1e-6)


def test_norms(machine_code):
    x, weight = random(5, 999), random(999, seed=1)
    exact = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weight
    np.testing.assert_allclose(rms_norm(x, weight), exact, atol=1e-5)
    centred = x - x.mean(-1, keepdims=True)
    exact = centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * weight
    np.testing.assert_allclose(layer_norm(x, weight), exact, atol=1e-5)


def test_cross_entropy(machine_code):
    x, target = random(6, 1001), np.arange(6) * 100
    exact = (np.log(np.exp(x).sum(-1)) - x[np.arange(6), target]).mean()
    np.testing.assert_allclose(cross_entropy(x, target), exact, rtol=1e-5)


def test_swiglu_and_rope(machine_code):
    gate, up = random(4, 130), random(4, 130, seed=1)
    np.testing.assert_allclose(swiglu(gate, up), gate / (1 + np.exp(-gate)) * up, atol=1e-5)
    x = random(1, 2, 3, 64)
    angles = random(3, 32, seed=2)
    found = rope(x, np.cos(angles), np.sin(angles))
    first, second = x[..., :32], x[..., 32:]
    cos, sin = np.cos(angles), np.sin(angles)
    exact = np.concatenate([first * cos - second * sin, second * cos + first * sin], -1)
    np.testing.assert_allclose(found, exact, atol=1e-5)


def test_kernels_of_a_gpu_are_interpreted_with_one_warning(monkeypatch):
    monkeypatch.setattr(launching, "_INTERPRETED", set())
    a = random(64, 64, dtype="fp16")
    with pytest.warns(InterpretedWarning, match="'gemm_.*' runs in the interpreter on the CPU") as said:
        found = gemm(a, a)
    assert said[0].filename == __file__
    np.testing.assert_allclose(found.astype(np.float32), a.astype(np.float32) @ a.astype(np.float32), atol=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gemm(a, a)


def test_without_llvmlite_all_kernels_are_interpreted():
    """The package may be installed without its extra `cpu`."""
    program = (
        "import sys, warnings; sys.modules['llvmlite'] = None\n"
        "import numpy as np\n"
        "from tlx_xdsl.kernels.rows.softmax import softmax\n"
        "with warnings.catch_warnings(record=True) as said:\n"
        "    warnings.simplefilter('always')\n"
        "    assert (softmax(np.ones((2, 8), np.float32)) == 0.125).all()\n"
        "(each,) = said\n"
        "print(each.category.__name__, each.message)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("InterpretedWarning the kernel 'softmax_rows' runs in the interpreter on the CPU")
    assert "pip install 'tlx-xdsl[cpu]'" in done.stdout


class Foreign:
    """An array of another library, known by DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_arrays_of_other_libraries_share_their_memory(machine_code):
    x, out = random(3, 40), np.zeros((3, 40), np.float32)
    found = softmax(Foreign(x), Foreign(out))
    assert np.shares_memory(found, out)
    np.testing.assert_allclose(out, softmax_of(x), atol=1e-6)


def test_arrays_of_the_gpu_become_those_of_torch(monkeypatch):
    """CuPy's and Numba's arrays say where they are by an attribute; no GPU is asked here."""

    class OnGpu:
        __cuda_array_interface__: ClassVar = {}

    class Torch:
        @staticmethod
        def as_tensor(value, device):
            return value, device

    monkeypatch.setattr(operands, "torch_module", lambda: Torch)
    value = OnGpu()
    assert operands.taken(value) == (value, "cuda")
    assert operands.taken(None) is None


def test_meta_tensors_have_shapes():
    torch = pytest.importorskip("torch")
    a = torch.empty(128, 64, device="meta", dtype=torch.float16)
    assert (gemm(a, a.T).shape, gemm(a, a.T).device.type) == ((128, 128), "meta")
    assert softmax(torch.empty(8, 16, device="meta")).shape == (8, 16)
