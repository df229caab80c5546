"""Release by an arrival at another CTA's mbarrier: what the compiler chooses is enough, and less is reported."""

# covers: tlx-weaken-remote-arrivals, tlx.barriers, tlx.cluster

import re
from functools import cache

import numpy as np
import pytest

from tests.gallery.synchronisation.cluster_runs import CASES
from tests.gallery.synchronisation.lowered_clusters import specialization
from tlx_xdsl.interpreter.faults import Fault, Race
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.runtime.driver.compilation import compile_text
from tlx_xdsl.runtime.simulate.interpret import interpret_text

ARRIVE = "mbarrier.arrive.{}.shared::cluster.b64"
CLUSTER, RELAXED, CTA = (ARRIVE.format(each) for each in ("release.cluster", "relaxed.cluster", "release.cta"))
DEFAULT = "mbarrier.arrive.shared::cluster.b64"
FENCE = "@p fence.release.sync_restrict::shared::cta.cluster; "
CHOSEN = {
    "hand-over-total": RELAXED,
    "hand-over-relayed": RELAXED,
    "hand-over-stored": CLUSTER,
    "hand-over-to-itself": RELAXED,
    "multicast": CTA,
    "square": CTA,
    "ring-store": CLUSTER,
    "ring-async": CLUSTER,
    "pair-persistent": RELAXED,
}
"""Kernels, and the arrivals that they get."""


@cache
def text_of(name):
    """The text for Triton."""
    case = CASES[name]()
    return compile_text(case.kernel.source, specialization(case), triton_version="3.9").ttgir


def run(name, change=lambda text: text, schedule="adversarial"):
    """Run the text for Triton, changed, and compare the results."""
    case = CASES[name]()
    interpret_text(change(text_of(name)), case.grid, case.arguments, schedule=schedule, jobs=1)
    for found, expected in case.results():
        norm = np.linalg.norm(found.astype(np.float64) - expected)
        assert norm <= case.tolerance * np.linalg.norm(expected)


@pytest.mark.parametrize("name", CHOSEN)
def test_the_weakest_sufficient_release_is_chosen(name):
    text = text_of(name)
    assert set(re.findall(r"mbarrier\.arrive\.\S*shared::cluster\.b64", text)) == {CHOSEN[name]}
    assert (FENCE in text) == (CHOSEN[name] == RELAXED)
    # Remote stores alone have no need of it.
    assert ("fence.acquire.cluster" in text) == name.startswith("ring")
    # What is handed over in shared memory only is acquired there.
    acquired = "fence.acquire.sync_restrict::shared::cluster.cluster" in text
    assert acquired == (CHOSEN[name] != CTA and name != "ring-store")


@pytest.mark.parametrize("schedule", POLICIES)
@pytest.mark.parametrize("name", [name for name in CHOSEN if name.startswith("hand-over")])
def test_the_chosen_release_is_enough(name, schedule):
    run(name, schedule=schedule)


def test_two_arrivals_side_by_side_have_one_fence():
    text = text_of("hand-over-total")
    assert (text.count(FENCE), text.count(RELAXED)) == (1, 2)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        # The threads' reads, and what they have written, are not before the arrival.
        ("hand-over-total", lambda text: text.replace(FENCE, "")),
        ("hand-over-total", lambda text: text.replace(FENCE, "").replace(RELAXED, CTA)),
        ("hand-over-relayed", lambda text: text.replace(FENCE, "")),
        ("hand-over-relayed", lambda text: text.replace(FENCE, "").replace(RELAXED, CTA)),
        # The fence is for the own shared memory only.
        ("hand-over-stored", lambda text: text.replace(f"@p {CLUSTER}", FENCE + f"@p {RELAXED}")),
        ("hand-over-stored", lambda text: text.replace(CLUSTER, CTA)),
        ("ring-store", lambda text: text.replace(f"@p {CLUSTER}", FENCE + f"@p {RELAXED}")),
        # Not even to the own CTA.
        ("hand-over-to-itself", lambda text: text.replace(FENCE, "")),
        ("pair-persistent", lambda text: text.replace(FENCE, "")),
    ],
)
def test_a_weaker_release_is_reported(name, change):
    with pytest.raises(Race, match="nothing orders it after") as found:
        run(name, change)
    assert "tests/gallery/synchronisation/" in str(found.value.location)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("hand-over-total", lambda text: text.replace(FENCE, "@p fence.acq_rel.cluster; ")),
        ("hand-over-stored", lambda text: text.replace(f"@p {CLUSTER}", f"@p fence.release.gpu; @p {RELAXED}")),
        ("hand-over-stored", lambda text: text.replace(f"@p {CLUSTER}", f"@p membar.gl; @p {RELAXED}")),
        ("hand-over-to-itself", lambda text: text.replace(FENCE, "").replace(RELAXED, CTA)),
        (
            "hand-over-to-itself",
            lambda text: text.replace(FENCE, "").replace(RELAXED, DEFAULT),
        ),
        # What was waited for is over; nothing else is accessed.
        ("multicast", lambda text: text.replace(CTA, RELAXED)),
    ],
)
def test_other_forms_that_are_enough(name, change):
    run(name, change)


@pytest.mark.parametrize("fence", ["fence.acq_rel.cta", "fence.acquire.cluster", "fence.proxy.async", "membar.cta"])
def test_other_fences_do_not_release_to_the_cluster(fence):
    with pytest.raises(Race):
        run("hand-over-total", lambda text: text.replace(FENCE, f"@p {fence}; "))


@pytest.mark.parametrize("releases", ["", " releases shared", " releases cta"])
def test_operations_release_what_they_say(releases):
    text = HAND_OVER.replace("RELEASES", releases)
    if releases == " releases cta":
        with pytest.raises(Fault, match="nothing orders it after"):
            interpret_text(text, 2, (), jobs=1)
    else:
        interpret_text(text, 2, (), jobs=1)


HAND_OVER = """
#one = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
!bar = !ttg.memdesc<1xi64, #one, #smem, mutable>
!buf = !ttg.memdesc<128xi32, #one, #smem, mutable>
!bar_there = !ttg.memdesc<1xi64, #one, #tlx.shared_cluster_memory, mutable>
!buf_there = !ttg.memdesc<128xi32, #one, #tlx.shared_cluster_memory, mutable>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90",
                   "ttg.threads-per-warp" = 32 : i32, "ttg.cluster-dim-x" = 2 : i32,
                   "ttg.cluster-dim-y" = 1 : i32, "ttg.cluster-dim-z" = 1 : i32} {
  tt.func public @k() attributes {nvvm.cluster_dim = array<i32: 2, 1, 1>} {
    %true = arith.constant true
    %c1 = arith.constant 1 : i32
    %c0 = arith.constant 0 : i32
    %v = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #blocked>
    %buf = ttg.local_alloc %v : (tensor<128xi32, #blocked>) -> !buf
    %room = ttg.local_alloc : () -> !bar
    %full = ttg.local_alloc : () -> !bar
    ttng.init_barrier %room, 1 : !bar
    ttng.init_barrier %full, 1 : !bar
    ttng.barrier_expect %full, 512, %true : !bar
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    %rank = tlx.cluster_cta_rank
    %other = arith.xori %rank, %c1 : i32
    %x = ttg.local_load %buf : !buf -> tensor<128xi32, #blocked>
    %there = tlx.map_to_remote %room, %other : !bar -> !bar_there
    tlx.arrive_remote %there, 1RELEASES : !bar_there
    ttng.wait_barrier %room, %c0 : !bar
    %full_there = tlx.map_to_remote %full, %other : !bar -> !bar_there
    %buf_there = tlx.map_to_remote %buf, %other : !buf -> !buf_there
    tlx.async_remote_store %x, %buf_there, %full_there : tensor<128xi32, #blocked> -> !buf_there, !bar_there
    ttng.wait_barrier %full, %c0 : !bar
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    tt.return
  }
}
"""
