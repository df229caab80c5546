"""Counts of a profile, against the costs that `layouts` derives without addresses, and by hand."""

import numpy as np
import pytest

from tests.unit import volume
from tests.unit.layouts.stock_lowering import lowered, through_buffer
from tests.unit.layouts.test_costs_against_stock import ACCESSES, ACCUMULATOR, COLUMNS, DEFAULT, ROWS, TILE
from tests.unit.ptx.compiled import matmul, matrices
from tests.unit.ptx.snippets import kernel, line_of
from tests.unit.ptx.test_ptx_threads import SHARED
from tlx_xdsl.layouts.encodings import SwizzledSharedLayout
from tlx_xdsl.layouts.global_access import global_access
from tlx_xdsl.layouts.matrix_access import best_access
from tlx_xdsl.layouts.shared_access import wavefronts_of
from tlx_xdsl.ptx import run_ptx
from tlx_xdsl.ptx.traffic import LineTraffic, sectors, wavefronts
from tlx_xdsl.runtime.simulate.interpret import interpret

WARPS = 4
DTYPES = {8: np.uint8, 16: np.float16, 32: np.float32}


def total(result, kind):
    found = LineTraffic()
    for each in result.traffic.values():
        found.add(each)
    cost = getattr(found, kind)
    return cost.requests, cost.taken, cost.least


def traffic_of(ptx, shared, bits, target="sm_90a"):
    """Run a kernel that copies a tile."""
    x = np.random.default_rng(0).integers(0, 100, TILE).astype(DTYPES[bits])
    y = np.zeros_like(x)
    result = run_ptx(ptx, 1, [x, y], num_warps=WARPS, shared=shared, profile=True)
    assert (x == y).all()
    return result


@pytest.mark.backend
def test_wavefronts_are_those_of_layouts():
    cases = ACCESSES if volume.is_full() else ACCESSES[::5]
    for case, (ptx, shared) in zip(cases, lowered([through_buffer(*case) for case in cases]), strict=True):
        costs = [best_access(*case, store=store) for store in (True, False)]
        found = traffic_of(ptx, shared, case[3])
        assert total(found, "shared") == tuple(
            WARPS * sum(getattr(cost, name) for cost in costs) for name in ("instructions", "wavefronts", "minimum")
        ), case


@pytest.mark.backend
def test_sectors_are_those_of_layouts():
    cases = [(layout, bits) for bits in (8, 16, 32) for layout in (ACCUMULATOR, ROWS, COLUMNS, DEFAULT)]
    modules = [through_buffer(layout, SwizzledSharedLayout(1, 1, 1, (1, 0)), TILE, bits) for layout, bits in cases]
    for (layout, bits), (ptx, shared) in zip(cases, lowered(modules), strict=True):
        # Rows of 64 elements follow each other: one run.
        cost = global_access(layout, TILE, bits, contiguity=TILE[1], alignment=16)
        requests, taken, least = total(traffic_of(ptx, shared, bits), "sectors")
        assert requests == 2 * WARPS * cost.instructions
        assert taken == requests * cost.sectors, (layout, bits)
        assert least == requests * -(-cost.useful_bytes // 32)


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_wavefronts_of_any_addresses(size):
    rng = np.random.default_rng(size)
    for _ in range(20):
        places = rng.integers(0, 64, 32) * size
        lanes = np.arange(32) // max(1, min(32, 128 // max(size, 4)))
        assert wavefronts(lanes, places, size)[0] == wavefronts_of(places.tolist(), size)


def test_sectors_of_scattered_threads():
    """Two warps: one reads every eighth element of 4 bytes, the other one element."""
    addresses = np.concatenate([np.arange(32) * 32, np.full(32, 4096)])
    assert sectors(np.repeat([0, 1], 32), addresses, 4) == (2, 33, 5)


STRIDED = """
    shl.b32 %r1, %r0, 7;
    mov.u32 %r2, tile;
    add.u32 %r3, %r2, %r1;
    st.shared.u32 [%r3], %r0;
    bar.warp.sync -1;
    ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r2];
    mad.wide.u32 %rd1, %r0, 64, %rd0;
    st.global.u32 [%rd1], %r4;
"""


def test_lines_of_ptx_where_there_are_no_others():
    text = kernel(STRIDED, shared=".shared .align 16 .b8 tile[4096];")
    out = np.zeros(512, np.uint32)
    found = run_ptx(text, 1, [out], profile=True, filename="strided.ptx", uninitialized="allow").traffic
    assert found[("strided.ptx", line_of(text, "st.shared"))].shared.taken == 32
    assert found[("strided.ptx", line_of(text, "ld.shared"))].shared.taken == 4
    assert found[("strided.ptx", line_of(text, "st.global"))].sectors.taken == 32


def test_waits_and_arrivals():
    """The second warp comes late to a barrier at which the first one waits."""
    body = """
    setp.lt.u32 %p1, %r0, 32;
    @%p1 bra wait;
    mov.u32 %r5, 100;
late:
    sub.u32 %r5, %r5, 1;
    setp.ne.u32 %p2, %r5, 0;
    @%p2 bra late;
wait:
    bar.sync 0;
    """
    text = kernel(body, "", threads=64, shared=SHARED)
    result = run_ptx(text, 1, [], profile=True, filename="late.ptx")
    assert result.traffic[("late.ptx", line_of(text, "bar.sync"))].waits in (1, 2)
    # What waits runs once.
    assert result.counts["bar.sync"] == 2
    assert not run_ptx(text, 1, []).traffic


@pytest.mark.backend
@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
def test_operations_of_tensor_cores(target):
    a, b = matrices()
    c = np.zeros((128, 64), np.float32)
    options = {"stage": "ptx", "target": target, "profile": True, "mends": True}
    result = interpret(matmul, (2, 1), a, b, c, 128, 64, 160, BLOCK=64, DEPTH=32, options=options)
    assert sum(each.products for each in result.ptx.traffic.values()) == 2 * 128 * 64 * 160
