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


@tlx_xdsl.jit(noinline=True)
def arrive_at(barrier, rank):
    """An arrival at the memory of another CTA, which is PTX that upstream Triton's inliner does not take."""
    tlx.barrier_arrive(barrier, 1, remote_cta_rank=rank)


@tlx_xdsl.jit
def in_a_cluster(out):
    rank = tlx.cluster_cta_rank()
    full = tlx.alloc_barriers(1)
    arrive_at(full[0], (rank + 1) % 2)
    tlx.barrier_wait(full[0], 0)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tl.store(out + 2 * rank, 1)
        with tlx.async_task(num_warps=2):
            tl.store(out + 2 * rank + 1, 2)


@pytest.mark.parametrize("stage", ["ttgir", "ptx"])
def test_a_call_with_ptx_beside_tasks(stage):
    out = np.zeros(4, np.int32)
    tlx_xdsl.interpret(in_a_cluster, 2, out, stage=stage, cluster=(2, 1, 1))
    assert out.tolist() == [1, 2, 1, 2]
