"""Clusters: who is who, the barrier of the cluster, and shared memory of other thread blocks."""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl import CompilationError
from tlx_xdsl.interpreter.faults import Deadlock, Fault
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.runtime.driver.compilation import Specialization, compile_text
from tlx_xdsl.runtime.simulate.interpret import interpret_text

pytestmark = pytest.mark.quick

PAIR = {"cluster": (2, 1, 1), "target": "sm_90a", "jobs": 1}


@tlx_xdsl.jit
def places(out_ptr):
    at = (tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)) * tl.num_programs(0) + tl.program_id(0)
    tl.store(out_ptr + at, tlx.cluster_cta_rank() * 100 + tlx.cluster_size_1d())


@pytest.mark.parametrize(("grid", "cluster"), [((4, 1, 1), (2, 1, 1)), ((4, 4, 2), (2, 2, 1)), ((2, 2, 4), (1, 2, 4))])
def test_ranks_go_along_x_first(grid, cluster):
    out = np.full((grid[2], grid[1], grid[0]), -1, np.int32)
    tlx_xdsl.interpret(places, grid, out, cluster=cluster, target="sm_90a", jobs=1)
    z, y, x = np.indices(out.shape)
    rank = x % cluster[0] + cluster[0] * (y % cluster[1] + cluster[1] * (z % cluster[2]))
    np.testing.assert_array_equal(out, rank * 100 + np.prod(cluster))


def test_a_grid_is_made_of_clusters():
    with pytest.raises(ValueError, match="the grid has 3 programs along x, no multiple of the cluster's 2"):
        tlx_xdsl.interpret(places, 3, np.zeros(3, np.int32), **PAIR)


# --- remote memory --------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def exchange(out_ptr, DROP: tl.constexpr = ""):
    """Each CTA writes its rank to the other one's buffer."""
    rank = tlx.cluster_cta_rank()
    buffer = tlx.local_alloc((32,), tl.int32, 1)
    if DROP != "first barrier":
        tlx.cluster_barrier()
    other = rank + 1 if DROP == "rank" else rank ^ 1
    tlx.remote_shmem_store(buffer[0], tl.full((32,), 0, tl.int32) + rank, other)
    if DROP != "second barrier":
        tlx.cluster_barrier()
    tl.store(out_ptr + tl.program_id(0) * 32 + tl.arange(0, 32), tlx.local_load(buffer[0]))


@pytest.mark.parametrize("drop", ["", "first barrier"])  # the compiler puts the first one
@pytest.mark.parametrize("schedule", POLICIES)
def test_remote_store(schedule, drop):
    out = np.full((4, 32), -1, np.int32)
    result = tlx_xdsl.interpret(exchange, 4, out, drop, schedule=schedule, **PAIR)
    np.testing.assert_array_equal(out, np.array([1, 0, 1, 0])[:, None].repeat(32, 1))
    assert list(result.warnings) == []


@pytest.mark.parametrize("schedule", POLICIES)
@pytest.mark.parametrize(
    ("drop", "message"),
    [
        ("second barrier", r"reads 'buffer\[0\]', and nothing orders it after the default|read before it is written"),
        ("rank", "there is no CTA 2 in a cluster of 2"),
    ],
)
def test_remote_store_that_is_wrong(drop, message, schedule):
    with pytest.raises(Fault, match=message):
        tlx_xdsl.interpret(exchange, 2, np.zeros((2, 32), np.int32), drop, schedule=schedule, **PAIR)


@tlx_xdsl.jit
def push(out_ptr, DROP: tl.constexpr = ""):
    """Each CTA copies its buffer to the other one's, which signals when that has come."""
    rank = tlx.cluster_cta_rank()
    source = tlx.local_alloc((64,), tl.float32, 1)
    target = tlx.local_alloc((64,), tl.float32, 1)
    full = tlx.alloc_barriers(1)
    read = tlx.alloc_barriers(1)
    tlx.barrier_expect_bytes(full[0], 256)
    tlx.cluster_barrier()
    tlx.local_store(source[0], tl.full((64,), 1.0, tl.float32) + rank)
    if DROP != "proxy fence":
        tlx.fence_async_shared()
    tlx.async_remote_shmem_copy(target[0], source[0], rank ^ 1, full[0])
    if DROP != "full":
        tlx.barrier_wait(full[0], 0)
    result = tlx.local_load(target[0])
    if DROP != "arrive":
        tlx.barrier_arrive(read[0], 1, remote_cta_rank=rank ^ 1)
    if DROP != "read":
        tlx.barrier_wait(read[0], 0)
    tlx.local_store(source[0], tl.zeros((64,), tl.float32))
    tl.store(out_ptr + tl.program_id(0) * 64 + tl.arange(0, 64), result)


@pytest.mark.parametrize("schedule", POLICIES)
def test_remote_copy(schedule):
    out = np.zeros((2, 64), np.float32)
    result = tlx_xdsl.interpret(push, 2, out, schedule=schedule, **PAIR)
    np.testing.assert_array_equal(out, np.array([[2], [1]]).repeat(64, 1))
    assert list(result.warnings) == []


@pytest.mark.parametrize("schedule", POLICIES)
@pytest.mark.parametrize(
    ("drop", "kind", "message"),
    [
        ("proxy fence", Fault, "the remote copy.* reads 'source.*without a proxy fence"),
        ("full", Fault, "'target.*(nothing orders it after the remote copy|read before it is written)"),
        ("arrive", Deadlock, "waits at 'read"),
        ("read", Fault, r"writes 'source\[0\]', and nothing orders it after the remote copy"),
    ],
)
def test_remote_copy_that_is_wrong(drop, kind, message, schedule):
    with pytest.raises(kind, match=message):
        tlx_xdsl.interpret(push, 2, np.zeros((2, 64), np.float32), drop, schedule=schedule, **PAIR)


# --- the end of a thread block --------------------------------------------------------------------------------------


@tlx_xdsl.jit
def last_words(END: tl.constexpr):
    """CTA 0 arrives at a barrier of CTA 1, which does not wait there."""
    bars = tlx.alloc_barriers(1, 2)
    tlx.cluster_barrier()
    with tlx.async_tasks(no_ending_cluster_sync=True):
        with tlx.async_task("default"):
            if tlx.cluster_cta_rank() == 0:
                tlx.barrier_arrive(bars[0], 2, remote_cta_rank=1)
        with tlx.async_task(num_warps=4):
            tl.device_assert(True)
    if END:
        tlx.cluster_barrier()


@tlx_xdsl.jit
def last_words_without_tasks():
    """The compiler has the cluster wait at the end."""
    bars = tlx.alloc_barriers(1, 2)
    if tlx.cluster_cta_rank() == 0:
        tlx.barrier_arrive(bars[0], 2, remote_cta_rank=1)


@pytest.mark.parametrize("schedule", POLICIES)
def test_a_thread_block_must_live_as_long_as_others_use_its_memory(schedule):
    with pytest.raises(Fault, match="the memory of CTA 1 is used, and nothing keeps that CTA from ending before"):
        tlx_xdsl.interpret(last_words, 2, False, schedule=schedule, **PAIR)
    tlx_xdsl.interpret(last_words, 2, True, schedule=schedule, **PAIR)
    tlx_xdsl.interpret(last_words_without_tasks, 2, schedule=schedule, **PAIR)


# --- the barrier of the cluster -------------------------------------------------------------------------------------


@tlx_xdsl.jit
def in_tasks(ALL: tl.constexpr):
    """PTX waits for all threads of the cluster that have not exited: those of partitions, too."""
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tlx.cluster_barrier()
        with tlx.async_task(num_warps=1):
            if ALL:
                tlx.cluster_barrier()


@pytest.mark.parametrize("schedule", POLICIES)
def test_all_tasks_meet_at_the_barrier_of_the_cluster(schedule):
    tlx_xdsl.interpret(in_tasks, 2, True, schedule=schedule, **PAIR)
    message = "waits at the barrier of the cluster, at which partition 0 of CTA 0, partition 0 of CTA 1 must still"
    with pytest.raises(Deadlock, match=message):
        tlx_xdsl.interpret(in_tasks, 2, False, schedule=schedule, **PAIR)


def test_a_thread_block_that_has_ended_is_not_waited_for():
    @tlx_xdsl.jit
    def one_leaves(STAYS: tl.constexpr):
        if tlx.cluster_cta_rank() == 0:
            tlx.cluster_barrier()
        elif STAYS:
            bars = tlx.alloc_barriers(1, 1)
            tlx.barrier_wait(bars[0], 0)

    tlx_xdsl.interpret(one_leaves, 2, False, **PAIR)
    with pytest.raises(Deadlock, match="waits at the barrier of the cluster, at which the default task of CTA 1 must"):
        tlx_xdsl.interpret(one_leaves, 2, True, **PAIR)


TEXT = """
#bar = #ttg.swizzled_shared<{{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}}>
#smem = #ttg.shared_memory
!here = !ttg.memdesc<1xi64, #bar, #smem, mutable>
!there = !ttg.memdesc<1xi64, #bar, #tlx.shared_cluster_memory, mutable>
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90",
                   "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @f() {{
    %c0 = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %bar = ttg.local_alloc : () -> !here
    ttng.init_barrier %bar, 1 : !here
    {sync}
    %rank = tlx.cluster_cta_rank
    %other = arith.xori %rank, %one : i32
    %there = tlx.map_to_remote %bar, %other : !here -> !there
    tlx.arrive_remote %there, 1 : !there
    ttng.wait_barrier %bar, %c0 : !here
    tt.return
  }}
}}
"""
FENCE = "tlx.fence_mbarrier_init_cluster"
RELAXED = "ttng.cluster_arrive {relaxed = true} ttng.cluster_wait"


@pytest.mark.parametrize(
    ("enough", "less"),
    [
        ("ttng.cluster_arrive {relaxed = false} ttng.cluster_wait", RELAXED),
        (f"{FENCE} {RELAXED}", RELAXED),
        (
            "nvvm.fence.mbarrier.init nvvm.cluster.arrive.relaxed nvvm.cluster.wait",
            "nvvm.cluster.arrive.relaxed nvvm.cluster.wait",
        ),
        (
            "nvvm.cluster.arrive {aligned} nvvm.cluster.wait {aligned}",
            "nvvm.cluster.arrive.relaxed {aligned} nvvm.cluster.wait {aligned}",
        ),
        (
            'nvvm.inline_ptx "barrier.cluster.arrive.aligned;" nvvm.inline_ptx "barrier.cluster.wait.acquire.aligned;"',
            'nvvm.inline_ptx "barrier.cluster.arrive.relaxed.aligned;" '
            'nvvm.inline_ptx "barrier.cluster.wait.acquire.aligned;"',
        ),
        (
            'nvvm.inline_ptx "fence.mbarrier_init.release.cluster;" '
            'nvvm.inline_ptx "barrier.cluster.arrive.relaxed;" nvvm.inline_ptx "barrier.cluster.wait;"',
            'nvvm.inline_ptx "barrier.cluster.arrive.relaxed;" nvvm.inline_ptx "barrier.cluster.wait;"',
        ),
    ],
)
def test_the_cluster_sees_initialised_barriers(enough, less):
    interpret_text(TEXT.format(sync=enough), 2, [], cluster=(2, 1, 1), jobs=1)
    with pytest.raises(Fault, match="nothing orders its initialisation"):
        interpret_text(TEXT.format(sync=less), 2, [], cluster=(2, 1, 1), jobs=1)


@pytest.mark.parametrize("schedule", POLICIES)
@pytest.mark.parametrize(
    ("sync", "message"),
    [
        ("", "nothing orders that after the start of CTA ."),
        (FENCE, "nothing orders that after the start of CTA ."),
        ('nvvm.inline_ptx "barrier.cluster.arrive.relaxed;" nvvm.cluster.wait', "nothing orders its initialisation"),
        (RELAXED, "is used, but nothing orders its initialisation before that"),
        (f"{RELAXED} {FENCE}", "is used, but nothing orders its initialisation before that"),
        ("ttng.cluster_wait", "waits at the cluster's barrier without having arrived there"),
        ("ttng.cluster_arrive ttng.cluster_arrive", "arrives at the cluster's barrier again without having waited"),
    ],
)
def test_barriers_that_the_cluster_does_not_see_are_reported(sync, message, schedule):
    with pytest.raises(Fault, match=message):
        interpret_text(TEXT.format(sync=sync), 2, [], cluster=(2, 1, 1), schedule=schedule, jobs=1)


# --- tensors that span a cluster ------------------------------------------------------------------------------------


@tlx_xdsl.jit
def spanning(x_ptr, y_ptr):
    at = tl.arange(0, 256)
    tl.store(y_ptr + at, tl.load(x_ptr + at) + tl.sum(tl.load(x_ptr + at), 0))


def test_thread_blocks_that_hold_one_tensor_are_one_program():
    x, y = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    tlx_xdsl.interpret(spanning, 1, x, y, num_ctas=2, jobs=1)
    np.testing.assert_array_equal(y, x + x.sum())


def test_buffers_of_a_tensor_that_spans_a_cluster_are_refused():
    text = TEXT.format(sync="").replace('"ttg.num-ctas" = 1', '"ttg.num-ctas" = 2')
    text = text.replace("order = [0]}", "order = [0], CGALayout = [[0]]}")
    with pytest.raises(Fault, match="tensors span 2 CTAs here"):
        interpret_text(text, 1, [], jobs=1)


# --- st.async -------------------------------------------------------------------------------------------------------

ST_ASYNC = """
#row = #ttg.blocked<{{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}}>
#flat = #ttg.swizzled_shared<{{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}}>
#smem = #ttg.shared_memory
!buffer = !ttg.memdesc<128xi32, #flat, #smem, mutable>
!barrier = !ttg.memdesc<1xi64, #flat, #smem, mutable>
module attributes {{{ctas}"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @f(%y: !tt.ptr<i32>) {{
    %c0 = arith.constant 0 : i32
    %yes = arith.constant true
    %buffer = ttg.local_alloc : () -> !buffer
    %full = ttg.local_alloc : () -> !barrier
    ttng.init_barrier %full, 1 : !barrier
    ttng.barrier_expect %full, {size}, %yes : !barrier
    %v = tt.make_range {{start = 0 : i32, end = 128 : i32}} : tensor<128xi32, #row>
    ttng.async_shared_store %v, %buffer, %full : tensor<128xi32, #row> -> !buffer, !barrier
    {wait}
    %w = ttg.local_load %buffer : !buffer -> tensor<128xi32, #row>
    %p = tt.splat %y : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>, #row>
    %q = tt.addptr %p, %v : tensor<128x!tt.ptr<i32>, #row>, tensor<128xi32, #row>
    tt.store %q, %w : tensor<128x!tt.ptr<i32>, #row>
    tt.return
  }}
}}
"""
WAIT = "ttng.wait_barrier %full, %c0 : !barrier"


@pytest.mark.parametrize("schedule", POLICIES)
def test_the_bytes_of_a_shared_store_complete_on_its_barrier(schedule):
    y = np.zeros(128, np.int32)
    interpret_text(ST_ASYNC.format(ctas="", size=512, wait=WAIT), 1, [y], schedule=schedule, jobs=1)
    np.testing.assert_array_equal(y, np.arange(128))


@pytest.mark.parametrize(
    ("ctas", "size", "wait", "message"),
    [
        ("", 512, "", r"reads 'buffer', and nothing orders it after the remote store"),
        ("", 1024, WAIT, "waits at 'full' for parity 0, while its phase 0, of parity 0, lacks 512 bytes"),
        ("", 256, WAIT, "256 bytes more arrive on 'full' than were expected"),
        ('"ttg.num-ctas" = 2 : i32, ', 512, WAIT, "tensors span 2 CTAs here"),
    ],
)
def test_a_shared_store_that_goes_wrong(ctas, size, wait, message):
    text = ST_ASYNC.format(ctas=ctas, size=size, wait=wait)
    if ctas:
        # Layouts that span two CTAs.
        text = text.replace("order = [0]", "order = [0], CGALayout = [[1]]").replace("1xi64", "2xi64")
    with pytest.raises(Fault, match=message):
        interpret_text(text, 1, [np.zeros(128, np.int32)], jobs=1)


@tlx_xdsl.jit
def spanning_tasks(y_ptr, BLOCK: tl.constexpr, SUM: tl.constexpr):
    with tlx.async_tasks():
        with tlx.async_task("default"):
            _ = tl.arange(0, BLOCK)
        with tlx.async_task(num_warps=1):
            at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            value = at.to(tl.float32)
            if SUM:
                value += tl.sum(value)
            tl.store(y_ptr + at, value, mask=at < 200)


@pytest.mark.parametrize("stage", ["frontend", "ttgir"])
def test_tasks_work_on_the_elements_of_tensors_that_span_a_cluster(stage):
    y = np.zeros(256, np.float32)
    tlx_xdsl.interpret(spanning_tasks, 2, y, 128, False, num_ctas=2, jobs=1, stage=stage)
    np.testing.assert_array_equal(y, np.where(np.arange(256) < 200, np.arange(256), 0))


def test_each_cta_has_its_part_of_a_spanning_tensor_in_the_text():
    wanted = Specialization({"y_ptr": "*fp32"}, {"BLOCK": 256, "SUM": False}, num_ctas=2)
    text = compile_text(spanning_tasks.source, wanted, triton_version="3.9").ttgir
    assert "warpsPerCTA = [1], order = [0], CGALayout = [[1]]}" in text


def test_what_joins_elements_of_spanning_tensors_is_refused_beside_tlx():
    with pytest.raises(CompilationError, match=r"each element of tensors of one dimension only, found 'tt\.\w+'"):
        tlx_xdsl.interpret(spanning_tasks, 1, np.zeros(256, np.float32), 128, True, num_ctas=2, stage="ttgir")


# --- a cluster of one CTA -------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def to_itself(x_ptr, y_ptr, RANK: tl.constexpr):
    at = tl.arange(0, 64)
    buffer, bars = tlx.local_alloc((64,), tl.float32, 1), tlx.alloc_barriers(1)
    tlx.barrier_expect_bytes(bars[0], 64 * 4)
    tlx.async_remote_shmem_store(dst=buffer[0], src=tl.load(x_ptr + at), remote_cta_rank=RANK, barrier=bars[0])
    tlx.barrier_wait(bars[0], 0)
    tl.store(y_ptr + at, tlx.local_load(buffer[0]))


@pytest.mark.parametrize("rank", [0, 1])
def test_a_launch_without_clusters_reaches_no_cta_by_its_number(rank):
    with pytest.raises(CompilationError, match="Unexpected buffer remote view in 1cta mode"):
        tlx_xdsl.interpret(to_itself, 1, np.zeros(64, np.float32), np.zeros(64, np.float32), rank, stage="ttgir")


@tlx_xdsl.jit
def rank_0_adds(x_ptr, y_ptr, CTAS: tl.constexpr):
    at = tl.arange(0, 64)
    buffers, bars = tlx.local_alloc((64,), tl.float32, CTAS), tlx.alloc_barriers(CTAS)
    for i in tl.static_range(1, CTAS):
        tlx.barrier_expect_bytes(bars[i], 64 * 4)
    tlx.cluster_barrier()
    rank = tlx.cluster_cta_rank()
    own = tl.load(x_ptr + rank * 64 + at)
    if rank != 0:
        tlx.async_remote_shmem_store(dst=buffers[rank], src=own, remote_cta_rank=0, barrier=bars[rank])
    if rank == 0:
        for i in tl.static_range(1, CTAS):
            tlx.barrier_wait(bars[i], 0)
            own += tlx.local_load(buffers[i])
        tl.store(y_ptr + at, own)


@pytest.mark.parametrize("ctas", [1, 2])
def test_a_kernel_for_clusters_of_any_size_runs_without_a_cluster(ctas):
    x, y = np.arange(128, dtype=np.float32), np.zeros(64, np.float32)
    tlx_xdsl.interpret(rank_0_adds, ctas, x, y, ctas, cluster=(ctas, 1, 1), stage="ttgir")
    assert (y == x.reshape(2, 64)[:ctas].sum(0)).all()
