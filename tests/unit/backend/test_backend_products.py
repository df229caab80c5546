"""Products of a compile."""

import re

import pytest
from backend_kernels import VECTOR_ADD, elementwise, module, needs_triton, tma_copy

from tests.versions import INSTALLED
from tlx_xdsl.backend import BackendOptions, compile_ttgir, start_worker
from tlx_xdsl.backend.options import default_fp_fusion

pytestmark = needs_triton

HOPPER = BackendOptions(target="sm_90a")


def test_a_compile_fills_every_field():
    result = compile_ttgir(VECTOR_ADD, HOPPER)
    assert "tt.load" in result.ttgir
    assert "define ptx_kernel void @add" in result.llir
    assert ".target sm_90a" in result.ptx
    assert result.cubin.startswith(b"\x7fELF")
    assert result.metadata.name == "add"
    assert result.metadata.num_warps == 4
    assert result.metadata.shared == 0
    assert result.metadata.tensordesc_meta == ()
    assert result.metadata.cluster is None
    assert result.resources.registers > 0
    assert result.resources.spill_store_bytes == 0
    assert list(result.times_ms) == ["parse", "passes", "llir", "ptx", "cubin"]
    assert all(milliseconds > 0 for milliseconds in result.times_ms.values())
    assert result.triton_version == INSTALLED
    assert result.warnings == ()
    assert "Used" in result.log


def test_a_warp_specialised_kernel_counts_the_warps_of_its_partitions():
    result = compile_ttgir(tma_copy(), HOPPER)
    assert result.metadata.name == "copy"
    # Four default warps, and one more that Triton rounds up to a warp group.
    assert result.metadata.num_warps == 8
    assert result.metadata.shared >= 64 * 64 * 2
    (descriptor,) = result.metadata.tensordesc_meta
    assert descriptor["block_size"] == [64, 64]
    assert "cp.async.bulk.tensor.2d" in result.ptx


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100a"])
def test_other_targets(target: str):
    options = BackendOptions(target=target)
    text = VECTOR_ADD.replace("cuda:90", f"cuda:{options.capability}")
    assert f".target {target}" in compile_ttgir(text, options, stages="ptx").ptx


def test_a_compile_stops_where_it_is_asked_to():
    ttgir = compile_ttgir(VECTOR_ADD, HOPPER, stages="ttgir")
    assert ttgir.ttgir
    assert not ttgir.llir
    assert ttgir.metadata.name == "add"
    llir = compile_ttgir(VECTOR_ADD, HOPPER, stages="llir")
    assert llir.llir
    assert not llir.ptx
    ptx = compile_ttgir(VECTOR_ADD, HOPPER, stages="ptx")
    assert ptx.ptx
    assert not ptx.cubin
    assert list(ptx.times_ms) == ["parse", "passes", "llir", "ptx"]


def test_with_and_without_a_worker_the_products_are_equal():
    there = compile_ttgir(tma_copy(), HOPPER)
    here = compile_ttgir(tma_copy(), HOPPER, isolation="none")
    for product in ("ttgir", "llir", "ptx", "cubin", "metadata", "resources", "warnings"):
        assert getattr(there, product) == getattr(here, product), product


@pytest.mark.parametrize("isolation", ["process", "none"])
def test_nothing_is_printed(isolation, capfd: pytest.CaptureFixture[str]):
    compile_ttgir(VECTOR_ADD, HOPPER, isolation=isolation)
    assert capfd.readouterr() == ("", "")


def test_the_user_s_lines_end_in_the_debug_information():
    ptx = compile_ttgir(VECTOR_ADD, HOPPER, stages="ptx").ptx
    assert re.search(r'\.file\s+1 .*"user.py"', ptx)
    assert re.search(r"\.loc\s+1 5 11\b", ptx), "the addition stands in user.py:5:11"


def test_what_has_no_location_is_named_after_the_source():
    text = re.sub(r' loc\("user.py":\d+:\d+\)', "", VECTOR_ADD)
    result = compile_ttgir(text, HOPPER, stages="ptx", source_name="generated/add.ttgir")
    assert re.search(r'\.file\s+1 .*"?generated"?.*add\.ttgir"', result.ptx)
    assert 'loc("generated/add.ttgir":' in result.ttgir


def test_maxnreg_reaches_ptxas():
    result = compile_ttgir(VECTOR_ADD, BackendOptions(maxnreg=32))
    assert re.search(r"\.maxnreg 32\b", result.ptx)
    assert result.resources.registers <= 32


def test_fp_fusion_is_a_choice():
    text = elementwise("""\
    %product = arith.mulf %vx, %vy : tensor<128xf32, #block>
    %sum = arith.addf %product, %vx : tensor<128xf32, #block>""")
    assert "fma.rn.f32" in compile_ttgir(text, HOPPER, stages="ptx").ptx
    apart = compile_ttgir(text, BackendOptions(enable_fp_fusion=False), stages="ptx")
    assert "fma.rn.f32" not in apart.ptx
    assert not apart.fp_fusion


@pytest.mark.parametrize(("value", "fuses"), [("0", False), ("off", False), ("1", True), ("On", True)])
def test_triton_s_variable_says_whether_fusion_is_the_default(monkeypatch, value, fuses):
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", value)
    assert default_fp_fusion("3.9.0") == fuses
    assert default_fp_fusion("3.10.0") == fuses
    text = elementwise("""\
    %product = arith.mulf %vx, %vy : tensor<128xf32, #block>
    %sum = arith.addf %product, %vx : tensor<128xf32, #block>""")
    result = compile_ttgir(text, HOPPER, stages="ptx")
    assert ("fma.rn.f32" in result.ptx, result.fp_fusion) == (fuses, fuses)
    # What was asked for comes before it.
    asked = compile_ttgir(text, BackendOptions(enable_fp_fusion=not fuses), stages="ptx")
    assert ("fma.rn.f32" in asked.ptx) != fuses


@pytest.mark.parametrize(
    ("version", "fuses"), [("3.6.0", True), ("3.9.0+git1", True), ("3.10.0", False), ("3.11", False), ("4.0", False)]
)
def test_the_default_of_fusion_is_that_of_the_version(monkeypatch, version, fuses):
    monkeypatch.delenv("TRITON_DEFAULT_FP_FUSION", raising=False)
    assert default_fp_fusion(version) == fuses


def test_a_cluster_that_the_binary_demands_is_reported():
    text = VECTOR_ADD.replace('"ttg.num-ctas" = 1', '"ttg.num-ctas" = 2')
    text = text.replace("order = [0]}>", "order = [0], CGALayout = [[1]]}>", 1).replace("128", "256")
    # What this kernel does not use is written for one CTA.
    text = re.sub(r"^(#(tile|rows|flat|swizzled|tmem)|!operand) [^>]*>\n", "", text, flags=re.MULTILINE)
    result = compile_ttgir(text, BackendOptions(num_ctas=2), stages="ptx")
    assert result.metadata.cluster == (2, 1, 1)
    assert result.metadata.num_ctas == 2


def test_the_worker_may_be_started_ahead():
    start_worker()
    assert compile_ttgir(VECTOR_ADD, HOPPER, stages="ttgir").ttgir


def test_a_warning_of_ptxas_points_at_the_user_s_line():
    """A wgmma whose result is used without a wait: ptxas adds one, and reports where."""
    add = "arith.addf %{0}, %one : tensor<64x64xf32, #mma>"
    dot = (
        "ttng.warp_group_dot %a, %a, %{0}, %yes {{inputPrecision = 0 : i32, isAsync = true}} : "
        "!operand * !operand -> tensor<64x64xf32, #mma>"
    )
    text = module(f"""\
  tt.func public @dot(%out: !tt.ptr<f32>) {{
    %yes = arith.constant true
    %one = arith.constant dense<1.0> : tensor<64x64xf32, #mma>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %a = ttg.local_alloc : () -> !operand
    %first = {dot.format("zero")} loc("user.py":3:9)
    %more = {add.format("first")} loc("user.py":4:9)
    %second = {dot.format("more")} loc("user.py":5:9)
    %sum = {add.format("second")} loc("user.py":6:9)
    %done = ttng.warp_group_dot_wait %sum {{pendings = 0 : i32}} : tensor<64x64xf32, #mma> loc("user.py":7:9)
    %p = tt.splat %out : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #mma>
    tt.store %p, %done : tensor<64x64x!tt.ptr<f32>, #mma>
    tt.return
  }} loc("user.py":1:1)""")
    mma = "versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]"
    result = compile_ttgir(text.replace("#smem =", f"#mma = #ttg.nvidia_mma<{{{mma}}}>\n#smem =", 1), HOPPER)
    assert result.warnings
    for warning in result.warnings:
        assert warning.text.startswith("C75")
        assert warning.location is not None
        assert warning.location.filename == "user.py"
        assert warning.location.line in (3, 4, 5, 6)
