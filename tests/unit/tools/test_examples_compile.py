"""Every Hopper example goes from its Python source to a cubin, without spills."""

from pathlib import Path

import pytest

from tlx_xdsl.backend import BackendOptions, compile_ttgir, installed_triton_version
from tlx_xdsl.runtime.compilation import Specialization, compile_text
from tlx_xdsl.tools.loading import load_kernel

EXAMPLES = Path(__file__).parents[3] / "examples"

KERNELS = [
    "hopper_gemm_pipelined.py:matmul",
    "hopper_gemm_persistent_cooperative.py:matmul",
    "hopper_gemm_persistent_pingpong.py:matmul",
    "hopper_attention_ws.py:attention",
    "hopper_attention_pipelined.py:attention",
    "hopper_attention_pingpong.py:attention",
    "hopper_gemm_ws.py:matmul",
]


@pytest.mark.backend
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_example_compiles_without_spills(kernel):
    loaded, defaults = load_kernel(str(EXAMPLES / kernel))
    warps = defaults.options.get("num_warps", 4)
    wanted = Specialization(defaults.signature, defaults.constexprs, num_warps=warps)
    text = compile_text(loaded.source, wanted, triton_version=installed_triton_version())
    result = compile_ttgir(text.ttgir, BackendOptions(num_warps=warps))
    assert result.cubin
    assert result.resources is not None
    assert (result.resources.spill_store_bytes, result.resources.spill_load_bytes) == (0, 0)
    assert "wgmma.mma_async" in result.ptx
    # ptxas C7510 and its kin: wgmma that had to be serialised.
    assert not [warning for warning in result.warnings if "C75" in str(warning)]
