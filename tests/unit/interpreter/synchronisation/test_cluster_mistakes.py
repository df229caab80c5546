"""Omissions from kernels for clusters or for Blackwell, each reported in every schedule."""

import pytest

from tests.gallery.synchronisation import cluster_runs as runs
from tlx_xdsl.interpreter.faults import Deadlock, Fault
from tlx_xdsl.interpreter.scheduler import POLICIES

UNORDERED = "nothing orders it after"
IN_FLIGHT = "while an earlier one may still be in flight"
UNWRITTEN = "is read before it is written"

MISTAKES = [
    # A CTA counts too few bytes; the copies for the neighbour do not come; no arrival says that the neighbour has read.
    (runs.multicast, "bytes", "16 bytes more arrive on 'full.*the expected bytes are too few"),
    (runs.multicast, "mask", "default task of CTA 0 waits at 'full"),
    (runs.multicast, "remote arrive", f"writes 'b.* of CTA .', and {UNORDERED} the wgmma"),
    (runs.multicast, "wrong rank", f"writes 'b.* of CTA .', and {UNORDERED} the wgmma"),
    # Another CTA's memory is used when it may have ended.
    (runs.multicast, "ending barrier", "nothing keeps that CTA from ending before"),
    # Bytes come from other CTAs that no barrier expects, or that no task waits for.
    (runs.norm, "expect", "lacks 1 of 1 arrivals, while 96 bytes have come that are not expected"),
    (runs.norm, "wait", f"'sums.*({UNORDERED} the remote store|{UNWRITTEN})"),
    (runs.norm, "last wait", f"'squares.*({UNORDERED} the remote store|{UNWRITTEN})"),
    # An accumulator is overwritten before it is read.
    (runs.launch_control, "acc_empty", f"'acc.*({UNORDERED} the default task|{UNORDERED} the tcgen05.mma)"),
    # A pair of CTAs: each barrier, the commit, and the proxy fence before the result's store.
    (runs.pair, "full", f"({UNWRITTEN}|{UNORDERED} the TMA load)"),
    (runs.pair, "empty", f"({IN_FLIGHT}|{UNORDERED} the tcgen05.mma|(too many|orders this) arrivals? on 'full)"),
    (runs.pair, "acc_full", f"'acc.*({UNWRITTEN}|{UNORDERED} the tcgen05.mma)"),
    (runs.pair, "commit", "waits at 'acc_full"),
    (runs.pair, "fence", "written without a proxy fence"),
    # Two pairs that load for each other.
    (runs.two_pairs, "room", f"writes 'a.* of CTA .', and {UNORDERED} the tcgen05.mma"),
    # Scales are overwritten while a product may read them, and are never copied.
    (runs.mx, "scales read", f"the tcgen05.cp of partition 0 writes 'a_tmem.*({IN_FLIGHT}|{UNORDERED})"),
    (runs.mx, "copy", f"'a_tmem.*{UNWRITTEN}"),
    # Probabilities that lie where the scores are: not written, read too early, overwritten by the next scores.
    (runs.softmax, "p", "'p.* is read, but 's', which lies at the same place, has overwritten it"),
    (runs.softmax, "p_full", "reads 'p.*, and nothing orders it after the tcgen05.mma to 's"),
    (runs.softmax, "o_full", "writes 's.*, and nothing orders it after the tcgen05.mma to 'o"),
    (runs.softmax, "last wait", f"'o.*{UNORDERED}"),
]


@pytest.mark.parametrize("schedule", POLICIES)
@pytest.mark.parametrize(("case", "drop", "message"), MISTAKES, ids=[f"{case.__name__}-{d}" for case, d, _ in MISTAKES])
def test_each_missing_step_is_reported_at_its_line(case, drop, message, schedule):
    with pytest.raises(Fault, match=message) as found:
        case(DROP=drop).run(schedule=schedule, jobs=1)
    assert isinstance(found.value, Deadlock) == ("waits at" in message or "lacks" in message)
    assert "tests/gallery/synchronisation/" in str(found.value.location)


@pytest.mark.parametrize("schedule", POLICIES)
@pytest.mark.parametrize(
    ("case", "drop"),
    [(runs.multicast, "fence and barrier"), (runs.norm, "barrier"), (runs.pair, "fence and barrier")],
    ids=lambda each: getattr(each, "__name__", each),
)
def test_the_start_that_the_compiler_waits_for_is_no_mistake(case, drop, schedule):
    assert list(case(DROP=drop).run(schedule=schedule, jobs=1).warnings) == []


@pytest.mark.parametrize("schedule", POLICIES)
def test_a_response_that_not_all_have_read(schedule):
    with pytest.raises(Fault, match=r"too many arrivals|nothing orders"):
        runs.persistent(CONSUMERS=5).run(schedule=schedule, jobs=1)


@pytest.mark.parametrize("schedule", POLICIES)
def test_barrier_of_the_cluster_orders_initialisations_without_a_fence(schedule):
    """The barrier releases and acquires (PTX ISA, "barrier.cluster"); the fence is for a relaxed one."""
    assert list(runs.norm(DROP="fence").run(schedule=schedule, jobs=1).warnings) == []
