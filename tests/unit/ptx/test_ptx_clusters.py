"""CTAs of a cluster: who has started and ended when its memory is used, and whom its barrier waits for."""

import numpy as np
import pytest

from tests.unit.ptx.snippets import kernel
from tlx_xdsl.ptx import PtxError, PtxFault, PtxRace, run_ptx

pytestmark = pytest.mark.quick

MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
MEET_RELAXED = "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;"
SHARED = ".shared .align 16 .b8 buffer[128];\n.shared .align 16 .b8 barrier[16];"
OTHER = """
    mov.u32 %r1, %cluster_ctarank;
    xor.b32 %r2, %r1, 1;
    mov.u32 %r4, %tid.x;
    shl.b32 %r4, %r4, 2;
    mov.u32 %r3, buffer;
    mapa.shared::cluster.u32 %r3, %r3, %r2;
    add.s32 %r3, %r3, %r4;
    mov.u32 %r5, barrier;
    mapa.shared::cluster.u32 %r6, %r5, %r2;
    setp.eq.u32 %p1, %r4, 0;
"""
STORE = "st.shared::cluster.u32 [%r3], %r1;"
INIT = "@%p1 mbarrier.init.shared.b64 [%r5], 1;"
INIT_FENCE = "fence.mbarrier_init.release.cluster;"
ARRIVE = "@%p1 mbarrier.arrive.{}.cluster.shared::cluster.b64 _, [%r6], 1;"
WAIT = """
wait:
    mbarrier.try_wait.parity.shared.b64 %p2, [%r5], 0;
    @!%p2 bra wait;
"""


def run(*lines: str, warps: int = 1, **options: bool) -> None:
    text = kernel("\n".join((OTHER, *lines)), shared=SHARED, threads=32 * warps)
    run_ptx(text, 2, [np.zeros(64, np.uint32)], num_warps=warps, cluster=(2,), **options)


@pytest.mark.parametrize("meet", [MEET, MEET_RELAXED])
def test_a_store_waits_for_the_start_of_the_other_one(meet):
    run(meet, STORE, MEET)
    with pytest.raises(PtxRace, match=r"nothing orders that after the start of CTA . of the cluster"):
        run(STORE, MEET)


def test_a_store_after_the_end_of_the_other_one():
    leave = "setp.eq.u32 %p3, %r1, 1;\n    @%p3 ret;"
    with pytest.raises(PtxRace, match="uses the memory of another CTA, 1, which has ended"):
        run(MEET, leave, STORE)


@pytest.mark.parametrize("how", ["release", "relaxed"])
def test_an_arrival_needs_the_initialisation_that_the_other_one_has_made(how):
    arrive = ARRIVE.format(how)
    run(INIT, INIT_FENCE, MEET_RELAXED, arrive, WAIT)
    with pytest.raises(PtxFault, match="after its initialisation"):
        run(INIT, MEET_RELAXED, arrive, WAIT)


@pytest.mark.parametrize("how", ["release", "relaxed"])
def test_a_cta_must_live_as_long_as_others_arrive_there(how):
    arrive = ARRIVE.format(how)
    run(INIT, MEET, arrive, WAIT)
    run(INIT, MEET, arrive, MEET)
    with pytest.raises(PtxRace, match=r"was arrived at by|which has ended"):
        run(INIT, MEET, arrive)


def test_the_barrier_waits_for_no_thread_that_has_exited():
    """PTX ISA, "barrier.cluster": for all threads that have not."""
    leave = "setp.eq.u32 %p3, %r1, 1;\n    @%p3 ret;"
    run(leave, MEET, MEET)
    run(MEET, leave, MEET)
    run("barrier.cluster.arrive.aligned;", leave, "barrier.cluster.wait.aligned;", MEET)


READY = f"{INIT}\n{INIT_FENCE}\n{MEET_RELAXED}"
"""Both CTAs have their mbarrier."""
GIVE = f"{STORE}\nbar.warp.sync -1;\n{ARRIVE.format('release')}"
"""Each thread writes a word of the other CTA's buffer, and then one of them arrives there."""
TAKE = """
    mov.u32 %r7, buffer;
    add.s32 %r7, %r7, %r4;
    ld.shared.u32 %r8, [%r7];
"""
NOT_ACQUIRED = r"(?s)nothing orders it after what was .* it was waited for, but not released to the cluster"
WAIT_CLUSTER = WAIT.replace("parity", "parity.acquire.cluster")
WAIT_RELAXED = WAIT.replace("parity", "parity.relaxed.cluster")
RESTRICTED = "fence.acquire.sync_restrict::shared::cluster.cluster;"


@pytest.mark.parametrize(
    "wait",
    [
        WAIT_CLUSTER,
        WAIT + "fence.acquire.cluster;",
        WAIT + "fence.acq_rel.gpu;",
        WAIT + "membar.gl;",
        WAIT + RESTRICTED,
        WAIT_RELAXED + RESTRICTED,
        MEET,
    ],
)
def test_a_wait_that_acquires_from_the_cluster(wait):
    run(READY, GIVE, wait, TAKE, MEET)


@pytest.mark.parametrize(
    "wait", [WAIT, RESTRICTED + WAIT, WAIT + "fence.acq_rel.cta;", WAIT + "fence.release.cluster;", WAIT_RELAXED]
)
def test_a_wait_that_acquires_from_the_own_cta_only(wait):
    """PTX ISA, "mbarrier.try_wait": the scope is that of the CTA unless it is said."""
    with pytest.raises(PtxRace, match=NOT_ACQUIRED):
        run(READY, GIVE, wait, TAKE, MEET)


@pytest.mark.parametrize("scope", ["", ".release.cta"])
def test_an_arrival_that_releases_to_the_own_cta_only(scope):
    with pytest.raises(PtxRace, match=NOT_ACQUIRED):
        run(READY, GIVE.replace(".release.cluster", scope), WAIT_CLUSTER, TAKE, MEET)


def test_a_write_after_what_another_cta_has_read():
    """Each CTA reads its own buffer, says so, and then the other one writes there."""
    read = f"st.shared.u32 [%r7], %r1;\n{TAKE}\nbar.warp.sync -1;\n{ARRIVE.format('release')}"
    run(READY, TAKE.partition("ld.")[0], read, WAIT_CLUSTER, STORE, MEET)
    with pytest.raises(PtxRace, match=NOT_ACQUIRED):
        run(READY, TAKE.partition("ld.")[0], read, WAIT, STORE, MEET)


def test_asynchronous_stores_have_to_be_acquired():
    """PTX ISA, "st.async": the end of one is a release to the cluster."""
    expect = "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r5], 128;"
    store = "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r3], %r1, [%r6];"
    run(READY, expect, store, WAIT_CLUSTER, TAKE, MEET)
    with pytest.raises(PtxRace, match=NOT_ACQUIRED):
        run(READY, expect, store, WAIT, TAKE, MEET)


def test_one_warp_acquires_for_all():
    """The warp hands on by a barrier of the CTA what it has acquired; the fence of another warp comes too late."""
    first = "setp.lt.u32 %p4, %r0, 32;\n@!%p4 bra on;\n{}\non:\nbar.sync 0;\n"
    give = GIVE.replace("%r3], %r1", "%r3], 7").replace("bar.warp.sync -1", "bar.sync 0")
    run(READY, give, first.format(WAIT_CLUSTER), TAKE, MEET, warps=2)
    for other in (first.format(WAIT), first.format(WAIT) + RESTRICTED):
        with pytest.raises(PtxRace, match="nothing orders it after"):
            run(READY, give, other, TAKE, MEET, warps=2)


def test_global_memory_has_caches():
    """A fence for shared memory acquires nothing there."""
    give = f"@%p1 st.global.u32 [%rd0], 7;\n{ARRIVE.format('release')}"
    leave, take = "setp.eq.u32 %p3, %r1, 0;\n@%p3 bra end;\n", "ld.global.u32 %r8, [%rd0];\nend:\n"
    give = f"@%p3 bra give;\nbra wait;\ngive:\n{give}\nbra end;\n"
    first = (READY, leave.partition("@")[0], give)
    for wait in (WAIT_CLUSTER, WAIT + "fence.acquire.cluster;"):
        run(*first, wait, take, MEET, global_order=True)
    for wait in (WAIT, WAIT + RESTRICTED):
        with pytest.raises(PtxRace, match="nothing orders it after"):
            run(*first, wait, take, MEET, global_order=True)


def test_the_wait_for_the_cluster_acquires():
    """PTX ISA, "barrier.cluster": only an arrival may be relaxed."""
    with pytest.raises(PtxError, match="is not known"):
        run("barrier.cluster.arrive.aligned; barrier.cluster.wait.relaxed.aligned;")
