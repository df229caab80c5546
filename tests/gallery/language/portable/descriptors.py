"""Tensor descriptors, made by the host and on the device."""

# covers: tl.memory

import triton
import triton.language as tl

from tests.gallery.cases import case


@case({"x": "tensordesc<fp16[32,64]>", "out": "tensordesc<fp16[32,64]>", "n": "i32"})
@triton.jit
def host_descriptors(x, out, n):
    """Descriptors as arguments: load, store, attributes."""
    row = tl.program_id(0) * 32
    for column in range(0, n, 64):
        a = x.load([row, column])
        out.store([row, column], a * 2)
    tl.static_assert(x.dtype == tl.float16)
    tl.static_assert(x.block_shape[1] == 64)
    a = tl.load_tensor_descriptor(x, [row, 0])
    tl.store_tensor_descriptor(out, [row, n], a)
    out.store([row + x.block_shape[0], n], tl.zeros(x.block_shape, x.dtype))


@case({"x": "*fp32:16", "out": "*fp32:16", "M": "i32", "N": "i32"})
@triton.jit
def device_descriptors(x, out, M, N):
    """Descriptors made in the kernel, one of them padded with NaN."""
    source = tl.make_tensor_descriptor(x, shape=[M, N], strides=[N, 1], block_shape=[16, 32], padding_option="nan")
    target = tl.make_tensor_descriptor(out, [M, N], [N, 1], [16, 32])
    pid = tl.program_id(0)
    a = source.load([pid * 16, 0])
    for i in range(0, N, 32):
        a += source.load([pid * 16, i])
    target.store([pid * 16, 0], a)


@case({"x": "tensordesc<bf16[8,16,32]>", "out": "*bf16:16", "n": "i32"})
@triton.jit
def cube_descriptor(x, out, n):
    """Three dimensions; shape and strides of a descriptor."""
    a = x.load([n, 0, n * 32])
    i, j, k = tl.arange(0, 8)[:, None, None], tl.arange(0, 16)[None, :, None], tl.arange(0, 32)[None, None, :]
    offset = i * x.strides[0] + j * x.strides[1] + k
    tl.store(out + offset, a, mask=(i < x.shape[0]) & (k < x.shape[2]))


@case({"x": "*bf16:16", "out": "*fp32:16", "index": "*i32:16", "M": "i32", "N": "i32"})
@triton.jit
def gather_and_scatter(x, out, index, M, N):
    """Rows gathered and scattered through descriptors."""
    source = tl.make_tensor_descriptor(x, [M, N], [N, 1], [1, 64])
    target = tl.make_tensor_descriptor(out, [M, N], [N, 1], [1, 64])
    rows = tl.load(index + tl.arange(0, 32))
    a = source.gather(rows, 64)
    target.scatter(a.to(tl.float32), rows, N - 64)


@case({"x": "tensordesc<fp32[16,32]>", "y": "tensordesc<i32[16,32]>", "v": "*fp32:16", "w": "*i32:16"})
@triton.jit
def descriptor_atomics(x, y, v, w):
    """Reductions into memory through descriptors."""
    index = tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :]
    a = tl.load(v + index)
    b = tl.load(w + index)
    x.atomic_add([0, 0], a)
    y.atomic_add([0, 32], b)
    y.atomic_min([16, 0], b)
    y.atomic_max([16, 32], b)
    y.atomic_and([32, 0], b)
    y.atomic_or([32, 32], b)
    y.atomic_xor([48, 0], b)
