"""Offsets that older versions of stock Triton misjudge are hidden from them, and those of an ordinary GEMM are not."""

import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.versions import SUPPORTED
from tlx_xdsl.runtime.driver.compilation import Specialization, compile_text
from tlx_xdsl.runtime.simulate.interpret import source_of_kernel

pytestmark = pytest.mark.quick


@tlx_xdsl.jit
def copy_rows(x, y, rows, BY_A_TENSOR: tl.constexpr):
    """Copy a block of 16-bit elements in the background; the row wraps around, as the last rows of a GEMM do."""
    i = tl.arange(0, 64)
    row = tl.program_id(0) * 64 + i
    row = row % (2 << (i // 16)) if BY_A_TENSOR else row % rows
    buffer = tlx.local_alloc((64,), tl.float16, 1)[0]
    token = tlx.async_load(x + row, buffer)
    tlx.async_load_wait_group(0, [tlx.async_load_commit_group([token])])
    tl.store(y + i, tlx.local_load(buffer))


def text(version, by_a_tensor):
    types = {"x": "*fp16:16", "y": "*fp16:16", "rows": "i32:16"}
    specialization = Specialization(types, {"BY_A_TENSOR": by_a_tensor}, "sm_90a", 1)
    return compile_text(source_of_kernel(copy_rows), specialization, triton_version=version).ttgir


@pytest.mark.parametrize("version", SUPPORTED)
def test_remainders_of_a_whole_range_by_one_number_stay_as_they_are(version):
    """Hidden, they would leave no 4 bytes that are known to be adjacent, and stock Triton refuses such a `cp.async`."""
    found = text(version, by_a_tensor=False)
    assert "ttg.async_copy_global_to_local" in found
    assert "mov.b32" not in found


@pytest.mark.parametrize(("version", "hidden"), [(each, each < "3.9") for each in SUPPORTED])
def test_remainders_by_a_tensor_are_hidden_until_3_8(version, hidden):
    assert ("mov.b32" in text(version, by_a_tensor=True)) == hidden
