"""Blackwell's tensor cores: commits, accumulators in tensor memory, block scales, pairs of CTAs."""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.zoo.arrays import described, numbers, zeros
from tests.zoo.bugs import Cage

# Kernels are read by the frontend, not run by Python.
# pyright: basic

BLACKWELL = {"target": "sm_100a"}


def operands(steps, tiles=1):
    """A of (tiles * 128) x (16 * steps) and B of (16 * steps) x 32, by blocks, and room for the products."""
    return (
        described(numbers(tiles * 128, 16 * steps), 128, 16),
        described(numbers(16 * steps, 32), 16, 32),
        zeros(tiles * 128 * 32, dtype="float32"),
    )


@tlx_xdsl.jit
def store(out, values):
    tl.store(out + tl.arange(0, 128)[:, None] * 32 + tl.arange(0, 32)[None, :], values)


@tlx_xdsl.jit
def one_tile(a_desc, b_desc, out, STEPS: tl.constexpr, BUG: tl.constexpr):
    """Producer, products, epilogue; the tensor cores themselves say which slots are free."""
    a = tlx.local_alloc((128, 16), tl.float16, 2)
    b = tlx.local_alloc((16, 32), tl.float16, 2)
    acc = tlx.local_alloc((128, 32), tl.float32, 1, tlx.storage_kind.tmem)
    full = tlx.alloc_barriers(2)
    empty = tlx.alloc_barriers(2)
    done = tlx.alloc_barriers(1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            if BUG == "waits for a slot":
                # Its product is done then; those after it are not.
                tlx.barrier_wait(empty[0], 0)
            elif BUG != "no wait for the result":
                tlx.barrier_wait(done[0], 0)  # at: no commit
            # at: no wait for the result, committed too early, signalled by the issuer
            store(out, tlx.local_load(acc[0]))
        with tlx.async_task(num_warps=1):
            for k in range(STEPS):
                slot, phase = tlx.get_bufidx_phase(k, 2)
                if BUG != "not full":
                    tlx.barrier_wait(full[slot], phase)
                if BUG == "adds to nothing":
                    tlx.async_dot(a[slot], b[slot], acc[0], mBarriers=[empty[slot]])  # at: adds to nothing
                elif BUG == "frees by itself":
                    tlx.async_dot(a[slot], b[slot], acc[0], use_acc=k > 0, force_async=True)
                    tlx.barrier_arrive(empty[slot])
                elif BUG == "other slot":
                    # at: other slot
                    tlx.async_dot(a[slot], b[slot], acc[0], use_acc=k > 0, mBarriers=[empty[(k + 1) % 2]])
                elif BUG == "never frees":
                    tlx.async_dot(a[slot], b[slot], acc[0], use_acc=k > 0, force_async=True)
                elif BUG == "right: commit frees":
                    tlx.async_dot(a[slot], b[slot], acc[0], use_acc=k > 0, force_async=True)
                    tlx.tcgen05_commit(empty[slot])
                else:
                    # at: not full, committed too early, waits for a slot
                    tlx.async_dot(a[slot], b[slot], acc[0], use_acc=k > 0, mBarriers=[empty[slot]])
                if BUG == "committed too early" and k == STEPS - 2:
                    tlx.tcgen05_commit(done[0])
            if BUG == "signalled by the issuer":
                tlx.barrier_arrive(done[0])
            elif BUG != "no commit" and BUG != "committed too early" and BUG != "waits for a slot":
                tlx.tcgen05_commit(done[0])
        with tlx.async_task(num_warps=1):
            for k in range(STEPS):
                slot, phase = tlx.get_bufidx_phase(k, 2)
                tlx.barrier_wait(empty[slot], phase ^ 1)  # at: never frees, other slot
                tlx.barrier_expect_bytes(full[slot], (128 + 32) * 16 * 2)
                tlx.async_descriptor_load(a_desc, a[slot], [0, k * 16], full[slot])  # at: frees by itself
                tlx.async_descriptor_load(b_desc, b[slot], [k * 16, 0], full[slot])


EARLY = "'acc.0.*(read before it is written|nothing orders it after the (tcgen05.mma|default task))"
ONE_TILE = (
    Cage(one_tile, lambda: operands(4), constants={"STEPS": 4}, options=BLACKWELL)
    .bug("no wait for the result", "commit", EARLY)
    .bug("committed too early", "commit", EARLY)
    .bug("signalled by the issuer", "commit", EARLY)
    .bug("no commit", "commit", "deadlock: the default task waits at 'done.0.'.*lacks 1 of 1 arrivals")
    .bug("waits for a slot", "commit", EARLY)
    .bug("adds to nothing", "use_acc", "'acc.0.*is read before it is written")
    .bug("frees by itself", "operand in flight", "writes 'a.0.*nothing orders it after the tcgen05.mma")
    .bug("never frees", "arrival missing", "deadlock: .*'empty.0.'.*lacks 1 of 1")
    .bug("other slot", "wrong slot", "'empty.[01].'")
    .bug(
        "not full",
        "wait missing",
        "'[ab].0.*(read before it is written|nothing orders it after the TMA load)",
        twin={"BUG": "right: commit frees"},
    )
    .clean(STEPS=1)
    .clean(STEPS=3)
)


@tlx_xdsl.jit
def many_tiles(a_desc, b_desc, out, TILES: tl.constexpr, DEPTH: tl.constexpr, BUG: tl.constexpr):
    """A ring of accumulators: the products of a tile run while the epilogue reads the one before."""
    a = tlx.local_alloc((128, 16), tl.float16, 2)
    b = tlx.local_alloc((16, 32), tl.float16, 1)
    acc = tlx.local_alloc((128, 32), tl.float32, DEPTH, tlx.storage_kind.tmem)
    b_full = tlx.alloc_barriers(1)
    full = tlx.alloc_barriers(2)
    empty = tlx.alloc_barriers(2)
    acc_full = tlx.alloc_barriers(DEPTH)
    acc_empty = tlx.alloc_barriers(DEPTH)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for j in range(TILES):
                i, phase = tlx.get_bufidx_phase(j, DEPTH)
                # at: phase by tile, never emptied
                tlx.barrier_wait(acc_full[i], j & 1 if BUG == "phase by tile" else phase)
                if BUG == "emptied before it is read":
                    tlx.barrier_arrive(acc_empty[i])
                values = tlx.local_load(acc[i])  # at: adds to the tile before
                if BUG != "emptied before it is read" and BUG != "never emptied":
                    tlx.barrier_arrive(acc_empty[i])
                store(out + j * 4096, values)
        with tlx.async_task(num_warps=1):
            tlx.barrier_wait(b_full[0], 0)
            for j in range(TILES):
                i, phase = tlx.get_bufidx_phase(j, DEPTH)
                slot, turn = tlx.get_bufidx_phase(j, 2)
                if BUG == "empty without flip":
                    tlx.barrier_wait(acc_empty[i], phase)  # at: empty without flip
                elif BUG != "not emptied":
                    tlx.barrier_wait(acc_empty[i], phase ^ 1)  # at: never emptied
                tlx.barrier_wait(full[slot], turn)
                # at: not emptied, emptied before it is read, adds to the tile before
                tlx.async_dot(
                    a[slot], b[0], acc[i], use_acc=j > 0 if BUG == "adds to the tile before" else False,
                    mBarriers=[empty[slot], acc_full[i]],
                )  # fmt: skip
        with tlx.async_task(num_warps=1):
            tlx.barrier_expect_bytes(b_full[0], 1024)
            tlx.async_descriptor_load(b_desc, b[0], [0, 0], b_full[0])
            for j in range(TILES):
                slot, turn = tlx.get_bufidx_phase(j, 2)
                tlx.barrier_wait(empty[slot], turn ^ 1)
                tlx.barrier_expect_bytes(full[slot], 4096)
                tlx.async_descriptor_load(a_desc, a[slot], [j * 128, 0], full[slot])


MANY_TILES = (
    Cage(many_tiles, lambda: operands(1, 5), constants={"TILES": 5, "DEPTH": 2}, options=BLACKWELL)
    .bug("not emptied", "accumulator in use", "writes 'acc.0.*nothing orders it after the default task")
    .bug(
        "emptied before it is read", "accumulator in use", "writes 'acc.[01].*nothing orders it after the default task"
    )
    .bug("never emptied", "arrival missing", "'acc_empty.0.'.*lacks 1 of 1 arrivals")
    .bug("empty without flip", "parity", "'acc_empty.0.'.*lacks 1 of 1 arrivals")
    .bug("phase by tile", "parity", "'acc_(full|empty).[01].'")
    .bug("adds to the tile before", "use_acc", "'acc.1.*read before it is written", constants={"TILES": 2})
    .clean(TILES=1)
    .clean(DEPTH=1)
    .clean(DEPTH=3)
    .clean(TILES=0)
)


@tlx_xdsl.jit
def operands_of_threads(x, y, out, BUG: tl.constexpr):
    """Threads write the operands to shared and tensor memory; a synchronous use of the tensor cores by one task."""
    a = tlx.local_alloc((128, 16), tl.float16, 1, tlx.storage_kind.tmem)
    b = tlx.local_alloc((16, 32), tl.float16, 1)
    acc = tlx.local_alloc((128, 32), tl.float32, 2, tlx.storage_kind.tmem)
    done = tlx.alloc_barriers(2)
    rows = tl.arange(0, 128)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tlx.local_store(b[0], tl.load(y + tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :]))
    if BUG != "no fence":
        tlx.fence_async_shared()
    tlx.local_store(a[0], tl.load(x + rows))
    tlx.async_dot(a[0], b[0], acc[0], use_acc=False, mBarriers=[done[0]])  # at: no fence
    if BUG == "not done":
        total = tlx.local_load(acc[0])  # at: not done
        tlx.barrier_wait(done[0], 0)
    elif BUG == "operand in use":
        tlx.local_store(a[0], tl.load(x + 2048 + rows))  # at: operand in use
        tlx.barrier_wait(done[0], 0)
        total = tlx.local_load(acc[0])
    else:
        tlx.barrier_wait(done[0], 0)
        total = tlx.local_load(acc[0])
    tlx.local_store(a[0], tl.load(x + 2048 + rows))
    tlx.async_dot(a[0], b[0], acc[1], use_acc=False, mBarriers=[done[1]])
    if BUG == "waits for the other":
        tlx.barrier_wait(done[0], 0)  # at: waits for the other
    else:
        tlx.barrier_wait(done[1], 0)
    total += tlx.local_load(acc[1])
    if BUG == "waits for the other":
        tlx.barrier_wait(done[1], 0)
    store(out, total)


OPERANDS_OF_THREADS = (
    Cage(
        operands_of_threads,
        lambda: (numbers(4096), numbers(512), zeros(4096, dtype="float32")),
        options=BLACKWELL,
    )
    .bug("no fence", "proxy fence", "the tcgen05.mma .*reads 'b.0.*without a proxy fence")
    .bug("not done", "commit", EARLY)
    .bug("operand in use", "operand in flight", "writes 'a.0.*nothing orders it after the tcgen05.mma")
    .bug("waits for the other", "wrong barrier", "waits at 'done.0.' for parity 0 twice in a row")
)


@tlx_xdsl.jit
def attention(q_desc, k_desc, out, BLOCKS: tl.constexpr, BUG: tl.constexpr):
    """Scores, and probabilities in their place, which the second product reads: tensor memory that is used twice."""
    q = tlx.local_alloc((128, 32), tl.float16, 1)
    k = tlx.local_alloc((32, 32), tl.float16, 1)
    o = tlx.local_alloc((128, 32), tl.float32, 1, tlx.storage_kind.tmem)
    memory = tlx.storage_alias_spec(storage=tlx.storage_kind.tmem)
    s = tlx.local_alloc((128, 32), tl.float32, 1, tlx.storage_kind.tmem, reuse=memory)
    p = tlx.local_alloc((128, 32), tl.float16, 1, tlx.storage_kind.tmem, reuse=memory)
    memory.set_buffer_overlap(tlx.reuse_group(s, p, group_type=tlx.reuse_group_type.shared))
    loaded = tlx.alloc_barriers(1)
    s_full = tlx.alloc_barriers(1)
    p_full = tlx.alloc_barriers(1)
    o_full = tlx.alloc_barriers(1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            largest = tl.zeros((128,), tl.float32)
            for n in range(BLOCKS):
                tlx.barrier_wait(s_full[0], n & 1)
                scores = tlx.local_load(s[0])
                if BUG == "signalled before it is stored":
                    tlx.barrier_arrive(p_full[0])
                if BUG != "not stored":
                    tlx.local_store(p[0], (scores * 0.125).to(tl.float16))  # at: signalled before it is stored
                if BUG == "scores again":
                    scores = tlx.local_load(s[0])  # at: scores again
                largest = tl.maximum(largest, tl.max(scores, 1))
                if BUG != "signalled before it is stored":
                    tlx.barrier_arrive(p_full[0])
            if BUG == "output of before":
                tlx.barrier_wait(o_full[0], BLOCKS & 1)  # at: output of before
            elif BUG != "output not waited for":
                tlx.barrier_wait(o_full[0], BLOCKS - 1 & 1)
            store(out, tlx.local_load(o[0]) / (1 + largest[:, None]))  # at: output of before, output not waited for
        with tlx.async_task(num_warps=1):
            tlx.barrier_wait(loaded[0], 0)
            for n in range(BLOCKS):
                if BUG != "scores over probabilities":
                    tlx.barrier_wait(o_full[0], n & 1 ^ 1)
                # at: scores over probabilities
                tlx.async_dot(q[0], tlx.local_trans(k[0]), s[0], use_acc=False, mBarriers=[s_full[0]])
                if BUG != "probabilities not waited for":
                    tlx.barrier_wait(p_full[0], n & 1)
                # at: not stored, probabilities not waited for, signalled before it is stored, output not waited for
                tlx.async_dot(p[0], k[0], o[0], use_acc=n > 0, mBarriers=[o_full[0]])
        with tlx.async_task(num_warps=1):
            tlx.barrier_expect_bytes(loaded[0], (128 + 32) * 32 * 2)
            tlx.async_descriptor_load(q_desc, q[0], [0, 0], loaded[0])
            tlx.async_descriptor_load(k_desc, k[0], [0, 0], loaded[0])


ATTENTION = (
    Cage(
        attention,
        lambda: (
            described(numbers(128, 32), 128, 32),
            described(numbers(32, 32), 32, 32),
            zeros(4096, dtype="float32"),
        ),
        constants={"BLOCKS": 3},
        options=BLACKWELL,
    )
    .bug("not stored", "aliased tensor memory", "'p.0.*(overwritten|read before it is written)")
    .bug("scores again", "aliased tensor memory", "'s.0.*overwritten|'s.0.*read before it is written")
    .bug("signalled before it is stored", "early release", "'(s|p|o).0.*(nothing orders it after|overwritten)")
    .bug("scores over probabilities", "operand in flight", "writes 's.0.*nothing orders it after the tcgen05.mma")
    .bug("probabilities not waited for", "wait missing", "'p.0.*(nothing orders it after|overwritten)")
    .bug("output not waited for", "commit", "'o.0.*(nothing orders it after|read before it is written)")
    .bug("output of before", "parity", "'o_full.0.|'o.0.*nothing orders it after the tcgen05.mma")
    .clean(BLOCKS=1)
    .clean(BLOCKS=2)
)

CAGES = (ONE_TILE, MANY_TILES, OPERANDS_OF_THREADS, ATTENTION)
