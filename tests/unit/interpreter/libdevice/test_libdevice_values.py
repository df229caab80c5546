"""Every function of libdevice by value: references of 25 digits, exact arithmetic, and the bits of integers."""

import functools
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tlx_xdsl.interpreter.ops.libdevice import FUNCTIONS
from tlx_xdsl.language.extra.libdevice_table import FUNCTIONS as TABLE

DTYPES = {
    "fp32": np.dtype(np.float32), "fp64": np.dtype(np.float64), "int32": np.dtype(np.int32),
    "int64": np.dtype(np.int64), "uint32": np.dtype(np.int32), "uint64": np.dtype(np.int64),
}  # fmt: skip
"""Unsigned integers are held as signed ones."""

REFERENCES: dict[str, list] = json.loads(Path(__file__).with_name("references.json").read_text(encoding="utf-8"))

ULPS = {
    "cyl_bessel_i0": 12, "cyl_bessel_i1": 12, "erfcx": 5, "tgamma": 8, "sinh": 3, "pow": 3, "tan": 3,
    "normcdfinv": 4, "exp10": 3, "yn": 16,
}  # fmt: skip
"""How far f64 results may be off, in units in the last place; 2 where nothing is said."""
ABSOLUTE = {"j0": 1e-15, "j1": 1e-15, "y0": 1e-15, "y1": 1e-15, "jn": 1e-15, "yn": 1e-14, "lgamma": 1e-15}
"""What an error may be in any case: these functions have zeros, at which no relative error is small."""


def call(symbol: str, result: str, *values: np.ndarray) -> np.ndarray:
    """A function by its symbol."""
    with np.errstate(all="ignore"):
        return np.asarray(FUNCTIONS[symbol.removeprefix("__nv_")](DTYPES[result])(*values))


def test_every_symbol_of_the_language_is_there() -> None:
    symbols = {overload.symbol for function in TABLE.values() for overload in function.overloads}
    assert len(TABLE) == 197
    assert symbols <= {f"__nv_{name}" for name in FUNCTIONS}


@pytest.mark.parametrize("name", REFERENCES)
def test_floats_are_close_to_the_true_value(name: str) -> None:
    for arguments, text in REFERENCES[name]:
        exact = Fraction(text)
        values = [np.array([value]) for value in arguments]
        if name in ("jn", "yn"):
            values[0] = values[0].astype(np.int32)
        elif name == "powi":
            values = [values[1], values[0].astype(np.int32)]
        wide = call(name, "fp64", *values)[0]
        unit = Fraction(float(np.spacing(abs(float(exact)))))
        allowed = max(ULPS.get(name, 2) * unit, Fraction(ABSOLUTE.get(name, 0.0)))
        assert abs(Fraction(float(wide)) - exact) <= allowed, (name, arguments, wide, text)
        single = [value.astype(np.float32) if value.dtype.kind == "f" else value for value in values]
        narrow = call(f"{name}f", "fp32", *single)[0]
        assert narrow.dtype == np.float32
        if abs(exact) < float(np.finfo(np.float32).max):
            unit = Fraction(float(np.spacing(np.float32(abs(float(exact))))))
            # Rounded once from f64: half a unit, and what f64 is off.
            assert abs(Fraction(float(narrow)) - exact) <= unit * Fraction(51, 100) + allowed, (name, arguments, narrow)


FAST = {
    "fast_cosf": "cos", "fast_sinf": "sin", "fast_tanf": "tan", "fast_expf": "exp", "fast_exp10f": "exp10",
    "fast_logf": "log", "fast_log2f": "log2", "fast_log10f": "log10",
}  # fmt: skip


@pytest.mark.parametrize("symbol", FAST)
def test_fast_functions_are_the_functions(symbol: str) -> None:
    x = np.array([arguments[0] for arguments, _ in REFERENCES[FAST[symbol]]], np.float32)
    np.testing.assert_array_equal(call(symbol, "fp32", x), call(f"{FAST[symbol]}f", "fp32", x))


def test_fast_power_and_quotient() -> None:
    x, y = np.array([2, 0.5, -2, 0], np.float32), np.array([3, -1, 2, 1], np.float32)
    np.testing.assert_array_equal(call("fast_powf", "fp32", x, y), np.array([8, 2, np.nan, 0], np.float32))
    np.testing.assert_array_equal(call("fast_fdividef", "fp32", x, y), x / y)
    values = np.array([-1, 0.25, 7, np.nan, np.inf], np.float32)
    np.testing.assert_array_equal(call("saturatef", "fp32", values), np.array([0, 0.25, 1, 0, 1], np.float32))


INF, NAN = math.inf, math.nan
SPECIAL: dict[str, list[tuple[tuple[float, ...], float]]] = {
    "acos": [((2,), NAN)], "acosh": [((0.5,), NAN)], "atanh": [((1,), INF)], "log": [((0,), -INF), ((-1,), NAN)],
    "log1p": [((-1,), -INF)], "rsqrt": [((0,), INF), ((INF,), 0)], "rcbrt": [((0,), INF)], "erf": [((INF,), 1)],
    "erfc": [((-INF,), 2), ((INF,), 0)], "erfinv": [((1,), INF), ((-1,), -INF), ((2,), NAN), ((0,), 0)],
    "erfcinv": [((0,), INF), ((2,), -INF), ((3,), NAN), ((1,), 0)], "erfcx": [((INF,), 0), ((-30,), INF)],
    "normcdf": [((INF,), 1), ((-INF,), 0), ((0,), 0.5)], "normcdfinv": [((0,), -INF), ((1,), INF), ((0.5,), 0)],
    "tgamma": [((0,), INF), ((-0.0,), -INF), ((-1,), NAN), ((180,), INF), ((INF,), INF)],
    "lgamma": [((0,), INF), ((-3,), INF), ((1,), 0), ((INF,), INF)],
    "j0": [((0,), 1), ((INF,), 0), ((NAN,), NAN)], "j1": [((0,), 0), ((INF,), 0)],
    "y0": [((0,), -INF), ((-1,), NAN), ((INF,), 0)], "y1": [((0,), -INF), ((-1,), NAN), ((INF,), 0)],
    "cyl_bessel_i0": [((0,), 1), ((INF,), INF)], "cyl_bessel_i1": [((0,), 0), ((-INF,), -INF)],
    "logb": [((0,), -INF), ((-8,), 3), ((INF,), INF), ((1e-320,), -1064)],
    "sinpi": [((3,), 0), ((0.5,), 1), ((1e300,), 0), ((INF,), NAN)],
    "cospi": [((0.5,), 0), ((1,), -1), ((1e300,), 1)],
    "round": [((2.5,), 3), ((-2.5,), -3), ((0.49999999999999994,), 0), ((4503599627370497.0,), 4503599627370497.0)],
    "rint": [((2.5,), 2), ((3.5,), 4)], "nearbyint": [((-0.5,), -0.0)], "trunc": [((-2.7,), -2)],
    "ceil": [((-0.5,), -0.0)], "floor": [((-0.5,), -1)], "fabs": [((-3,), 3)],
    "hypot": [((INF, NAN), INF), ((3e300, 4e300), 5e300), ((3e-320, 4e-320), 5e-320)],
    "rhypot": [((0, 0), INF), ((INF, NAN), 0)], "norm3d": [((2, 3, 6), 7)], "norm4d": [((1, 1, 1, 1), 2)],
    "fdim": [((5, 3), 2), ((3, 5), 0), ((NAN, 1), NAN)], "fmod": [((-5.5, 3), -2.5)],
    "remainder": [((5, 3), -1), ((2.5, 1), 0.5), ((3.5, 1), -0.5), ((1, INF), 1), ((1, 0), NAN), ((-6, 4), 2)],
    "copysign": [((3, -0.0), -3)], "atan2": [((0, -1), math.pi), ((-0.0, -1), -math.pi)],
    "nextafter": [((1, 2), 1 + 2**-52), ((0, -1), -5e-324)], "pow": [((0, -1), INF), ((-8, 1 / 3), NAN), ((1, NAN), 1)],
    "ilogb": [((0,), -(2**31)), ((INF,), 2**31 - 1), ((10,), 3)],
    "exp10": [((3,), 1000)], "cbrt": [((-27,), -3)], "rcp64h": [((0,), INF), ((2,), 0.5)],
}  # fmt: skip


@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name: str) -> None:
    for arguments, expected in SPECIAL[name]:
        result = "int32" if name == "ilogb" else "fp64"
        found = call(name, result, *(np.array([value], np.float64) for value in arguments))[0]
        close = math.isclose(found, expected, rel_tol=1e-15, abs_tol=0)
        assert close or (math.isnan(expected) and math.isnan(found)), (name, arguments, found, expected)
        if expected == 0 and not math.isnan(found):
            assert found == 0


@pytest.mark.parametrize("suffix", ["", "f"])
def test_remainder_and_exponents_are_exact(suffix: str) -> None:
    rng = np.random.default_rng(5)
    dtype = np.float32 if suffix else np.float64
    name = "fp32" if suffix else "fp64"
    x, y = ((rng.standard_normal(500) * 2.0 ** rng.integers(-20, 20, 500)).astype(dtype) for _ in range(2))
    found = call(f"remainder{suffix}", name, x, y)
    expected = np.array([math.remainder(float(a), float(b)) for a, b in zip(x, y, strict=True)])
    np.testing.assert_array_equal(found, expected.astype(dtype))
    n = rng.integers(-30, 30, 500).astype(np.int32)
    for stem in ("ldexp", "scalbn"):
        np.testing.assert_array_equal(call(f"{stem}{suffix}", name, x, n), np.ldexp(x, n))
    for stem, function in (("llrint", np.rint), ("llround", lambda a: np.copysign(np.floor(np.abs(a) + 0.5), a))):
        np.testing.assert_array_equal(
            call(f"{stem}{suffix}", "int64", x), function(x.astype(np.float64)).astype(np.int64)
        )
    odd = np.array([np.nan, np.inf, -np.inf, -0.0, 1], dtype)
    d = suffix or "d"
    np.testing.assert_array_equal(call(f"isnan{d}", "int32", odd) != 0, np.isnan(odd))
    np.testing.assert_array_equal(call(f"isinf{d}", "int32", odd) != 0, np.isinf(odd))
    np.testing.assert_array_equal(call(f"signbit{d}", "int32", odd) != 0, np.signbit(odd))
    np.testing.assert_array_equal(call("finitef" if suffix else "isfinited", "int32", odd) != 0, np.isfinite(odd))


# Rounding modes ------------------------------------------------------------------------------------------------------

OPERATIONS = {
    "add": (2, lambda a, b: a + b), "sub": (2, lambda a, b: a - b), "mul": (2, lambda a, b: a * b),
    "div": (2, lambda a, b: a / b), "rcp": (1, lambda a: 1 / a), "fma": (3, lambda a, b, c: a * b + c),
}  # fmt: skip
MODES = ("rn", "rd", "ru", "rz")


def round_exactly(exact: Fraction, mode: str, bits: int, lowest: int, largest: float) -> float:
    """A fraction as a float with `bits` of mantissa, whose lowest exponent is `lowest`."""
    if exact == 0:
        return 0.0
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    unit = Fraction(2) ** (max(exponent, lowest) - bits + 1)
    down, rest = divmod(exact, unit)
    if mode == "rz":
        up = rest != 0 and exact < 0
    elif mode == "rn":
        up = rest * 2 > unit or (rest * 2 == unit and down % 2 == 1)
    else:
        up = rest != 0 and mode == "ru"
    result = (down + up) * unit
    if abs(result) > Fraction(largest):
        towards = {"rn": True, "rz": False, "ru": exact > 0, "rd": exact < 0}[mode]
        return math.copysign(math.inf if towards else largest, 1 if exact > 0 else -1)
    return float(result)


ROUND = {
    "fp32": functools.partial(round_exactly, bits=24, lowest=-126, largest=float(np.finfo(np.float32).max)),
    "fp64": functools.partial(round_exactly, bits=53, lowest=-1022, largest=float(np.finfo(np.float64).max)),
}


def any_floats(rng: np.random.Generator, count: int, name: str) -> np.ndarray:
    """Half of them any bits, half of them close enough to each other for sums to be interesting."""
    dtype = DTYPES[name]
    bits = rng.integers(0, 2 ** (8 * dtype.itemsize), count, np.uint64, endpoint=False)
    wild = bits.astype(f"u{dtype.itemsize}").view(dtype)
    tame = (rng.standard_normal(count) * 2.0 ** rng.integers(-40, 40, count)).astype(dtype)
    return np.where(np.isfinite(wild) & (np.arange(count) % 2 == 0) & (wild != 0), wild, tame)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("dtype", ["fp32", "fp64"])
def test_arithmetic_is_rounded_exactly(dtype: str, operation: str, mode: str) -> None:
    arity, function = OPERATIONS[operation]
    rng = np.random.default_rng(11)
    values = [any_floats(rng, 200, dtype) for _ in range(arity)]
    prefix = "" if operation == "fma" else "f" if dtype == "fp32" else "d"
    suffix = "f" if operation == "fma" and dtype == "fp32" else ""
    found = call(f"{prefix}{operation}{suffix}_{mode}", dtype, *values)
    assert found.dtype == DTYPES[dtype]
    for index, result in enumerate(found.tolist()):
        numbers = [float(value[index]) for value in values]
        expected = ROUND[dtype](function(*map(Fraction, numbers)), mode)
        assert result == expected, (numbers, result, expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["fp32", "fp64"])
def test_roots_are_rounded_exactly(dtype: str, mode: str) -> None:
    values = np.abs(any_floats(np.random.default_rng(12), 200, dtype))
    found = call(f"{dtype.replace('fp32', 'f').replace('fp64', 'd')}sqrt_{mode}", dtype, values)
    for value, root in zip(values, found, strict=True):
        exact = Fraction(float(value))
        below, above = np.nextafter(root, root.dtype.type(0)), np.nextafter(root, root.dtype.type(np.inf))
        at, low, high = (Fraction(float(x)) for x in (root, below, above))
        match mode:
            case "rn":
                assert ((at + low) / 2) ** 2 <= exact <= ((at + high) / 2) ** 2
            case "ru":
                assert low**2 < exact <= at**2
            case _:
                assert at**2 <= exact < high**2


def test_exact_zeros_are_negative_when_rounding_down() -> None:
    one, zero = np.ones(1, np.float32), np.zeros(1, np.float32)
    assert np.signbit(call("fsub_rd", "fp32", one, one))[0]
    assert not np.signbit(call("fsub_rn", "fp32", one, one))[0]
    assert not np.signbit(call("fadd_rd", "fp32", zero, zero))[0]
    assert np.signbit(call("fadd_rd", "fp32", zero, -zero))[0]
    assert np.signbit(call("fma_rd", "fp64", *(np.array([x]) for x in (2.0, 3.0, -6.0))))[0]


@pytest.mark.parametrize("mode", MODES)
def test_conversions_are_rounded_exactly(mode: str) -> None:
    rng = np.random.default_rng(13)
    wide = any_floats(rng, 400, "fp64")
    for value, found in zip(wide, call(f"double2float_{mode}", "fp32", wide), strict=True):
        assert float(found) == ROUND["fp32"](Fraction(float(value)), mode)
    words = rng.integers(-(2**63), 2**63, 400)
    words[:8] = 0, 1, -1, 2**24 + 1, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)
    for source, dtype in (("int", np.int32), ("uint", np.int32), ("ll", np.int64), ("ull", np.int64)):
        held = words.astype(dtype)
        true = held.view(f"u{held.itemsize}") if source.startswith("u") else held
        for target, name in (("float", "fp32"), ("double", "fp64")):
            if f"{source}2{target}_{mode}" not in TABLE:
                continue
            for value, found in zip(true.tolist(), call(f"{source}2{target}_{mode}", name, held), strict=True):
                assert float(found) == ROUND[name](Fraction(value), mode), (source, target, value)


@pytest.mark.parametrize("mode", MODES)
def test_floats_become_integers(mode: str) -> None:
    rng = np.random.default_rng(14)
    whole = {"rn": round, "rd": math.floor, "ru": math.ceil, "rz": math.trunc}[mode]
    for source, name in (("float", "fp32"), ("double", "fp64")):
        x = (rng.standard_normal(300) * 2.0 ** rng.integers(-2, 70, 300)).astype(DTYPES[name])
        x[:6] = 0.5, 1.5, -0.5, -2.5, np.inf, -np.inf
        for target, width, low in (("int", 32, -(2**31)), ("uint", 32, 0), ("ll", 64, -(2**63)), ("ull", 64, 0)):
            high = low + 2**width - 1
            found = call(f"{source}2{target}_{mode}", f"int{width}", x).view(f"u{width // 8}").tolist()
            expected = [
                (low if a < 0 else high) if math.isinf(a) else min(max(whole(a), low), high) for a in x.tolist()
            ]
            assert found == [value % 2**width for value in expected]


# Integers ------------------------------------------------------------------------------------------------------------


def _signed(value: int, width: int) -> int:
    value %= 1 << width
    return value - (1 << width) if value >> (width - 1) else value


def _byte_perm(x: int, y: int, s: int) -> int:
    source = ((x % 2**32) | (y % 2**32) << 32).to_bytes(8, "little")
    return int.from_bytes(bytes(source[s >> 4 * i & 7] for i in range(4)), "little")


def _reversed(x: int, width: int) -> int:
    return int(f"{x % (1 << width):0{width}b}"[::-1], 2)


def _low_bit(x: int) -> int:
    return (x & -x).bit_length()


U = 2**32
INTEGERS = {
    # Symbol: widths of the operands and of the result, and the function on Python integers.
    "abs": ((32,), 32, abs), "llabs": ((64,), 64, abs),
    "brev": ((32,), 32, lambda x: _reversed(x, 32)), "brevll": ((64,), 64, lambda x: _reversed(x, 64)),
    "byte_perm": ((32, 32, 32), 32, _byte_perm),
    "clz": ((32,), 32, lambda x: 32 - (x % U).bit_length()),
    "clzll": ((64,), 32, lambda x: 64 - (x % 2**64).bit_length()),
    "ffs": ((32,), 32, _low_bit), "ffsll": ((64,), 32, _low_bit),
    "popc": ((32,), 32, lambda x: (x % U).bit_count()), "popcll": ((64,), 32, lambda x: (x % 2**64).bit_count()),
    "hadd": ((32, 32), 32, lambda x, y: x + y >> 1), "uhadd": ((32, 32), 32, lambda x, y: x % U + y % U >> 1),
    "rhadd": ((32, 32), 32, lambda x, y: x + y + 1 >> 1),
    "urhadd": ((32, 32), 32, lambda x, y: x % U + y % U + 1 >> 1),
    "mul24": ((32, 32), 32, lambda x, y: _signed(x, 24) * _signed(y, 24)),
    "umul24": ((32, 32), 32, lambda x, y: x % 2**24 * (y % 2**24)),
    "mulhi": ((32, 32), 32, lambda x, y: x * y >> 32), "umulhi": ((32, 32), 32, lambda x, y: (x % U) * (y % U) >> 32),
    "mul64hi": ((64, 64), 64, lambda x, y: x * y >> 64),
    "umul64hi": ((64, 64), 64, lambda x, y: (x % 2**64) * (y % 2**64) >> 64),
    "sad": ((32, 32, 32), 32, lambda x, y, z: abs(x - y) + z),
    "usad": ((32, 32, 32), 32, lambda x, y, z: abs(x % U - y % U) + z),
}  # fmt: skip


@pytest.mark.parametrize("symbol", INTEGERS)
def test_integers_are_exact(symbol: str) -> None:
    widths, width, function = INTEGERS[symbol]
    rng = np.random.default_rng(15)
    values = [rng.integers(-(2 ** (w - 1)), 2 ** (w - 1), 300).astype(f"i{w // 8}") for w in widths]
    for value, w in zip(values, widths, strict=True):
        value[:5] = 0, 1, -1, -(2 ** (w - 1)), 2 ** (w - 1) - 1
    found = call(symbol, f"int{width}", *values).tolist()
    numbers = zip(*(value.tolist() for value in values), strict=True)
    assert found == [_signed(function(*each), width) for each in numbers]


def test_bits_are_kept() -> None:
    rng = np.random.default_rng(16)
    words, wide = rng.integers(-(2**31), 2**31, 64).astype(np.int32), rng.integers(-(2**63), 2**63, 64)
    for there, back, bits, result in (
        ("int_as_float", "float_as_int", words, "fp32"), ("uint_as_float", "float_as_uint", words, "fp32"),
        ("longlong_as_double", "double_as_longlong", wide, "fp64"),
    ):  # fmt: skip
        floats = call(there, result, bits)
        np.testing.assert_array_equal(call(back, f"int{8 * bits.itemsize}", floats), bits)
    doubles = wide.view(np.float64)
    high, low = call("double2hiint", "int32", doubles), call("double2loint", "int32", doubles)
    np.testing.assert_array_equal(high, (wide >> 32).astype(np.int32))
    np.testing.assert_array_equal(low, wide.astype(np.int32))
    np.testing.assert_array_equal(call("hiloint2double", "fp64", high, low).view(np.int64), wide)
