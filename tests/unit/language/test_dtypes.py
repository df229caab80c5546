"""Element types and the types made of them, as host code and kernels see them."""

# covers: tl.dtypes, tl.composite_types

import pytest

import tlx_xdsl.language as tl
from tests.unit.frontend.kernels import compile_source

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("dtype", "bits", "kind"),
    [
        (tl.int1, 1, "bool"), (tl.int8, 8, "int"), (tl.uint16, 16, "int"), (tl.int64, 64, "int"),
        (tl.float8e4nv, 8, "float"), (tl.bfloat16, 16, "float"), (tl.float32, 32, "float"),
    ],
)  # fmt: skip
def test_an_element_type_knows_its_width_and_kind(dtype, bits, kind):
    assert dtype.primitive_bitwidth == bits
    assert dtype.is_floating() == (kind == "float")
    assert dtype.is_bool() == (kind == "bool")
    assert dtype.is_int() == (kind != "float")
    assert not dtype.is_block()
    assert not dtype.is_ptr()


def test_a_pointer_type_has_the_type_of_its_elements():
    pointer = tl.pointer_type(tl.float16)
    assert pointer.is_ptr()
    assert pointer.element_ty == tl.float16
    assert pointer.primitive_bitwidth == 64
    assert pointer != tl.pointer_type(tl.bfloat16)


def test_a_block_type_has_a_shape_and_elements():
    block = tl.block_type(tl.float16, [4, 8])
    assert block.is_block()
    assert (tuple(block.get_block_shapes()), block.numel, block.nbytes) == ((4, 8), 32, 64)
    assert block.scalar == tl.float16
    assert block.with_element_ty(tl.float32) == tl.block_type(tl.float32, [4, 8])


def test_kernels_compute_with_types_at_compile_time(tmp_path):
    kernel = """
@tlx_xdsl.jit
def kernel(x, out):
    a = tl.load(x + tl.arange(0, 32))
    tl.static_assert(x.dtype.is_ptr() and x.dtype.element_ty == tl.float16)
    tl.static_assert(a.type.is_block() and a.dtype == tl.float16)
    tl.store(out, a.dtype.primitive_bitwidth * a.numel)
"""
    text = compile_source(tmp_path, kernel, {"x": "*fp16", "out": "*i32"})
    assert "arith.constant 512 : i32" in text
