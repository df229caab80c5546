"""Division of long normalised rows by clusters."""

import numpy as np
import pytest

from tlx_xdsl.kernels.calls.operands import UNIT, operand, rows_of
from tlx_xdsl.kernels.rows.norm_clusters import OTHER_BYTES, SHARED_BYTES, Division, division


def divided(columns, dtype, pieces, *, backward=False, unit=UNIT):
    given = operand("norm", "x", np.empty((3, columns), dtype))
    return division(given, rows_of(given), unit, pieces, backward=backward)


@pytest.mark.parametrize(
    ("columns", "dtype", "pieces", "backward", "expected"),
    [
        (40000, np.float16, (1, 1), False, Division(4, 16384, 4)),
        (65536, np.float16, (1, 2), False, Division(4, 16384, 4)),
        (131072, np.float16, (2, 1), False, Division(8, 16384, 3)),
        (262144, np.float16, (2, 2), False, Division(16, 16384, 2)),
        (262152, np.float16, (1, 1), False, None),
        (131072, np.float32, (2, 2), False, Division(16, 8192, 2)),
        (9000, np.float16, (2, 1), True, Division(2, 8192, 6)),
        (131072, np.float16, (3, 1), True, Division(16, 8192, 4)),
        (131080, np.float16, (2, 1), True, None),
        (65536, np.float32, (3, 1), True, Division(16, 4096, 4)),
        (131072, np.float32, (2, 1), True, Division(16, 8192, 2)),
        (131072, np.float32, (3, 1), True, None),
    ],
)
def test_division(columns, dtype, pieces, backward, expected):
    found = divided(columns, dtype, pieces, backward=backward)
    assert found == expected
    if found is not None:
        assert found.ranks * found.block >= columns
        held = (found.stages * pieces[0] + pieces[1]) * found.block * np.dtype(dtype).itemsize
        assert held + OTHER_BYTES[backward] <= SHARED_BYTES


def test_rows_that_bulk_copies_can_not_load():
    assert divided(65536, np.float16, (1, 1), unit=1) is None


def test_clusters_of_a_launch():
    given = operand("norm", "x", np.empty((3, 65536), np.float16))
    assert Division(2, 32768, 2).clusters(given, rows_of(given)) == 2
    assert Division(8, 8192, 2).clusters(given, rows_of(given)) == 1
