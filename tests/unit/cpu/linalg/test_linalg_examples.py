"""The examples that lower linalg by upstream's passes, as a reader calls them."""

# covers: triton-to-linalg

import ctypes
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.oracle.upstream_mlir import REASON
from tlx_xdsl.cpu.linalg.for_upstream import ForUpstreamPass
from tlx_xdsl.cpu.runtime.linalg import linalg_text
from tlx_xdsl.ptx.launch import run_ptx
from tlx_xdsl.runtime.driver.compilation import Specialization
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.profiles import mlir_profile

pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))
EXAMPLES = Path(__file__).parents[4] / "examples/linalg"
TRITON = find_spec("triton")


@tlx_xdsl.jit
def softmax(x, out, stride, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + at, mask=at < n, other=float("-inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * stride + at, e / tl.sum(e, 0), mask=at < n)


def text_of(kernel):
    types = {"x": "*fp32", "out": "*fp32", "stride": "i32", "n": "i32"}
    module = parse_module(linalg_text(kernel.source, Specialization(types, {"BLOCK": 128})))
    ForUpstreamPass(distinct=True).run(module)
    return print_module(module, profile=mlir_profile("newest"))


def example(name, folder, *options):
    path = folder / "softmax.mlir"
    path.write_text(text_of(softmax))
    done = subprocess.run([sys.executable, EXAMPLES / name, path, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def arrays():
    x = np.random.default_rng(0).standard_normal((4, 100)).astype(np.float32)
    powers = np.exp(x - x.max(1, keepdims=True))
    return x, np.full_like(x, np.nan), powers / powers.sum(1, keepdims=True)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_a_kernel_is_a_shared_library(tmp_path):
    example("to_library.py", tmp_path, "-o", tmp_path / "softmax.so")
    x, out, expected = arrays()
    library = ctypes.CDLL(str(tmp_path / "softmax.so"))
    # As C calls it: memory of any rank is a pair of a rank and the address of a descriptor.
    given = []
    for array in (x, out):
        ranked = (ctypes.c_int64 * 5)(array.ctypes.data, array.ctypes.data, 0, array.size, 1)
        given.append((ctypes.c_int64 * 2)(1, ctypes.addressof(ranked)))
        given[-1].held = ranked
    for row in range(4):
        library._mlir_ciface_softmax(*given, 100, 100, row, 0, 0)
    np.testing.assert_allclose(out, expected, rtol=1e-6)


@pytest.mark.skipif(TRITON is None, reason="libdevice comes with Triton, which is not installed")
def test_a_kernel_is_ptx(tmp_path):
    folder = Path(TRITON.origin).parent / "backends/nvidia"
    made = tmp_path / "softmax.ptx"
    kernel = example("to_ptx.py", tmp_path, "-o", made, "--libdevice", folder / "lib/libdevice.10.bc").strip()
    x, out, expected = arrays()
    run_ptx(made.read_text(), (4, 1, 1), [x, out, np.int32(100), np.int32(100)], kernel=kernel, num_warps=1)
    np.testing.assert_allclose(out, expected, rtol=1e-6)
    subprocess.run([folder / "bin/ptxas", "-arch=sm_90", made, "-o", tmp_path / "softmax.cubin"], check=True)
