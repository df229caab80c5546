"""Proxy fences are found missing where the interpreter finds them missing, and only there."""

# covers: tlx-insert-proxy-fences

import itertools

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, UnitAttr

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.gallery.synchronisation.zoo.kernels import CASES, Case
from tests.gallery.synchronisation.zoo.running import run_plan
from tlx_xdsl.analysis.proxy_hazards import missing_fences
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.dialects.ttng import ArriveBarrierOp, AsyncCopyMbarrierArriveOp, FenceAsyncSharedOp
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.interpreter.plan import make_plan
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.runtime.driver.compilation import Specialization, frontend_module
from tlx_xdsl.runtime.simulate.interpret import interpret_module
from tlx_xdsl.runtime.simulate.options import Options
from tlx_xdsl.transforms.nvidia.proxies.insert_fences import InsertProxyFencesPass


def without_fences(module: ModuleOp) -> tuple[ModuleOp, int]:
    """A clone without the user's fences, and how many there were."""
    clone = module.clone()
    fences = [op for op in clone.walk() if isinstance(op, FenceAsyncSharedOp)]
    for fence in fences:
        fence.detach()
        fence.erase()
    return clone, len(fences)


def insert(module: ModuleOp) -> ModuleOp:
    """The module with the fences that were missing."""
    InsertProxyFencesPass().apply(make_context(), module)
    return module


def fences(module: ModuleOp) -> int:
    """Fences in the module."""
    return sum(isinstance(op, FenceAsyncSharedOp) for op in module.walk())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kernels_with_their_fences_get_no_more(case: Case):
    assert missing_fences(case.module()) == []
    if not case.name.startswith("cluster"):
        # Those are lowered for a launch in clusters only.
        assert missing_fences(case.module("ttgir")) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kernels_without_their_fences_run_clean_after_the_pass(case: Case):
    module, count = without_fences(case.module())
    if case.name != "gemm_pipelined":
        # There the fence stands after cp.async, for which a run asks for none (zoo/benign.py).
        assert run_plan(make_plan(module.clone()), case.make(), "round-robin").kind == "fault"
    assert len(missing_fences(module)) == count
    insert(module)
    assert missing_fences(module) == []
    for policy in POLICIES:
        assert run_plan(make_plan(module), case.make(), policy).kind == "right"


@tlx_xdsl.jit
def hand_over(  # noqa: C901
    x_ptr, y_desc, y_ptr, flag_ptr, SYNC: tl.constexpr, FENCE: tl.constexpr, USE: tl.constexpr, TURNS: tl.constexpr
):  # fmt: skip
    """One task writes tiles, another one copies or multiplies them."""
    tile = tlx.local_alloc((64, 64), tl.float16, 1)
    full = tlx.alloc_barriers(1)
    each = tlx.alloc_warp_barrier(1, num_warps=4)
    free = tlx.alloc_barriers(1)
    at = tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]
    if SYNC == "begin":
        tlx.local_store(tile[0], tl.load(x_ptr + at))
        if FENCE == "writer":
            tlx.fence_async_shared()
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for turn in range(TURNS):
                if SYNC != "begin":
                    at_1 = tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]
                    if SYNC != "end":
                        tlx.barrier_wait(free[0], (turn & 1) ^ 1)
                    tlx.local_store(tile[0], tl.load(x_ptr + at_1))
                    if FENCE == "writer":
                        tlx.fence_async_shared()
                if SYNC == "mbarrier":
                    tlx.barrier_arrive(full[0])
                elif SYNC == "warp barrier":
                    tlx.barrier_arrive(each[0])
                elif SYNC == "named barrier":
                    tlx.named_barrier_arrive(9, 256)
                elif SYNC == "commit":
                    tlx.tcgen05_commit(full[0])
                elif SYNC == "flag":
                    tl.atomic_xchg(flag_ptr, turn + 1)
                elif SYNC == "release":
                    tl.atomic_xchg(flag_ptr, turn + 1, sem="release")
        with tlx.async_task(num_warps=4):
            for turn in range(TURNS):
                if SYNC == "mbarrier" or SYNC == "commit":
                    tlx.barrier_wait(full[0], turn & 1)
                elif SYNC == "flag" or SYNC == "release":
                    while tl.atomic_add(flag_ptr, 0) < turn + 1:
                        pass
                elif SYNC == "warp barrier":
                    tlx.barrier_wait(each[0], turn & 1)
                elif SYNC == "named barrier":
                    tlx.named_barrier_wait(9, 256)
                if SYNC != "end":
                    if FENCE == "reader":
                        tlx.fence_async_shared()
                    if USE == "tma":
                        tlx.async_descriptor_store(y_desc, tile[0], [0, 0])
                        tlx.async_descriptor_store_wait(0)
                    elif USE == "bulk":
                        tlx.async_store(y_ptr, tile[0], 8192)
                        tlx.async_descriptor_store_wait(0)
                    else:
                        acc = tlx.async_dot(tile[0], tile[0])
                        acc = tlx.async_dot_wait(0, acc)
                        at_2 = tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]
                        tl.store(y_ptr + at_2, acc.to(tl.float16))
                tlx.barrier_arrive(free[0])
    if SYNC == "end":
        if FENCE == "reader":
            tlx.fence_async_shared()
        tlx.async_descriptor_store(y_desc, tile[0], [0, 0])
        tlx.async_descriptor_store_wait(0)


SYNCS = ("mbarrier", "warp barrier", "named barrier", "begin", "commit", "flag", "release")


def module_of(sync: str, fence: str, use: str, turns: int) -> ModuleOp:
    """`hand_over` after the frontend."""
    signature = {"x_ptr": "*fp16", "y_desc": "tensordesc<fp16[64, 64]>", "y_ptr": "*fp16", "flag_ptr": "*i32"}
    constexprs = {"SYNC": sync, "FENCE": fence, "USE": use, "TURNS": turns}
    target = "sm_100a" if sync == "commit" else "sm_90a"
    return frontend_module(hand_over.source, Specialization(signature, constexprs, target=target))


def run(module: ModuleOp, use: str, schedule: str) -> None:
    """Run `hand_over` and compare."""
    x = np.random.default_rng(1).standard_normal((64, 64)).astype(np.float16)
    y = np.zeros_like(x)
    interpret_module(
        module.clone(),
        1,
        [x, tlx_xdsl.TensorDescriptor.from_tensor(y, [64, 64]), y, np.zeros(1, np.int32)],
        Options(schedule=schedule, jobs=1),
    )
    if use == "dot":
        np.testing.assert_allclose(y, x.astype(np.float32) @ x.astype(np.float32), atol=0.05, rtol=0.01)
    else:
        # In bulk the bytes come in the order of their addresses, which a swizzle mixes in each row.
        np.testing.assert_array_equal(np.sort(y, 1), np.sort(x, 1))


PAIRS = [pair for pair in itertools.product(SYNCS, ("tma", "bulk", "dot")) if pair != ("commit", "dot")]
"""wgmma and tcgen05 are never on one GPU."""


@pytest.mark.parametrize(("sync", "use"), PAIRS)
def test_hand_over(sync, use):
    turns = 1 if sync == "begin" else 3
    for fence in ("writer", "reader"):
        module = module_of(sync, fence, use, turns)
        assert missing_fences(module) == []
        run(module, use, "round-robin")
    module = module_of(sync, "none", use, turns)
    with pytest.raises(Fault, match="without a proxy fence"):
        run(module, use, "round-robin")
    # The writer fences, which is the side of what it knows to have written.
    (place,) = missing_fences(module)
    assert place.name in (
        "ttng.arrive_barrier", "tlx.arrive_per_thread", "tlx.named_barrier_arrive", "ttg.warp_specialize",
        "ttng.tc_gen5_commit", "tt.atomic_rmw",
    )  # fmt: skip
    insert(module)
    for schedule in POLICIES:
        run(module, use, schedule)


@tlx_xdsl.jit
def copy_over(x_ptr, y_desc):
    """One task brings a tile by `cp.async`, another one copies it by TMA."""
    tile = tlx.local_alloc((64, 64), tl.float16, 1)
    full = tlx.alloc_barriers(1, arrive_count=128)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            at = tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]
            tlx.async_load(x_ptr + at, tile[0])
            tlx.barrier_arrive(full[0], 128)
        with tlx.async_task(num_warps=4):
            tlx.barrier_wait(full[0], 0)
            tlx.async_descriptor_store(y_desc, tile[0], [0, 0])
            tlx.async_descriptor_store_wait(0)


def test_what_cp_async_brings_needs_a_fence_of_the_reader_when_its_end_arrives():
    signature = {"x_ptr": "*fp16", "y_desc": "tensordesc<fp16[64, 64]>"}
    module = frontend_module(copy_over.source, Specialization(signature, {}))
    (arrival,) = (op for op in module.walk() if isinstance(op, ArriveBarrierOp))
    block = arrival.parent
    assert block is not None
    end = AsyncCopyMbarrierArriveOp(operands=[arrival.alloc], properties={"noIncrement": UnitAttr()})
    end.location = arrival.location
    block.insert_op_before(end, arrival)
    arrival.detach()
    arrival.erase()
    x = np.random.default_rng(1).standard_normal((64, 64)).astype(np.float16)

    def copied(schedule):
        y = np.zeros_like(x)
        interpret_module(
            module.clone(), 1, [x, tlx_xdsl.TensorDescriptor.from_tensor(y, [64, 64])],
            Options(schedule=schedule, jobs=1, copy_fences=True),
        )  # fmt: skip
        return y

    with pytest.raises(Fault, match="of the default task has written without a proxy fence"):
        copied("round-robin")
    assert [op.name for op in missing_fences(module)] == ["ttng.async_tma_copy_local_to_global"]
    insert(module)
    for schedule in POLICIES:
        np.testing.assert_array_equal(x, copied(schedule))


@tlx_xdsl.jit
def copied_groups(x_ptr, y_desc, FENCE: tl.constexpr, TURNS: tl.constexpr):
    """A task waits for its copies by group, and stores the tile by TMA."""
    tile = tlx.local_alloc((64, 64), tl.float16, 1)
    at = tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]
    for turn in range(TURNS):
        tlx.async_load_commit_group([tlx.async_load(x_ptr + turn * 4096 + at, tile[0])])
        if FENCE == "too early":
            tlx.fence_async_shared()
        tlx.async_load_wait_group(0)
        if FENCE == "yes":
            tlx.fence_async_shared()
        tlx.async_descriptor_store(y_desc, tile[0], [turn * 64, 0])
        tlx.async_descriptor_store_wait(0)


@pytest.mark.parametrize(("fence", "missing"), [("yes", 0), ("no", 1), ("too early", 1)])
def test_what_cp_async_brings_is_written_when_it_is_waited_for(fence, missing):
    signature = {"x_ptr": "*fp16", "y_desc": "tensordesc<fp16[64, 64]>"}
    module = frontend_module(copied_groups.source, Specialization(signature, {"FENCE": fence, "TURNS": 2}))
    found = missing_fences(module)
    assert [op.name for op in found] == ["ttng.async_tma_copy_local_to_global"] * missing
    x = np.random.default_rng(1).standard_normal((128, 64)).astype(np.float16)
    report = tlx_xdsl.check(
        copied_groups, 1, x, tlx_xdsl.TensorDescriptor.from_tensor(x * 0, [64, 64]), fence, 2, seconds=0
    )
    assert [each.options["stage"] for each in report.findings] == ["frontend"] * missing


def test_the_kernel_goes_on_where_the_default_task_has_been():
    assert missing_fences(module_of("end", "reader", "tma", 1)) == []
    module = module_of("end", "none", "tma", 1)
    assert [op.name for op in missing_fences(module)] == ["ttng.async_tma_copy_local_to_global"]
    run(insert(module), "tma", "random")


@tlx_xdsl.jit
def in_a_loop(x_ptr, y_desc, WRITES: tl.constexpr):
    """A tile that is written before a loop, or in it, and copied in it."""
    tile = tlx.local_alloc((64, 64), tl.float16, 1)
    at = tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]
    x = tl.load(x_ptr + at)
    tlx.local_store(tile[0], x)
    for _turn in range(4):
        if WRITES:
            tlx.async_descriptor_store_wait(0)
            tlx.local_store(tile[0], x)
        tlx.async_descriptor_store(y_desc, tile[0], [0, 0])
    tlx.async_descriptor_store_wait(0)


@pytest.mark.parametrize(
    ("writes", "place"), [(False, "scf.for"), (True, "ttng.async_tma_copy_local_to_global")], ids=["before", "inside"]
)
def test_a_loop_that_writes_nothing_has_its_fence_in_front(writes, place):
    signature = {"x_ptr": "*fp16", "y_desc": "tensordesc<fp16[64, 64]>"}
    module = frontend_module(in_a_loop.source, Specialization(signature, {"WRITES": writes}))
    assert [op.name for op in missing_fences(module)] == [place]
    insert(module)
    assert fences(module) == 1
    x = np.random.default_rng(1).standard_normal((64, 64)).astype(np.float16)
    y = np.zeros_like(x)
    interpret_module(module, 1, [x, tlx_xdsl.TensorDescriptor.from_tensor(y, [64, 64])], Options(jobs=1))
    np.testing.assert_array_equal(x, y)


@tlx_xdsl.jit
def shared_region(x_ptr, y_desc, RELATION: tl.constexpr):
    """Two arrays in one region: one is written by threads, the other one copied by TMA, and then the first one."""
    spec = tlx.storage_alias_spec(storage=tlx.storage_kind.smem)
    tile = tlx.local_alloc((64, 64), tl.float16, 1, reuse=spec)
    other = tlx.local_alloc((64, 64), tl.float16, 1, reuse=spec)
    if RELATION == "shared":
        spec.set_buffer_overlap(tlx.reuse_group(tile, other, group_type=tlx.reuse_group_type.shared))
    else:
        spec.set_buffer_overlap(tlx.reuse_group(tile, other, group_type=tlx.reuse_group_type.distinct))
    full = tlx.alloc_barriers(1)
    at = tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]
    tlx.local_store(tile[0], tl.load(x_ptr + at))
    tlx.barrier_expect_bytes(full[0], 8192)
    tlx.async_descriptor_load(y_desc, other[0], [0, 0], full[0])
    tlx.barrier_wait(full[0], 0)


@pytest.mark.parametrize(("relation", "count"), [("shared", 1), ("distinct", 0)])
def test_arrays_that_overlap_are_one(relation, count):
    signature = {"x_ptr": "*fp16", "y_desc": "tensordesc<fp16[64, 64]>"}
    module = frontend_module(shared_region.source, Specialization(signature, {"RELATION": relation}))
    assert len(missing_fences(module)) == count
