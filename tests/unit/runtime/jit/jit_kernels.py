"""Kernels for the tests of `jit`, and stand-ins for tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

OFFSET = tl.constexpr(3)


@dataclass(frozen=True)
class DType:
    """Looks like a torch dtype."""

    name: str = "float16"
    itemsize: int = 2
    is_floating_point: bool = True

    def __str__(self) -> str:
        return f"torch.{self.name}"


class FakeTensor:
    """Looks like a contiguous torch tensor; its name keeps our descriptors and Triton's from asking for an address."""

    def __init__(self, *shape: int, dtype: DType = DType(), address: int = 4096):
        self.shape, self.dtype, self.address = list(shape), dtype, address

    def data_ptr(self) -> int:
        return self.address

    def stride(self) -> tuple[int, ...]:
        strides = [1]
        for extent in reversed(self.shape[1:]):
            strides.insert(0, strides[0] * extent)
        return tuple(strides)

    def element_size(self) -> int:
        return self.dtype.itemsize


@tlx_xdsl.jit
def plus_offset(x):
    return x + OFFSET


@tlx_xdsl.jit
def add(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(z + at, plus_offset(tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask)), mask=mask)


@tlx_xdsl.jit
def copy_tile(source, target, ROWS: tl.constexpr, COLUMNS: tl.constexpr, BUFFERS: tl.constexpr = 1):
    tile = tlx.local_alloc((ROWS, COLUMNS), tlx.dtype_of(source), BUFFERS)
    full = tlx.alloc_barriers(1)
    tlx.barrier_expect_bytes(full[0], ROWS * COLUMNS * 2)
    row = tl.program_id(0) * ROWS
    tlx.async_descriptor_load(source, tile[0], [row, 0], full[0])
    tlx.barrier_wait(full[0], 0)
    tlx.async_descriptor_store(target, tile[0], [row, 0])
    tlx.async_descriptor_store_wait(0)


class Pair(NamedTuple):
    first: object
    second: object


@tlx_xdsl.jit
def of_a_tuple(out, pair, rest):
    tl.store(out, tl.load(pair.first) * pair.second + rest[0])


@tlx_xdsl.jit
def rank_in_cluster(out):
    tl.store(out + tl.program_id(0), tlx.cluster_cta_rank())


@tlx_xdsl.jit
def product(a, b, c, n, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, n, 32):
        k = start + tl.arange(0, 32)
        sums = tl.dot(tl.load(a + row[:, None] * n + k), tl.load(b + k[:, None] * n + column), sums)
    tl.store(c + row[:, None] * n + column, sums.to(tl.float16))
