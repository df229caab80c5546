"""Autotuning where nothing can be launched: a driver that pretends to, and a benchmark with given results."""

from __future__ import annotations

import logging
import types

import pytest

pytest.importorskip("triton")

import triton
from triton import knobs
from triton.runtime.driver import driver

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.unit.runtime.jit_kernels import FakeTensor
from tlx_xdsl.runtime.jit.stand_in_driver import assume_target

pytestmark = pytest.mark.backend


@pytest.fixture
def launches(tmp_path):
    """The launches that a driver without a GPU was asked for: the grid and the number of warps of each."""
    seen = []

    def launcher(src, metadata):
        return lambda x, y, z, *rest: seen.append(((x, y, z), metadata.num_warps))

    with knobs.cache.scope(), assume_target("sm_90a"):
        knobs.cache.dir = str(tmp_path)
        pretender = driver.active
        pretender.launcher_cls = launcher
        pretender.utils = types.SimpleNamespace(
            # No module, for it would be unloaded some time.
            load_binary=lambda name, kernel, shared, device: (None, 2, 32, 0, 1024),
            get_device_properties=lambda device: {"max_shared_mem": 227 * 1024},
        )
        yield seen


def staged(out, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    """Writes to `STAGES` buffers of `BLOCK` * 4 bytes, and stores the first."""
    buffers = tlx.local_alloc((BLOCK,), tl.float32, STAGES)
    for stage in tl.static_range(STAGES):
        tlx.local_store(buffers[stage], tl.zeros((BLOCK,), tl.float32))
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tlx.local_load(buffers[0]).to(tl.float16))


CONFIGS = [
    triton.Config({"BLOCK": block, "STAGES": stages}, num_warps=warps)
    for block, stages in ((4096, 2), (4096, 16), (8192, 2))
    for warps in (4, 8)
]
"""A third of them want 262,144 bytes of shared memory."""

GRID = lambda args: (triton.cdiv(16384, args["BLOCK"]),)  # noqa: E731


def bench_by_warps(call, quantiles):
    """Runs a candidate once; says that the later one is the faster one."""
    bench_by_warps.runs += 1
    call()
    return [1.0 / bench_by_warps.runs] * 3


def tuned(autotune):
    bench_by_warps.runs = 0
    return autotune(configs=CONFIGS, key=[], do_bench=bench_by_warps)(tlx_xdsl.jit(staged))


def test_what_can_not_fit_is_left_out_and_reported(launches, caplog):
    kernel = tuned(tlx_xdsl.autotune)
    with caplog.at_level(logging.WARNING, "tlx_xdsl.autotune"):
        kernel[GRID](FakeTensor(16384))
    assert (kernel.best_config.kwargs, kernel.best_config.num_warps) == ({"BLOCK": 8192, "STAGES": 2}, 8)
    assert launches == [((4, 1, 1), 4), ((4, 1, 1), 8), ((2, 1, 1), 4), ((2, 1, 1), 8), ((2, 1, 1), 8)]
    assert [config.kwargs["STAGES"] for config in kernel.pruned] == [16, 16]
    (record,) = caplog.records
    lines = record.getMessage().splitlines()
    assert lines[0] == "staged: 2 of 6 configurations were left out, because they could never launch:"
    assert lines[1].startswith("  BLOCK: 4096, STAGES: 16, num_warps: 4")
    assert lines[1].endswith("'staged' needs 262,144 B of shared memory, sm_90 has 232,448")
    # The second launch finds the best one, and has nothing to report.
    kernel[GRID](FakeTensor(16384))
    assert len(launches) == 6
    assert len(caplog.records) == 1


def test_tritons_own_autotuner_skips_them_too(launches):
    kernel = tuned(triton.autotune)
    kernel[GRID](FakeTensor(16384))
    assert kernel.best_config.kwargs == {"BLOCK": 8192, "STAGES": 2}
    assert "262,144 B of shared memory" in str(kernel.fn.refusal)


def test_warmup_compiles_what_can_be_launched(launches):
    kernel = tuned(tlx_xdsl.autotune)
    compiled = kernel.warmup(FakeTensor(16384), grid=(4,))
    assert [each.metadata.num_warps for each in compiled] == [4, 8, 4, 8]
    assert len(kernel.pruned) == 2
    assert launches == []


def test_a_kernel_of_which_nothing_fits_says_why(launches):
    configs = [config for config in CONFIGS if config.kwargs["STAGES"] == 16]
    kernel = tlx_xdsl.autotune(configs=configs, key=[], do_bench=bench_by_warps)(tlx_xdsl.jit(staged))
    with pytest.raises(tlx_xdsl.CompilationError, match="262,144 B of shared memory"):
        kernel[GRID](FakeTensor(16384))
    assert len(kernel.pruned) == 2


def test_configs_with_clusters_reach_the_launch(launches):
    configs = [tlx_xdsl.Config({}, ctas_per_cga=(extent, 1, 1)) for extent in (1, 2)]

    @tlx_xdsl.autotune(configs=configs, key=[], do_bench=bench_by_warps, cache_results=True)
    @tlx_xdsl.jit
    def rank(out):
        tl.store(out + tl.program_id(0), tlx.cluster_cta_rank())

    bench_by_warps.runs = 0
    kernel = rank[(4,)](FakeTensor(4))
    assert kernel.metadata.cluster == [2, 1, 1]


def test_timings_are_read_back_from_the_disk(launches):
    configs = [tlx_xdsl.Config({}, num_warps=warps) for warps in (4, 8)]

    @tlx_xdsl.jit
    def store_number(out, n):
        tl.store(out, n)

    def launch_anew():
        bench_by_warps.runs = 0
        tuned = tlx_xdsl.autotune(configs=configs, key=["n"], do_bench=bench_by_warps, cache_results=True)(store_number)
        tuned[(1,)](FakeTensor(4), 16)
        return bench_by_warps.runs, tuned.best_config.num_warps

    assert [launch_anew(), launch_anew()] == [(2, 8), (0, 8)]
