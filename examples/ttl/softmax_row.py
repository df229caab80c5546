"""Softmax of rows: a row of tiles is one block, reduced to a column and spread again."""

import numpy as np
import tlx_xdsl.language.ttl as ttl


@ttl.kernel(grid=(1, 1))
def softmax(x, out):
    columns = x.shape[1] // 32
    x_cb = ttl.make_circular_buffer_like(x, shape=(1, columns))
    out_cb = ttl.make_circular_buffer_like(out, shape=(1, columns))

    @ttl.compute()
    def compute():
        for _ in range(x.shape[0] // 32):
            with x_cb.wait() as a, out_cb.reserve() as o:
                largest = ttl.math.reduce_max(a, dims=[1])
                weights = ttl.math.exp(a - ttl.math.broadcast(largest, a, dims=[1]))
                total = ttl.math.reduce_sum(weights, dims=[1])
                o.store(weights / ttl.math.broadcast(total, a, dims=[1]))

    @ttl.datamovement()
    def read():
        for r in range(x.shape[0] // 32):
            with x_cb.reserve() as a:
                ttl.copy(x[r : r + 1, :], a).wait()

    @ttl.datamovement()
    def write():
        for r in range(out.shape[0] // 32):
            with out_cb.wait() as o:
                ttl.copy(o, out[r : r + 1, :]).wait()


def main():
    x = np.random.default_rng(0).standard_normal((64, 96), dtype=np.float32)
    out = np.empty_like(x)
    softmax(x, out)
    weights = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(out, weights / weights.sum(axis=1, keepdims=True), rtol=1e-5)
    print("softmax_row: every element is right")


if __name__ == "__main__":
    main()
