"""Block floats as TT-Metalium's host functions pack them, and as a definition in plain Python says."""

# covers: ttl.tensors

import hashlib
import math

import numpy as np
import pytest

from tlx_xdsl.ttl.formats import named
from tlx_xdsl.ttl.tiles import to_faces, to_pages

F32 = np.float32


def tile() -> np.ndarray:
    """A tile with numbers of all sizes, and rows that are special: halves, zeros, infinity, NaN, subnormals, -0."""
    chance = np.random.default_rng(0)
    sizes = chance.standard_normal((32, 32))
    x = (sizes * np.exp(chance.standard_normal((32, 32)) * 3)).astype(F32)
    x[0, :16] = [1.0, 0.5, 0.25, 0.125, 1 / 64, 3 / 128, 1 / 128, 1 / 256, -1.0, -1 / 128, -3 / 256, 1.9921875,
                 1.99609375, 1.998, 1.9999, 0.0]  # fmt: skip
    x[1, :16] = 0
    x[2, :16] = [np.inf] + [1.0] * 15
    x[3, :16] = [np.nan] + [1.0] * 15
    x[4, :16] = 1e-40
    x[5, :16] = [-0.0, 1, 0.49999, 0.0078125 * 1.5, 0.0078125 * 2.5, 0.0078125 * 3.5] + [1] * 10
    return x


@pytest.mark.parametrize(
    ("name", "size", "packed"),
    [
        ("bfp8_b", 1088, "68099d7747b342f5"),
        ("bfp4_b", 576, "9e6bd2843c3101e0"),
    ],
)
def test_bytes_are_those_of_the_vendors_host_functions(name, size, packed):
    """The digests are of what ttnn 0.81.1 holds: `ttnn.Tensor(values, [32, 32], ttnn.bfloat8_b, ttnn.TILE_LAYOUT)`."""
    data = to_pages(tile(), name)
    assert data.shape == (1, size)
    assert hashlib.sha256(data.tobytes()).hexdigest()[:16] == packed


def block_float(row: list[float], bits: int) -> list[float]:
    """Sixteen numbers as they are with one exponent: `bits - 1` bits for each, below the largest one's first."""
    exponents = [math.frexp(number)[1] - 1 if abs(number) >= 2.0**-126 else -127 for number in row]
    shared = max(exponents)
    step = 2.0 ** (shared - bits + 2)
    found = []
    for number, exponent in zip(row, exponents, strict=True):
        # Bits below 2 ** -23 of the largest number are lost before it is rounded.
        lost = 2.0 ** (shared - 23)
        size = 0.0 if exponent == -127 else math.floor(abs(number) / lost) * lost
        count = min(round(size / step), 2 ** (bits - 1) - 1)
        found.append(math.copysign(count * step, number if count else 1.0))
    return found


@pytest.mark.parametrize(("name", "bits"), [("bfp8_b", 8), ("bfp4_b", 4)])
def test_numbers_are_those_of_the_definition(name, bits):
    chance = np.random.default_rng(1)
    x = (chance.standard_normal((64, 16)) * 2.0 ** chance.integers(-12, 12, (64, 16))).astype(F32)
    wanted = [block_float(row, bits) for row in x.tolist()]
    found = named(name).unpack(named(name).pack(x.reshape(1, -1))).reshape(64, 16)
    np.testing.assert_array_equal(found, np.array(wanted, F32))
    np.testing.assert_array_equal(named(name).pack(found.reshape(1, -1)), named(name).pack(x.reshape(1, -1)))


def test_a_rounded_tile_is_one_that_went_through_memory():
    x = tile()[None]
    for name in ("bfp8_b", "bfp4_b", "bf16", "f32"):
        there = named(name).unpack(named(name).pack(to_faces(x)))
        np.testing.assert_array_equal(to_faces(named(name).rounded(x)), there)


def test_formats():
    assert [named(name).bytes_of(1024) for name in ("f32", "bf16", "ui32", "ui16", "bfp8_b", "bfp4_b")] == [
        4096, 2048, 4096, 2048, 1088, 576,
    ]  # fmt: skip
    assert named("ui16").register == np.uint16
    assert named("bfp8_b").register == np.float32
