"""Kernels that order their threads by semaphores of their own: no pass moves a transfer past a wait."""

import shutil

import numpy as np
import pytest

import tlx_xdsl.ttl.language as ttl
from tlx_xdsl.ttl.runtime import MACHINES, Options, run


@ttl.kernel(grid=(2, 1))
def relay(a, middle, out):
    """The first core writes rows to memory, the second one reads them from there."""
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=4)
    written = ttl.Semaphore(0)

    @ttl.datamovement()
    def read():
        core = ttl.core(dims=1)
        for i in range(4):
            if core == 0:
                with cb.reserve() as block:
                    ttl.copy(a[i, 0], block)
            if core == 1:
                written.wait_ge(i + 1)
                with cb.reserve() as block:
                    ttl.copy(middle[i, 0], block)

    @ttl.datamovement()
    def write():
        core = ttl.core(dims=1)
        for i in range(4):
            if core == 0:
                with cb.wait() as block:
                    ttl.copy(block, middle[i, 0]).wait()
                written.get_remote((1, 0)).inc(1)
            if core == 1:
                with cb.wait() as block:
                    ttl.copy(block, out[i, 0])


@ttl.kernel()
def in_turns(a, out):
    """Each round reads what the one before has written to the same place."""
    a_cb = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=4)
    out_cb = ttl.make_circular_buffer_like(out, shape=(1, 1), buffer_factor=4)
    done = ttl.Semaphore(0)

    @ttl.datamovement()
    def read():
        for i in range(4):
            done.wait_ge(i)
            with a_cb.reserve() as block:
                ttl.copy(a[0, 0], block)
        done.wait_eq(4)

    @ttl.compute()
    def compute():
        for _ in range(4):
            with a_cb.wait() as x, out_cb.reserve() as o:
                o.store(x + 1.0)

    @ttl.datamovement()
    def write():
        for _ in range(4):
            with out_cb.wait() as block:
                ttl.copy(block, a[0, 0]).wait()
            done.inc(1)


@pytest.fixture(params=[True, False], ids=["scheduled", "as_written"])
def options(request):
    return Options(schedule=request.param)


@pytest.fixture(params=MACHINES)
def machine(request):
    if request.param == "cpp" and shutil.which("g++") is None:
        pytest.skip("needs g++")
    return request.param


@pytest.mark.parametrize("seed", range(3))
def test_what_another_core_has_written_is_read_after_its_signal(machine, options, seed):
    a = np.random.default_rng(0).standard_normal((128, 32)).astype(np.float32)
    middle, out = np.full_like(a, np.nan), np.full_like(a, np.nan)
    run(relay, a, middle, out, machine=machine, options=options, schedule="random", seed=seed)
    np.testing.assert_array_equal(out, a)


@pytest.mark.parametrize("seed", range(3))
def test_a_core_signals_itself(machine, options, seed):
    a = np.zeros((32, 32), np.float32)
    run(in_turns, a, np.zeros_like(a), machine=machine, options=options, schedule="random", seed=seed)
    assert (a == 4).all()
