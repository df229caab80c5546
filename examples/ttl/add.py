"""Element-wise addition: one thread reads tiles, one computes, one writes, with room for two tiles in between."""

import numpy as np
import tlx_xdsl.language.ttl as ttl


@ttl.kernel(grid=(1, 1))
def add(a, b, out):
    a_cb = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=2)
    b_cb = ttl.make_circular_buffer_like(b, shape=(1, 1), buffer_factor=2)
    out_cb = ttl.make_circular_buffer_like(out, shape=(1, 1), buffer_factor=2)
    rows, columns = -(-a.shape[0] // 32), -(-a.shape[1] // 32)

    @ttl.compute()
    def compute():
        for _ in range(rows * columns):
            with a_cb.wait() as x, b_cb.wait() as y, out_cb.reserve() as o:
                o.store(x + y)

    @ttl.datamovement()
    def read():
        for r in range(rows):
            for c in range(columns):
                with a_cb.reserve() as x, b_cb.reserve() as y:
                    first = ttl.copy(a[r, c], x)
                    second = ttl.copy(b[r, c], y)
                    first.wait()
                    second.wait()

    @ttl.datamovement()
    def write():
        for r in range(rows):
            for c in range(columns):
                with out_cb.wait() as o:
                    ttl.copy(o, out[r, c]).wait()


def main():
    generator = np.random.default_rng(0)
    a, b = (generator.standard_normal((64, 96), dtype=np.float32) for _ in range(2))
    out = np.empty_like(a)
    add(a, b, out)
    np.testing.assert_allclose(out, a + b)
    print("add: every element is right")


if __name__ == "__main__":
    main()
