"""The functions of CUDA's libdevice, as data: names, meaning, and the symbol for each tuple of argument types.

Meaning and symbols are those of NVIDIA's "libdevice User's Guide"; which types a function takes is Triton's choice.
"""

from __future__ import annotations

from dataclasses import dataclass

from tlx_xdsl.element_types import TRITON_TYPES


@dataclass(frozen=True)
class Overload:
    """One function of libdevice: element types by Triton's names, and the symbol."""

    arguments: tuple[str, ...]
    result: str
    symbol: str


@dataclass(frozen=True)
class Function:
    """One name of the language, with what it stands for depending on the types of its arguments."""

    name: str
    meaning: str
    overloads: tuple[Overload, ...]
    is_predicate: bool = False
    """True if libdevice's int32 answer becomes an int1."""

    @property
    def arity(self) -> int:
        """Number of arguments."""
        return len(self.overloads[0].arguments)


_ROUNDINGS = {"rd": "down", "rn": "to nearest even", "ru": "up", "rz": "towards zero"}

_FLOAT_FUNCTIONS: dict[int, dict[str, str]] = {
    1: {
        "acos": "The arc cosine, in radians.",
        "acosh": "The inverse hyperbolic cosine.",
        "asin": "The arc sine, in radians.",
        "asinh": "The inverse hyperbolic sine.",
        "atan": "The arc tangent, in radians.",
        "atanh": "The inverse hyperbolic tangent.",
        "cbrt": "The cube root.",
        "ceil": "The smallest integer that is not below the argument.",
        "cos": "The cosine of radians.",
        "cosh": "The hyperbolic cosine.",
        "cospi": "The cosine of pi times the argument.",
        "cyl_bessel_i0": "The regular modified cylindrical Bessel function of order 0.",
        "cyl_bessel_i1": "The regular modified cylindrical Bessel function of order 1.",
        "erf": "The error function.",
        "erfc": "The complementary error function.",
        "erfcinv": "The inverse of the complementary error function.",
        "erfcx": "The scaled complementary error function.",
        "erfinv": "The inverse of the error function.",
        "exp": "e to the power of the argument.",
        "exp10": "10 to the power of the argument.",
        "exp2": "2 to the power of the argument.",
        "expm1": "e to the power of the argument, minus 1.",
        "floor": "The largest integer that is not above the argument.",
        "j0": "The Bessel function of the first kind of order 0.",
        "j1": "The Bessel function of the first kind of order 1.",
        "lgamma": "The logarithm of the absolute value of the gamma function.",
        "log": "The natural logarithm.",
        "log10": "The logarithm to base 10.",
        "log1p": "The natural logarithm of 1 plus the argument.",
        "log2": "The logarithm to base 2.",
        "logb": "The exponent, as a float.",
        "nearbyint": "The nearest integer, ties to even.",
        "normcdf": "The standard normal cumulative distribution function.",
        "normcdfinv": "The inverse of the standard normal cumulative distribution function.",
        "rcbrt": "1 / the cube root.",
        "rint": "The nearest integer, ties to even.",
        "round": "The nearest integer, ties away from zero.",
        "rsqrt": "1 / the square root.",
        "sin": "The sine of radians.",
        "sinh": "The hyperbolic sine.",
        "sinpi": "The sine of pi times the argument.",
        "sqrt": "The square root.",
        "tan": "The tangent of radians.",
        "tanh": "The hyperbolic tangent.",
        "tgamma": "The gamma function.",
        "trunc": "The integer part.",
        "y0": "The Bessel function of the second kind of order 0.",
        "y1": "The Bessel function of the second kind of order 1.",
    },
    2: {
        "atan2": "The angle of the point (second argument, first argument), in radians.",
        "copysign": "The first argument's magnitude with the second's sign.",
        "fdim": "The positive difference: how much the first argument exceeds the second, or 0.",
        "fmod": "The remainder of the division, with the first argument's sign.",
        "hypot": "The length of the hypotenuse of a right triangle.",
        "nextafter": "The next float after the first argument towards the second.",
        "remainder": "The remainder of the division whose quotient is rounded to nearest even.",
        "rhypot": "1 / the length of the hypotenuse of a right triangle.",
    },
    3: {
        "norm3d": "The Euclidean length of a vector.",
        "rnorm3d": "1 / the Euclidean length of a vector.",
    },
    4: {
        "norm4d": "The Euclidean length of a vector.",
        "rnorm4d": "1 / the Euclidean length of a vector.",
    },
}
"""By number of arguments: `__nv_<name>f` for fp32 and `__nv_<name>` for fp64."""

_ROUNDED: dict[str, tuple[int, str, str]] = {
    "add": (2, "add", "The sum, rounded {}."),
    "sub": (2, "sub", "The difference, rounded {}."),
    "mul": (2, "mul", "The product, rounded {}."),
    "div": (2, "div", "The quotient, rounded {}."),
    "rcp": (1, "rcp", "The reciprocal, rounded {}."),
    "sqrt": (1, "sqrt", "The square root, rounded {}."),
}
"""Arithmetic in every rounding mode: `__nv_f<stem>_<mode>` for fp32 and `__nv_d<stem>_<mode>` for fp64."""

_FAST: dict[str, tuple[int, str, str]] = {
    "fast_cosf": (1, "fast_cosf", "The cosine of radians, approximated by the hardware."),
    "fast_dividef": (2, "fast_fdividef", "The quotient, approximated."),
    "fast_exp10f": (1, "fast_exp10f", "10 to the power of the argument, approximated."),
    "fast_expf": (1, "fast_expf", "e to the power of the argument, approximated."),
    "fast_log10f": (1, "fast_log10f", "The logarithm to base 10, approximated."),
    "fast_log2f": (1, "fast_log2f", "The logarithm to base 2, approximated."),
    "fast_logf": (1, "fast_logf", "The natural logarithm, approximated."),
    "fast_powf": (2, "fast_powf", "The first argument to the power of the second, approximated."),
    "fast_sinf": (1, "fast_sinf", "The sine of radians, approximated."),
    "fast_tanf": (1, "fast_tanf", "The tangent of radians, approximated."),
    "rsqrt_rn": (1, "frsqrt_rn", "1 / the square root, rounded to nearest even."),
    "saturatef": (1, "saturatef", "The argument, but at least 0 and at most 1."),
}
"""Functions of fp32 alone: number of arguments, symbol without `__nv_`, meaning."""

_C_TYPES = {each.libdevice: each.name for each in TRITON_TYPES if each.libdevice and each.name}
"""Libdevice's names of the types between which it converts."""

_CONVERSIONS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("double", "float", tuple(_ROUNDINGS)),
    *((source, target, tuple(_ROUNDINGS)) for source in ("double", "float") for target in ("int", "uint", "ll", "ull")),
    *((source, "float", tuple(_ROUNDINGS)) for source in ("int", "uint", "ll", "ull")),
    ("int", "double", ("rn",)),
    ("uint", "double", ("rn",)),
    ("ll", "double", tuple(_ROUNDINGS)),
    ("ull", "double", tuple(_ROUNDINGS)),
)

_OTHERS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "abs",
        "The absolute value.",
        ("int32 -> int32 abs", "int64 -> int64 llabs", "fp32 -> fp32 fabsf", "fp64 -> fp64 fabs"),
    ),
    ("brev", "The bits in reverse order.", ("int32 -> int32 brev", "int64 -> int64 brevll")),
    ("byte_perm", "Four bytes picked from the eight of two integers.", ("int32 int32 int32 -> int32 byte_perm",)),
    ("clz", "The number of leading zero bits.", ("int32 -> int32 clz", "int64 -> int32 clzll")),
    ("double2hiint", "The upper 32 bits.", ("fp64 -> int32 double2hiint",)),
    ("double2loint", "The lower 32 bits.", ("fp64 -> int32 double2loint",)),
    ("double_as_longlong", "The bits of a float as an integer.", ("fp64 -> int64 double_as_longlong",)),
    (
        "ffs",
        "The position of the lowest bit that is set, from 1; 0 if there is none.",
        ("int32 -> int32 ffs", "int64 -> int32 ffsll"),
    ),
    ("float_as_int", "The bits of a float as an integer.", ("fp32 -> int32 float_as_int",)),
    ("float_as_uint", "The bits of a float as an integer.", ("fp32 -> int32 float_as_uint",)),
    (
        "hadd",
        "The average of two integers, rounded down.",
        ("int32 int32 -> int32 hadd", "uint32 uint32 -> uint32 uhadd"),
    ),
    ("hiloint2double", "The float with these upper and lower 32 bits.", ("int32 int32 -> fp64 hiloint2double",)),
    ("ilogb", "The exponent, as an integer.", ("fp32 -> int32 ilogbf", "fp64 -> int32 ilogb")),
    ("int_as_float", "The float with these bits.", ("int32 -> fp32 int_as_float",)),
    (
        "jn",
        "The Bessel function of the first kind, of integer order.",
        ("int32 fp32 -> fp32 jnf", "int32 fp64 -> fp64 jn"),
    ),
    (
        "ldexp",
        "The first argument times 2 to the power of the second.",
        ("fp32 int32 -> fp32 ldexpf", "fp64 int32 -> fp64 ldexp"),
    ),
    ("llrint", "The nearest integer, ties to even.", ("fp32 -> int64 llrintf", "fp64 -> int64 llrint")),
    ("llround", "The nearest integer, ties away from zero.", ("fp32 -> int64 llroundf", "fp64 -> int64 llround")),
    ("longlong_as_double", "The float with these bits.", ("int64 -> fp64 longlong_as_double",)),
    ("mul24", "The product of the lower 24 bits.", ("int32 int32 -> int32 mul24", "uint32 uint32 -> uint32 umul24")),
    (
        "mulhi",
        "The upper half of the product.",
        (
            "int32 int32 -> int32 mulhi",
            "int64 int64 -> int64 mul64hi",
            "uint32 uint32 -> uint32 umulhi",
            "uint64 uint64 -> uint64 umul64hi",
        ),
    ),
    ("popc", "The number of bits that are set.", ("int32 -> int32 popc", "int64 -> int32 popcll")),
    (
        "pow",
        "The first argument to the power of the second.",
        ("fp32 int32 -> fp32 powif", "fp32 fp32 -> fp32 powf", "fp64 int32 -> fp64 powi", "fp64 fp64 -> fp64 pow"),
    ),
    ("rcp64h", "An approximate reciprocal.", ("fp64 -> fp64 rcp64h",)),
    (
        "rhadd",
        "The average of two integers, rounded up.",
        ("int32 int32 -> int32 rhadd", "uint32 uint32 -> uint32 urhadd"),
    ),
    (
        "sad",
        "The absolute difference of two integers, plus a third.",
        ("int32 int32 uint32 -> int32 sad", "uint32 uint32 uint32 -> uint32 usad"),
    ),
    (
        "scalbn",
        "The first argument times 2 to the power of the second.",
        ("fp32 int32 -> fp32 scalbnf", "fp64 int32 -> fp64 scalbn"),
    ),
    ("signbit", "Not zero if the sign bit is set.", ("fp32 -> int32 signbitf", "fp64 -> int32 signbitd")),
    ("uint_as_float", "The float with these bits.", ("uint32 -> fp32 uint_as_float",)),
    (
        "yn",
        "The Bessel function of the second kind, of integer order.",
        ("int32 fp32 -> fp32 ynf", "int32 fp64 -> fp64 yn"),
    ),
)
"""Name, meaning, and `argument types -> result type, symbol without __nv_` for each overload."""

_PREDICATES: dict[str, tuple[str, tuple[str, ...]]] = {
    "finitef": ("Whether a float is finite.", ("fp32 -> int32 finitef",)),
    "isfinited": ("Whether a float is finite.", ("fp64 -> int32 isfinited",)),
    "isinf": ("Whether a float is infinite.", ("fp32 -> int32 isinff", "fp64 -> int32 isinfd")),
    "isnan": ("Whether a float is NaN.", ("fp32 -> int32 isnanf", "fp64 -> int32 isnand")),
}


def _overload(arguments: tuple[str, ...], result: str, symbol: str) -> Overload:
    return Overload(arguments, result, f"__nv_{symbol}")


def _read(text: str) -> Overload:
    arguments, _, rest = text.partition(" -> ")
    result, symbol = rest.split()
    return _overload(tuple(arguments.split()), result, symbol)


def _pair(arity: int, single: str, double: str) -> tuple[Overload, ...]:
    return (_overload(("fp32",) * arity, "fp32", single), _overload(("fp64",) * arity, "fp64", double))


def _functions() -> list[Function]:
    result = [
        Function(name, meaning, _pair(arity, f"{name}f", name))
        for arity, functions in _FLOAT_FUNCTIONS.items()
        for name, meaning in functions.items()
    ]
    for mode, words in _ROUNDINGS.items():
        result += (
            Function(f"{name}_{mode}", meaning.format(words), _pair(arity, f"f{stem}_{mode}", f"d{stem}_{mode}"))
            for name, (arity, stem, meaning) in _ROUNDED.items()
        )
        result.append(
            Function(
                f"fma_{mode}",
                f"The product plus the third argument, rounded {words}.",
                _pair(3, f"fmaf_{mode}", f"fma_{mode}"),
            )
        )
    result.append(Function("fma", "The product plus the third argument, rounded once.", _pair(3, "fmaf", "fma")))
    result += (
        Function(name, meaning, (_overload(("fp32",) * arity, "fp32", symbol),))
        for name, (arity, symbol, meaning) in _FAST.items()
    )
    for source, target, modes in _CONVERSIONS:
        for mode in modes:
            name = f"{source}2{target}_{mode}"
            # libdevice returns unsigned integers as bits, and Triton calls these signed.
            returned = _C_TYPES[target].removeprefix("u")
            meaning = f"A {_C_TYPES[source]} as {_C_TYPES[target]}, rounded {_ROUNDINGS[mode]}."
            result.append(Function(name, meaning, (_overload((_C_TYPES[source],), returned, name),)))
    result += (Function(name, meaning, tuple(map(_read, texts))) for name, meaning, texts in _OTHERS)
    result += (Function(name, words, tuple(map(_read, texts)), True) for name, (words, texts) in _PREDICATES.items())
    return sorted(result, key=lambda function: function.name)


FUNCTIONS: dict[str, Function] = {function.name: function for function in _functions()}
"""Every function, by name."""
