"""A loop that stock's passes can't divide among warps is named, with the number of warps that do."""

import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.versions import NEWEST, only_on
from tlx_xdsl.backend import BackendError
from tlx_xdsl.runtime.build import compile_source
from tlx_xdsl.runtime.driver.specialization import Specialization

pytestmark = pytest.mark.backend


@tlx_xdsl.jit
def product(a_desc, b_desc, c, K):
    acc = tl.zeros((128, 32), tl.int32)
    for k in tl.range(0, K, 64, warp_specialize=True):  # here
        acc = tl.dot(a_desc.load([0, k]), b_desc.load([k, 0]), acc, out_dtype=tl.int32)
    tl.store(c + tl.arange(0, 128)[:, None] * 32 + tl.arange(0, 32)[None, :], acc)


SIGNATURE = {"a_desc": "tensordesc<i8[128, 64]>", "b_desc": "tensordesc<i8[64, 32]>", "c": "*i32:16", "K": "i32:16"}


@only_on(NEWEST, "a pass that fails over products of 128 rows in one group of warps")
def test_a_loop_that_needs_two_groups_of_warps_says_so():
    with pytest.raises(BackendError) as info:
        compile_source(product.source, Specialization(SIGNATURE))
    error = info.value
    assert error.message == "this loop with warp_specialize=True can't be divided among 4 warps"
    assert "# here" in error.source_line
    assert error.notes[0] == "with num_warps=8 the kernel compiles"
    assert "pass NVGPUWarpSpecialization" in error.notes[-1]
