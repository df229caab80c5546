"""Square root on four cores: each takes a share of the tiles, the last one what is left."""

import numpy as np
import tlx_xdsl.language.ttl as ttl


@ttl.kernel(grid=(2, 2))
def square_root(x, out):
    x_cb = ttl.make_circular_buffer_like(x, shape=(1, 1))
    out_cb = ttl.make_circular_buffer_like(out, shape=(1, 1))
    columns = x.shape[1] // 32
    tiles = x.shape[0] // 32 * columns
    # Rounded up: the last core has fewer tiles.
    share = -(-tiles // ttl.grid_size(dims=1))
    first = ttl.core(dims=1) * share

    @ttl.compute()
    def compute():
        for i in range(share):
            if first + i < tiles:
                with x_cb.wait() as a, out_cb.reserve() as o:
                    o.store(ttl.math.sqrt(a))

    @ttl.datamovement()
    def read():
        for i in range(share):
            tile = first + i
            if tile < tiles:
                with x_cb.reserve() as a:
                    ttl.copy(x[tile // columns, tile % columns], a).wait()

    @ttl.datamovement()
    def write():
        for i in range(share):
            tile = first + i
            if tile < tiles:
                with out_cb.wait() as o:
                    ttl.copy(o, out[tile // columns, tile % columns]).wait()


def main():
    x = np.random.default_rng(0).random((96, 160), dtype=np.float32)
    out = np.empty_like(x)
    square_root(x, out)
    np.testing.assert_allclose(out, np.sqrt(x), rtol=1e-6)
    print("multicore: every element is right")


if __name__ == "__main__":
    main()
