"""a * b + c in blocks of 1x2 tiles. Five columns of tiles are no multiple of that: the rest is a block of its own."""

import numpy as np
import tlx_xdsl.language.ttl as ttl

WIDTH = 2
"""Columns of a block, in tiles."""


def parts(columns):
    """First column, number of blocks and width of the blocks: of the whole ones, and of the rest if there is one."""
    rest = columns % WIDTH
    found = [(0, columns // WIDTH, WIDTH), (columns - rest, 1, rest)]
    return [(start, count, width) for start, count, width in found if count * width]


@ttl.kernel(grid=(1, 1))
def fused_multiply_add(a, b, c, out):
    rows, columns = a.shape[0] // 32, a.shape[1] // 32
    # Python's functions, lists and loops over them are for the compiler: nothing of them is left in the kernel.
    buffers = [
        [ttl.make_circular_buffer_like(t, shape=(1, width)) for t in (a, b, c, out)] for _, _, width in parts(columns)
    ]

    @ttl.compute()
    def compute():
        for (_, count, _), (a_cb, b_cb, c_cb, out_cb) in zip(parts(columns), buffers, strict=True):
            for _ in range(rows * count):
                with a_cb.wait() as x, b_cb.wait() as y, c_cb.wait() as z, out_cb.reserve() as o:
                    o.store(x * y + z)

    @ttl.datamovement()
    def read():
        for (start, count, width), (*inputs, _) in zip(parts(columns), buffers, strict=True):
            for i in range(rows * count):
                r, k = i // count, start + i % count * width
                for t, cb in zip((a, b, c), inputs, strict=True):
                    with cb.reserve() as block:
                        ttl.copy(t[r : r + 1, k : k + width], block).wait()

    @ttl.datamovement()
    def write():
        for (start, count, width), (*_, out_cb) in zip(parts(columns), buffers, strict=True):
            for i in range(rows * count):
                r, k = i // count, start + i % count * width
                with out_cb.wait() as o:
                    ttl.copy(o, out[r : r + 1, k : k + width]).wait()


def main():
    generator = np.random.default_rng(0)
    a, b, c = (generator.integers(-4, 5, (64, 160)).astype(np.float32) for _ in range(3))
    out = np.empty_like(a)
    fused_multiply_add(a, b, c, out)
    np.testing.assert_array_equal(out, a * b + c)
    print("fused_multiply_add: every element is right")


if __name__ == "__main__":
    main()
