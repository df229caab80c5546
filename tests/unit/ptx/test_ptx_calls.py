"""Functions that are called in a kernel with tasks: their barriers are of one task's threads, with every Triton."""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

# Kernels are read by the frontend, not run by Python.
# pyright: basic

pytestmark = pytest.mark.backend


@tlx_xdsl.jit(noinline=True)
def total(x, n):
    """A sum over four warps, which meet at a barrier."""
    return tl.sum(tl.load(x + tl.arange(0, 128)), 0) + n


@tlx_xdsl.jit
def beside_tasks(x, out):
    before = total(x, 3)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tl.store(out, before + total(x, 1))
        with tlx.async_task(num_warps=2):
            tl.store(out + 1, 2)


@pytest.mark.parametrize("stage", ["ttgir", "ptx"])
def test_a_call_beside_tasks(stage):
    """Triton 3.6 and 3.7 make the barrier of a function wait for the threads of all tasks."""
    x, out = np.arange(128, dtype=np.int32), np.zeros(2, np.int32)
    tlx_xdsl.interpret(beside_tasks, 1, x, out, stage=stage)
    assert out.tolist() == [2 * int(x.sum()) + 4, 2]
