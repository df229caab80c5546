"""Order of the operations that a task issues to Blackwell's tensor cores: PTX's, or with an option that of issue."""

# covers: tlx.mma, ttng.tcgen05

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.unit.interpreter.operations.test_tcgen05 import load, store
from tests.unit.interpreter.reports import at, expect_fault, fault, run
from tests.unit.volume import is_full
from tlx_xdsl.interpreter.faults import Race
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.runtime.simulate.options import TENSOR_CORE_ORDERS, Options

PTX = {"target": "sm_100a"}
ISSUE = {"target": "sm_100a", "tensor_core_order": "issue"}
HINT = "--tensor-core-order issue"
STAGES = ["frontend", "aliased", "ttgir"] if is_full() else ["frontend", "ttgir"]


def hints(reported) -> list[str]:
    """The notes of a report that name the option."""
    return [note for note in reported.notes if HINT in note]


# Scores over probabilities ------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def scores_over_probabilities(
    q_ptr, k_ptr, v_ptr, s_ptr, o_ptr, BLOCKS: tl.constexpr, WAITS: tl.constexpr, EARLY: tl.constexpr
):
    """Compute S = Q @ K for each block to the columns where P lies, which the MMA O += P @ V before it reads.

    One task issues all products, another one makes P of S. S goes to memory as it was last. With WAITS, a commit and a
    wait stand in between; with EARLY, the second task reads S of the last block before its commit.
    """
    q, k = tlx.local_alloc((128, 64), tl.float16, 1), tlx.local_alloc((64, 64), tl.float16, 1)
    v = tlx.local_alloc((64, 64), tl.float16, 1)
    shared = tlx.storage_alias_spec(storage=tlx.storage_kind.tmem)
    s = tlx.local_alloc((128, 64), tl.float32, 1, tlx.storage_kind.tmem, reuse=shared)
    p = tlx.local_alloc((128, 64), tl.float16, 1, tlx.storage_kind.tmem, reuse=shared)
    shared.set_buffer_overlap(tlx.reuse_group(s, p, group_type=tlx.reuse_group_type.shared))
    o = tlx.local_alloc((128, 64), tl.float32, 1, tlx.storage_kind.tmem)
    s_full, p_full, done = tlx.alloc_barriers(1), tlx.alloc_barriers(1), tlx.alloc_barriers(1)
    load(q_ptr, q[0], 128, 64)
    load(k_ptr, k[0], 64, 64)
    load(v_ptr, v[0], 64, 64)
    tlx.fence_async_shared()
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for block in range(BLOCKS):
                tlx.barrier_wait(s_full[0], block & 1)
                scores = tlx.local_load(s[0])
                tlx.local_store(p[0], (scores * 0.25).to(tl.float16))
                tlx.barrier_arrive(p_full[0])
            if EARLY:
                store(s_ptr, tlx.local_load(s[0]), 128, 64)  # early
            tlx.barrier_wait(s_full[0], BLOCKS & 1)
            store(s_ptr, tlx.local_load(s[0]), 128, 64)
            store(o_ptr, tlx.local_load(o[0]), 128, 64)
        with tlx.async_task(num_warps=1):
            tlx.async_dot(q[0], k[0], s[0], use_acc=False, mBarriers=[s_full[0]])
            for block in range(BLOCKS):
                tlx.barrier_wait(p_full[0], block & 1)
                tlx.async_dot(p[0], v[0], o[0], use_acc=block > 0, force_async=True)  # reads
                if WAITS:
                    tlx.tcgen05_commit(done[0])
                    tlx.barrier_wait(done[0], block & 1)
                tlx.async_dot(q[0], k[0], s[0], use_acc=False, mBarriers=[s_full[0]])  # writes


class Scores:
    """Arguments, and what must come out."""

    def __init__(self, blocks: int = 3):
        rng = np.random.default_rng(0)
        self.q, self.k, self.v = (rng.standard_normal((n, 64)).astype(np.float16) / 8 for n in (128, 64, 64))
        self.s, self.o = np.zeros((128, 64), np.float32), np.zeros((128, 64), np.float32)
        self.blocks = blocks

    def arguments(self, *, waits: bool = False, early: bool = False):
        return self.q, self.k, self.v, self.s, self.o, self.blocks, waits, early

    def check(self):
        scores = self.q.astype(np.float32) @ self.k.astype(np.float32)
        weights = (scores * 0.25).astype(np.float16).astype(np.float32)
        np.testing.assert_allclose(self.s, scores, atol=1e-4)
        np.testing.assert_allclose(self.o, self.blocks * (weights @ self.v.astype(np.float32)), atol=1e-3)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("schedule", POLICIES)
def test_a_product_may_write_where_an_earlier_one_reads(stage, schedule):
    case = Scores()
    result = run(scores_over_probabilities, *case.arguments(), stage=stage, schedule=schedule, seed=1, **ISSUE)
    assert not result.warnings
    case.check()


@pytest.mark.parametrize("stage", STAGES)
def test_ptx_does_not_promise_that(stage):
    report = expect_fault(
        scores_over_probabilities, "writes 's[0]', and nothing orders it after the tcgen05.mma to 'o[0]' of partition",
        *Scores().arguments(), mark="writes", stage=stage, **PTX,
    )  # fmt: skip
    assert isinstance(report, Race)
    assert f"read at {at(scores_over_probabilities, 'reads')}" in report.notes
    assert len(hints(report)) == 1


@pytest.mark.parametrize("options", [PTX, ISSUE])
def test_a_commit_and_a_wait_do(options):
    case = Scores()
    assert not run(scores_over_probabilities, *case.arguments(waits=True), **options).warnings
    case.check()


@pytest.mark.parametrize("schedule", POLICIES)
@pytest.mark.parametrize("waits", [False, True])
def test_a_load_needs_the_wait_for_the_commit_in_any_case(schedule, waits):
    """The option is about the tensor core's own operations: tcgen05.ld is none, and no hint may say so."""
    arguments = Scores().arguments(waits=waits, early=True)
    report = fault(scores_over_probabilities, *arguments, schedule=schedule, seed=1, **ISSUE)
    # Whichever comes second is reported: the load, or the MMA that is issued after it.
    lines = {at(scores_over_probabilities, mark).rpartition(":")[0] for mark in ("early", "writes")}
    assert any(str(report).startswith(line) for line in lines), str(report)
    assert "'s[0]'" in report.message
    assert not hints(report)


# Two tasks ----------------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def two_issuers(a_ptr, b_ptr, c_ptr, ORDERED: tl.constexpr):
    """Two tasks issue products to one accumulator; with ORDERED, the second waits for the first one's commit."""
    a, b = tlx.local_alloc((128, 64), tl.float16, 1), tlx.local_alloc((64, 64), tl.float16, 1)
    acc = tlx.local_alloc((128, 64), tl.float32, 1, tlx.storage_kind.tmem)
    first, second = tlx.alloc_barriers(1), tlx.alloc_barriers(1)
    load(a_ptr, a[0], 128, 64)
    load(b_ptr, b[0], 64, 64)
    tlx.fence_async_shared()
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tlx.barrier_wait(first[0], 0)
            tlx.barrier_wait(second[0], 0)
            store(c_ptr, tlx.local_load(acc[0]), 128, 64)
        with tlx.async_task(num_warps=1):
            tlx.async_dot(a[0], b[0], acc[0], use_acc=False, mBarriers=[first[0]])  # one
        with tlx.async_task(num_warps=1):
            if ORDERED:
                tlx.barrier_wait(first[0], 0)
            tlx.async_dot(a[0], b[0], acc[0], use_acc=True, mBarriers=[second[0]])  # two


def matrices():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((128, 64)).astype(np.float16), rng.standard_normal((64, 64)).astype(np.float16)
    return a, b, np.zeros((128, 64), np.float32)


@pytest.mark.parametrize("order", TENSOR_CORE_ORDERS)
@pytest.mark.parametrize("schedule", POLICIES)
def test_what_two_tasks_issue_is_not_ordered(order, schedule):
    report = fault(
        two_issuers, *matrices(), False, schedule=schedule, seed=1, target="sm_100a", tensor_core_order=order
    )
    assert "'acc[0]'" in report.message
    assert any(str(report).startswith(at(two_issuers, mark).rpartition(":")[0]) for mark in ("one", "two"))
    assert not hints(report)


@pytest.mark.parametrize("order", TENSOR_CORE_ORDERS)
def test_a_barrier_orders_two_tasks(order):
    a, b, c = matrices()
    assert not run(two_issuers, a, b, c, True, target="sm_100a", tensor_core_order=order).warnings
    np.testing.assert_allclose(c, 2 * (a.astype(np.float32) @ b.astype(np.float32)), atol=1e-3)


# Copies -------------------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def copies(a_ptr, b_ptr, c_ptr, OVERWRITES: tl.constexpr, REUSES: tl.constexpr):
    """A product of a copy to tensor memory; another copy over its operand; shared memory used again by threads."""
    source, b = tlx.local_alloc((128, 32), tl.float32, 2), tlx.local_alloc((32, 64), tl.float32, 1)
    a = tlx.local_alloc((128, 32), tl.float32, 1, tlx.storage_kind.tmem)
    acc = tlx.local_alloc((128, 64), tl.float32, 2, tlx.storage_kind.tmem)
    done = tlx.alloc_barriers(1)
    load(a_ptr, source[0], 128, 32)
    load(a_ptr, source[1], 128, 32)
    load(b_ptr, b[0], 32, 64)
    tlx.fence_async_shared()
    tlx.tmem_copy(source[0], a[0])
    tlx.async_dot(a[0], b[0], acc[0], use_acc=False, force_async=True)
    if OVERWRITES:
        tlx.tmem_copy(source[1], a[0])  # over
        tlx.async_dot(a[0], b[0], acc[1], use_acc=False, force_async=True)
    if REUSES:
        load(a_ptr, source[0], 128, 32)
    tlx.tcgen05_commit(done[0])
    tlx.barrier_wait(done[0], 0)
    store(c_ptr, tlx.local_load(acc[0]), 128, 64)
    if OVERWRITES:
        store(c_ptr + 128 * 64, tlx.local_load(acc[1]), 128, 64)


def copied():
    """Operands that tf32 holds."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(-8, 8, (128, 32)).astype(np.float32), rng.integers(-8, 8, (32, 64)).astype(np.float32)
    return a, b, np.zeros((2, 128, 64), np.float32)


def test_a_product_follows_the_copy_before_it():
    for options in (PTX, ISSUE):
        a, b, c = copied()
        assert not run(copies, a, b, c, False, False, **options).warnings
        np.testing.assert_array_equal(c[0], a @ b)


def test_a_copy_follows_the_product_before_it_by_issue_only():
    report = expect_fault(
        copies, "the tcgen05.cp of the default task writes 'a[0]' while an earlier one may still be in flight",
        *copied(), True, False, mark="over", **PTX,
    )  # fmt: skip
    assert len(hints(report)) == 1
    a, b, c = copied()
    assert not run(copies, a, b, c, True, False, **ISSUE).warnings
    np.testing.assert_array_equal(c, np.broadcast_to(a @ b, c.shape))


def test_threads_do_not_follow_what_they_issue():
    report = fault(copies, *copied(), False, True, **ISSUE)
    assert "writes 'source[0]', and nothing orders it after the tcgen05.cp" in report.message
    assert not hints(report)


# The option ---------------------------------------------------------------------------------------------------------


def test_options():
    assert Options().tensor_core_order == "ptx"
    with pytest.raises(ValueError, match="tensor_core_order must be ptx or issue, found 'fifo'"):
        Options(tensor_core_order="fifo")
