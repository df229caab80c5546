"""Probes in PTX: kernels with them have equal results in the PTX machine, and records of what happened."""

import re
from itertools import pairwise

import numpy as np
import pytest

from tests.unit.ptx.snippets import kernel, line_of
from tlx_xdsl.errors import InputError
from tlx_xdsl.ptx import run_ptx
from tlx_xdsl.timing.measured import decode, hertz_of, timeline_of
from tlx_xdsl.timing.probes import KINDS, RECORD_BYTES, instrument, one_to_a_line, step_of

TIMES = 5
WAIT = """
    {{
    .reg .pred complete;
    waitLoop:
    mbarrier.try_wait.parity.shared::cta.b64 complete, [{at}], {parity};
    @!complete bra.uni waitLoop;
    }}
"""
RING = f"""
    setp.ne.u32 %p1, %r0, 0;
    mov.u32 %r1, ring;
    @%p1 bra INITIALISED;
    mbarrier.init.shared::cta.b64 [ring], 1;
    mbarrier.init.shared::cta.b64 [ring+8], 1;
INITIALISED:
    bar.sync 0;
    mov.u32 %r2, 0;
    mov.u32 %r9, 0;
    setp.lt.u32 %p2, %r0, 32;
    @%p2 bra PRODUCE;
CONSUME:
    and.b32 %r3, %r2, 1;
    mad.lo.u32 %r4, %r3, 8, %r1;
    shr.u32 %r5, %r2, 1;
    and.b32 %r5, %r5, 1;
{WAIT.format(at="%r4", parity="%r5")}
    add.u32 %r9, %r9, %r2;
    bar.sync 1, 64;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p3, %r2, {TIMES};
    @%p3 bra CONSUME;
    mad.wide.u32 %rd1, %r0, 4, %rd0;
    st.global.u32 [%rd1], %r9;
    ret;
PRODUCE:
    and.b32 %r3, %r2, 1;
    mad.lo.u32 %r4, %r3, 8, %r1;
    setp.eq.u32 %p4, %r0, 0;
    @%p4 mbarrier.arrive.shared::cta.b64 _, [%r4];
    bar.sync 1, 64;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p3, %r2, {TIMES};
    @%p3 bra PRODUCE;
"""
"""A warp that arrives at two mbarriers in turns, and one that waits for them; they meet at a barrier each time."""
SHARED = ".shared .align 8 .b8 ring[16];"
EXPECTED = np.repeat([0, sum(range(TIMES))], 32)
PAIR = "    bar.sync 0;\n    bar.sync 1;"


def ring() -> str:
    """The kernel of two warps."""
    return kernel(RING, "*ll", threads=64, shared=SHARED)


def run(text, grid=1, cluster=None, **options):
    """The result of a kernel with probes, its probes and the words that they have left."""
    probes = instrument(text, **options)
    memory, out = np.zeros(probes.size + 64, np.uint8), np.zeros(64, np.uint32)
    memory[probes.size :] = 0xAB
    run_ptx(probes.text, grid, [out, None, memory], cluster=cluster)
    assert (memory[probes.size :] == 0xAB).all()
    return out, probes, memory[: probes.size].view(np.uint32)


class TestRecords:
    def test_each_wait_has_a_record_in_order(self):
        out, probes, words = run(ring())
        assert (out == EXPECTED).all()
        producer, consumer = decode(probes, words)
        assert [each.site.kind for each in producer.visits] == ["barrier"] * (TIMES + 1)
        assert [each.site.kind for each in consumer.visits] == ["barrier", *["mbarrier", "barrier"] * TIMES]
        waits = [each for each in consumer.visits if each.site.kind == "mbarrier"]
        assert [each.mbarrier for each in waits] == [0, 8, 0, 8, 0]
        assert {each.site.line for each in waits} == {line_of(ring(), "try_wait")}
        assert (producer.dropped, consumer.dropped) == (0, 0)

    def test_times_rise_and_lie_between_the_ends(self):
        _, probes, words = run(ring())
        for warp in decode(probes, words):
            times = [warp.start, *(time for each in warp.visits for time in (each.start, each.end)), warp.end]
            assert times == sorted(times)
            assert times[-1] > times[0]

    def test_arrivals_are_recorded_where_they_are_asked_for(self):
        _, probes, words = run(ring(), kinds=(*KINDS, "signal"))
        producer, _ = decode(probes, words)
        assert [each.mbarrier for each in producer.visits if each.site.kind == "signal"] == [0, 8, 0, 8, 0]

    def test_only_the_kinds_that_are_asked_for(self):
        assert [each.kind for each in instrument(ring(), kinds=("mbarrier",)).sites] == ["mbarrier"]

    def test_a_full_buffer_keeps_the_first_and_says_how_many_were_dropped(self):
        """Three visits have room; nothing is written past the buffer, and the end has its place."""
        out, probes, words = run(ring(), records=5)
        assert (out == EXPECTED).all()
        whole = decode(*run(ring())[1:])
        for found, other in zip(decode(probes, words), whole, strict=True):
            assert found.dropped == len(other.visits) - 3
            assert [each.site for each in found.visits] == [each.site for each in other.visits[:3]]
            assert found.end is not None
        dropped = sum(len(each.visits) for each in whole) - 6
        notes = timeline_of(probes, words, chip="H200").notes
        assert notes[:1] == [f"{dropped} visits of 2 warps had no room: records are kept for the first 3 of each warp"]

    def test_with_a_null_pointer_nothing_is_recorded(self):
        out = np.zeros(64, np.uint32)
        run_ptx(instrument(ring()).text, 1, [out])
        assert (out == EXPECTED).all()

    def test_only_the_chosen_ctas_record(self):
        _, probes, words = run(ring(), grid=(2, 3), ctas=(4, 1))
        assert [(each.cta, each.warp) for each in decode(probes, words)] == [(4, 0), (4, 1), (1, 0), (1, 1)]

    def test_a_cta_that_is_not_in_the_grid_has_no_records(self):
        _, probes, words = run(ring(), grid=2, ctas=(1, 7))
        assert {each.cta for each in decode(probes, words)} == {1}

    def test_other_ctas_run_the_kernel_as_it_was(self):
        """Up to the copy with probes its lines are all there, after a branch; variables are declared once."""
        before, plain, copy = re.split(r"\$tlx_(?:plain|recorded):\n", instrument(ring()).text)
        body = ring()[ring().index("mov.u32 %r0, %tid.x;") : ring().rindex("}")]
        assert body.strip() in plain
        assert "%clock" not in before + plain
        assert plain.rstrip().endswith("ret;")
        assert copy.count(".reg .pred complete;") == 1
        assert "CONSUME$tlx:" in copy

    def test_variables_among_the_instructions_are_declared_once(self):
        out, probes, _ = run(kernel("    bar.sync 0;\n    .reg .b32 %late;\n    mov.u32 %late, 1;", "*ll", threads=64))
        assert probes.text.count(".reg .b32 %late;") == 1
        assert not out.any()

    def test_registers_are_bound_where_the_kernel_does_not_say_it(self):
        plain = kernel("    bar.sync 0;", "*ll")
        assert ".maxnreg 40\n{" in instrument(plain, registers=40).text
        moves = kernel("    setmaxnreg.inc.sync.aligned.u32 232;", "*ll", threads=128)
        assert ".maxnreg" not in instrument(moves, registers=168).text
        assert ".maxnreg" not in instrument(plain).text

    def test_before_hopper_the_first_lane_records(self):
        _, probes, words = run(kernel("    bar.sync 0;", "*ll", target="sm_80"))
        (warp,) = decode(probes, words)
        assert "elect.sync" not in probes.text
        assert [each.site.kind for each in warp.visits] == ["barrier"]

    def test_ctas_of_a_cluster(self):
        body = "    barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;\n    bar.sync 0;"
        _, probes, words = run(kernel(body, "*ll"), grid=4, cluster=(2,), ctas=(2, 3))
        opcodes = [[each.site.opcode for each in warp.visits] for warp in decode(probes, words)]
        assert opcodes == [["barrier.cluster.wait.aligned", "bar.sync"]] * 2
        names = [span.name for span in timeline_of(probes, words, chip="H200").spans if span.kind == "wait"]
        assert names == ["wait barrier of the cluster", "wait barrier 0"] * 2

    def test_threads_that_return_early_have_an_end(self):
        body = "    setp.ge.u32 %p1, %r0, 32;\n    @%p1 ret;\n    bar.sync 1, 32;"
        _, probes, words = run(kernel(body, "*ll", threads=64))
        warps = decode(probes, words)
        assert [len(each.visits) for each in warps] == [1, 0]
        assert all(each.end is not None for each in warps)


def words_of(probes, warps):
    """Words as warps would leave them: the first record of each, those between, and the last."""
    table = np.zeros((probes.records, probes.step // RECORD_BYTES, 4), np.int64)
    for number, (first, records, last) in enumerate(warps):
        table[0, number], table[-1, number] = first, last
        for place, record in enumerate(records, 1):
            table[place, number] = record
    return (table % 2**32).astype(np.uint32).ravel()


class TestClock:
    """Records that the PTX machine does not make: 32 bits that wrap around, several multiprocessors."""

    probes = instrument(kernel(PAIR, "*ll"), ctas=(0, 1), records=8)

    def visits(self, clock, timer=100, multiprocessor=3):
        records = [(clock + 10, clock + 400, 1, 0), (clock + 500, clock + 1500, 2, 0)]
        last = clock + 12800, timer + 6400, 3 * self.probes.step, 0
        return (clock, timer, multiprocessor, 0), records, last

    @pytest.mark.parametrize("clock", [5, 2**32 - 5, 2**32 - 300, 2**32 - 1000, 2**32 - 12799])
    def test_the_clock_may_wrap_around_anywhere(self, clock):
        warps = decode(self.probes, words_of(self.probes, [self.visits(clock), self.visits(clock + 7, 228)]))
        for warp in warps:
            assert [(each.start, each.end) for each in warp.visits] == [(10, 400), (500, 1500)]
            assert (warp.start, warp.end) == (0, 12800)
        assert hertz_of(warps) == pytest.approx(2e9)

    def test_a_short_launch_says_nothing_of_the_clock(self):
        """Each warp runs for one step of the timer."""
        warps = [(first, records, (last[0], first[1] + 64, *last[2:]))
                 for first, records, last in (self.visits(0), self.visits(0, 164))]  # fmt: skip
        words = words_of(self.probes, warps)
        found = timeline_of(self.probes, words, chip="H200")
        assert found.hertz is None
        assert any("the clock is not known" in note for note in found.notes)

    def test_a_timer_that_wraps_around(self):
        found = decode(self.probes, words_of(self.probes, [self.visits(0, 2**32 - 40), self.visits(0, 2**32 - 8)]))
        assert [each.nanoseconds for each in found] == [(0, 6400), (32, 6432)]

    def test_ctas_of_other_multiprocessors_are_aligned_by_the_timer(self):
        words = words_of(self.probes, [self.visits(77, multiprocessor=9), self.visits(10**9, timer=228)])
        found = timeline_of(self.probes, words, chip="H200")
        begins = [min(span.start for span in found.spans if span.track == track) for track in (0, 1)]
        assert begins == [0, pytest.approx(256)]
        assert any("in steps of 128 ns (256 cycles)" in note for note in found.notes)

    def test_ctas_of_one_multiprocessor_are_aligned_by_its_clock(self):
        """The timer says 128 ns, which may be 256 cycles; the clock, which wraps around between them, says 300."""
        words = words_of(self.probes, [self.visits(2**32 - 100), self.visits(200, timer=228)])
        found = timeline_of(self.probes, words, chip="H200")
        begins = [min(span.start for span in found.spans if span.track == track) for track in (0, 1)]
        assert begins == [0, 300]
        assert not any("aligned" in note for note in found.notes)

    def test_warps_of_a_cta_share_a_clock(self):
        probes = instrument(kernel(PAIR, "*ll", threads=64), records=8)
        records = [
            ((clock, 0, 0, 0), [(clock + 5, clock + 9, 1, 0)], (clock + 20, 10, 2 * probes.step, 0))
            for clock in (3, -4)
        ]
        warps = decode(probes, words_of(probes, records))
        assert [(each.start, each.visits[0].start, each.end) for each in warps] == [(7, 12, 27), (0, 5, 20)]

    def test_a_warp_that_did_not_end_keeps_what_it_has(self):
        first, records, _ = self.visits(1)
        found = decode(self.probes, words_of(self.probes, [(first, records, (0, 0, 0, 0))]))
        assert [(each.end, len(each.visits)) for each in found] == [(None, 2)]

    def test_a_buffer_of_another_size_is_refused(self):
        with pytest.raises(ValueError, match=r"expected \d+ bytes of records, found 16"):
            decode(self.probes, np.zeros(4, np.uint32))


class TestTimeline:
    def test_waits_have_names_and_causes(self):
        _, probes, words = run(ring(), kinds=(*KINDS, "signal"))
        found = timeline_of(probes, words, chip="H200", tasks=[(0, 1, "producer"), (1, 1, "consumer")])
        assert [(each.group, each.name) for each in found.tracks] == [("producer", "warp 0"), ("consumer", "warp 1")]
        waits = [span.name for span in found.spans if span.track == 1 and span.kind == "wait"]
        assert waits[1::2] == [f"wait mbarrier {each % 2} phase {each // 2}" for each in range(TIMES)]
        assert waits[::2] == ["wait barrier 0", *["wait barrier 1"] * TIMES]
        causes = {span.cause for span in found.spans if "mbarrier" in span.name}
        assert causes == {"arrival of warp 0"}
        assert (found.origin, found.kernel) == ("measured", "test")

    def test_the_last_to_arrive_is_the_cause_at_a_barrier(self):
        probes = instrument(kernel("    bar.sync 0;", "*ll", threads=64), records=4)
        ends = [((0, 0, 1, 0), [(start, 90, 1, 0)], (99, 9, 2 * probes.step, 0)) for start in (10, 80)]
        found = timeline_of(probes, words_of(probes, ends), chip="H200")
        assert [span.cause for span in found.spans if span.kind == "wait"] == ["arrival of warp 1", ""]

    def test_spans_of_a_warp_do_not_overlap(self):
        _, probes, words = run(ring())
        found = timeline_of(probes, words, chip="H200")
        for track in range(len(found.tracks)):
            spans = [span for span in found.spans if span.track == track]
            assert all(one.end <= other.start for one, other in pairwise(spans))


class TestBarriers:
    def test_the_clock_is_read_again_where_the_first_reading_may_come_too_early(self):
        _, _, after = instrument(kernel("    bar.sync 0;", "*ll")).text.partition("$tlx_recorded:")
        lines = [line.strip() for line in after.partition("bar.sync 0;")[2].splitlines()]
        assert lines[1:4] == [
            "mov.u32 %tlx_w1, %clock;",
            "setp.ne.u32 %tlx_store, %tlx_w1, 0;",
            "@%tlx_store mov.u32 %tlx_w1, %clock;",
        ]


class TestLoops:
    """Probes of waits in loops: what enters a loop must pass its beginning, and what leaves it its end."""

    TRY = "mbarrier.try_wait.parity.shared::cta.b64 %p1, [ring], 0;"

    def probes(self, body):
        return instrument(kernel(body, "*ll", shared=SHARED))

    def test_a_loop_that_is_left_by_a_branch(self):
        """CUTLASS writes such a loop."""
        found = self.probes(f"LAB_WAIT:\n{self.TRY}\n@%p1 bra DONE;\nbra LAB_WAIT;\nDONE:\n")
        assert ([each.kind for each in found.sites], found.skipped) == (["mbarrier"], ())
        lines = [line.strip() for line in found.text.splitlines()]
        assert lines[lines.index("LAB_WAIT$tlx:") - 1] == "mov.u32 %tlx_w0, %clock;"
        assert lines[lines.index("DONE$tlx:") + 1] == "mov.u32 %tlx_w1, %clock;"

    def test_all_on_one_line(self):
        found = self.probes(f"LAB_WAIT: {self.TRY} @!%p1 bra LAB_WAIT;")
        assert ([each.kind for each in found.sites], found.skipped) == (["mbarrier"], ())

    def test_a_try_without_a_loop(self):
        found = self.probes(self.TRY)
        assert found.sites == ()
        assert re.fullmatch(r"line \d+: it is in no loop", *found.skipped)

    def test_a_loop_that_others_enter(self):
        found = self.probes(f"bra LAB_WAIT;\nLAB_WAIT:\n{self.TRY}\n@!%p1 bra LAB_WAIT;")
        assert "other code branches into its loop" in found.skipped[0]

    @pytest.mark.parametrize(
        "ways", ["@%p1 bra FAR;", "@%p1 bra FAR;\n@%p2 bra DONE;", "@%p1 bra DONE;\n@%p2 bra FAR;"]
    )
    def test_a_loop_with_another_way_out(self, ways):
        found = self.probes(f"LAB_WAIT:\n{self.TRY}\n{ways}\nbra LAB_WAIT;\nDONE:\nbar.sync 0;\nFAR:\n")
        assert "several ways out" in found.skipped[0]


class TestText:
    def test_an_instruction_to_a_line(self):
        assert one_to_a_line("{ .reg .pred p; a; } // b; c;\nd;") == [
            ("{ .reg .pred p;", 1), (" a;", 1), (" } ", 1), ("// b; c;", 1), ("d;", 2)
        ]  # fmt: skip

    def test_copies_are_recorded_by_the_thread_that_starts_them(self):
        copy = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [ring], [%rd0], 16, [ring+8];"
        found = instrument(kernel(f"    setp.eq.u32 %p1, %r0, 0;\n    @!%p1 {copy}", "*ll", shared=SHARED))
        assert [each.kind for each in found.sites] == ["copy"]
        assert f"setp.lt.and.u32 %tlx_store, %tlx_at, {2047 * 16}, !%p1;" in found.text
        assert "mov.u32 %tlx_w3, ring+8;" in found.text

    def test_of_products_the_first_of_a_group(self):
        product = (
            "    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, %rd1, %rd2, %p1, 1, 1, 0, 0;\n"
        )
        end = "    wgmma.commit_group.sync.aligned;\n    wgmma.wait_group.sync.aligned 0;\n"
        found = instrument(kernel((product * 2 + end) * 2, "*ll", threads=128))
        assert [each.kind for each in found.sites] == ["product", "group"] * 2

    def test_a_kernel_without_pointers_to_scratch_memory_is_refused(self):
        with pytest.raises(InputError, match="no pointers to scratch memory"):
            instrument(kernel("", "*i"))

    @pytest.mark.parametrize("options", [{"ctas": ()}, {"ctas": (1, 1)}, {"ctas": (-1,)}, {"records": 2}])
    def test_impossible_numbers_are_refused(self, options):
        with pytest.raises(InputError, match="expected"):
            instrument(ring(), **options)

    def test_a_step_is_a_power_of_two(self):
        assert [step_of(warps) for warps in (1, 2, 3, 12, 64)] == [16, 32, 64, 256, 1024]
