"""Kernels from Python as C++ in both versions of the API: the machine runs both, with equal results."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tlx_xdsl.ttl.language as ttl
from tests.unit.ttl.metalium.metalium_programs import needs_compiler
from tlx_xdsl.ttl.cpp import PROFILES
from tlx_xdsl.ttl.runtime import Options, run
from tlx_xdsl.ttl.tools.kernels import load_ttl_kernel

pytestmark = needs_compiler


@ttl.kernel(grid=(1, 1))
def two_formats(a, b, p, q):
    """Products in f32 and in bf16, one after the other: the units are reconfigured in between."""
    a_cb = ttl.make_circular_buffer_like(a, shape=(2, 2), buffer_factor=2)
    b_cb = ttl.make_circular_buffer_like(b, shape=(2, 2), buffer_factor=2)
    p_cb = ttl.make_circular_buffer_like(p, shape=(2, 2), buffer_factor=2)
    q_cb = ttl.make_circular_buffer_like(q, shape=(2, 2), buffer_factor=2)

    @ttl.compute()
    def compute():
        for _ in range(2):
            with a_cb.wait() as x, p_cb.reserve() as o:
                o.store(x @ x + x)
            with b_cb.wait() as x, q_cb.reserve() as o:
                o.store(x @ x + ttl.math.transpose(x))

    @ttl.datamovement()
    def read():
        for _ in range(2):
            with a_cb.reserve() as x, b_cb.reserve() as y:
                ttl.copy(a[0:2, 0:2], x).wait()
                ttl.copy(b[0:2, 0:2], y).wait()

    @ttl.datamovement()
    def write():
        for _ in range(2):
            with p_cb.wait() as o, q_cb.wait() as r:
                ttl.copy(o, p[0:2, 0:2]).wait()
                ttl.copy(r, q[0:2, 0:2]).wait()


@pytest.mark.parametrize("fpu", ["always", "never"])
@pytest.mark.parametrize("profile", PROFILES)
def test_buffers_of_two_formats(profile: str, fpu: str) -> None:
    generator = np.random.default_rng(0)
    a = generator.integers(-4, 4, (64, 64)).astype(np.float32)
    b = generator.integers(-1, 2, (64, 64)).astype(ml_dtypes.bfloat16)
    p, q = np.zeros_like(a), np.zeros_like(b)
    run(two_formats, a, b, p, q, machine="cpp", options=Options(profile=profile, fpu=fpu))
    wide = b.astype(np.float32)
    np.testing.assert_array_equal(p, a @ a + a)
    np.testing.assert_array_equal(q.astype(np.float32), (wide @ wide + wide.T).astype(b.dtype).astype(np.float32))


@pytest.mark.parametrize("profile", PROFILES)
def test_multicast(profile: str) -> None:
    """Semaphores, multicasts and transfers of pages are objects in one profile."""
    weighted = load_ttl_kernel(str(Path(__file__).parents[4] / "examples" / "ttl" / "pipe_multicast.py"))
    generator = np.random.default_rng(0)
    x, weights = (generator.standard_normal((rows, 64)).astype(np.float32) for rows in (128, 32))
    out = np.full_like(x, np.nan)
    run(weighted, x, weights, out, machine="cpp", options=Options(profile=profile))
    np.testing.assert_array_equal(out, x * np.tile(weights, (4, 1)))
