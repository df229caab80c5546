"""Cluster kernels after the whole pipeline: the same numbers, and device code from stock Triton."""

# covers: tlx-lower-cluster-barriers, tlx-lower-remote-memory, tlx-lower-multicast-loads, tlx-lower-pair-products

import re

import numpy as np
import pytest

import tlx_xdsl
from tests.gallery.synchronisation.cluster_runs import CASES
from tests.gallery.synchronisation.lowered_clusters import HOPPER, PAIRS, specialization
from tests.unit.volume import is_full
from tests.versions import INSTALLED
from tests.zoo.clusters import kept
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.interpreter.ops import control
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.runtime.driver.compilation import compile_text
from tlx_xdsl.runtime.simulate.interpret import interpret_text
from tlx_xdsl.text.profiles import parse_version

SEEDS = range(3) if is_full() else range(1)
SCHEDULES = POLICIES if is_full() else ("adversarial",)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", HOPPER)
def test_lowered_kernel_gives_the_reference_without_warnings(name, seed, schedule):
    result = CASES[name]().run(stage="ttgir", schedule=schedule, seed=seed, jobs=1)
    assert list(result.warnings) == []


@pytest.mark.parametrize(
    ("name", "setting", "value"), [("square", "SYNC", False), ("ring-copy", "DROP", "ending barrier")]
)
def test_the_compiler_has_the_cluster_wait_at_its_start_and_end(name, setting, value):
    case = CASES[name]()
    case.constexprs[setting] = value
    for stage in ("frontend", "aliased", "ttgir"):
        assert list(case.run(stage=stage, schedule="adversarial", jobs=1).warnings) == []


@pytest.mark.backend
def test_threads_meet_around_a_store_to_the_own_memory():
    """The layouts of a store and a load decide which thread stores an element, and which one loads it."""
    x, out = np.arange(1024, dtype=np.float32), np.zeros(2048, np.float32)
    tlx_xdsl.interpret(kept, 2, x, out, cluster=(2, 1, 1), target="sm_90a", stage="ptx")
    assert (out.reshape(2, 1024) == x).all()


TASKS = """
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90",
                   "ttg.threads-per-warp" = 32 : i32, "ttg.cluster-dim-x" = 2 : i32,
                   "ttg.cluster-dim-y" = 1 : i32, "ttg.cluster-dim-z" = 1 : i32} {
  tt.func public @k() ATTRIBUTES {
    ttg.warp_specialize()
    default { ttg.warp_yield }
    partition0() num_warps(4) { ttg.warp_return } : () -> ()
    tt.return
  }
}
"""


@pytest.mark.parametrize(("attributes", "waits"), [("", 2), ("attributes {nvvm.cluster_dim = array<i32: 2, 1, 1>}", 0)])
def test_after_tasks_the_cluster_waits_before_its_barriers_are_operations_only(attributes, waits, monkeypatch):
    waited = []

    def sync(task, op):
        waited.append(op)
        yield from ()

    monkeypatch.setattr(control, "cluster_sync", sync)
    assert interpret_text(TASKS.replace("ATTRIBUTES", attributes), 2, (), jobs=1).clusters == 1
    assert len(waited) == waits


def test_the_text_for_triton_says_the_cluster():
    case = CASES["ring-async"]()
    text = compile_text(case.kernel.source, specialization(case), triton_version="3.6").ttgir
    result = interpret_text(text, case.grid, case.arguments, schedule="adversarial", jobs=1)
    assert result.clusters == 2
    for found, expected in case.results():
        assert (found == expected).all()


@pytest.mark.parametrize(
    ("name", "drop", "message"),
    [
        ("ring-store", "room", "deadlock"),
        ("multicast", "bytes", "more arrive on 'full"),
        ("multicast", "wrong rank", "nothing orders|deadlock"),
        ("multicast", "mask", "deadlock"),
        ("layer-norm", "wait", "is read before it is written|nothing orders"),
        ("layer-norm", "expect", "that are not expected|deadlock"),
    ],
)
def test_mistakes_are_found_after_the_pipeline_too(name, drop, message):
    case = CASES[name]()
    case.constexprs["DROP"] = drop
    with pytest.raises(CompilationError, match=message) as caught:
        case.run(stage="ttgir", schedule="adversarial", jobs=1)
    assert caught.value.location is not None
    assert caught.value.location.filename.endswith(".py")


def device_code(name, target=None):
    from tlx_xdsl.backend import BackendOptions, compile_ttgir

    wanted = specialization(CASES[name](), target)
    text = compile_text(CASES[name]().kernel.source, wanted, triton_version=INSTALLED)
    result = compile_ttgir(text.ttgir, BackendOptions(wanted.target, wanted.num_warps), source_name=name)
    assert result.metadata.cluster == wanted.cluster
    assert result.resources.spill_store_bytes == result.resources.spill_load_bytes == 0
    return result


@pytest.mark.backend
@pytest.mark.parametrize("name", HOPPER)
def test_triton_compiles_cluster_kernels_for_hopper(name):
    ptx = device_code(name).ptx
    assert "\t.local" not in ptx
    found = set(re.findall(r"multicast::cluster|st\.async|mapa|cp\.async\.bulk\.shared::cluster\.shared::cta", ptx))
    assert found == {
        "multicast": {"multicast::cluster", "mapa"},
        "square": {"multicast::cluster", "mapa"},
        "layer": {"mapa", "st.async"},
        "hand": {"mapa"} | ({"multicast::cluster"} if "total" in name else set()),
        "ring": {"mapa"} | ({"st.async"} if "async" in name else set())
        | ({"cp.async.bulk.shared::cluster.shared::cta"} if "copy" in name else set()),
    }[name.split("-")[0]]  # fmt: skip


@pytest.mark.backend
@pytest.mark.parametrize("name", ["ring-store", "ring-async", "ring-copy", "layer-norm"])
def test_triton_compiles_cluster_kernels_for_blackwell(name):
    assert ".target sm_100a" in device_code(name, "sm_100a").ptx


@pytest.mark.backend
def test_elements_side_by_side_are_stored_at_once():
    # 16 rows of 64 f16 over 128 threads: the default layout has one element per thread, the asynchronous one pairs.
    stores = re.findall(r"st\.async\S*complete_tx::bytes(\S*) ", device_code("ring-async").ptx)
    assert set(stores) == {".b32"}
    stores = re.findall(r"st\.async\S*complete_tx::bytes(\S*) ", device_code("layer-norm").ptx)
    assert set(stores) == {".v4.b32"}


@pytest.mark.backend
def test_all_warps_meet_at_the_barrier_of_the_cluster():
    ptx = device_code("multicast").ptx
    # At the start and at the end by the default warps; LLVM may make one of what the other warps do.
    arrivals = re.findall(r"barrier\.cluster\.arrive(\.relaxed)?\.aligned", ptx)
    assert len(arrivals) == ptx.count("barrier.cluster.wait.aligned") >= 3
    # The fence of the mbarriers has released all that there is at the start.
    assert {"", ".relaxed"} == set(arrivals)


# Products of pairs of CTAs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", PAIRS)
def test_numbers_of_pairs(name, seed, schedule):
    result = CASES[name]().run(stage="ttgir", schedule=schedule, seed=seed, jobs=1)
    assert list(result.warnings) == []


@pytest.mark.parametrize("drop", ["full", "empty", "acc_full", "commit"])
def test_mistakes_with_pairs_are_found_after_the_pipeline_too(drop):
    case = CASES["pair"]()
    case.constexprs["DROP"] = drop
    with pytest.raises(CompilationError, match=r"pair_gemm\.py:\d+:\d+: error"):
        case.run(stage="ttgir", schedule="adversarial", jobs=1)


@pytest.mark.parametrize("version", ["3.6", "3.7"])
def test_pairs_are_refused_where_triton_has_no_memory_for_them(version):
    case = CASES["pair"]()
    with pytest.raises(CompilationError, match=r"pair_gemm\.py:\d+:\d+: error: .* 3.8 is the first version") as caught:
        compile_text(case.kernel.source, specialization(case), triton_version=version)
    assert "async_dot" in str(caught.value)


@pytest.mark.backend
@pytest.mark.parametrize("name", PAIRS)
def test_device_code_of_pairs(name):

    if parse_version(INSTALLED) < (3, 8):
        pytest.skip("no memory for pairs")
    ptx = device_code(name).ptx
    assert "cta_group::1" not in ptx
    for instruction in ("alloc", "dealloc", "mma", "commit"):
        assert f"tcgen05.{instruction}.cta_group::2" in ptx
