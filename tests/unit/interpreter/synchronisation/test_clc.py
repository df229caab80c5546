"""Cluster launch control: every program is computed once, by itself or by a cluster that took it over."""

# covers: tlx.clc, ttng.cluster

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.interpreter.faults import Deadlock, Fault
from tlx_xdsl.interpreter.scheduler import POLICIES

BLACKWELL = {"target": "sm_100a", "jobs": 1}


@tlx_xdsl.jit
def count(count_ptr, owner_ptr, X, DROP: tl.constexpr = ""):
    """Each program counts, and is counted by the one that takes it over."""
    response = tlx._alloc_clc_responses(1)
    full = tlx.alloc_barriers(2)
    first = tl.program_id(1) * X + tl.program_id(0)
    tile = first
    phase = 0
    while tile >= 0:
        tlx.barrier_expect_bytes(full[0], 8 if DROP == "bytes" else 16)
        tlx._clc_issue(response[0], full[0])
        if DROP == "overwrite":
            tlx.barrier_expect_bytes(full[1], 16)
            tlx._clc_issue(response[0], full[1])
        if DROP == "twice":
            tlx.barrier_wait(full[0], phase)
            phase ^= 1
            tlx.barrier_expect_bytes(full[0], 16)
            tlx._clc_issue(response[0], full[0])
        tl.atomic_add(count_ptr + tile, 1)
        tl.store(owner_ptr + tile, first)
        if DROP != "wait":
            tlx.barrier_wait(full[0], phase)
        x, y, _ = tlx._clc_query(response[0], return_3d=True)
        tile = tl.where(x >= 0, y * X + x, -1)
        tlx.fence_async_shared()
        phase ^= 1


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("schedule", POLICIES)
def test_every_program_is_computed_once(schedule, seed):
    times, owners = np.zeros((3, 5), np.int32), np.full((3, 5), -1, np.int32)
    result = tlx_xdsl.interpret(count, (5, 3), times, owners, 5, schedule=schedule, seed=seed, **BLACKWELL)
    np.testing.assert_array_equal(times, 1)
    # Only where chance has no part does the first one get all others.
    assert (len(np.unique(owners)) == 1) == (schedule == "round-robin")
    assert len(np.unique(owners)) < owners.size
    assert list(result.warnings) == []


@pytest.mark.parametrize("schedule", POLICIES)
@pytest.mark.parametrize(
    ("drop", "kind", "message"),
    [
        ("wait", Fault, "nothing orders it after the request to cluster launch control|is read before it is written"),
        ("bytes", Fault, "8 bytes more arrive on 'full"),
        ("overwrite", Fault, "writes 'response.*while an earlier one may still be in flight"),
        ("twice", Fault, "a cluster is asked for again after a response which said that there is none"),
    ],
)
def test_each_missing_step_of_launch_control_is_reported(drop, kind, message, schedule):
    # With one program, the first response says that there is no more.
    times, owners = np.zeros((1, 1), np.int32), np.zeros((1, 1), np.int32)
    with pytest.raises(kind, match=message):
        tlx_xdsl.interpret(count, (1, 1), times, owners, 1, drop, schedule=schedule, **BLACKWELL)


@tlx_xdsl.jit
def in_clusters(count_ptr, CONSUMERS: tl.constexpr, DROP: tl.constexpr = ""):
    """The CTA of rank 0 asks for its cluster, and all get the response, in two tasks each."""
    context = tlx.clc_create_context(CONSUMERS)
    if DROP != "barrier":
        tlx.fence_mbarrier_init_cluster()
        tlx.cluster_barrier()
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tile = tl.program_id(0)
            turn = 0
            while tile != -1:
                tlx.clc_producer(context, (turn & 1) ^ 1)
                tl.atomic_add(count_ptr + tile, 1)
                tile = tlx.clc_consumer(context, turn & 1)
                turn += 1
        with tlx.async_task(num_warps=1):
            tile = tl.program_id(0)
            turn = 0
            while tile != -1:
                tl.atomic_add(count_ptr + tile, 100)
                tile = tlx.clc_consumer(context, turn & 1)
                turn += 1


@pytest.mark.parametrize("schedule", POLICIES)
@pytest.mark.parametrize(("size", "drop"), [(1, ""), (2, ""), (4, ""), (2, "barrier")])
def test_clusters_take_over_clusters(size, drop, schedule):
    times = np.zeros(12, np.int32)
    options = {"cluster": (size, 1, 1), "schedule": schedule} | BLACKWELL
    result = tlx_xdsl.interpret(in_clusters, 12, times, 2 * size, drop, **options)
    np.testing.assert_array_equal(times, 101)
    assert list(result.warnings) == []


@pytest.mark.parametrize("schedule", POLICIES)
def test_mistake_in_a_cluster(schedule):
    with pytest.raises(Deadlock, match=r"waits at 'clc_empty.* lacks 1 of 5 arrivals"):
        tlx_xdsl.interpret(
            in_clusters, 12, np.zeros(12, np.int32), 5, cluster=(2, 1, 1), schedule=schedule, **BLACKWELL
        )
