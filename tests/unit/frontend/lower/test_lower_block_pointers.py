"""Block pointers, which stock Triton has up to 3.8: what is read and written, what loops carry, and errors."""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit.frontend.one_liners import assert_fault

RUN = {"target": "sm_90a", "jobs": 1}


@tlx_xdsl.jit
def transposed_copy(x_ptr, y_ptr, M, N, BLOCK: tl.constexpr, PADDING: tl.constexpr):
    """y = x.T, padded to whole blocks; the column blocks move along, as does the choice of them at the end."""
    source = tl.make_block_ptr(x_ptr, (M, N), (N, 1), (tl.program_id(0) * BLOCK, 0), (BLOCK, BLOCK), (1, 0))
    wide = tl.cdiv(M, BLOCK) * BLOCK
    target = tl.make_block_ptr(
        base=y_ptr, shape=(tl.cdiv(N, BLOCK) * BLOCK, wide), strides=(wide, 1),
        offsets=(0, tl.program_id(0) * BLOCK), block_shape=(BLOCK, BLOCK), order=(1, 0),
    )  # fmt: skip
    for _ in range(0, N, BLOCK):
        tile = tl.load(source, boundary_check=(0, 1), padding_option=PADDING)
        tl.store(target, tl.trans(tile).to(target.dtype.element_ty), boundary_check=(0,))
        source = tl.advance(source, (0, BLOCK))
        target = target.advance([BLOCK, 0])


@pytest.mark.parametrize("padding", ["zero", "nan"])
def test_blocks_move_and_bounds_are_checked(padding):
    x = np.arange(40 * 23, dtype=np.float32).reshape(40, 23)
    y = np.full((32, 48), -1, np.float16)
    tlx_xdsl.interpret(transposed_copy, 3, x, y, 40, 23, 16, padding, **RUN)
    expected = np.full((32, 48), 0 if padding == "zero" else np.nan, np.float16)
    expected[:23, :40] = x.T
    assert np.array_equal(y, expected, equal_nan=True)


@tlx_xdsl.jit
def one_of_two(x_ptr, y_ptr, second, SIZE: tl.constexpr):
    block = tl.make_block_ptr(x_ptr, (2 * SIZE,), (1,), (0,), (SIZE,), (0,))
    if second:
        block = tl.advance(block, (SIZE,))
    tl.store(tl.make_block_ptr(y_ptr, (SIZE,), (1,), (0,), (SIZE,), (0,)), doubled(block))


@tlx_xdsl.jit
def doubled(block):
    return tl.load(block) * 2


@pytest.mark.parametrize("second", [0, 1])
def test_branches_and_calls_pass_them_on(second):
    x, y = np.arange(32, dtype=np.int32), np.zeros(16, np.int32)
    tlx_xdsl.interpret(one_of_two, 1, x, y, second, 16, **RUN)
    assert np.array_equal(y, 2 * x[16 * second :][:16])


@tlx_xdsl.jit
def without_checks(x_ptr, y_ptr):
    block = tl.make_block_ptr(x_ptr, (24,), (1,), (0,), (32,), (0,))
    tl.store(y_ptr + tl.arange(0, 32), tl.load(block))


def test_what_is_not_checked_is_read():
    x, y = np.arange(32, dtype=np.int32), np.zeros(32, np.int32)
    tlx_xdsl.interpret(without_checks, 1, x, y, **RUN)
    assert np.array_equal(y, x)


MAKE = "b = tl.make_block_ptr(x, [64], [1], [0], [64], [0]);; "


@pytest.mark.parametrize(
    ("statement", "message", "at"),
    [
        ("tl.make_block_ptr(n, [64], [1], [0], [64], [0])", "'base' must be a pointer, found", "n, [64]"),
        ("tl.make_block_ptr(x, [64, n], [1], [0], [64], [0])", "'shape' must have 1 items", "[64, n]"),
        ("tl.make_block_ptr(x, [64], [1], [0.5], [64], [0])", "'offsets' must be", "[0.5]"),
        ("tl.make_block_ptr(x, [64], [1], [0], [63], [0])", "must hold powers of two", "[63]"),
        ("tl.make_block_ptr(x, [64], [1], [0], [64], [1])", "'order' must be a permutation of the 1", "[1])"),
        ("c = tl.advance(x, (3,))", "'base' must be a block pointer (tl.make_block_ptr), found", "x, (3"),
        (MAKE + "c = tl.advance(b, (3, 4))", "'offsets' must have 1 items, one for each dimension, found 2", "(3, 4)"),
        (MAKE + "tl.load(b, boundary_check=(1,))", "must name some of the 1 dimensions, found [1]", "(1,)"),
        (MAKE + "tl.load(b, mask=n < 3)", "'mask' is not for block pointers", "n < 3"),
        (MAKE + "tl.load(b, padding_option='one')", "must be one of '', 'zero', 'nan', found 'one'", "'one'"),
        ("tl.load(x, boundary_check=(0,))", "'boundary_check' is for block pointers", "(0,)"),
        ("tl.load(x, padding_option='nan')", "'padding_option' is for block pointers", "'nan'"),
        (MAKE + "b + 1", "found a block pointer of type pointer<fp32>[64]", "b + 1"),
        (MAKE + "b.stride", "a block pointer of type pointer<fp32>[64] has no attribute 'stride'", "b.stride"),
    ],
)
def test_faults_are_located(tmp_path, statement, message, at):
    assert_fault(tmp_path, {"x": "*fp32", "n": "i32"}, statement, message, at)
