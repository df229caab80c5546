"""Orders of launches: how many make a difference, that each is run, and that one can be run again."""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.zoo.descriptors import CAGES
from tlx_xdsl.interpreter.faults import Deadlock, Fault
from tlx_xdsl.interpreter.orders.reduction import Orders

# covers: tlx check

# Kernels are read by the frontend, not run by Python.
# pyright: basic


def explored(kernel, grid, make, **options):
    """Run all orders; gives them, and what each has left in the arrays, or the first line of its fault."""
    orders, found = Orders(), []
    while orders.begin():
        arrays = make()
        before = orders.runs
        try:
            tlx_xdsl.interpret(kernel, grid, *arrays, options={"order": orders, **options})
        except Fault as fault:
            found.append((type(fault).__name__, fault.message))
        else:
            if orders.runs > before:
                found.append(tuple(tuple(np.ravel(each).tolist()) for each in arrays))
    assert orders.is_over
    return orders, found


def zeros(*sizes):
    return lambda: tuple(np.zeros(size, np.int32) for size in sizes)


@tlx_xdsl.jit
def tickets(count, out):
    tl.store(out + tl.program_id(0), tl.atomic_add(count, 1))


def test_programs_that_draw_tickets_come_in_every_order():
    orders, found = explored(tickets, 4, zeros(1, 4))
    assert (orders.runs, orders.repeats) == (24, 0)
    assert len({out for _, out in found}) == 24


@tlx_xdsl.jit
def histogram(count):
    tl.atomic_add(count + tl.arange(0, 16) % 3, 1)


def test_additions_come_in_any_order():
    orders, found = explored(histogram, 5, zeros(3))
    assert orders.runs == 1
    assert found == [((30, 25, 25),)]


@tlx_xdsl.jit
def last_one(x, count, out):
    """The last program adds up what all have left."""
    tl.store(x + tl.program_id(0), tl.program_id(0) + 1)
    if tl.atomic_add(count, 1) == tl.num_programs(0) - 1:
        tl.store(out, tl.sum(tl.load(x + tl.arange(0, 4))))


def test_results_that_the_order_does_not_change():
    orders, found = explored(last_one, 4, zeros(4, 1, 1))
    assert orders.runs == 24
    assert {out for *_, out in found} == {(10,)}


@tlx_xdsl.jit
def lock(taken, total, log):
    while tl.atomic_cas(taken, 0, 1, sem="acquire") != 0:
        pass
    before = tl.load(total)
    tl.store(total, before + 1)
    tl.store(log + tl.program_id(0), before)
    tl.atomic_xchg(taken, 0, sem="release")


def test_a_lock_is_taken_in_every_order_and_no_wait_counts():
    orders, found = explored(lock, 3, zeros(1, 1, 3))
    assert (orders.runs, orders.repeats) == (6, 0)
    assert {total for _, total, _ in found} == {(3,)}
    assert len({log for *_, log in found}) == 6


@tlx_xdsl.jit
def in_turn(turn, out):
    """Programs follow each other."""
    while tl.atomic_add(turn, 0, sem="acquire") != tl.program_id(0):
        pass
    tl.store(out, tl.load(out) * 2 + tl.program_id(0))
    tl.atomic_add(turn, 1, sem="release")


def test_programs_in_turn_have_one_order():
    orders, found = explored(in_turn, 4, zeros(1, 1))
    assert (orders.runs, orders.repeats) == (1, 0)
    assert found[0][1] == (11,)


@tlx_xdsl.jit
def volatile_flag(flag, out):
    if tl.program_id(0) == 0:
        tl.atomic_xchg(flag, 1)
    else:
        tl.store(out, tl.load(flag, volatile=True))


def test_a_volatile_load_comes_before_and_after():
    _, found = explored(volatile_flag, 2, zeros(1, 1))
    assert {out for _, out in found} == {(0,), (1,)}


@tlx_xdsl.jit
def opposite(first, second, out):
    """Two locks, which each program takes in an order of its own."""
    pid = tl.program_id(0)
    one, two = first, second
    if pid == 1:
        one, two = second, first
    while tl.atomic_cas(one, 0, 1) != 0:
        pass
    while tl.atomic_cas(two, 0, 1) != 0:
        pass
    tl.store(out + pid, 1)
    tl.atomic_xchg(two, 0)
    tl.atomic_xchg(one, 0)


def test_a_deadlock_of_two_locks_and_the_order_that_leads_to_it():
    make = zeros(1, 1, 2)
    tlx_xdsl.interpret(opposite, 2, *make())
    orders, found = Orders(), []
    while orders.begin():
        try:
            tlx_xdsl.interpret(opposite, 2, *make(), order=orders)
        except Deadlock:
            found.append(orders.text)
    assert found
    for text in found:
        again = Orders(text)
        again.begin()
        with pytest.raises(Deadlock, match="polls global memory in a loop"):
            tlx_xdsl.interpret(opposite, 2, *make(), order=again)


@tlx_xdsl.jit
def ring(src, dst, TILES: tl.constexpr):
    tiles = tlx.local_alloc((16, 16), tl.float32, 2)
    full, empty = tlx.alloc_barriers(2), tlx.alloc_barriers(2)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for t in range(TILES):
                tlx.barrier_wait(empty[t % 2], (t // 2) & 1 ^ 1)
                tlx.barrier_expect_bytes(full[t % 2], 16 * 16 * 4)
                tlx.async_descriptor_load(src, tiles[t % 2], [t * 16, 0], full[t % 2])
        with tlx.async_task(num_warps=4):
            for t in range(TILES):
                tlx.barrier_wait(full[t % 2], (t // 2) & 1)
                tlx.async_descriptor_store(dst, tiles[t % 2], [t * 16, 0])
                tlx.async_descriptor_store_wait(0)
                tlx.barrier_arrive(empty[t % 2])


@pytest.mark.parametrize("stage", ["frontend", "ttgir"])
def test_mbarriers_and_copies_have_one_order(stage):
    def make():
        arrays = (np.ones((80, 16), np.float32), np.zeros((80, 16), np.float32))
        return tuple(tlx_xdsl.TensorDescriptor.from_tensor(each, [16, 16]) for each in arrays)

    orders = Orders()
    while orders.begin():
        src, dst = make()
        tlx_xdsl.interpret(ring, 1, src, dst, TILES=5, options={"order": orders, "stage": stage})
        assert (dst.base == 1).all()
    assert (orders.runs, orders.repeats, orders.unexplored) == (1, 0, "")


@tlx_xdsl.jit
def three_at_a_barrier(out, PAIRED: tl.constexpr):
    """Each phase takes two of three tasks: which two, nothing says; paired, the third one meets itself at another."""
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tlx.named_barrier_wait(1, 256)
        with tlx.async_task(num_warps=4):
            tlx.named_barrier_wait(1, 256)
        with tlx.async_task(num_warps=4):
            tlx.named_barrier_wait(2 if PAIRED else 1, 128 if PAIRED else 256)


def test_who_meets_at_a_named_barrier():
    """Three tasks at a barrier for two: whichever order is run, nothing orders the third arrival after the phase."""
    _, found = explored(three_at_a_barrier, 1, lambda: (np.zeros(1, np.int32), False))
    ((kind, message),) = found
    assert kind == "Race"
    assert message.startswith("nothing orders this arrival at named barrier 1 after its phase before")
    orders, found = explored(three_at_a_barrier, 1, lambda: (np.zeros(1, np.int32), True))
    assert orders.runs == 1


def test_each_kind_of_result_that_chance_finds_is_found():
    """Random orders of tasks see nothing that the exploration does not."""

    @tlx_xdsl.jit
    def tasks(flag, out):
        with tlx.async_tasks():
            with tlx.async_task("default"):
                tl.store(out, tl.atomic_add(flag, 1))
                tl.store(out + 1, tl.atomic_add(flag, 1))
            with tlx.async_task(num_warps=1):
                tl.store(out + 2, tl.atomic_xchg(flag, 5))
            with tlx.async_task(num_warps=1):
                tl.store(out + 3, tl.atomic_max(flag, 3))

    orders, found = explored(tasks, 1, zeros(1, 4))
    assert orders.runs == len(set(found)) == 12
    for seed in range(30):
        arrays = zeros(1, 4)()
        tlx_xdsl.interpret(tasks, 1, *arrays, options={"schedule": "random", "seed": seed})
        assert tuple(tuple(each.tolist()) for each in arrays) in found


def test_a_program_is_launched_before_or_after_another_one_asks_for_it():
    """Cluster launch control: a program takes the next one over, or that one runs by itself."""
    cage = next(each for each in CAGES if each.kernel.source.name == "given_out")
    options = {**cage.options, "schedule": "adversarial"}
    orders, found = explored(cage.kernel, 3, lambda: (*cage.arguments(), ""), **options)
    assert orders.runs > 3
    assert not [each for each in found if "Fault" in each]
