"""Kernels for the proofs: each is right where `BUG` is `none`, and has a mistake where it names one."""

# Kernels are read by the frontend, not run by Python.
# pyright: basic

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def ring(src, dst, T, SLOTS: tl.constexpr, BUG: tl.constexpr):
    """A task loads blocks to a ring, another one stores them."""
    tile = tlx.local_alloc((16, 16), tl.float32, SLOTS)
    full = tlx.alloc_barriers(SLOTS)
    empty = tlx.alloc_barriers(SLOTS, arrive_count=2 if BUG == "count" else 1)
    wrong_depth: tl.constexpr = SLOTS + 1 if BUG == "depth" else SLOTS
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for t in range(T):
                slot = t % SLOTS
                if BUG != "no wait for empty":
                    tlx.barrier_wait(empty[slot], ((t // wrong_depth) & 1) ^ 1)
                tlx.barrier_expect_bytes(full[slot], 512 if BUG == "bytes" else 1024)
                tlx.async_descriptor_load(src, tile[slot], [t * 16, 0], full[slot])
        with tlx.async_task(num_warps=4):
            rows = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
            for t in range(T):
                slot = t % SLOTS
                phase = t & 1 if BUG == "phase" else (t // SLOTS) & 1
                if BUG != "no wait for full":
                    tlx.barrier_wait(full[slot], phase)
                tl.store(dst + t * 256 + rows, tlx.local_load(tile[slot]))
                if BUG != "no arrival":
                    tlx.barrier_arrive(empty[slot])


@tlx_xdsl.jit
def strided_ring(src, dst, K, STEP, SLOTS: tl.constexpr, BUG: tl.constexpr):
    """Loops with a step that is an argument; each slot is given back a turn late."""
    tile = tlx.local_alloc((16, 16), tl.float32, SLOTS)
    full = tlx.alloc_barriers(SLOTS)
    empty = tlx.alloc_barriers(SLOTS)
    step = STEP * 16
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for k in range(0, K, step):
                t = k // step
                tlx.barrier_wait(empty[t % SLOTS], ((t // SLOTS) & 1) ^ 1)
                tlx.barrier_expect_bytes(full[t % SLOTS], 1024)
                tlx.async_descriptor_load(src, tile[t % SLOTS], [k, 0], full[t % SLOTS])
        with tlx.async_task(num_warps=4):
            rows = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
            for k in range(0, K, step):
                t = k // step
                tlx.barrier_wait(full[t % SLOTS], (t // SLOTS) & 1)
                tl.store(dst + t * 256 + rows, tlx.local_load(tile[t % SLOTS]))
                late = k >= 0 if BUG == "first turn" else k > 0
                tlx.barrier_arrive(empty[(t + SLOTS - 1) % SLOTS], pred=late)


@tlx_xdsl.jit
def apart(A, B, BUG: tl.constexpr):
    """Wait for nothing where each of two numbers is larger than the other."""
    above, below = tl.maximum(A - B, 0), tl.maximum(B - A, 0)
    barriers = tlx.alloc_barriers(2)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tlx.barrier_arrive(barriers[0])
            if above > 0 if BUG == "one of them" else (above > 0) & (below > 0):
                tlx.barrier_wait(barriers[1], 0)
        with tlx.async_task(num_warps=4):
            tlx.barrier_wait(barriers[0], 0)


@tlx_xdsl.jit
def turns(T, BUG: tl.constexpr):
    """Two tasks take turns at named barriers."""
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for _ in range(T):
                tlx.named_barrier_wait(8, 256)
                tlx.named_barrier_arrive(9, 256)
            if BUG != "last call":
                tlx.named_barrier_wait(8, 256)
        with tlx.async_task(num_warps=4):
            tlx.named_barrier_arrive(8, 256)
            for _ in range(T + 1 if BUG == "one more" else T):
                tlx.named_barrier_wait(9, 256)
                tlx.named_barrier_arrive(8, 256)


@tlx_xdsl.jit
def polls(flag, T):
    """Poll global memory, whose contents the proof does not follow."""
    full = tlx.alloc_barriers(1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            if tl.atomic_add(flag, 0) == 1:
                tlx.barrier_wait(full[0], 0)
        with tlx.async_task(num_warps=4):
            tlx.barrier_arrive(full[0])


@tlx_xdsl.jit
def by_thread(T):
    """Threads of a task have their own indices."""
    full = tlx.alloc_barriers(1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            if tlx.thread_id(0) < T:
                tlx.barrier_wait(full[0], 0)
        with tlx.async_task(num_warps=4):
            if tlx.thread_id(0) < T:
                tlx.barrier_arrive(full[0])


@tlx_xdsl.jit
def below_zero(T):
    """The remainder of -1 is -1, so that the parity is none: a proof must not round down."""
    full = tlx.alloc_barriers(1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for t in range(T):
                tlx.barrier_wait(full[0], (t - 1) % 2)
        with tlx.async_task(num_warps=4):
            for _ in range(T):
                tlx.barrier_arrive(full[0])
