"""Addresses of buffers for PTX: the formula is that of the layouts, and buffers do not share their memory."""

import re

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.versions import INSTALLED
from tlx_xdsl.layouts.address import shared_addresses
from tlx_xdsl.layouts.encodings import NvmmaSharedLayout, PaddedSharedLayout, SwizzledSharedLayout
from tlx_xdsl.layouts.offset_terms import offset_of, offset_terms

pytestmark = pytest.mark.quick

SIZES = st.integers(0, 6).map(lambda power: 1 << power)


@given(st.data())
def test_terms_are_the_layout(data):
    shape = (data.draw(SIZES), data.draw(SIZES))
    bits = data.draw(st.sampled_from([8, 16, 32, 64]))
    if data.draw(st.booleans()) and shape[0] >= 8 and shape[1] * bits >= 8 * 128 and bits < 64:
        layout = NvmmaSharedLayout(data.draw(st.sampled_from([32, 64, 128])), False, bits, False)
    else:
        powers = st.integers(0, 3).map(lambda power: 1 << power)
        order = data.draw(st.sampled_from([(0, 1), (1, 0)]))
        layout = SwizzledSharedLayout(data.draw(powers), data.draw(powers), data.draw(powers), order)
    terms = offset_terms(layout, shape, bits)
    expected = shared_addresses(layout, shape, bits)
    for index in np.ndindex(*shape):
        assert offset_of(terms, index) == expected[index]


def test_few_terms_for_the_swizzle_of_tma():
    # Row and column as they are (one of them in two boxes of 64 columns), and the rows' bits among the columns'.
    terms = offset_terms(NvmmaSharedLayout(128, False, 16, False), (64, 128), 16)
    assert len(terms) == 4


@pytest.mark.parametrize(
    ("layout", "bits", "message"),
    [
        (PaddedSharedLayout((8,), (4,), ((1,), (2,), (4,), (8,)), ()), 32, "padded"),
        (SwizzledSharedLayout(1, 1, 1, (0,)), 4, "4 bits"),
    ],
)
def test_no_linear_address(layout, bits, message):
    with pytest.raises(ValueError, match=message):
        offset_terms(layout, (16,), bits)


TWO_BUFFERS = """
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90",
                           "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @two(%i: i32) {
    %a = ttg.local_alloc : () -> !ttg.memdesc<64xf32, #s, #smem, mutable>
    %x = builtin.unrealized_conversion_cast %a : !ttg.memdesc<64xf32, #s, #smem, mutable>
      to !llvm.struct<(!llvm.ptr<3>, i32)>
    %p = llvm.extractvalue %x[0] : !llvm.struct<(!llvm.ptr<3>, i32)>
    %m = llvm.ptrtoint %p : !llvm.ptr<3> to i32
    nvvm.inline_ptx "// first $0" ro(%m : i32)
    %b = ttg.local_alloc : () -> !ttg.memdesc<64xf32, #s, #smem, mutable>
    %y = builtin.unrealized_conversion_cast %b : !ttg.memdesc<64xf32, #s, #smem, mutable>
      to !llvm.struct<(!llvm.ptr<3>, i32)>
    %q = llvm.extractvalue %y[0] : !llvm.struct<(!llvm.ptr<3>, i32)>
    %n = llvm.ptrtoint %q : !llvm.ptr<3> to i32
    nvvm.inline_ptx "// second $0" ro(%n : i32)
    tt.return
  }
}
"""


def _shared_bytes(keep):
    from xdsl.passes import PassPipeline

    from tlx_xdsl.backend import BackendOptions, compile_ttgir
    from tlx_xdsl.dialects.registry import make_context
    from tlx_xdsl.text.parser import parse_module
    from tlx_xdsl.text.printer import print_module
    from tlx_xdsl.text.profiles import profile_for
    from tlx_xdsl.transforms.nvidia.buffer_lifetimes import ExtendBufferLifetimesPass

    module = parse_module(TWO_BUFFERS)
    if keep:
        PassPipeline((ExtendBufferLifetimesPass(),)).apply(make_context(), module)
    text = print_module(module, profile=profile_for(INSTALLED))
    result = compile_ttgir(text, BackendOptions("sm_90a"), stages="ptx")
    registers = [re.search(rf"// {name} (%r\d+)", result.ptx)[1] for name in ("first", "second")]
    return result.metadata.shared, registers[0] != registers[1]


@pytest.mark.backend
def test_buffers_seen_through_casts_do_not_share_their_memory():
    assert _shared_bytes(keep=True) == (512, True)


@pytest.mark.backend
def test_without_the_pass_they_would():
    assert _shared_bytes(keep=False) == (256, False)
