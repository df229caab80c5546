"""Matrix products, plain and of microscaling formats, `tl.gather` and `tl.histogram`."""

import pytest

from tests.unit.frontend.kernels import load
from tests.unit.frontend.one_liners import assert_as_stock, assert_fault
from tlx_xdsl.frontend.compile import build_module
from tlx_xdsl.text.printer import print_module

pytestmark = pytest.mark.quick


def tile(pointer: str, *shape: int) -> str:
    """The pointers to a row-major block of `shape`."""
    terms, stride = [], 1
    for dim in reversed(range(len(shape))):
        index = ", ".join(":" if other == dim else "None" for other in range(len(shape)))
        terms.append(f"tl.arange(0, {shape[dim]})[{index}] * {stride}")
        stride *= shape[dim]
    return f"{pointer} + ({' + '.join(terms)})"


def product(a: str, b: str, call: str, *, out: str = "fp32", m: int = 32, k: int = 32, n: int = 32):
    """A kernel that loads blocks `a` (M x K) and `b` (K x N), and stores what `call` makes of them."""
    signature = {"x": f"*{a}", "y": f"*{b}", "z": f"*{out}"}
    body = (
        f"a = tl.load({tile('x', m, k)});; b = tl.load({tile('y', k, n)});; z = {tile('z', m, n)};; tl.store(z, {call})"
    )
    return signature, body


BATCHES = {"x": "*fp16", "z": "*fp32"}
PRODUCTS = [
    *(
        product(element, element, "tl.dot(a, b, tl.dot(a, b))", out=out)
        for element, out in (("fp16", "fp32"), ("bf16", "fp32"), ("fp32", "fp32"), ("i8", "i32"), ("fp64", "fp64"))
    ),
    product("fp8e5", "fp8e4nv", "tl.dot(a, b)"),
    *(
        product(element, element, f"tl.dot(a, b, {option})", out="i32" if element == "i8" else "fp32")
        for element in ("fp16", "fp32", "fp8e5", "i8")
        for option in (
            "out_dtype=tl.float32",
            "out_dtype=tl.float16",
            "input_precision='ieee'",
            "input_precision='TF32x3'",
            "input_precision='bf16x6'",
            "allow_tf32=True",
            "allow_tf32=False",
            "max_num_imprecise_acc=16",
        )
    ),
    product("fp16", "fp16", "tl.dot(a, b, acc=tl.load(z), out_dtype=tl.float16)", out="fp16"),
    product("fp16", "fp16", "tl.dot(a, b, tl.load(z))", out="fp16"),
    product("fp16", "fp16", "tl.dot(a, b)", m=1, k=16, n=8),
    product("fp64", "fp64", "tl.dot(a, b)", k=4, out="fp64"),
    (BATCHES, f"a = tl.load({tile('x', 4, 32, 32)});; tl.store({tile('z', 4, 32, 32)}, tl.dot(a, a, tl.dot(a, a)))"),
    (
        BATCHES,
        f"a = tl.load({tile('x', 2, 2, 16, 16)});; tl.store({tile('z', 2, 2, 16, 16)}, tl.dot(a, a, tl.dot(a, a)))",
    ),
]


@pytest.mark.backend
@pytest.mark.parametrize(("signature", "body"), PRODUCTS)
def test_products_are_those_of_stock(tmp_path, signature, body):
    assert_as_stock(tmp_path, signature, body)


def scaled(lhs: str, rhs: str, a: str, b: str, options: str = "", *, scales: str = "s, t", scale: str = "u8", group=32):
    """A product of 64 x 64 matrices in the formats `lhs` and `rhs`, held in elements `a` and `b`."""
    packs = "k_pack=False" not in options
    rows = (32 if lhs == "e2m1" and not packs else 64, 32 if lhs == "e2m1" and packs else 64)
    columns = (32 if rhs == "e2m1" and packs else 64, 32 if rhs == "e2m1" and not packs else 64)
    of_lhs, of_rhs = scales.split(", ")
    signature = {"x": f"*{a}", "y": f"*{b}", "g": f"*{scale}", "z": "*fp32"}
    body = (
        f"a = tl.load({tile('x', *rows)});; b = tl.load({tile('y', *columns)});; "
        f"s = tl.load({tile('g', 64, 64 // group)});; t = s;; z = {tile('z', 64, 64)};; "
        f"tl.store(z, tl.dot_scaled(a, {of_lhs}, '{lhs}', b, {of_rhs}, '{rhs}'{options}))"
    )
    return signature, body


SCALED = [
    scaled("e2m1", "e2m1", "u8", "u8"),
    scaled("e4m3", "e5m2", "fp8e4nv", "fp8e5"),
    scaled("e4m3", "e5m2", "u8", "u8"),
    scaled("e2m1", "bf16", "u8", "bf16"),
    scaled("fp16", "e4m3", "fp16", "fp8e4nv"),
    scaled("e2m1", "e2m1", "u8", "u8", ", lhs_k_pack=False, rhs_k_pack=False, fast_math=True"),
    scaled("e2m1", "e2m1", "u8", "u8", scales="None, None"),
    scaled("e4m3", "bf16", "fp8e4nv", "bf16", scales="s, None"),
    scaled("bf16", "e4m3", "bf16", "fp8e4nv", scales="None, t"),
    scaled("e4m3", "e4m3", "fp8e4nv", "fp8e4nv", ", acc=tl.load(z), out_dtype=tl.float32"),
    scaled("e2m1", "e2m1", "u8", "u8", scale="fp8e4nv", group=16),
]


@pytest.mark.backend
@pytest.mark.parametrize(("signature", "body"), SCALED)
def test_scaled_products_are_those_of_stock(tmp_path, signature, body):
    assert_as_stock(tmp_path, signature, body)


@pytest.mark.parametrize(("capability", "limit"), [(90, True), (100, False)])
def test_only_hopper_sums_float8_imprecisely(tmp_path, capability, limit):
    source = f"""
@tlx_xdsl.jit
def kernel(x, z):
    a = tl.load({tile("x", 32, 32)})
    tl.store({tile("z", 32, 32)}, tl.dot(a, a))
"""
    kernel = load(tmp_path, source).kernel
    module = build_module(kernel.source, {"x": "*fp8e5", "z": "*fp32"}, {}, capability=capability)
    assert ("maxNumImpreciseAcc = 1073741824 : i32" in print_module(module, locations=False)) == limit


I32 = {"x": "*fp32", "y": "*i32", "h": "*u32", "n": "i32"}
A = "a = tl.arange(0, 64);; g = tl.load(x + a);; "
PICKED = [
    (
        I32,
        A + "tl.store(x + a, tl.gather(g, a, 0));; tl.store(tl.gather(x + a, a, 0), 1);; "
        "tl.store(y + a, a.gather(a, axis=0))",
    ),
    (
        I32,
        A + "i = tl.arange(0, 8)[None, :] + a[:, None];; tl.store(x + i, tl.gather(a[:, None] + a[None, :], i, -1))",
    ),
    (
        I32,
        A + "b = tl.arange(0, 16);; tl.store(y + b, tl.histogram(a, 16));; tl.store(y + b, tl.histogram(a, 16, n > 3))"
        ";; tl.store(y + b, tl.histogram(tl.load(h + a), 16, mask=a > n))",
    ),
]


@pytest.mark.backend
@pytest.mark.parametrize(("signature", "body"), PICKED)
def test_gather_and_histogram_are_those_of_stock(tmp_path, signature, body):
    assert_as_stock(tmp_path, signature, body)


BLOCKS = (
    f"a = tl.load({tile('x', 32, 32)});; b = tl.load({tile('h', 32, 32)});; u = tl.load({tile('v', 32, 32)});; "
    f"s = tl.load({tile('v', 32, 1)});; c = tl.load({tile('z', 32, 32)});; w = tl.arange(0, 32);; "
)
FAULTS = [
    ("tl.dot(n, a)", "'input' must be a block of two or more dimensions, found a runtime value", "n, a"),
    ("tl.dot(a, w)", "'other' must be a block of two or more dimensions, found a block", "w)"),
    ("tl.dot(u, u)", "'input' must have elements of int8, fp8e4nv", "u, u"),
    ("tl.dot(a, b)", "'input' and 'other' must have one element type, found a block", "tl.dot"),
    ("tl.dot(a, tl.zeros([16, 32], tl.float16))", "the columns of 'input' must be as many as the rows", "tl.dot"),
    ("tl.dot(a, tl.zeros([2, 32, 32], tl.float16))", "must have the same dimensions before the last two", "tl.dot"),
    ("tl.dot(tl.zeros([16, 8], tl.float16), tl.zeros([8, 16], tl.float16))", "K, the columns of 'input'", "tl.dot"),
    ("tl.dot(a, a, tl.zeros([32, 16], tl.float32))", "'acc' must be a block of shape [32, 32]", "tl.zeros"),
    ("tl.dot(b, b, tl.zeros([32, 32], tl.bfloat16))", "the product can't have type bf16: use float32", "tl.zeros"),
    ("tl.dot(b, b, tl.zeros([32, 32], tl.float16))", "'acc' must have the type of the product, fp32", "tl.zeros"),
    ("tl.dot(c, c, tl.zeros([32, 32], tl.float64))", "'acc' must have the type of the product, fp32", "tl.zeros"),
    ("tl.dot(a, a, 1.0)", "'acc' must be a block of shape [32, 32], found the constexpr 1.0", "1.0"),
    (
        "tl.dot(a, a, tl.zeros([32, 32], tl.int32))",
        "the product of fp16 has type fp32 or fp16, found int32",
        "tl.zeros",
    ),
    ("tl.dot(a, a, c, out_dtype=tl.float16)", "'acc' must have the type fp16 of 'out_dtype'", "c, out"),
    ("tl.dot(a, a, out_dtype=tl.bfloat16)", "convert it with .to(tl.bfloat16)", "tl.bfloat16"),
    ("tl.dot(a, a, out_dtype=tl.int32)", "the product of fp16 has type fp32 or fp16, found int32", "tl.int32"),
    ("tl.dot(a, a, input_precision='fast')", "must be one of 'tf32', 'tf32x3', 'ieee'", "'fast'"),
    ("tl.dot(a, a, input_precision='tf32', allow_tf32=True)", "give one of them", "True"),
    ("tl.dot_scaled(b, None, 'e2m3', b, None, 'e4m3')", "'lhs_format' must be one of 'e2m1'", "'e2m3'"),
    ("tl.dot_scaled(u, None, 'e4m3', a, None, 'e4m3')", "'rhs' must be a block of two or three dimensions", "a, None"),
    ("tl.dot_scaled(u, None, 'e2m1', u, None, 'e4m3')", "K is 64 in 'lhs' and 32 in 'rhs'", "tl.dot_scaled"),
    (
        "tl.dot_scaled(u, u, 'e4m3', u, None, 'e4m3')",
        "'lhs_scale' must be None or a block of shape [32, 2] or",
        "u, 'e",
    ),
    ("tl.dot_scaled(u, None, 'e4m3', u, None, 'e4m3', lhs_k_pack=False)", "only e2m1 can be packed along", "False"),
    ("tl.dot_scaled(u, None, 'e2m1', b, None, 'bf16', rhs_k_pack=False)", "dimension than K, found 'bf16'", "False"),
    ("tl.dot_scaled(u, 1, 'e4m3', u, None, 'e4m3')", "'lhs_scale' must be None or a block", "1, 'e"),
    ("tl.dot_scaled(u, s, 'e4m3', u, s, 'e4m3', w)", "'acc' must be a block of type fp32[32, 32]", "w)"),
    ("tl.dot_scaled(u, s, 'e4m3', u, s, 'e4m3', out_dtype=tl.float16)", "the product has type fp32", "tl.float16"),
    ("tl.gather(a, w, 0)", "'index' must have 2 dimensions, as 'src' has", "w, 0"),
    ("tl.gather(a, c, 0)", "'index' must be a block of integers", "c, 0"),
    ("tl.gather(w, w, 1)", "'axis' must be one of the 1 dimensions of 'src', found 1", "1)"),
    ("tl.gather(a, w[:16, None], 0)", "a block is indexed by", ":16"),
    ("tl.gather(a, w[:, None], 0)", "dimension 1 of 'index' must have size 32, as in 'src', found 1", "w["),
    ("tl.gather(n, w, 0)", "'src' must be a block", "n, w"),
    ("tl.histogram(c, 16)", "'input' must be a 1-D block of 32-bit integers", "c, 16"),
    ("tl.histogram(w, 15)", "'num_bins' must be a power of two, found 15", "15"),
    ("tl.histogram(w, 16, n)", "'mask' must be an int1", "n)"),
]


@pytest.mark.parametrize(("statement", "message", "at"), FAULTS)
def test_faults_of_matrices_are_located(tmp_path, statement, message, at):
    signature = {"x": "*fp16", "h": "*bf16", "v": "*u8", "z": "*fp32", "n": "i32"}
    assert_fault(tmp_path, signature, BLOCKS + statement, message, at)
