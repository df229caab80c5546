"""What an arrival at another CTA's mbarrier releases: what the compiler chooses is enough, and less is reported."""

import re

import numpy as np
import pytest

import tlx_xdsl
from tests.unit.interpreter import cluster_runs
from tests.unit.interpreter.example_runs import Case
from tests.unit.interpreter.kernels import cluster_hand_over
from tests.unit.interpreter.lowered_clusters import specialization
from tlx_xdsl.interpreter.faults import Fault, Race
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.runtime.compilation import compile_text
from tlx_xdsl.runtime.interpret import interpret_text

ARRIVE = "mbarrier.arrive.{}.shared::cluster.b64"
CLUSTER, RELAXED, CTA = (ARRIVE.format(each) for each in ("release.cluster", "relaxed.cluster", "release.cta"))
FENCE = "@p fence.release.sync_restrict::shared::cta.cluster; "
OPTIONS = {"cluster": (2, 1, 1), "target": "sm_90a"}


def total(turns=3) -> Case:
    x = np.random.default_rng(0).integers(-8, 9, (turns, 32, 32)).astype(np.float32)
    y = np.full((64, 32), np.nan, np.float32)
    describe = tlx_xdsl.TensorDescriptor.from_tensor
    arguments = [describe(x.reshape(-1, 32), [16, 32]), describe(y, [32, 32])]
    settings = {"ROWS": 32, "COLUMNS": 32, "TURNS": turns}
    return Case(
        cluster_hand_over.total, (2,), arguments, settings, OPTIONS, lambda: [(y, np.tile(x.sum(0), (2, 1)))], 0
    )


def counted(kernel) -> Case:
    y = np.zeros(256, np.int32)
    return Case(kernel, (2,), [y], {}, OPTIONS, lambda: [(y, np.tile(np.arange(128), 2))], 0)


CASES = {
    "total": (total, RELAXED),
    "relayed": (lambda: counted(cluster_hand_over.relayed), RELAXED),
    "stored": (lambda: counted(cluster_hand_over.stored), CLUSTER),
    "to itself": (lambda: counted(cluster_hand_over.to_itself), RELAXED),
    "multicast": (cluster_runs.multicast, CTA),
    "ring-store": (cluster_runs.CASES["ring-store"], CLUSTER),
    "pair-persistent": (cluster_runs.persistent, RELAXED),
}
"""Kernels, and the arrivals that they get."""


def run(name, change=lambda text: text, schedule="adversarial"):
    """Run the text for Triton, changed, and compare the results."""
    case = CASES[name][0]()
    text = compile_text(case.kernel.source, specialization(case), triton_version="3.9").ttgir
    interpret_text(change(text), case.grid, case.arguments, schedule=schedule, jobs=1)
    for found, expected in case.results():
        norm = np.linalg.norm(found.astype(np.float64) - expected)
        assert norm <= case.tolerance * np.linalg.norm(expected)


@pytest.mark.parametrize("name", CASES)
def test_what_is_chosen(name):
    case = CASES[name][0]()
    text = compile_text(case.kernel.source, specialization(case), triton_version="3.9").ttgir
    assert set(re.findall(r"mbarrier\.arrive\.\S*shared::cluster\.b64", text)) == {CASES[name][1]}
    assert (FENCE in text) == (CASES[name][1] == RELAXED)


@pytest.mark.parametrize("schedule", POLICIES)
@pytest.mark.parametrize("name", ["total", "relayed", "stored", "to itself"])
def test_numbers(name, schedule):
    run(name, schedule=schedule)


def test_two_arrivals_side_by_side_have_one_fence():
    case = total()
    text = compile_text(case.kernel.source, specialization(case), triton_version="3.9").ttgir
    assert (text.count(FENCE), text.count(RELAXED)) == (1, 2)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        # The threads' reads, and what they have written, are not in front of the arrival.
        ("total", lambda text: text.replace(FENCE, "")),
        ("total", lambda text: text.replace(FENCE, "").replace(RELAXED, CTA)),
        ("relayed", lambda text: text.replace(FENCE, "")),
        ("relayed", lambda text: text.replace(FENCE, "").replace(RELAXED, CTA)),
        # The fence is for the own shared memory only.
        ("stored", lambda text: text.replace(f"@p {CLUSTER}", FENCE + f"@p {RELAXED}")),
        ("stored", lambda text: text.replace(CLUSTER, CTA)),
        ("ring-store", lambda text: text.replace(f"@p {CLUSTER}", FENCE + f"@p {RELAXED}")),
        # Not even to the own CTA.
        ("to itself", lambda text: text.replace(FENCE, "")),
        ("pair-persistent", lambda text: text.replace(FENCE, "")),
    ],
)
def test_less_is_reported(name, change):
    with pytest.raises(Race, match="nothing orders it behind") as found:
        run(name, change)
    assert "tests/unit/interpreter/kernels/" in str(found.value.location)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("total", lambda text: text.replace(FENCE, "@p fence.acq_rel.cluster; ")),
        ("stored", lambda text: text.replace(f"@p {CLUSTER}", f"@p fence.release.gpu; @p {RELAXED}")),
        ("stored", lambda text: text.replace(f"@p {CLUSTER}", f"@p membar.gl; @p {RELAXED}")),
        ("to itself", lambda text: text.replace(FENCE, "").replace(RELAXED, CTA)),
        ("to itself", lambda text: text.replace(FENCE, "").replace(RELAXED, "mbarrier.arrive.shared::cluster.b64")),
        # What was waited for is over; nothing else is accessed.
        ("multicast", lambda text: text.replace(CTA, RELAXED)),
    ],
)
def test_other_forms_that_are_enough(name, change):
    run(name, change)


@pytest.mark.parametrize("fence", ["fence.acq_rel.cta", "fence.acquire.cluster", "fence.proxy.async", "membar.cta"])
def test_other_fences_do_not_release_to_the_cluster(fence):
    with pytest.raises(Race):
        run("total", lambda text: text.replace(FENCE, f"@p {fence}; "))


@pytest.mark.parametrize("releases", ["", " releases shared", " releases cta"])
def test_operations_release_what_they_say(releases):
    text = HAND_OVER.replace("RELEASES", releases)
    if releases == " releases cta":
        with pytest.raises(Fault, match="nothing orders it behind"):
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
    %room_there = tlx.map_to_remote %room, %other : !bar -> !bar_there
    tlx.arrive_remote %room_there, 1RELEASES : !bar_there
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
