"""Functions of `math` beside mpmath: how far they are off, in units of the last place, and what edges give."""

# covers: target.cpu

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import mpmath
import numpy as np
import pytest
from snippets import NO_HALF, applied, compile_snippet, evaluated, host
from xdsl.dialects import math as dialect, test
from xdsl.dialects.builtin import IntegerType, f32, i32

from tests.unit.volume import is_full
from tlx_xdsl.cpu.codegen.builder import Builder, Externals, Value
from tlx_xdsl.cpu.codegen.mathematics import evaluate
from tlx_xdsl.cpu.codegen.mathematics.device import of_device
from tlx_xdsl.interpreter.ops import math as interpreted

RNG = np.random.default_rng(20)
COUNT = 3000 if is_full() else 100
"""Samples in each range of a function."""

PI = math.pi
Exact = Callable[[Any], Any]
ALL = [(1e-38, 1e38), (-1e38, -1e-38)]
POSITIVE = [(1e-38, 1e38), (0.5, 2.0)]
UNIT = [(-1.0, 1.0), (1e-20, 1.0)]


def log2(x):
    return mpmath.log(x) / mpmath.log(2)


def cbrt(x):
    return mpmath.sign(x) * mpmath.cbrt(abs(x))


FUNCTIONS: dict[str, tuple[Exact, list[tuple[float, float]], float, float]] = {
    "acos": (mpmath.acos, UNIT, 0.51, 3),
    "acosh": (mpmath.acosh, [(1.0, 1e38), (1.0, 1.01)], 0.51, 3),
    "asin": (mpmath.asin, UNIT, 0.51, 3),
    "asinh": (mpmath.asinh, [*ALL, (-1.0, 1.0)], 0.51, 3),
    "atan": (mpmath.atan, [*ALL, (-3.0, 3.0)], 0.51, 3),
    "atanh": (mpmath.atanh, UNIT, 0.51, 3),
    "cbrt": (cbrt, ALL, 0.51, 3),
    "cos": (mpmath.cos, [*ALL, (-10.0, 10.0), (1e5, 1e9)], 0.51, 0.8),
    "cosh": (mpmath.cosh, [(-92.0, 92.0), (-1.0, 1.0)], 0.51, 3),
    "erf": (mpmath.erf, [(-4.5, 4.5), (1e-38, 1e-3)], 1.0, 3),
    "exp": (mpmath.exp, [(-106.0, 90.0), (-0.5, 0.5)], 0.9, 0.9),
    "exp2": (lambda x: mpmath.power(2, x), [(-152.0, 129.0), (-0.5, 0.5)], 0.9, 0.9),
    "expm1": (mpmath.expm1, [(-20.0, 90.0), (-1.0, 1.0), (1e-38, 1e-3)], 0.51, 3),
    "log": (mpmath.log, POSITIVE, 0.9, 0.7),
    "log10": (mpmath.log10, POSITIVE, 0.51, 0.7),
    "log1p": (mpmath.log1p, [*POSITIVE, (-0.999, 0.0), (1e-10, 1e-5)], 0.51, 3),
    "log2": (log2, POSITIVE, 1.0, 0.7),
    "rsqrt": (lambda x: 1 / mpmath.sqrt(x), POSITIVE, 0.6, 0.6),
    "sin": (mpmath.sin, [*ALL, (-10.0, 10.0), (1e5, 1e9)], 0.51, 0.8),
    "sinh": (mpmath.sinh, [(-92.0, 92.0), (-1.0, 1.0), (1e-38, 1e-3)], 0.51, 3),
    "tan": (mpmath.tan, [*ALL, (-10.0, 10.0), (1e5, 1e9)], 0.51, 2),
    "tanh": (mpmath.tanh, [(-10.0, 10.0), (-1.5, 1.5), (1e-38, 1e-3)], 1.0, 1.5),
}
"""The exact function, ranges of arguments, and the largest error of f32 and of f64 in ulp.

Ranges over many powers of two are sampled by their exponents. Three ulp are for functions of the C library.
"""


def operation(name: str, b: Builder, *operands: Value) -> Value | None:
    return evaluate(b, f"math.{name}", operands, host())


@lru_cache(maxsize=100)
def compiled(name: str, dtype: Any) -> Any:
    """A function of one operand; see `compile_snippet`."""
    return compile_snippet(lambda b, x: operation(name, b, x), (dtype,), dtype)


def samples(ranges, dtype):
    """Numbers in the ranges, and those that are next to edges: of the type, and multiples of quarter turns."""
    with np.errstate(all="ignore"):
        found = []
        for low, high in ranges:
            if abs(low) > 0 and abs(high) > 0 and not 1e-5 < abs(low / high) < 1e5:
                sizes = np.exp(RNG.uniform(*sorted((math.log(abs(low)), math.log(abs(high)))), COUNT))
                found.append(math.copysign(1, low) * sizes)
            else:
                found.append(RNG.uniform(low, high, COUNT))
        info = np.finfo(dtype)
        edges = [1.0, 2.0, 0.5, 4.0, 10.0, 1e-5, math.log(float(info.max)), math.log(float(info.tiny))]
        edges += [
            info.tiny,
            info.smallest_subnormal,
            5 * info.smallest_subnormal,
            info.max,
            88.72,
            103.97,
            126.0,
            149.5,
        ]
        edges += [quarter * PI / 2 for quarter in (1, 2, 3, 4, 5, 100, 12345, 2**20, 2**24 - 1, 3**40)]
        # The float that is closest to a multiple of pi / 2.
        edges += [16367173.0 * 2.0**72]
        near = np.array(edges, dtype)
        near = np.concatenate([near, np.nextafter(near, dtype(0)), np.nextafter(near, dtype(np.inf))])
        array = np.concatenate([*(each.astype(dtype) for each in found), near, -near])
    # So that lanes of all kinds are side by side.
    return RNG.permutation(array[np.isfinite(array)])


def errors(found, values, exact, dtype):
    """Yield errors in ulps of the exact result; infinity counts as the power of two beyond the largest number."""
    info = np.finfo(dtype)
    digits, lowest, beyond = info.nmant + 1, info.minexp - info.nmant, mpmath.mpf(2) ** info.maxexp
    with mpmath.workprec(160):
        for value, result in zip(values.tolist(), found.tolist(), strict=True):
            wanted = exact(mpmath.mpf(value))
            if not isinstance(wanted, mpmath.mpf):
                yield 0.0 if math.isnan(result) else math.inf
                continue
            wanted = max(min(wanted, beyond), -beyond)
            given = mpmath.mpf(result) if math.isfinite(result) else math.copysign(1, result) * beyond
            if math.isnan(result):
                yield math.inf
            else:
                unit = mpmath.ldexp(1, max(mpmath.frexp(wanted)[1] - digits, lowest)) if wanted else info.tiny
                yield float(abs(given - wanted) / unit)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_are_small(name, dtype):
    exact, ranges, *bounds = FUNCTIONS[name]
    values = samples(ranges, dtype)
    values = values[defined(name, values)]
    found = applied(compiled(name, dtype), dtype, values)
    wrong = np.array([*errors(found, values, exact, dtype)])
    worst = int(np.argmax(wrong))
    assert wrong[worst] <= bounds[dtype is np.float64], (values[worst], found[worst])


def defined(name, values):
    """Return where a function is finite for finite numbers: `reference` has the rest."""
    with np.errstate(all="ignore"):
        return np.isfinite(reference(name, values)) | (np.abs(values) > 80) & ~np.isnan(reference(name, values))


def reference(name, values):
    """The function as the interpreter has it, in f64."""
    class_ = next(each for each in vars(dialect).values() if getattr(each, "name", None) == f"math.{name}")
    function = interpreted._FUNCTIONS[class_]
    return function(*(value.astype(np.float64) for value in np.atleast_2d(values)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_edges(name, dtype):
    info = np.finfo(dtype)
    positive = [0.0, 1.0, 2.0, np.inf, np.nan, info.smallest_subnormal, info.tiny, info.max, 1e-300, 1e300]
    with np.errstate(all="ignore"):
        values = np.array([*positive, *(-value for value in positive)], dtype)
        expected = reference(name, values).astype(dtype)
    found = applied(compiled(name, dtype), dtype, values)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    number = ~np.isnan(expected)
    np.testing.assert_allclose(found[number], expected[number], rtol=4 * info.eps, atol=0)
    np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(expected[number]))


def test_the_exponential_of_minus_infinity_is_zero():
    found = evaluated(lambda b, x: operation("exp", b, x), np.float32, np.full(16, -np.inf, np.float32))
    assert found.tolist() == [0.0] * 16


@pytest.mark.parametrize("lanes", [1, 4, 32])
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
def test_any_number_of_lanes(dtype, lanes):
    values = samples([(-100.0, 100.0)], dtype)
    for name in ("exp", "sin"):
        found = evaluated(lambda b, x, name=name: operation(name, b, x), dtype, values, lanes=lanes)
        expected = applied(compiled(name, dtype), dtype, values)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
def test_a_processor_without_an_instruction_that_scales(dtype):
    values = np.append(samples([(-106.0, 90.0), (-746.0, 710.0)], dtype), dtype([np.inf, -np.inf, np.nan]))
    found, expected = (
        evaluated(lambda b, x, features=features: evaluate(b, "math.exp", [x], features), dtype, values)
        for features in (NO_HALF, host())
    )
    np.testing.assert_array_equal(found, expected)


# Two operands and more -----------------------------------------------------------------------------------------------

EDGES = [
    0, 1, 2, 0.5, 3, 1.5, 1e30, 1e-30, np.inf, np.nan, 2.0**24, 2.0**24 - 1, 2.0**25, 1e-45, 3.4e38, 1 - 2**-24, 255,
]  # fmt: skip


def pairs(dtype):
    edges = np.array([*EDGES, *(-edge for edge in EDGES)], dtype)
    x, y = (grid.ravel() for grid in np.meshgrid(edges, edges))
    base = np.exp2(RNG.uniform(-20, 20, 3000)) * RNG.choice([-1, 1], 3000)
    power = np.where(RNG.random(3000) < 0.5, RNG.integers(-9, 9, 3000), RNG.uniform(-6, 6, 3000))
    return np.concatenate([x, base.astype(dtype)]), np.concatenate([y, power.astype(dtype)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
@pytest.mark.parametrize(
    ("name", "function"), [("math.powf", np.power), ("math.atan2", np.arctan2), ("arith.remf", np.fmod)]
)
def test_functions_of_two_numbers(name, function, dtype):
    x, y = pairs(dtype)
    with np.errstate(all="ignore"):
        wide = function(x.astype(np.float64), y.astype(np.float64))
        expected = wide.astype(dtype)
    found = evaluated(lambda b, x, y: evaluate(b, name, [x, y], host()), dtype, x, y)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(expected[number]))
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(found[number & ~finite], expected[number & ~finite])
    unit = np.spacing(np.abs(expected[finite])).astype(np.float64)
    with np.errstate(invalid="ignore"):
        assert np.max(np.abs(found[finite] - wide[finite]) / unit) <= (0.51 if dtype is np.float32 else 1.0)


def test_powers_by_integers():
    x = RNG.uniform(-3, 3, 320).astype(np.float32)
    y = RNG.integers(-20, 20, 320).astype(np.int32)
    expected = np.power(x.astype(np.float64), y).astype(np.float32)
    found = evaluated(lambda b, x, y: operation("fpowi", b, x, y), np.float32, x, y)
    np.testing.assert_array_equal(found, expected)


def operands_of(class_, *types):
    return class_(*test.TestOp(result_types=types).results)


def test_multiply_add_rounds_once():
    x, y, z = np.frombuffer(RNG.bytes(3 * 4 * 4096), np.float32).reshape(3, -1)
    with np.errstate(all="ignore"):
        expected = interpreted.fma(operands_of(dialect.FmaOp, f32, f32, f32))(x, y, z)
    found = evaluated(lambda b, x, y, z: operation("fma", b, x, y, z), np.float32, x, y, z)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("name", ["absf", "ceil", "floor", "round", "roundeven", "sqrt", "trunc"])
def test_exact_functions(name, dtype):
    x = np.concatenate([np.arange(-4, 4, 0.25), RNG.uniform(-1e8, 1e8, 500), [2.5, 3.5, 0.49999997, -0.0, np.inf]])
    x = x.astype(dtype)
    function = {"absf": np.abs, "sqrt": np.sqrt}.get(name)
    with np.errstate(invalid="ignore"):
        expected = reference(name, x).astype(dtype) if function is None else function(x)
    found = evaluated(lambda b, x: operation(name, b, x), dtype, x)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found)[~np.isnan(found)], np.signbit(expected)[~np.isnan(found)])


def test_signs_are_copied():
    x, y = np.array([1.0, -2.0, 0.0, np.inf] * 4, np.float32), np.array([-0.0, 3.0, -1.0, -np.nan] * 4, np.float32)
    found = evaluated(lambda b, x, y: operation("copysign", b, x, y), np.float32, x, y)
    np.testing.assert_array_equal(found.view(np.int32), np.copysign(x, y).view(np.int32))


# Integers ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [8, 16, 32, 64])
@pytest.mark.parametrize(
    ("class_", "run"),
    [
        (dialect.AbsIOp, interpreted.absi),
        (dialect.CountLeadingZerosOp, interpreted.ctlz),
        (dialect.CountTrailingZerosOp, interpreted.cttz),
        (dialect.CtPopOp, interpreted.ctpop),
    ],
)
def test_functions_of_integers(class_, run, width):
    dtype = np.dtype(f"i{width // 8}")
    info = np.iinfo(dtype)
    edges = np.array([0, 1, -1, info.max, info.min], dtype)
    x = np.concatenate([edges, np.frombuffer(RNG.bytes(1000 * dtype.itemsize), dtype)])
    with np.errstate(over="ignore"):
        expected = run(operands_of(class_, IntegerType(width)))(x)
    np.testing.assert_array_equal(evaluated(lambda b, x: evaluate(b, class_.name, [x], host()), dtype, x), expected)


def test_integer_powers_wrap_around():
    base = RNG.integers(-5, 6, 640).astype(np.int32)
    power = np.concatenate([RNG.integers(-3, 40, 632), [2**31 - 1, -(2**31), 0, 1] * 2]).astype(np.int32)
    with np.errstate(over="ignore"):
        expected = interpreted.ipowi(operands_of(dialect.IPowIOp, i32, i32))(base, power)
    np.testing.assert_array_equal(
        evaluated(lambda b, x, y: operation("ipowi", b, x, y), np.int32, base, power), expected
    )


# What is called ------------------------------------------------------------------------------------------------------


def called(name, element):
    """The functions outside of LLVM that an operation calls."""
    b = Builder(Externals())
    count = {"math.atan2": 2, "math.powf": 2, "arith.remf": 2}.get(name, 1)
    assert evaluate(b, name, [Value(f"%x{index}", element, 16) for index in range(count)], host()) is not None
    return {name for name in b.externals.declarations if not name.startswith("llvm.")}


def test_the_c_library_is_called_for_what_is_rare():
    names = [f"math.{name}" for name in (*FUNCTIONS, "atan2", "powf")]
    assert not set().union(*(called(name, "float") for name in names))
    assert called("arith.remf", "float") == {"fmodf"}
    assert set().union(*(called(name, "double") for name in names)) == {
        "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "erf", "expm1", "log1p",
        "pow", "sin", "sinh", "tan",
    }  # fmt: skip


def test_what_is_unknown_is_refused():
    assert evaluate(Builder(Externals()), "math.sincos", [Value("%x", "float")], host()) is None


@pytest.mark.skipif(not is_full(), reason="minutes of work")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_float_of_a_sweep(name):
    """Each 997th float is compared with the C library's function of doubles."""
    values = np.arange(0, 1 << 32, 997, np.uint64).astype(np.uint32)
    values = values[: values.size // 16 * 16].view(np.float32)
    found = applied(compiled(name, np.float32), np.float32, values)
    with np.errstate(all="ignore"):
        exact = reference(name, values)
        nearest = exact.astype(np.float32)
        finite = np.isfinite(nearest)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(nearest))
        unit = np.ldexp(1.0, np.maximum(np.frexp(exact[finite])[1] - 24, -149))
        assert np.max(np.abs(found[finite] - exact[finite]) / unit) <= FUNCTIONS[name][2]


# Device functions that the C library computes -------------------------------------------------------------------------

LIBRARY: dict[str, tuple[Exact, list[tuple[float, float]]]] = {
    "lgamma": (lambda x: mpmath.log(abs(mpmath.gamma(x))), [(1e-30, 1e30), (0.5, 3.0), (-9.9, -0.1)]),
    "tgamma": (mpmath.gamma, [(1e-30, 1.0), (0.5, 34.0), (-9.9, -0.1)]),
    "erfc": (mpmath.erfc, [(-6.0, 10.0), (1e-30, 1e-3)]),
    "erfinv": (mpmath.erfinv, [(-0.999, 0.999), (1e-30, 1e-3), (0.9999, 0.99999999)]),
    "exp10": (lambda x: mpmath.power(10, x), [(-37.0, 38.0)]),
    "j0": (lambda x: mpmath.besselj(0, x), [(0.0, 2.0)]),
    "y1": (lambda x: mpmath.bessely(1, x), [(0.1, 2.0)]),
}


def device(symbol: str, dtype: Any, *operands: Any) -> Any:
    element = "double" if dtype is np.float64 else "float"
    return evaluated(lambda b, *given: of_device(b, symbol, element, given), dtype, *operands, lanes=1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("name", LIBRARY)
def test_the_c_library_has_device_functions(name, dtype):
    exact, ranges = LIBRARY[name]
    values = np.concatenate([RNG.uniform(low, high, COUNT // 2) for low, high in ranges]).astype(dtype)
    found = device(f"__nv_{name}{'f' if dtype is np.float32 else ''}", dtype, values)
    assert max(errors(found, values, exact, dtype)) <= (0.51 if dtype is np.float32 else 6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
@pytest.mark.parametrize(
    ("name", "function"), [("hypot", np.hypot), ("nextafter", np.nextafter), ("fdim", lambda x, y: np.fmax(x - y, 0))]
)
def test_the_c_library_has_device_functions_of_two_numbers(name, function, dtype):
    x, y = (RNG.standard_normal(COUNT).astype(dtype) for _ in range(2))
    found = device(f"__nv_{name}{'f' if dtype is np.float32 else ''}", dtype, x, y)
    np.testing.assert_allclose(found, function(x, y), rtol=np.finfo(dtype).eps, atol=0)


def test_the_inverse_of_the_error_function_has_edges():
    x = np.array([0.0, -0.0, 1.0, -1.0, 1.5, -2.0, np.nan, np.inf, 1e-45])
    found = device("__nv_erfinv", np.float64, x)
    np.testing.assert_allclose(found, [0, 0, np.inf, -np.inf, np.nan, np.nan, np.nan, np.nan, 1e-45 * PI**0.5 / 2])
    assert np.signbit(found[:2]).tolist() == [False, True]


@pytest.mark.parametrize("symbol", ["lgammaf", "__nv_erfcinvf", "__nv_", "__nv_nosuchf"])
def test_other_functions_are_not_called(symbol):
    b = Builder(Externals())
    assert of_device(b, symbol, "float", [Value("%x", "float")]) is None
    assert not b.externals.declarations
