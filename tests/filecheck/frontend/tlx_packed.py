"""Arithmetic on four 8-bit floats at once."""
# RUN: tlx compile %s:packed --emit ttir -o - | filecheck %s

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def packed(wide_ptr, fine_ptr, pairs_ptr):
    wide, fine = tl.load(wide_ptr + tl.arange(0, 512)), tl.load(fine_ptr + tl.arange(0, 512))
    pairs = tl.load(pairs_ptr + tl.arange(0, 256))
    # CHECK: ttng.packed_arith add %wide, %fine : (tensor<512xf8E5M2>, tensor<512xf8E4M3FN>) -> tensor<512xf8E4M3FN>
    x = tlx.packed_add4(wide, fine)
    # CHECK: ttng.packed_arith sub %pairs, %wide : (tensor<256xi8>, tensor<512xf8E5M2>) -> tensor<512xf8E5M2>
    x = tlx.packed_sub4(pairs, wide, tl.float8e5)
    # CHECK: ttng.packed_arith mul %fine, %wide : (tensor<512xf8E4M3FN>, tensor<512xf8E5M2>) -> tensor<512xf8E4M3FN>
    x = tlx.packed_mul4(fine, wide)
    # CHECK: ttng.packed_arith mul %pairs, %pairs : (tensor<256xi8>, tensor<256xi8>) -> tensor<512xf8E5M2>
    x = tlx.packed_mul4(pairs, pairs, dtype=tl.float8e5)
    # CHECK: ttng.packed_arith fma %wide, %pairs, %fine : (tensor<512xf8E5M2>, tensor<256xi8>, tensor<512xf8E4M3FN>) -> tensor<512xf8E4M3FN>
    x = tlx.packed_fma4(wide, pairs, fine)
    # The names of earlier versions.
    # CHECK: ttng.packed_arith add
    x = tlx.add4(fine, fine)
    # CHECK: ttng.packed_arith sub
    x = tlx.sub4(fine, fine)
    # CHECK: ttng.packed_arith mul
    x = tlx.mul4(fine, fine)
    # CHECK: ttng.packed_arith fma
    x = tlx.fma4(fine, fine, fine)


TLX_COMPILE = {
    "packed": {
        "signature": {"wide_ptr": "*fp8e5", "fine_ptr": "*fp8e4nv", "pairs_ptr": "*i8"},
        "target": "sm_103a",
    }
}
