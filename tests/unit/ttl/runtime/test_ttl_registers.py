"""Destination registers have one format in all of a kernel."""

import ml_dtypes
import numpy as np
import pytest

import tlx_xdsl.ttl.language as ttl
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.ttl.runtime import Options, compile_kernel, run, specs_of


@ttl.kernel()
def mixed(a, b, of_a, of_b):
    a_cb = ttl.make_circular_buffer_like(a, shape=(2, 4))
    b_cb = ttl.make_circular_buffer_like(b, shape=(1, 1))
    of_a_cb = ttl.make_circular_buffer_like(of_a, shape=(2, 4))
    of_b_cb = ttl.make_circular_buffer_like(of_b, shape=(1, 1))

    @ttl.datamovement()
    def read():
        with a_cb.reserve() as x:
            ttl.copy(a[0:2, 0:4], x)
        with b_cb.reserve() as x:
            ttl.copy(b[0, 0], x)

    @ttl.compute()
    def compute():
        with a_cb.wait() as x, of_a_cb.reserve() as o:
            o.store(x * 2.0)
        with b_cb.wait() as x, of_b_cb.reserve() as o:
            o.store(x * 2.0)

    @ttl.datamovement()
    def write():
        with of_a_cb.wait() as o:
            ttl.copy(o, of_a[0:2, 0:4])
        with of_b_cb.wait() as o:
            ttl.copy(o, of_b[0, 0])


@pytest.fixture
def arrays():
    random = np.random.default_rng(0)
    a = random.integers(-8, 9, (64, 128)).astype(ml_dtypes.bfloat16)
    b = random.standard_normal((32, 32)).astype(np.float32)
    return a, b, np.zeros_like(a), np.zeros_like(b)


def test_narrow_tiles_beside_wide_ones_have_their_registers(arrays):
    a, b, of_a, of_b = arrays
    run(mixed, *arrays)
    assert (of_a == a * 2).all()
    assert (of_b == b * 2).all()
    assert compile_kernel(mixed, specs_of(mixed, arrays)).manifest["options"]["dst_capacity"] == 4


def test_a_given_number_of_registers_is_the_machines_too(arrays):
    options = Options(capacity=2)
    assert compile_kernel(mixed, specs_of(mixed, arrays), options).manifest["options"]["dst_capacity"] == 2
    run(mixed, *arrays, options=options)
    assert (arrays[3] == arrays[1] * 2).all()


def test_no_register_is_enough(arrays):
    with pytest.raises(CompilationError, match="insufficient DST registers"):
        compile_kernel(mixed, specs_of(mixed, arrays), Options(capacity=1))
