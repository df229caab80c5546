"""Replays of traces by hand: what more of anything does to the time, and times that can be worked out on paper."""

import itertools
from dataclasses import replace

import pytest

from tests.unit.timing.rings import COSTS, FREE, block, ring, work
from tlx_xdsl.timing.chips import H200 as REAL
from tlx_xdsl.timing.engine import Replay, operand_cycles, product_cycles
from tlx_xdsl.timing.memory import Caching, Memory
from tlx_xdsl.timing.pieces import BlockCost
from tlx_xdsl.timing.trace import Event, Point, Step, Trace, Warp

pytestmark = pytest.mark.quick
H200 = replace(REAL, work_factor=1.0)
BEGIN = H200.cta_start_cycles
WARM = Caching(missed=0.1, slow=0.1, written=0.0)
COLD = Caching()


def replay(*traces, chip=H200, costs=COSTS, caching=WARM, sharers=1, side_by_side=1, marks=False, cluster=1):
    machine = Replay(chip, costs, caching=caching, sharers=sharers, marks=marks)
    return machine.run(traces, side_by_side=side_by_side, cluster=cluster)


def alone(*warps, points=(), ctas=(0,)):
    return Trace(list(ctas), list(warps), list(points))


def test_more_stages_are_never_slower_and_two_are_faster_than_one():
    times = [replay(ring(stages, 40)).end for stages in (1, 2, 3, 4, 6)]
    # What TMA writes at once takes the banks from the first products: a little.
    assert all(later <= 1.03 * before for before, later in itertools.pairwise(times))
    assert times[0] > 1.5 * times[2]


@pytest.mark.parametrize("name", ["l1_bytes_per_cycle", "l2_bytes_per_cycle", "dram_bytes_per_second"])
def test_more_bandwidth_is_never_slower(name):
    times = [
        replay(ring(3, 40), chip=replace(H200, **{name: getattr(H200, name) * factor}), sharers=132, caching=COLD).end
        for factor in (0.1, 0.5, 1, 4)
    ]
    assert times == sorted(times, reverse=True)
    assert times[0] > times[2]


def test_a_replay_takes_at_least_what_its_products_and_its_bytes_take():
    rounds = 40
    found = replay(ring(4, rounds), sharers=132, caching=COLD)
    products = rounds * 2 * 4 * product_cycles(H200, 256)
    of_bytes = rounds * (128 + 256) * 64 * 2 * 132 / H200.dram_bytes_per_cycle
    assert found.end >= max(products, of_bytes)
    assert found.tensor == pytest.approx(4 * products)
    # A ring that is deep enough comes near to what is slower of both.
    assert found.end < 1.15 * max(products, of_bytes)


def test_replays_are_the_same_each_time_whether_marks_are_kept_or_not():
    found = [replay(ring(2, 30), marks=marks) for marks in (False, True, False)]
    assert len({each.end for each in found}) == 1
    assert found[0] == found[2]
    assert found[0].waits == found[1].waits
    assert found[1].marks
    assert not found[0].marks


def test_warps_of_a_sub_partition_share_its_issue_slots():
    costs = [BlockCost((work(100),), (), (FREE,), ())]
    one = replay(alone(Warp(0, 0, [Step(0)])), costs=costs).end
    same = replay(alone(Warp(0, 0, [Step(0)]), Warp(0, 4, [Step(0)])), costs=costs).end
    apart = replay(alone(Warp(0, 0, [Step(0)]), Warp(0, 1, [Step(0)])), costs=costs).end
    assert (one, same, apart) == (BEGIN + 100, BEGIN + 200, BEGIN + 100)


def test_warps_that_wait_for_their_own_results_do_not_slow_each_other():
    costs = [BlockCost((work(100, 400),), (), (FREE,), ())]
    warps = [Warp(0, 4 * number, [Step(0)]) for number in range(4)]
    assert replay(alone(*warps), costs=costs).end == BEGIN + 400
    assert replay(alone(*warps, Warp(0, 16, [Step(0)])), costs=costs).end == BEGIN + 500


def test_a_warp_that_does_not_use_a_full_pipe_keeps_its_pace():
    busy = BlockCost((work(10, 100, xu=100),), (), (FREE,), ())
    other = BlockCost((work(10, 100),), (), (FREE,), ())
    found = replay(
        alone(Warp(0, 0, [Step(0)]), Warp(0, 4, [Step(0)]), Warp(0, 8, [Step(1)])), costs=[busy, other], marks=True
    )
    assert [(mark.unit, mark.end - mark.start) for mark in found.marks] == [(8, 100), (0, 200), (4, 200)]


def test_work_that_comes_later_finds_the_sub_partition_half_done():
    long, short = (BlockCost((work(slots),), (), (FREE,), ()) for slots in (300, 100))
    costs = [long, short, block(0, slots=0)]
    later = Warp(0, 4, [Step(2, (Event(0, "sleep", size=100),)), Step(1)])
    found = replay(alone(Warp(0, 0, [Step(0)]), later), costs=costs, marks=True)
    # From 100 on each has half: the short one ends at 300, the long one with what is left at 400.
    assert [(mark.unit, mark.end - BEGIN) for mark in found.marks] == [(4, 300), (0, 400)]


def test_a_load_is_waited_for_where_its_register_is_needed():
    costs = [BlockCost((work(0), work(50), work(10)), (0, -1), (FREE, FREE, frozenset((7,))), ((7,), ()))]
    trace = alone(Warp(0, 0, [Step(0, (Event(0, "load", size=512, sectors=16),))]))
    found = replay(trace, costs=costs, caching=Caching(0, 0, 0))
    assert found.end == pytest.approx(BEGIN + 16 * 32 / H200.l1_bytes_per_cycle + H200.l2_latency + 10)
    assert sum(found.waits.values()) == pytest.approx(H200.l2_latency + 16 * 32 / H200.l1_bytes_per_cycle - 50)
    without = [replace(costs[0], needs=(FREE,) * 3)]
    assert replay(trace, costs=without).end == pytest.approx(BEGIN + 60)


def test_what_was_loaded_before_is_near_and_scattered_lanes_take_lookups():
    memory = Memory(H200, Caching(0, 0, 0), 1)
    page = Event(0, "load", size=2048, sectors=64, lines=(5, 5))
    far = memory.load(0.0, page)
    assert far > H200.l2_latency
    assert memory.load(1000.0, page) - 1000.0 == pytest.approx(16 + H200.l1_latency)
    assert memory.load(2000.0, replace(page, lines=(6, 6))) - 2000.0 == pytest.approx(far)
    scattered = Event(0, "load", size=64, sectors=32, lines=tuple(page for n in range(32) for page in (100 + n,) * 2))
    before = memory.l1.busy
    memory.load(3000.0, scattered)
    assert memory.l1.busy - before == pytest.approx(32 / H200.lookups_per_cycle)
    small = Memory(H200, Caching(0, 0, 0), 1, shared_bytes=H200.l1_bytes - 4096)
    for number in (5, 6, 7):
        small.load(0.0, replace(page, lines=(number, number)))
    assert small.load(5000.0, page) - 5000.0 > H200.l2_latency


def test_a_barrier_ends_with_the_last_arrival():
    costs = [block(0, slots=1), BlockCost((work(500),), (), (FREE,), ())]
    points = [Point("named", 1, 0, 0, 2)]
    meets = Step(0, (Event(0, "signal", (0,)), Event(0, "wait", (0,))))
    found = replay(alone(Warp(0, 0, [meets]), Warp(0, 1, [Step(1), meets]), points=points), costs=costs, marks=True)
    waits = [mark for mark in found.marks if mark.kind == "wait"]
    assert {mark.unit for mark in waits} == {0, 1}
    assert {mark.end for mark in waits} == {
        BEGIN + 501 + H200.named_barrier_cycles + 2 * H200.named_barrier_warp_cycles
    }
    by = next(found.marks[mark.after] for mark in waits if mark.unit == 0)
    assert by.unit == 1


def test_an_arrival_at_another_cta_takes_its_way():
    costs = [block(0, slots=1), block(1, slots=1)]
    points = [Point("mbarrier", 0, 0, 0, 1)]
    waits, arrives = Step(0, (Event(0, "wait", (0,)),)), Step(1, (Event(1, "signal", (0,)),))
    here = replay(alone(Warp(0, 0, [waits]), Warp(0, 1, [arrives]), points=points), costs=costs)
    there = replay(
        alone(Warp(0, 0, [waits]), Warp(1, 0, [arrives]), points=points, ctas=(0, 1)), costs=costs, cluster=2
    )
    assert there.end - here.end == H200.remote_arrive_cycles - H200.arrive_cycles


def test_what_never_comes_leaves_warps_stuck():
    found = replay(alone(Warp(0, 0, [Step(0, (Event(0, "wait", (0,)),))]), points=[Point("named", 1, 0, 0, 2)]),
                   costs=[block(0)])  # fmt: skip
    assert found.stuck == 1


def test_the_next_cta_starts_when_one_has_ended():
    trace = ring(3, 10)
    one, row, both = (replay(*[trace] * count, side_by_side=side).end for count, side in ((1, 1), (3, 1), (2, 2)))
    assert 2.9 * one < row <= 3 * one
    assert one < both < 2 * one


def test_conflicts_of_banks_take_the_time_of_their_wavefronts():
    costs = [BlockCost((work(0), work(10)), (0,), (FREE, frozenset((7,))), ((7,),))]
    times = [
        replay(alone(*(Warp(0, n, [Step(0, (Event(0, "shared", count=count, size=128),))] * 8) for n in range(4))),
               costs=costs).end
        for count in (1, 32)
    ]  # fmt: skip
    # Without conflicts loads overlap, and their latency counts; with them the banks are busy all the time.
    assert times[0] - BEGIN == pytest.approx(8 * (H200.shared_latency + 10), rel=0.1)
    assert times[1] - BEGIN == pytest.approx(8 * 4 * 32 + H200.shared_latency + 10, rel=0.1)


def test_products_take_cycles_for_columns_and_bytes_for_operands():
    assert 4 * operand_cycles(H200, (64, 32, 16), False) == (64 + 32) * 32 / 128
    assert 4 * operand_cycles(H200, (64, 32, 16), True) == 32 * 32 / 128
    # With few columns A's rows take the banks for longer than the product takes the tensor cores.
    assert 4 * operand_cycles(H200, (64, 32, 16), False) > product_cycles(H200, 32)
    assert product_cycles(H200, 256) == 2 * product_cycles(H200, 128) == 128


def test_a_warp_computes_slowly_while_the_tensor_core_beside_it_works():
    product = Event(0, "wgmma", shape=(64, 256, 16), element="f16")
    costs = [block(0, slots=0), BlockCost((work(1000),), (), (FREE,), ())]
    multiplies, computes = Warp(0, 0, [Step(0, (product,) * 2)]), Step(1)
    slow = replay(alone(multiplies, Warp(0, 4, [computes])), costs=costs).end
    beside = replay(alone(multiplies, Warp(0, 5, [computes])), costs=costs).end
    assert beside == BEGIN + 1000
    # For the 256 cycles of both products it does the work of fewer.
    assert slow == pytest.approx(BEGIN + 1000 + 256 * (1 - 1 / H200.product_slowdown), abs=2)


@pytest.mark.parametrize("lag", [0, 2])
def test_loads_of_an_unrolled_loop_are_waited_for_some_turns_later(lag):
    body = BlockCost((work(0), work(50), work(10)), (0, -1), (FREE, FREE, frozenset((7,))), ((7,), ()), lag)
    turns = [Step(0, (Event(0, "load", size=512, sectors=16),)) for _ in range(12)]
    took = replay(alone(Warp(0, 0, turns)), costs=[body], caching=Caching(0, 0, 0)).end - BEGIN
    turn = H200.l2_latency / (lag + 1)
    assert 11 * turn * 0.8 < took < 12 * (turn + 60)
