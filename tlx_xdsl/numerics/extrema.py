"""The lower or the higher of two floats, of two zeros by their sign; `minimum` and `maximum` spread NaN."""

from __future__ import annotations

import numpy as np

from .arrays import Array, Binary, where


def _extremum(function: np.ufunc, *, is_lower: bool) -> Binary:
    """`function`, but of two zeros the lower or the higher one by their sign: PTX says so, numpy takes any."""

    def run(a: Array, b: Array) -> Array:
        found = function(a, b)
        if np.all(found):
            return found
        lower, higher = (a, b) if is_lower else (b, a)
        return where((a == 0) & (b == 0), where(np.signbit(a), lower, higher), found)

    return run


minimum = _extremum(np.minimum, is_lower=True)
maximum = _extremum(np.maximum, is_lower=False)
minnum = _extremum(np.fmin, is_lower=True)
maxnum = _extremum(np.fmax, is_lower=False)
