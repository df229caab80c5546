"""Tensor descriptors that a kernel makes in global memory."""

# covers: ttng.tensormap

import numpy as np
import pytest

from tests.unit.interpreter.small_texts import pointers2, run
from tlx_xdsl.interpreter.faults import Fault

DESC = "!tt.tensordesc<8x32xf32, #tma>"
BAR, TILE = "!ttg.memdesc<1xi64, #s, #smem, mutable>", "!ttg.memdesc<8x32xf32, #tma, #smem, mutable>"
CREATE = """
    %c8 = arith.constant 8 : i32
    %c16 = arith.constant 16 : i32
    %one = arith.constant 1 : i32
    %zero = arith.constant 0 : i32
    %true = arith.constant true
    %stride = arith.constant 256 : i64
    %rows = arith.constant 12 : i32
    %columns = arith.constant 60 : i32
    %p = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32} : !tt.ptr<i8>
    ttng.tensormap_create %p, %x, [%c16, %c8], [%columns, %rows], [%stride], [%one, %one]
      {elem_type = 7 : i32, fill_mode = 0 : i32, interleave_layout = 0 : i32, swizzle_mode = 2 : i32}
      : (!tt.ptr<i8>, !tt.ptr<f32>, i32, i32, i32, i32, i64, i32, i32) -> ()
"""
FENCE = "    ttng.tensormap_fenceproxy_acquire %p : !tt.ptr<i8>\n"
LOAD = pointers2("out", "f32", 8, 32, "os") + f"""
    %d = ttng.reinterpret_tensor_descriptor %p : !tt.ptr<i8> to {DESC}
    %buf = ttg.local_alloc : () -> {TILE}
    %bar = ttg.local_alloc : () -> {BAR}
    ttng.init_barrier %bar, 1 : {BAR}
    ttng.barrier_expect %bar, 1024, %true : {BAR}
    ttng.async_tma_copy_global_to_local %d[%c8, %c16] %buf, %bar, %true : {DESC}, {BAR} -> {TILE}
    ttng.wait_barrier %bar, %zero : {BAR}
    ttng.inval_barrier %bar : {BAR}
    %r = ttg.local_load %buf : {TILE} -> tensor<8x32xf32, #b2>
    tt.store %os, %r : tensor<8x32x!tt.ptr<f32>, #b2>"""  # fmt: skip
POINTERS = "%x: !tt.ptr<f32>, %out: !tt.ptr<f32>"


def test_a_descriptor_made_on_the_device_is_read_by_tma() -> None:
    x = np.random.default_rng(5).standard_normal((12, 64)).astype(np.float32)
    out = np.full((8, 32), np.nan, np.float32)
    run(POINTERS, CREATE + FENCE + LOAD, [x, out], grid=(3,))
    expected = np.zeros((8, 32), np.float32)
    expected[:4] = x[8:, 16:48]
    np.testing.assert_array_equal(out, expected)


def test_a_descriptor_without_a_fence_is_a_fault() -> None:
    x, out = np.zeros((12, 64), np.float32), np.zeros((8, 32), np.float32)
    with pytest.raises(Fault, match="without a fence after what has written it"):
        run(POINTERS, CREATE + LOAD, [x, out])


def test_memory_that_holds_no_descriptor_is_a_fault() -> None:
    x, out = np.zeros((12, 64), np.float32), np.zeros((8, 32), np.float32)
    constants = CREATE.partition("    ttng.tensormap_create")[0]
    with pytest.raises(Fault, match="it was not created"):
        run(POINTERS, constants + LOAD, [x, out])


def test_a_descriptor_with_other_boxes_is_a_fault() -> None:
    x, out = np.zeros((12, 64), np.float32), np.zeros((8, 32), np.float32)
    wrong = CREATE.replace("[%c16, %c8]", "[%columns, %c8]")
    with pytest.raises(Fault, match=r"boxes of \[8, 60\] elements, expected parts of \[8, 32\]"):
        run(POINTERS, wrong + FENCE + LOAD, [x, out])
