"""TMA copies of blocks of one dimension: by descriptors of the host and of the kernel, asynchronous and not."""

# covers: tlx.copies, ttng.tma

import re

import numpy as np
import pytest
from backend_kernels import needs_triton

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.runtime.build import compile_kernel
from tlx_xdsl.runtime.driver.compilation import Specialization

BLOCK = 64


@tlx_xdsl.jit
def add_pieces(first_desc, second, out_desc, n, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK
    second_desc = tl.make_tensor_descriptor(second, shape=[n], strides=[1], block_shape=[BLOCK])
    first = tlx.local_alloc((BLOCK,), tl.float32, 1)
    out = tlx.local_alloc((BLOCK,), tl.float32, 1)
    loaded = tlx.alloc_barriers(1)
    tlx.barrier_expect_bytes(loaded[0], BLOCK * 4)
    tlx.async_descriptor_load(first_desc, first[0], [row], loaded[0])
    tlx.barrier_wait(loaded[0], 0)
    tlx.local_store(out[0], tlx.local_load(first[0]) + second_desc.load([row]))
    tlx.fence_async_shared()
    tlx.async_descriptor_store(out_desc, out[0], [row])
    tlx.async_descriptor_store_wait(0)


@tlx_xdsl.jit
def move_in_kernel_descriptors(source, target, n, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK
    room = tlx.allocate_tensor_descriptor(num=2)
    tlx.make_tensor_descriptor(room[0], source, [n], [tl.constexpr(1)], [BLOCK])
    tlx.make_tensor_descriptor(room[1], target, [n], [tl.constexpr(1)], [BLOCK])
    block = tlx.reinterpret_tensor_descriptor(room[0], [BLOCK], tlx.dtype_of(source)).load([row])
    tlx.reinterpret_tensor_descriptor(room[1], [BLOCK], tlx.dtype_of(target)).store([row], block)


def loads(ptx: str) -> int:
    """Count the TMA loads of one dimension; Triton 3.9 names this CTA's memory, 3.6 the cluster's."""
    return len(re.findall(r"cp\.async\.bulk\.tensor\.1d\.shared::\w+\.global", ptx))


@pytest.mark.parametrize("stage", ["frontend", "ttgir"])
def test_one_dimension_interpreted(stage):
    rng = np.random.default_rng(0)
    first, second = (rng.standard_normal(3 * BLOCK).astype(np.float32) for _ in range(2))
    out = np.full_like(first, np.nan)
    of = tlx_xdsl.TensorDescriptor.from_tensor
    tlx_xdsl.interpret(
        add_pieces, 3, of(first, [BLOCK]), second, of(out, [BLOCK]), 3 * BLOCK, BLOCK, target="sm_90a", jobs=1,
        stage=stage,
    )  # fmt: skip
    assert np.array_equal(out, first + second)


@needs_triton
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_one_dimension_compiles(target):
    descriptor = f"tensordesc<fp32[{BLOCK}]>"
    signature = {"first_desc": descriptor, "second": "*fp32", "out_desc": descriptor, "n": "i32"}
    ptx = compile_kernel(add_pieces, Specialization(signature, {"BLOCK": BLOCK}, target)).ptx
    assert loads(ptx) == 2
    assert ptx.count("cp.async.bulk.tensor.1d.global.shared::cta") == 1


@needs_triton
def test_descriptors_that_the_kernel_makes_have_one_dimension_too():
    signature = {"source": "*i16", "target": "*i16", "n": "i32"}
    ptx = compile_kernel(move_in_kernel_descriptors, Specialization(signature, {"BLOCK": BLOCK}, "sm_90a")).ptx
    assert loads(ptx) == 1
    assert ptx.count("cp.async.bulk.tensor.1d.global.shared::cta") == 1
