"""Conversions between numbers give the bits that the interpreter gives."""

# covers: target.cpu

import ml_dtypes
import numpy as np
import pytest
from snippets import NO_HALF, evaluated, host
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float8E4M3B11FNUZType,
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E4M3Type,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    Float16Type,
    f32,
    f64,
)

from tests.unit.volume import is_full
from tlx_xdsl.cpu.codegen import conversions
from tlx_xdsl.cpu.codegen.host import Features
from tlx_xdsl.interpreter.numbers import dtype_of
from tlx_xdsl.numerics.rounding import integer_to, round_to, round_to_integer, truncate_to

pytestmark = pytest.mark.quick

NARROW = [
    BFloat16Type(), Float16Type(), Float8E5M2Type(), Float8E4M3Type(), Float8E4M3FNType(), Float8E4M3FNUZType(),
    Float8E4M3B11FNUZType(), Float8E5M2FNUZType(),
]  # fmt: skip
COUNT = 1 << 20 if is_full() else 1 << 14
RNG = np.random.default_rng(20)


def bits(array):
    """The bits of numbers; a NaN of f16, whose payload is the processor's affair, as one NaN of its sign."""
    if array.dtype == np.float16:
        array = np.where(np.isnan(array), np.copysign(np.float16(np.nan), array), array)
    return array.view(f"u{array.dtype.itemsize}")


def codes(dtype):
    """All numbers of a type of up to 16 bits."""
    return np.arange(1 << 8 * dtype.itemsize, dtype=f"u{dtype.itemsize}").view(dtype)


def held(array):
    """View numbers as the code has them in memory."""
    return array if array.dtype in (np.float32, np.float64) else array.view(f"u{array.dtype.itemsize}")


def numbers_near(dtype, wide):
    """Numbers of the type `wide` of all sizes, and those around every number of `dtype` and every tie."""
    size = np.dtype(wide).itemsize
    anything = np.frombuffer(RNG.bytes(size * COUNT), wide)
    points = codes(dtype)
    if points.size > 256 and not is_full():
        points = points[RNG.integers(0, points.size, 4096)]
    with np.errstate(all="ignore"):
        exact = np.sort(points.astype(np.float64)[np.isfinite(points.astype(np.float64))])
        ties = (exact[1:] + exact[:-1]) / 2
        largest = float(ml_dtypes.finfo(dtype).max)
        edges = np.concatenate([exact, ties, [largest * s for s in (1.01, 1.0625, 1.125, 1.25, 2, 4)]]).astype(wide)
        near = [np.nextafter(edges, wide(limit)) for limit in (-np.inf, np.inf)]
        tiny = np.exp2(RNG.uniform(-160, 130, 4096)) * RNG.choice([-1, 1], 4096)
        special = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0]
        return np.concatenate([anything, edges, -edges, *near, tiny.astype(wide), np.array(special, wide)])


@pytest.mark.parametrize("features", [host(), NO_HALF], ids=["host", "plain"])
@pytest.mark.parametrize("type_", NARROW, ids=str)
def test_widening_is_exact(type_, features):
    values = codes(dtype_of(type_))
    found = evaluated(lambda b, x: conversions.widen(b, x, type_, features), np.float32, held(values))
    expected = values.astype(np.float32)
    quiet = np.uint32(0x400000 if type_ == Float16Type() else 0) * np.isnan(expected)
    np.testing.assert_array_equal(found.view(np.uint32) | quiet, expected.view(np.uint32) | quiet)


@pytest.mark.parametrize("wide", [np.float32, np.float64])
@pytest.mark.parametrize("rounding", ["rne", "rtz"])
@pytest.mark.parametrize("type_", NARROW, ids=str)
def test_narrowing_rounds_once(type_, rounding, wide):
    dtype = dtype_of(type_)
    values = numbers_near(dtype, wide)
    with np.errstate(all="ignore"):
        expected = round_to(values, dtype) if rounding == "rne" else truncate_to(values, dtype)
    if rounding == "rtz" and dtype.name.endswith("fnuz"):
        # The number before the negative one closest to zero: zero has no sign, which alone is NaN.
        expected = np.where(np.isnan(expected) & np.isfinite(values), dtype.type(0), expected)
    ways = {host(), NO_HALF} if type_ == Float16Type() else {host()}
    for features in ways:
        found = evaluated(
            lambda b, x, features=features: conversions.narrow(b, x, type_, features, rounding),
            f"u{dtype.itemsize}",
            values,
        ).view(dtype)
        np.testing.assert_array_equal(bits(found), bits(expected))


@pytest.mark.parametrize("rounding", ["rne", "rtz"])
def test_a_double_becomes_a_float(rounding):
    values = np.concatenate(
        [np.frombuffer(RNG.bytes(8 * COUNT), np.float64), np.exp2(RNG.uniform(-155, 129, COUNT)), [1e300, np.inf, -0.0]]
    )
    values = values[~np.isnan(values)]
    with np.errstate(all="ignore"):
        expected = values.astype(np.float32) if rounding == "rne" else truncate_to(values, np.dtype(np.float32))
    found = evaluated(lambda b, x: conversions.narrow(b, x, f32, host(), rounding), np.float32, values)
    np.testing.assert_array_equal(bits(found), bits(expected))


def integers(dtype):
    """Draw integers of all sizes, and around powers of two."""
    width = 8 * dtype.itemsize
    anything = np.frombuffer(RNG.bytes(dtype.itemsize * COUNT), dtype)
    small = anything >> RNG.integers(0, width, COUNT).astype(dtype)
    powers = dtype.type(1) << np.arange(width).astype(dtype)
    with np.errstate(over="ignore"):
        near = np.concatenate(
            [powers + dtype.type(step) for step in (0, 1, 2)] + [~powers, -powers, powers - dtype.type(1)]
        )
        ties = [
            (powers << dtype.type(0)) | (powers >> dtype.type(by)) | dtype.type(low)
            for by in (4, 8, 9, 11)
            for low in (0, 1)
        ]
    return np.concatenate([small, near, *ties])


@pytest.mark.parametrize("type_", [BFloat16Type(), Float16Type(), Float8E4M3FNType(), f32, f64], ids=str)
@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_integers_become_floats(dtype, type_):
    values, target = integers(np.dtype(dtype)), dtype_of(type_)
    with np.errstate(all="ignore"):
        expected = integer_to(values, target)
    found = evaluated(
        lambda b, x: conversions.from_integer(b, x, type_, host(), signed=dtype[0] == "i"),
        target if target.itemsize >= 4 else f"u{target.itemsize}",
        values,
    ).view(target)
    np.testing.assert_array_equal(bits(found), bits(expected))


@pytest.mark.parametrize(("signed", "one"), [(True, -1.0), (False, 1.0)])
def test_a_bit_becomes_a_float(signed, one):
    values = np.array([False, True])
    found = evaluated(lambda b, x: conversions.from_integer(b, x, f32, host(), signed=signed), np.float32, values)
    assert found.tolist() == [0.0, one]
    found = evaluated(
        lambda b, x: conversions.from_integer(b, x, BFloat16Type(), host(), signed=signed), np.uint16, values
    )
    assert found.view(ml_dtypes.bfloat16).tolist() == [0.0, one]


@pytest.mark.parametrize("wide", [np.float32, np.float64])
@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_floats_become_integers(dtype, wide):
    target = np.dtype(dtype)
    sizes = np.exp2(RNG.uniform(-3, 70, COUNT)) * RNG.choice([-1, 1], COUNT)
    powers = np.exp2(np.arange(70.0))
    edges = np.concatenate([powers, powers - 1, powers + 0.5, [0.0, np.nan, np.inf, 1e30]])
    values = np.concatenate([sizes, edges, -edges]).astype(wide)
    values = np.concatenate([values, np.nextafter(values, wide(0))])
    if dtype == "?":
        with np.errstate(invalid="ignore"):
            expected = np.trunc(values.astype(np.float64)) % 2 != 0
            expected &= np.isfinite(values)
    else:
        whole = np.dtype(f"{target.kind}{max(target.itemsize, 2)}")
        expected = round_to_integer(values, whole).astype(target)
    found = evaluated(
        lambda b, x: conversions.to_integer(
            b, x, "i1" if dtype == "?" else f"i{8 * target.itemsize}", signed=target.kind == "i"
        ),
        target,
        values,
    )
    np.testing.assert_array_equal(found, expected)


def test_scalars_are_converted_as_vectors_are():
    values = numbers_near(np.dtype(ml_dtypes.float8_e4m3fn), np.float64)[-3000:]
    type_ = Float8E4M3FNType()
    results = [
        evaluated(lambda b, x: conversions.narrow(b, x, type_, host()), np.uint8, values, lanes=lanes)
        for lanes in (1, 8)
    ]
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize(
    ("names", "triple", "expected"),
    [
        (("avx512f", "avx2", "avx", "f16c"), "x86_64-unknown-linux-gnu", Features(True, 64, 32)),
        (("avx2", "avx", "f16c"), "x86_64-pc-windows-msvc", Features(True, 32, 16)),
        (("sse2",), "x86_64-unknown-linux-gnu", Features(False, 16, 16)),
        (("neon",), "aarch64-unknown-linux-gnu", Features(True, 16, 32)),
        (("neon",), "arm64-apple-darwin24.1.0", Features(True, 16, 32)),
    ],
)
def test_features_come_from_the_names_of_llvm(names, triple, expected):
    assert Features.of(dict.fromkeys(names, True) | {"avx512f": "avx512f" in names}, triple) == expected
