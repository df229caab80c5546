"""Integers and floats where numpy, Python and the hardware differ."""

# covers: tt.elementwise

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.unit.interpreter.functions import apply

pytestmark = pytest.mark.quick

WIDTHS = (8, 16, 32, 64)


def binary(name: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """An operation of two integer tensors."""
    type_ = f"T<i{8 * a.dtype.itemsize}>"
    return apply(f"{name} %0, %1 : {type_}", a, b, types=f"{type_}; {type_}", result=type_)


def edges(bits: int) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of the numbers at the edges of a type."""
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    numbers = np.array([low, low + 1, -7, -2, -1, 0, 1, 2, 3, 7, bits - 1, bits, bits + 1, high - 1, high])
    a, b = np.meshgrid(numbers.astype(f"i{bits // 8}"), numbers.astype(f"i{bits // 8}"))
    return a.ravel(), b.ravel()


def wrapped(values: list[int], bits: int) -> list[int]:
    """Numbers modulo 2**bits, with a sign."""
    half = 1 << (bits - 1)
    return [(value + half) % (1 << bits) - half for value in values]


def unsigned(value: int, bits: int) -> int:
    """The same bits without a sign."""
    return value % (1 << bits)


def quotient(a: int, b: int) -> int:
    """Rounded towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


SIGNED = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divsi": quotient,
    "arith.remsi": lambda a, b: a - quotient(a, b) * b,
    "arith.floordivsi": lambda a, b: a // b,
    "arith.ceildivsi": lambda a, b: -(-a // b),
    "arith.minsi": min,
    "arith.maxsi": max,
}
UNSIGNED = {
    "arith.divui": lambda a, b: a // b,
    "arith.remui": lambda a, b: a % b,
    "arith.ceildivui": lambda a, b: -(-a // b),
    "arith.minui": min,
    "arith.maxui": max,
}


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("name", [*SIGNED, *UNSIGNED])
def test_integer_arithmetic_at_the_edges(name: str, bits: int) -> None:
    a, b = edges(bits)
    if "div" in name or "rem" in name:
        a, b = a[b != 0], b[b != 0]
    if name in SIGNED:
        expected = [SIGNED[name](int(x), int(y)) for x, y in zip(a, b, strict=True)]
    else:
        function = UNSIGNED[name]
        expected = [function(unsigned(int(x), bits), unsigned(int(y), bits)) for x, y in zip(a, b, strict=True)]
    assert binary(name, a, b).tolist() == wrapped(expected, bits)


@pytest.mark.parametrize("bits", WIDTHS)
def test_shifts_by_the_width_or_more_leave_nothing(bits: int) -> None:
    a, b = edges(bits)
    by = [unsigned(int(y), bits) for y in b]
    pairs = list(zip(a.tolist(), by, strict=True))
    left = [x << y if y < bits else 0 for x, y in pairs]
    logical = [unsigned(x, bits) >> y if y < bits else 0 for x, y in pairs]
    signed = [x >> min(y, bits - 1) for x, y in pairs]
    assert binary("arith.shli", a, b).tolist() == wrapped(left, bits)
    assert binary("arith.shrui", a, b).tolist() == wrapped(logical, bits)
    assert binary("arith.shrsi", a, b).tolist() == wrapped(signed, bits)


@pytest.mark.parametrize("name", ["arith.divsi", "arith.divui", "arith.floordivsi"])
def test_by_zero_all_bits_are_set(name: str) -> None:
    assert binary(name, np.array([1, 2], np.int32), np.array([1, 0], np.int32)).tolist() == [1, -1]


@pytest.mark.parametrize("bits", [32, 64])
def test_the_high_half_of_a_product(bits: int) -> None:
    a, b = edges(bits)
    expected = [unsigned(int(x), bits) * unsigned(int(y), bits) >> bits for x, y in zip(a, b, strict=True)]
    assert binary("tt.mulhiui", a, b).tolist() == wrapped(expected, bits)


@pytest.mark.parametrize("bits", WIDTHS)
def test_bits_are_counted(bits: int) -> None:
    a = edges(bits)[0]
    type_ = f"T<i{bits}>"

    def unary(name: str) -> list[int]:
        return apply(f"{name} %0 : {type_}", a, types=type_, result=type_).tolist()

    raw = [unsigned(int(x), bits) for x in a]
    assert unary("math.ctpop") == [x.bit_count() for x in raw]
    assert unary("math.ctlz") == [bits - x.bit_length() for x in raw]
    assert unary("math.cttz") == [(x & -x).bit_length() - 1 if x else bits for x in raw]
    assert unary("math.absi") == wrapped([abs(int(x)) for x in a], bits)


@given(st.lists(st.integers(-128, 127), min_size=1, max_size=8), st.integers(0, 9))
def test_integers_to_a_power_wrap_around(numbers: list[int], power: int) -> None:
    a = np.array(numbers, np.int8)
    found = binary("math.ipowi", a, np.full(len(a), power, np.int8))
    assert found.tolist() == wrapped([int(x) ** power for x in numbers], 8)


A, B = np.array([False, False, True, True]), np.array([False, True, False, True])


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("arith.addi", lambda a, b: a + b),
        ("arith.subi", lambda a, b: a - b),
        ("arith.muli", lambda a, b: a * b),
        ("arith.andi", lambda a, b: a & b),
        ("arith.ori", lambda a, b: a | b),
        ("arith.xori", lambda a, b: a ^ b),
        ("arith.minsi", lambda a, b: min(-a, -b)),
        ("arith.maxsi", lambda a, b: max(-a, -b)),
        ("arith.minui", min),
        ("arith.maxui", max),
        ("arith.shli", lambda a, b: 0 if b else a),
        ("arith.shrui", lambda a, b: 0 if b else a),
        ("arith.shrsi", lambda a, b: a),
        ("arith.cmpi slt,", lambda a, b: -a < -b),
        ("arith.cmpi sge,", lambda a, b: -a >= -b),
        ("arith.cmpi ult,", lambda a, b: a < b),
        ("arith.cmpi ne,", lambda a, b: a != b),
    ],
)
def test_a_bit_is_an_integer_modulo_two(name: str, function: Callable[[int, int], int]) -> None:
    found = apply(f"{name} %0, %1 : T<i1>", A, B, types="T<i1>; T<i1>", result="T<i1>")
    assert found.dtype == np.bool_
    assert found.tolist() == [bool(function(int(a), int(b)) & 1) for a, b in zip(A, B, strict=True)]


@pytest.mark.parametrize(
    ("name", "result", "one"),
    [("extsi", "i32", -1), ("extui", "i32", 1), ("sitofp", "f32", -1.0), ("uitofp", "f16", 1.0)],
)
def test_the_sign_of_a_bit(name: str, result: str, one: float) -> None:
    found = apply(f"arith.{name} %0 : T<i1> to T<{result}>", B, types="T<i1>", result=f"T<{result}>")
    assert found.tolist() == [0, one, 0, one]


# Floats --------------------------------------------------------------------------------------------------------------

NAN, INF = np.nan, np.inf
PAIRS = np.array([(x, y) for x in (NAN, INF, -INF, 0.0, -0.0, 1.0, -2.0) for y in (NAN, INF, -INF, 0.0, -0.0, 1.5)])


def floats(name: str, *operands: np.ndarray, element: str = "f32", suffix: str = "") -> np.ndarray:
    """An operation of float tensors."""
    type_ = f"T<{element}>"
    used = ", ".join(f"%{number}" for number in range(len(operands)))
    types = "; ".join([type_] * len(operands))
    return apply(f"{name} {used}{suffix} : {type_}", *operands, types=types, result=type_)


def same(found: np.ndarray, expected: list[float]) -> None:
    """NaN is NaN, and zeros have a sign."""
    want = np.array(expected, found.dtype)
    np.testing.assert_array_equal(found, want)
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(want)[numbers])


def lower(x: float, y: float) -> float:
    """The lower of two numbers; -0 is below 0."""
    return (x if np.signbit(x) else y) if x == y else min(x, y)


@pytest.mark.parametrize(("dtype", "element"), [(np.float16, "f16"), (np.float32, "f32"), (np.float64, "f64")])
def test_extrema_of_nan_and_zeros(dtype: type, element: str) -> None:
    a, b = PAIRS.T.astype(dtype)
    number, spread = [], []
    for x, y in zip(a, b, strict=True):
        either = float(y if np.isnan(x) else x if np.isnan(y) else lower(x, y))
        number.append(either)
        spread.append(NAN if np.isnan(x) or np.isnan(y) else either)
    same(floats("arith.minnumf", a, b, element=element), number)
    same(floats("arith.minimumf", a, b, element=element), spread)
    same(-floats("arith.maxnumf", -a, -b, element=element), number)
    same(-floats("arith.maximumf", -a, -b, element=element), spread)


def test_clamp_replaces_nan_or_spreads_it() -> None:
    x = np.array([NAN, -INF, -3, 0.5, 7, INF, -0.0], np.float32)
    low, high = np.full(7, 0, np.float32), np.full(7, 1, np.float32)
    same(floats("tt.clampf", x, low, high, suffix=", propagateNan = none"), [0, 0, 0, 0.5, 1, 1, 0])
    same(floats("tt.clampf", x, low, high, suffix=", propagateNan = all"), [NAN, 0, 0, 0.5, 1, 1, 0])


@pytest.mark.parametrize("name", ["oeq", "one", "olt", "ole", "ogt", "oge", "ord"])
def test_ordered_comparisons_are_false_for_nan_and_unordered_ones_true(name: str) -> None:
    a, b = PAIRS.T.astype(np.float32)
    function = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
                "ge": np.greater_equal, "rd": lambda x, y: np.full(len(x), True)}[name[1:]]  # fmt: skip
    nan = np.isnan(a) | np.isnan(b)

    def compared(predicate: str) -> np.ndarray:
        operation = f"arith.cmpf {predicate}, %0, %1 : T<f32>"
        return apply(operation, a, b, types="T<f32>; T<f32>", result="T<i1>")

    np.testing.assert_array_equal(compared(name), function(a, b) & ~nan)
    if name == "ord":
        np.testing.assert_array_equal(compared("uno"), nan)
    else:
        np.testing.assert_array_equal(compared(f"u{name[1:]}"), function(a, b) | nan)


def test_signs_are_bits() -> None:
    a = np.array([-0.0, NAN, -NAN, -1, INF], np.float32)
    assert not np.signbit(floats("math.absf", a)).any()
    np.testing.assert_array_equal(np.signbit(floats("arith.negf", a)), ~np.signbit(a))
    b = np.array([1, -1, -0.0, 0.0, -NAN], np.float32)
    np.testing.assert_array_equal(np.signbit(floats("math.copysign", a, b)), np.signbit(b))


def nearest(exact: Fraction, dtype: np.dtype) -> np.ndarray:
    """The nearest number of a type, ties to even, by exact comparison."""
    near = np.array(float(exact)).astype(dtype)
    bits = near.view(f"i{dtype.itemsize}")
    candidates = [np.array(bits + move, bits.dtype).view(dtype) for move in (-1, 0, 1)]
    finite = [x for x in candidates if np.isfinite(x.astype(np.float64))]

    def distance(x: np.ndarray) -> tuple[Fraction, int]:
        return abs(Fraction(float(x)) - exact), int(x.view(f"u{dtype.itemsize}")) & 1

    return min(finite, key=distance)


TYPES = [(np.float16, "f16"), (ml_dtypes.bfloat16, "bf16"), (np.float32, "f32"), (np.float64, "f64")]
NUMBERS = st.floats(-1e4, 1e4, allow_subnormal=False, width=16)
FRACTIONS = st.tuples(NUMBERS, st.integers(-20, 20))


@pytest.mark.parametrize(("dtype", "element"), TYPES)
@given(st.lists(st.tuples(FRACTIONS, FRACTIONS, FRACTIONS), min_size=1, max_size=8))
def test_fma_rounds_once(dtype: type, element: str, numbers: list) -> None:
    kind = np.dtype(dtype)
    spread = np.array([[x * (1 + 2.0**-20) + y * 2.0**-12 for x, y in row] for row in numbers]).astype(kind)
    found = floats("math.fma", *np.ascontiguousarray(spread.T), element=element)
    for (a, b, c), result in zip(spread, found, strict=True):
        exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
        if exact and abs(exact) < float(ml_dtypes.finfo(kind).max):
            assert result == nearest(exact, kind)


def test_fma_of_doubles_beyond_the_range_where_it_is_exact() -> None:
    a = np.array([1e300, INF, NAN, 1e308, 0.0])
    b = np.array([1e300, 0.0, 1.0, 10.0, -1.0])
    same(floats("math.fma", a, b, np.array([1.0, 1, 1, -INF, 0.0]), element="f64"), [INF, NAN, NAN, -INF, 0.0])


def test_fma_of_doubles_among_subnormal_numbers_and_zeros() -> None:
    cases = [
        (-0.0, 8e-5, -0.0, -0.0),
        (-0.0, 8e-5, 0.0, 0.0),
        (2.0, 0.5, -1.0, 0.0),
        (1e-200, -1e-200, 0.0, -0.0),
        (1e-308, 0.1, 0.0, 1e-309),
        (1e-308, 1.7e308, 3.0, 4.7),
        (1e300, 1e300, -INF, -INF),
        (1e200, 1e200, -1e308, INF),
    ]
    a, b, c, expected = np.array(cases).T.copy()
    found = floats("math.fma", a, b, c, element="f64")
    np.testing.assert_array_equal(found.view(np.int64), expected.view(np.int64))


@pytest.mark.parametrize(
    ("dtype", "element", "a", "b", "unit"),
    [
        # The products lie in the middle of two neighbours, of which the lower one is even.
        (np.float32, "f32", 1 + 2.0**-12, 1 + 2.0**-12, 2.0**-23),
        (np.float64, "f64", 1 + 2.0**-26, 1 + 2.0**-27, 2.0**-52),
    ],
)
def test_fma_is_decided_by_what_f64_drops(dtype: type, element: str, a: float, b: float, unit: float) -> None:
    x, y = np.full(3, a, dtype), np.full(3, b, dtype)
    tiny = np.array([2.0**-120, 0, -(2.0**-120)], dtype)
    lower = Fraction(a) * Fraction(b) - Fraction(unit) / 2
    found = floats("math.fma", x, y, tiny, element=element)
    assert [Fraction(float(value)) for value in found] == [lower + Fraction(unit), lower, lower]
