"""Writes `references.json`: values of libdevice's float functions to 25 digits, computed with mpmath.

python tests/unit/interpreter/libdevice/generate_references.py     needs mpmath, which the tests do not
"""

import json
import random
from collections.abc import Callable
from pathlib import Path

import mpmath as mp

mp.mp.dps = 60
R = random.Random(7)
Ranges = list[tuple[float, float]]


def _points(*ranges: tuple[float, float], count: int = 12) -> list[float]:
    return [R.uniform(low, high) for low, high in ranges for _ in range(count // len(ranges))]


def _erfcinv(y):
    guess = mp.sqrt(2) * mp.sqrt(-mp.log(y)) / mp.sqrt(2) if y < 0.1 else mp.erfinv(1 - y)
    return mp.findroot(lambda z: mp.log(mp.erfc(z)) - mp.log(y), guess) if y < 0.1 else mp.erfinv(1 - y)


def _logb(x):
    return mp.mpf(mp.frexp(x)[1] - 1)


WIDE = ((-30.0, 30.0), (-1.0, 1.0))
BESSEL = ((-30.0, 20.0), (20.0, 29.0), (29.5, 30.0), (30.0, 200.0))
POSITIVE_BESSEL = ((1e-3, 20.0), (20.0, 29.0), (29.5, 30.0), (30.0, 200.0))
POSITIVE = ((1e-3, 1.0), (1.0, 1e4))
ONE: dict[str, tuple[Callable, tuple]] = {
    "acos": (mp.acos, ((-1, 1),)), "acosh": (mp.acosh, ((1, 2), (2, 1e4))), "asin": (mp.asin, ((-1, 1),)),
    "asinh": (mp.asinh, WIDE), "atan": (mp.atan, WIDE), "atanh": (mp.atanh, ((-1, 1),)), "cbrt": (mp.cbrt, POSITIVE),
    "cos": (mp.cos, WIDE), "cosh": (mp.cosh, WIDE), "cospi": (mp.cospi, WIDE),
    "cyl_bessel_i0": (lambda x: mp.besseli(0, x), BESSEL),
    "cyl_bessel_i1": (lambda x: mp.besseli(1, x), BESSEL),
    "erf": (mp.erf, ((-4, 4), (-0.1, 0.1))), "erfc": (mp.erfc, ((-4, 4), (4, 20))),
    "erfcinv": (_erfcinv, ((0.1, 1.9), (1e-30, 1e-3))),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), ((-4, 8), (8, 100))), "erfinv": (mp.erfinv, ((-1, 1),)),
    "exp": (mp.exp, WIDE), "exp10": (lambda x: mp.power(10, x), WIDE), "exp2": (lambda x: mp.power(2, x), WIDE),
    "expm1": (mp.expm1, WIDE), "j0": (mp.j0, BESSEL), "j1": (mp.j1, BESSEL),
    "lgamma": (lambda x: mp.log(abs(mp.gamma(x))), ((-6, 3), (3, 100))), "log": (mp.log, POSITIVE),
    "log10": (mp.log10, POSITIVE), "log1p": (mp.log1p, ((-0.9, 1), (1, 100))),
    "log2": (lambda x: mp.log(x, 2), POSITIVE),
    "logb": (_logb, POSITIVE), "normcdf": (mp.ncdf, ((-37, 0), (0, 8))),
    "normcdfinv": (lambda p: -mp.sqrt(2) * _erfcinv(2 * p), ((0.1, 0.9), (1e-30, 1e-3))),
    "rcbrt": (lambda x: 1 / mp.cbrt(x), POSITIVE), "rsqrt": (lambda x: 1 / mp.sqrt(x), POSITIVE),
    "sin": (mp.sin, WIDE), "sinh": (mp.sinh, WIDE), "sinpi": (mp.sinpi, WIDE), "sqrt": (mp.sqrt, POSITIVE),
    "tan": (mp.tan, WIDE), "tanh": (mp.tanh, WIDE), "tgamma": (mp.gamma, ((-6, 3), (3, 30))),
    "y0": (lambda x: mp.bessely(0, x), POSITIVE_BESSEL),
    "y1": (lambda x: mp.bessely(1, x), POSITIVE_BESSEL),
}  # fmt: skip


def _length(*parts):
    return mp.sqrt(mp.fsum(part * part for part in parts))


MORE: dict[str, tuple[Callable, tuple]] = {
    "atan2": (mp.atan2, ((-5, 5), (-5, 5))), "hypot": (_length, ((-5, 5), (-5, 5))),
    "rhypot": (lambda *xs: 1 / _length(*xs), ((-5, 5), (-5, 5))), "norm3d": (_length, ((-5, 5),) * 3),
    "rnorm3d": (lambda *xs: 1 / _length(*xs), ((-5, 5),) * 3), "norm4d": (_length, ((-5, 5),) * 4),
    "rnorm4d": (lambda *xs: 1 / _length(*xs), ((-5, 5),) * 4), "pow": (mp.power, ((0.01, 20), (-9, 9))),
}  # fmt: skip
BY_ORDER: dict[str, Callable] = {"jn": mp.besselj, "yn": mp.bessely, "powi": lambda n, x: mp.power(x, n)}


def _text(value) -> str:
    return mp.nstr(value, 25)


def _single(x: float) -> float:
    """Points are numbers of f32, so that both forms of a function have the same ones."""
    import struct

    return struct.unpack("f", struct.pack("f", x))[0]


def main() -> None:
    found: dict[str, list] = {}
    for name, (function, ranges) in ONE.items():
        points = [_single(x) for x in _points(*ranges)]
        found[name] = [[[x], _text(function(mp.mpf(x)))] for x in points]
    for name, (function, ranges) in MORE.items():
        points = [[_single(R.uniform(*bounds)) for bounds in ranges] for _ in range(10)]
        found[name] = [[xs, _text(function(*map(mp.mpf, xs)))] for xs in points]
    for name, function in BY_ORDER.items():
        points = [(n, _single(R.uniform(0.1, 40))) for n in (0, 1, 2, 3, 5, 9, 20)]
        found[name] = [[[n, x], _text(function(n, mp.mpf(x)))] for n, x in points]
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(values)}" for name, values in found.items())
    Path(__file__).with_name("references.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
