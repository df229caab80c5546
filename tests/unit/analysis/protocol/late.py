"""Kernels that are right for few turns of their loops, and wrong later: a prover must not take one for right.

Each kernel is right where `BUG` is empty. `LATE` says for each mistake from how many turns on a run shows it.
"""

# Kernels are read by the frontend, not run by Python.
# pyright: basic

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def parities(n, SLOTS: tl.constexpr, BUG: tl.constexpr):
    """Two tasks and a ring of barriers: how the number of a phase is computed."""
    full = tlx.alloc_barriers(SLOTS)
    empty = tlx.alloc_barriers(SLOTS)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            count = tl.zeros((), tl.int8) if BUG == "counter of 8 bits" else 0
            for t in range(n):
                if BUG == "quotient of a negative number":
                    phase = ((t - 2 * SLOTS) // SLOTS) & 1
                elif BUG == "remainder of a negative number":
                    phase = (((t - 2 * SLOTS) % (2 * SLOTS)) // SLOTS) & 1
                elif BUG == "multiple of a quotient":
                    phase = ((t - 2 * SLOTS) // SLOTS * 3) & 1
                elif BUG == "negated":
                    phase = ((-t - 1) // SLOTS) & 1
                elif BUG == "8 bits":
                    phase = (t.to(tl.int8) // SLOTS) & 1
                elif BUG == "8 bits without a sign":
                    phase = (t.to(tl.uint8) // SLOTS) & 1
                elif BUG == "16 bits":
                    phase = (t.to(tl.int16) // SLOTS) & 1
                elif BUG == "counter of 8 bits":
                    phase = (count // SLOTS) & 1
                    count = (count + 1).to(tl.int8)
                elif BUG == "large factor":
                    phase = (((t // SLOTS) * 0x5000000) // 0x5000000) & 1
                elif BUG == "large sum":
                    phase = ((t + 0x7FFFFFE0) // SLOTS) & 1
                elif BUG == "one deeper":
                    phase = (t // SLOTS if t < 3 * SLOTS else t // (SLOTS + 1)) & 1
                elif BUG == "late turn":
                    phase = (t // SLOTS if t != 37 else t // SLOTS + 1) & 1
                elif BUG == "late power":
                    phase = (t // SLOTS + t // 64) & 1
                elif BUG == "right: more than needed":
                    phase = (t // SLOTS + 2 * (t // 5)) & 1
                elif BUG == "right: negative, but even":
                    phase = ((t // SLOTS) - 4) & 1
                elif BUG == "right: 8 bits of a remainder":
                    phase = ((t % (4 * SLOTS)).to(tl.int8) // SLOTS) & 1
                else:
                    phase = (t // SLOTS) & 1
                tlx.barrier_wait(full[t % SLOTS], phase)
                tlx.barrier_arrive(empty[t % SLOTS])
        with tlx.async_task(num_warps=4):
            for t in range(n):
                if BUG == "quotient of one turn back":
                    tlx.barrier_wait(empty[t % SLOTS], ((t - SLOTS) // SLOTS) & 1)
                elif BUG == "quotient of a turn back":
                    tlx.barrier_wait(empty[t % SLOTS], (((t - 1) // SLOTS) & 1) ^ 1)
                else:
                    tlx.barrier_wait(empty[t % SLOTS], ((t // SLOTS) & 1) ^ 1)
                tlx.barrier_arrive(full[t % SLOTS])


@tlx_xdsl.jit
def blocks(src, dst, n, SLOTS: tl.constexpr, BUG: tl.constexpr):
    """A ring of blocks between two tasks: what is done in some turns only."""
    tile = tlx.local_alloc((128,), tl.float32, SLOTS)
    full = tlx.alloc_barriers(SLOTS)
    empty = tlx.alloc_barriers(SLOTS)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            i = tl.arange(0, 128)
            for t in range(n):
                is_late: tl.constexpr = BUG == "no wait in turn 11"
                if not is_late or t != 11:
                    tlx.barrier_wait(full[t % SLOTS], (t // SLOTS) & 1)
                if BUG == "reads the next one":
                    tl.store(dst + i, tlx.local_load(tile[(t + t // 9) % SLOTS]))
                elif BUG == "reads again":
                    tl.store(dst + i, tlx.local_load(tile[t % SLOTS]))
                    if t % 8 == 7:
                        tlx.barrier_arrive(empty[t % SLOTS])
                        tl.store(dst + i, tlx.local_load(tile[t % SLOTS]))
                elif BUG == "reads once more":
                    tl.store(dst + i, tlx.local_load(tile[t % SLOTS]))
                    if t == 2 * SLOTS + 1:
                        tl.store(dst + i, tlx.local_load(tile[(t + 1) % SLOTS]))
                else:
                    tl.store(dst + i, tlx.local_load(tile[t % SLOTS]))
                if BUG == "no arrival in turn 9":
                    if t != 9:
                        tlx.barrier_arrive(empty[t % SLOTS])
                elif BUG == "no arrival in every seventh turn":
                    if t % 7 != 6:
                        tlx.barrier_arrive(empty[t % SLOTS])
                elif BUG == "two arrivals in turn 12":
                    tlx.barrier_arrive(empty[t % SLOTS])
                    if t == 12:
                        tlx.barrier_arrive(empty[t % SLOTS])
                elif BUG == "reads again":
                    if t % 8 != 7:
                        tlx.barrier_arrive(empty[t % SLOTS])
                else:
                    tlx.barrier_arrive(empty[t % SLOTS])
            if BUG == "waits for one more":
                if n > 10:
                    tlx.barrier_wait(full[n % SLOTS], (n // SLOTS) & 1)
        with tlx.async_task(num_warps=4):
            i = tl.arange(0, 128)
            for t in range(n - 1 if BUG == "one turn less" else n):
                if BUG == "no wait after turn 10":
                    if t < 10:
                        tlx.barrier_wait(empty[t % SLOTS], ((t // SLOTS) & 1) ^ 1)
                else:
                    tlx.barrier_wait(empty[t % SLOTS], ((t // SLOTS) & 1) ^ 1)
                slot = t % SLOTS
                if BUG == "another slot":
                    slot = (t + t // 16) % SLOTS
                tlx.local_store(tile[slot], tl.load(src + i))
                tlx.barrier_arrive(full[t % SLOTS])


@tlx_xdsl.jit
def shared(src, dst, n, BUG: tl.constexpr):
    """Two arrays in one memory, used by turns."""
    i = tl.arange(0, 128)
    spec = tlx.storage_alias_spec(storage=tlx.storage_kind.smem)
    a = tlx.local_alloc((128,), tl.float32, 2, reuse=spec)
    if BUG == "of 16 bits":
        b = tlx.local_alloc((256,), tl.float16, 2, reuse=spec)
    else:
        b = tlx.local_alloc((128,), tl.float32, 2, reuse=spec)
    if BUG == "right: apart":
        spec.set_buffer_overlap(tlx.reuse_group(a, b, group_type=tlx.reuse_group_type.distinct))
    else:
        spec.set_buffer_overlap(tlx.reuse_group(a, b, group_type=tlx.reuse_group_type.shared))
    tlx.local_store(a[0], tl.load(src + i))
    tlx.local_store(a[1], tl.load(src + i))
    for t in range(n):
        if BUG == "":
            tlx.local_store(a[0], tl.load(src + i))
        tl.store(dst + i, tlx.local_load(a[0]))
        if t % 4 == 3:
            if BUG == "of 16 bits":
                j = tl.arange(0, 256)
                tlx.local_store(b[0], tl.load(src + j).to(tl.float16))
                tl.store(dst + j, tlx.local_load(b[0]).to(tl.float32))
            elif BUG == "right: the other one":
                tlx.local_store(b[1], tl.load(src + i))
            elif BUG == "by turns":
                tlx.local_store(b[(t // 4) % 2], tl.load(src + i))
                if t >= 8:
                    tl.store(dst + i, tlx.local_load(b[1 - (t // 4) % 2]))
                tlx.local_store(a[0], tl.load(src + i))
            else:
                tlx.local_store(b[0], tl.load(src + i))
                tl.store(dst + i, tlx.local_load(b[0]))
    if BUG == "at the end":
        tl.store(dst + i, tlx.local_load(a[0]))


@tlx_xdsl.jit
def shared_by_tasks(src, dst, n, BUG: tl.constexpr):
    """Two tasks with a ring each, in one memory."""
    spec = tlx.storage_alias_spec(storage=tlx.storage_kind.smem)
    a = tlx.local_alloc((128,), tl.float32, 1, reuse=spec)
    b = tlx.local_alloc((128,), tl.float32, 1, reuse=spec)
    spec.set_buffer_overlap(tlx.reuse_group(a, b, group_type=tlx.reuse_group_type.shared))
    ours = tlx.alloc_barriers(1)
    theirs = tlx.alloc_barriers(1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            i = tl.arange(0, 128)
            for t in range(n):
                tlx.barrier_wait(ours[0], (t & 1) ^ 1)
                if BUG == "not written again":
                    if t < 3:
                        tlx.local_store(a[0], tl.load(src + i))
                else:
                    tlx.local_store(a[0], tl.load(src + i))
                tl.store(dst + i, tlx.local_load(a[0]))
                tlx.barrier_arrive(theirs[0])
                if BUG == "read after the release":
                    if t > 4:
                        tl.store(dst + i, tlx.local_load(a[0]))
        with tlx.async_task(num_warps=4):
            i = tl.arange(0, 128)
            for t in range(n):
                tlx.barrier_wait(theirs[0], t & 1)
                tlx.local_store(b[0], tl.load(src + i))
                tl.store(dst + 128 + i, tlx.local_load(b[0]))
                tlx.barrier_arrive(ours[0])


@tlx_xdsl.jit
def loaded(p, q, n, BUG: tl.constexpr):
    """Load the number of turns from memory, in each task."""
    full = tlx.alloc_barriers(1)
    empty = tlx.alloc_barriers(1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for t in range(tl.load(p)):
                tlx.barrier_wait(full[0], t & 1)
                tlx.barrier_arrive(empty[0])
        with tlx.async_task(num_warps=4):
            if BUG == "stored":
                tl.store(p, n)
            elif BUG == "stored beside":
                tl.store(p + (tl.load(q) - 1), n)
            elif BUG == "added to":
                tl.atomic_add(p, n)
            elif BUG == "stored through a branch":
                r = q
                if n > 8:
                    r = p
                tl.store(r, n)
            elif BUG == "stored by TMA":
                rows = tlx.local_alloc((4,), tl.int32, 1)
                tlx.local_store(rows[0], tl.full((4,), 0, tl.int32) + n)
                tlx.fence("async_shared")
                tlx.async_descriptor_store(tl.make_tensor_descriptor(p, [4], [1], [4]), rows[0], [0])
                tlx.async_descriptor_store_wait(0)
            elif BUG == "right: stored elsewhere":
                tl.store(q, n)
            for t in range(tl.load(p)):
                tlx.barrier_wait(empty[0], (t & 1) ^ 1)
                tlx.barrier_arrive(full[0])


@tlx_xdsl.jit
def condition(p, q, n, BUG: tl.constexpr):
    """Load a condition of each turn from memory."""
    full = tlx.alloc_barriers(1)
    empty = tlx.alloc_barriers(1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            count = 0
            for t in range(n):
                if tl.load(p + t) > 0:
                    tlx.barrier_wait(full[0], count & 1)
                    tlx.barrier_arrive(empty[0])
                    count += 1
                if BUG == "cleared":
                    if t == 6:
                        tl.store(p + t + 1, 0)
        with tlx.async_task(num_warps=4):
            count = 0
            for t in range(n):
                if tl.load(p + t) > 0:
                    tlx.barrier_wait(empty[0], (count & 1) ^ 1)
                    tlx.barrier_arrive(full[0])
                    count += 1 if BUG != "of another array" else tl.load(q + t)


@tlx_xdsl.jit
def meetings(n, BUG: tl.constexpr):
    """Two tasks meet at a named barrier in each turn."""
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for t in range(n):
                if BUG == "not in turn 10":
                    if t != 10:
                        tlx.named_barrier_wait(8, 256)
                elif BUG == "another one from turn 6 on":
                    tlx.named_barrier_wait(8 + t // 6, 256)
                else:
                    tlx.named_barrier_wait(8, 256)
        with tlx.async_task(num_warps=4):
            for t in range(n + n // 12 if BUG == "once more" else n):
                tlx.named_barrier_wait(8, 256)


@tlx_xdsl.jit
def steps(n, BUG: tl.constexpr):
    """One task goes through the ring in steps of two, another one by one."""
    full = tlx.alloc_barriers(2)
    empty = tlx.alloc_barriers(2)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for t in range(0, n - n % 2 if BUG == "" else n - n % 2 + 2 * (n // 9), 2):
                for k in tl.static_range(2):
                    tlx.barrier_wait(full[k], (t // 2) & 1)
                    tlx.barrier_arrive(empty[k])
        with tlx.async_task(num_warps=4):
            for t in range(n - n % 2):
                tlx.barrier_wait(empty[t % 2], ((t // 2) & 1) ^ 1)
                tlx.barrier_arrive(full[t % 2])


@tlx_xdsl.jit
def views(src, dst, n, BUG: tl.constexpr):
    """Halves of a block are used by turns: a half as it is, and both."""
    block = tlx.local_alloc((2, 64), tl.float32, 1)
    whole = tlx.local_reinterpret(block[0], tl.float32, [128])
    tlx.local_store(whole, tl.load(src + tl.arange(0, 128)))
    ready = tlx.alloc_barriers(1)
    done = tlx.alloc_barriers(1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            i = tl.arange(0, 64)
            for t in range(n):
                tlx.barrier_wait(done[0], (t & 1) ^ 1)
                if BUG == "the other half in turn 5":
                    half = 1 if t == 5 else 0
                else:
                    half = 0
                part = tlx.local_slice(block[0], [half, 0], [1, 64])
                tlx.local_store(part, tl.load(src + i)[None, :])
                tlx.barrier_arrive(ready[0])
        with tlx.async_task(num_warps=4):
            i = tl.arange(0, 64)
            for t in range(n):
                if BUG == "the whole in turn 5":
                    if t == 5:
                        tl.store(dst + tl.arange(0, 128), tlx.local_load(whole))
                second = tlx.local_slice(block[0], [1, 0], [1, 64])
                tl.store(dst + 64 + i[None, :], tlx.local_load(second))
                tlx.barrier_wait(ready[0], t & 1)
                first = tlx.local_slice(block[0], [0, 0], [1, 64])
                tl.store(dst + i[None, :], tlx.local_load(first))
                tlx.barrier_arrive(done[0])


NEVER = -1
"""Turns of a mistake that no run shows in a test's time."""

LATE = {
    (parities, 2): {
        "quotient of a negative number": 2, "remainder of a negative number": 2, "multiple of a quotient": 2,
        "negated": 2, "8 bits": 130, "16 bits": NEVER, "counter of 8 bits": 130, "large factor": 53, "large sum": 34,
        "one deeper": 7, "late turn": 38, "late power": 65, "quotient of one turn back": 2,
        "quotient of a turn back": 3,
    },
    (parities, 3): {
        "quotient of a negative number": 2, "8 bits": 130, "8 bits without a sign": 257, "counter of 8 bits": 130,
        "one deeper": 10, "late turn": 38, "late power": 65,
    },
    (blocks, 2): {
        "no wait in turn 11": 12, "reads the next one": 11, "reads again": 10, "reads once more": 7,
        "no arrival in turn 9": 12, "no arrival in every seventh turn": 9, "two arrivals in turn 12": 15,
        "waits for one more": 11, "one turn less": 1, "no wait after turn 10": 11, "another slot": 17,
    },
    (blocks, 3): {
        "no wait in turn 11": 12, "reads the next one": 11, "reads again": 11, "reads once more": 9,
        "no arrival in turn 9": 13, "no wait after turn 10": 11, "another slot": 17,
    },
    (shared, 0): {"read again": 5, "of 16 bits": 5, "by turns": 16, "at the end": 4},
    (shared_by_tasks, 0): {"not written again": 4, "read after the release": 6},
    (loaded, 0): {
        "stored": 0, "stored beside": 0, "added to": 0, "stored through a branch": 9, "stored by TMA": 0,
    },
    (condition, 0): {"cleared": 8, "of another array": 2},
    (meetings, 0): {"not in turn 10": 11, "another one from turn 6 on": 7, "once more": 12},
    (steps, 0): {"more at times": 9},
    (views, 0): {"the other half in turn 5": 6, "the whole in turn 5": 6},
}  # fmt: skip
"""For each kernel, and the length of its ring, the turns with which each mistake shows."""

RIGHT = [
    (parities, 2, ""), (parities, 3, ""), (parities, 2, "right: more than needed"),
    (parities, 2, "right: negative, but even"),
    (parities, 2, "right: 8 bits of a remainder"), (blocks, 2, ""), (blocks, 3, ""),
    (shared, 0, ""), (shared, 0, "right: apart"), (shared, 0, "right: the other one"),
    (shared_by_tasks, 0, ""), (loaded, 0, ""), (loaded, 0, "right: stored elsewhere"),
    (condition, 0, ""), (meetings, 0, ""), (views, 0, ""),
]  # fmt: skip
"""What is right, and proved."""


def arguments(kernel, turns, slots, mistake):
    """The arguments by name: arrays that are long enough, and numbers."""
    many = {
        "src": np.ones(512, np.float32), "dst": np.zeros(512, np.float32), "p": np.ones(turns + 9, np.int32),
        "q": np.ones(turns + 9, np.int32), "n": turns, "SLOTS": slots, "BUG": mistake,
    }  # fmt: skip
    if kernel is loaded:
        many["p"][:] = 7
    if mistake == "of another array":
        many["q"][:] = 2
    return {name: many[name] for name in kernel.source.signature.parameters}
