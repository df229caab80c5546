"""Views and rearrangements: reshape, transpose, join, split, concatenate, interleave, flip, broadcast."""

import triton
import triton.language as tl

from tests.gallery.cases import BLACKWELL, HOPPER, case, since


@case({"x": "*fp32:16", "y": "*fp32:16", "out": "*fp32:16", "BLOCK": 256}, archs=(HOPPER, BLACKWELL))
@triton.jit
def join_and_split(x, y, out, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    pair = tl.join(tl.load(x + index), tl.load(y + index))
    first, second = tl.split(pair * 2)
    tl.store(out + index, first - second)
    tl.store(out + BLOCK + tl.arange(0, 2 * BLOCK), tl.interleave(first, second))


@case({"x": "*fp16:16", "out": "*fp16:16", "M": 32, "N": 64}, archs=(HOPPER, BLACKWELL))
@triton.jit
def transpose(x, out, M: tl.constexpr, N: tl.constexpr):
    tile = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out + tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :], tl.trans(tile))


@case({"x": "*fp16:16", "out": "*fp16:16", "A": 4, "B": 16, "C": 32})
@triton.jit
def permute_three_dimensions(x, out, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    a = tl.arange(0, A)[:, None, None]
    b = tl.arange(0, B)[None, :, None]
    c = tl.arange(0, C)[None, None, :]
    cube = tl.load(x + a * (B * C) + b * C + c)
    turned = tl.permute(cube, (2, 0, 1))
    tl.store(out + tl.arange(0, A * B * C), tl.reshape(turned, (A * B * C,)))


@case({"x": "*fp32:16", "y": "*fp32:16", "out": "*fp32:16", "M": 16, "N": 32}, library=True)
@triton.jit
def reshape_and_concatenate(x, y, out, M: tl.constexpr, N: tl.constexpr):
    index = tl.arange(0, M * N)
    a = tl.load(x + index).reshape(M, N)
    b = tl.view(tl.load(y + index), (N, M))
    both = tl.cat(tl.ravel(a), tl.load(y + index), can_reorder=True)
    tl.store(out + tl.arange(0, 2 * M * N), both)
    tl.store(out + index, tl.reshape(a + tl.trans(b), (M * N,), can_reorder=True))
    tl.store(out + index, tl.ravel(tl.flip(a, dim=1)))


@case({"x": "*fp32:16", "out": "*fp32:16", "M": 16, "N": 32})
@triton.jit
def broadcasts(x, out, M: tl.constexpr, N: tl.constexpr):
    row = tl.load(x + tl.arange(0, N))
    column = tl.load(x + tl.arange(0, M))
    scalar = tl.load(x)
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    left, right = tl.broadcast(tl.expand_dims(column, 1), row[None, :])
    tile = left * right + tl.broadcast_to(scalar, (M, N)) + tl.full((M, N), 2.5, tl.float32)
    tl.store(out + at, tile)


@case({"x": "*fp32:16", "out": "*fp32:16", "M": 32})
@triton.jit
def tensor_to_scalar(x, out, M: tl.constexpr):
    """A tensor with one element, made a scalar again."""
    one = tl.load(x + tl.arange(0, 1))
    tl.store(out + tl.arange(0, M), tl.arange(0, M) * one.item())


@case(
    {"x": "*fp32:16", "y": "*fp32:16", "out": "*fp32:16", "M": 16, "N": 32},
    limits=(since(3, 7, "tl.cat along a dimension"),),
)
@triton.jit
def concatenate_in_order(x, y, out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    both = tl.cat(tl.load(x + at), tl.load(y + at), dim=0)
    tl.store(out + tl.arange(0, 2 * M)[:, None] * N + tl.arange(0, N)[None, :], both)
