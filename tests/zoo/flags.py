"""Flags in global memory: data that one program hands to another one, with a release and an acquire or without."""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.zoo.arrays import described, numbers, zeros
from tests.zoo.bugs import Cage

# Kernels are read by the frontend, not run by Python.
# pyright: basic


def integers(*counts):
    """Arrays of zeros: the first ones are data, the last ones flags."""
    return lambda: tuple(zeros(count, dtype="int32") for count in counts)


@tlx_xdsl.jit
def producer_consumer(data, flag, out, BUG: tl.constexpr):
    """Program 0 writes a block and raises a flag, program 1 polls for it and reads the block."""
    offsets = tl.arange(0, 64)
    if tl.program_id(0) == 0:
        if BUG == "raised first":
            tl.atomic_xchg(flag, 1, sem="release")
        tl.store(data + offsets, offsets)
        if BUG == "relaxed raise":
            tl.atomic_xchg(flag, 1, sem="relaxed")
        elif BUG == "acquire for release":
            tl.atomic_xchg(flag, 1, sem="acquire")
        elif BUG == "plain raise":
            tl.store(flag, 1)
        elif BUG == "block scope":
            tl.atomic_xchg(flag, 1, sem="release", scope="cta")
        elif BUG == "right: fences":
            tlx.fence("gpu")
            tl.atomic_xchg(flag, 1, sem="relaxed")
        elif BUG == "fence of shared memory":
            tlx.fence_async_shared()
            tl.atomic_xchg(flag, 1, sem="relaxed")
        elif BUG != "raised first" and BUG != "never raised":
            tl.atomic_xchg(flag, 1, sem="release")
    else:
        if BUG == "relaxed poll":
            while tl.atomic_add(flag, 0, sem="relaxed") == 0:
                pass
        elif BUG == "volatile poll":
            while tl.load(flag, volatile=True) == 0:
                pass
        elif BUG == "plain raise":
            while tl.load(flag, volatile=True) == 0:  # at: plain raise
                pass
        elif BUG == "looks once":
            if tl.atomic_add(flag, 0, sem="acquire") == 0:
                tl.store(out + 64, 1)
        elif BUG == "right: fences":
            while tl.atomic_add(flag, 0, sem="relaxed") == 0:
                pass
            tlx.fence("gpu")
        elif BUG == "other value":
            while tl.atomic_add(flag, 0, sem="acquire") != 2:  # at: other value
                pass
        elif BUG != "no poll":
            while tl.atomic_add(flag, 0, sem="acquire") == 0:  # at: never raised, block scope
                pass
        # at: relaxed raise, acquire for release, fence of shared memory
        # at: raised first, relaxed poll, volatile poll, looks once, no poll, block scope
        values = tl.load(data + offsets)
        tl.store(out + offsets, values)


RACE = "reads byte 0 of 'data' in global memory, and nothing orders it after"
NO_ONE = "deadlock: .*polls global memory in a loop, and no one writes there any more"
PRODUCER_CONSUMER = (
    Cage(producer_consumer, integers(64, 1, 65), grid=2)
    .bug("relaxed raise", "no release", RACE)
    .bug("acquire for release", "no release", RACE)
    .bug("fence of shared memory", "no release", RACE, twin={"BUG": "right: fences"})
    .bug("plain raise", "plain flag", "byte 0 of 'flag' in global memory, and nothing orders it after")
    .bug("raised first", "released before the store", "byte 0 of 'data' in global memory, and nothing orders it after")
    .bug("block scope", "scope", "byte 0 of '(data|flag)' in global memory, and nothing orders it after")
    .bug("relaxed poll", "no acquire", RACE)
    .bug("volatile poll", "no acquire", RACE)
    .bug("looks once", "no poll", RACE)
    .bug("no poll", "no poll", RACE)
    .bug("never raised", "polls for no one", NO_ONE)
    .bug("other value", "polls for no one", NO_ONE)
)


@tlx_xdsl.jit
def relay(data, flags, BUG: tl.constexpr):
    """Each program adds to what the one before has left, and passes on."""
    pid = tl.program_id(0)
    offsets = tl.arange(0, 32)
    if pid > 0:
        before = pid - 2 if BUG == "the one before that" else pid - 1
        if before >= 0:
            if BUG == "relaxed in the middle":
                while tl.atomic_add(flags + before, 0, sem="relaxed") == 0:
                    pass
            else:
                while tl.atomic_add(flags + before, 0, sem="acquire") == 0:  # at: waits for itself
                    pass
    if BUG == "waits for itself":
        while tl.atomic_add(flags + pid, 0, sem="acquire") == 0:  # at: waits for itself
            pass
    # at: the one before that, relaxed in the middle
    values = tl.load(data + offsets)
    tl.store(data + offsets, values + 1)
    tl.atomic_xchg(flags + pid, 1, sem="release")


RELAY = (
    Cage(relay, integers(32, 4), grid=4)
    .bug("the one before that", "wrong flag", RACE)
    .bug("relaxed in the middle", "no acquire", RACE)
    .bug("waits for itself", "polls for no one", NO_ONE)
    .clean(grid=1)
)


@tlx_xdsl.jit
def rounds(data, turn, out, ROUNDS: tl.constexpr, BUG: tl.constexpr):
    """Two programs write and read a block by turns; the number of the round is the flag's value."""
    me = tl.program_id(0)
    offsets = tl.arange(0, 32)
    for r in range(ROUNDS):
        if BUG == "no answer":
            # The reader never says that it has read; the writer does not wait for it.
            if me == 0:
                tl.store(data + offsets, offsets + r)
                tl.atomic_xchg(turn, r + 1, sem="release")
            else:
                while tl.atomic_add(turn, 0, sem="acquire") < r + 1:
                    pass
                # at: no answer
                tl.store(out + r * 32 + offsets, tl.load(data + offsets))
        elif BUG == "both wait":
            while tl.atomic_add(turn, 0, sem="acquire") != r * 2 + 1:  # at: both wait
                pass
        else:
            while tl.atomic_add(turn, 0, sem="acquire") != r * 2 + me:
                pass
            if me == 0:
                tl.store(data + offsets, offsets + r)  # at: answers too early
                tl.atomic_add(turn, 1, sem="release")
            else:
                if BUG == "answers too early":
                    tl.atomic_add(turn, 1, sem="release")
                values = tl.load(data + offsets)  # at: answers too early
                if BUG != "answers too early":
                    tl.atomic_add(turn, 1, sem="release")
                tl.store(out + r * 32 + offsets, values)


ROUNDS = (
    Cage(rounds, integers(32, 1, 96), grid=2, constants={"ROUNDS": 3}, seconds=0.1)
    .bug("no answer", "read too late", "byte .* of 'data' in global memory, and nothing orders it")
    .bug("answers too early", "released before the read", "byte .* of 'data' in global memory, and nothing orders it")
    .bug("both wait", "polls for no one", NO_ONE)
    .clean(ROUNDS=0)
    .clean(ROUNDS=1)
)


@tlx_xdsl.jit
def tasks_of_one(x, flag, out, BUG: tl.constexpr):
    """Two tasks of one program hand global memory over: by an mbarrier, or by an atomic operation."""
    done = tlx.alloc_barriers(1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tl.store(x + tl.arange(0, 128), tl.arange(0, 128))
            if BUG == "right: atomics of the block":
                tl.atomic_xchg(flag, 1, sem="release", scope="cta")
            elif BUG == "atomics without order":
                tl.atomic_xchg(flag, 1, sem="relaxed", scope="cta")
            tlx.barrier_arrive(done[0])
        with tlx.async_task(num_warps=4):
            if BUG == "right: atomics of the block":
                while tl.atomic_add(flag, 0, sem="acquire", scope="cta") == 0:
                    pass
            elif BUG == "atomics without order":
                while tl.atomic_add(flag, 0, sem="relaxed", scope="cta") == 0:
                    pass
            elif BUG != "no wait":
                tlx.barrier_wait(done[0], 0)
            # at: atomics without order, no wait
            tl.store(out + tl.arange(0, 128), tl.load(x + tl.arange(0, 128)))


OF_X = "byte 0 of 'x' in global memory, and nothing orders it after"
TASKS_OF_ONE = (
    Cage(tasks_of_one, integers(128, 1, 128))
    .bug("atomics without order", "no release", OF_X, twin={"BUG": "right: atomics of the block"})
    .bug("no wait", "tasks of one program", OF_X)
)


@tlx_xdsl.jit
def tiles_by_tma(src_desc, mid_desc, mid, flag, out, BUG: tl.constexpr):
    """Program 0 stores a tile by TMA, program 1 polls for it and reads it, by threads or by TMA."""
    tile = tlx.local_alloc((16, 16), tl.float32, 1)
    full = tlx.alloc_barriers(1)
    offsets = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    if tl.program_id(0) == 0:
        if BUG == "threads then TMA":
            # Flags order threads; TMA reads global memory through another proxy.
            tl.store(mid + offsets, offsets.to(tl.float32))
        else:
            tlx.barrier_expect_bytes(full[0], 1024)
            tlx.async_descriptor_load(src_desc, tile[0], [0, 0], full[0])
            tlx.barrier_wait(full[0], 0)
            tlx.async_descriptor_store(mid_desc, tile[0], [0, 0])
            if BUG == "reads only":
                tlx.async_descriptor_store_wait(0)
            elif BUG == "waited for afterwards":
                tl.atomic_xchg(flag, 1, sem="release")
                tlx.async_descriptor_store_wait(0, read=False)
            else:
                tlx.async_descriptor_store_wait(0, read=False)
        if BUG != "waited for afterwards":
            tl.atomic_xchg(flag, 1, sem="release")
    else:
        while tl.atomic_add(flag, 0, sem="acquire") == 0:
            pass
        if BUG == "right: read by threads" or BUG == "reads only" or BUG == "waited for afterwards":
            # at: reads only, waited for afterwards
            tl.store(out + offsets, tl.load(mid + offsets))
        else:
            tlx.barrier_expect_bytes(full[0], 1024)
            tlx.async_descriptor_load(mid_desc, tile[0], [0, 0], full[0])  # at: threads then TMA
            tlx.barrier_wait(full[0], 0)
            tl.store(out + offsets, tlx.local_load(tile[0]))


def tma_arguments():
    middle = zeros(16, 16, dtype="float32")
    source = described(numbers(16, 16, dtype="float32"), 16, 16)
    return source, described(middle, 16, 16), middle, zeros(1, dtype="int32"), zeros(256, dtype="float32")


BY_TMA = "reads byte 0 of 'mid.*' in global memory, and nothing orders it after the TMA store"
TILES_BY_TMA = (
    Cage(tiles_by_tma, tma_arguments, grid=2)
    .bug("reads only", "TMA store not written", BY_TMA, twin={"BUG": "right: read by threads"})
    .bug("waited for afterwards", "TMA store not written", BY_TMA)
    .bug(
        "threads then TMA",
        "proxy fence in global memory",
        "mid.*proxy",
    )
)

CAGES = (PRODUCER_CONSUMER, RELAY, ROUNDS, TASKS_OF_ONE, TILES_BY_TMA)
