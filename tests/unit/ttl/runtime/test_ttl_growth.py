"""Long computations: neither Python's stack nor time limits them before the registers do."""

import numpy as np
import pytest

from tlx_xdsl.ttl.language import TensorSpec
from tlx_xdsl.ttl.runtime import Prepared, compile_kernel
from tlx_xdsl.ttl.tools.kernels import load_ttl_kernel

KERNEL = """\
import tlx_xdsl.ttl.language as ttl

@ttl.kernel()
def long(a, out, other):
    a_cb = ttl.make_circular_buffer_like(a)
    out_cb = ttl.make_circular_buffer_like(out)
    other_cb = ttl.make_circular_buffer_like(other)

    @ttl.datamovement()
    def read():
        with a_cb.reserve() as x:
            ttl.copy(a[0, 0], x)

    @ttl.compute()
    def compute():
        with a_cb.wait() as v, out_cb.reserve() as o, other_cb.reserve() as p:
BODY
            o.store(v)
            p.store(u)

    @ttl.datamovement()
    def write():
        with out_cb.wait() as o:
            ttl.copy(o, out[0, 0])
        with other_cb.wait() as p:
            ttl.copy(p, other[0, 0])
"""


@pytest.fixture
def load(tmp_path):
    def load(lines):
        path = tmp_path / "long.py"
        path.write_text(KERNEL.replace("BODY", "\n".join(f"            {line}" for line in lines)))
        return load_ttl_kernel(str(path))

    return load


def test_a_chain_that_is_longer_than_pythons_stack_is_deep(load):
    kernel = load(["u = v"] + ["v = ttl.math.neg(v)", "v = ttl.math.abs(v)"] * 600)
    a = np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32)
    out, other = np.empty_like(a), np.empty_like(a)
    Prepared(kernel, [a, out, other]).run([a, out, other])
    np.testing.assert_array_equal(out, np.abs(a))
    np.testing.assert_array_equal(other, a)


def test_what_is_used_twice_is_computed_once(load):
    # Each value has two ways to the one before: 2**60 in all.
    kernel = load(["u = v"] + ["u, v = v, v + v"] * 60)
    compiled = compile_kernel(kernel, [TensorSpec((32, 32))] * 3)
    assert sum(op.name == "ttkernel.add_binary_tile" for op in compiled.module.walk()) <= 2 * 60
