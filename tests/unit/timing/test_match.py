"""Predicted waits beside measured ones."""

import pytest

from tlx_xdsl.timing.match import kind_of_wait, match
from tlx_xdsl.timing.places import mbarrier_names
from tlx_xdsl.timing.timeline import Place, Span, Timeline, Track


def timeline(origin, waits, groups=("consumer",), places=((70, "a.py"), (81, "a.py"))):
    """A timeline of `warp 4` of each group, with waits as (line, name, cycles), each after 100 cycles of work."""
    made = Timeline("k", "H200", origin, places=[Place(file, line) for line, file in places])
    lines = [line for line, _ in places]
    for track, group in enumerate(groups):
        made.tracks.append(Track("warp 4", "warp", group))
        now = 0.0
        for line, name, cycles in waits:
            made.spans.append(Span(track, now, now + 100, "work", "compute"))
            made.spans.append(Span(track, now + 100, now + 100 + cycles, "wait", name, lines.index(line)))
            now += 100 + cycles
    return made


FULL = [(70, f"wait full[{each % 2}] phase {each // 2}", 1000.0) for each in range(4)]


def test_waits_are_paired_by_line_and_order():
    measured = [(line, name, cycles + 100 * visit) for visit, (line, name, cycles) in enumerate(FULL)]
    found = match(timeline("predicted", FULL), timeline("measured", [*measured, (81, "wait barrier 1", 50.0)]))
    assert [each.difference for each in found.pairs] == [0, -100, -200, -300]
    assert [(each.visit, each.line, each.warp) for each in found.pairs] == [
        (n, 70, "consumer warp 4") for n in range(4)
    ]
    assert (found.predicted_only, found.measured_only, found.warps) == (0, 1, 1)


@pytest.mark.parametrize(
    ("predicted", "measured", "close"),
    [(0, 200, True), (0, 201, False), (1250, 1000, True), (1251, 1000, False), (750, 1000, True), (749, 1000, False)],
)
def test_close_is_within_a_quarter_or_200_cycles(predicted, measured, close):
    one, two = ([(70, "wait full phase 0", float(cycles))] for cycles in (predicted, measured))
    found = match(timeline("predicted", one), timeline("measured", two))
    assert [each.is_close for each in found.pairs] == [close]
    assert found.share == float(close)


def test_places_and_numbers_of_phases_may_differ():
    """The first phase of an empty ring may be counted as -1; both timelines number their places as they like."""
    measured = timeline("measured", [(70, "wait empty[0] phase 0", 10.0)], places=((81, "b.py"), (70, "a.py")))
    found = match(timeline("predicted", [(70, "wait empty[0] phase -1", 0.0)]), measured)
    assert len(found.pairs) == 1


def test_names_of_mbarriers_may_differ():
    """One timeline knows which array a function's parameter stands for."""
    predicted = timeline("predicted", [(70, "wait k_empty[0] phase 0", 10.0)])
    assert len(match(predicted, timeline("measured", [(70, "wait empty[2] phase 0", 30.0)])).pairs) == 1


def test_waits_for_different_things_at_a_line_are_not_mixed():
    one = [(81, "wait barrier 1", 5.0), (81, "wait full phase 0", 900.0)]
    found = match(timeline("predicted", one), timeline("measured", one[::-1]))
    assert {each.difference for each in found.pairs} == {0}


def test_with_other_groups_the_names_of_warps_count():
    """One timeline shows a CTA, the other two."""
    found = match(timeline("predicted", FULL), timeline("measured", FULL, groups=("CTA 0 consumer", "CTA 66 consumer")))
    assert (found.warps, len(found.pairs)) == (1, 4)


def test_the_table_has_a_row_for_each_line_and_kind():
    text = str(match(timeline("predicted", FULL), timeline("measured", FULL)))
    assert [line.split() for line in text.splitlines()[1:2]] == [["70", "mbarrier", "4", "100%", "1000", "1000"]]
    assert text.endswith(
        "100% of 4 pairs of 1 warps are close (within 25% or 200 cycles); "
        "0 waits are predicted only, 0 measured only"
    )  # fmt: skip


def test_nothing_in_common():
    found = match(timeline("predicted", []), Timeline("k", "H200", "measured"))
    assert (found.pairs, found.share, found.warps) == ((), 0.0, 0)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("wait full[1] phase 3", "mbarrier"),
        ("wait mbarrier 2 phase 0", "mbarrier"),
        ("wait barrier 1", "barrier 1"),
        ("wait for products", "products"),
    ],
)
def test_the_kind_of_a_wait(name, kind):
    assert kind_of_wait(name) == kind


def test_of_several_names_of_an_mbarrier_that_with_the_fewest_counts():
    """`load` takes an array of barriers as `empty`, once that of keys and once that of values."""
    uses = [("barrier_wait(empty[s], p)", byte) for byte in (0, 8, 16, 24)]
    uses += [(f"barrier_arrive({name}[s])", byte) for name, byte in (("k_empty", 0), ("k_empty", 8), ("v_empty", 16))]
    assert mbarrier_names([0, 8, 16, 24, 32], uses) == {
        0: "k_empty[0]", 8: "k_empty[1]", 16: "v_empty", 24: "empty[3]", 32: "mbarrier 4"
    }  # fmt: skip
