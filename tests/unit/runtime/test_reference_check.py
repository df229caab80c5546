"""Results of a launch against a reference: arrays of numpy, and tensors of torch by a stand-in."""

from __future__ import annotations

from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from tlx_xdsl.runtime.measure.reference_check import array_of, difference, expected_of, poison


def test_rounding_is_no_difference_and_more_is():
    expected = {"x": np.linspace(-8, 8, 100)}
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64, ml_dtypes.float8_e4m3fn):
        assert difference({"x": expected["x"].astype(dtype)}, expected) is None
    far = expected["x"].astype(np.float16) + np.float16(0.1)
    assert difference({"x": far}, expected) == (
        "x differs from the reference by 1.3e-02 of its largest value, 0.01 are allowed"
    )
    assert difference({"x": far}, expected, tolerance=0.1) is None


def test_what_is_not_a_number_differs_from_all_but_itself():
    found = {"x": np.array([1.0, np.nan], np.float32)}
    assert difference(found, {"x": np.array([1.0, 2.0])}) is not None
    assert difference(found, {"x": np.array([1.0, np.nan])}) is None


def test_integers_are_equal_or_wrong():
    assert difference({"n": np.array([3, 4])}, {"n": np.array([3, 4])}) is None
    assert difference({"n": np.array([3, 5])}, {"n": np.array([3, 4])}) is not None


def test_the_array_of_a_descriptor_is_looked_at():
    array = np.zeros(4, np.float32)
    assert array_of(SimpleNamespace(base=array, block_shape=[4])) is array


def test_poison_is_no_result():
    x, n, flags = np.zeros(3, np.float32), np.zeros(3, np.int32), np.zeros(3, np.bool_)
    poison({"x": x, "n": n, "flags": flags})
    assert np.isnan(x).all()
    assert (n == 85).all()
    assert flags.all()


def test_what_a_reference_gives_is_checked():
    arguments = {"x": np.zeros(4), "n": 3}
    assert expected_of(lambda at: {"x": at["x"] + at["n"]}, arguments)["x"].tolist() == [3.0] * 4
    with pytest.raises(ValueError, match="the reference names 'n', the arrays among the arguments are x"):
        expected_of(lambda at: {"n": 1}, arguments)
    with pytest.raises(TypeError, match="found NoneType"):
        expected_of(lambda at: None, arguments)
    with pytest.raises(ValueError, match=r"of 'x' has the shape \[2\], the array \[4\]"):
        difference(arguments, {"x": np.zeros(2)})
