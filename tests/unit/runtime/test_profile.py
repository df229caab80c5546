"""`kernel.profile` where there is no GPU, its figures where there is one, and the estimate that both have."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tests.unit.runtime.jit.jit_kernels import product
from tlx_xdsl.addresses.work import Work
from tlx_xdsl.backend.limits import Occupancy
from tlx_xdsl.runtime import profile as profile_module
from tlx_xdsl.runtime.measure.profile_report import estimated
from tlx_xdsl.targets import target_named

H200 = target_named("sm_90a")


def profiled(**options):
    n = 256
    arrays = [np.zeros((n, n), np.float16)] * 3
    return product.profile(lambda at: (at["n"] // at["BLOCK"],) * 2, *arrays, n, BLOCK=64, **options)


@pytest.mark.backend
def test_without_a_gpu_it_is_an_estimate_of_the_binary():
    found = profiled(bytes=3 * 2 * 256 * 256, num_warps=8)
    assert (found.source, found.device, found.programs) == ("estimated", "sm_90a", 16)
    assert found.flops == 2 * 256**3
    assert found.work.read_bytes == 16 * 8 * 2 * 64 * 32 * 2
    assert found.metadata.num_warps == 8
    assert found.resources.registers > 0
    assert found.median == found.estimate.milliseconds
    assert "estimated for H200 SXM, not measured" in str(found)
    assert "GB/s" in str(found)
    assert found._repr_html_().startswith("<table>")


def test_without_triton_there_is_no_binary(monkeypatch):
    monkeypatch.setattr(profile_module, "installed_triton_version", lambda: None)
    found = profiled(target="sm_100a", flops=1e9)
    assert (found.resources, found.occupancy, found.flops) == (None, None, 1e9)
    assert "B200" in str(found)
    assert "none: stock Triton is not installed" in str(found)


def test_arguments_that_do_not_fit_are_refused():
    with pytest.raises(TypeError, match="has no parameter 'blocks'"):
        profiled(blocks=3)
    with pytest.raises(ValueError, match="unknown target 'sm_12'"):
        profiled(target="sm_12")


class Tensor(np.ndarray):
    """An array that says it is on a GPU."""

    is_cuda = True
    device = SimpleNamespace(index=None)


def test_with_tensors_of_a_gpu_launches_are_timed(monkeypatch):
    """The GPU's part is played."""
    from tlx_xdsl.runtime.driver.specialization import Specialization
    from tlx_xdsl.runtime.launch import cuda_driver

    types = {**dict.fromkeys("abc", "*fp16"), "n": "i32"}
    facts = SimpleNamespace(
        name="product", shared=1024, num_warps=4, num_ctas=1, tmem_size=0, tensordesc_meta=(), global_scratch_size=0,
        global_scratch_align=1, profile_scratch_size=0, profile_scratch_align=1, cluster=None, registers=40,
        spill_store_bytes=0, spill_load_bytes=16,
    )  # fmt: skip
    compiled = SimpleNamespace(metadata=facts, specialization=Specialization(types, {"BLOCK": 64}))
    asked = []

    def bind(self, grid, *args, **named):
        asked.append((grid, named))
        return SimpleNamespace(kernel=compiled)

    monkeypatch.setattr(type(product), "bind", bind)
    monkeypatch.setattr(profile_module, "timed_launches", lambda launch, seconds: (1.0, 2.0, 3.0, 4.0, 5.0))
    driver = SimpleNamespace(device_name=lambda ordinal: f"GPU {ordinal}")
    monkeypatch.setattr(cuda_driver, "default_driver", lambda: driver)
    arrays = [np.zeros((256, 256), np.float16).view(Tensor)] * 3
    found = product.profile((4, 4), *arrays, 256, BLOCK=64, num_warps=4, bytes=3e6)
    assert asked == [((4, 4, 1), {"BLOCK": 64, "num_warps": 4})]
    assert (found.source, found.device, found.median) == ("measured", "GPU 0", 3.0)
    assert found.spread == pytest.approx((4.2 - 1.8) / 3)
    assert found.gigabytes == pytest.approx(1.0)
    assert found.tflops == pytest.approx(2 * 256**3 / 3e-3 * 1e-12)
    lines = str(found)
    assert "3 ms, median of 5 launches; 20 to 80 % lie 80.0% apart" in lines
    assert "40 registers, 16 B spilled, 1,024 B of shared memory, 4 warps" in lines


class TestEstimate:
    def test_a_full_gpu_runs_at_its_peak(self):
        work = Work(flops=989 * 10**9)
        occupancy = Occupancy(1, "threads", 64, 64)
        found = estimated(work, 132, occupancy, H200, 4)
        assert (found.waves, found.bound) == (1, "tensor cores")
        assert found.milliseconds == pytest.approx(1.003)

    def test_one_program_more_costs_a_wave(self):
        occupancy = Occupancy(2, "threads", 64, 64)
        one, two = (estimated(Work(flops=10**12), programs, occupancy, H200, 4) for programs in (264, 265))
        assert (one.waves, two.waves) == (1, 2)
        assert two.milliseconds > 1.9 * one.milliseconds

    def test_what_is_moved_may_take_longer(self):
        found = estimated(Work(flops=1, read_bytes=10**10), 132, None, H200, 4)
        assert found.bound == "memory"

    def test_accumulators_that_do_not_fit_the_registers_spill(self):
        fits, spills = (
            estimated(Work(flops=10**12, accumulator=128 * 256), 132, None, H200, warps).milliseconds
            for warps in (8, 4)
        )
        assert 6 < spills / fits < 8
