"""Functions of CUDA's libdevice that no operation computes: the C library's, beside mpmath."""

# covers: target.cpu

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

pytest.importorskip("llvmlite")

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.language.extra import libdevice


@tlx_xdsl.jit
def functions(x, y, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    mask = at < n
    a, b = tl.load(x + at, mask=mask, other=1.0), tl.load(y + at, mask=mask, other=1.0)
    tl.store(out + at, libdevice.lgamma(a), mask=mask)
    tl.store(out + n + at, libdevice.tgamma(a), mask=mask)
    tl.store(out + n * 2 + at, libdevice.erfc(a), mask=mask)
    tl.store(out + n * 3 + at, libdevice.hypot(a, b), mask=mask)
    tl.store(out + n * 4 + at, libdevice.j0(a), mask=mask)
    tl.store(out + n * 5 + at, libdevice.y1(tl.abs(a)), mask=mask)


@tlx_xdsl.jit
def distribution(x, out):
    tl.store(out, libdevice.normcdf(tl.load(x)))


EXACT: list[tuple[Any, float, float]] = [
    (lambda a, _: mpmath.log(abs(mpmath.gamma(a))), 4, 0),
    (lambda a, _: mpmath.gamma(a), 12, 0),
    (lambda a, _: mpmath.erfc(a), 4, 0),
    (lambda a, b: mpmath.sqrt(a * a + b * b), 1, 0),
    (lambda a, _: mpmath.besselj(0, a), 4, 1e-15),
    (lambda a, _: mpmath.bessely(1, abs(a)), 4, 1e-15),
]
"""The exact functions; the largest error of f64 in units of the last place, and the one that is small enough anyway."""


def applied(x: Any, y: Any) -> Any:
    out = np.zeros((len(EXACT), x.size), x.dtype)
    functions[(1,)](x, y, out, x.size, 128)
    return out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_errors_are_small(dtype: Any):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-8, 8, 60), 1 + rng.uniform(-1e-5, 1e-5, 20), rng.uniform(0, 2.5, 20)])
    x, y = x.astype(dtype), rng.uniform(0, 3, x.size).astype(dtype)
    for (exact, bound, small), found in zip(EXACT, applied(x, y), strict=True):
        for a, b, got in zip(x.tolist(), y.tolist(), found.tolist(), strict=True):
            with mpmath.workdps(40):
                wanted = exact(mpmath.mpf(a), mpmath.mpf(b))
                error = abs(float(wanted - got))
            unit = float(np.spacing(np.abs(dtype(float(wanted)))))
            assert error <= max(small, (0.51 if dtype is np.float32 else bound) * unit), (a, b)


def test_edges_of_lgamma():
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, -2.0, 1.0, 2.0, 1e30], np.float32)
    expected = np.zeros((len(EXACT), x.size), np.float32)
    tlx_xdsl.interpret(functions, 1, x, x, expected, x.size, 16)
    found = applied(x, x)[0]
    np.testing.assert_allclose(found, expected[0], rtol=1e-7)
    assert np.isnan(found[0])
    assert (found[1:7] == np.inf).all()
    assert found[7] == found[8] == 0


def test_what_the_c_library_lacks_is_refused_at_its_line():
    x = np.ones(4, np.float32)
    with pytest.raises(CompilationError, match=r"calls '__nv_normcdff', which is defined nowhere") as caught:
        distribution[(1,)](x, x.copy())
    assert caught.value.location is not None
