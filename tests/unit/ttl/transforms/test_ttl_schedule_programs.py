"""Passes on the loops of random kernels: each run gives what it gave before, and comes to an end."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.unit.ttl.transforms.ttl_affine_programs import TILES, Program
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.ttl.interpreter import run
from tlx_xdsl.ttl.transforms.affine.affine_data_copy_generate import AffineDataCopyGeneratePass
from tlx_xdsl.ttl.transforms.affine.affine_dependence_analysis import AffineDependenceAnalysisPass
from tlx_xdsl.ttl.transforms.affine.affine_loop_fusion import AffineLoopFusionPass
from tlx_xdsl.ttl.transforms.schedule_pipeline import SchedulePipelinePass

PIPELINES = {
    "fusion": [AffineLoopFusionPass()],
    "data copy": [AffineDataCopyGeneratePass()],
    "schedule": [SchedulePipelinePass()],
    "schedule 9": [SchedulePipelinePass(9)],
    "all": [
        AffineLoopFusionPass(),
        AffineDataCopyGeneratePass(),
        AffineDependenceAnalysisPass(),
        SchedulePipelinePass(4),
    ],
}
SCHEDULES = [("round-robin", 0), ("random", 1)]


def arrays() -> list[np.ndarray]:
    """Tiles of one number each, which are all different."""
    made = []
    for number in range(4):
        tiles = np.arange(TILES * TILES, dtype=np.float32).reshape(TILES, TILES) * 3 + number * 1000
        made.append(np.repeat(np.repeat(tiles, 32, axis=0), 32, axis=1))
    return made


def results(module, schedule: str, seed: int, checks: bool) -> list[np.ndarray]:
    given = arrays()
    run(module, given, schedule=schedule, seed=seed, checks=checks)
    return given


def baseline(text: str) -> tuple[list[np.ndarray], bool] | None:
    """Run a kernel; return the results, and whether it passes the checks of unwritten and overwritten tiles.

    None if it may stop, or if its result follows from the order of its threads.
    """
    module = parse_module(text, filename="kernel.mlir")
    for checks in (True, False):
        try:
            found = [results(module, *each, checks) for each in SCHEDULES]
        except (Fault, CompilationError):
            continue
        same = all(np.array_equal(one, other) for each in found[1:] for one, other in zip(found[0], each, strict=True))
        return (found[0], checks) if same else None
    return None


def check(seed: int, counts: Counter[str]) -> None:
    text = Program(seed).text()
    found = baseline(text)
    if found is None:
        counts["not deterministic"] += 1
        return
    expected, checks = found
    counts["programs"] += 1
    for name, passes in PIPELINES.items():
        module = parse_module(text, filename="kernel.mlir")
        before = str(module)
        for each in passes:
            each.run(module)
        module.verify()
        if str(module) == before:
            continue
        counts[name] += 1
        for schedule in SCHEDULES:
            for found, wanted in zip(results(module, *schedule, checks), expected, strict=True):
                np.testing.assert_array_equal(found, wanted, err_msg=f"seed {seed}, {name}, {schedule}")


def test_random_kernels_keep_their_results():
    counts: Counter[str] = Counter()
    # The last ones are not in lockstep: the reader must push each block as soon as it can.
    for seed in (*range(6), 18, 98):
        check(seed, counts)
    print(dict(counts))
    assert counts["programs"] >= 6
    assert min(counts[name] for name in PIPELINES if name != "fusion") >= 1


COPY = """
!tile = !ttcore.tile<32x32, f32>
!cb = !ttl.cb<[1, 1], !tile, 4>
!tensor = tensor<256x288xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>
!acc = !ttl.tensor_accessor<!tensor>
!view = tensor<1x1x!tile>
#first = affine_map<(d0) -> (d0 * 2)>
#end = affine_map<(d0)[s0] -> (d0 * 3 - s0 * 2)>
ttl.kernel @k(%a: !tensor, %b: !tensor) attributes {grid = #ttcore.grid<4x2>} {
  %cb = ttl.create_cb shape=[1, 1], element_type=!tile, buffer_factor=4 : !cb
  %from = ttl.tensor_accessor %a : !tensor -> !acc
  %to = ttl.tensor_accessor %b : !tensor -> !acc
  %x, %y = ttl.core(dims = 2) : index, index
  %id = ttl.get_shard_id() : index
  ttl.datamovement_thread @read {
    affine.for %i = #first(%y) to #end(%x)[%y] step 2 {
      %v = ttl.cb_reserve %cb : !cb -> !view
      %t = ttl.copy %from[%id, %i], %v : !acc, !view -> !ttl.transfer_handle<read>
      ttl.wait %t
      ttl.cb_push %cb
    }
    ttl.thread_return
  }
  ttl.datamovement_thread @write {
    affine.for %i = #first(%y) to #end(%x)[%y] step 2 {
      %v = ttl.cb_wait %cb : !cb -> !view
      %t = ttl.copy %v, %to[%id, %i] : !view, !acc -> !ttl.transfer_handle<write>
      ttl.wait %t
      ttl.cb_pop %cb
    }
    ttl.thread_return
  }
  ttl.kernel_return
}
"""


@pytest.mark.parametrize("depth", [None, 4])
def test_bounds_that_follow_from_the_core(depth):
    """Each core has another number of iterations, some have none, and some less than that."""
    matrix = np.random.default_rng(0).random((256, 288), dtype=np.float32)
    outputs = []
    for passes in ([], [SchedulePipelinePass(depth)]):
        module = parse_module(COPY, filename="kernel.mlir")
        for each in passes:
            each.run(module)
        assert ("blocks = " in str(module)) is bool(passes)
        given = [matrix.copy(), np.zeros_like(matrix)]
        run(module, given)
        outputs.append(given[1])
    assert outputs[0].any()
    np.testing.assert_array_equal(*outputs)
