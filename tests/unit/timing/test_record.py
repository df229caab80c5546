"""Traces of short kernels of PTX: points of barriers, copies, what is left out, and what ends a run early."""

import numpy as np
import pytest

from tests.unit.ptx.snippets import kernel
from tests.unit.timing.replays import check, events_of
from tlx_xdsl.ptx.machine import Limits
from tlx_xdsl.ptx.program import prepare
from tlx_xdsl.ptx.read.faults import PtxFault
from tlx_xdsl.ptx.read.reader import read
from tlx_xdsl.timing.record import record
from tlx_xdsl.timing.recorder import MOST_POLLS
from tlx_xdsl.timing.slices import Slice

pytestmark = pytest.mark.quick

SHARED = ".shared .align 16 .b8 buffer[4096];\n.shared .align 16 .b8 barrier[16];"


def recorded(body, args, grid=1, parameters="*", **options):
    """The program, and its traces, each checked."""
    threads = 32 * options.pop("warps", 1)
    program = prepare(read(kernel(body, parameters, threads=threads, shared=SHARED), "test.ptx"))
    traces, launch = record(program, grid, args, **options)
    for trace in traces:
        check(trace, program)
    return program, traces, launch


def steps_of(warp, program):
    """The opcodes of the events of a warp, with their kinds."""
    instructions = program.function.instructions
    return [(event.kind, instructions[event.at].name) for step in warp.steps for event in step.events]


PIPE = """
    setp.ge.u32 %p1, %r0, 32;
    setp.eq.u32 %p2, %r0, 0;
    mov.u32 %r1, barrier;
    @%p2 mbarrier.init.shared.b64 [%r1], 1;
    bar.sync 0;
    mov.u32 %r2, 0;
loop:
    @%p1 bra consumer;
    @%p2 mbarrier.arrive.shared.b64 _, [%r1];
    bra next;
consumer:
    and.b32 %r3, %r2, 1;
wait:
    mbarrier.try_wait.parity.shared.b64 %p3, [%r1], %r3;
    @!%p3 bra wait;
next:
    bar.sync 1, 64;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p4, %r2, 5;
    @%p4 bra loop;
"""


def test_points_are_phases_of_barriers():
    """One warp arrives five times, the other waits for each phase; both meet at a named barrier in between."""
    _, (trace,), _ = recorded(PIPE, [], parameters="", warps=2)
    mbarriers = [each for each in trace.points if each.kind == "mbarrier"]
    assert [(each.name, each.phase, each.contributions) for each in mbarriers] == [
        (4096, phase, 1) for phase in range(5)
    ]
    named = [(each.name, each.phase, each.contributions) for each in trace.points if each.kind == "named"]
    assert named == [(0, 0, 2), *((1, phase, 2) for phase in range(5))]
    waits = [event for step in trace.warps[1].steps for event in step.events if event.kind == "wait"]
    phases = [trace.points[event.points[0]].phase for event in waits]
    assert phases == [0, *(phase for each in range(5) for phase in (each, each))]
    assert all(warp.ran == len(warp.steps) for warp in trace.warps)


def test_a_wait_for_the_phase_before_the_first_names_no_point():
    body = """
    mov.u32 %r1, barrier;
    mbarrier.init.shared.b64 [%r1], 1;
wait:
    mbarrier.try_wait.parity.shared.b64 %p3, [%r1], 1;
    @!%p3 bra wait;
    """
    body = "setp.eq.u32 %p1, %r0, 0;\n@!%p1 bra end;\n" + body + "end:"
    _, (trace,), _ = recorded(body, [], parameters="")
    (wait,) = events_of(trace, "wait")
    assert wait.points == ()


def test_a_cluster_meets_and_stores_into_each_other():
    body = """
    mov.u32 %r1, %cluster_ctarank;
    xor.b32 %r2, %r1, 1;
    mov.u32 %r3, buffer;
    mapa.shared::cluster.u32 %r4, %r3, %r2;
    shl.b32 %r5, %r0, 2;
    add.u32 %r4, %r4, %r5;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    st.shared::cluster.u32 [%r4], %r0;
    add.u32 %r3, %r3, %r5;
    st.shared.u32 [%r3], %r0;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    """
    _, traces, launch = recorded(body, [], grid=6, parameters="", cluster=(2,), clusters=[2, 0])
    assert [trace.ctas for trace in traces] == [[4, 5], [0, 1]]
    assert launch.cluster == 2
    for trace in traces:
        assert [(each.kind, each.phase, each.contributions) for each in trace.points] == [
            ("cluster", 0, 2), ("cluster", 1, 2)
        ]  # fmt: skip
        assert [(event.count, event.size) for event in events_of(trace, "remote", "shared")] == [(1, 128)] * 4
        assert len(events_of(trace, "remote")) == 2


MULTICAST = """
    mov.u32 %r1, %cluster_ctarank;
    mov.u32 %r2, barrier;
    mov.u32 %r3, buffer;
    setp.eq.u32 %p1, %r0, 0;
    setp.eq.and.u32 %p2, %r1, 0, %p1;
    @%p1 mbarrier.init.shared.b64 [%r2], 1;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 512;
    mov.u16 %rs1, 3;
    @%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
        [%r3], [%rd0], 512, [%r2], %rs1;
wait:
    mbarrier.try_wait.parity.shared.b64 %p3, [%r2], 0;
    @!%p3 bra wait;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
"""


def test_a_copy_to_all_ctas_of_a_cluster_counts_in_each():
    _, (trace,), _ = recorded(MULTICAST, [np.zeros(128, np.uint32)], grid=2, cluster=(2,))
    (load,) = events_of(trace, "tma_load")
    assert (load.multicast, load.size, load.place, load.sectors) == (2, 512, 0, 16)
    points = [trace.points[number] for number in load.points]
    assert [(each.kind, each.cta, each.contributions) for each in points] == [("mbarrier", 0, 2), ("mbarrier", 1, 2)]


ROWS = """
    mov.u32 %r1, %ctaid.x;
    mad.lo.u32 %r2, %r1, 32, %r0;
    mul.wide.u32 %rd1, %r2, 4;
    add.u64 %rd2, %rd0, %rd1;
    ld.global.f32 %f1, [%rd2];
    ex2.approx.f32 %f2, %f1;
    fma.rn.f32 %f3, %f2, %f2, %f1;
    {then}
    st.global.f32 [%rd2], %f3;
"""


def test_arrays_are_not_written_and_arithmetic_on_data_is_left_out():
    x = np.arange(3200, dtype=np.float32)
    program, (trace,), launch = recorded(ROWS.format(then=""), [x], grid=100, clusters=[7])
    assert (x == np.arange(3200)).all()
    assert trace.ctas == [7]
    load, store = events_of(trace, "load", "store")
    assert (load.size, load.sectors) == (store.size, store.sectors) == (128, 4)
    assert load.lines == store.lines
    assert launch.array_bytes == [12800]
    kept = {
        instruction.name
        for instruction, step in zip(program.function.instructions, Slice(program, {}).program.steps, strict=True)
        if step is not None
    }
    assert {"ld", "st", "mul", "mad"} <= kept
    assert kept.isdisjoint({"ex2", "fma"})


def test_pages_of_global_memory():
    """Threads 8,192 bytes apart: 32 sectors, in as many pages; a second CTA begins where its array does."""
    body = """
    mul.wide.u32 %rd1, %r0, 8192;
    add.u64 %rd2, %rd0, %rd1;
    ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd2];
    """
    _, (trace,), _ = recorded(body, [np.zeros(1 << 16, np.uint32)])
    (load,) = events_of(trace, "load")
    assert (load.size, load.sectors) == (512, 32)
    first, last = np.array(load.lines).reshape(-1, 2).T
    assert (first == last).all()
    assert (np.diff(first) == 4).all()


def test_branches_on_data_are_guessed():
    """The path of numbers above a bound is not taken: data count as 1. A branch on an index is exact."""
    then = "setp.gt.f32 %p1, %f3, 0f41000000;\n@%p1 st.global.f32 [%rd2+4], %f2;\n"
    x = np.full(32, 100, np.float32)
    program, (trace,), _ = recorded(ROWS.format(then=then), [x])
    assert len(events_of(trace, "store")) == 1
    assert not Slice(program, {}).checked


THROUGH_SHARED = """
    mov.u32 %r1, buffer;
    shl.b32 %r2, %r0, 2;
    add.u32 %r3, %r1, %r2;
    mul.wide.u32 %rd1, %r0, 4;
    add.u64 %rd2, %rd0, %rd1;
    ld.global.u32 %r4, [%rd2];
    add.u32 %r4, %r4, 1;
    st.shared.u32 [%r3], %r4;
    bar.warp.sync -1;
    ld.shared.u32 %r5, [%r1+16];
    mul.wide.u32 %rd3, %r5, 32;
    add.u64 %rd4, %rd0, %rd3;
    {access}
"""


def test_data_that_turn_out_to_be_addresses_are_computed():
    """A warp's data in shared memory are left out, until an address is made of them: then the run begins again."""
    x = np.zeros(4096, np.uint32)
    x[4] = 99
    _, (trace,), _ = recorded(THROUGH_SHARED.format(access="ld.global.u32 %r6, [%rd4];"), [x])
    first, second = events_of(trace, "load")
    assert second.lines[0] - first.lines[0] == 100 * 32 >> 11
    program = prepare(read(kernel(THROUGH_SHARED.format(access=""), shared=SHARED), "test.ptx"))
    assert Slice(program, {}).hollow


def test_a_pointer_that_is_staged_in_shared_memory():
    """Zeros in the place of a pointer would be an access to no array."""
    body = """
    mov.u32 %r1, buffer;
    st.shared.u64 [%r1], %rd0;
    bar.warp.sync -1;
    ld.shared.u64 %rd1, [%r1];
    ld.global.u32 %r6, [%rd1];
    """
    _, (trace,), _ = recorded(body, [np.zeros(64, np.uint32)])
    assert [event.sectors for event in events_of(trace, "load")] == [1]
    with pytest.raises(PtxFault, match="out of bounds"):
        recorded("ld.global.u32 %r6, [%rd0+512];", [np.zeros(64, np.uint32)])


def test_clusters_that_are_not_launched_are_taken_over():
    """Six CTAs of which two run at once: a CTA takes two more."""
    body = """
    setp.eq.u32 %p1, %r0, 0;
    @!%p1 bra end;
    mov.u32 %r1, barrier;
    mov.u32 %r2, buffer;
    mbarrier.init.shared.b64 [%r1], 1;
    mov.u32 %r3, 0;
again:
    mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 16;
    clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r2], [%r1];
wait:
    mbarrier.try_wait.parity.shared.b64 %p2, [%r1], %r3;
    @!%p2 bra wait;
    xor.b32 %r3, %r3, 1;
    ld.shared.u32 %r4, [%r2+12];
    setp.ne.u32 %p3, %r4, 0;
    @%p3 bra again;
end:
    """
    _, traces, _ = recorded(body, [], grid=6, parameters="", clusters=[0, 3], resident=2)
    assert [len(events_of(trace, "tma_load")) for trace in traces] == [3, 3]
    assert [len(trace.points) for trace in traces] == [3, 3]


def test_a_warp_that_waits_for_ctas_that_do_not_run_ends():
    body = """
    mov.u32 %r1, %ctaid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 st.release.gpu.global.u32 [%rd0], 1;
    @%p1 bra end;
poll:
    ld.acquire.gpu.global.u32 %r2, [%rd0];
    setp.eq.u32 %p2, %r2, 0;
    @%p2 bra poll;
end:
    """
    flag = np.zeros(1, np.uint32)
    _, (alone,), _ = recorded(body, [flag], grid=2)
    assert not alone.whole
    assert len(alone.warps[0].steps) < 4 * MOST_POLLS
    assert alone.warps[0].ran == 0
    _, (waits, writes), _ = recorded(body, [flag], grid=2, clusters=[0, 1])
    assert waits.whole
    assert writes.whole
    assert flag[0] == 0


TAKEN = """
again:
    atom.global.gpu.relaxed.add.u32 %r1, [%rd0], 1;
    setp.lt.u32 %p1, %r1, 40;
    @%p1 bra again;
"""
SEMAPHORE = """
    mov.u32 %r1, %ctaid.x;
    atom.global.gpu.acq_rel.add.u32 %r2, [%rd0], 1;
    setp.ne.u32 %p1, %r2, 1;
    @%p1 bra end;
    st.global.u32 [%rd0+4], %r1;
end:
"""
ALONE = "setp.ne.u32 %p1, %r0, 0;\n@%p1 bra end;\n"


def test_a_counter_of_tiles_goes_on_for_those_that_do_not_run():
    """Forty tiles for eight CTAs: five for each, and one more look. A semaphore counts those that run alone."""
    counter = np.zeros(2, np.uint32)
    _, traces, _ = recorded(ALONE + TAKEN + "end:", [counter], grid=8, clusters=[0, 5], resident=132)
    assert [len(events_of(trace, "atomic")) for trace in traces] == [6, 6]
    _, traces, _ = recorded(ALONE + SEMAPHORE, [counter], grid=8, clusters=[0, 5])
    assert sum(len(events_of(trace, "store")) for trace in traces) == 1


def test_a_loop_that_does_not_count_is_cut():
    """An inner loop that counts seems to end soon, again and again: what is left is not known."""
    body = """
again:
    ld.global.u32 %r1, [%rd0];
    mov.u32 %r2, 0;
inner:
    add.s32 %r2, %r2, 1;
    setp.lt.s32 %p1, %r2, 3;
    @%p1 bra inner;
    setp.eq.u32 %p2, %r1, 0;
    @%p2 bra again;
    """
    _, (trace,), _ = recorded(body, [np.zeros(1, np.uint32)], max_steps=98)
    assert not trace.whole
    assert len(trace.warps[0].steps) == 196
    assert trace.warps[0].ran == 0


def test_a_cut_keeps_events_in_step():
    """One warp stops at the limit while the other waits for it: what it has arrived at before is kept."""
    for most in range(8, 24):
        _, (trace,), _ = recorded(PIPE.replace("%r2, 5", "%r2, 100"), [], parameters="", warps=2, max_steps=most)
        assert not trace.whole


COUNTED = """
    mov.u32 %r1, 0;
outer:
    mov.u32 %r2, 0;
inner:
    add.s32 %r2, %r2, 2;
    setp.lt.s32 %p1, %r2, %r9;
    @%p1 bra inner;
    add.s32 %r1, %r1, %r10;
    setp.ne.s32 %p2, %r1, 300;
    @%p2 bra outer;
"""


@pytest.mark.parametrize("most", [30, 500, 1000])
def test_what_is_left_of_loops_is_estimated(most):
    """Three hundred times ten rounds, by steps that parameters have; the limit comes in the first or a later round."""
    first = "ld.param.u32 %r9, [p0];\nld.param.u32 %r10, [p1];\n"
    text = kernel(first + COUNTED, "ii").replace("ld.param.u64 %rd0, [p0];", "")
    program = prepare(read(text, "test.ptx"))
    (whole,), _ = record(program, 1, [20, 1], max_steps=10_000)
    (cut,), _ = record(program, 1, [20, 1], max_steps=most)
    assert whole.whole
    assert not cut.whole
    assert len(cut.warps[0].steps) == most
    assert cut.warps[0].ran == pytest.approx(len(whole.warps[0].steps), rel=0.1 if most == 30 else 0.01)
    check(cut, program)
    # Little more than the limit: the run goes on to its end.
    (little,), _ = record(program, 1, [20, 1], max_steps=2500)
    assert little.whole


VARIED = """
    mov.u32 %r1, 0;
outer:
    mov.u32 %r2, 0;
    @TRIPS@
inner:
    add.s32 %r2, %r2, 1;
    setp.lt.s32 %p1, %r2, %r3;
    @%p1 bra inner;
    add.s32 %r1, %r1, 1;
    setp.lt.s32 %p2, %r1, 40;
    @%p2 bra outer;
"""
SHRINKING = "sub.s32 %r3, 50, %r1;"
SAWTOOTH = "mul.lo.s32 %r3, %r1, 17;\nrem.s32 %r3, %r3, 40;\nadd.s32 %r3, %r3, 1;"


def varied(trips, **options):
    """The trace of a warp with forty rounds, each with other trips of a loop in it."""
    _, (trace,), _ = recorded(VARIED.replace("@TRIPS@", trips), [], parameters="", **options)
    return trace


def test_rounds_that_get_shorter_go_on_to_do_so():
    whole, cut = varied(SHRINKING, max_steps=10_000), varied(SHRINKING, max_steps=500)
    assert whole.whole
    assert not cut.whole
    assert len(cut.warps[0].steps) == 500
    assert cut.warps[0].ran == pytest.approx(len(whole.warps[0].steps), rel=0.02)


def test_rounds_without_a_trend_are_run():
    """Tiles of causal attention in rows: what was run says little of what is left, so a later limit holds."""
    assert varied(SAWTOOTH, max_steps=300).whole
    cut = varied(SAWTOOTH, max_steps=100)
    assert not cut.whole
    assert len(cut.warps[0].steps) == 400


def test_what_is_left_is_estimated_where_time_is_over():
    """The blocks of a budget, in the place of seconds, end the run in one of the equal rounds."""
    whole, cut = (varied("mov.u32 %r3, 50;", limits=Limits(blocks=most)) for most in (100_000, 1000))
    assert whole.whole
    assert not cut.whole
    assert cut.warps[0].ran == pytest.approx(len(whole.warps[0].steps), rel=0.02)
