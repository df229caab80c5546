"""PTX of the NVIDIA passes, in the interpreter: the same results as the operations that it stands for."""

# covers: tlx-lower-bulk-copies, tlx-lower-clc, tlx-lower-device-descriptors, tlx-lower-special-instructions
# covers: tlx-lower-votes, tlx.clc

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.gallery.synchronisation import cluster_runs
from tests.unit.interpreter.operations import test_device_descriptors
from tests.unit.interpreter.synchronisation import test_bulk, test_clc
from tlx_xdsl.interpreter.faults import Deadlock, Fault
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.runtime.simulate.interpret import interpret_text

LAST = {"stage": "ttgir", "jobs": 1}
HOPPER = {"target": "sm_90a"} | LAST
BLACKWELL = {"target": "sm_100a"} | LAST


@pytest.mark.parametrize("schedule", POLICIES)
@pytest.mark.parametrize("size", [16, 512, 1024])
def test_bulk_copies(size, schedule):
    x, y = np.arange(256, dtype=np.float32), np.full(256, -1, np.float32)
    result = tlx_xdsl.interpret(test_bulk.double, 1, x, y, size, 0, size, "", schedule=schedule, **HOPPER)
    np.testing.assert_array_equal(y[: size // 4], 2 * x[: size // 4])
    assert (y[size // 4 :] == -1).all()
    assert not result.warnings


@pytest.mark.parametrize(
    ("drop", "message"),
    [
        ("wait", "nothing orders it after the TMA load"),
        ("store wait", "nothing orders it after the TMA store"),
        ("reuse", "nothing orders it after the TMA store"),
    ],
)
def test_mistakes_with_bulk_copies_are_still_found(drop, message):
    x, y = np.arange(256, dtype=np.float32), np.full(256, -1, np.float32)
    with pytest.raises(Fault, match=message):
        tlx_xdsl.interpret(test_bulk.double, 1, x, y, 512, 0, 512, drop, **HOPPER)


def test_a_fence_that_is_missing_is_put():
    x, y = np.arange(256, dtype=np.float32), np.full(256, -1, np.float32)
    tlx_xdsl.interpret(test_bulk.double, 1, x, y, 1024, 0, 1024, "fence", **HOPPER)
    np.testing.assert_array_equal(y, 2 * x)


@pytest.mark.parametrize("schedule", POLICIES)
def test_cluster_launch_control(schedule):
    times, owners = np.zeros((3, 5), np.int32), np.full((3, 5), -1, np.int32)
    result = tlx_xdsl.interpret(test_clc.count, (5, 3), times, owners, 5, schedule=schedule, **BLACKWELL)
    np.testing.assert_array_equal(times, 1)
    assert len(np.unique(owners)) < owners.size
    assert list(result.warnings) == []


@pytest.mark.parametrize("drop", ["wait", "bytes", "overwrite", "twice"])
def test_mistakes_with_cluster_launch_control_are_still_found(drop):
    times, owners = np.zeros((1, 1), np.int32), np.zeros((1, 1), np.int32)
    with pytest.raises(Fault):
        tlx_xdsl.interpret(test_clc.count, (1, 1), times, owners, 1, drop, **BLACKWELL)


@pytest.mark.parametrize("schedule", POLICIES)
def test_persistent_gemm(schedule):
    result = cluster_runs.launch_control(m=256, n=104, k=72).run(schedule=schedule, **LAST)
    assert not result.warnings


@pytest.mark.parametrize("use", ["", "memory"])
def test_descriptors_in_memory(use):
    x = np.random.default_rng(0).standard_normal((70, 56)).astype(np.float16)
    y = np.zeros_like(x)
    tlx_xdsl.interpret(test_device_descriptors.through, 1, x, y, 70, 50, 56, use, **HOPPER)
    np.testing.assert_array_equal(y[:, :50], x[:, :50])
    assert not y[:, 50:].any()


@tlx_xdsl.jit
def votes(x_ptr, out_ptr):
    """Vote which threads hold a positive number, and which are in the first program."""
    i = tl.arange(0, 256)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tlx.vote_ballot_sync(0xFFFFFFFF, x > 0))
    tl.store(out_ptr + 256, tlx.vote_ballot_sync(-1, tl.program_id(0) == 0))


def voters() -> tuple[np.ndarray, np.ndarray]:
    """Numbers for `votes`, and the bits of all their elements and of the program.

    With one element in each of 128 threads at a time, thread t holds the elements t and t + 128.
    """
    x = np.full(256, -1.0, np.float32)
    x[[3, 35, 67, 128 + 3, 128 + 31, 128 + 63, 128 + 64, 128 + 127]] = 1
    held = (x > 0).reshape(2, 4, 32).any(0)
    bits = (held << np.arange(32)).sum(1).astype(np.uint32)
    return x, np.concatenate([np.tile(np.repeat(bits, 32), 2), [0xFFFFFFFF]]).astype(np.uint32)


def test_votes():
    x, expected = voters()
    out = np.zeros(257, np.int32)
    tlx_xdsl.interpret(votes, 1, x, out, **HOPPER)
    assert sorted(set(expected.tolist())) == [1 << 0 | 1 << 3, 1 << 31, 1 << 31 | 1 << 3, 0xFFFFFFFF]
    np.testing.assert_array_equal(out.view(np.uint32), expected)


@tlx_xdsl.jit
def small_things(x_ptr, y_ptr, out_ptr):
    """Instructions that change no number."""
    at = tl.arange(0, 64)
    tlx.prefetch(x_ptr + at, mask=at < 7)
    tlx.prefetch(x_ptr, level="L1")
    before = tlx.clock64()
    x = tl.load(x_ptr + at)
    tlx.fence("gpu")
    tlx.fence("sys")
    tl.store(y_ptr + at, x)
    tl.store(out_ptr, tlx.clock64() - before)


def test_clock_fences_and_prefetches():
    x, y, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32), np.full(1, -1, np.int64)
    tlx_xdsl.interpret(small_things, 1, x, y, out, **HOPPER)
    np.testing.assert_array_equal(x, y)
    assert out[0] >= 0


@tlx_xdsl.jit
def warp_barrier(x_ptr, y_ptr, ARRIVALS: tl.constexpr):
    """One task hands a buffer to another one; each of its threads arrives."""
    buffer = tlx.local_alloc((128,), tl.float32, 1)
    full = tlx.alloc_warp_barrier(1, num_warps=4, num_arrivals=ARRIVALS)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tlx.local_store(buffer[0], tl.load(x_ptr + tl.arange(0, 128)))
            tlx.barrier_arrive(full[0], pred=tl.load(x_ptr) < 0)
            tlx.barrier_arrive(full[0])
        with tlx.async_task(num_warps=4):
            tlx.barrier_wait(full[0], 0)
            tl.store(y_ptr + tl.arange(0, 128), tlx.local_load(buffer[0]))


@pytest.mark.parametrize("schedule", POLICIES)
def test_arrivals_of_every_thread(schedule):
    x, y = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    tlx_xdsl.interpret(warp_barrier, 1, x, y, 1, schedule=schedule, **HOPPER)
    np.testing.assert_array_equal(x, y)
    x -= 1
    tlx_xdsl.interpret(warp_barrier, 1, x, y, 2, schedule=schedule, **HOPPER)
    np.testing.assert_array_equal(x, y)
    with pytest.raises(Deadlock, match="lacks 128 of 384 arrivals"):
        tlx_xdsl.interpret(warp_barrier, 1, x, y, 3, schedule=schedule, **HOPPER)


@tlx_xdsl.jit
def round_at_random(x_ptr, bits_ptr, y_ptr, N: tl.constexpr):
    """Stochastic rounding to the type of y."""
    at = tl.arange(0, N)
    y = tlx.stoch_round(tl.load(x_ptr + at), y_ptr.dtype.element_ty, tl.load(bits_ptr + at))
    tl.store(y_ptr + at, y)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_stochastic_rounding(name):
    import ml_dtypes

    dtype = np.dtype(np.float16) if name == "float16" else np.dtype(getattr(ml_dtypes, name))
    rng = np.random.default_rng(3)
    count = 4096
    bits = rng.integers(-(2**31), 2**31, count).astype(np.int32)
    # A quarter of the way between two neighbours, numbers that are exact, and one that is too large.
    low = np.float64(1.5)
    high = low + float(ml_dtypes.finfo(dtype).eps)
    x = np.full(count, low + (high - low) / 4, np.float32)
    x[:8] = [0, 1, -2, 3.4e38, -3.4e38, 0.5, np.inf, -0.0]
    y = np.zeros(count, dtype)
    tlx_xdsl.interpret(round_at_random, 1, x, bits, y, count, **BLACKWELL)
    largest = float(ml_dtypes.finfo(dtype).max)
    np.testing.assert_array_equal(y[:8].astype(np.float64), np.clip(x[:8], -largest, largest).astype(np.float64))
    rest = y[8:].astype(np.float64)
    assert set(np.unique(rest)) == {low, high}
    assert abs((rest == high).mean() - 0.25) < 0.03


def test_only_one_thread_may_issue_a_bulk_copy():
    text = """
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
  tt.func public @kernel(%p: !tt.ptr<f32>) {
    %b = ttg.local_alloc : () -> !ttg.memdesc<64xf32, #s, #smem, mutable>
    %s = builtin.unrealized_conversion_cast %b : !ttg.memdesc<64xf32, #s, #smem, mutable> to !llvm.struct<(!llvm.ptr<3>, i32)>
    %q = llvm.extractvalue %s[0] : !llvm.struct<(!llvm.ptr<3>, i32)>
    %a = llvm.ptrtoint %q : !llvm.ptr<3> to i32
    %g = tt.ptr_to_int %p : !tt.ptr<f32> -> i64
    nvvm.inline_ptx "cp.async.bulk.global.shared::cta.bulk_group [$0], [$1], 16;" ro(%g, %a : i64, i32)
    tt.return
  }
}
"""  # noqa: E501
    with pytest.raises(Fault, match=r"128 threads issue .cp\.async\.bulk\.global"):
        interpret_text(text, 1, [np.zeros(64, np.float32)])


@tlx_xdsl.jit
def parts(x_ptr, y_ptr, COUNT, N: tl.constexpr, DIM: tl.constexpr):
    """A buffer, part by part in a loop: rows, or columns as wide as the swizzle."""
    tile = tlx.local_alloc((128, N), tl.float16, 2)
    at = tl.arange(0, 128)[:, None] * N + tl.arange(0, N)[None, :]
    tlx.local_store(tile[1], tl.load(x_ptr + at))
    for i in range(COUNT):
        if DIM == 0:
            part = tlx.local_slice(tile[1], [i * 32, 0], [32, N])
            here = (i * 32 + tl.arange(0, 32)[:, None]) * N + tl.arange(0, N)[None, :]
        else:
            part = tlx.local_slice(tile[1], [0, i * 64], [128, 64])
            here = tl.arange(0, 128)[:, None] * N + tl.arange(0, 64)[None, :] + i * 64
        tl.store(y_ptr + here, tlx.local_load(part))


@pytest.mark.parametrize(("columns", "dim"), [(64, 0), (128, 1)])
def test_parts_at_places_that_are_known_at_run_time(columns, dim):
    x = np.random.default_rng(0).standard_normal((128, columns)).astype(np.float16)
    y = np.zeros_like(x)
    tlx_xdsl.interpret(parts, 1, x, y, columns // 64 if dim else 4, columns, dim, **HOPPER)
    np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("schedule", POLICIES)
@pytest.mark.parametrize("size", [2, 4])
def test_cluster_launch_control_of_a_cluster(size, schedule):
    times = np.zeros(12, np.int32)
    options = {"cluster": (size, 1, 1), "schedule": schedule} | BLACKWELL
    result = tlx_xdsl.interpret(test_clc.in_clusters, 12, times, 2 * size, **options)
    np.testing.assert_array_equal(times, 101)
    assert list(result.warnings) == []
