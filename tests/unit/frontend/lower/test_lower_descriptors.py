"""Tensor descriptors, made by the host or by the kernel."""

import pytest

from tests.unit.frontend.one_liners import assert_as_stock, assert_fault

HOST = {"d": "tensordesc<fp16[64,32]>", "x": "*fp16", "n": "i32", "m": "i64"}
ROWS = "r = tl.make_tensor_descriptor(x, [n, n], [n, 1], [1, 64]);; "
REDUCED = {
    "add": ("u32", "i32", "u64", "fp16", "fp32", "bf16"),
    "min": ("u32", "i32", "u64", "i64", "fp16", "bf16"),
    "max": ("u32", "i32", "u64", "i64", "fp16", "bf16"),
    "and": ("u32", "i32", "u64", "i64"),
    "or": ("u32", "i32", "u64", "i64"),
    "xor": ("u32", "i32", "u64", "i64"),
}

AS_STOCK = [
    (HOST, "v = d.load([n, 0]);; d.store([n, 5], v);; d.store((n, n), v)"),
    ({"d": "tensordesc<fp16[64,32]>", "e": "tensordesc<fp32[64,32]>", "n": "i32"}, "d.store([n, 0], e.load([0, 0]))"),
    (HOST, "tl.store_tensor_descriptor(d, [n, 0], tl.load_tensor_descriptor(d, [n, 0]))"),
    (HOST, "tl.store(x, d.shape[0]);; tl.store(x, d.strides[1]);; tl.store(x, d.block_shape[0])"),
    (
        HOST,
        "e = tl.make_tensor_descriptor(x, [m, 8], [8, 1], [16, 32], padding_option='nan');; "
        "tl.store(x, e.shape[0]);; tl.store(x, e.strides[1]);; e.store([0, 0], e.load([n, n]))",
    ),
    (HOST, "e = tl.make_tensor_descriptor(x, [n], [1], [64]);; e.store([0], e.load([n]))"),
    (HOST, "e = tl.make_tensor_descriptor(x, [n, 24], [24, 1], [1, 64]);; e.store([0, 0], e.load([n, 0]))"),
    (
        HOST,
        "e = tl.make_tensor_descriptor(x, [n, n, n], [n, n, 1], [2, 4, 64]);; e.store([n, 0, 0], e.load([0, 0, n]))",
    ),
    (HOST, ROWS + "v = r.gather(tl.arange(0, 32), n);; r.scatter(v, tl.arange(0, 32), 0)"),
    ({**HOST, "h": "*i16"}, ROWS + "i = tl.load(h + tl.arange(0, 8));; r.scatter(r.gather(i, n), i, n)"),
    *(
        (
            {"x": f"*{element}", "n": "i32", "d": f"tensordesc<{element}[64,64]>"},
            "e = tl.make_tensor_descriptor(x, [n, n], [n, 1], [64, 64]);; e.store([0, 0], d.load([n, n]))",
        )
        for element in ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "fp8e5", "bf16", "fp32", "fp64")
    ),
    *(
        ({"d": f"tensordesc<{element}[64,32]>", "n": "i32"}, f"d.atomic_{name}([n, 0], d.load([0, 0]))")
        for name in REDUCED
        for element in REDUCED[name]
    ),
]


@pytest.mark.backend
@pytest.mark.parametrize(("signature", "body"), AS_STOCK)
def test_descriptors_are_those_of_stock(tmp_path, signature, body):
    assert_as_stock(tmp_path, signature, body)


FAULTS = [
    ("tl.make_tensor_descriptor(n, [n], [1], [64])", "'base' must be a scalar pointer", "n, [n]"),
    ("tl.make_tensor_descriptor(x + tl.arange(0, 4), [n], [1], [64])", "'base' must be a scalar pointer", "x +"),
    ("tl.make_tensor_descriptor(x, n, [1], [64])", "'shape' must be a tuple of sizes", "n, [1]"),
    ("tl.make_tensor_descriptor(x, [n, n], [1], [64, 64])", "'strides' must have 2 items, as 'shape' has", "[1]"),
    ("tl.make_tensor_descriptor(x, [n, n], [n, 1], [64])", "'block_shape' must have 2 items", "[64]"),
    ("tl.make_tensor_descriptor(x, [n], [1], [12])", "'block_shape' must hold powers of two, found [12]", "[12]"),
    ("tl.make_tensor_descriptor(x, [n], [1], [4])", "found 4 elements of type fp16, 8 bytes", "[4]"),
    ("tl.make_tensor_descriptor(x, [n], [1], [2, 2, 2, 2, 2, 8])", "1 to 5 dimensions, found 6", "[2, 2"),
    ("tl.make_tensor_descriptor(x, [n], [2], [64])", "the last stride must be the constexpr 1, found", "[2]"),
    ("tl.make_tensor_descriptor(x, [n], [n], [64])", "the last stride must be the constexpr 1, found", "[n], [64]"),
    ("tl.make_tensor_descriptor(x, [5000000000], [1], [64])", "'shape' must fit into an int32", "[5"),
    ("tl.make_tensor_descriptor(x, [n], [1], [64], 'inf')", "must be one of 'zero', 'nan', found 'inf'", "'inf'"),
    ("tl.make_tensor_descriptor(i, [n], [1], [64], 'nan')", "have no NaN to pad with", "'nan'"),
    ("tl.make_tensor_descriptor(x, [n, 20], [20, 1], [1, 64])", "found 20 elements of type fp16, 40 bytes", "[20, 1]"),
    ("tl.make_tensor_descriptor(x, [n, n, n], [n, 4, 1], [1, 1, 64])", "must be 16-byte aligned, found 4", "[n, 4"),
    ("d.load([n])", "'offsets' must have 2 items, one for each dimension, found 1", "[n]"),
    ("d.load(n)", "'offsets' must be a tuple of 2 offsets", "n)"),
    ("d.load([m, 0])", "an offset must be an int32", "[m"),
    ("d.load([n, 1.5])", "'offsets' must be a scalar int32, found the constexpr 1.5", "[n"),
    ("d.load([n, tl.arange(0, 4)])", "'offsets' must be a scalar int32, found a block", "[n"),
    ("d.load([n, 5000000000])", "'offsets' must fit into an int32, found 5000000000", "[n"),
    ("d.store([0, 0], 1.0)", "'value' must be a block of type fp16[64, 32], found the constexpr 1.0", "1.0"),
    ("d.store([0, 0], tl.zeros([64, 64], tl.float16))", "'value' must be a block of type fp16[64, 32]", "tl.zeros"),
    ("d.atomic_and([0, 0], d.load([0, 0]))", "the elements must be one of", "d.atomic_and"),
    ("d.atomic_add([0, 0], tl.zeros([64, 32], tl.float32))", "'value' must be a block of type fp16", "tl.zeros"),
    ("d.gather(tl.arange(0, 8), n)", "the block must have one row", "d.gather"),
    ("r.gather(tl.arange(0, 4), n)", "there must be at least 8 rows, found 4", "tl.arange"),
    ("r.gather(n, n)", "'x_offsets' must be a 1-D block of int32 or int16 row numbers", "n, n"),
    ("r.gather(tl.arange(0, 8)[:, None], n)", "'x_offsets' must be a 1-D block", "tl.arange"),
    ("r.gather(tl.arange(0, 8), m)", "an offset must be an int32", "m)"),
    ("r.scatter(tl.zeros([8, 32], tl.float16), tl.arange(0, 8), n)", "must be a block of type fp16[8, 64]", "tl.zeros"),
    ("tl.load_tensor_descriptor(x, [n, n])", "'desc' must be a tensor descriptor", "x, [n"),
]


@pytest.mark.parametrize(("statement", "message", "at"), FAULTS)
def test_faults_of_descriptors_are_located(tmp_path, statement, message, at):
    assert_fault(tmp_path, {**HOST, "i": "*i32"}, ROWS + statement, message, at)
