"""TTGIR that our passes make of small kernels: the installed stock Triton makes cubins of it."""

import re

import pytest

from tests.unit.frontend.kernels import load
from tlx_xdsl.runtime.build import compile_kernel
from tlx_xdsl.runtime.driver.compilation import Specialization

pytestmark = pytest.mark.backend


def compile_source(tmp_path, source, signature, target="sm_90a", num_warps=4, **constexprs):
    kernel = load(tmp_path, source).kernel
    return compile_kernel(kernel, Specialization(signature, constexprs, target, num_warps))


@pytest.mark.parametrize("num_warps", [1, 4, 8])
@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
def test_a_plain_vector_add(tmp_path, target, num_warps):
    source = """
@tlx_xdsl.jit
def kernel(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask) + tl.load(y + offsets, mask, 0.0), mask)
"""
    signature = {"x": "*fp32:16", "y": "*fp32:16", "out": "*fp32:16", "n": "i32:16"}
    result = compile_source(tmp_path, source, signature, target, num_warps, BLOCK=1024)
    assert result.metadata.num_warps == num_warps
    # Eight or fewer elements per thread, in vectors of four.
    assert "ld.global.v4" in result.ptx if num_warps == 8 else "ld.global" in result.ptx


def test_loops_branches_and_casts(tmp_path):
    source = """
@tlx_xdsl.jit
def kernel(x, out, n, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    count = 0
    for i in range(n):
        tile = tl.load(x + i * BLOCK * BLOCK + rows[:, None] * BLOCK + rows[None, :])
        if i % 2 == 0:
            total += tile.to(tl.float32)
            count += 1
        else:
            total = tl.maximum(total, tile.to(tl.float32) / 2)
    tl.store(out + rows[:, None] * BLOCK + rows[None, :], tl.where(total > 0, total, -total).to(tl.float16))
    tl.store(out, count)
"""
    result = compile_source(tmp_path, source, {"x": "*fp16", "out": "*fp16", "n": "i32"}, BLOCK=32)
    assert result.resources.spill_store_bytes == 0


def test_two_barriers_one_after_the_other_have_two_addresses(tmp_path):
    # Stock Triton would give the second one the memory of the first, whose life ends with the kernel.
    source = """
@tlx_xdsl.jit
def kernel(out):
    first = tlx.alloc_barriers(1)
    tlx.barrier_arrive(first[0])
    tlx.barrier_wait(first[0], 0)
    second = tlx.alloc_barriers(1)
    tlx.barrier_arrive(second[0])
    tlx.barrier_wait(second[0], 0)
    tl.store(out, 1)
"""
    result = compile_source(tmp_path, source, {"out": "*i32"})
    inits = re.findall(r"mbarrier\.init\.shared(?:::cta)?\.b64 \[([^\]]+)\]", result.ptx)
    assert len(inits) == 2
    assert inits[0] != inits[1]
    assert "mbarrier.inval" not in result.ptx


@pytest.mark.parametrize(("dtype", "k"), [("fp16", 64), ("bf16", 64)])
def test_an_accumulator_that_is_rescaled_between_dots(tmp_path, dtype, k):
    source = """
@tlx_xdsl.jit
def kernel(a_desc, b_desc, out, n, scale, K: tl.constexpr):
    a = tlx.local_alloc((64, K), tlx.dtype_of(a_desc), 1)
    b = tlx.local_alloc((K, 128), tlx.dtype_of(a_desc), 1)
    bar = tlx.alloc_barriers(1)
    acc = tl.zeros((64, 128), tl.float32)
    for i in range(n):
        tlx.barrier_expect_bytes(bar[0], (64 + 128) * K * 2)
        tlx.async_descriptor_load(a_desc, a[0], [0, i * K], bar[0])
        tlx.async_descriptor_load(b_desc, b[0], [i * K, 0], bar[0])
        tlx.barrier_wait(bar[0], i & 1)
        acc = acc * scale
        acc = tlx.async_dot(a[0], b[0], acc)
        acc = tlx.async_dot_wait(0, acc)
    rows, columns = tl.arange(0, 64), tl.arange(0, 128)
    tl.store(out + rows[:, None] * 128 + columns[None, :], acc)
"""
    signature = {"a_desc": f"tensordesc<{dtype}[64, {k}]>", "b_desc": f"tensordesc<{dtype}[{k}, 128]>"}
    signature |= {"out": "*fp32", "n": "i32", "scale": "fp32"}
    result = compile_source(tmp_path, source, signature, K=k)
    assert result.ptx.count("wgmma.mma_async") == k // 16
    assert not [warning for warning in result.warnings if "C75" in warning.text]
    # The conversions that we put around the multiplication are gone: no accumulator goes through shared memory.
    assert result.metadata.shared <= (64 + 128) * k * 2 + 64 * 128 * 4 + 64


def test_a_transposed_buffer_feeds_wgmma(tmp_path):
    source = """
@tlx_xdsl.jit
def kernel(a_desc, out):
    a = tlx.local_alloc((64, 64), tl.float16, 1)
    bar = tlx.alloc_barriers(1)
    tlx.barrier_expect_bytes(bar[0], 64 * 64 * 2)
    tlx.async_descriptor_load(a_desc, a[0], [0, 0], bar[0])
    tlx.barrier_wait(bar[0], 0)
    acc = tlx.async_dot_wait(0, tlx.async_dot(a[0], tlx.local_trans(a[0])))
    rows = tl.arange(0, 64)
    tl.store(out + rows[:, None] * 64 + rows[None, :], acc)
"""
    result = compile_source(tmp_path, source, {"a_desc": "tensordesc<fp16[64, 64]>", "out": "*fp32"})
    assert "wgmma.mma_async" in result.ptx


def test_picking_from_a_buffer(tmp_path):
    """Triton 3.6 has no operation for it."""
    source = """
@tlx_xdsl.jit
def kernel(x, places, out):
    rows, columns = tl.arange(0, 64), tl.arange(0, 32)
    at = rows[:, None] * 32 + columns[None, :]
    buffer = tlx.local_alloc((64, 32), tl.float32, 1)
    tlx.local_store(buffer[0], tl.load(x + at))
    tl.store(out + at, tlx.local_gather(buffer[0], tl.load(places + at), 0))
"""
    result = compile_source(tmp_path, source, {"x": "*fp32:16", "places": "*i32:16", "out": "*fp32:16"}, "sm_80")
    assert "ld.shared" in result.ptx
