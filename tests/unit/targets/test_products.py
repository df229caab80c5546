"""`tl.dot` of tiles in buffers, in every element type, is right after stock Triton's passes for every tensor core.

A target without a type's instructions refuses it at the line.
"""

from functools import cache

import ml_dtypes
import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.unit import volume
from tests.versions import INSTALLED, RELEASE
from tlx_xdsl.backend import BackendOptions, BackendResult, compile_ttgir
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.driver.compilation import Specialization, compile_text
from tlx_xdsl.runtime.simulate.interpret import interpret_text
from tlx_xdsl.targets import targets_of

pytestmark = pytest.mark.backend


@tlx_xdsl.jit
def product(
    a_ptr, b_ptr, c_ptr, K,
    M: tl.constexpr, N: tl.constexpr, BLOCK_K: tl.constexpr, SUM: tl.constexpr, TRANSPOSED: tl.constexpr,
):  # fmt: skip
    """C = A @ B of one tile; TRANSPOSED says that B lies as N x K, and is read through a transposed view."""
    element: tl.constexpr = a_ptr.dtype.element_ty
    offs_m, offs_n, offs_k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BLOCK_K)
    a = tlx.local_alloc((M, BLOCK_K), element, 2)
    b_shape: tl.constexpr = (N, BLOCK_K) if TRANSPOSED else (BLOCK_K, N)
    b = tlx.local_alloc(b_shape, element, 2)
    acc = tl.zeros((M, N), SUM)
    for k in range(K // BLOCK_K):
        here = k * BLOCK_K + offs_k
        tlx.async_load(a_ptr + offs_m[:, None] * K + here[None, :], a[k % 2])
        if TRANSPOSED:
            tlx.async_load(b_ptr + offs_n[:, None] * K + here[None, :], b[k % 2])
        else:
            tlx.async_load(b_ptr + here[:, None] * N + offs_n[None, :], b[k % 2])
        tlx.async_load_commit_group()
        tlx.async_load_wait_group(0)
        if TRANSPOSED:
            acc = tl.dot(tlx.local_load(a[k % 2]), tlx.local_load(tlx.local_trans(b[k % 2])), acc)
        else:
            acc = tl.dot(tlx.local_load(a[k % 2]), tlx.local_load(b[k % 2]), acc)
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc)


TYPES = {
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "fp32": np.float32,
    "i8": np.int8,
    "fp8e5": ml_dtypes.float8_e5m2,
    "fp8e4nv": ml_dtypes.float8_e4m3fn,
}
SHAPES = [(64, 64, 64, 4, False), (128, 64, 32, 8, True), (16, 16, 32, 1, False), (32, 128, 32, 4, True)]
"""M, N, the block of K, warps, and whether B is transposed."""
CASES = [
    (element, shape, target.name)
    for element in TYPES
    for shape in SHAPES
    for target in targets_of(RELEASE)
    if volume.is_full()
    or (shape == SHAPES[1] and (target.name == "sm_80" or (target.name, element) == ("sm_103a", "i8")))
]


@cache
def compiled(element: str, shape: tuple[int, int, int, int, bool], target: str) -> BackendResult:
    m, n, block, num_warps, transposed = shape
    accumulator = "i32" if element == "i8" else "fp32"
    wanted = Specialization(
        {"a_ptr": f"*{element}:16", "b_ptr": f"*{element}:16", "c_ptr": f"*{accumulator}:16", "K": "i32:16"},
        {
            "M": m,
            "N": n,
            "BLOCK_K": block,
            "SUM": tl.int32 if element == "i8" else tl.float32,
            "TRANSPOSED": transposed,
        },
        target=target,
        num_warps=num_warps,
    )
    text = compile_text(product.source, wanted, triton_version=INSTALLED)
    return compile_ttgir(text.ttgir, BackendOptions(target=target, num_warps=num_warps))


@pytest.mark.parametrize(("element", "shape", "target"), CASES)
def test_a_product(element: str, shape: tuple[int, int, int, int, bool], target: str):
    if element == "fp8e4nv" and target in ("sm_80", "sm_86", "sm_87"):
        with pytest.raises(CompilationError, match=f"tl.dot needs fp8e4nv conversions .*; target is {target}"):
            compiled(element, shape, target)
        return
    result = compiled(element, shape, target)
    m, n, block, _, transposed = shape
    k = 3 * block
    rng = np.random.default_rng(m + n)
    a, b = ((4 * rng.standard_normal(size)).astype(TYPES[element]) for size in ((m, k), (k, n)))
    c = np.zeros((m, n), np.int32 if element == "i8" else np.float32)
    given = np.ascontiguousarray(b.T) if transposed else b
    interpreted = interpret_text(result.ttgir, 1, [a, given, c, k], jobs=1)
    assert not interpreted.warnings
    expected = a.astype(np.float64) @ b.astype(np.float64)
    # f32 is multiplied as TF32, with 10 bits after the point.
    tolerance = 2e-3 if element == "fp32" else 1e-6
    assert np.linalg.norm(c - expected) / np.linalg.norm(expected) < tolerance
    assert result.resources is not None
    assert result.resources.spill_store_bytes == 0
