"""Rules that our TTGIR must obey for Triton and ptxas to make good Hopper code of it, one in each test.

Other rules have their tests elsewhere: nothing touches a dot in flight (`tests/unit/analysis/test_dots_in_flight.py`),
a load that meets a dot has its layout (`test_access_layouts.py`), named barriers keep their numbers
(`tests/filecheck/nvidia`), examples keep their layouts in main loops (`tests/unit/tools/test_examples_compile.py`).
"""

# covers: tlx-chain-reductions

import re
from dataclasses import replace

import pytest

import tlx_xdsl.language as tl
from tests.unit.frontend.kernels import load
from tests.versions import INSTALLED
from tlx_xdsl.analysis.layout_costs import conversions
from tlx_xdsl.backend import BackendOptions, compile_ttgir
from tlx_xdsl.layouts.conversion_cost import ConversionKind
from tlx_xdsl.runtime.build import compile_kernel
from tlx_xdsl.runtime.driver.compilation import Specialization, compile_text
from tlx_xdsl.text.parser import parse_module

pytestmark = pytest.mark.quick

KERNEL = """
@tlx_xdsl.jit
def kernel(out, lse, n, scale, CARRIED: tl.constexpr):
    q = tlx.local_alloc((64, 64), tl.float16, 1)
    k = tlx.local_alloc((64, 64), tl.float16, 1)
    v = tlx.local_alloc((64, 64), tl.float16, 1)
    m = tl.full((64,), -1e6, tl.float32)
    total = tl.zeros((64,), tl.float32)
    acc = tl.zeros((64, 64), tl.float32)
    p = tl.zeros((64, 64), CARRIED)
    for i in range(n):
        scores = tlx.async_dot(q[0], tlx.local_trans(k[0]))
        acc = tlx.async_dot(p.to(tl.float16), v[0], acc)
        scores = tlx.async_dot_wait(1, scores)
        m_new = tl.maximum(m, tl.max(scores, 1) * scale)
        weights = tl.math.exp2(scores * scale - m_new[:, None])
        alpha = tl.math.exp2(m - m_new)
        total = total * alpha + tl.sum(weights, 1)
        m = m_new
        acc = tlx.async_dot_wait(0, acc)
        acc = acc * alpha[:, None]
        p = weights.to(CARRIED)
    rows, columns = tl.arange(0, 64), tl.arange(0, 64)
    tl.store(out + rows[:, None] * 64 + columns[None, :], acc + p.to(tl.float32))
    tl.store(lse + rows, m + total)
"""
VERSION = INSTALLED
SIGNATURE = {"out": "*fp32:16", "lse": "*fp32:16", "n": "i32", "scale": "fp32"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("rules")


@pytest.fixture(scope="module")
def compiled(folder):
    """The kernel with probabilities that go round the loop in 16 bits."""
    return compile_kernel(load(folder, KERNEL).kernel, replace(specialization("float16"), enable_fp_fusion=True))


def specialization(carried):
    return Specialization(SIGNATURE, {"CARRIED": getattr(tl, carried)})


@pytest.mark.backend
def test_default_layouts_end_in_those_of_the_dots(compiled):
    """Our text has the default layout wherever no dot is; the conversions that are left are changes of name.

    They are P's, and with some versions those of rows that were reduced one block of columns after another.
    """
    left = [each for each in conversions(parse_module(compiled.ttgir)) if each.loops]
    assert {each.cost.kind for each in left} == {ConversionKind.IN_THREAD}
    matrices = [each for each in left if len(each.op.src.type.get_shape()) == 2 and each.op.src.type.get_shape()[1] > 1]
    assert ["#ttg.dot_op" in str(each.op.result.type) for each in matrices] == [True]


@pytest.mark.backend
@pytest.mark.parametrize(("carried", "bits"), [("float16", 16), ("float32", 32)])
def test_what_goes_round_has_the_type_that_the_kernel_gives_it(folder, carried, bits):
    """Carry P in 16 bits: it takes half of the registers. We do not change what is written."""
    text = compile_text(load(folder, KERNEL).kernel.source, specialization(carried))
    (head,) = [line for line in text.ttgir.splitlines() if "scf.for" in line]
    # Of the two matrices that go round, the other one is the accumulator.
    assert len(re.findall(rf"tensor<64x64xf{bits},", head)) == (1 if bits == 16 else 2)


@pytest.mark.backend
def test_scale_and_maximum_become_one_instruction_for_each_element(folder, compiled):
    """64 x 64 scores in 128 threads: 32 multiply-adds and 32 exponentials in each."""
    assert len(re.findall(r"\bfma\.rn(?:\.ftz)?\.f32", compiled.ptx)) >= 32
    assert compiled.ptx.count("ex2.approx.ftz.f32") == 32 + 2
    text = compile_text(load(folder, KERNEL).kernel.source, specialization("float16"), triton_version=VERSION)
    apart = compile_ttgir(text.ttgir, BackendOptions(enable_fp_fusion=False), stages="ptx")
    assert len(re.findall(r"\bfma\.rn(?:\.ftz)?\.f32", apart.ptx)) < 32


@pytest.mark.backend
def test_a_transposed_buffer_and_a_first_product_cost_nothing(compiled):
    """K^T is another view of K, and scores that start from nothing need no registers of zeros."""
    in_loop = compiled.ttgir[compiled.ttgir.index("scf.for") : compiled.ttgir.index("scf.yield")]
    assert not re.search(r"ttg\.local_(?:load|store|alloc)", in_loop)
    assert len(re.findall(r"ttng\.warp_group_dot .*%false", in_loop)) == 1
    assert "ttg.memdesc_trans" in compiled.ttgir


@pytest.mark.backend
def test_ptxas_reports_serialised_products_at_the_line_of_the_user(compiled):
    """No wait for a barrier keeps instructions from moving between this kernel's two products in flight."""
    (warning,) = [warning for warning in compiled.warnings if "C75" in warning.text]
    assert "serialized" in warning.text
    assert warning.source_line.strip() == "scores = tlx.async_dot(q[0], tlx.local_trans(k[0]))"
    # As many groups are committed as there are products, all the same.
    assert compiled.ptx.count("wgmma.commit_group") == 2
