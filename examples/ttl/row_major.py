"""Copy a tensor that has no tiles: pages are rows, and a data movement thread alone moves four of them at a time."""

import numpy as np
import tlx_xdsl.language.ttl as ttl

ROWS = 4
"""Rows of a block."""


@ttl.kernel(grid=(1, 1), tiled=False)
def copy_rows(x, out):
    rows, columns = x.shape
    cb = ttl.make_circular_buffer_like(x, shape=(ROWS, columns))

    @ttl.datamovement()
    def read():
        for r in range(0, rows, ROWS):
            with cb.reserve() as block:
                ttl.copy(x[r : r + ROWS, :], block).wait()

    @ttl.datamovement()
    def write():
        for r in range(0, rows, ROWS):
            with cb.wait() as block:
                ttl.copy(block, out[r : r + ROWS, :]).wait()


def main():
    x = np.random.default_rng(0).standard_normal((16, 40), dtype=np.float32)
    out = np.empty_like(x)
    copy_rows(x, out)
    np.testing.assert_array_equal(out, x)
    print("row_major: every element is right")


if __name__ == "__main__":
    main()
