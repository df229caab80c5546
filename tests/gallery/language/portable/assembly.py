"""Inline assembly, hints, CUDA's own functions, scalar functions over blocks."""

# covers: tl.matrix, tl.memory

import triton
import triton.language as tl
from triton.language.extra import cuda

from tests.gallery.cases import case


@case({"x": "*i32:16", "q": "*i8:16", "out": "*i32:16", "n": "i32"})
@triton.jit
def inline_assembly(x, q, out, n):
    """Inline assembly with one result and two, packed, pure and not, over scalars."""
    index = tl.arange(0, 64)
    a, b = tl.load(x + index), tl.load(q + index)
    c = tl.inline_asm_elementwise("add.u32 $0, $1, $2;", "=r,r,r", [a, n], dtype=tl.int32, is_pure=True, pack=1)
    low, high = tl.inline_asm_elementwise(
        asm="mul.lo.s32 $0, $2, $3; mul.hi.s32 $1, $2, $3;",
        constraints="=r,=r,r,r",
        args=[a, c],
        dtype=(tl.int32, tl.int32),
        is_pure=True,
        pack=1,
    )
    d = tl.inline_asm_elementwise("not.b32 $0, $1;", "=r,r", [b], dtype=tl.int8, is_pure=False, pack=4)
    lane = tl.inline_asm_elementwise("mov.u32 $0, %laneid;", "=r", [], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(out + index, low + high + d + lane)


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32", "stride": "i32"})
@triton.jit
def hints(x, out, n, stride):
    """multiple_of, max_contiguous, max_constancy, assume."""
    tl.assume(n > 0)
    tl.assume(stride >= 1)
    stride = tl.multiple_of(stride, 8)
    rows, columns = tl.arange(0, 16), tl.arange(0, 32)
    offset = tl.max_contiguous(tl.multiple_of((rows * n) % stride, 16), 16)
    index = offset[:, None] + tl.max_constancy(columns // 4, 4)[None, :]
    index = tl.multiple_of(index, [1, 4])
    tl.store(out + index, tl.load(tl.multiple_of(x, 16) + index))


@case({"x": "*fp32:16", "out": "*i64:16"})
@triton.jit
def cuda_functions(x, out):
    """Dependent launches, timer, processor, counts of warps and threads."""
    cuda.gdc_wait()
    start = cuda.globaltimer()
    a = tl.load(x + tl.arange(0, 32))
    cuda.gdc_launch_dependents()
    tl.store(out, cuda.globaltimer() - start)
    tl.store(out + 1, cuda.smid())
    tl.store(out + 2, cuda.num_warps() * 1000 + cuda.num_threads())
    tl.store(x + tl.arange(0, 32), a)


@triton.jit
def _collatz_step(a):
    if a % 2 == 0:
        b = a // 2
    else:
        b = 3 * a + 1
    return b


@triton.jit
def _ordered(a, b, c, d):
    return tl.minimum(a, b), tl.maximum(c, d)


@case({"x": "*i32:16", "out": "*i32:16"})
@triton.jit
def mapped_functions(x, out):
    """A scalar function over the elements of blocks."""
    index = tl.arange(0, 64)
    a = tl.load(x + index)
    tl.store(out + index, tl.map_elementwise(_collatz_step, a))


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32"})
@triton.jit
def debugging(x, out, n):
    """device_print of several values, device_assert with its options, print, expect_zero, a barrier."""
    index = tl.arange(0, 32)
    a = tl.load(x + index)
    tl.device_print("values", a, n)
    tl.device_print("bits", index, hex=True)
    tl.device_assert(index < 100, "out of range")
    tl.device_assert(n > 0)
    print("again", n)
    tl.debug_barrier()
    tl.store(out + index, tl.expect_zero(a, index > 3))
