"""Text of Meta's Triton runs as what it is read as; the oracle is numpy."""

import numpy as np
import pytest

import tlx_xdsl
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module

COPY = """
#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @copy(%from: !tt.tensordesc<64x64xf16, #s>, %to: !tt.tensordesc<64x64xf16, #s>) {
    %true = arith.constant true
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %buffer = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #s, #smem, mutable>
    %bars = ttg.local_alloc : () -> !ttg.memdesc<2xi64, #b, #smem, mutable>
    %first = ttg.memdesc_index %bars[%zero] : !ttg.memdesc<2xi64, #b, #smem, mutable> -> !ttg.memdesc<1xi64, #b, #smem, mutable>
    %full = ttg.memdesc_index %bars[%one] : !ttg.memdesc<2xi64, #b, #smem, mutable> -> !ttg.memdesc<1xi64, #b, #smem, mutable>
    ttng.init_barrier %first, 1 : !ttg.memdesc<1xi64, #b, #smem, mutable>
    ttng.init_barrier %full, 1 : !ttg.memdesc<1xi64, #b, #smem, mutable>
    ttng.barrier_expect %full, 8192, %true : !ttg.memdesc<1xi64, #b, #smem, mutable>
    ttng.async_tma_copy_global_to_local %from[%zero, %zero] %buffer, %full, %true : !tt.tensordesc<64x64xf16, #s>, !ttg.memdesc<1xi64, #b, #smem, mutable> -> !ttg.memdesc<64x64xf16, #s, #smem, mutable>
    ttng.wait_barrier %full, %zero : !ttg.memdesc<1xi64, #b, #smem, mutable>
    %token = ttng.async_tma_copy_local_to_global %to[%zero, %zero] %buffer : !tt.tensordesc<64x64xf16, #s>, !ttg.memdesc<64x64xf16, #s, #smem, mutable> -> !ttg.async.token
    ttng.async_tma_store_token_wait %token, %first[%true] : !ttg.async.token, !ttg.memdesc<1xi64, #b, #smem, mutable>
    ttng.wait_barrier %first, %zero : !ttg.memdesc<1xi64, #b, #smem, mutable>
    tt.return
  }
}
"""  # noqa: E501


@pytest.mark.quick
def test_a_copy_with_a_token_and_an_array_of_barriers():
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float16)
    out = np.zeros_like(x)
    described = [tlx_xdsl.TensorDescriptor(each, [64, 64], [64, 1], [64, 64]) for each in (x, out)]
    tlx_xdsl.interpret_text(COPY, 1, described)
    np.testing.assert_array_equal(out, x)


def test_what_is_read_is_printed_for_upstream():
    text = print_module(parse_module(COPY))
    assert "token" not in text
    assert "ub.poison" not in text
    assert print_module(parse_module(text)) == text
