"""Programs with several tiles: phases that go on from tile to tile, tiles without steps, epilogues that are late."""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.zoo.arrays import described, numbers, tiles, zeros
from tests.zoo.bugs import Cage

# Kernels are read by the frontend, not run by Python.
# pyright: basic


@tlx_xdsl.jit
def walks(src, dst, TILES: tl.constexpr, STEPS: tl.constexpr, BUG: tl.constexpr):
    """Each tile is the sum of STEPS blocks; the ring goes on from tile to tile."""
    ring = tlx.local_alloc((16, 16), tl.float16, 2)
    result = tlx.local_alloc((16, 16), tl.float16, 1)
    full = tlx.alloc_barriers(2)
    empty = tlx.alloc_barriers(2)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for j in range(tl.program_id(0), TILES, tl.num_programs(0)):
                for k in range(STEPS):
                    done = j // tl.num_programs(0) * STEPS
                    step = k if BUG == "loader restarts" or BUG == "both restart" else done + k
                    slot, phase = tlx.get_bufidx_phase(step, 2)
                    # at: loader restarts, both restart
                    tlx.barrier_wait(empty[slot], phase ^ 1)
                    tlx.barrier_expect_bytes(full[slot], 512)
                    tlx.async_descriptor_load(src, ring[slot], [(j * STEPS + k) * 16, 0], full[slot])
        with tlx.async_task(num_warps=4):
            for j in range(tl.program_id(0), TILES, tl.num_programs(0)):
                total = tl.zeros((16, 16), tl.float16)
                for k in range(STEPS):
                    done = j // tl.num_programs(0) * STEPS
                    if BUG == "consumer restarts" or BUG == "both restart":
                        step = k
                    elif BUG == "consumer one step ahead":
                        step = done + k + (j > 0)
                    elif BUG == "counts other tiles":
                        # The number of the tile, not of this program's tiles before it.
                        step = j * STEPS + k
                    else:
                        step = done + k
                    slot, phase = tlx.get_bufidx_phase(step, 2)
                    # at: consumer restarts, consumer one step ahead, counts other tiles
                    tlx.barrier_wait(full[slot], phase)
                    total += tlx.local_load(ring[slot])
                    tlx.barrier_arrive(empty[slot])
                if BUG != "result in use":
                    tlx.async_descriptor_store_wait(0)
                tlx.local_store(result[0], total)  # at: result in use
                tlx.fence_async_shared()
                tlx.async_descriptor_store(dst, result[0], [j * 16, 0])
            tlx.async_descriptor_store_wait(0)


AGAIN = "its wait before was for parity ., too: the tasks count phases differently"
WALKS = (
    Cage(walks, lambda: (tiles(12), tiles(4)), grid=1, constants={"TILES": 4, "STEPS": 3})
    .bug("loader restarts", "phase restart", f"deadlock: .*'empty.1.' for parity 1, .*{AGAIN}")
    .bug("consumer restarts", "phase restart", f"deadlock: .*'full.1.' for parity 0, .*{AGAIN}")
    .bug("both restart", "phase restart", "waits at 'empty.1.' for parity 1 twice in a row")
    .bug("consumer one step ahead", "phase restart", f"deadlock: .*'full.[01].' .*{AGAIN}")
    .bug(
        "counts other tiles",
        "phase restart",
        f"deadlock: .*'full.0.' for parity 1, .*{AGAIN}",
        grid=2,
    )
    .bug("result in use", "store wait", "writes 'result.0.', and nothing orders it after the TMA store")
    .clean(STEPS=1)
    .clean(STEPS=2)
    .clean(TILES=0)
    .clean(TILES=1)
    .clean(grid=2)
    .clean(grid=3)
    .clean(seconds=0.2)
)


@tlx_xdsl.jit
def groups(src, out, sizes, BUG: tl.constexpr):
    """Each group has a number of steps of its own, which may be 0."""
    ring = tlx.local_alloc((16, 16), tl.float16, 2)
    full = tlx.alloc_barriers(2)
    empty = tlx.alloc_barriers(2)
    # One for each group: the loader is ahead by whole groups where they are empty.
    ready = tlx.alloc_barriers(1 if BUG == "one barrier for all" else 3)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            step = 0
            for g in range(3):
                steps = tl.load(sizes + g)
                for _ in range(steps):
                    slot, phase = tlx.get_bufidx_phase(step, 2)
                    tlx.barrier_wait(empty[slot], phase ^ 1)
                    tlx.barrier_expect_bytes(full[slot], 512)
                    tlx.async_descriptor_load(src, ring[slot], [step * 16, 0], full[slot])
                    step += 1
                if BUG == "signals steps only":
                    # Who has nothing to load forgets to say that the group is done.
                    tlx.barrier_arrive(ready[g], pred=steps > 0)
                elif BUG == "one barrier for all":
                    tlx.barrier_arrive(ready[0])
                else:
                    tlx.barrier_arrive(ready[g])
        with tlx.async_task(num_warps=4):
            offsets = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
            step = 0
            for g in range(3):
                total = tl.zeros((16, 16), tl.float16)
                steps = tl.load(sizes + g)
                for _ in range(tl.maximum(steps, 1) if BUG == "at least one" else steps):
                    slot, phase = tlx.get_bufidx_phase(step, 2)
                    tlx.barrier_wait(full[slot], phase)  # at: at least one
                    total += tlx.local_load(ring[slot])
                    tlx.barrier_arrive(empty[slot])
                    step += 1
                if BUG == "last slot again":
                    # For a term that the last slot still has, it is thought.
                    total += tlx.local_load(ring[(step + 1) % 2])  # at: last slot again
                tl.store(out + g * 256 + offsets, total)
                if BUG == "one barrier for all":
                    tlx.barrier_wait(ready[0], g & 1)  # at: one barrier for all
                else:
                    tlx.barrier_wait(ready[g], 0)  # at: signals steps only


def groups_of(*sizes):
    return lambda: (tiles(6), zeros(768), numbers(3, dtype="int32") * 0 + list(sizes))


GROUPS = (
    Cage(groups, groups_of(2, 0, 3))
    .bug("at least one", "zero trips", "'full.[01].'")
    .bug("signals steps only", "zero trips", "'ready.1.'")
    .bug("one barrier for all", "phases overtaken", "deadlock: .*'ready.0.' .*the tasks count phases differently")
    .bug("last slot again", "zero trips", "'ring.[01].'", arguments=groups_of(0, 2, 3))
    .clean(arguments=groups_of(0, 0, 0))
    .clean(arguments=groups_of(1, 1, 1))
    .clean(arguments=groups_of(6, 0, 0))
)


@tlx_xdsl.jit
def empty_product(a_desc, b_desc, out, K, BUG: tl.constexpr):
    """The epilogue waits for the last product, or reads what the first step should have written: K may be 0."""
    a = tlx.local_alloc((64, 16), tl.float16, 1)
    b = tlx.local_alloc((16, 16), tl.float16, 1)
    partial = tlx.local_alloc((64, 16), tl.float32, 1)
    full = tlx.alloc_barriers(1)
    steps = K // 16
    if BUG == "":
        tlx.local_store(partial[0], tl.zeros((64, 16), tl.float32))
    for k in range(steps):
        tlx.barrier_expect_bytes(full[0], (64 + 16) * 16 * 2)
        tlx.async_descriptor_load(a_desc, a[0], [0, k * 16], full[0])
        tlx.async_descriptor_load(b_desc, b[0], [k * 16, 0], full[0])
        tlx.barrier_wait(full[0], k & 1)
        product = tlx.async_dot_wait(0, tlx.async_dot(a[0], b[0]))
        if BUG == "first step initialises":
            before = tl.zeros((64, 16), tl.float32)
            if k > 0:
                before = tlx.local_load(partial[0])
            tlx.local_store(partial[0], before + product)
        else:
            tlx.local_store(partial[0], tlx.local_load(partial[0]) + product)  # at: never initialised
    if BUG == "waits for the last step":
        tlx.barrier_wait(full[0], steps - 1 & 1)
    rows = tl.arange(0, 64)[:, None] * 16 + tl.arange(0, 16)[None, :]
    # at: first step initialises, waits for the last step
    tl.store(out + rows, tlx.local_load(partial[0]))


def product_of(k):
    return lambda: (
        described(numbers(64, 32), 64, 16),
        described(numbers(32, 16), 16, 16),
        zeros(1024, dtype="float32"),
        k,
    )


UNWRITTEN = "'partial.0.' is read before it is written"
EMPTY_PRODUCT = (
    Cage(empty_product, product_of(0))
    .bug("first step initialises", "zero trips", UNWRITTEN)
    .bug("waits for the last step", "zero trips", UNWRITTEN)
    .bug("never initialised", "unwritten", UNWRITTEN, arguments=product_of(32))
)

CAGES = (WALKS, GROUPS, EMPTY_PRODUCT)
