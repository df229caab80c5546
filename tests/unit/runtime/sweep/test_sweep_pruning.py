"""Pruning drops no configuration that could have fit, and what is measured early is what the binary needs."""

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sweep_kernels as kernels

from tests.unit.volume import is_full
from tests.versions import INSTALLED
from tlx_xdsl.backend import BackendError, BackendOptions, compile_ttgir
from tlx_xdsl.errors import OverBudgetError
from tlx_xdsl.runtime import Job, compile_many
from tlx_xdsl.runtime.driver.compilation import Specialization, compile_text
from tlx_xdsl.tools.launch_line.loading import load_kernel

pytestmark = pytest.mark.backend

EXAMPLES = Path(__file__).parents[4] / "examples"
COUNT = 150 if is_full() else 10


def random_job(seed: int) -> Job:
    """A kernel whose needs lie near to what its target has, on either side."""
    source = random.Random(seed)
    num_warps = source.choice((4, 8))
    match seed % 4:
        case 0:
            kernel, target = kernels.in_tensor_memory, "sm_100a"
            columns = source.choice((32, 64))
            constexprs = {"COLUMNS": columns, "ARRAYS": source.randint(256 // columns, 640 // columns)}
            return Job(kernel, Specialization({"x": "*fp32"}, constexprs, target, 4))
        case 1:
            kernel, target, constexprs = kernels.staged, source.choice(("sm_80", "sm_90a")), {}
        case _:
            kernel, target = kernels.captured, "sm_90a"
            constexprs = {"WARPS": source.choice((1, 4, 8, 16))}
    rows = source.choice((16, 32, 64))
    limit = {"sm_80": 163, "sm_90a": 227}[target] * 1024 // (rows * 256)
    # Of `staged`: all fits, each array does but not both of them, one alone does not.
    arrays = limit - 1 + seed // 4 % 3 if kernel is kernels.staged else source.randint(limit // 2, limit + 3)
    constexprs |= {"ROWS": rows, "ARRAYS": arrays}
    maxnreg = source.choice((None, None, 64, 128, 168, 200, 255)) if kernel is kernels.captured else None
    return Job(kernel, Specialization({"x": "*i32"}, constexprs, target, num_warps, maxnreg=maxnreg))


def test_what_is_pruned_can_t_be_launched():
    jobs = [random_job(seed) for seed in range(COUNT)]
    with ThreadPoolExecutor(2) as threads:
        pruned = compile_many(jobs, threads)
        whole = compile_many(jobs, threads, prune=False)
    kinds = {result.kind for result in pruned}
    assert {"fits", "pruned"} <= kinds <= {"fits", "spills", "pruned"}
    # We before stock Triton is asked, and it before LLVM begins.
    assert {isinstance(result.error, BackendError) for result in pruned.of("pruned")} == {True, False}
    for quick, slow in zip(pruned, whole, strict=True):
        # Without tasks the bound on the registers is ptxas's affair; too many threads no dialect allows.
        assert quick.is_launchable == slow.is_launchable, (quick, slow)
        if quick.is_launchable:
            assert quick.result.cubin == slow.result.cubin
            assert quick.metadata == slow.metadata


@pytest.mark.parametrize(
    "example", ["hopper_gemm_ws.py:matmul", *(["hopper_attention_ws.py:attention"] if is_full() else [])]
)
def test_what_is_measured_is_what_the_binary_needs(example, tmp_path):
    from tlx_xdsl.backend.stock_passes import stock_passes
    from tlx_xdsl.backend.triton_api import StockModule

    kernel, defaults = load_kernel(str(EXAMPLES / example))
    version = INSTALLED
    text = compile_text(kernel.source, Specialization(defaults.signature, defaults.constexprs), triton_version=version)
    path = tmp_path / "kernel.ttgir"
    path.write_text(text.ttgir)
    module = StockModule(path, BackendOptions())
    module.run_passes(stock_passes(90, text.ttgir))
    before = module.text()
    measured = module.measure(tmp_path / "copy.ttgir", version)
    assert module.text() == before
    metadata = compile_ttgir(text.ttgir, BackendOptions(), stages="llir").metadata
    assert measured == {name: getattr(metadata, name) for name in ("shared", "tmem_size", "num_warps")}


def test_what_stock_alone_finds_is_reported_before_llvm():
    """Two buffers that live at the same time are more than the target has, each of them is not."""
    specialization = Specialization({"x": "*i32"}, {"ROWS": 64, "ARRAYS": 14})
    text = compile_text(kernels.staged.source, specialization, triton_version=INSTALLED).ttgir
    with pytest.raises(OverBudgetError) as caught:
        compile_ttgir(text, BackendOptions())
    assert (caught.value.resource, caught.value.required, caught.value.limit) == ("shared memory", 245760, 232448)
    assert compile_ttgir(text, BackendOptions(check_resources=False)).metadata.shared == 245760
