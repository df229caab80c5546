"""Sums over ranks and gathering on simulated ranks: values, bits, memory that is used again, and broken protocols."""

import re

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.unit import volume
from tests.unit.kernels.references import DTYPES
from tlx_xdsl.kernels.comm import all_gather, all_reduce, reduce as kernels, reduce_scatter
from tlx_xdsl.kernels.comm.collectives import chosen
from tlx_xdsl.kernels.comm.signals import (
    FIRST,
    REPORT,
    count_program,
    counters,
    in_turn,
    launch_number,
    signal_others,
    slot,
)

WORLDS = (2, 3, 4)
BF16 = DTYPES["bf16"]


def inputs(world, shape, dtype=BF16, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(dtype) for _ in range(world)]


def fixed_order(values):
    """The sum in f32 in the order of ranks, rounded once."""
    total = values[0].astype(np.float32)
    for value in values[1:]:
        total = total + value.astype(np.float32)
    return total.astype(values[0].dtype)


def symmetric(world, count, dtype=BF16):
    """Memory that holds NaN, or counters."""
    return tlx_xdsl.symmetric([np.full(count, 0 if dtype is np.int64 else np.nan, dtype) for _ in range(world)])


def nans(world, shape, dtype=BF16):
    return [np.full(shape, np.nan, dtype) for _ in range(world)]


@pytest.mark.quick
@pytest.mark.parametrize("world", WORLDS if volume.is_full() else [3])
@pytest.mark.parametrize("algorithm", ["one_shot", "two_shot"])
def test_all_reduce(world, algorithm):
    """Sum arrays of a length that no block divides, twice, with other values the second time."""
    ranks = tlx_xdsl.SimulatedRanks(world)
    for seed in range(2):
        x = inputs(world, (3, 100), seed=seed)
        out = nans(world, (3, 100))
        assert all_reduce(x, ranks, out, algorithm=algorithm) is not None
        exact = sum(each.astype(np.float64) for each in x)
        for each in out:
            assert (each == fixed_order(x)).all()
            assert np.linalg.norm(each.astype(np.float64) - exact) <= 2.0**-8 * np.linalg.norm(exact)


@pytest.mark.parametrize("dtype", [np.float16, np.float32] if volume.is_full() else [np.float32])
def test_other_types_and_in_place(dtype):
    x = inputs(2, 5000, dtype)
    expected = fixed_order(x)
    assert all((each == expected).all() for each in all_reduce(x, tlx_xdsl.SimulatedRanks(2), x))


@pytest.mark.parametrize("world", WORLDS if volume.is_full() else [3])
def test_reduce_scatter_and_all_gather(world):
    ranks = tlx_xdsl.SimulatedRanks(world)
    x = inputs(world, (2 * world, 24))
    parts = reduce_scatter(x, ranks)
    assert [each.shape for each in parts] == [(2, 24)] * world
    expected = fixed_order(x)
    assert (np.concatenate(parts) == expected).all()
    for each in all_gather(parts, ranks):
        assert (each == expected).all()


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", ["all_reduce_one_shot", "all_reduce_two_shot", "reduce_scatter", "all_gather"])
def test_two_launches_in_a_row(name, world):
    """No rank waits on the host for the others between them; programs take several blocks each."""
    part, programs = 20, 2
    x = inputs(world, world * part)
    count = part if name == "all_gather" else world * part
    pads = symmetric(world, REPORT.value + FIRST.value + 2 * world * programs, np.int64)
    out = nans(world, {"reduce_scatter": part}.get(name, world * part))
    arguments = {"x": [each[:count] for each in x], "staging": symmetric(world, 2 * world * world * part), "pads": pads}
    if name == "all_reduce_two_shot":
        arguments["sums"] = symmetric(world, part)
    numbers = {"all_gather": {"part": part, "length": part}, "all_reduce_one_shot": {"n": count, "length": count}}
    arguments |= numbers.get(name, {"n": count, "part": part})
    getattr(kernels, name).interpret((programs,), **arguments, out=out, BLOCK=8, launches=2)
    expected = np.concatenate(arguments["x"]) if name == "all_gather" else fixed_order(x)
    for rank, each in enumerate(out):
        own = slice(rank * part, (rank + 1) * part) if name == "reduce_scatter" else slice(None)
        assert (each == expected[own]).all()
    for rank in range(world):
        assert list(pads[rank][REPORT.value :][: programs + 1]) == [2] * programs + [0]


@tlx_xdsl.jit
def sum_once(x, staging, pads, out, n, BROKEN: tl.constexpr, BLOCK: tl.constexpr):
    """A sum in one shot whose protocol may be broken."""
    world: tl.constexpr = tlx.world_size(pads)
    rank = tlx.rank(pads)
    number = launch_number(pads)
    count_program(pads, number)
    turn = 0 if BROKEN == "turn" else number % 2
    offsets = tl.arange(0, BLOCK)
    for i in tl.static_range(world):
        target = tlx.peer(staging, i) + (turn * world + rank) * BLOCK
        tl.store(target + offsets, tl.load(x + offsets))
    if BROKEN != "signal":
        # With a limit of waiting each rank sets a counter of its own.
        signal_others(in_turn(pads, rank), rank, number, 0, 1)
    for i in tl.static_range(world):
        if BROKEN == "order":
            tlx.wait_signal(counters(pads, rank), slot(i, world, 0), number - 1)
        elif BROKEN != "wait" and i != rank:
            tlx.wait_signal(counters(pads, rank), slot(i, world, 0), number)
    tl.debug_barrier()
    total = tl.zeros((BLOCK,), tl.float32)
    for i in tl.static_range(world):
        total += tl.load(tlx.peer(staging, rank) + (turn * world + i) * BLOCK + offsets)
    tl.store(out + offsets, total)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("", None),
        ("turn", "nothing orders it"),
        ("signal", "deadlock|waits"),
        ("wait", "nothing orders it"),
        ("order", "nothing orders it"),
    ],
)
def test_a_broken_protocol_is_found(broken, said):
    x = inputs(2, 16, np.float32)
    out = nans(2, 16, np.float32)
    arguments = (x, symmetric(2, 64, np.float32), symmetric(2, REPORT.value + FIRST.value + 8, np.int64), out, 16)
    if said is None:
        sum_once.interpret((1,), *arguments, BROKEN=broken, BLOCK=16, launches=2)
        assert all(np.allclose(each, sum(x)) for each in out)
        return
    with pytest.raises(tlx_xdsl.CompilationError) as raised:
        sum_once.interpret((1,), *arguments, BROKEN=broken, BLOCK=16, launches=2)
    assert re.search(said, str(raised.value))


def test_the_choice():
    assert [chosen(1 << size, 4) for size in (15, 18, 19, 20, 26)] == ["one_shot"] * 3 + ["two_shot"] * 2
    assert chosen(1 << 22, 2) == "one_shot"
    assert chosen(1 << 26, 2) == "two_shot"


@pytest.mark.parametrize(
    ("function", "x", "world", "said"),
    [
        (all_reduce, [np.zeros(4, np.float32)], 2, "a list with one array for each of 2 ranks"),
        (all_reduce, [np.zeros(4, np.int32)] * 2, 2, "expected elements of type bf16 or fp16 or fp32, got int32"),
        (all_reduce, [np.zeros((4, 4), np.float32).T[1:]] * 2, 2, "expected contiguous elements"),
        (all_reduce, [np.zeros(4, np.float32)], 1, "at least 2 ranks, got 1"),
        (reduce_scatter, [np.zeros(5, np.float32)] * 2, 2, "a multiple of 2 rows"),
    ],
)
def test_what_is_refused(function, x, world, said):
    with pytest.raises((TypeError, ValueError), match=said):
        function(x, tlx_xdsl.SimulatedRanks(world))
