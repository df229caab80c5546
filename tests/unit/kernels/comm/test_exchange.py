"""The all-to-all for experts on simulated ranks, against float64; twice in a row."""

import numpy as np
import pytest

import tlx_xdsl
from tests.unit import volume
from tests.unit.kernels.references import DTYPES
from tlx_xdsl.kernels.comm import Exchange
from tlx_xdsl.kernels.comm.exchange import COMBINE, DISPATCH

BF16 = DTYPES["bf16"]
TOKENS, WIDTH, CHOICES, EXPERTS = 5, 24, 2, 2


def experts_of(received, rank):
    """Expert e multiplies its rows by e + 1; rows that are not there are NaN."""
    rows, numbers, counts = (each[rank] for each in received)
    y = np.full(rows.shape, np.nan, BF16)
    for source, count in enumerate(counts):
        factors = rank * EXPERTS + numbers[source, :count] + 1
        y[source, :count] = rows[source, :count].astype(np.float32) * factors[:, None]
    return y


@pytest.mark.parametrize("world", [2, 3, 4] if volume.is_full() else [2, 4])
def test_rows_go_to_their_experts_and_come_back(world):
    ranks = tlx_xdsl.SimulatedRanks(world)
    x = [np.zeros((TOKENS, WIDTH), BF16) for _ in range(world)]
    exchange = Exchange(ranks, tokens=TOKENS, width=WIDTH, choices=CHOICES, experts=EXPERTS, like=x)
    for seed in range(2):
        rng = np.random.default_rng(seed)
        x = [rng.standard_normal((TOKENS, WIDTH)).astype(BF16) for _ in range(world)]
        chosen = [rng.integers(0, world * EXPERTS, (TOKENS, CHOICES)).astype(np.int32) for _ in range(world)]
        weights = [rng.random((TOKENS, CHOICES)).astype(np.float32) for _ in range(world)]
        received = exchange.dispatch(x, chosen)
        assert [int(each.sum()) for each in received.counts] == [
            sum(int((each // EXPERTS == rank).sum()) for each in chosen) for rank in range(world)
        ]
        out = exchange.combine([experts_of(received, rank) for rank in range(world)], weights)
        for rank in range(world):
            results = (x[rank][:, None].astype(np.float32) * (chosen[rank] + 1)[..., None]).astype(BF16)
            exact = (results.astype(np.float64) * weights[rank][..., None]).sum(1)
            # One rounding to bf16, and f32 in between.
            assert np.abs(out[rank].astype(np.float64) - exact).max() <= 2.0**-8 * np.abs(exact).max()


def test_two_launches_in_a_row():
    """No rank waits on the host for the others between them."""
    ranks = tlx_xdsl.SimulatedRanks(3)
    x = [np.random.default_rng(rank).standard_normal((4, 16)).astype(np.float32) for rank in range(3)]
    chosen = [np.array([[0, 1], [2, 0], [1, 1], [2, 1]], np.int32)] * 3
    weights = [np.ones((4, 2), np.float32)] * 3
    exchange = Exchange(ranks, tokens=4, width=16, choices=2, experts=1, like=x)
    _, send = DISPATCH.prepare((x, chosen, exchange.places), (ranks, exchange)).launches
    received = exchange.dispatch(x, chosen)
    send.interpret(launches=2)
    prepared = COMBINE.prepare((received.rows, weights, chosen, exchange.places, None), (ranks, exchange))
    prepared.launches[0].interpret(launches=2)
    for each, value in zip(prepared.tensors["out"], x, strict=True):
        assert (each == 2 * value).all()


def test_all_may_choose_one_expert():
    ranks = tlx_xdsl.SimulatedRanks(2)
    x = [np.full((3, 16), rank + 1, np.float32) for rank in range(2)]
    exchange = Exchange(ranks, tokens=3, width=16, choices=1, experts=4, like=x)
    received = exchange.dispatch(x, [np.full((3, 1), 5, np.int32)] * 2)
    assert [each.tolist() for each in received.counts] == [[0, 0], [3, 3]]
    assert (received.numbers[1] == 1).all()
    assert [np.unique(each).tolist() for each in received.rows[1]] == [[1], [2]]


def test_what_is_refused():
    ranks = tlx_xdsl.SimulatedRanks(2)
    x = [np.zeros((4, 16), np.float32)] * 2
    exchange = Exchange(ranks, tokens=4, width=16, choices=1, experts=1, like=x)
    with pytest.raises(RuntimeError, match="expected a dispatch before"):
        exchange.combine(x, x)
    with pytest.raises(ValueError, match=r"expected the shape \(4, 1\)"):
        exchange.dispatch(x, [np.zeros((4, 2), np.int32)] * 2)
    with pytest.raises(TypeError, match="expected elements of type i32"):
        exchange.dispatch(x, [np.zeros((4, 1), np.int64)] * 2)
