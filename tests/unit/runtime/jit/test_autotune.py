"""Autotuning where nothing can be launched: a driver that pretends to, and a benchmark with given results."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import types

import numpy as np
import pytest

pytest.importorskip("triton")

import triton
from triton import knobs
from triton.runtime.driver import driver

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.unit.runtime.clock.stand_in import StandIn
from tests.unit.runtime.jit.jit_kernels import FakeTensor, product
from tlx_xdsl.runtime.jit.stand_in_driver import assume_target
from tlx_xdsl.timing import predict as clock

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


def tuned(autotune, **options):
    bench_by_warps.runs = 0
    return autotune(configs=CONFIGS, key=[], do_bench=bench_by_warps, **options)(tlx_xdsl.jit(staged))


def test_what_can_not_fit_is_left_out_and_reported(launches, caplog):
    kernel = tuned(tlx_xdsl.autotune, processes=1)
    with caplog.at_level(logging.WARNING, "tlx_xdsl.autotune"):
        kernel[GRID](FakeTensor(16384))
    assert (kernel.best_config.kwargs, kernel.best_config.num_warps) == ({"BLOCK": 8192, "STAGES": 2}, 8)
    assert launches == [((4, 1, 1), 4), ((4, 1, 1), 8), ((2, 1, 1), 4), ((2, 1, 1), 8), ((2, 1, 1), 8)]
    assert [config.kwargs["STAGES"] for config in kernel.pruned] == [16, 16]
    (record,) = caplog.records
    lines = record.getMessage().splitlines()
    assert lines[0] == "staged: 2 of 6 configurations were left out, because they could never launch:"
    assert lines[1].startswith("  BLOCK: 4096, STAGES: 16, num_warps: 4")
    assert lines[1].endswith("'staged' needs 262,144 B of shared memory, sm_90a has 232,448")
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


# --- what is stored ---------------------------------------------------------------------------------------------------


def by_warps(call, quantiles):
    """Runs a candidate once; all take as long."""
    by_warps.runs += 1
    call()
    return [1.0, 0.9, 1.1]


def searched(kernel, **options):
    """Tune anew; how many configurations were measured, and the tuner."""
    by_warps.runs = 0
    options = {"configs": CONFIGS[:2], "key": ["n"], "do_bench": by_warps, "processes": 0} | options
    again = tlx_xdsl.autotune(**options)(kernel)
    again[(1,)](FakeTensor(4), 16)
    return by_warps.runs, again


@tlx_xdsl.jit
def store_n(out, n, BLOCK: tl.constexpr = 4, STAGES: tl.constexpr = 1):
    tl.store(out, n)


def test_what_was_found_is_stored_unless_it_is_turned_off(launches):
    assert searched(store_n)[0] == 2
    runs, kernel = searched(store_n)
    assert (runs, kernel.report.source) == (0, "stored")
    assert kernel.report.best.settings["num_warps"] == 4
    assert kernel.configs_timings == {CONFIGS[0]: (1.0, 0.9, 1.1), CONFIGS[1]: (1.0, 0.9, 1.1)}
    assert searched(store_n, cache_results=False)[0] == 2


def test_other_configurations_and_another_device_are_measured_anew(launches, monkeypatch):
    assert searched(store_n)[0] == 2
    assert searched(store_n, configs=CONFIGS[:3])[0] == 3
    monkeypatch.setattr("tlx_xdsl.runtime.jit.winners.device_name", lambda: "another GPU")
    assert searched(store_n)[0] == 2


def test_another_text_of_the_kernel_is_measured_anew(launches):
    @tlx_xdsl.jit
    def one(out, n, BLOCK: tl.constexpr = 4, STAGES: tl.constexpr = 1):
        tl.store(out, n)

    def other(out, n, BLOCK: tl.constexpr = 4, STAGES: tl.constexpr = 1):
        tl.store(out, n + 1)

    other.__name__ = other.__qualname__ = "one"
    assert [searched(one)[0], searched(one)[0], searched(tlx_xdsl.jit(other))[0]] == [2, 0, 2]


TIMES = '{{"milliseconds": [[{}, 2, 3], [4, 5, 6]]}}'


@pytest.mark.parametrize(
    "damaged",
    ['{"milliseconds": [[1, 2', '{"milliseconds": [[], []]}', '{"milliseconds": ' + "[" * 100_000]
    + [TIMES.format(wrong) for wrong in ("9" * 400, "NaN", "Infinity", "-1", '"1"', "true")],
    ids=["cut", "empty", "deep", "long", "nan", "infinity", "negative", "text", "boolean"],
)  # fmt: skip
def test_a_damaged_file_is_measured_anew(launches, tmp_path, damaged):
    assert searched(store_n)[0] == 2
    (file,) = tmp_path.rglob("*.winner.json")
    file.write_text(damaged)
    assert searched(store_n)[0] == 2
    assert searched(store_n)[0] == 0


def test_tritons_autotuner_finds_what_was_stored_for_both(launches):
    configs = [triton.Config({}, num_warps=warps) for warps in (4, 8)]
    assert searched(store_n, configs=configs, cache_results=True)[0] == 2
    by_warps.runs = 0
    stock = triton.autotune(configs=configs, key=["n"], do_bench=by_warps, cache_results=True)(store_n)
    stock[(1,)](FakeTensor(4), 16)
    assert by_warps.runs == 0


# --- what is checked --------------------------------------------------------------------------------------------------


class ArrayTensor(FakeTensor):
    """A tensor whose elements can be looked at, by the name that a descriptor's have."""

    def __init__(self, *shape):
        super().__init__(*shape)
        self.base = np.zeros(shape, np.float32)


@pytest.fixture
def wrong_with_8_warps(launches):
    """Launches that write 16, but 17 where there are 8 warps."""

    def launcher(src, metadata):
        def launch(*arguments):
            (tensor,) = (each for each in arguments if isinstance(each, ArrayTensor))
            tensor.base[:] = 16 + (metadata.num_warps == 8)

        return launch

    driver.active.launcher_cls = launcher


def test_what_computes_something_else_is_left_out(wrong_with_8_warps, caplog):
    configs = [tlx_xdsl.Config({}, num_warps=warps) for warps in (8, 4)]
    out = ArrayTensor(4)
    kernel = tlx_xdsl.autotune(
        configs=configs, key=[], do_bench=bench_by_warps, processes=0, reference=lambda at: {"out": np.full(4, at["n"])}
    )(store_n)
    with caplog.at_level(logging.WARNING, "tlx_xdsl.autotune"):
        kernel[(1,)](out, 16)
    assert kernel.best_config.num_warps == 4
    assert kernel.wrong == {
        configs[0]: "out differs from the reference by 6.2e-02 of its largest value, 0.0001 are allowed"
    }
    assert "1 of 2 configurations were left out, because they compute something else:" in caplog.text
    assert kernel.report.checked
    assert kernel.report.speeds[1].milliseconds is None


def test_a_search_without_a_right_configuration_is_an_error(wrong_with_8_warps):
    kernel = tlx_xdsl.autotune(
        configs=[tlx_xdsl.Config({}, num_warps=8), tlx_xdsl.Config({}, num_warps=8, num_stages=2)],
        key=[], do_bench=bench_by_warps, processes=0, reference=lambda at: {"out": np.full(4, at["n"])},
    )(store_n)  # fmt: skip
    with pytest.raises(tlx_xdsl.CompilationError, match="no configuration computes what the reference says"):
        kernel[(1,)](ArrayTensor(4), 16)


def test_what_a_configuration_does_not_write_is_no_result(launches):
    """The launches do nothing, and the result stands there already."""
    configs = [tlx_xdsl.Config({}, num_warps=warps) for warps in (8, 4)]
    kernel = tlx_xdsl.autotune(configs, [], do_bench=bench_by_warps, reference=lambda at: {"out": np.zeros(4)})(store_n)
    with pytest.raises(tlx_xdsl.CompilationError, match="no configuration computes"):
        kernel[(1,)](ArrayTensor(4), 16)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (lambda at: {"result": np.zeros(4)}, "the reference names 'result', the arrays among the arguments are out"),
        (lambda at: np.zeros(4), "expected arrays by the names of arguments, found ndarray"),
        (lambda at: {"out": np.zeros(5)}, r"the reference of 'out' has the shape \[5\], the array \[4\]"),
    ],
)
def test_a_reference_that_does_not_fit_says_what_was_expected(launches, reference, message):
    configs = [tlx_xdsl.Config({}, num_warps=warps) for warps in (8, 4)]
    kernel = tlx_xdsl.autotune(configs, [], do_bench=bench_by_warps, processes=0, reference=reference)(store_n)
    with pytest.raises((ValueError, TypeError), match=message):
        kernel[(1,)](ArrayTensor(4), 16)


# --- what the model leaves out ----------------------------------------------------------------------------------------


def product_tuner(**options):
    configs = [tlx_xdsl.Config({"BLOCK": block}) for block in (16, 64, 100, 128)]
    options = {"processes": 0, **options}
    return tlx_xdsl.autotune(configs, ["n"], do_bench=by_warps, cache_results=False, **options)(product)


SQUARE = lambda args: (args["n"] // args["BLOCK"],) * 2  # noqa: E731


def test_the_model_ranks_without_a_gpu_and_says_so():
    arrays = [np.zeros((4096, 4096), np.float16)] * 3
    report = product_tuner().rank(*arrays, 4096, grid=SQUARE)
    assert [each.settings["BLOCK"] for each in report.speeds] == [128, 64, 16, 100]
    assert report.speeds[-1].remark.startswith("tl.arange: the range 0 to 100")
    assert report.source == "estimated"
    assert "nothing was measured, for there is no GPU here" in report.table()


@pytest.mark.parametrize(("keep", "blocks"), [(1, [64]), (0.5, [16, 64])])
def test_only_the_first_ones_are_measured(launches, keep, blocks):
    """Tiles of 128 are too few to fill the GPU."""
    by_warps.runs = 0
    kernel = product_tuner(keep=keep)
    kernel[SQUARE](*[FakeTensor(512, 512)] * 3, 512)
    assert by_warps.runs == len(blocks)
    assert kernel.best_config.kwargs["BLOCK"] in blocks
    assert [config.kwargs["BLOCK"] for config in kernel.pruned] == [100]
    (left,) = [each for each in kernel.report.speeds if each.settings["BLOCK"] == 128]
    assert left.remark.startswith("not measured: the model expects ")


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory):
    return str(tmp_path_factory.mktemp("compiled"))


@pytest.fixture
def stand_in(launches, compiled_once, monkeypatch):
    """The clock's place is taken: tiles of 64 are fastest, and those of 128 take half as long again."""
    knobs.cache.dir = compiled_once
    found = StandIn(lambda asked: {8: 100.0, 32: 110.0, 4: 150.0}[asked["grid"][0]])
    monkeypatch.setattr(clock, "predict", found)
    return found


@pytest.mark.parametrize(("options", "blocks"), [({}, [16, 64]), ({"keep": 1}, [64]), ({"processes": 1}, [16, 64])])
def test_the_clock_says_what_is_measured(stand_in, options, blocks):
    by_warps.runs = 0
    kernel = product_tuner(prune=tlx_xdsl.clock, **options)
    kernel[SQUARE](*[FakeTensor(512, 512)] * 3, 512)
    assert by_warps.runs == len(blocks)
    assert kernel.best_config.kwargs["BLOCK"] in blocks
    assert [config.kwargs["BLOCK"] for config in kernel.pruned] == [100]
    (left,) = [each for each in kernel.report.speeds if each.settings["BLOCK"] == 128]
    assert left.remark.startswith("not measured: the model expects ")


def test_the_clock_ranks(stand_in):
    kernel = product_tuner(prune=tlx_xdsl.clock)
    ranked = kernel.rank(*[FakeTensor(512, 512)] * 3, 512, grid=SQUARE)
    assert [each.cycles for each in ranked.speeds] == [100.0, 110.0, 150.0, None]
    assert "predicted for sm_90a by the clock" in ranked.table()


def test_the_clock_is_a_model_of_triton_s(stand_in):
    kernel = product_tuner(prune_configs_by={"perf_model": tlx_xdsl.clock, "top_k": 1})
    kernel[SQUARE](*[FakeTensor(512, 512)] * 3, 512)
    assert kernel.best_config.kwargs["BLOCK"] == 64
    assert len(stand_in.asked) == 3
    with pytest.raises(TypeError, match=r"prune: expected tlx_xdsl\.clock, found 'clock'"):
        product_tuner(prune="clock")


def test_forked_processes_ask_the_driver_nothing(launches):
    """torch refuses every question about CUDA in a forked process, and a process that fails compiles nothing."""
    here = os.getpid()
    played = driver.active

    class OnlyHere:
        def __getattr__(self, name):
            if os.getpid() != here:
                raise RuntimeError("Cannot re-initialize CUDA in forked subprocess")
            return getattr(played, name)

    driver.set_active(OnlyHere())
    try:
        kernel = tlx_xdsl.autotune(CONFIGS[:2], [], do_bench=by_warps, processes=1, cache_results=False)(store_n)
        kernel[(1,)](FakeTensor(4), 16)
    finally:
        driver.set_active(played)
    # Of what processes have compiled their time is known.
    assert kernel.compile_seconds > 0


def test_a_process_that_finds_the_winner_loads_no_xdsl():
    """The import of xDSL takes a second."""
    code = "import sys, tlx_xdsl.runtime.jit.autotune; print([name for name in sys.modules if name.startswith('xdsl')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
