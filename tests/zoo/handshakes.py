"""Tasks that take turns: named barriers, ping-pong, mbarriers without data, notes by way of shared memory."""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.zoo.arrays import numbers, tiles, zeros
from tests.zoo.bugs import Cage

# Kernels are read by the frontend, not run by Python.
# pyright: basic


@tlx_xdsl.jit
def hand_over(x, out, STEPS: tl.constexpr, BUG: tl.constexpr):
    """Two tasks of 128 threads pass a buffer to and fro by two named barriers."""
    note = tlx.local_alloc((128,), tl.float32, 1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for t in range(STEPS):
                tlx.local_store(note[0], tl.load(x + t * 128 + tl.arange(0, 128)))  # at: not emptied, emptied too early
                if BUG == "half of the threads":
                    tlx.named_barrier_arrive(1, 128)  # at: half of the threads
                elif BUG == "other number":
                    tlx.named_barrier_arrive(3, 256)
                elif BUG != "never filled":
                    tlx.named_barrier_arrive(1, 256)
                if BUG == "one barrier for both":
                    tlx.named_barrier_wait(1, 256)  # at: one barrier for both
                elif BUG != "not emptied":
                    tlx.named_barrier_wait(2, 256)  # at: never emptied
        with tlx.async_task(num_warps=4):
            for t in range(STEPS):
                if BUG != "not filled":
                    # at: never filled, other number, half of the threads
                    tlx.named_barrier_wait(1, 256)
                if BUG == "emptied too early":
                    tlx.named_barrier_arrive(2, 256)
                values = tlx.local_load(note[0])  # at: not filled, emptied too early, not emptied
                if BUG == "one barrier for both":
                    tlx.named_barrier_arrive(1, 256)
                elif BUG != "emptied too early" and BUG != "never emptied":
                    tlx.named_barrier_arrive(2, 256)
                tl.store(out + t * 128 + tl.arange(0, 128), values)


HAND_OVER = (
    Cage(hand_over, lambda: (numbers(512, dtype="float32"), zeros(512, dtype="float32")), constants={"STEPS": 4})
    .bug("half of the threads", "named barrier: threads", "named barrier 1 .*128")
    .bug(
        "other number",
        "named barrier: number",
        "partition 0 waits at named barrier 1, at which 128",
    )
    .bug(
        "never filled",
        "named barrier: arrival missing",
        "partition 0 waits at named barrier 1",
    )
    .bug("never emptied", "named barrier: arrival missing", "default task waits at named barrier 2, at which 128 of")
    .bug(
        "one barrier for both",
        "named barrier: number",
        "nothing orders this arrival at named barrier 1 after its phase before",
    )
    .bug("not filled", "named barrier: wait missing", "'note.0.'.*(read before it is written|nothing orders it after)")
    .bug("not emptied", "named barrier: wait missing", "'note.0.', and nothing orders it after")
    .bug("emptied too early", "early release", "'note.0.', and nothing orders it after")
    .clean(STEPS=0)
    .clean(STEPS=1)
    .clean(seconds=0.2)
)


@tlx_xdsl.jit
def ping_pong(out, ROUNDS: tl.constexpr, BUG: tl.constexpr):
    """Two replicas share a scratch buffer in turns: each waits for its barrier and then opens that of the other."""
    scratch = tlx.local_alloc((128,), tl.int32, 1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            # The first turn is the first replica's: another must open its barrier.
            if BUG != "no one begins":
                tlx.named_barrier_arrive(1, 256)
            if BUG == "both begin":
                tlx.named_barrier_arrive(2, 256)
        with tlx.async_task(num_warps=4, replicate=2):
            me: tl.constexpr = tlx.async_task_replica_id()
            for r in range(ROUNDS):
                if r == 0 or BUG != "waits once":
                    tlx.named_barrier_wait(1 + me, 256)  # at: no one begins, opens its own
                # at: both begin, waits once, opens too early
                tlx.local_store(scratch[0], tl.full((128,), 1, tl.int32) * r)
                if BUG == "opens too early":
                    tlx.named_barrier_arrive(2 - me, 256)
                tl.store(out + (r * 2 + me) * 128 + tl.arange(0, 128), tlx.local_load(scratch[0]))
                # The last turn of the second replica is followed by no one's.
                if BUG == "opens its own":
                    tlx.named_barrier_arrive(1 + me, 256)  # at: opens its own
                elif BUG == "opens after the last":
                    tlx.named_barrier_arrive(2 - me, 256)  # at: opens after the last
                elif BUG != "opens too early":
                    if me == 0 or r < ROUNDS - 1:
                        tlx.named_barrier_arrive(2 - me, 256)


PING_PONG = (
    Cage(ping_pong, lambda: (zeros(6 * 128, dtype="int32"),), constants={"ROUNDS": 3})
    .bug("no one begins", "ping-pong", "deadlock: .*named barrier [12]")
    .bug("both begin", "ping-pong", "'scratch.0.', and nothing orders it after")
    .bug("waits once", "ping-pong", "'scratch.0.', and nothing orders it after|twice in one phase of named barrier")
    .bug("opens too early", "ping-pong", "'scratch.0.', and nothing orders it after")
    .bug("opens its own", "ping-pong", "named barrier [12]")
    .bug("opens after the last", "ping-pong", "named barrier 1 ends with 128 of 256 threads arrived")
    .clean(ROUNDS=1)
    .clean(seconds=0.2)
)


@tlx_xdsl.jit
def order_of_two(src, out, TILES: tl.constexpr, BUG: tl.constexpr):
    """Two consumers take the tiles of one ring by turns, and add them up in a common buffer, in order."""
    ring = tlx.local_alloc((16, 16), tl.float16, 2)
    full = tlx.alloc_barriers(2)
    empty = tlx.alloc_barriers(2)
    total = tlx.local_alloc((16, 16), tl.float32, 1)
    turn = tlx.alloc_barriers(2)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for t in range(TILES):
                slot, phase = tlx.get_bufidx_phase(t, 2)
                tlx.barrier_wait(empty[slot], phase ^ 1)
                tlx.barrier_expect_bytes(full[slot], 512)
                tlx.async_descriptor_load(src, ring[slot], [t * 16, 0], full[slot])
        with tlx.async_task(num_warps=4, replicate=2):
            me: tl.constexpr = tlx.async_task_replica_id()
            for t in range(me, TILES, 2):
                phase = t // 2 & 1
                tlx.barrier_wait(full[me], phase)
                values = tlx.local_load(ring[me]).to(tl.float32)
                tlx.barrier_arrive(empty[me])
                if BUG == "own parity of step":
                    tlx.barrier_wait(turn[me], t & 1 ^ 1)  # at: own parity of step
                elif BUG == "no turns":
                    pass
                elif me == 0:
                    tlx.barrier_wait(turn[0], phase ^ 1)  # at: turn not passed on
                else:
                    tlx.barrier_wait(turn[1], phase)  # at: turn not passed on
                # at: no turns, passed on too early
                sum_so_far = values if t == 0 else values + tlx.local_load(total[0])
                if BUG == "passed on too early":
                    tlx.barrier_arrive(turn[1 - me])
                # at: no turns, passed on too early
                tlx.local_store(total[0], sum_so_far)
                if BUG == "turn not passed on":
                    tlx.barrier_arrive(turn[me])
                elif BUG != "passed on too early":
                    # The last one passes on to no one, which would leave a phase that has begun.
                    tlx.barrier_arrive(turn[1 - me])
            if me == 1:
                offsets = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
                tl.store(out + offsets, tlx.local_load(total[0]))


ORDER_OF_TWO = (
    Cage(order_of_two, lambda: (tiles(4), zeros(256, dtype="float32")), constants={"TILES": 4})
    .bug("no turns", "ping-pong", "'total.0.'.*(nothing orders it after|read before it is written)")
    .bug("passed on too early", "early release", "'total.0.', and nothing orders it after")
    .bug("turn not passed on", "ping-pong", "'turn.[01].'")
    .bug("own parity of step", "parity", "wait for phase -1 of 'turn.0.' before phase 0 completes")
    .clean(TILES=2)
    .clean(seconds=0.2)
)


@tlx_xdsl.jit
def message(x, out, BUG: tl.constexpr):
    """A task computes a table that two others use; each uses it at its own time."""
    table = tlx.local_alloc((128,), tl.float32, 1)
    ready = tlx.alloc_barriers(1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            values = tl.load(x + tl.arange(0, 128))
            tlx.local_store(table[0], values)
            tlx.barrier_arrive(ready[0])
            if BUG == "improves it later":
                tlx.local_store(table[0], values * 2)  # at: improves it later
        with tlx.async_task(num_warps=4, replicate=2):
            me: tl.constexpr = tlx.async_task_replica_id()
            if BUG != "second does not wait" or me == 0:
                tlx.barrier_wait(ready[0], 1 if BUG == "waits for before" else 0)  # at: waits for before
            # at: second does not wait, improves it later
            tl.store(out + me * 128 + tl.arange(0, 128), tlx.local_load(table[0]))


MESSAGE = (
    Cage(message, lambda: (numbers(128, dtype="float32"), zeros(256, dtype="float32")))
    .bug("second does not wait", "wait missing", "'table.0.'.*(nothing orders it after|read before it is written)")
    .bug("waits for before", "parity", "wait for phase -1 of 'ready.0.' before phase 0 completes")
    .bug("improves it later", "early release", "'table.0.', and nothing orders it after")
)

CAGES = (HAND_OVER, PING_PONG, ORDER_OF_TWO, MESSAGE)
