"""Scale each row and shift each column: a column vector and a row vector are spread over blocks of 1x2 tiles."""

import numpy as np
import tlx_xdsl.language.ttl as ttl


@ttl.kernel(grid=(1, 1))
def scale_and_shift(x, scale, shift, out):
    x_cb = ttl.make_circular_buffer_like(x, shape=(1, 2))
    scale_cb = ttl.make_circular_buffer_like(scale, shape=(1, 1))
    shift_cb = ttl.make_circular_buffer_like(shift, shape=(1, 2))
    out_cb = ttl.make_circular_buffer_like(out, shape=(1, 2))
    rows, blocks = x.shape[0] // 32, x.shape[1] // 64

    @ttl.compute()
    def compute():
        for _ in range(rows):
            with scale_cb.wait() as column:
                for _ in range(blocks):
                    with x_cb.wait() as a, shift_cb.wait() as row, out_cb.reserve() as o:
                        o.store(a * ttl.math.broadcast(column, o, dims=[1]) + ttl.math.broadcast(row, o, dims=[0]))

    @ttl.datamovement()
    def read():
        for r in range(rows):
            with scale_cb.reserve() as column:
                ttl.copy(scale[r, 0], column).wait()
            for b in range(blocks):
                with x_cb.reserve() as a, shift_cb.reserve() as row:
                    first = ttl.copy(x[r : r + 1, 2 * b : 2 * b + 2], a)
                    second = ttl.copy(shift[0:1, 2 * b : 2 * b + 2], row)
                    first.wait()
                    second.wait()

    @ttl.datamovement()
    def write():
        for r in range(rows):
            for b in range(blocks):
                with out_cb.wait() as o:
                    ttl.copy(o, out[r : r + 1, 2 * b : 2 * b + 2]).wait()


def main():
    generator = np.random.default_rng(0)
    x, scale, shift = (generator.integers(-4, 5, shape).astype(np.float32) for shape in ((64, 128), (64, 1), (1, 128)))
    out = np.empty_like(x)
    scale_and_shift(x, scale, shift, out)
    np.testing.assert_array_equal(out, x * scale + shift)
    print("broadcast: every element is right")


if __name__ == "__main__":
    main()
