"""A tensor in four shards of 1x2 tiles: each core takes the shard that has its number, whole."""

from typing import Annotated, Any

import numpy as np
import tlx_xdsl.language.ttl as ttl

SHARDS = ttl.sharded(grid=(2, 2), tiles_per_shard=(1, 2))
TENSOR = ttl.tensor((64, 128), layout=SHARDS)


@ttl.kernel(grid=(2, 2))
def relu(x: Annotated[Any, TENSOR], out: Annotated[Any, TENSOR]):
    x_cb = ttl.make_circular_buffer_like(x, shape=(1, 2), buffer_factor=1)
    out_cb = ttl.make_circular_buffer_like(out, shape=(1, 2), buffer_factor=1)
    shard = ttl.core(dims=1)

    @ttl.compute()
    def compute():
        with x_cb.wait() as a, out_cb.reserve() as o:
            o.store(ttl.math.relu(a))

    @ttl.datamovement()
    def read():
        with x_cb.reserve() as a:
            ttl.copy(x[shard], a).wait()

    @ttl.datamovement()
    def write():
        with out_cb.wait() as o:
            ttl.copy(o, out[shard]).wait()


def main():
    x = np.random.default_rng(0).standard_normal((64, 128), dtype=np.float32)
    out = np.empty_like(x)
    relu(x, out)
    np.testing.assert_array_equal(out, np.maximum(x, 0))
    print("sharded: every element is right")


if __name__ == "__main__":
    main()
