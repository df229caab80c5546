"""Blackwell: two CTAs that work on one product, and products with block scales in tensor memory."""

import ml_dtypes
import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.zoo.arrays import described, numbers, zeros
from tests.zoo.bugs import Cage

# Kernels are read by the frontend, not run by Python.
# pyright: basic


@tlx_xdsl.jit
def pair(a_desc, b_desc, out, STEPS: tl.constexpr, BUG: tl.constexpr):
    """256 x 64 results: each CTA has half of A's rows and half of B's columns, the even one issues for both."""
    rank = tlx.cluster_cta_rank()
    is_even = rank == 0
    a = tlx.local_alloc((128, 64), tl.float16, 2)
    b = tlx.local_alloc((64, 32), tl.float16, 2)
    acc = tlx.local_alloc((128, 64), tl.float32, 1, tlx.storage_kind.tmem)
    full = tlx.alloc_barriers(2)
    empty = tlx.alloc_barriers(2)
    done = tlx.alloc_barriers(1)
    if BUG != "right: no entry barrier":
        tlx.fence_mbarrier_init_cluster()
        tlx.cluster_barrier()
    with tlx.async_tasks():
        with tlx.async_task("default"):
            if BUG != "odd one does not wait" or is_even:
                tlx.barrier_wait(done[0], 0)  # at: never committed
            rows = rank * 128 + tl.arange(0, 128)[:, None]
            values = tlx.local_load(acc[0])  # at: odd one does not wait, commit for one
            tl.store(out + rows * 64 + tl.arange(0, 64)[None, :], values)
        with tlx.async_task(num_warps=1):
            for k in range(STEPS):
                slot, phase = tlx.get_bufidx_phase(k, 2)
                tlx.barrier_wait(full[slot], phase, is_even)  # at: bytes at home
                tlx.async_dot(  # at: odd one does not wait
                    a[slot], b[slot], acc[0], use_acc=k > 0, pred=is_even, mBarriers=[empty[slot]], two_ctas=True
                )
            if BUG == "commit for one":
                tlx.tcgen05_commit(done[0])
            elif BUG != "never committed":
                tlx.tcgen05_commit(done[0], two_ctas=True)
        with tlx.async_task(num_warps=1):
            for k in range(STEPS):
                slot, phase = tlx.get_bufidx_phase(k, 2)
                if BUG != "odd one does not ask" or is_even:
                    tlx.barrier_wait(empty[slot], phase ^ 1)
                if BUG == "bytes of one":
                    tlx.barrier_expect_bytes(full[slot], (128 + 32) * 64 * 2, is_even)
                elif BUG == "both expect":
                    tlx.barrier_expect_bytes(full[slot], 2 * (128 + 32) * 64 * 2)  # at: both expect
                else:
                    tlx.barrier_expect_bytes(full[slot], 2 * (128 + 32) * 64 * 2, is_even)
                # at: bytes of one, odd one does not ask
                tlx.async_descriptor_load(a_desc, a[slot], [rank * 128, k * 64], full[slot], two_ctas=True)
                if BUG == "bytes at home":
                    tlx.async_descriptor_load(b_desc, b[slot], [k * 64, rank * 32], full[slot])
                else:
                    # at: bytes of one
                    tlx.async_descriptor_load(b_desc, b[slot], [k * 64, rank * 32], full[slot], two_ctas=True)


PAIR = (
    Cage(
        pair,
        lambda: (
            described(numbers(256, 192), 128, 64),
            described(numbers(192, 64), 64, 32),
            zeros(256 * 64, dtype="float32"),
        ),
        grid=2,
        constants={"STEPS": 3},
        options={"cluster": (2, 1, 1), "target": "sm_100a"},
    )
    .bug("odd one does not wait", "commit", "'acc.0.*(nothing orders it after|read before it is written)")
    .bug("commit for one", "commit of a pair", "'acc.0.*(nothing orders it after|read before it is written)")
    .bug("never committed", "commit", "deadlock: the default task of CTA 0 waits at 'done.0.")
    .bug("odd one does not ask", "wait missing", "of CTA 1 writes 'a.0.*(nothing orders|in flight)")
    .bug("bytes of one", "remote bytes", "bytes more arrive on 'full.0.*too few")
    .bug("both expect", "remote bytes", "too many arrivals on 'full.0. of CTA 1'")
    .bug("bytes at home", "remote bytes", "'full.0.* of CTA 0'.*lacks 4096 bytes")
    .clean(BUG="right: no entry barrier")
    .clean(STEPS=1)
)


@tlx_xdsl.jit
def scaled(a_desc, b_desc, scales_desc, out, STEPS: tl.constexpr, BUG: tl.constexpr):
    """Scales of 32 elements each go by shared memory to tensor memory, where one buffer serves all steps."""
    a = tlx.local_alloc((128, 128), tl.float8e4nv, 2)
    b = tlx.local_alloc((128, 128), tl.float8e4nv, 2)
    scales = tlx.local_alloc((32, 16), tl.uint8, 2)
    acc = tlx.local_alloc((128, 128), tl.float32, 1, tlx.storage_kind.tmem)
    a_scale = tlx.local_alloc((128, 4), tl.uint8, 1, tlx.storage_kind.tmem)
    b_scale = tlx.local_alloc((128, 4), tl.uint8, 1, tlx.storage_kind.tmem)
    full = tlx.alloc_barriers(2)
    empty = tlx.alloc_barriers(2)
    read = tlx.alloc_barriers(1)
    done = tlx.alloc_barriers(1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            if BUG == "parity of the last read":
                # Steps 0 and 2 have the same parity: this passes after the first one.
                tlx.barrier_wait(read[0], STEPS - 1 & 1)  # at: parity of the last read
            elif BUG != "not done":
                tlx.barrier_wait(done[0], 0)
            rows = tl.arange(0, 128)[:, None] * 128
            values = tlx.local_load(acc[0])  # at: not done
            tl.store(out + rows + tl.arange(0, 128)[None, :], values)
        with tlx.async_task(num_warps=1):
            for k in range(STEPS):
                slot, phase = tlx.get_bufidx_phase(k, 2)
                if BUG != "not loaded":
                    tlx.barrier_wait(full[slot], phase)
                if BUG != "scales in use":
                    tlx.barrier_wait(read[0], k & 1 ^ 1)
                if BUG != "never copied":
                    tlx.tmem_copy(scales[slot], a_scale[0])  # at: scales in use, not loaded
                tlx.tmem_copy(scales[slot], b_scale[0])
                tlx.async_dot_scaled(  # at: never copied, not done, parity of the last read
                    a[slot], tlx.local_trans(b[slot]), acc[0], a_scale[0], "e4m3", b_scale[0], "e4m3",
                    use_acc=k > 0, mBarriers=[empty[slot], read[0]],
                )  # fmt: skip
            tlx.tcgen05_commit(done[0])
        with tlx.async_task(num_warps=1):
            for k in range(STEPS):
                slot, phase = tlx.get_bufidx_phase(k, 2)
                tlx.barrier_wait(empty[slot], phase ^ 1)
                if BUG == "without the scales":
                    tlx.barrier_expect_bytes(full[slot], 2 * 128 * 128)
                else:
                    tlx.barrier_expect_bytes(full[slot], 2 * 128 * 128 + 512)
                tlx.async_descriptor_load(a_desc, a[slot], [0, k * 128], full[slot])
                tlx.async_descriptor_load(b_desc, b[slot], [0, k * 128], full[slot])
                tlx.async_descriptor_load(scales_desc, scales[slot], [k * 32, 0], full[slot])  # at: without the scales


def eights(*shape):
    return numbers(*shape, dtype=ml_dtypes.float8_e4m3fn)


SCALED = (
    Cage(
        scaled,
        lambda: (
            described(eights(128, 384), 128, 128),
            described(eights(128, 384), 128, 128),
            described(np.full((96, 16), 127, np.uint8), 32, 16),
            zeros(128 * 128, dtype="float32"),
        ),
        constants={"STEPS": 3},
        options={"target": "sm_100a"},
    )
    .bug("scales in use", "operand in flight", "tcgen05.cp of partition 0 writes 'a_scale.*(in flight|nothing orders)")
    .bug("never copied", "unwritten", "'a_scale.*is read before it is written")
    .bug("not loaded", "wait missing", "'scales.0.*(read before it is written|nothing orders it after the TMA load)")
    .bug("without the scales", "too few bytes", "512 bytes more arrive on 'full.0.*too few")
    .bug("not done", "commit", "'acc.*(read before it is written|nothing orders it after)")
    .bug("parity of the last read", "parity", "'(acc|read).0.*nothing orders")
)

CAGES = (PAIR, SCALED)
