"""Layouts and types: every textual form means what it says and is printed as it was read."""

import pytest
from xdsl.dialects.builtin import TensorType, f32, i32
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl import CompilationError
from tlx_xdsl.dialects.base.layouts import layout_attr
from tlx_xdsl.dialects.base.tensors import pointee_type, tensor_type
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.dialects.tt.types import descriptor_type
from tlx_xdsl.dialects.ttg.attrs import order_and_shape, row_major_bases
from tlx_xdsl.dialects.ttg.types import memdesc_type
from tlx_xdsl.layouts.encodings import PaddedSharedLayout, SharedLinearLayout, TensorMemoryLayout
from tlx_xdsl.text.parser import Parser, parse_module

pytestmark = pytest.mark.quick

FORMS = [
    "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], "
    "CGALayout = [[1, 0]]}>",
    "#ttg.linear<{register = [[0, 1]], lane = [[0, 2], [1, 0]], warp = [], block = []}>",
    "#ttg.generic_linear<{register = [], lane = [[1]], warp = [[1], [1]], block = []}>",
    "#ttg.padded_shared<[32:+4, 64:+8] {order = [1, 0], shape = [16, 64]}>",
    "#ttg.padded_shared<[4:+2] {offset = [[1, 0], [0, 2], [0, 1], [2, 0]], block = []}>",
    "#ttg.padded_shared<[4:+2] {offset = [[0, 1], [1, 0]], block = [[2, 0]]}>",
    "#ttg.shared_linear<{offset = [[0, 1], [1, 0]]}, alignment = 16>",
    "#ttg.shared_linear<{offset = [[0, 1], [1, 0]], block = [[2, 0]]}, alignment = 16>",
    "#ttg.partitioned_shared<{numPartitions = 2, numGroups = 4, partitionDim = 0, partitionLayout = "
    "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>}>",
    "#ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>",
    "#ttng.tensor_memory_encoding<blockM = 64, blockN = 64, colStride = 1, CGALayout = [[1, 0]], twoCTAs = true, "
    "fp4Padded = true>",
    "#ttng.tensor_memory_scales_encoding<>",
    "#ttng.tensor_memory_scales_encoding<CGALayout = [[1, 0]], blockRepOrder = kThenMn>",
    "#ttng.tensor_memory",
    "#ttng.redOp<max>",
    "#ttng.blockRepOrder<kThenMn>",
    "#ttng.cache_policy<cache_modifier = cs>",
    "#ttng.cache_policy<l1 = no_allocate, l2_prefetch_size = 128 : i32>",
    "#tt.cache_policy<cache_modifier = ca, eviction_policy = evict_last>",
    "#llvm.loop_annotation<licm = #llvm.loop_licm<disable = true, versioningDisable = true>>",
]


def parse(text):
    return Parser(make_context(), text).parse_attribute()


@pytest.mark.parametrize("text", FORMS)
def test_attribute_forms(text):
    assert str(parse(text)) == text


TYPES = [
    "!tt.ptr<f32>",
    '!tt.ptr<f32, "constant">',
    '!tt.ptr<f32, "descriptor">',
    "!tt.ptr<f32, 3>",
    "!tt.tensordesc<64x64xf16>",
    "!ttng.tensordesc_im2col<64x64xf16>",
    "!ttg.async.token",
]


@pytest.mark.parametrize("text", TYPES)
def test_type_forms(text):
    assert str(Parser(make_context(), text).parse_type()) == text


def test_payloads():
    assert parse("#ttg.shared_linear<{offset = [[1]]}, alignment = 8>") == layout_attr(
        SharedLinearLayout(((1,),), alignment=8)
    )
    plain = PaddedSharedLayout((4,), (2,), ((0, 1), (1, 0)), ())
    assert parse("#ttg.padded_shared<[4:+2] {order = [1, 0], shape = [2, 2]}>") == layout_attr(plain)
    split = TensorMemoryLayout(128, 64, 1, ((1, 0), (0, 1)), two_ctas=True)
    old = "blockM = 128, blockN = 64, colStride = 1, CTASplitM = 2, CTASplitN = 2, twoCTAs = true"
    assert parse(f"#ttng.tensor_memory_encoding<{old}>") == layout_attr(split)


@pytest.mark.parametrize(("order", "shape"), [((1, 0), (4, 8)), ((0, 1), (4, 8)), ((0,), (2,)), ((2, 0, 1), (2, 4, 2))])
def test_bases_of_elements_that_follow_each_other(order, shape):
    assert order_and_shape(row_major_bases(order, shape)) == (order, shape)


def test_bases_of_elements_that_do_not():
    assert order_and_shape(((0, 2), (0, 1))) is None
    assert order_and_shape(((0, 1), (1, 0), (0, 2))) is None
    assert order_and_shape(((1, 1),)) is None
    assert order_and_shape(()) is None


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (tensor_type, "expected a ranked tensor, found i32"),
        (memdesc_type, "expected a memdesc, found i32"),
        (descriptor_type, "expected a tensor descriptor, found i32"),
        (pointee_type, "expected a pointer or a tensor of pointers, found i32"),
    ],
)
def test_the_wrong_kind_of_type(check, message):
    with pytest.raises(VerifyException, match=message):
        check(i32)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("!tt.tensordesc<i32>", "expected a tensor type in a tensor descriptor, found i32"),
        (
            "#ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, CTASplitM = 3>",
            "CTASplitM must be a power of two",
        ),
        ("#llvm.loop_licm<enable = true>", "'llvm.loop_licm' has no parameter 'enable'"),
    ],
)
def test_broken_text(text, message):
    kind = "!alias" if text.startswith("!") else "#alias"
    use = f"{kind} = {text}\n" + (
        f"tt.func @f(%x: {kind})" if kind[0] == "!" else f"tt.func @f() attributes {{x = {kind}}}"
    )
    with pytest.raises(CompilationError, match=message):
        parse_module(use + " {\n  tt.return\n}\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%0 = arith.select %p, %p : i1", "expected a condition, two values and their type"),
        ("scf.while (%a = %p) : () -> () { scf.condition(%p) } do { scf.yield }", "expected 1 argument types, found 0"),
        (
            "ttng.tensormap_create %q, %q, [], [], [], [] {elem_type = 0 : i32, fill_mode = 0 : i32, "
            "interleave_layout = 0 : i32, swizzle_mode = 0 : i32} : (!tt.ptr<i8>) -> ()",
            "expected the types of all operands",
        ),
    ],
)
def test_broken_operations(text, message):
    with pytest.raises(CompilationError, match=message):
        parse_module(f"tt.func @f(%p: i1, %q: !tt.ptr<i8>) {{\n  {text}\n  tt.return\n}}\n")


def test_arguments_of_a_function():
    text = '"tt.func"() <{sym_name = "f", function_type = (i32) -> ()}> ({\n^bb0(%x: i64):\n  tt.return\n}) : () -> ()'
    from tlx_xdsl.text.verify import verify_module

    with pytest.raises(CompilationError, match="the entry block's arguments do not match the function type"):
        verify_module(parse_module(text))


def test_equal_layouts_share_an_attribute():
    layout = TensorMemoryLayout(128, 64, 1)
    assert layout_attr(layout) is layout_attr(TensorMemoryLayout(128, 64, 1))
    assert TensorType(f32, [128, 64], layout_attr(layout)).encoding is layout_attr(layout)
