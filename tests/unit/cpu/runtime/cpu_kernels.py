"""Kernels for the tests of launches on the CPU."""

from __future__ import annotations

from typing import NamedTuple

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

SCALE = tl.constexpr(2)


class Pair(NamedTuple):
    """Two things that go together."""

    first: object
    second: object


def add(x, y, z, n, BLOCK: tl.constexpr = 128):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(z + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


def number(out, x):
    tl.store(out, x)


def annotated(out, x: tl.float16, i: tl.int64):
    tl.static_assert(x.dtype == tl.float16)
    tl.static_assert(i.dtype == tl.int64)
    tl.store(out, x + i)


def stride(x, out, step, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, tl.load(x + at * step))


def is_one(out, n, CONSTANT: tl.constexpr):
    tl.static_assert(isinstance(n, tl.constexpr) == CONSTANT)
    tl.store(out, n)


def of_a_tuple(out, things):
    at = tl.arange(0, things[0])
    tl.store(out + at, things[1](tl.load(things[2].first + at)) * things[2].second)


def increment(x):
    return x + 1


def of_a_descriptor(source, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    tile = source.load([0, 0])
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out + at, tile)


def scaled(x):
    tl.store(x, tl.load(x) * SCALE)


def asserts(x, n):
    tl.device_assert(tl.program_id(0) < n, "too far")
    tl.store(x + tl.program_id(0), 1)


def prints(x):
    tl.device_print("x", tl.load(x + tl.program_id(0)))


def shares(x):
    tlx.local_alloc((16,), tl.float32, 1)


def coordinates(out):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    at = x + tl.num_programs(0) * (y + tl.num_programs(1) * z)
    tl.store(out + at, x + 10 * y + 100 * z)


def jit(fn, **options):
    """A kernel that is launched on the CPU, whether Triton is there or not."""
    return tlx_xdsl.jit(fn, target="cpu", **options)


def product(x, out):
    at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(out + at, tl.dot(tl.load(x + at), tl.load(x + at)))
