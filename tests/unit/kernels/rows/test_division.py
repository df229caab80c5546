"""Division by a product and a shift, against Python's."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.kernels.gemm.device import divided, divisor

LAST = (1 << 31) - 1


@given(number=st.integers(2, LAST), dividend=st.integers(0, LAST), times=st.integers(0, LAST))
def test_product_and_shift(number, dividend, times):
    factor, shift = divisor(number)
    assert -(1 << 31) <= factor < 0
    assert 0 <= shift < 31
    multiple = times // number * number
    for each in (dividend, multiple, max(multiple - 1, 0), LAST):
        assert (each * (factor + (1 << 32)) >> 32) >> shift == each // number


@pytest.mark.parametrize("number", [0, -3, 1 << 31])
def test_refused(number):
    with pytest.raises(ValueError, match=f"expected a divisor of 1 to 2\\^31 - 1, got {number}"):
        divisor(number)


@tlx_xdsl.jit
def divide_all(x_ptr, y_ptr, factor, shift, N: tl.constexpr):
    for at in range(N):
        tl.store(y_ptr + at, divided(tl.load(x_ptr + at), (factor, shift)))


@pytest.mark.parametrize("number", [1, 2, 3, 7, 8, 64, 65535, 65536, 1 << 30, LAST])
def test_in_a_kernel(number):
    found = np.full(6, -1, np.int32)
    given_ = np.array([0, 1, number - 1, number, min(3 * number + 1, LAST), LAST], np.int32)
    factor, shift = divisor(number)
    tlx_xdsl.interpret(divide_all, (1,), x_ptr=given_, y_ptr=found, factor=factor, shift=shift, N=6)
    assert found.tolist() == [int(each) // number for each in given_]
