"""Functions that stock writes in the language over primitives: they compile and verify here."""

# covers: tl.standard, tl.random

import triton
import triton.language as tl

from tests.gallery.cases import case


@case({"x": "*fp32:16", "i": "*i32:16", "out": "*fp32:16"}, library=True)
@triton.jit
def sorting(x, i, out):
    """sort in both orders, along an axis; topk; bitonic_merge."""
    lanes = tl.arange(0, 32)
    index = tl.arange(0, 8)[:, None] * 32 + lanes[None, :]
    a = tl.load(x + index)
    tl.store(out + index, tl.sort(a))
    tl.store(out + index, tl.sort(a, dim=1, descending=True))
    tl.store(out + lanes, tl.sort(tl.load(i + lanes)))
    tl.store(out + tl.arange(0, 8), tl.topk(tl.load(x + lanes), 8))
    tl.store(out + lanes, tl.bitonic_merge(tl.load(x + lanes)))


@case({"x": "*fp32:16", "out": "*fp32:16"}, library=True)
@triton.jit
def flips_and_swizzles(x, out):
    """flip along each axis; swizzle2d; softmax over each axis."""
    rows, columns = tl.arange(0, 8)[:, None], tl.arange(0, 32)[None, :]
    index = rows * 32 + columns
    a = tl.load(x + index)
    tl.store(out + index, tl.flip(a, 1))
    tl.store(out + index, a.flip(0))
    tl.store(out + index, tl.softmax(a))
    tl.store(out + index, tl.softmax(a, dim=1, keep_dims=True))
    i, j = tl.swizzle2d(tl.program_id(0), tl.program_id(1), tl.num_programs(0), tl.num_programs(1), 4)
    tl.store(out + i * 32 + j, 1.0)


@case({"seed": "i32", "out": "*fp32:16", "words": "*i32:16"}, library=True)
@triton.jit
def random_numbers(seed, out, words):
    """All random functions."""
    index = tl.arange(0, 64)
    tl.store(out + index, tl.rand(seed, index))
    tl.store(out + index, tl.randn(seed, index))
    tl.store(words + index, tl.randint(seed, index))
    a, b, c, d = tl.randint4x(seed, index)
    tl.store(words + index, a ^ b ^ c ^ d)
    e, f, g, h = tl.rand4x(seed, index, n_rounds=7)
    tl.store(out + index, e + f + g + h)
    e, f, g, h = tl.randn4x(seed, index)
    tl.store(out + index, e + f + g + h)
    a, b, c, d = tl.philox(seed, index, index, index, index)
    tl.store(words + index, a + b + c + d)


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32"}, library=True)
@triton.jit
def small_helpers(x, out, n):
    """sigmoid, cdiv of blocks and numbers, ravel, interleave, zeros_like."""
    index = tl.arange(0, 64)
    a = tl.load(x + index)
    tl.store(out + index, tl.sigmoid(a) + a.sigmoid())
    tl.store(out + index, tl.cdiv(index, 3) + tl.cdiv(n, 4) + index.cdiv(n))
    tl.store(out + index, tl.zeros_like(a) + tl.uint_to_uniform_float(index.to(tl.uint32)))
    p, q = tl.pair_uniform_to_normal(a, a)
    tl.store(out + index, p + q)
