"""One core reads the weights and sends them to all four: each multiplies its own row of tiles with them."""

import numpy as np
import tlx_xdsl.language.ttl as ttl

CORES = 4


@ttl.kernel(grid=(CORES, 1))
def weighted(x, weights, out):
    x_cb = ttl.make_circular_buffer_like(x, shape=(1, 1))
    weights_cb = ttl.make_circular_buffer_like(weights, shape=(1, 1))
    out_cb = ttl.make_circular_buffer_like(out, shape=(1, 1))
    net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst_range=(slice(1, CORES), 0))])
    columns = x.shape[1] // 32
    core_x, _ = ttl.core(dims=2)

    @ttl.compute()
    def compute():
        for _ in range(columns):
            with x_cb.wait() as a, weights_cb.wait() as w, out_cb.reserve() as o:
                o.store(a * w)

    @ttl.datamovement()
    def read():
        for c in range(columns):
            with weights_cb.reserve() as w:
                if core_x == 0:
                    ttl.copy(weights[0, c], w).wait()
                net.if_src(lambda pipe: ttl.copy(w, pipe).wait())
                net.if_dst(lambda pipe: ttl.copy(pipe, w).wait())
            with x_cb.reserve() as a:
                ttl.copy(x[core_x, c], a).wait()

    @ttl.datamovement()
    def write():
        for c in range(columns):
            with out_cb.wait() as o:
                ttl.copy(o, out[core_x, c]).wait()


def main():
    generator = np.random.default_rng(0)
    x = generator.integers(-4, 5, (CORES * 32, 64)).astype(np.float32)
    weights = generator.integers(-4, 5, (32, 64)).astype(np.float32)
    out = np.empty_like(x)
    weighted(x, weights, out)
    np.testing.assert_array_equal(out, x * np.tile(weights, (CORES, 1)))
    print("pipe_multicast: every element is right")


if __name__ == "__main__":
    main()
