"""Launches from replays: occupancy, waves, tails, and what the L2 cache gives; and the timelines of them."""

import itertools
from dataclasses import replace

import pytest

from tests.unit.timing.rings import COSTS, LOAD_B, ring, ring_launch
from tlx_xdsl.timing.chips import B200, H100, H200, chip_named
from tlx_xdsl.timing.launch import occupancy, samples
from tlx_xdsl.timing.memory import Caching, Server, caching
from tlx_xdsl.timing.predict import ENDS_EARLY, of_traces
from tlx_xdsl.timing.trace import Event, Launch, Step, Trace, Warp

pytestmark = pytest.mark.quick


def predict(trace, launch, chip=H200, **options):
    return of_traces(None, COSTS, {0: trace}, launch, chip, **options)


def test_occupancy_is_of_what_is_scarcest():
    launch = Launch((1000, 1, 1), 1, 4, 48 * 1024, 64)
    assert (occupancy(launch, H200).ctas, occupancy(launch, H200).limit) == (4, "shared memory")
    few = occupancy(replace(launch, shared_bytes=0, registers=255), H200)
    assert (few.ctas, few.limit) == (2, "registers")
    small = occupancy(replace(launch, shared_bytes=0, registers=16, warps=1), H200)
    assert (small.ctas, small.limit) == (32, "places")
    assert occupancy(replace(launch, shared_bytes=0, registers=16, warps=16), H200).limit == "threads"


def test_a_launch_of_few_ctas_spreads_over_the_multiprocessors():
    launch = Launch((100, 1, 1), 1, 4, 0, 32)
    found = occupancy(launch, H200)
    assert (found.side_by_side, found.processors) == (1, 100)
    assert occupancy(replace(launch, grid=(200, 1, 1)), H200).side_by_side == 2
    pairs = occupancy(replace(launch, grid=(200, 1, 1), cluster=2), H200)
    assert (pairs.clusters, pairs.servers, pairs.processors, pairs.side_by_side) == (100, 66, 132, 2)


def test_samples_are_the_middle_and_the_ends_of_each_axis():
    assert samples((1000, 1, 1), (1, 1, 1), False) == [500, 0, 999]
    assert samples((10, 4, 1), (2, 1, 1), False) == [2 + 5 * 2, 10, 14, 2, 17]
    assert samples((132, 1, 1), (1, 1, 1), True) == [0, 65, 98, 131]
    assert samples((1, 1, 1), (1, 1, 1), True) == [0]


def test_one_cta_more_than_a_wave_costs_a_wave():
    trace = ring(3, 20)
    times = [predict(trace, ring_launch(ctas, 20)).cycles for ctas in (132, 133, 264, 265)]
    assert 1.5 * times[0] < times[1] < times[3] / 1.3
    assert times[2] == pytest.approx(times[1], rel=0.01)
    assert times[1] - H200.launch_cycles == pytest.approx(2 * (times[0] - H200.launch_cycles), rel=0.05)


def test_many_waves_go_on_at_the_pace_of_the_first_ones():
    trace = ring(3, 20)
    three, thirty = (predict(trace, ring_launch(132 * waves, 20)).cycles - H200.launch_cycles for waves in (3, 30))
    assert thirty == pytest.approx(10 * three, rel=0.02)


def test_ctas_of_different_lengths_are_queued():
    launch = ring_launch(1320, 40)
    long, short = ring(3, 40), ring(3, 4)
    alike = of_traces(None, COSTS, {660: short, 0: short, 1319: short}, launch, H200).cycles
    mixed = of_traces(None, COSTS, {660: short, 0: long, 1319: short}, launch, H200).cycles
    all_long = of_traces(None, COSTS, {660: long, 0: long, 1319: long}, launch, H200).cycles
    assert alike < mixed < all_long


def test_a_trace_that_was_cut_off_goes_on_at_its_pace():
    whole, part = ring(3, 80), ring(3, 40)
    for warp, of_whole in zip(part.warps, whole.warps, strict=True):
        warp.ran = len(of_whole.steps)
    part.whole = False
    launch = ring_launch(132, 80)
    found = predict(part, launch)
    assert found.cycles == pytest.approx(predict(whole, launch).cycles, rel=0.05)
    assert any("cut off" in note for note in found.timeline.notes)


def test_a_trace_that_ends_where_it_waits_for_other_ctas_gives_a_lower_bound():
    trace = ring(4, 16)
    for whole, ran, ends_early in ((True, 0, False), (False, 0, True), (False, 400, False)):
        cut = replace(trace, whole=whole, warps=[replace(warp, ran=ran) for warp in trace.warps])
        notes = predict(cut, ring_launch(132, 16)).timeline.notes
        assert (ENDS_EARLY in notes) is ends_early
        assert any("go on at the same pace" in note for note in notes) is (ran > 0)


def test_what_all_ctas_read_comes_from_dram_once():
    trace = ring(3, 20)
    launch = ring_launch(132, 20)
    shared = caching([trace], launch, H200, 132)
    assert shared.missed == pytest.approx(1 / 132, rel=0.05)
    own = caching([trace], replace(launch, array_bytes=(132 * launch.array_bytes[0],)), H200, 132)
    assert own.missed == pytest.approx(1.0, rel=0.05)
    assert own.slow >= shared.slow


def test_small_results_stay_in_the_l2_cache():
    def stores(size):
        return Trace(
            [0], [Warp(0, 0, [Step(0, (Event(0, "store", sectors=size // 32, lines=(0, size // 2048)),))])], []
        )

    launch = Launch((1000, 1, 1), 1, 1, 0, 32, (1_000_000,))
    assert caching([stores(4096)], launch, H200, 132).written == 0.0
    big = replace(launch, grid=(100_000, 1, 1), array_bytes=(409_600_000,))
    assert caching([stores(4096)], big, H200, 132).written > 0.9
    assert caching([], launch, H200, 132) == Caching()


def test_a_server_serves_one_request_after_the_other():
    server = Server()
    assert [server.take(5.0, 10.0), server.take(0.0, 10.0), server.take(100.0, 1.0)] == [15.0, 25.0, 101.0]
    assert server.busy == 21.0


def test_l2_and_dram_keep_their_clocks_when_the_multiprocessors_are_slow():
    half = H200.at(H200.hertz / 2)
    assert half.dram_bytes_per_cycle == pytest.approx(2 * H200.dram_bytes_per_cycle)
    assert half.l2_bytes_per_cycle == 2 * H200.l2_bytes_per_cycle
    assert half.dram_latency == H200.near_latency + (H200.dram_latency - H200.near_latency) / 2
    assert half.shared_latency == H200.shared_latency
    assert H200.at(H200.hertz) == H200


def test_products_lower_the_clock_and_many_of_them_lower_it_more():
    clocks = [H200.clock(products) for products in (None, 0.0, 0.5, 0.8, 1.0)]
    assert clocks[0] > clocks[1] == clocks[2] > clocks[3] > clocks[4] > 1.3e9


def test_a_given_clock_is_the_one_of_the_launch():
    trace, launch = ring(2, 20), ring_launch(132, 20)
    slow, fast = (
        of_traces(None, COSTS, {0: trace}, launch, H200, timeline=False, hertz=hertz) for hertz in (1.0e9, 1.9e9)
    )
    assert (slow.timeline.hertz, fast.timeline.hertz) == (1.0e9, 1.9e9)
    # Memory waits for fewer cycles of a slow clock, but all takes longer.
    assert slow.cycles < fast.cycles < 1.9 * slow.cycles


def test_the_timeline_has_all_tracks_and_a_critical_path_through_time():
    found = predict(ring(2, 12), ring_launch(132, 12), tasks=((0, 8, "consumer"), (8, 1, "producer")))
    timeline = found.timeline
    assert {track.kind for track in timeline.tracks} == {"warp", "tensor core", "tma", "barrier"}
    assert {track.group for track in timeline.tracks if track.kind == "warp"} == {"consumer", "producer"}
    assert all(0 <= span.start <= span.end <= timeline.end for span in timeline.spans)
    waits = [span for span in timeline.spans if span.kind == "wait" and span.after >= 0]
    assert any(span.cause == "TMA load" for span in waits)
    assert any(span.cause.startswith("arrival of warp") for span in waits)
    path = [timeline.spans[number] for number in timeline.critical]
    assert path[0].start < 0.1 * timeline.end
    assert path[-1].end == timeline.end
    assert [span.end for span in path] == sorted(span.end for span in path)
    assert timeline.launch_cycles is not None
    assert timeline.hertz is not None
    # Tensor cores that are busy all the time slow the clock down.
    assert timeline.launch_cycles == found.cycles
    assert timeline.hertz < H200.product_hertz < H200.hertz


def test_buffers_are_alive_from_the_copy_to_the_release():
    trace = ring(2, 12)
    stage = -1
    for warp in trace.warps:
        for step in warp.steps:
            for event in step.events:
                if event.at == LOAD_B:
                    stage += 1
                    event.place = 1024 * (stage % 2)
    timeline = predict(trace, ring_launch(132, 12)).timeline
    tracks = [number for number, track in enumerate(timeline.tracks) if track.kind == "buffer"]
    assert [timeline.tracks[number].name for number in tracks] == ["slot 0", "slot 1"]
    for track in tracks:
        spans = [span for span in timeline.spans if span.track == track]
        assert len(spans) == 6
        assert all(before.end <= after.start for before, after in itertools.pairwise(spans))


def test_sentences_name_the_limit():
    slow = predict(ring(1, 20), ring_launch(132, 20))
    assert (
        slow.timeline.sentences[2]
        == "For the TMA load there is one buffer, and a load takes "
        + (slow.timeline.sentences[2].rpartition("takes ")[2])
    )
    assert slow.bound == "latency of memory"
    fast = predict(ring(6, 60), ring_launch(132, 60), replace(H200, l2_bytes_per_cycle=1e6))
    assert fast.bound == "tensor cores"
    assert len(fast.timeline.sentences) == 3
    narrow = predict(ring(6, 60), ring_launch(132, 60), replace(H200, l2_bytes_per_cycle=2e3))
    assert narrow.bound == "L2 cache"


def test_without_a_timeline_the_time_is_the_same():
    trace, launch = ring(3, 20), ring_launch(500, 20)
    shown, not_shown = (predict(trace, launch, timeline=timeline) for timeline in (True, False))
    assert shown.cycles == not_shown.cycles
    assert (shown.bound, shown.shares) == (not_shown.bound, not_shown.shares)
    assert not not_shown.timeline.spans


def test_chips_have_names():
    assert chip_named("h100") is H100
    assert chip_named("B200") is B200
    assert H100.dram_bytes_per_second < H200.dram_bytes_per_second
    assert any("no run" in note for note in predict(ring(2, 4), ring_launch(4, 4), B200).timeline.notes)
    with pytest.raises(ValueError, match="no constants of 'A100', only of H200, H100, B200"):
        chip_named("A100")
