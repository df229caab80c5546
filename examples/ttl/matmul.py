"""Product of matrices: each block of the result is summed up over blocks of k in its place."""

import numpy as np
import tlx_xdsl.language.ttl as ttl

BLOCK_M, BLOCK_N, BLOCK_K = 2, 2, 1
"""Sizes of the blocks, in tiles."""


@ttl.kernel(grid=(1, 1), fp32_dest_acc_en=True)
def matmul(a, b, out):
    a_cb = ttl.make_circular_buffer_like(a, shape=(BLOCK_M, BLOCK_K))
    b_cb = ttl.make_circular_buffer_like(b, shape=(BLOCK_K, BLOCK_N))
    out_cb = ttl.make_circular_buffer_like(out, shape=(BLOCK_M, BLOCK_N))
    m_blocks, n_blocks = a.shape[0] // 32 // BLOCK_M, b.shape[1] // 32 // BLOCK_N
    k_blocks = a.shape[1] // 32 // BLOCK_K
    assert a.shape[1] == b.shape[0], "the inner dimensions must be equal"

    @ttl.compute()
    def compute():
        for _ in range(m_blocks * n_blocks):
            with out_cb.reserve() as o:
                for _ in range(k_blocks):
                    with a_cb.wait() as x, b_cb.wait() as y:
                        o += x @ y

    @ttl.datamovement()
    def read():
        for m in range(m_blocks):
            for n in range(n_blocks):
                for k in range(k_blocks):
                    with a_cb.reserve() as x, b_cb.reserve() as y:
                        rows, inner, columns = m * BLOCK_M, k * BLOCK_K, n * BLOCK_N
                        first = ttl.copy(a[rows : rows + BLOCK_M, inner : inner + BLOCK_K], x)
                        second = ttl.copy(b[inner : inner + BLOCK_K, columns : columns + BLOCK_N], y)
                        first.wait()
                        second.wait()

    @ttl.datamovement()
    def write():
        for m in range(m_blocks):
            for n in range(n_blocks):
                with out_cb.wait() as o:
                    ttl.copy(o, out[m * BLOCK_M : (m + 1) * BLOCK_M, n * BLOCK_N : (n + 1) * BLOCK_N]).wait()


def main():
    generator = np.random.default_rng(0)
    a = generator.integers(-4, 5, (128, 96)).astype(np.float32)
    b = generator.integers(-4, 5, (96, 64)).astype(np.float32)
    out = np.empty((128, 64), np.float32)
    matmul(a, b, out)
    np.testing.assert_array_equal(out, a @ b)
    print("matmul: every element is right")


if __name__ == "__main__":
    main()
