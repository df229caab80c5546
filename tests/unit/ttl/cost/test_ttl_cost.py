"""Costs of a run: counts that follow from the kernel, and cycles that follow from published rates."""

import json

import numpy as np
import pytest

import tlx_xdsl.ttl.language as ttl
from tlx_xdsl.errors import InputError
from tlx_xdsl.timing.timeline import Timeline
from tlx_xdsl.tools.tlx import main
from tlx_xdsl.ttl.cost.rates import matrix_cycles
from tlx_xdsl.ttl.runtime import Prepared

TILE = 32 * 32 * 2
HALF = ttl.tensor((64, 96), dtype=ttl.bfloat16), ttl.tensor((96, 64), dtype=ttl.bfloat16), ttl.tensor((64, 64))


@ttl.kernel(grid=(2, 2))
def product(a: HALF[0], b: HALF[1], out: HALF[1]):
    a_cb = ttl.make_circular_buffer_like(a, shape=(1, 1))
    b_cb = ttl.make_circular_buffer_like(b, shape=(1, 1))
    out_cb = ttl.make_circular_buffer_like(out, shape=(1, 1))
    x, y = ttl.core(dims=2)

    @ttl.datamovement()
    def read():
        for k in range(3):
            with a_cb.reserve() as p, b_cb.reserve() as q:
                ttl.copy(a[y, k], p).wait()
                ttl.copy(b[k, x], q).wait()

    @ttl.compute()
    def compute():
        with out_cb.reserve() as o:
            for _ in range(3):
                with a_cb.wait() as p, b_cb.wait() as q:
                    o += p @ q

    @ttl.datamovement()
    def write():
        with out_cb.wait() as o:
            ttl.copy(o, out[y, x]).wait()


@pytest.fixture(scope="module")
def profile():
    import ml_dtypes

    arrays = [np.ones(shape, ml_dtypes.bfloat16) for shape in ((64, 96), (96, 64), (64, 64))]
    found = Prepared(product, arrays).profile(arrays)
    assert (arrays[2] == 96).all(), "it runs as it does without being observed"
    return found


def test_bytes_are_those_of_the_transfers(profile):
    seen = profile.observed
    assert seen.network == {(0, "read"): 4 * 6 * TILE, (1, "written"): 4 * TILE}
    assert sum(seen.network.values()) == profile.report.noc_bytes
    assert sum(seen.banks.values()) == profile.report.noc_bytes
    # Six pages of `a`, each of which two cores read, lie in the banks 0 to 5, and so do those of `b`.
    assert {bank: seen.banks[bank, "read"] for bank in range(12) if seen.banks[bank, "read"]} == dict.fromkeys(
        range(6), 4 * TILE
    )
    assert all(counts["read"] == 6 * TILE and counts["written"] == TILE for counts in seen.cores.values())


def test_cycles_are_those_of_the_matrix_engine(profile):
    seen = profile.observed
    assert seen.tiles["matrix", "matmul_tiles"] == 12
    assert seen.tiles["unpack", "matmul_tiles"] == 24
    assert seen.cycles["matmul_tiles"] == 12 * 64
    assert matrix_cycles("matmul_tiles", "LoFi") == 16
    assert matrix_cycles("add_tiles", "HiFi4") == 8
    assert matrix_cycles("transpose_wh_tile", "HiFi4") is None
    assert "not published" in profile.text()
    assert "It was never compared with a card." in profile.text()


def test_a_core_cannot_be_faster_than_its_reads(profile):
    """Three products of a core follow its six tiles, and the result is written after them."""
    assert profile.end == pytest.approx(6 * TILE / 22 + 64 + TILE / 21)


def test_the_timeline_has_a_row_for_each_thread(profile):
    timeline = Timeline.from_json(profile.timeline.to_json())
    rows = {(track.group, track.name) for track in timeline.tracks}
    for group in ("core (0, 0)", "core (1, 1)"):
        assert {name for each, name in rows if each == group} >= {"compute", "read", "read NOC_0", "write NOC_1"}
    assert any("a[y, k]" in place.text for place in timeline.places)
    by_row: dict[int, float] = {}
    for span in sorted(timeline.spans, key=lambda span: span.start):
        assert span.start >= by_row.get(span.track, 0.0), "a row does one thing at a time"
        by_row[span.track] = span.end


def test_the_command_line(capsys, tmp_path):
    file = tmp_path / "timeline.json"
    assert main(["ttl", "run", f"{__file__}:product", "--profile", "--timeline", str(file)]) == 0
    said = capsys.readouterr().out
    assert "product on wormhole: " in said
    assert "ideal_performance.md" in said
    assert json.loads(file.read_text())["kernel"] == "product"
    arrays = [np.ones((32, 32), np.float32)]
    prepared = Prepared(nothing, arrays, "tensors")
    with pytest.raises(InputError, match="a profile is of a run on the machine 'ttkernel'"):
        prepared.profile(arrays)


@ttl.kernel()
def nothing(a):
    @ttl.datamovement()
    def idle():
        pass
