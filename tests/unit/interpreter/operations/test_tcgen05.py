"""MMAs of Blackwell's tensor cores, and the commits that signal their end."""

# covers: tlx.mma, ttng.tcgen05

import ml_dtypes
import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.interpreter.faults import Deadlock, Fault
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.numerics.matmul import decode_scales, unpack_e2m1

pytestmark = pytest.mark.quick

BLACKWELL = {"target": "sm_100a", "jobs": 1}


@tlx_xdsl.jit
def load(ptr, buffer, M: tl.constexpr, N: tl.constexpr):
    """Bring a matrix to shared memory, where the tensor cores may read it."""
    tlx.local_store(buffer, tl.load(ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]))


@tlx_xdsl.jit
def store(ptr, values, M: tl.constexpr, N: tl.constexpr):
    tl.store(ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], values)


# --- numbers --------------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def product(
    a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
    DTYPE: tl.constexpr, USE: tl.constexpr, PRED: tl.constexpr, IN_TMEM: tl.constexpr,
):  # fmt: skip
    """C = A @ B, or C + A @ B; a synchronous product, which waits itself."""
    a = tlx.local_alloc((M, K), a_ptr.dtype.element_ty, 1)
    b = tlx.local_alloc((K, N), b_ptr.dtype.element_ty, 1)
    acc = tlx.local_alloc((M, N), DTYPE, 1, tlx.storage_kind.tmem)
    load(a_ptr, a[0], M, K)
    load(b_ptr, b[0], K, N)
    tlx.fence_async_shared()
    tlx.local_store(acc[0], tl.load(c_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]).to(DTYPE))
    if IN_TMEM:
        a_tmem = tlx.local_alloc((M, K), a_ptr.dtype.element_ty, 1, tlx.storage_kind.tmem)
        tlx.local_store(a_tmem[0], tlx.local_load(a[0]))
        tlx.async_dot(a_tmem[0], b[0], acc[0], use_acc=USE, pred=PRED, out_dtype=DTYPE)
    else:
        tlx.async_dot(a[0], b[0], acc[0], use_acc=USE, pred=PRED, out_dtype=DTYPE)
    store(c_ptr, tlx.local_load(acc[0]).to(tl.float32), M, N)


def run_product(m, n, k, dtype, acc=tl.float32, *, use=False, pred=True, in_tmem=False, stage="frontend", before=0.0):
    """The kernel's result, A, B and what was in the accumulator: random numbers plus `before`."""
    rng = np.random.default_rng(m + n + k)
    a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
    c = rng.standard_normal((m, n)).astype(np.float32) + np.float32(before)
    before = c.copy()
    tlx_xdsl.interpret(product, 1, a, b, c, m, n, k, acc, use, pred, in_tmem, stage=stage, **BLACKWELL)
    return c, a.astype(np.float64), b.astype(np.float64), before


DTYPES = [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


@pytest.mark.parametrize("stage", ["frontend", "aliased"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n", "k"), [(128, 64, 64), (64, 128, 128)])
def test_product(m, n, k, dtype, stage):
    c, a, b, _ = run_product(m, n, k, dtype, stage=stage)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-4)


def test_product_adds_to_the_accumulator():
    c, a, b, before = run_product(128, 64, 64, np.float16, use=True)
    np.testing.assert_allclose(c, a @ b + before, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("stage", ["frontend", "ttgir"])
def test_product_that_does_not_add_ignores_what_is_there(stage):
    """NaN times zero would be NaN: the accumulator plays no part."""
    c, a, b, _ = run_product(128, 64, 64, np.float16, before=np.nan, stage=stage)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-4)


def test_product_without_its_predicate_is_not_made():
    c, _, _, before = run_product(128, 64, 64, np.float16, pred=False)
    np.testing.assert_array_equal(c, before)


def test_product_of_an_operand_in_tensor_memory():
    c, a, b, _ = run_product(128, 64, 64, ml_dtypes.bfloat16, in_tmem=True)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-4)


def test_f16_accumulator_rounds():
    c, a, b, _ = run_product(128, 64, 64, np.float16, tl.float16)
    np.testing.assert_array_equal(c, c.astype(np.float16))
    np.testing.assert_allclose(c, a @ b, rtol=1e-3, atol=1e-2)


def test_f32_is_read_as_tf32():
    c, a, b, _ = run_product(128, 64, 32, np.float32)
    short = [(x.astype(np.float32).view(np.uint32) & 0xFFFFE000).view(np.float32) for x in (a, b)]
    np.testing.assert_allclose(c, short[0].astype(np.float64) @ short[1], rtol=1e-5, atol=1e-5)


def test_fp4_is_packed_low_half_first():
    found = unpack_e2m1(np.array([[0x21, 0xF0]], np.uint8), 1)
    np.testing.assert_array_equal(found, [[0.5, 1, 0, -6]])
    np.testing.assert_array_equal(unpack_e2m1(np.array([[0x21], [0xF0]], np.uint8), 0), [[0.5], [1], [0], [-6]])


def test_scales_are_exponents_or_floats():
    np.testing.assert_array_equal(decode_scales(np.array([127, 128, 126, 0], np.uint8)), [1, 2, 0.5, 2.0**-127])
    assert np.isnan(decode_scales(np.array([255], np.uint8))).all()
    np.testing.assert_array_equal(decode_scales(np.array([1.5], ml_dtypes.float8_e4m3fn)), [1.5])


# --- order ----------------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def ordered(a_ptr, b_ptr, c_ptr, DROP: tl.constexpr):
    """Two products into one accumulator, and a third into another, whose commit is the only one."""
    a = tlx.local_alloc((128, 64), tl.float16, 1)
    b = tlx.local_alloc((64, 64), tl.float16, 1)
    acc = tlx.local_alloc((128, 64), tl.float32, 2, tlx.storage_kind.tmem)
    done = tlx.alloc_barriers(1)
    load(a_ptr, a[0], 128, 64)
    load(b_ptr, b[0], 64, 64)
    if DROP != "fence":
        tlx.fence_async_shared()
    tlx.async_dot(a[0], b[0], acc[0], use_acc=False, force_async=True)
    tlx.async_dot(a[0], b[0], acc[0], use_acc=True, force_async=True)
    if DROP == "early commit":
        tlx.tcgen05_commit(done[0])
    tlx.async_dot(a[0], b[0], acc[1], use_acc=False, force_async=True)
    if DROP != "commit" and DROP != "early commit":
        tlx.tcgen05_commit(done[0])
    if DROP == "reuse":
        load(a_ptr, a[0], 128, 64)
    if DROP != "wait" and DROP != "no wait":
        tlx.barrier_wait(done[0], 0)
    if DROP != "no wait":
        store(c_ptr, tlx.local_load(acc[0]) + tlx.local_load(acc[1]), 128, 64)


def run_ordered(drop="", schedule="round-robin"):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((128, 64)).astype(np.float16), rng.standard_normal((64, 64)).astype(np.float16)
    c = np.full((128, 64), np.nan, np.float32)
    result = tlx_xdsl.interpret(ordered, 1, a, b, c, drop, schedule=schedule, **BLACKWELL)
    return c, 3 * (a.astype(np.float64) @ b), list(result.warnings)


@pytest.mark.parametrize("schedule", POLICIES)
def test_a_commit_tracks_all_that_was_issued(schedule):
    found, expected, warnings = run_ordered(schedule=schedule)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)
    assert warnings == []


@pytest.mark.parametrize("schedule", POLICIES)
@pytest.mark.parametrize(
    ("drop", "kind", "message"),
    [
        ("fence", Fault, "without a proxy fence in between"),
        ("commit", Deadlock, "waits at 'done"),
        ("wait", Fault, r"'acc\[0\]'.*(nothing orders it after the tcgen05.mma|read before it is written)"),
        ("early commit", Fault, r"'acc\[1\]'.*(nothing orders it after the tcgen05.mma|read before it is written)"),
        ("reuse", Fault, r"writes 'a\[0\]', and nothing orders it after the tcgen05.mma"),
    ],
)
def test_each_missing_step_of_an_mma_is_reported(drop, kind, message, schedule):
    with pytest.raises(kind, match=message):
        run_ordered(drop, schedule)


def test_an_mma_that_no_task_waits_for_is_reported():
    _, _, warnings = run_ordered("no wait")
    assert {warning.message for warning in warnings} == {
        "the default task ends, and nothing has waited for this to be complete"
    }


@tlx_xdsl.jit
def predicated(a_ptr, b_ptr, PRED: tl.constexpr):
    """A product that is not made does not arrive."""
    a = tlx.local_alloc((128, 64), tl.float16, 1)
    b = tlx.local_alloc((64, 64), tl.float16, 1)
    acc = tlx.local_alloc((128, 64), tl.float32, 1, tlx.storage_kind.tmem)
    done = tlx.alloc_barriers(1)
    load(a_ptr, a[0], 128, 64)
    load(b_ptr, b[0], 64, 64)
    tlx.fence_async_shared()
    tlx.async_dot(a[0], b[0], acc[0], use_acc=False, pred=PRED, mBarriers=[done[0]])
    tlx.barrier_wait(done[0], 0)


def test_a_product_that_is_not_made_does_not_arrive():
    a, b = np.zeros((128, 64), np.float16), np.zeros((64, 64), np.float16)
    tlx_xdsl.interpret(predicated, 1, a, b, True, **BLACKWELL)
    with pytest.raises(Deadlock, match="waits at 'done"):
        tlx_xdsl.interpret(predicated, 1, a, b, False, **BLACKWELL)
