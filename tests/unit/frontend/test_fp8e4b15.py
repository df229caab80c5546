"""fp8e4b15 by value: all numbers to float16 and back, and float16 in between, as Triton's own conversion has them."""

# covers: tl.creation, tl.math

from __future__ import annotations

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.frontend import fp8e4b15


@tlx_xdsl.jit
def upcast(x, half, single, size, N: tl.constexpr):
    at = tl.arange(0, N)
    v = tl.load(x + at).to(tl.float8e4b15, bitcast=True)
    tl.store(half + at, v.to(tl.float16))
    tl.store(single + at, v.to(tl.float32))
    tl.store(size + at, tl.abs(v).to(tl.uint8, bitcast=True))


@tlx_xdsl.jit
def downcast(x, out, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + at, tl.load(x + at).to(tl.float8e4b15).to(tl.uint8, bitcast=True))


@tlx_xdsl.jit
def constants(out, VALUES: tl.constexpr):
    for at in tl.static_range(len(VALUES)):
        tl.store(out + at, tl.full((), VALUES[at], tl.float8e4b15).to(tl.uint8, bitcast=True))


@tlx_xdsl.jit
def product(a, b, out):
    at = tl.arange(0, 32)
    square = at[:, None] * 32 + at[None, :]
    left = tl.load(a + square).to(tl.float8e4b15, bitcast=True)
    right = tl.load(b + square).to(tl.float8e5, bitcast=True)
    tl.store(out + square, tl.dot(left, right))


BITS = np.arange(256, dtype=np.uint8)


def numbers(bits):
    """The definition: a sign, 4 bits of exponent with bias 15, 3 bits of mantissa, subnormals at exponent 0."""
    bits = bits.astype(np.int64)
    exponent, mantissa = bits >> 3 & 15, bits & 7
    size = np.where(exponent == 0, mantissa * 2.0**-17, (8 + mantissa) * 2.0 ** (exponent - 18.0))
    return np.where(bits & 0x80, -size, size)


def nearest(values):
    """Round float16s to the nearest number, away from zero when there are two, 1.75 at most."""
    largest = 0x7E
    sizes = numbers(np.arange(largest + 1))
    size = np.where(np.isnan(values), np.inf, np.abs(values.astype(np.float64)))
    between = (sizes[1:] + sizes[:-1]) / 2
    return (np.searchsorted(between, size, side="right") | np.where(np.signbit(values), 0x80, 0)).astype(np.uint8)


def test_numbers_to_wider_floats():
    half, single, size = np.zeros(256, np.float16), np.zeros(256, np.float32), np.zeros(256, np.uint8)
    upcast.interpret(1, BITS, half, single, size, N=256)
    assert (half == numbers(BITS)).all()
    assert (single == numbers(BITS)).all()
    assert (size == BITS & 0x7F).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_every_float16_is_rounded(dtype):
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    out = np.zeros(1 << 16, np.uint8)
    downcast.interpret(16, every.astype(dtype), out, N=4096)
    assert (out == nearest(every)).all()


def test_constants_are_as_their_conversion():
    values = (0, -0.0, 1, 0.3, -0.3, 1e-5, 2.0**-18, 1.7, -5.0, float("inf"), float("nan"))
    out = np.zeros(len(values), np.uint8)
    constants.interpret(1, out, VALUES=values)
    assert out.tolist() == nearest(np.array(values, np.float16)).tolist()
    assert [fp8e4b15.bits_of(value) for value in values] == out.tolist()


def test_products_are_of_float16():
    a = np.arange(1024, dtype=np.uint32).astype(np.uint8).reshape(32, 32)
    b = np.full((32, 32), 0x3C, np.uint8)
    out = np.zeros((32, 32), np.float32)
    result = product.interpret(1, a, b, out)
    assert np.allclose(out, numbers(a).sum(1, keepdims=True))
    assert any("deprecated on Hopper" in each.message for each in result.warnings)
