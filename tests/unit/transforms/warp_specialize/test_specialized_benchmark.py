"""The benchmark of specialised kernels without a GPU: its candidates, its dry run, its table."""

import json

import pytest

from benchmarks.warp_specialize import candidates, compiled, speed, tables
from benchmarks.warp_specialize.arrays import UntouchedArrays
from tests.gallery.plain.families import FAMILIES
from tests.unit.volume import is_full


def test_candidates_have_keys_of_their_own():
    """A binary is found again by its key: by types and constants, not by arrays."""
    family = FAMILIES["matmul"]
    shape, other = family.large[0], family.shapes[3]
    keys = [compiled.job_of(each, each.problem(UntouchedArrays())).key for each in candidates.ours(family, shape)]
    again = [compiled.job_of(each, each.problem(UntouchedArrays())).key for each in candidates.ours(family, shape)]
    assert keys == again
    # The rules' choice of the family's own blocks is both a candidate and the default.
    assert len(set(keys)) == len(keys) - 1
    unaligned = candidates.by_rule(family, other)
    assert compiled.job_of(unaligned, unaligned.problem(UntouchedArrays())).key not in keys


@pytest.mark.parametrize("name", list(FAMILIES))
def test_stock_text_asks_for_specialization(name, tmp_path):
    text = candidates.warp_specialized_file(FAMILIES[name], tmp_path).read_text()
    assert "warp_specialize=True" in text
    assert "import triton.language as tl" in text


@pytest.mark.skipif(not is_full(), reason="takes ten seconds: at full volume")
def test_dry_run(tmp_path):
    record = speed.Record(tmp_path / "matmul_descriptors.json")
    speed.run_family(FAMILIES["matmul_descriptors"], speed.Dry(tmp_path, 3), record, "", 1)
    read = json.loads((tmp_path / "matmul_descriptors.json").read_text())
    assert read["finished"]
    assert set(read["cases"]) == {speed.named(shape) for shape in FAMILIES["matmul_descriptors"].shapes[:2]}
    assert "over stock 1.000" in tables.table(read)


def test_table_compares_the_best_of_each_kind():
    case = {
        "operations": 2e12, "errors": {speed.STOCK: {"a": "wrong: c", "b": "wrong: c"}},
        "best": {speed.STOCK: "x", speed.OURS: "y", speed.HAND: "z"},
        "cool": {"times": {speed.STOCK: [4.0, 4.0], speed.OURS: [3.0, 3.2, 3.1], speed.HAND: [2.9]}},
    }  # fmt: skip
    text = tables.table({"family": "gated", "cases": {"s": case}, "skipped": {}, "finished": True, "running": None})
    assert "over stock 1.290, of hand 0.935" in text
    assert "2 Triton: wrong: c" in text
