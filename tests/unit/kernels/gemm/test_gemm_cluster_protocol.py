"""Return of stages between CTAs of a cluster in `gemm_persistent`, and two wrong ways, which are reported.

Both were in that kernel while it was written, and were found before it ran on a GPU. The kernel here has what is left
of it without products: each of two CTAs adds up tiles of its own, `a`, and tiles that one CTA loads for both, `b`.
"""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.interpreter.faults import Race
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.kernels.rings import next_place
from tlx_xdsl.runtime.simulate.interpret import interpret

STEPS, STAGES, SIDE = 7, 2, 16


@tlx_xdsl.jit
def released(empty, far, stage, rank, HOW: tl.constexpr):
    """A consumer gives a stage back."""
    other = 1 - rank
    if HOW == "right":
        if stage % 2 == other:
            tlx.barrier_arrive(far[stage], 1, other)
    elif HOW == "one barrier for all":
        tlx.barrier_arrive(empty[stage], 1, other)
    else:
        tlx.barrier_arrive(far[stage], 1, other)
    tlx.barrier_arrive(empty[stage])


@tlx_xdsl.jit
def wait_for_stage(empty, far, stage, phase, rank, HOW: tl.constexpr):
    """A producer waits until it can load to a stage."""
    tlx.barrier_wait(empty[stage], phase ^ 1)
    if HOW == "right":
        if stage % 2 == rank:
            tlx.barrier_wait(far[stage], phase ^ 1)
    elif HOW == "all wait for far":
        tlx.barrier_wait(far[stage], phase ^ 1)


@tlx_xdsl.jit
def sums(a_desc, b_desc, out_desc, STEPS: tl.constexpr, STAGES: tl.constexpr, SIDE: tl.constexpr, HOW: tl.constexpr):
    """out = the sum of this CTA's tiles of a and of all tiles of b."""
    rank = tlx.cluster_cta_rank()
    a = tlx.local_alloc((SIDE, SIDE), tl.float32, STAGES)
    b = tlx.local_alloc((SIDE, SIDE), tl.float32, STAGES)
    out = tlx.local_alloc((SIDE, SIDE), tl.float32, 1)
    full = tlx.alloc_barriers(STAGES)
    empty = tlx.alloc_barriers(STAGES, arrive_count=2 if HOW == "one barrier for all" else 1)
    far = tlx.alloc_barriers(STAGES)
    tlx.cluster_barrier()
    with tlx.async_tasks():
        with tlx.async_task("default"):
            stage = 0
            phase = 0
            for step in range(STEPS):
                wait_for_stage(empty, far, stage, phase, rank, HOW)
                tlx.barrier_expect_bytes(full[stage], 2 * SIDE * SIDE * 4)
                tlx.async_descriptor_load(a_desc, a[stage], [(rank * STEPS + step) * SIDE, 0], full[stage])
                if stage % 2 == rank:
                    tlx.async_descriptor_load(b_desc, b[stage], [step * SIDE, 0], full[stage], multicast_targets=[0, 1])
                stage, phase = next_place(stage, phase, STAGES)
        with tlx.async_task(num_warps=4):
            stage = 0
            phase = 0
            total = tl.zeros((SIDE, SIDE), tl.float32)
            for _ in range(STEPS):
                tlx.barrier_wait(full[stage], phase)
                total += tlx.local_load(a[stage]) + tlx.local_load(b[stage])
                released(empty, far, stage, rank, HOW)
                stage, phase = next_place(stage, phase, STAGES)
            tlx.local_store(out[0], total)
            tlx.fence_async_shared()
            tlx.async_descriptor_store(out_desc, out[0], [rank * SIDE, 0])
            tlx.async_descriptor_store_wait(0)
    tlx.cluster_barrier()


def run(how, **options):
    rng = np.random.default_rng(0)
    a = rng.integers(-8, 9, (2, STEPS, SIDE, SIDE)).astype(np.float32)
    b = rng.integers(-8, 9, (STEPS, SIDE, SIDE)).astype(np.float32)
    out = np.full((2, SIDE, SIDE), np.nan, np.float32)
    descs = [tlx_xdsl.TensorDescriptor.from_tensor(each.reshape(-1, SIDE), [SIDE, SIDE]) for each in (a, b, out)]
    interpret(
        sums, (2,), *descs, STEPS=STEPS, STAGES=STAGES, SIDE=SIDE, HOW=how,
        options={"cluster": (2, 1, 1), "target": "sm_90a", "jobs": 1, **options},
    )  # fmt: skip
    assert np.array_equal(out, a.sum(1) + b.sum(0))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_barrier_for_the_own_consumer_and_one_for_the_other_s(policy):
    run("right", schedule=policy)
    run("right", schedule=policy, stage="ttgir")


@pytest.mark.parametrize(
    ("how", "text"),
    [
        # The other CTA's consumer needs nothing of this CTA's producer: it may arrive a second time before this one's
        # has arrived once.
        ("one barrier for all", r"nothing orders this arrival on 'empty\[.\] of CTA .', in its phase 1, after phase 0"),
        # The CTA that does not load to this stage need not have looked when the other one's consumer is two turns on.
        ("all wait for far", r"nothing orders this wait for phase -1 of 'far\[.\] of CTA .' before phase 0 completes"),
    ],
)
@pytest.mark.parametrize("policy", POLICIES)
def test_wrong_ways_are_reported_in_every_order(how, text, policy):
    with pytest.raises(Race, match=text):
        run(how, schedule=policy)
