"""Constants of the clock that are said to be measured are those of the record."""

import json
from dataclasses import dataclass

import pytest

from benchmarks.clock import constants
from benchmarks.clock.constants import DERIVED, Record, compared, far, marks, read_record
from tlx_xdsl.timing.chips import H200
from tlx_xdsl.timing.instructions import PipeRates

pytestmark = pytest.mark.quick


@dataclass(frozen=True)
class Made:
    """Constants as those of the clock are written."""

    l2_latency: float = 300.0
    """Of a load. Measured: 282 with
    the instructions."""
    tma_dram_latency: float = 900.0
    """Of a load from DRAM. Guide; measured."""
    shared_latency: float = 29.0
    """Of a load. Assumed; what is measured is less."""
    shape: int = 3


@pytest.mark.parametrize("held", [H200, PipeRates()], ids=["chip", "pipes"])
def test_constants_that_are_said_to_be_measured_are_near_the_record(held):
    assert sorted(marks(type(held)) - DERIVED.keys()) == []
    assert far(held, read_record()) == []


def test_the_chip_has_measured_constants():
    assert len(marks(type(H200))) > 20


def test_a_constant_that_is_far_from_the_record_is_found():
    record = read_record()
    assert marks(Made) == {"l2_latency", "tma_dram_latency"}
    assert far(Made(), record) == []
    assert far(Made(l2_latency=350.0), record) == ["l2_latency"]
    assert far(Made(l2_latency=250.0, shared_latency=9.0), record) == ["l2_latency"]


def test_a_constant_with_bounds_is_compared_with_the_nearer_one():
    record = read_record()
    least, most = DERIVED["tma_dram_latency"].bounds(record)
    for value, off in (((least + most) / 2, 0), (least * 0.95, -0.05), (most * 1.25, 0.25)):
        found = {each.name: each.off for each in compared(Made(tma_dram_latency=value), record)}
        assert found["tma_dram_latency"] == pytest.approx(off)
    assert far(Made(tma_dram_latency=most * 1.25), record) == ["tma_dram_latency"]


def test_what_is_compared_has_its_name_and_its_mark():
    found = compared(Made(), read_record())
    assert [(each.name, each.is_marked) for each in found] == [
        ("l2_latency", True),
        ("tma_dram_latency", True),
        ("shared_latency", False),
    ]


def test_the_record_says_where_it_comes_from():
    document = json.loads(constants.RECORD.read_text(encoding="utf-8"))
    assert document["card"] == "NVIDIA H200"
    assert document["errors"] == {}
    assert document["doubted"].keys() <= document["results"].keys()
    assert all(1.9e9 < each < 2.0e9 for each in document["hertz"])


def test_every_constant_follows_from_the_record():
    record = read_record()
    found = {name: each.value(record) for name, each in DERIVED.items()}
    assert all(value > 0 for value in found.values())
    assert found["product_column_cycles"] == pytest.approx(0.5, rel=0.01)
    # 64 by 16 halves of A in wavefronts of 128 bytes, and a fourth of one for each column of B.
    assert found["product_shared_cycles"] == pytest.approx(16, rel=0.05)
    assert found["product_shared_column_cycles"] == pytest.approx(0.25, rel=0.05)
    assert found["shared_bytes_per_cycle"] == pytest.approx(128, rel=0.01)
    assert found["l2_latency"] < found["dram_latency"]


@pytest.mark.parametrize("element", ["f16", "bf16", "tf32", "e4m3"])
@pytest.mark.parametrize("n", [8, 16, 32, 64, 96, 128, 192, 256])
def test_products_take_the_time_of_their_columns_or_of_their_operands_in_shared_memory(element, n):
    assert read_record().wgmma(n, element) == pytest.approx(max(n / 2, 16 + n / 4), rel=0.02)


def test_derived_values_follow_a_record_by_hand():
    turns = {f"tma tensor | box 64x{rows}, 1 in flight, 1 SMs, L2": 300 + rows for rows in (8, 128)}
    issues = {f"tma tensor | box 64x{rows}, 6 in flight, 1 SMs, L2": 100.0 for rows in (8, 16, 32)}
    record = Record({"results": turns | issues, "hertz": [1e9, 3e9, 2e9]})
    assert DERIVED["tma_latency"].value(record) == pytest.approx(200)
    assert record.hertz == 2e9
