"""Stochastic rounding, packed arithmetic and votes."""

import ml_dtypes
import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.runtime.interpret import interpret_text

BLACKWELL = {"target": "sm_100a", "jobs": 1}
SMALL = [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


@tlx_xdsl.jit
def rounded(x_ptr, bits_ptr, y_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    values = tlx.stoch_round(tl.load(x_ptr + at), y_ptr.dtype.element_ty, tl.load(bits_ptr + at))
    tl.store(y_ptr + at, values)


def round_(x, bits, dtype):
    y = np.zeros(x.shape, dtype)
    tlx_xdsl.interpret(rounded, 1, x.astype(np.float32), bits.astype(np.uint32).view(np.int32), y, x.size, **BLACKWELL)
    return y.astype(np.float64)


@pytest.mark.parametrize("dtype", SMALL)
def test_the_mean_is_kept(dtype):
    rng = np.random.default_rng(0)
    for value in (1.03, -2.7, 0.3001):
        found = round_(np.full(1 << 14, value, np.float32), rng.integers(0, 1 << 32, 1 << 14), dtype)
        gap = np.ptp(found)
        assert len(np.unique(found)) == 2
        assert abs(found.mean() - np.float32(value)) < 0.02 * gap
        assert found.min() < value < found.max()


@pytest.mark.parametrize("dtype", SMALL)
def test_the_bits_decide(dtype):
    x = np.array([1.01, -1.01, 1.01, -1.01] * 4, np.float32)
    bits = np.array([0, 0, 0xFFFFFFFF, 0xFFFFFFFF] * 4, np.uint32)
    found = round_(x, bits, dtype)
    up, down = found[0], found[2]
    assert down < 1.01 < up
    np.testing.assert_array_equal(found, [up, -up, down, -down] * 4)


@pytest.mark.parametrize("dtype", SMALL)
def test_what_fits_stays_and_what_is_too_large_saturates(dtype):
    top = float(ml_dtypes.finfo(dtype).max)
    x = np.array([0.0, 1.0, -1.5, 0.25, top, -top, np.inf, np.nan], np.float32)
    found = round_(x, np.zeros(8), dtype)
    np.testing.assert_array_equal(found, [0, 1, -1.5, 0.25, top, -top, top, np.nan])


# --- packed arithmetic ----------------------------------------------------------------------------------------------

PACKED = """
#b = #ttg.blocked<{{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}}>
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:100",
                   "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @f(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {{
    %r = tt.make_range {{end = 64 : i32, start = 0 : i32}} : tensor<64xi32, #b>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #b>
    %xp = tt.addptr %xs, %r : tensor<64x!tt.ptr<f32>, #b>, tensor<64xi32, #b>
    %v = tt.load %xp : tensor<64x!tt.ptr<f32>, #b>
    %w = ttng.packed_arith {operation} : ({types}) -> tensor<64xf32, #b>
    %ys = tt.splat %y : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #b>
    %yp = tt.addptr %ys, %r : tensor<64x!tt.ptr<f32>, #b>, tensor<64xi32, #b>
    tt.store %yp, %w : tensor<64x!tt.ptr<f32>, #b>
    tt.return
  }}
}}
"""


@pytest.mark.parametrize(
    ("operation", "count", "expected"),
    [
        ("add %v, %v", 2, lambda x: x + x),
        ("sub %v, %v", 2, lambda x: x - x),
        ("mul %v, %v", 2, lambda x: x * x),
        ("fma %v, %v, %v", 3, lambda x: (x.astype(np.float64) * x + x).astype(np.float32)),
        ("min %v, %v", 2, lambda x: x),
        ("max %v, %v", 2, lambda x: x),
    ],
)
def test_packed_arithmetic(operation, count, expected):
    x, y = np.random.default_rng(0).standard_normal(64).astype(np.float32), np.zeros(64, np.float32)
    text = PACKED.format(operation=operation, types=", ".join(["tensor<64xf32, #b>"] * count))
    interpret_text(text, 1, [x, y], jobs=1)
    np.testing.assert_array_equal(y, expected(x))


# --- votes ----------------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def vote(x_ptr, y_ptr, MASK: tl.constexpr):
    i = tl.arange(0, 128)
    tl.store(y_ptr + i, tlx.vote_ballot_sync(MASK, tl.load(x_ptr + i) > 0))


@pytest.mark.parametrize(("value", "expected"), [(1, 0x0000FFFF), (0, 0)])
def test_a_vote_of_all_needs_no_layout(value, expected):
    y = np.full(128, -1, np.int32)
    tlx_xdsl.interpret(vote, 1, np.full(128, value, np.int32), y, 0xFFFF, target="sm_90a", jobs=1)
    assert (y == expected).all()


def test_a_vote_needs_a_layout():
    x, y = np.zeros(128, np.int32), np.zeros(128, np.int32)
    x[5] = 1
    with pytest.raises(Fault, match="without a layout nobody knows who holds what"):
        tlx_xdsl.interpret(vote, 1, x, y, -1, target="sm_90a", jobs=1)


VOTE = """
#b = {layout}
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = {warps} : i32, ttg.target = "cuda:90",
                   "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @f(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>) {{
    %r = tt.make_range {{end = 64 : i32, start = 0 : i32}} : tensor<64xi32, #b>
    %xs = tt.splat %x : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>, #b>
    %xp = tt.addptr %xs, %r : tensor<64x!tt.ptr<i32>, #b>, tensor<64xi32, #b>
    %v = tt.load %xp : tensor<64x!tt.ptr<i32>, #b>
    %zero = arith.constant dense<0> : tensor<64xi32, #b>
    %p = arith.cmpi ne, %v, %zero : tensor<64xi32, #b>
    %mask = arith.constant -1 : i32
    %w = tlx.vote_ballot %mask, %p : tensor<64xi1, #b> -> tensor<64xi32, #b>
    %ys = tt.splat %y : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>, #b>
    %yp = tt.addptr %ys, %r : tensor<64x!tt.ptr<i32>, #b>, tensor<64xi32, #b>
    tt.store %yp, %w : tensor<64x!tt.ptr<i32>, #b>
    tt.return
  }}
}}
"""


BLOCKED = "#ttg.blocked<{{sizePerThread = [{each}], threadsPerWarp = [32], warpsPerCTA = [{warps}], order = [0]}}>"
TWICE = """#ttg.linear<{register = [[32]], lane = [[1], [2], [4], [8], [16]], warp = [[1]], block = []}>"""


def voted(layout: str, warps: int, *true: int, lowered: bool = False):
    """The bits that each of 64 elements gets, of which those are true; with `lowered`, of the vote as PTX."""
    x, y = np.zeros(64, np.int32), np.zeros(64, np.int32)
    x[list(true)] = 1
    stage = {"stage": "tlx-lower-votes"} if lowered else {}
    interpret_text(VOTE.format(layout=layout, warps=warps), 1, [x, y], jobs=1, **stage)
    return y


@pytest.mark.parametrize("lowered", [False, True])
def test_a_thread_votes_for_its_elements(lowered):
    """One warp, whose thread t holds the elements t and 32 + t, or 2 t and 2 t + 1."""
    assert (voted(BLOCKED.format(each=1, warps=1), 1, 3, 32 + 7, lowered=lowered) == (1 << 3 | 1 << 7)).all()
    assert (voted(BLOCKED.format(each=2, warps=1), 1, 3, 32 + 7, lowered=lowered) == (1 << 1 | 1 << 19)).all()


@pytest.mark.parametrize("lowered", [False, True])
def test_each_element_has_the_votes_of_its_warp(lowered):
    y = voted(BLOCKED.format(each=1, warps=2), 2, 3, 32 + 5, 32 + 31, lowered=lowered)
    assert (y[:32] == 1 << 3).all()
    assert (y[32:].view(np.uint32) == 1 << 5 | 1 << 31).all()


@pytest.mark.parametrize("lowered", [False, True])
def test_warps_that_hold_the_same_element_must_agree(lowered):
    """Thread t of the second warp holds what thread t ^ 1 of the first one does: their votes have other places."""
    assert (voted(TWICE, 2, 6, 7, lowered=lowered) == 3 << 6).all()
    with pytest.raises(Fault, match="threads that hold the same element of the result get different values for it"):
        voted(TWICE, 2, 6, lowered=lowered)
