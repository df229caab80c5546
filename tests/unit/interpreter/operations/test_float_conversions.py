"""Conversions between floats, against exact neighbours."""

# covers: tl.dtypes, tt.elementwise

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.unit.interpreter.functions import apply
from tests.unit.interpreter.oracle.floating import narrowed, saturated, towards_zero
from tlx_xdsl.numerics.rounding import round_to, round_to_integer, to_odd_single, truncate_to
from tlx_xdsl.numerics.special_functions import erf

SMALL = {"f2": np.float16, "bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}
SPELLED = {"f2": "f16", "bf16": "bf16", "e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}


def between(name: str) -> np.ndarray:
    """All numbers of a small type, what lies halfway between them, and a hair beside that; in f64."""
    kind = np.dtype(SMALL[name])
    numbers = np.arange(1 << 8 * kind.itemsize).astype(f"u{kind.itemsize}").view(kind).astype(np.float64)
    numbers = np.sort(numbers[np.isfinite(numbers)])
    middles = (numbers[1:] + numbers[:-1]) / 2
    hair = np.abs(middles) * 2.0**-45
    beyond = np.array([2 * numbers[-1], -2 * numbers[-1], 1e300, np.inf, -np.inf, np.nan, 1e-300])
    return np.concatenate((numbers, middles, middles + hair, middles - hair, beyond))


def assert_same(found: np.ndarray, expected: np.ndarray) -> None:
    """NaN is NaN, and zeros have a sign."""
    have = found.astype(np.float64)
    np.testing.assert_array_equal(have, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(have)[numbers], np.signbit(expected)[numbers])


@pytest.mark.parametrize("name", SMALL)
def test_every_number_and_every_middle_is_rounded_once(name: str) -> None:
    values, kind = between(name), np.dtype(SMALL[name])
    expected = narrowed(values, name)
    if name == "e4m3":
        # It has no infinity; more than half a unit above the largest number is NaN.
        expected = np.where(np.isinf(expected), np.nan, expected)
    with np.errstate(all="ignore"):
        assert_same(round_to(values, kind), expected)
        assert_same(
            truncate_to(values, kind), towards_zero(values, name) if name != "e4m3" else _without_infinity(values)
        )


def _without_infinity(values: np.ndarray) -> np.ndarray:
    return np.where(np.isinf(values), np.nan, towards_zero(values, "e4m3"))


@pytest.mark.parametrize("name", ["e4m3", "e5m2"])
@pytest.mark.parametrize(("source", "spelled"), [("f4", "f32"), ("f2", "f16"), ("bf16", "bf16")])
def test_eight_bit_floats_stop_at_their_largest_number(name: str, source: str, spelled: str) -> None:
    with np.errstate(all="ignore"):
        values = between(name).astype(SMALL.get(source, source))
    operation = f"tt.fp_to_fp %0, rounding = rtne : T<{spelled}> -> T<{SPELLED[name]}>"
    found = apply(operation, values, types=f"T<{spelled}>", result=f"T<{SPELLED[name]}>")
    assert_same(found, saturated(values, name))


@given(st.lists(st.floats(width=64), min_size=1, max_size=50))
def test_rounding_to_odd_keeps_what_rounding_needs(numbers: list[float]) -> None:
    values = np.array(numbers)
    with np.errstate(all="ignore"):
        odd = to_odd_single(values)
        # On the same side of every number of fewer bits as the value itself.
        for kind in (ml_dtypes.bfloat16, ml_dtypes.float8_e5m2):
            assert_same(odd.astype(kind), narrowed(values, "bf16" if kind is ml_dtypes.bfloat16 else "e5m2"))
        exact = odd.astype(np.float64) == values
    inexact = ~exact & np.isfinite(odd)
    assert (odd.view(np.uint32)[inexact] & 1 == 1).all()


@pytest.mark.parametrize("source", ["f2", "f4", "f8"])
@pytest.mark.parametrize("target", ["i2", "u2", "i4", "u4", "i8", "u8"])
def test_nan_becomes_the_highest_bit_where_f64_or_64_bits_take_part(source: str, target: str) -> None:
    # As measured on an H200 (test_casts_on_gpu.py).
    found = round_to_integer(np.array([np.nan, -np.nan, np.inf, -np.inf, -1.5]).astype(source), np.dtype(target))
    bits, limits = np.dtype(f"u{target[1]}"), np.iinfo(target)
    nan = 1 << limits.bits - 1 if source == "f8" or target[1] == "8" else 0
    below = max(limits.min, -1)
    assert found.tolist() == [*[np.array(nan, bits).view(target).item()] * 2, limits.max, limits.min, below]


def test_the_error_function() -> None:
    # DLMF, table 7.23 (A. J. Van Zanten's values are the same): erf(x) to 15 digits.
    known = {0.0: 0.0, 0.1: 0.112462916018285, 0.5: 0.520499877813047, 1.0: 0.842700792949715,
             2.0: 0.995322265018953, 2.5: 0.999593047982555, 3.0: 0.999977909503001, 6.0: 1.0}  # fmt: skip
    x = np.array([*known, *(-key for key in known)])
    expected = np.array([*known.values(), *(-value for value in known.values())])
    np.testing.assert_allclose(erf(x), expected, atol=1e-15, rtol=2e-15)
    assert erf(np.array([np.inf])) == 1
    assert np.isnan(erf(np.array([np.nan])))


@given(st.lists(st.floats(-30, 30), min_size=1, max_size=50))
def test_the_error_function_is_that_of_python(numbers: list[float]) -> None:
    import math

    np.testing.assert_allclose(erf(np.array(numbers)), [math.erf(x) for x in numbers], rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize(("kind", "dtype"), [("sitofp", np.int64), ("uitofp", np.uint64), ("sitofp", np.int32)])
def test_integers_become_the_nearest_bf16(kind: str, dtype: type) -> None:
    rng, limits = np.random.default_rng(0), np.iinfo(dtype)
    # Middles between neighbours, and one to either side, which f64 or f32 would round away.
    middles = [(2 * m + 1) << shift for m in range(128, 256) for shift in range(limits.bits - 10)]
    near = [m + step for m in middles for step in (-1, 0, 1)]
    numbers = np.array([x for x in near if x <= limits.max], dtype)
    numbers = np.concatenate((numbers, rng.integers(limits.min, limits.max, 500, dtype), -numbers.astype(dtype)))
    found = apply(f"arith.{kind} %0 : T<i{limits.bits}> to T<bf16>", numbers.view(f"i{limits.bits // 8}"),
                  types=f"T<i{limits.bits}>", result="T<bf16>")  # fmt: skip
    for number, result in zip(numbers.tolist(), found.astype(np.float64), strict=True):
        size = max(abs(number).bit_length() - 8, 0)
        low = abs(number) >> size << size
        rest, half = abs(number) - low, (1 << size) // 2
        up = rest > half or (rest == half and size and low >> size & 1)
        expected = low + ((1 << size) if up else 0)
        assert abs(int(result)) == expected, number
        assert (result < 0) == (number < 0)
