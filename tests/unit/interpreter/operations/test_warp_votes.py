"""Votes of a warp on the elements that it holds, and where a body counts; numpy is the oracle."""

# covers: tlx.utility

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.unit.interpreter.operations.stages import STAGES, at


@tlx_xdsl.jit
def votes(x_ptr, any_ptr, all_ptr, bits_ptr, each_ptr, SIZE: tl.constexpr, LAYOUT: tl.constexpr):
    i = tl.arange(0, SIZE)
    x = tlx.require_layout(tl.load(x_ptr + i), LAYOUT)
    # One element of each in a thread: its warp's answer.
    threads = tl.arange(0, 32 * tlx.num_warps())
    tl.store(any_ptr + threads, tlx.warp_any(x > 1).to(tl.int32))
    tl.store(all_ptr + threads, tlx.warp_all(x).to(tl.int32))
    tl.store(bits_ptr + threads, tlx.warp_ballot(x > 1))
    tl.store(each_ptr + i, tlx.vote_ballot_sync(-1, x > 1))


@pytest.mark.parametrize("stage", STAGES[1:])
@pytest.mark.parametrize(
    ("layout", "elements"),
    [
        # The elements that a thread holds, by warp and thread.
        (tlx.blocked_layout_encoding.make([1], [32], [8], [0]), np.arange(256).reshape(8, 32, 1)),
        (tlx.blocked_layout_encoding([2], [32], [8], [0]), np.arange(512).reshape(8, 32, 2)),
        # Warps lie side by side, and a thread holds every 256th element.
        (tlx.layout(shape=((32, 8), 4), stride=((8, 1), 256)), np.arange(1024).reshape(4, 32, 8).T),
    ],
)
def test_votes_of_the_elements_of_a_warp(stage, layout, elements):
    x = np.random.default_rng(0).integers(0, 4, elements.size).astype(np.int32)
    x[elements[2]], x[elements[3]] = 3, 1
    found = [np.zeros(256, np.int32), np.zeros(256, np.int32), np.zeros(256, np.int64)]
    each = np.zeros(elements.size, np.uint32)
    tlx_xdsl.interpret(
        votes,
        1,
        x,
        *found,
        each.view(np.int32),
        elements.size,
        layout,
        target="sm_90a",
        num_warps=8,
        jobs=1,
        **at(stage),
    )
    mine = x[elements]
    bits = ((mine > 1).any(2).astype(np.int64) << np.arange(32)).sum(1)
    expected = [(mine > 1).any((1, 2)), (mine != 0).all((1, 2)), bits]
    for answer, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(answer.reshape(8, 32), np.broadcast_to(wanted[:, None], (8, 32)))
    if stage == "ttgir":  # Upstream Triton may vote on tensors in another layout (transforms/nvidia/votes.py).
        np.testing.assert_array_equal(each[elements], np.broadcast_to(bits[:, None, None], elements.shape))


@tlx_xdsl.jit
def rescaled(acc, total, factor):
    return acc * factor[:, None], total * factor


@tlx_xdsl.jit
def rescale(acc_ptr, total_ptr, factor_ptr, ROWS: tl.constexpr, WHOLE: tl.constexpr):
    i, j = tl.arange(0, ROWS), tl.arange(0, 16)
    places = acc_ptr + i[:, None] * 16 + j[None, :]
    acc, total, factor = tl.load(places), tl.load(total_ptr + i), tl.load(factor_ptr + i)
    needed = tl.min(factor) < 1 if WHOLE else factor < 1
    acc, total = tlx.warp_predicate(needed, (acc, total), rescaled, args=(factor,))
    tl.store(places, acc)
    tl.store(total_ptr + i, total)


@pytest.mark.parametrize("whole", [False, True])
def test_a_body_counts_where_the_predicate_holds(whole):
    rng = np.random.default_rng(1)
    acc, total = rng.standard_normal((32, 16), np.float32), rng.standard_normal(32, np.float32)
    factor = np.where(np.arange(32) % 3 == 0, 0.5, 2).astype(np.float32)
    scale = factor if whole else np.minimum(factor, 1)
    expected = acc * scale[:, None], total * scale
    tlx_xdsl.interpret(rescale, 1, acc, total, factor, 32, whole, jobs=1)
    np.testing.assert_array_equal(acc, expected[0])
    np.testing.assert_array_equal(total, expected[1])
