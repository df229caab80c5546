"""Scales of a K that is too small for the four that tensor memory holds together."""

# covers: tlx.mma

import numpy as np
import pytest

from tlx_xdsl.dialects.tt.enums import ScaleDotElemType
from tlx_xdsl.interpreter.matmul import scaled_operand


@pytest.mark.parametrize("k", [32, 64, 128])
def test_a_scale_is_for_32_elements_and_the_rest_is_padding(k):
    values = np.full((8, k), 0x38, np.uint8)  # 1.0 in e4m3
    scales = np.tile(np.array([127, 128, 129, 130], np.uint8), (8, 1)).view(np.int8)
    found = scaled_operand(None, values.view(np.int8), scales, ScaleDotElemType.E4M3, 8)
    np.testing.assert_array_equal(found, np.tile(np.repeat(2.0 ** np.arange(k // 32), 32), (8, 1)))
