"""Distinct values, compared with numpy's."""

import ml_dtypes
import numpy as np
import pytest

from tlx_xdsl.numerics.arrays import distinct


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.bool_, np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(0,), (1,), (), (5,), (3, 4), (0, 2), (40, 50)])
def test_distinct_values_are_those_of_numpy(dtype, shape):
    values = np.random.default_rng(0).integers(-3, 30, shape).astype(dtype)
    found, wanted = distinct(values), np.unique(values)
    assert (found.dtype, found.tolist()) == (wanted.dtype, wanted.tolist())
