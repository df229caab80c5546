"""TTGIR that stock Triton's own frontend and passes have made, run by the interpreter: pipelines and partitions too."""

# covers: tlx run

import numpy as np
import pytest

pytest.importorskip("triton")

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from tlx_xdsl import interpret_text

pytestmark = pytest.mark.backend

M, N, K = 128, 64, 128


@triton.jit
def pointers(a, b, c, m, n, k, BK: tl.constexpr):
    rows, columns, inner = tl.arange(0, 128), tl.arange(0, 64), tl.arange(0, BK)
    left, right = a + rows[:, None] * k + inner[None, :], b + inner[:, None] * n + columns[None, :]
    total = tl.zeros((128, 64), tl.float32)
    for _ in range(0, k, BK):
        total = tl.dot(tl.load(left), tl.load(right), total)
        left += BK
        right += BK * n
    tl.store(c + rows[:, None] * n + columns[None, :], total)


@triton.jit
def descriptors(a, b, c, m, n, k, BK: tl.constexpr):
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [128, BK])
    right = tl.make_tensor_descriptor(b, [k, n], [n, 1], [BK, 64])
    result = tl.make_tensor_descriptor(c, [m, n], [n, 1], [128, 64])
    total = tl.zeros((128, 64), tl.float32)
    for at in tl.range(0, k, BK, warp_specialize=True):
        total = tl.dot(left.load([0, at]), right.load([at, 0]), total)
    result.store([0, 0], total)


@pytest.mark.parametrize(
    ("kernel", "architecture", "shows"),
    [(pointers, 80, "ttg.async_copy"), (pointers, 90, "ttng.warp_group_dot"), (descriptors, 100, "ttng.tc_gen5_mma")],
    ids=["sm_80", "sm_90", "sm_100"],
)
def test_products_of_matrices(kernel, architecture, shows):
    types = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "m": "i32", "n": "i32", "k": "i32", "BK": "constexpr"}
    divisible = {(number,): [["tt.divisibility", 16]] for number in range(6)}
    source = ASTSource(kernel, types, {(6,): 32}, divisible)
    text = triton.compile(source, target=GPUTarget("cuda", architecture, 32), options={"num_stages": 3}).asm["ttgir"]
    assert shows in text
    chance = np.random.default_rng(0)
    a, b = (chance.integers(-4, 5, shape).astype(np.float16) for shape in ((M, K), (K, N)))
    c = np.zeros((M, N), np.float32)
    interpret_text(text, 1, [a, b, c, M, N, K])
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
