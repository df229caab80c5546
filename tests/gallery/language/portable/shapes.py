"""Creation, shapes, indexing."""

# covers: tl.shape, tl.creation, tt.shape, tt.joining

import triton
import triton.language as tl

from tests.gallery.cases import case


@case({"x": "*fp32:16", "out": "*fp32:16"})
@triton.jit
def transposes(x, out):
    """trans, permute and .T, over two and three dimensions."""
    i, j, k = tl.arange(0, 4), tl.arange(0, 8), tl.arange(0, 16)
    flat = i[:, None] * 8 + j[None, :]
    a = tl.load(x + flat)
    tl.store(out + tl.trans(flat), a.T)
    tl.store(out + flat.trans(1, 0), tl.permute(a, (1, 0)))
    cube = i[:, None, None] * 128 + j[None, :, None] * 16 + k[None, None, :]
    c = tl.load(x + cube)
    tl.store(out + tl.permute(cube, 2, 0, 1), tl.trans(c, (2, 0, 1)))
    tl.store(out + cube.permute((0, 2, 1)), tl.trans(c))


@case({"x": "*fp32:16", "out": "*fp32:16"})
@triton.jit
def reshapes(x, out):
    """reshape with a tuple and with numbers, view, ravel, broadcast_to, expand_dims, squeeze, unsqueeze."""
    index = tl.arange(0, 64)
    a = tl.load(x + index)
    b = a.reshape(8, 8)
    c = tl.reshape(a, (4, 16))
    d = tl.view(c, [2, 32])
    e = tl.reshape(b, 64, can_reorder=True)
    tl.store(out + index, tl.ravel(d) + e)
    f = tl.expand_dims(a, 0).broadcast_to(2, 64)
    g = tl.expand_dims(tl.expand_dims(a, -1), 0)
    tl.store(out + index, tl.sum(f, 0) + tl.reshape(g, (64,)))
    h = tl.broadcast_to(tl.unsqueeze(a, 1), (64, 4))
    tl.store(out + index[:, None] * 4 + tl.arange(0, 4)[None, :], h)
    tl.store(out + index, tl.squeeze(tl.squeeze(g, 0), 1))


@case({"x": "*fp32:16", "out": "*fp32:16"})
@triton.jit
def subscripts(x, out):
    """Add dimensions by None and slices in subscripts."""
    index = tl.arange(0, 16)
    a = tl.load(x + index)
    b = a[None, :] + a[:, None]
    c = b[:, None, :]
    d = b[:, :][None, :, :]
    tl.store(out + index[:, None, None] * 16 + index[None, None, :], c)
    tl.store(out + index[None, :, None] * 16 + index[None, None, :], d)


@case({"x": "*fp32:16", "out": "*fp32:16"})
@triton.jit
def pieces(x, out):
    """join, split, interleave and cat."""
    index = tl.arange(0, 32)
    a, b = tl.load(x + index), tl.load(x + 32 + index)
    joined = tl.join(a, b)
    left, right = tl.split(joined * 2)
    tl.store(out + index, left - right)
    tl.store(out + tl.arange(0, 64), tl.interleave(a, b))
    tl.store(out + tl.arange(0, 64), tl.cat(a, b, can_reorder=True))
    first, second = a.reshape(16, 2).split()
    tl.store(out + tl.arange(0, 16), first * second)


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32"})
@triton.jit
def creation(x, out, n):
    """arange, full, zeros, zeros_like, program ids and counts."""
    index = tl.arange(16, 48)
    a = tl.load(x + index)
    b = tl.full([32], n, tl.int64) + tl.full((32,), 2.5, tl.float16)
    c = tl.zeros((32,), dtype=tl.bfloat16) + tl.zeros_like(a)
    d = tl.full((), 3, tl.int8)
    pid = tl.program_id(0) + tl.program_id(1) * tl.num_programs(0) + tl.program_id(2) * tl.num_programs(1)
    tl.store(out + pid * 32 + index, a + b + c + d)
    tl.store(out, tl.num_programs(2))


@case({"x": "*fp32:16", "y": "*fp32:16", "out": "*fp32:16"})
@triton.jit
def explicit_broadcast(x, y, out):
    """tl.broadcast of two blocks, and a scalar spread over a block."""
    rows = tl.arange(0, 8)[:, None]
    columns = tl.arange(0, 16)[None, :]
    a, b = tl.broadcast(tl.load(x + rows), tl.load(y + columns))
    scalar = tl.broadcast_to(tl.load(x), (8, 16))
    tl.store(out + rows * 16 + columns, a * b + scalar)


@case({"x": "*fp32:16", "i": "*i32:16", "out": "*fp32:16", "counts": "*i32:16"})
@triton.jit
def gathers(x, i, out, counts):
    """gather along each axis, histogram with and without a mask."""
    rows, columns = tl.arange(0, 8)[:, None], tl.arange(0, 16)[None, :]
    index = rows * 16 + columns
    a = tl.load(x + index)
    where = tl.load(i + index)
    tl.store(out + index, tl.gather(a, where, 1))
    tl.store(out + index, a.gather(where, axis=0))
    bins = tl.load(i + tl.arange(0, 128))
    tl.store(counts + tl.arange(0, 32), tl.histogram(bins, 32))
    tl.store(counts + tl.arange(0, 16), bins.histogram(16, mask=bins > 3))


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32"})
@triton.jit
def selection(x, out, n):
    """where over blocks, scalars and numbers; minimum, maximum and clamp with both treatments of NaN."""
    index = tl.arange(0, 64)
    a = tl.load(x + index)
    b = tl.where(index < n, a, 0.0)
    c = tl.where(n > 3, a, b)
    d = tl.where(index % 2 == 0, 1, -1)
    tl.store(out + index, tl.minimum(b, c) + tl.maximum(d, n))
    tl.store(out + index, tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL))
    tl.store(out + index, tl.maximum(a, 0.0, propagate_nan=tl.PropagateNan.ALL))
    tl.store(out + index, tl.clamp(a, 0.0, 1.0) + tl.clamp(b, -n, n, tl.PropagateNan.ALL))
    tl.store(out, min(n, 5) + max(n, tl.program_id(0)))
    tl.store(out + 1, tl.where(n > 0, 2.0, n))
