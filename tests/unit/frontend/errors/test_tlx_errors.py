"""Each function of tlx refuses what it can't do, at the line of the call and in words."""

# covers: tlx.barriers, tlx.clc, tlx.cluster, tlx.copies, tlx.memory, tlx.mma, tlx.tasks, tlx.utility

import re
from pathlib import Path

import pytest

from tests.unit.frontend.kernels import load
from tlx_xdsl import CompilationError
from tlx_xdsl.frontend.compile import build_module
from tlx_xdsl.language import tlx
from tlx_xdsl.language.core import builtin_name

ACC = "acc = tlx.local_alloc((128, 128), tl.float32, 1, tlx.storage_kind.tmem)[0]"
SPEC = "spec = tlx.storage_alias_spec()"
ROOM = "room = tlx.allocate_tensor_descriptor(2)"

HOPPER_FAULTS = [
    # allocations and storage aliasing
    ("tlx.storage_alias_spec(3)", "storage must be a tlx.storage_kind, got int"),
    ("tlx.storage_alias_spec(buffer_size_bytes=-100)", "buffer_size_bytes must be positive, got -100"),
    ("tlx.storage_alias_spec(buffer_size_bytes=n)", "buffer_size_bytes must be a compile-time constant"),
    ("tlx.storage_alias_spec(tlx.storage_kind.smemCluster)", "smemCluster storage is not supported"),
    ("tlx.storage_alias_spec(tlx.storage_kind.tmem)", "tlx.storage_alias_spec with tlx.storage_kind.tmem needs tensor memory (sm_100a); target is sm_90a"),
    ("tlx.local_alloc((64, 64), tl.float16, 1, tlx.storage_kind.tmem)", "needs tensor memory (sm_100a)"),
    ("tlx.local_alloc((64, 64), tl.float16, 1, tlx.storage_kind.smemCluster)", "buffers of other CTAs"),
    ("tlx.local_alloc((64, 64), tl.float16, 0)", "'num' must be a constexpr integer of at least 1"),
    ("tlx.local_alloc((64, 64), tl.float16, 1, reuse=7)", "reuse must be a buffered_tensor or storage_alias_spec, got int"),
    ("tlx.local_alloc((64, 64), tl.float16, 1, tlx.storage_kind.tmem, reuse=tile)", "reuse tensor has different storage"),
    ("tlx.local_alloc((64,), tl.float16, 1, layout=7)", "'layout' must be a layout, found the constexpr 7"),
    (
        "tlx.local_alloc((64,), tl.float16, 1, layout=tlx.swizzled_shared_layout_encoding.make_default(2))",
        "'layout' is for 2 dimensions, the buffer has 1",
    ),
    (
        "tlx.local_alloc((64, 64), tl.float16, 1, layout=tlx.tensor_memory_layout_encoding(64, 64))",
        "'layout' must be a layout of shared memory",
    ),
    (
        "tlx.local_alloc((64, 64), tl.float16, 1, layout=tlx.swizzled_layout(3, 2, 3))",
        "2**5 is less than its 64 elements",
    ),
    ("tlx.reuse_group()", "reuse_group requires at least one element"),
    ("tlx.reuse_group(tiles, group_size=0)", "group_size must be a positive integer, got 0"),
    ("tlx.reuse_group(tiles, n)", "reuse_group elements must be buffered_tensor or reuse_group, got tensor"),
    (f"{SPEC}; spec.set_buffer_overlap(tiles)", "overlap_def must be a reuse_group, got buffered_tensor"),
    (f"{SPEC}; spec.set_buffer_overlap(tlx.reuse_group(tiles))", "must be allocated via tlx.storage_alias_local_alloc"),
    # views
    ("tlx.local_view(n, 0)", "must be an array of buffers or mbarriers"),
    ("tlx.local_view(tiles, 2)", "index 2 is outside of 2 buffers"),
    ("tlx.subslice(tile, 0, 16)", "needs tensor memory (sm_100a)"),
    ("tlx.local_slice(tile, (0, 8), (64, 16))", "offset 8 of dimension 1 is no multiple of its size 16"),
    ("tlx.local_slice(tile, (0, 64), (64, 16))", "elements 64 to 79 of dimension 1 are outside of its 64"),
    ("tlx.local_slice(tile, (0,), (64, 16))", "'offset' must be a tuple of 2 offsets"),
    ("tlx.local_trans(tile, (0, 2))", "must be a permutation of the 2 dimensions, found [0, 2]"),
    ("tlx.local_reshape(tile, (64, 32))", "the number of elements must stay"),
    ("tlx.local_reinterpret(tile, tl.float32)", "the buffer has 8192 bytes, fp32[64, 64] takes 16384"),
    # access
    ("tlx.local_load(tiles)", "must be one buffer, such as buf[i], found 2 buffers of type fp16[64, 64]"),
    ("tlx.local_load(tile, token=n)", "'token' must be an async_token"),
    ("tlx.local_store(tile, n)", "'src' must be a block like a buffer of type fp16[64, 64]"),
    ("tlx.local_store(tile, tl.zeros((64, 64), tl.float32))", "fp32[64, 64] (.to(tl.float16) converts it)"),
    ("tl.dot(tile, tile)", "found a buffer of type fp16[64, 64] (tlx.local_load makes a block of a buffer)"),
    ("tlx.local_gather(tile, x.to(tl.int32), 2)", "axis 2 is outside the 2 dimensions"),
    ("tlx.local_scatter(tile, x, n, 0)", "'indices' must be a block of integers, found a runtime value of type int32"),
    ("tlx.tmem_copy(tile, tile)", "needs tensor memory (sm_100a)"),
    ("tlx.zeros((3,), tl.float16)", "must hold powers of two, found [3]"),
    # barriers
    ("tlx.alloc_barriers(0)", "'num_barriers' must be a constexpr integer of at least 1"),
    ("tlx.alloc_barriers(1, 1 << 20)", "the arrival count must be at least 1 and at most 1048575"),
    ("tlx.alloc_warp_barrier(n)", "'num_barriers' must be a constexpr integer"),
    ("tlx.barrier_expect_bytes(bars[0], -1)", "'size' must be a constexpr integer of at least 0"),
    ("tlx.barrier_wait(bars, 0)", "'bar' must be one mbarrier, such as bars[i], found an array of 2 mbarriers"),
    ("tlx.barrier_wait(tlx.remote_view(bars[0], 1), 0)", "must be an mbarrier of this CTA, found a remote view"),
    ("tlx.barrier_arrive(tile)", "'bar' must be an mbarrier, found a buffer"),
    ("tlx.barrier_arrive(tlx.remote_view(bars[0], 1), remote_cta_rank=1)", "which names its CTA already"),
    ("w = tlx.alloc_warp_barrier(1); tlx.barrier_arrive(w[0], 2)", "each thread arrives once at a warp barrier, found 2"),
    ("tlx.named_barrier_wait(16, 128)", "a thread block has the named barriers 0 to 15, found 16"),
    ("tlx.named_barrier_wait(1, n)", "'arrive_count' must be a constexpr integer"),
    ("tlx.named_barrier_arrive(1, 100)", "counts 32 to 1024 threads in whole warps, found 100"),
    ("tlx.fence('cta')", "'scope' must be one of 'gpu', 'sys', 'async_shared', 'async_global', found 'cta'"),
    ("tlx.fence_async_shared(1)", "too many positional arguments"),
    ("tlx.fence_mbarrier_init_cluster(1)", "too many positional arguments"),
    # clusters
    ("tlx.cluster_cta_rank(0)", "too many positional arguments"),
    ("tlx.cluster_size_1d(0)", "too many positional arguments"),
    ("tlx.cluster_barrier(0)", "too many positional arguments"),
    ("tlx.remote_view(tile, 1)", "data goes to another CTA by a remote store or copy"),
    ("tlx.remote_shmem_store(tile, n, 1)", "'src' must be a block like a buffer"),
    ("tlx.async_remote_shmem_store(tile, x, 1, n)", "'barrier' must be an mbarrier"),
    ("tlx.async_remote_shmem_copy(tile, tlx.local_slice(tile, (0, 0), (32, 64)), 1, bars[0])", "'src' must be like a buffer of type fp16[64, 64]"),
    # copies
    ("tlx.async_load(ptr, tile)", "'result' must take the elements of"),
    ("tlx.async_load(n, tile)", "'src' must be a block of pointers"),
    ("tlx.async_load(ptr + tl.arange(0, 64), vector, other=1)", "'other' needs a mask"),
    ("tlx.async_load(ptr + tl.arange(0, 64), vector, barrier=bars[0])", "'barrier' is for bulk copies"),
    ("tlx.async_load(ptr, vector, bulk=True)", "'barrier' must be an mbarrier"),
    ("tlx.async_load(ptr, vector, bulk=True, bulk_size=8, barrier=bars[0])", "a positive multiple of 16 bytes, found 8"),
    ("tlx.async_load(ptr, vector, bulk=True, mask=n > 0, barrier=bars[0])", "a bulk copy takes no 'mask'"),
    ("tlx.async_load(ptr + tl.arange(0, 64), vector, cache_modifier='.xx')", "'cache_modifier' must be one of"),
    ("tlx.async_load_commit_group([n])", "'tokens' must hold async_tokens"),
    ("tlx.async_load_wait_group(-1)", "'pendings' must be a constexpr integer of at least 0"),
    ("tlx.async_store(ptr, vector, 256)", "the buffer has 128 bytes, found 256"),
    ("tlx.async_store(ptr + tl.arange(0, 64), vector, 16)", "'dst_global_ptr' must be one pointer"),
    ("tlx.prefetch(n)", "'pointer' must be a pointer or a block of pointers"),
    ("tlx.prefetch(ptr, 'L3')", "'level' must be one of 'L1', 'L2', found 'L3'"),
    ("tlx.prefetch(ptr, tensormap=True)", "must be a tensor descriptor"),
    # TMA
    ("tlx.async_descriptor_load(ptr, tile, [0, 0], bars[0])", "by its type, tensordesc<fp16[128, 64]>: TensorDesc"),
    ("tlx.async_descriptor_load(desc, vector, [0, 0], bars[0])", "'result' must match a tensor descriptor"),
    ("tlx.async_descriptor_load(desc, tile, [0], bars[0])", "'offsets' must be a tuple of 2 offsets"),
    ("tlx.async_descriptor_load(desc, tile, [0, 0], bars[0], multicast_targets=[16])", "a CTA's rank is 0 to 15"),
    ("tlx.async_descriptor_store(desc, vector, [0, 0])", "'source' must match a tensor descriptor"),
    ("tlx.async_descriptor_store(desc, tile, [0, 0], store_reduce='xor')", "TMA has no 'xor' of f16"),
    ("tlx.async_descriptor_store_wait(n)", "'pendings' must be a constexpr integer"),
    ("tlx.async_descriptor_prefetch_tensor(desc, [0])", "'offsets' must be a tuple of 2 offsets"),
    ("tlx.allocate_tensor_descriptor(0)", "'num' must be a constexpr integer of at least 1"),
    (f"{ROOM}; tlx.make_tensor_descriptor(room, ptr, [n], [1], [64])", "must be the place of one descriptor, such as ptr[i]"),
    ("tlx.make_tensor_descriptor(None, ptr, [n, n], [n, 2], [64, 64])", "the last stride must be 1, found 2"),
    ("tlx.make_tensor_descriptor(None, ptr, [n, n], [20, 1], [64, 64])", "16-byte aligned, found 20 elements of type fp16"),
    ("tlx.make_tensor_descriptor(None, ptr, [n, n], [n, 1], [64, 4])", "at least 16 bytes, found 4 elements of fp16"),
    ("tlx.make_tensor_descriptor(None, ptr, [n], [1], [64], 'edge')", "'padding_option' must be one of 'zero', 'nan'"),
    ("tlx.reinterpret_tensor_descriptor(n, [64], tl.float16)", "must be room for a tensor descriptor"),
    # tensor cores
    ("tlx.async_dot(tile, vector)", "expected A of M x K and B of K x N"),
    ("tlx.async_dot(tile, tile, n)", "'acc' must be a block of type fp32[64, 64]"),
    ("tlx.async_dot(tile, tile, mBarriers=[bars[0]])", "tlx.async_dot with 'mBarriers' needs tcgen05 (sm_100a); target is sm_90a"),
    ("tlx.async_dot(tile, tile, two_ctas=True)", "tlx.async_dot with 'two_ctas' needs tcgen05 (sm_100a)"),
    ("tlx.async_dot(tile, tile, input_precision='bf16x3')", "'input_precision' must be one of"),
    ("tlx.async_dot_wait(0, n)", "'inp' must be the result of an async_dot"),
    ("tlx.async_dot_scaled(tile, tile, tile, tile, 'e4m3', tile, 'e4m3')", "tlx.async_dot_scaled needs tcgen05 (sm_100a)"),
    ("tlx.dot_scaled(x, x, 'e4m3', x, x, 'e4m3', tiles_per_warp=[2])", "'tiles_per_warp' exists for AMD GPUs only"),
    ("tlx.tcgen05_commit(bars[0])", "tlx.tcgen05_commit needs tcgen05 (sm_100a)"),
    # tasks
    ("tlx.async_tasks()", "stands in a `with` statement"),
    ("tlx.async_task()", "stands in a `with` statement"),
    ("tlx.async_task_replica_id()", "there is no replica outside of a task"),
    # cluster launch control
    ("tlx.clc_create_context(1)", "needs cluster launch control (sm_100a or later)"),
    ("tlx._alloc_clc_responses(1)", "needs cluster launch control (sm_100a or later)"),
    # layouts
    ("tlx.require_layout(x, 7)", "'layout' must be a layout, found the constexpr 7"),
    ("tlx.require_layout(n, tlx.layout('(32,4):(1,32)'))", "'x' must be a block of numbers or a buffer"),
    ("tlx.require_layout(x, tlx.layout('(32,4):(1,32)'))", "the layout is for 32 threads, this code is run by 4 warps of 32"),
    ("tlx.require_layout(x, tlx.layout('(128,2):(1,1)'))", "carry into each other, which no layout of Triton can express"),
    ("tlx.require_layout(x, tlx.layout('(128,64):(64,1)'))", "the layout reaches element 8191, the block has 4096 elements"),
    ("tlx.layout('(32,4):(1,32')", "layout: ValueError: expected ')' at position 5 of '(1,32'"),
    ("tlx.swizzled_shared_layout_encoding(3, 1, 1, (1, 0))", "vectorSize must be a power of two, got 3"),
    ("tlx.release_layout(n)", "'x' must be a block of numbers or a buffer"),
    ("tlx.dump_layout(n)", "'x' must be a block of numbers or a buffer"),
    ("tlx.assert_same_layout(x, 7)", "'rhs' must be a layout"),
    # utility
    ("tlx.thread_id(3)", "a block of threads has axes 0, 1 and 2, found 3"),
    ("tlx.clock64(0)", "too many positional arguments"),
    ("tlx.stoch_round(x, tl.float16, x)", "tlx.stoch_round needs stochastic rounding (sm_100a)"),
    ("tlx.vote_ballot_sync(-1, x)", "'pred' must be an int1 or a block of int1"),
    ("tlx.dtype_of(bars)", "'v' must be a tensor, a buffer or a descriptor"),
    ("tlx.size_of(n)", "'dtype' must be an element type"),
    ("tlx.get_fp8_format_name(tl.float16)", "only supports tl.float8e5 and tl.float8e4nv"),
    ("tlx.get_bufidx_phase(n, 0)", "'NUM_BUFFERS' must be a constexpr integer of at least 1"),
    ("tlx.assume_uniform()", "missing a required argument: 'value'"),
    # AMD's
    ("tlx.buffer_load_to_local(ptr)", "tlx.buffer_load_to_local exists for AMD GPUs only"),
    ("tlx.require_amd_wmma_layout(x)", "tlx.require_amd_wmma_layout exists for AMD GPUs only"),
]  # fmt: skip

BLACKWELL_FAULTS = [
    ("tlx.local_alloc((64,), tl.float32, 1, tlx.storage_kind.tmem)", "TMEM allocations must be at least 2D, got rank 1"),
    ("tlx.local_alloc((32, 64), tl.float32, 1, tlx.storage_kind.tmem)", "has 64 rows or a multiple of 128, found [32, 64]"),
    ("tlx.local_alloc((128, 512), tl.float32, 2, tlx.storage_kind.tmem)", "takes 1024 columns of tensor memory"),
    (f"{SPEC}; tlx.local_alloc((64, 64), tl.float32, 1, tlx.storage_kind.tmem, reuse=spec)",
     "storage_alias_spec storage (smem) doesn't match local_alloc storage (tmem)"),
    ("tlx.subslice(tile, 0, 16)", "'local_allocated_buffer' must be in tensor memory"),
    (f"{ACC}; tlx.subslice(acc, 128, 64)", "are outside of its 128"),
    (f"{ACC}; tlx.local_slice(acc, (0, n), (128, 64))", "a part of a buffer in tensor memory has constexpr offsets"),
    (f"{ACC}; tlx.local_trans(acc)", "'input' must be in shared memory, found a buffer of type fp32[128, 128] in tensor memory"),
    (f"{ACC}; tlx.tmem_copy(tile, acc)", "'dst' must hold elements of type fp16"),
    (f"{ACC}; tlx.async_dot(tile, tile, acc)", "'acc' must have the shape [64, 64]"),
    ("tlx.async_dot(tile, tile)", "tlx.async_dot without 'acc' needs wgmma (sm_90a); target is sm_100a"),
    (f"{ACC}; tlx.async_dot(tile, tile, acc, two_ctas=True)", "[64, 128], because each CTA of a pair has half of B's columns"),
    (f"{ACC}; tlx.async_dot(x, tile, acc)", "note: tcgen05 takes A from a buffer in shared or tensor memory"),
    (f"{ACC}; tlx.async_dot_wait(0, x)", "tlx.async_dot_wait needs wgmma (sm_90a); target is sm_100a"),
    ("tlx.tcgen05_commit(bars)", "'mBarrier' must be one mbarrier"),
    (f"{ACC}; tlx.async_dot_scaled(tile, tile, acc, acc, 'e3m2', acc, 'e4m3')", "'A_format' must be one of 'e2m1', 'e4m3', 'e5m2'"),
    ("tlx.clc_create_context(0)", "'num_consumers' must be a constexpr integer of at least 1"),
    ("tlx.clc_producer(n, 0)", "'context' must be a CLC context"),
    ("tlx.clc_consumer(n, 0)", "'context' must be a CLC context"),
    ("c = tlx.clc_create_context(1); tlx.clc_consumer(c, 0, k=1)", "index 1 is outside of an array of 1 mbarriers"),
    ("tlx._alloc_clc_responses(0)", "'num_responses' must be a constexpr integer of at least 1"),
    ("r = tlx._alloc_clc_responses(1); tlx._clc_issue(r, bars[0])", "must be one response, such as responses[i]"),
    ("tlx._clc_query(n)", "'response' must be a CLC response"),
    ("tlx.stoch_round(x, tl.float16, x)", "'src' must be a block of tl.float32"),
    ("tlx.stoch_round(x.to(tl.float32), tl.float64, x.to(tl.int32))", "'dst_ty' must be tl.float16"),
]  # fmt: skip

FAULTS = [(90, *fault) for fault in HOPPER_FAULTS] + [(100, *fault) for fault in BLACKWELL_FAULTS]
SIGNATURE = {"ptr": "*fp16", "desc": "tensordesc<fp16[64, 64]>", "n": "i32"}
PRELUDE_LINES = 7


def compile_faulty(tmp_path, statement, capability=90):
    source = f"""@tlx_xdsl.jit
def kernel(ptr, desc, n):
    bars = tlx.alloc_barriers(2)
    tiles = tlx.local_alloc((64, 64), tl.float16, 2)
    tile, vector = tiles[0], tlx.local_alloc((64,), tl.float16, 1)[0]
    x = tl.full((64, 64), n, tl.float16)
    {statement}
"""
    kernel = load(tmp_path, source).kernel
    return build_module(kernel.source, SIGNATURE, {}, capability=capability)


@pytest.mark.parametrize(("capability", "statement", "message"), FAULTS, ids=lambda value: str(value)[:60])
def test_a_fault_is_located(tmp_path, capability, statement, message):
    with pytest.raises(CompilationError, match=re.escape(message)) as error:
        compile_faulty(tmp_path, statement, capability)
    assert error.value.location.line == 4 + PRELUDE_LINES
    assert "\n" not in error.value.message


def functions() -> list[str]:
    """The names of tlx that a kernel calls."""
    return [name for name in tlx.__all__ if (builtin_name(getattr(tlx, name)) or "").startswith("tlx.")]


@pytest.mark.parametrize("name", functions())
def test_every_function_has_a_fault_here_and_a_filecheck_test(name):
    call = re.compile(rf"tlx\.{name}\(")
    assert any(call.search(statement) for _, statement, _ in FAULTS)
    tests = Path(__file__).parents[3] / "filecheck" / "frontend"
    assert any(call.search(path.read_text()) for path in tests.glob("tlx_*.py"))


def test_the_prelude_is_no_fault(tmp_path):
    compile_faulty(tmp_path, "pass")


@pytest.mark.parametrize(
    ("statement", "cause"),
    [
        ("tlx.storage_alias_spec(buffer_size_bytes=0)", ValueError),
        ("tlx.reuse_group()", ValueError),
        ("tlx.reuse_group(n)", TypeError),
        ("tlx.storage_alias_spec().set_buffer_overlap(7)", TypeError),
        ("tlx.local_alloc((64,), tl.float16, 1, reuse=7)", ValueError),
        ("tlx.swizzled_shared_layout_encoding.make_default(0)", ValueError),
    ],
)
def test_the_exception_of_the_library_is_the_cause(tmp_path, statement, cause):
    with pytest.raises(CompilationError) as error:
        compile_faulty(tmp_path, statement)
    assert isinstance(error.value.__cause__, cause)
