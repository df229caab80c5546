"""Reductions and scans."""

# covers: tt.reduce

import triton
import triton.language as tl

from tests.gallery.cases import case


@triton.jit
def _tile(x):
    return tl.load(x + tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :])


@triton.jit
def _multiply(a, b):
    return a * b


@triton.jit
def _larger_with_place(value, place, other, other_place):
    keep = (value > other) | ((value == other) & (place < other_place))
    return tl.where(keep, value, other), tl.where(keep, place, other_place)


@triton.jit
def _affine(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def _saturating(a, b):
    total = a + b
    if total > 100:
        total = total * 0 + 100
    return total


@case({"x": "*fp32:16", "h": "*fp16:16", "out": "*fp32:16"})
@triton.jit
def named_reductions(x, h, out):
    """sum, max and min along each axis and over all elements, with kept dimensions; as methods."""
    rows, columns = tl.arange(0, 16), tl.arange(0, 32)
    a = _tile(x)
    b = _tile(h)
    tl.store(out + columns, tl.sum(a, axis=0))
    tl.store(out + rows, a.sum(1))
    tl.store(out, tl.sum(a))
    tl.store(out + rows, tl.max(a, 1))
    tl.store(out + columns, b.max(axis=0))
    tl.store(out, tl.min(b))
    tl.store(out + rows[:, None] * 32 + columns[None, :], a - tl.max(a, axis=1, keep_dims=True))
    tl.store(out + rows, tl.sum(b, axis=1))
    tl.store(out + rows, tl.sum(b, 1, dtype=tl.float32))
    tl.store(out + columns[None, :], tl.min(a, axis=0, keep_dims=True))


@case({"x": "*i32:16", "q": "*i8:16", "u": "*u16:16", "out": "*i64:16"})
@triton.jit
def integer_reductions(x, q, u, out):
    """Reductions of integers: small ones are widened; xor and or."""
    rows = tl.arange(0, 16)
    a, b, c = _tile(x), _tile(q), _tile(u)
    tl.store(out + rows, tl.sum(a, 1))
    tl.store(out + rows, tl.sum(b, 1))
    tl.store(out + rows, tl.sum(c, 1))
    tl.store(out + rows, tl.max(b, 1))
    tl.store(out + rows, tl.min(c, 1))
    tl.store(out + rows, tl.xor_sum(a, 1))
    tl.store(out + rows, tl.reduce_or(a, 1))
    tl.store(out + rows, tl.sum((a > 0).to(tl.int32), 1))


@case({"x": "*fp32:16", "i": "*i32:16", "out": "*fp32:16", "places": "*i32:16"})
@triton.jit
def places_of_extremes(x, i, out, places):
    """argmax and argmin, with both ways to break ties; max and min with their places."""
    rows = tl.arange(0, 16)
    a, b = _tile(x), _tile(i)
    tl.store(places + rows, tl.argmax(a, 1))
    tl.store(places + rows, tl.argmin(a, axis=1, tie_break_left=False))
    tl.store(places + rows, b.argmax(1))
    value, place = tl.max(a, 1, return_indices=True)
    low, low_place = tl.min(b, axis=1, return_indices=True, return_indices_tie_break_left=False)
    tl.store(out + rows, value + low)
    tl.store(places + rows, place + low_place)


@case({"x": "*fp32:16", "i": "*i32:16", "out": "*fp32:16"})
@triton.jit
def own_reductions(x, i, out):
    """tl.reduce with jitted functions: of one value, of two, over all axes, with a condition."""
    rows = tl.arange(0, 16)
    a = _tile(x)
    place = tl.broadcast_to(tl.arange(0, 32)[None, :], (16, 32))
    tl.store(out + rows, tl.reduce(a, 1, _multiply))
    tl.store(out, tl.reduce(a, None, _multiply))
    value, where = tl.reduce((a, place), axis=1, combine_fn=_larger_with_place)
    tl.store(out + rows, value + where)
    tl.store(out + rows[:, None], tl.reduce(_tile(i), 1, _saturating, keep_dims=True))
    tl.store(out, tl.reduce(tl.sum(a, 1), 0, _multiply))


@case({"x": "*fp32:16", "i": "*i8:16", "out": "*fp32:16"})
@triton.jit
def scans(x, i, out):
    """cumsum and cumprod along each axis, forward and reverse."""
    index = tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :]
    a, b = _tile(x), _tile(i)
    tl.store(out + index, tl.cumsum(a, 0))
    tl.store(out + index, a.cumsum(axis=1, reverse=True))
    tl.store(out + index, tl.cumprod(a, 1))
    tl.store(out + index, tl.cumsum(b, 1))
    tl.store(out + index, tl.cumsum(b, 1, dtype=tl.int64))


@case({"x": "*fp32:16", "out": "*fp32:16"})
@triton.jit
def own_scans(x, out):
    """tl.associative_scan with jitted functions."""
    index = tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :]
    a = _tile(x)
    tl.store(out + index, tl.associative_scan(a, 1, _multiply))
    scale, shift = tl.associative_scan((a, a + 1), axis=0, combine_fn=_affine, reverse=True)
    tl.store(out + index, scale * shift)


@case({"x": "*fp32:16", "out": "*fp32:16", "rows": "i32", "columns": "i32", "stride": "i32", "WIDTH": 128})
@triton.jit
def normalised_rows(x, out, rows, columns, stride, WIDTH: tl.constexpr):
    """Mean and variance of rows, row by row over a grid-stride loop."""
    index = tl.arange(0, WIDTH)
    inside = index < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        a = tl.load(x + row * stride + index, mask=inside, other=0.0)
        mean = tl.sum(a, axis=0) / columns
        centred = tl.where(inside, a - mean, 0.0)
        variance = tl.sum(centred * centred, axis=0) / columns
        tl.store(out + row * stride + index, centred * tl.rsqrt(variance + 1e-5), mask=inside)
