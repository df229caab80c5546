"""A matrix product on a square of cores: the first column sends `a` along its rows, the first row `b` along columns.

Each core has a tile of the result, and takes one of `a` and one of `b` in each step (van de Geijn and Watts, "SUMMA").
Both data movement threads multicast, one on each network on chip.
"""

import numpy as np
import tlx_xdsl.language.ttl as ttl

CORES = 4


@ttl.kernel(grid=(CORES, CORES))
def summa(a, b, out):
    a_cb = ttl.make_circular_buffer_like(a, shape=(1, 1))
    b_cb = ttl.make_circular_buffer_like(b, shape=(1, 1))
    out_cb = ttl.make_circular_buffer_like(out, shape=(1, 1))
    columns, rows = ttl.grid_size(dims=2)
    along_rows = ttl.PipeNet([ttl.Pipe(src=(0, y), dst=(slice(1, columns), y)) for y in range(rows)])
    along_columns = ttl.PipeNet([ttl.Pipe(src=(x, 0), dst=(x, slice(1, rows))) for x in range(columns)])
    steps = a.shape[1] // 32
    x, y = ttl.core(dims=2)

    @ttl.datamovement()
    def read_a():
        for k in range(steps):
            with a_cb.reserve() as block:
                if x == 0:
                    ttl.copy(a[y, k], block).wait()
                along_rows.if_src(lambda pipe: ttl.copy(block, pipe).wait())
                along_rows.if_dst(lambda pipe: ttl.copy(pipe, block).wait())

    @ttl.compute()
    def compute():
        with out_cb.reserve() as result:
            for _ in range(steps):
                with a_cb.wait() as left, b_cb.wait() as right:
                    result.store(left @ right, acc=True)

    @ttl.datamovement()
    def read_b_and_write():
        for k in range(steps):
            with b_cb.reserve() as block:
                if y == 0:
                    ttl.copy(b[k, x], block).wait()
                along_columns.if_src(lambda pipe: ttl.copy(block, pipe).wait())
                along_columns.if_dst(lambda pipe: ttl.copy(pipe, block).wait())
        with out_cb.wait() as block:
            ttl.copy(block, out[y, x]).wait()


def main():
    generator = np.random.default_rng(0)
    a, b = generator.integers(-4, 5, (2, CORES * 32, CORES * 32)).astype(np.float32)
    out = np.empty_like(a)
    summa(a, b, out)
    np.testing.assert_array_equal(out, a @ b)
    print("summa: every element is right")


if __name__ == "__main__":
    main()
