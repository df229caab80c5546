"""Launches on several ranks: in a row on each, side by side between them, and as many programs as a GPU holds."""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.zoo.ranks.exchanges import resident
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.interpreter.faults import Deadlock

# Kernels are read by the frontend, not run by Python.
# pyright: basic


def pads(ranks, count=4):
    return tlx_xdsl.symmetric([np.zeros(count, np.int32) for _ in range(ranks)])


@tlx_xdsl.jit
def count_up(x, launch, pads):
    """Each launch adds to what the one before has left, without a word to other ranks."""
    offsets = tl.arange(0, 16)
    tl.store(x + offsets, tl.load(x + offsets) * 10 + launch + tlx.rank(pads))


@pytest.mark.parametrize("options", [{}, {"overlapping": True}, {"schedule": "random", "seed": 3}])
def test_launches_of_a_rank_are_in_order(options):
    x = [np.zeros(16, np.int32) for _ in range(3)]
    count_up.interpret(1, x, tlx_xdsl.per_launch([1, 2, 3]), pads(3), launches=3, **options)
    assert [int(each[0]) for each in x] == [123, 234, 345]


@tlx_xdsl.jit
def wait_for_later_launch(pads, launch, BUG: tl.constexpr):
    """Rank 0 signals in its second launch, for which rank 1 waits in its first one."""
    rank = tlx.rank(pads)
    if rank == 0:
        if launch == 2:
            tlx.signal(tlx.peer(pads, 1), 0)
    elif launch == 1:
        tlx.wait_signal(tlx.peer(pads, 1), 0, 1)
    if BUG == "both wait":
        tlx.wait_signal(tlx.peer(pads, rank), 1, launch)


def test_a_rank_goes_on_to_its_next_launch_while_others_are_in_theirs():
    shared = pads(2)
    wait_for_later_launch.interpret(1, shared, tlx_xdsl.per_launch([1, 2]), BUG="", launches=2)
    assert [int(shared[1][0]), int(shared[0][0])] == [1, 0]


def test_a_launch_waits_for_the_one_before_on_its_rank():
    with pytest.raises(Deadlock) as raised:
        wait_for_later_launch.interpret(1, pads(2), tlx_xdsl.per_launch([1, 2]), BUG="both wait", launches=2)
    said = str(raised.value)
    assert "of rank 0 waits until signal 1 of 'pads of rank 0' is at least 1, and it stays 0" in said
    assert "of rank 1 waits until signal 0 of 'pads of rank 1' is at least 1, and it stays 0" in said


def test_each_gpu_holds_as_many_programs_as_its_target():
    # 16 multiprocessors: 16 programs of each rank run, though another rank has room.
    options = {"target": "sm_87", "num_warps": 32}
    resident.interpret(16, pads(2, 17), BUG="waits for all programs", **options)
    with pytest.raises(Deadlock, match=r"16 programs of 1024 threads .* are resident at once on 16 multiprocessors"):
        resident.interpret(17, pads(2, 17), BUG="waits for all programs", **options)


@tlx_xdsl.jit
def lost(pads, BUG: tl.constexpr):
    """Rank 1 waits for two signals, and only one comes."""
    rank = tlx.rank(pads)
    if BUG == "loop" and rank == 1:
        while tl.atomic_add(tlx.peer(pads, 1) + 2, 0, sem="acquire", scope="sys") < 2:
            pass
    elif rank == 1:
        tlx.wait_signal(tlx.peer(pads, 1), 2, 2, compare="==")
    else:
        tlx.signal(tlx.peer(pads, 1), 2)


@pytest.mark.parametrize(
    ("bug", "said"),
    [
        ("", "waits until signal 2 of 'pads of rank 1' is 2, and it stays 1"),
        ("loop", "element 2 of 'pads of rank 1' is 1, and it waits for at least 2"),
    ],
)
def test_a_deadlock_names_rank_signal_and_values(bug, said):
    with pytest.raises(Deadlock) as raised:
        lost.interpret(1, pads(2), BUG=bug)
    message = str(raised.value)
    assert "deadlock: the default task of program (0, 0, 0) of rank 1" in message
    assert said in message
    assert "the default task of program (0, 0, 0) of rank 0 has changed it, at " in message


@tlx_xdsl.jit
def beyond(pads, by: tl.constexpr):
    tlx.signal(tlx.peer(pads, tlx.world_size(pads) + by), 0)


@pytest.mark.parametrize("by", [0, 1, -7])
def test_a_rank_outside_of_the_world_is_named(by):
    with pytest.raises(CompilationError, match="of a peer of 'pads': a rank outside of the world was asked for"):
        beyond.interpret(1, pads(2), by=by)
