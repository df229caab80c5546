"""Kernels from the final PTX of stock Triton: the numbers of numpy, and of the interpreter."""

import ml_dtypes
import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.gallery.synchronisation.example_runs import CASES
from tests.unit import volume
from tests.unit.ptx.compiled import add, compiled_once, histogram, matmul, matrices, softmax
from tlx_xdsl.runtime.simulate import ptx_stage
from tlx_xdsl.runtime.simulate.interpret import interpret
from tlx_xdsl.tools.tlx import main

pytestmark = pytest.mark.backend

SHORT = ["ws-gemm-small-tiles", "ws-attention-causal", "blackwell-gemm-ragged"]


@pytest.fixture(autouse=True)
def _compile_once(monkeypatch):
    monkeypatch.setattr(ptx_stage, "compiled", compiled_once)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
def test_vectors(target):
    x, y = np.random.default_rng(0).standard_normal((2, 3000)).astype(np.float32)
    out = np.full(3000, np.nan, np.float32)
    result = interpret(add, 3, x.copy(), y.copy(), out, 3000, BLOCK=1024, stage="ptx", target=target)
    np.testing.assert_array_equal(out, x + y)
    assert result.ptx is not None
    assert any(opcode.startswith("ld.global") for opcode in result.ptx.counts)


def test_rows():
    x = np.random.default_rng(0).standard_normal((5, 700)).astype(np.float32)
    out, same = np.zeros_like(x), np.zeros_like(x)
    interpret(softmax, 5, x, out, 700, 700, BLOCK=1024, stage="ptx")
    interpret(softmax, 5, x, same, 700, 700, BLOCK=1024)
    power = np.exp(x - x.max(1, keepdims=True).astype(np.float64))
    np.testing.assert_allclose(out, power / power.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(out, same, rtol=1e-5)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
def test_products(target):
    """`mma.sync` with `ldmatrix` and `cp.async`, wgmma, and tcgen05."""
    a, b = matrices()
    c = np.full((128, 64), np.nan, np.float32)
    options = {"stage": "ptx", "target": target, "mends": True}
    interpret(matmul, (2, 1), a, b, c, 128, 64, 160, BLOCK=64, DEPTH=32, options=options)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=1e-4)


@tlx_xdsl.jit
def limited(a_ptr, b_ptr, c_ptr, K):
    rows = tl.arange(0, 64)
    acc = tl.zeros((64, 64), tl.float32)
    for k in range(0, K, 64):
        depth = k + tl.arange(0, 64)
        a = tl.load(a_ptr + rows[:, None] * K + depth[None, :])
        b = tl.load(b_ptr + rows[None, :] * K + depth[:, None])
        acc = tl.dot(a, b, acc, max_num_imprecise_acc=32)
    tl.store(c_ptr + rows[:, None] * 64 + rows[None, :], acc)


def test_sums_of_fp8_that_are_added_before_their_commit():
    """Stock Triton adds them up between the products of a group, and ptxas puts a wait there."""
    a, b = np.random.default_rng(0).standard_normal((2, 64, 256)).astype(ml_dtypes.float8_e4m3fn)
    c = np.full((64, 64), np.nan, np.float32)
    interpret(limited, 1, a, b, c, 256, options={"stage": "ptx", "target": "sm_90a", "mends": True})
    # Tensor cores keep some 14 bits of sums of fp8.
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64).T, atol=0.02)


def test_atomics_and_scans():
    x = np.random.default_rng(0).integers(0, 100, 100).astype(np.int32)
    counts = np.zeros(120, np.int32)
    interpret(histogram, 1, x, counts, 100, BLOCK=128, stage="ptx")
    np.testing.assert_array_equal(counts[:8], np.bincount(x % 8, minlength=8))
    np.testing.assert_array_equal(counts[8:108], np.cumsum(x))


@pytest.mark.parametrize("name", CASES if volume.is_full() else SHORT)
def test_example(name):
    """All examples: those of Hopper and of Blackwell."""
    result = CASES[name]().run(stage="ptx")
    assert result.turns > 1000


@tlx_xdsl.jit
def through_addresses(addresses, out):
    x = tl.load(addresses + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    i = tl.arange(0, 64)
    tl.store(out + tl.program_id(0) * 64 + i, tl.load(x + i))


def test_arrays_that_are_reached_by_addresses():
    arrays = np.random.default_rng(0).standard_normal((2, 2, 64)).astype(np.float32)
    x, y = arrays[1, 0].copy(), arrays[0, 1].copy()
    out = np.zeros((2, 64), np.float32)
    addresses = np.array([x.ctypes.data, y.ctypes.data], np.int64)
    interpret(through_addresses, 2, addresses, out, stage="ptx", reachable=[x, y])
    np.testing.assert_array_equal(out, [x, y])


def test_the_command(tmp_path, capsys):
    file = tmp_path / "twice.py"
    file.write_text(
        "import tlx_xdsl\nimport tlx_xdsl.language as tl\n\n\n@tlx_xdsl.jit\ndef twice(x, out):\n"
        "    i = tl.arange(0, 64)\n    tl.store(out + i, 2 * tl.load(x + i))\n"
    )
    arguments = ["--grid", "1", "--arg", "x=randn:fp32[64]", "--arg", "out=nan:fp32[64]", "--check", "out=2*x"]
    assert main(["run", f"{file}:twice", "--stage", "ptx", "--profile", *arguments]) == 0
    said = capsys.readouterr().out
    assert "instructions of warps" in said
    assert "twice.py:8: tl.store(out + i, 2 * tl.load(x + i))" in said
    assert "out = 2*x: largest error 0.0e+00" in said
