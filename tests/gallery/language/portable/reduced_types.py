"""Reductions and scans of every type, of three dimensions, and by functions of every form."""

# covers: tl.reduction, tt.reduce

import triton
import triton.language as tl

from tests.gallery.cases import case


@triton.jit
def _tile(x):
    return tl.load(x + tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :])


@triton.jit
def _cube(x):
    planes, rows = tl.arange(0, 4)[:, None, None], tl.arange(0, 8)[None, :, None]
    return tl.load(x + planes * 128 + rows * 16 + tl.arange(0, 16)[None, None, :])


@triton.jit
def _multiply(a, b):
    return a * b


@triton.jit
def _above(a, b):
    return tl.maximum(a, b) + 1


@triton.jit
def _nested(a, b):
    return _above(a, b) * 2


@triton.jit
def _larger(a, b):
    if a > b:
        return a
    return b


@triton.jit
def _three(a, i, total, b, j, other):
    keep = a > b
    return tl.where(keep, a, b), tl.where(keep, i, j), total + other


@case({"x": "*fp16:16", "out": "*fp32:16"}, name="half_reductions")
@case({"x": "*bf16:16", "out": "*fp32:16"}, name="brain_reductions")
@case({"x": "*fp64:16", "out": "*fp64:16"}, name="double_reductions")
@triton.jit
def float_reductions(x, out):
    """max and min are taken in 32 bits at least, positions and sums in the type itself."""
    rows = tl.arange(0, 16)
    a = _tile(x)
    tl.store(out + rows, tl.sum(a, 1) + tl.reduce(a, 1, _multiply))
    tl.store(out + rows, tl.max(a, 1) - tl.min(a, -1))
    tl.store(out + rows, tl.argmax(a, 1) + tl.argmin(a, 1, tie_break_left=False))
    value, place = tl.min(a, 1, return_indices=True)
    tl.store(out + rows, value + place)
    tl.store(out + rows[:, None], tl.max(a, 1, keep_dims=True))
    index = rows[:, None] * 32 + tl.arange(0, 32)[None, :]
    tl.store(out + index, tl.cumsum(a, 1) + tl.associative_scan(a, 1, _multiply))
    tl.store(out + index, tl.cumprod(a, 1, dtype=tl.float32))


@case({"x": "*i8:16", "out": "*i64:16"}, name="signed_byte_reductions")
@case({"x": "*u16:16", "out": "*i64:16"}, name="unsigned_short_reductions")
@case({"x": "*u32:16", "out": "*i64:16"}, name="unsigned_word_reductions")
@case({"x": "*i64:16", "out": "*i64:16"}, name="long_reductions")
@case({"x": "*i1:16", "out": "*i64:16"}, name="bool_reductions")
@triton.jit
def integer_reductions_of_a_type(x, out):
    """Sums are taken in 32 bits at least; or and xor in the type itself."""
    rows = tl.arange(0, 16)
    a = _tile(x)
    tl.store(out + rows, tl.sum(a, 1))
    tl.store(out + rows, tl.sum(a, 1, dtype=tl.int8))
    tl.store(out + rows, tl.max(a, 1))
    tl.store(out + rows, tl.min(a, 1))
    tl.store(out + rows, tl.argmin(a, 1))
    tl.store(out + rows, tl.xor_sum(a, 1))
    tl.store(out, tl.reduce_or(a, None))
    tl.store(out + rows[:, None] * 32 + tl.arange(0, 32)[None, :], tl.cumsum(a, 1))


@case({"x": "*fp32:16", "out": "*fp32:16"})
@triton.jit
def cubes(x, out):
    """Reductions and scans along the middle, of three values, and of what reductions leave."""
    rows, columns = tl.arange(0, 8)[:, None], tl.arange(0, 16)[None, :]
    a = _cube(x)
    value, place = tl.max(a, 1, return_indices=True)
    tl.store(out + tl.arange(0, 4)[:, None] * 16 + columns, value + place)
    tl.store(out + tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)[None, :], tl.argmin(a, -1))
    tl.store(out + tl.arange(0, 1)[:, None, None], tl.sum(a, keep_dims=True))
    value, place, total = tl.reduce((a, (a > 0).to(tl.int32), a), 0, _three, keep_dims=True)
    tl.store((out + rows * 16 + columns)[None], value + place + total)
    tl.store(out + tl.arange(0, 4)[:, None, None] * 128 + (rows * 16 + columns)[None], tl.cumsum(a, -2, reverse=True))
    tl.store(out, tl.sum(tl.sum(tl.sum(a, 2), 1), 0))


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32"})
@triton.jit
def combining_functions(x, out, n):
    """A function that calls another, one that returns early; reductions that a loop carries."""
    rows, columns = tl.arange(0, 8)[:, None], tl.arange(0, 16)[None, :]
    a = _cube(x)
    tl.store(out + rows * 16 + columns, tl.reduce(a, 0, _nested))
    tl.store(out, tl.reduce(a, None, _larger))
    total = tl.zeros((4, 16), tl.float32)
    for step in range(n):
        a = _cube(x + step)
        total += tl.sum(a, 1)
        if n > step:
            total = total * tl.max(a, 1)
    tl.store(out + tl.arange(0, 4)[:, None] * 16 + columns, total)
