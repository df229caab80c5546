"""CTAs of a cluster: who has started and ended when its memory is used, and whom its barrier waits for."""

import numpy as np
import pytest

from tests.unit.ptx.snippets import kernel
from tlx_xdsl.ptx import PtxFault, PtxRace, run_ptx

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


def run(*lines: str) -> None:
    run_ptx(kernel("\n".join((OTHER, *lines)), shared=SHARED), 2, [np.zeros(64, np.uint32)], num_warps=1, cluster=(2,))


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
