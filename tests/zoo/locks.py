"""Locks, semaphores and counters in global memory."""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.zoo.arrays import numbers, zeros
from tests.zoo.bugs import Cage

# Kernels are read by the frontend, not run by Python.
# pyright: basic


def integers(*counts):
    return lambda: tuple(zeros(count, dtype="int32") for count in counts)


@tlx_xdsl.jit
def spin_lock(lock, total, log, BUG: tl.constexpr):
    """All programs add to a sum, one at a time."""
    if BUG == "takes what is taken":
        tl.atomic_xchg(lock, 1, sem="acquire")
    elif BUG == "relaxed take":
        while tl.atomic_cas(lock, 0, 1, sem="relaxed") == 1:
            pass
    elif BUG == "looks and then takes":
        while tl.atomic_add(lock, 0, sem="acquire") == 1:
            pass
        tl.atomic_xchg(lock, 1, sem="relaxed")
    elif BUG != "no lock":
        while tl.atomic_cas(lock, 0, 1, sem="acquire") == 1:  # at: never released, released elsewhere, plain release
            pass
    # at: relaxed take, relaxed release, no lock, takes what is taken, looks and then takes, released before the store
    before = tl.load(total)
    if BUG == "released before the store":
        tl.atomic_xchg(lock, 0, sem="release")
    tl.store(total, before + 1)
    if BUG == "plain release":
        tl.store(lock, 0)
    elif BUG == "relaxed release":
        tl.atomic_xchg(lock, 0, sem="relaxed")
    elif BUG == "released elsewhere":
        tl.atomic_xchg(lock + 1, 0, sem="release")
    elif BUG != "never released" and BUG != "released before the store" and BUG != "no lock":
        tl.atomic_xchg(lock, 0, sem="release")
    if BUG == "last store outside":
        tl.store(log, before)  # at: last store outside
    else:
        tl.store(log + tl.program_id(0), before)


RACE = "byte 0 of 'total' in global memory, and nothing orders it after"
SPIN_LOCK = (
    Cage(spin_lock, integers(2, 1, 4), grid=4)
    .bug("relaxed take", "no acquire", RACE)
    .bug("relaxed release", "no release", RACE)
    .bug("plain release", "plain flag", "byte 0 of 'lock' in global memory, and nothing orders it after")
    .bug("released before the store", "released before the store", RACE)
    .bug("last store outside", "released before the store", "byte 0 of 'log' in global memory, and nothing orders it")
    .bug("no lock", "no lock", RACE)
    .bug("never released", "polls for no one", "deadlock: .*polls global memory in a loop")
    .bug("released elsewhere", "polls for no one", "deadlock: .*polls global memory in a loop")
    .bug("takes what is taken", "lock not exclusive", RACE)
    .bug("looks and then takes", "lock not exclusive", RACE)
    .clean(grid=1)
    .clean(seconds=0.2)
)


@tlx_xdsl.jit
def semaphore(x, order, out, BUG: tl.constexpr):
    """Programs add their block to the sum in the order of their number, for the same result each time."""
    pid = tl.program_id(0)
    offsets = tl.arange(0, 32)
    values = tl.load(x + pid * 32 + offsets)
    if BUG == "right: backwards":
        turn = tl.num_programs(0) - 1 - pid
    else:
        turn = pid
    if BUG == "begins with one":
        while tl.atomic_add(order, 0, sem="acquire") != turn + 1:  # at: begins with one
            pass
    elif BUG == "at least":
        while tl.atomic_add(order, 0, sem="acquire") < turn - 1:
            pass
    else:
        while tl.atomic_add(order, 0, sem="acquire") != turn:  # at: gives two, not the last
            pass
    # at: relaxed, at least, passes on too early
    so_far = tl.load(out + offsets)
    if BUG == "passes on too early":
        tl.atomic_add(order, 1, sem="release")
    tl.store(out + offsets, so_far + values)
    if BUG == "relaxed":
        tl.atomic_add(order, 1, sem="relaxed")
    elif BUG == "gives two":
        tl.atomic_add(order, 2, sem="release")
    elif BUG == "not the last":
        tl.atomic_xchg(order, 1, sem="release")
    elif BUG != "passes on too early":
        tl.atomic_add(order, 1, sem="release")


OF_OUT = "byte 0 of 'out' in global memory, and nothing orders it after"
NO_ONE = "deadlock: .*polls global memory in a loop, and no one writes there any more"
SEMAPHORE = (
    Cage(
        semaphore, lambda: (numbers(128, dtype="float32"), zeros(1, dtype="int32"), zeros(32, dtype="float32")), grid=4
    )
    .bug("relaxed", "no release", OF_OUT, twin={"BUG": "right: backwards"})
    .bug("at least", "semaphore value", OF_OUT)
    .bug("passes on too early", "released before the store", OF_OUT)
    .bug("begins with one", "polls for no one", NO_ONE)
    .bug("gives two", "semaphore value", NO_ONE)
    .bug("not the last", "semaphore value", NO_ONE)
    .clean(grid=1)
    .clean(seconds=0.2)
)


@tlx_xdsl.jit
def last_one(x, sums, count, out, BUG: tl.constexpr):
    """Split-K by partial sums: who counts last adds them up."""
    pid = tl.program_id(0)
    offsets = tl.arange(0, 32)
    if BUG == "one place for all":
        tl.store(sums + offsets, tl.load(x + pid * 32 + offsets))  # at: one place for all
    elif BUG != "counted before it is stored":
        # at: last but one, all add up
        tl.store(sums + pid * 32 + offsets, tl.load(x + pid * 32 + offsets))
    if BUG == "relaxed count":
        number = tl.atomic_add(count, 1, sem="relaxed")
    elif BUG == "release only":
        number = tl.atomic_add(count, 1, sem="release")
    elif BUG == "acquire only":
        number = tl.atomic_add(count, 1, sem="acquire")
    elif BUG == "right: fences":
        tlx.fence("gpu")
        number = tl.atomic_add(count, 1, sem="relaxed")
        tlx.fence("gpu")
    else:
        number = tl.atomic_add(count, 1, sem="acq_rel")  # at: not reset
    if BUG == "counted before it is stored":
        tl.store(sums + pid * 32 + offsets, tl.load(x + pid * 32 + offsets))
    last = tl.num_programs(0) - (2 if BUG == "last but one" else 1)
    if number == last or BUG == "all add up":
        total = tl.zeros((32,), tl.float32)
        for each in range(tl.num_programs(0)):
            # at: relaxed count, release only, acquire only, counted before it is stored
            total += tl.load(sums + each * 32 + offsets)
        tl.store(out + offsets, total)
        if BUG != "not reset":
            tl.atomic_xchg(count, 0, sem="relaxed")


def partial_sums(count=0):
    def make():
        held = zeros(1, dtype="int32")
        held[0] = count
        return numbers(128, dtype="float32"), zeros(128, dtype="float32"), held, zeros(32, dtype="float32")

    return make


OF_SUMS = "byte [0-9]* of 'sums' in global memory, and nothing orders it after"
LAST_ONE = (
    Cage(last_one, partial_sums(), grid=4)
    .bug("relaxed count", "no release", OF_SUMS)
    .bug("release only", "no acquire", OF_SUMS)
    .bug("acquire only", "no release", OF_SUMS, twin={"BUG": "right: fences"})
    .bug("counted before it is stored", "released before the store", OF_SUMS)
    .bug("last but one", "counter value", OF_SUMS)
    .bug("one place for all", "duplicate address", OF_SUMS)
    .bug("all add up", "counter value", "of '(out|sums)' in global memory, and nothing orders it after")
    # Whether the host clears the counter is not known otherwise.
    .bug(
        "not reset",
        "counter not reset",
        "'out' is written by the first launch, and not by the second",
        constants={"launches": 2},
    )
)


@tlx_xdsl.jit
def used_again(count, out, BUG: tl.constexpr):
    """A counter that the launch before has left: this launch relies on zero."""
    number = tl.atomic_add(count, 1, sem="acq_rel")
    if number == tl.num_programs(0) - 1:
        tl.store(out, 1)
        if BUG == "":
            tl.atomic_xchg(count, 0, sem="relaxed")
    if BUG == "last one waits":
        if tl.program_id(0) == 0:
            while tl.atomic_add(count, 0, sem="acquire") != tl.num_programs(0):  # at: last one waits
                pass


def counted(count):
    def make():
        held = zeros(1, dtype="int32")
        held[0] = count
        return held, zeros(1, dtype="int32")

    return make


USED_AGAIN = Cage(used_again, counted(4), grid=4).bug("last one waits", "counter not reset", NO_ONE)

CAGES = (SPIN_LOCK, SEMAPHORE, LAST_ONE, USED_AGAIN)
