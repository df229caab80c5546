"""Probes in what stock Triton makes of examples: equal results, the right waits, and no spills."""

import importlib.util
import sys
from functools import cache

import numpy as np
import pytest

from tests.unit import volume
from tests.unit.ptx.snippets import ROOT
from tlx_xdsl.backend.assemble import assembled
from tlx_xdsl.ptx import run_ptx
from tlx_xdsl.ptx.memory.tensor_map import TensorMap
from tlx_xdsl.runtime.driver.specialization import Specialization
from tlx_xdsl.runtime.launch.parameters import read_tensor_map_format
from tlx_xdsl.runtime.measure.measured_timeline import own_assembler
from tlx_xdsl.runtime.simulate import ptx_stage
from tlx_xdsl.runtime.simulate.options import Options
from tlx_xdsl.timing.measured import decode, timeline_of
from tlx_xdsl.timing.probes import instrument

pytestmark = pytest.mark.backend

STAGES = 3
M, N, K = 128, 512, 320


@cache
def compiled(name: str, kernel: str, target: str):
    """Compile an example with stock Triton, with its default constants."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    table = module.TLX_COMPILE[kernel]
    wanted = Specialization(table["signature"], table["constexprs"], target, table["num_warps"])
    return ptx_stage.compiled(getattr(module, kernel).source, wanted, Options(target=target))


@cache
def gemm():
    """The result of a GEMM with probes and without them, and what its warps have recorded of two CTAs."""
    result = compiled("hopper_gemm_ws", "matmul", "sm_90a")
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((M, K), (K, N)))
    probes = instrument(result.ptx, ctas=(0, 1), records=128)
    memory, found = np.zeros(probes.size, np.uint8), []
    for text, scratch in ((result.ptx, ()), (probes.text, (None, memory))):
        c = np.zeros((M, N), np.float16)
        maps = [
            TensorMap(
                array, form.box, form.swizzle, array.shape, tuple(each // 2 for each in array.strides), element_type=6
            )
            for array, meta in zip((a, b, c), result.metadata.tensordesc_meta, strict=True)
            for form in [read_tensor_map_format(meta, "map")]
        ]
        run_ptx(text, 2, [*maps, M, N, K, *scratch], shared=result.metadata.shared)
        found.append(c)
    return *found, probes, memory.view(np.uint32)


def test_the_result_is_the_same():
    plain, probed, *_ = gemm()
    assert plain.any()
    assert (plain == probed).all()


def test_each_warp_of_both_ctas_has_its_waits():
    """Warps 0 to 3 are the producer's, 4 to 11 those of two consumers: K is 5 blocks."""
    *_, probes, words = gemm()
    warps = decode(probes, words)
    assert [(each.cta, each.warp) for each in warps] == [(cta, warp) for cta in (0, 1) for warp in range(12)]
    assert all(each.end is not None for each in warps)
    for each in warps:
        loops = [visit for visit in each.visits if visit.site.kind == "mbarrier"]
        # A consumer waits once more before its epilogue.
        assert len(loops) == (5 if each.warp < 4 else 6)
        products = [visit for visit in each.visits if visit.site.kind == "product"]
        assert len(products) == (0 if each.warp < 4 else 5)


def test_one_thread_starts_a_copy():
    *_, probes, words = gemm()
    loads = {
        each.warp: sum(visit.site.kind == "copy" and visit.mbarrier >= 0 for visit in each.visits)
        for each in decode(probes, words)
    }
    # The halves of A come by warp 0, each quarter of B by another warp.
    assert loads == {0: 15, 1: 5, 2: 5, 3: 5} | dict.fromkeys(range(4, 12), 0)


def test_barriers_have_the_names_of_the_kernel():
    *_, probes, words = gemm()
    found = timeline_of(probes, words, chip="H200", tasks=[(0, 4, "producer"), (4, 8, "consumers")])
    consumer = next(place for place, track in enumerate(found.tracks) if track.name == "warp 4")
    assert found.tracks[consumer].group == "CTA 0 consumers"
    waits = [span for span in found.spans if span.track == consumer and " phase " in span.name]
    names = [f"wait full[{each % STAGES}] phase {each // STAGES}" for each in range(5)]
    assert [span.name for span in waits] == [*names, "wait ring_is_dead phase 0"]
    lines = (ROOT / "examples" / "hopper_gemm_ws.py").read_text().splitlines()
    place = found.places[waits[0].place]
    assert "barrier_wait(full[stage]" in lines[place.line - 1]
    assert place.text == lines[place.line - 1].strip()
    assert waits[0].cause.startswith("TMA load of line ")


@pytest.mark.parametrize(
    ("name", "kernel", "target"),
    [("hopper_gemm_ws", "matmul", "sm_90a"), ("blackwell_gemm_ws", "matmul", "sm_100a")][: 1 + volume.is_full()],
)
def test_ptxas_spills_nothing_for_them(name, kernel, target):
    """The kernel's registers are those of the plain kernel, or up to four more."""
    result = compiled(name, kernel, target)
    probes = instrument(result.ptx)
    assert probes.sites
    assert not probes.skipped
    tool = own_assembler(target, result.triton_version)
    before, after = (
        assembled(text, tool, target, triton_version=result.triton_version)[1] for text in (result.ptx, probes.text)
    )
    assert (after.spill_store_bytes, after.spill_load_bytes) == (before.spill_store_bytes, before.spill_load_bytes)
    assert after.registers <= before.registers + 4
