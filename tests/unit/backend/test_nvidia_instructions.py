"""Kernels with what the NVIDIA passes write as PTX, through the installed Triton and ptxas."""

# covers: tlx-lower-bulk-copies, tlx-lower-clc, tlx-lower-device-descriptors, tlx-lower-special-instructions
# covers: tlx-lower-votes, tlx.clc, ttng.cluster

import re

import pytest
from backend_kernels import needs_triton

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.gallery.synchronisation import clc_gemm
from tests.unit.interpreter.operations import test_device_descriptors
from tests.unit.interpreter.synchronisation import test_bulk, test_clc, test_votes
from tests.unit.transforms.nvidia import test_lowered_instructions
from tlx_xdsl.backend import BackendOptions, BackendResult, compile_ttgir
from tlx_xdsl.runtime.build import compile_kernel
from tlx_xdsl.runtime.driver.compilation import Specialization

pytestmark = needs_triton


def compiled(kernel, signature, constexprs=None, target="sm_90a", **options) -> BackendResult:
    """The result of compiling a kernel of these tests to a device binary."""
    return compile_kernel(kernel, Specialization(signature, constexprs or {}, target, **options))


def guarded(ptx: str, instruction: str) -> int:
    """Count the instructions that are under the guard of one thread."""
    return len(re.findall(rf"@p {re.escape(instruction)}", ptx))


def test_bulk_copies_are_issued_by_one_thread_after_a_barrier():
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "SIZE": "i32"}
    ptx = compiled(test_bulk.double, signature, {"OFFSET": 0, "EXPECT": 512, "DROP": ""}).ptx
    assert guarded(ptx, "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes") == 1
    assert guarded(ptx, "cp.async.bulk.global.shared::cta.bulk_group") == 1
    assert guarded(ptx, "cp.async.bulk.commit_group") == 1
    store = ptx.index("cp.async.bulk.global.shared::cta")
    # However Triton has written the buffer.
    written = max(ptx.rfind(text, 0, store) for text in ("st.shared", "stmatrix"))
    assert ptx.rfind("bar.sync", 0, store) > written > 0
    # The threads that have issued no store wait for the one that has.
    assert re.search(r"cp\.async\.bulk\.wait_group(?:\.read)?\s+0;\s*(?://[^\n]*\s*|\.loc[^\n]*\s*)*bar\.sync", ptx)


def test_buffers_and_barriers_reached_by_addresses_do_not_share_memory():
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "SIZE": "i32"}
    result = compiled(test_bulk.double, signature, {"OFFSET": 0, "EXPECT": 512, "DROP": ""})
    assert result.metadata.shared >= 2 * 1024 + 8


def test_arrivals_of_every_thread_have_no_guard():
    ptx = compiled(test_lowered_instructions.warp_barrier, {"x_ptr": "*fp32", "y_ptr": "*fp32"}, {"ARRIVALS": 1}).ptx
    # With a condition, and without.
    assert len(re.findall(r"mbarrier\.arrive\.shared::cta\.b64 _, \[%r\d+\];", ptx)) == 2
    assert "mbarrier.init.shared::cta.b64" in ptx
    assert re.search(r"mbarrier\.init\.shared::cta\.b64 \[[^\]]*\], 128;", ptx)


def test_small_instructions():
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*i64"}
    ptx = compiled(test_lowered_instructions.small_things, signature).ptx
    assert len(re.findall(r"mov\.u64 \S+ %clock64;", ptx)) == 2
    for text in ("prefetch.global.L1", "@p prefetch.global.L2", "fence.acq_rel.gpu;", "fence.acq_rel.sys;"):
        assert text in ptx


def test_votes_count():
    ptx = compiled(test_lowered_instructions.votes, {"x_ptr": "*fp32", "out_ptr": "*i32"}).ptx
    assert ptx.count("vote.sync.ballot.b32") == 2


@pytest.mark.parametrize("selects", [False, True])
def test_decisions_by_votes(selects):
    signature = {"factor_ptr": "*fp32:16", "x_ptr": "*fp32:16"}
    result = compiled(test_votes.rescale, signature, {"SELECTS": selects}, "sm_100a")
    # Triton 3.6 votes again where it wants another layout.
    assert "vote.sync.ballot.b32" in result.ptx


@pytest.mark.parametrize(
    ("element", "instruction"), [("fp16", "f16x2"), ("bf16", "bf16x2"), ("fp8e4nv", "e4m3x4"), ("fp8e5", "e5m2x4")]
)
def test_stochastic_rounding(element, instruction):
    signature = {"x_ptr": "*fp32", "bits_ptr": "*i32", "y_ptr": f"*{element}"}
    ptx = compiled(test_lowered_instructions.round_at_random, signature, {"N": 1024}, "sm_100a").ptx
    assert f"cvt.rs.satfinite.{instruction}.f32" in ptx


def test_descriptors_of_the_device():
    signature = {"x_ptr": "*fp16", "y_ptr": "*fp16", "M": "i32", "N": "i32", "STRIDE": "i32"}
    result = compiled(test_device_descriptors.through, signature, {"USE": "memory"})
    assert result.metadata.global_scratch_size >= 256
    assert result.ptx.count("fence.proxy.tensormap::generic.acquire.gpu") == 2
    assert "tensormap.replace.tile.box_dim" in result.ptx


def test_cluster_launch_control():
    ptx = compiled(test_clc.count, {"count_ptr": "*i32", "owner_ptr": "*i32", "X": "i32"}, {"DROP": ""}, "sm_100a").ptx
    request = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128"
    assert len(re.findall(rf"@%?p\d* {re.escape(request)}", ptx)) == 1
    assert "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128" in ptx
    assert ptx.count("clusterlaunchcontrol.query_cancel.get_first_ctaid::") in (2, 3)
    assert "multicast" not in ptx


def test_persistent_gemm_with_cluster_launch_control():
    signature = {
        "a_desc": "tensordesc<fp16[128, 64]>", "b_desc": "tensordesc<fp16[64, 128]>",
        "c_desc": "tensordesc<fp16[128, 128]>", "count_ptr": "*i32", "M": "i32", "N": "i32", "K": "i32",
    }  # fmt: skip
    constexprs = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "NUM_STAGES": 3}
    result = compiled(clc_gemm.matmul, signature, constexprs, "sm_100a")
    assert (result.resources.spill_store_bytes, result.resources.spill_load_bytes) == (0, 0)
    assert result.ptx.count("clusterlaunchcontrol.try_cancel") == 1


@tlx_xdsl.jit
def prefetch_tile(desc, x_ptr, N: tl.constexpr):
    """A tile that takes two boxes, and its descriptor."""
    tlx.async_descriptor_prefetch_tensor(desc, [0, tl.load(x_ptr)], pred=tl.load(x_ptr) < N)
    tile = tlx.local_alloc((64, 128), tl.float16, 1)
    full = tlx.alloc_barriers(1)
    tlx.barrier_expect_bytes(full[0], 64 * 128 * 2)
    tlx.async_descriptor_load(desc, tile[0], [0, 0], full[0])
    tlx.barrier_wait(full[0], 0)


def test_tiles_are_prefetched_box_by_box():
    ptx = compiled(prefetch_tile, {"desc": "tensordesc<fp16[64, 128]>", "x_ptr": "*i32"}, {"N": 7}).ptx
    assert guarded(ptx, "cp.async.bulk.prefetch.tensor.2d.L2.global.tile") == 2


@tlx_xdsl.jit
def tasks_with_registers(x_ptr, DEFAULT: tl.constexpr, OTHERS: tl.constexpr):
    """Three tasks of four warps."""
    with tlx.async_tasks(exclusive=True, mbarrier_try_wait_suspend_ns=1000):
        with tlx.async_task("default", registers=DEFAULT):
            tl.store(x_ptr, 0)
        with tlx.async_task(num_warps=4, registers=OTHERS):
            tl.store(x_ptr + 1, 1)
        with tlx.async_task(num_warps=4, registers=OTHERS):
            tl.store(x_ptr + 2, 2)


def register_counts(ptx: str) -> set[int]:
    """Return the register counts that warp groups set."""
    return {int(number) for number in re.findall(r"setmaxnreg\.\w+\.sync\.aligned\.u32\s+(\d+);", ptx)}


@pytest.mark.parametrize(
    ("default", "others", "maxnreg", "expected"),
    [
        # (65536 / 384 = 170, in steps of 8: 168) * 3 are for all three.
        (24, 240, None, {24, 240}),
        (184, 160, None, {184, 160}),
        (152, None, None, {152, 176}),
        (None, 160, None, {184, 160}),
        (104, 40, 64, {112, 40}),
    ],
)
def test_registers_of_tasks(default, others, maxnreg, expected):
    constexprs = {"DEFAULT": default, "OTHERS": others}
    ptx = compiled(tasks_with_registers, {"x_ptr": "*i32"}, constexprs, maxnreg=maxnreg).ptx
    assert expected <= register_counts(ptx)
    assert re.search(rf"\.maxnreg {maxnreg or 168}\b", ptx)


@pytest.mark.parametrize("maxnreg", [None, 96])
@pytest.mark.parametrize("warps", [(4, 4), (4, 1), (2, 1), (1, 1, 1, 1, 1), (8, 2)])
def test_what_is_left_for_the_default_task_is_what_triton_gives_it(warps, maxnreg):
    partitions = "\n".join(
        f"partition{number}(%p{number}: !tt.ptr<i32>) num_warps({count}) {{\n"
        f"%c{number} = arith.constant {number} : i32\n tt.store %p{number}, %c{number} : !tt.ptr<i32>\n"
        "ttg.warp_return\n}"
        for number, count in enumerate(warps)
    )
    requests = ", ".join(["40"] * len(warps))
    limit = "" if maxnreg is None else f', "ttg.maxnreg" = {maxnreg} : i32'
    text = f"""
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90",
                   "ttg.threads-per-warp" = 32 : i32{limit}}} {{
  tt.func public @k(%p: !tt.ptr<i32>) {{
    ttg.warp_specialize(%p) attributes {{requestedRegisters = array<i32: {requests}>}}
    default {{
      ttg.warp_yield
    }}
    {partitions} : (!tt.ptr<i32>) -> ()
    tt.return
  }}
}}"""
    groups = -(-sum(warps) // 4)
    threads = 128 * (1 + groups)
    per_thread = maxnreg or min(65536 // threads // 8 * 8, 256)
    left = min((per_thread * threads - 40 * 128 * groups) // 128 // 8 * 8, 256)
    assert {left, 40} <= register_counts(compile_ttgir(text, BackendOptions(), stages="ptx").ptx)


@pytest.mark.parametrize(("columns", "dim"), [(64, 0), (128, 1)])
def test_parts_at_places_that_are_known_at_run_time(columns, dim):
    signature = {"x_ptr": "*fp16", "y_ptr": "*fp16", "COUNT": "i32"}
    assert compiled(test_lowered_instructions.parts, signature, {"N": columns, "DIM": dim}).cubin


def test_cluster_launch_control_of_a_cluster():
    wanted = Specialization({"count_ptr": "*i32"}, {"CONSUMERS": 4, "DROP": ""}, "sm_100a", cluster=(2, 1, 1))
    ptx = compile_kernel(test_clc.in_clusters, wanted).ptx
    request = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
    assert guarded(ptx, f"{request}.multicast::cluster::all.b128") == 1
