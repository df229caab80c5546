"""Descriptors of the operands of tcgen05.mma name the elements that the layouts put there, as stock Triton's do."""

import re

import pytest
from hypothesis import given, strategies as st

from tlx_xdsl.layouts.address import shared_addresses
from tlx_xdsl.layouts.encodings import NvmmaSharedLayout
from tlx_xdsl.layouts.matrix_descriptors import (
    STEP_BYTES,
    element_bytes,
    instruction_descriptor,
    operand_of,
    scaled_instruction_descriptor,
)

BASE = 64 * 1024


@st.composite
def operands(draw):
    """A layout, the shape of a tile, the part of it that is the operand, and which dimension is K."""
    width, bits = draw(st.sampled_from([32, 64, 128])), draw(st.sampled_from([8, 16]))
    transposed, k_dim = draw(st.booleans()), draw(st.sampled_from([0, 1]))
    tile = [draw(st.sampled_from(sizes)) * 16 // bits for sizes in ([64, 128, 256], [64, 128])]
    shape = list(tile)
    if draw(st.booleans()):
        shape[1 - k_dim] //= 2
    return NvmmaSharedLayout(width, transposed, bits), tuple(tile), tuple(shape), k_dim


@given(operands())
def test_elements_are_where_the_layout_puts_them(case):
    layout, tile, shape, k_dim = case
    operand = operand_of(layout, tile, shape, k_dim)
    size = layout.element_bit_width // 8
    places = shared_addresses(layout, tile, layout.element_bit_width)[: shape[0], : shape[1]]
    # One row for each row or column of the product.
    places = places.T if k_dim == 0 else places
    for step, start in enumerate(operand.steps):
        descriptor = operand.high << 32 | operand.low | (BASE + start) // 16
        found = element_bytes(descriptor, shape[1 - k_dim], size, k_major=operand.k_major)
        assert (found == BASE + places[:, step * STEP_BYTES // size : (step + 1) * STEP_BYTES // size]).all()


def test_what_no_descriptor_describes():
    with pytest.raises(ValueError, match="swizzled operands of 8 or 16 bits"):
        operand_of(NvmmaSharedLayout(0, False, 16), (64, 64), (64, 64), 1)
    with pytest.raises(ValueError, match="swizzled operands of 8 or 16 bits"):
        operand_of(NvmmaSharedLayout(128, False, 32), (64, 64), (64, 64), 1)
    with pytest.raises(ValueError, match="has no swizzle"):
        element_bytes(1 << 46, 64, 2, k_major=True)


PRODUCT = """
#a = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#b = #ttg.nvmma_shared<{swizzlingByteWidth = %(width)d, transposed = %(transposed)s, elementBitWidth = 16}>
#v = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = %(n)d, colStride = 1>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100",
                   "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @k() {
    %%true = arith.constant true
    %%a = ttg.local_alloc : () -> !ttg.memdesc<128x64x%(type)s, #a, #smem, mutable>
    %%b = ttg.local_alloc : () -> !ttg.memdesc<64x%(n)dx%(type)s, #b, #smem, mutable>
    %%bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #v, #smem, mutable>
    ttng.init_barrier %%bar, 1 : !ttg.memdesc<1xi64, #v, #smem, mutable>
    %%d = ttng.tmem_alloc : () -> !ttg.memdesc<128x%(n)dxf32, #t, #ttng.tensor_memory, mutable>
    ttng.tc_gen5_mma %%a, %%b, %%d, %%true, %%true, %%bar[%%true] {is_async} :
      !ttg.memdesc<128x64x%(type)s, #a, #smem, mutable>, !ttg.memdesc<64x%(n)dx%(type)s, #b, #smem, mutable>,
      !ttg.memdesc<128x%(n)dxf32, #t, #ttng.tensor_memory, mutable>, !ttg.memdesc<1xi64, #v, #smem, mutable>
    ttng.inval_barrier %%bar : !ttg.memdesc<1xi64, #v, #smem, mutable>
    tt.return
  }
}
"""


@pytest.mark.backend
@pytest.mark.parametrize(
    ("width", "transposed", "n", "type_"),
    [(128, False, 128, "f16"), (128, True, 128, "bf16"), (64, False, 256, "f16"), (32, True, 64, "f16")],
)
def test_stock_triton_writes_the_same_numbers(width, transposed, n, type_):
    from tlx_xdsl.backend import BackendOptions, compile_ttgir

    text = PRODUCT % {"width": width, "transposed": str(transposed).lower(), "n": n, "type": type_}
    ptx = compile_ttgir(text, BackendOptions("sm_100a"), stages="ptx").ptx
    a = operand_of(NvmmaSharedLayout(128, False, 16), (128, 64), (128, 64), 1)
    b = operand_of(NvmmaSharedLayout(width, transposed, 16), (64, n), (64, n), 0)
    types = (int(type_ == "bf16"),) * 2
    numbers = [a.high, b.high, instruction_descriptor(128, n, types=types, f32_result=True, a=a, b=b)]
    # Up to 3.8 the PTX has a descriptor as one number of 64 bits.
    written = [int(number) for number in re.findall(r", (-?\d+);", ptx)]
    words = {half & 0xFFFFFFFF for number in written for half in (number, number >> 32)}
    assert words >= set(numbers)
    if not b.k_major:
        assert b.low in words


SCALED = """
#a = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8}>
#b = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 8}>
#v = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = %(n)d, colStride = 1>
#s = #ttng.tensor_memory_scales_encoding<>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100",
                   "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @k() {
    %%true = arith.constant true
    %%a = ttg.local_alloc : () -> !ttg.memdesc<128x128x%(a)s, #a, #smem, mutable>
    %%b = ttg.local_alloc : () -> !ttg.memdesc<128x%(n)dx%(b)s, #b, #smem, mutable>
    %%d = ttng.tmem_alloc : () -> !ttg.memdesc<128x%(n)dxf32, #t, #ttng.tensor_memory, mutable>
    %%as = ttng.tmem_alloc : () -> !ttg.memdesc<128x%(scales)s, #s, #ttng.tensor_memory, mutable>
    %%bs = ttng.tmem_alloc : () -> !ttg.memdesc<%(n)dx%(scales)s, #s, #ttng.tensor_memory, mutable>
    ttng.tc_gen5_mma_scaled %%a, %%b, %%d, %%as, %%bs, %%true, %%true lhs = %(left)s rhs = %(right)s :
      !ttg.memdesc<128x128x%(a)s, #a, #smem, mutable>, !ttg.memdesc<128x%(n)dx%(b)s, #b, #smem, mutable>,
      !ttg.memdesc<128x%(n)dxf32, #t, #ttng.tensor_memory, mutable>,
      !ttg.memdesc<128x%(scales)s, #s, #ttng.tensor_memory, mutable>,
      !ttg.memdesc<%(n)dx%(scales)s, #s, #ttng.tensor_memory, mutable>
    tt.return
  }
}
"""


@pytest.mark.backend
@pytest.mark.parametrize(
    ("left", "right", "types", "scales", "each"),
    [
        ("e4m3", "e5m2", (0, 1), "4xi8", 1),
        ("e2m1", "e2m1", (1, 1), "8xi8", 2),
        ("e2m1", "e2m1", (1, 1), "16xf8E4M3FN", 4),
    ],
)
def test_stock_triton_writes_the_same_numbers_for_scaled_products(left, right, types, scales, each):
    from tlx_xdsl.backend import BackendOptions, compile_ttgir

    n, elements = 256, {"e4m3": "f8E4M3FN", "e5m2": "f8E5M2", "e2m1": "i8"}
    values = {"n": n, "a": elements[left], "b": elements[right], "left": left, "right": right, "scales": scales}
    ptx = compile_ttgir(SCALED % values, BackendOptions("sm_100a"), stages="ptx").ptx
    operands = [
        operand_of(NvmmaSharedLayout(128, transposed, 8), shape, shape, k)
        for transposed, shape, k in ((False, (128, 128), 1), (True, (128, n), 0))
    ]
    written = {int(number) & 0xFFFFFFFF for number in re.findall(r", (-?\d+);", ptx)}
    e8m0 = scales.endswith("i8")
    for step in range(4):
        word, column = divmod(each * step, 4)
        assert scaled_instruction_descriptor(
            128, n, types=types, e8m0=e8m0, column=column, a=operands[0], b=operands[1]
        ) in written  # fmt: skip
        # The scales of A begin after the accumulator, those of B after them: 32 rows of a word in a column.
        assert {n + 128 // 32 * word, n + 4 * each + n // 32 * word} <= written
