"""Votes of the threads of a warp: who holds what, what each element gets, and what kernels decide by it."""

# covers: tlx.utility

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.runtime.simulate.interpret import interpret_text

# Who holds what -----------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def vote(x_ptr, y_ptr, MASK: tl.constexpr):
    i = tl.arange(0, 128)
    tl.store(y_ptr + i, tlx.vote_ballot_sync(MASK, tl.load(x_ptr + i) > 0))


@pytest.mark.parametrize(("value", "expected"), [(1, -1), (0, 0)])
def test_a_vote_of_all_needs_no_layout(value, expected):
    y = np.full(128, -1, np.int32)
    tlx_xdsl.interpret(vote, 1, np.full(128, value, np.int32), y, 0xFFFFFFFF, target="sm_90a", jobs=1)
    assert (y == expected).all()


def test_a_mask_names_all_threads():
    x = np.ones(128, np.int32)
    with pytest.raises(Fault, match="the mask 0xffff leaves out threads, and all 32 of a warp vote"):
        tlx_xdsl.interpret(vote, 1, x, x.copy(), 0xFFFF, target="sm_90a", jobs=1)


def test_a_vote_needs_a_layout():
    x, y = np.zeros(128, np.int32), np.zeros(128, np.int32)
    x[5] = 1
    with pytest.raises(Fault, match="without a layout it is unknown which thread holds what"):
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
TWICE = """#ttg.generic_linear<{register = [[32]], lane = [[1], [2], [4], [8], [16]], warp = [[1]], block = []}>"""


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


# Inline assembly ----------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def by_hand(x_ptr, y_ptr):
    """The same in the user's own words; a thread votes once for each element."""
    i = tl.arange(0, 128)
    # Plain Triton kernels get their layouts from stock Triton.
    buffer = tlx.local_alloc((128,), tl.int32, 1)
    tlx.local_store(buffer[0], tl.load(x_ptr + i))
    asm: tl.constexpr = "{ .reg .pred p; setp.gt.s32 p, $1, 0; vote.sync.ballot.b32 $0, p, 0xFFFFFFFF; }"
    tl.store(y_ptr + i, tl.inline_asm_elementwise(asm, "=r,r", [tlx.local_load(buffer[0])], tl.int32, False, 1))


def test_a_vote_in_assembly_is_that_of_the_warp_that_holds_the_element():
    x, y = np.zeros(128, np.int32), np.zeros(128, np.int32)
    x[[3, 32 + 5]] = 1
    tlx_xdsl.interpret(by_hand, 1, x, y, stage="ttgir", target="sm_90a", jobs=1)
    np.testing.assert_array_equal(y, np.repeat([1 << 3, 1 << 5, 0, 0], 32))
    with pytest.raises(Fault, match="of a warp exchange something, and without a layout it is unknown what"):
        tlx_xdsl.interpret(by_hand, 1, x, y, target="sm_90a", jobs=1)


# Decisions ----------------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def either(a, b):
    return a | b


@tlx_xdsl.jit
def rescale(factor_ptr, x_ptr, SELECTS: tl.constexpr):
    """Multiply the rows of an accumulator by factors, unless none of them is below 1: by warps, or for all at once."""
    i, j = tl.arange(0, 128)[:, None], tl.arange(0, 64)[None, :]
    acc = tlx.local_alloc((128, 64), tl.float32, 1, tlx.storage_kind.tmem)
    tlx.local_store(acc[0], tl.load(x_ptr + i * 64 + j))
    factor = tl.load(factor_ptr + i)
    needed = tlx.vote_ballot_sync(0xFFFFFFFF, factor < 1.0) != 0
    if SELECTS:
        x = tlx.local_load(acc[0])
        tlx.local_store(acc[0], tl.where(needed, x * factor, x))
    else:
        if tl.reshape(tl.reduce(needed, axis=0, combine_fn=either), ()):
            tlx.local_store(acc[0], tlx.local_load(acc[0]) * factor)
    tl.store(x_ptr + i * 64 + j, tlx.local_load(acc[0]))


@pytest.mark.parametrize("selects", [False, True])
@pytest.mark.parametrize("low", [[], [3], [40, 41, 100]])
def test_warps_decide_by_their_rows(selects, low):
    """Factors above 1 show who has multiplied: the rows of warps with a factor below, or all of them."""
    rng = np.random.default_rng(0)
    x, factor = rng.standard_normal((128, 64)).astype(np.float32), np.full((128, 1), 2, np.float32)
    factor[low] = 0.5
    warps = (factor < 1).reshape(4, 32).any(1)
    rows = np.repeat(warps if selects else [warps.any()] * 4, 32)[:, None]
    expected = np.where(rows, x * factor, x)
    tlx_xdsl.interpret(rescale, 1, factor, x, selects, stage="ttgir", target="sm_100a", jobs=1)
    np.testing.assert_array_equal(x, expected)
