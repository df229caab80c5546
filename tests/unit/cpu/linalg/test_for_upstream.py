"""`linalg-for-upstream` keeps the numbers: every conversion of short floats has the interpreter's bits."""

# covers: triton-to-linalg

import itertools
import re

import ml_dtypes
import numpy as np
import pytest

from tests.unit.cpu.linalg.functions import assert_same, results_of
from tlx_xdsl.cpu.linalg.for_upstream import ForUpstreamPass
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.verify import verify_module

TYPES = {
    "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2, "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64,
    "i1": np.bool_, "i8": np.int8, "i32": np.int32, "i64": np.int64,
}  # fmt: skip
FLOATS = [name for name in TYPES if "f" in name]
BITS = {name: 1 if name == "i1" else 8 * np.dtype(dtype).itemsize for name, dtype in TYPES.items()}
CASTS = [
    *(("arith.extf", *pair) for pair in itertools.permutations(FLOATS, 2) if BITS[pair[0]] < BITS[pair[1]]),
    *(("arith.truncf", *pair) for pair in itertools.permutations(FLOATS, 2) if BITS[pair[0]] > BITS[pair[1]]),
    *((f"arith.{sign}itofp", *pair) for sign in "su" for pair in itertools.product(("i1", "i8", "i32", "i64"), FLOATS)),
    *((f"arith.fpto{sign}i", *pair) for sign in "su" for pair in itertools.product(FLOATS, ("i8", "i32", "i64"))),
]
ODD = [0.0, -0.0, np.inf, -np.inf, np.nan, 448, 464, 465, 57344, 61440, 65504, 65520, 3.4e38, 1e300, 1e-300, 2**-149,
       2**-24, 2**-25, 1.5 * 2**-10, 1 + 2**-8, 1 + 2**-8 + 2**-40, 240, 248, 127.5, -128.5, 2**31, 2**63]  # fmt: skip


def values_of(name):
    """Every number of 8 bits and of 16, or odd ones and random ones of all sizes."""
    if name == "i1":
        return np.array([False, True])
    if BITS[name] <= 16:
        return np.arange(1 << BITS[name]).astype(f"u{BITS[name] // 8}").view(TYPES[name])
    rng = np.random.default_rng(BITS[name])
    if name[0] == "i":
        random = rng.integers(-(2 ** (BITS[name] - 1)), 2 ** (BITS[name] - 1), 4000)
        return np.concatenate([random >> rng.integers(0, BITS[name], 4000), random]).astype(TYPES[name])
    with np.errstate(over="ignore", under="ignore"):
        size = rng.standard_normal(8000) * 2.0 ** rng.integers(-60, 60, 8000)
        return np.concatenate([[each, -each] for each in ODD] + [size]).astype(TYPES[name])


def conversion(cast, source, result, count):
    return f"""
    func.func @convert(%x: tensor<{count}x{source}>) -> tensor<{count}x{result}> {{
      %empty = tensor.empty() : tensor<{count}x{result}>
      %y = linalg.generic {{
        indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]
      }} ins(%x : tensor<{count}x{source}>) outs(%empty : tensor<{count}x{result}>) {{
      ^bb0(%in: {source}, %out: {result}):
        %made = {cast} %in : {source} to {result}
        linalg.yield %made : {result}
      }} -> tensor<{count}x{result}>
      func.return %y : tensor<{count}x{result}>
    }}
    """


@pytest.mark.parametrize(("cast", "source", "result"), CASTS, ids=str)
def test_a_conversion_keeps_the_bits(cast, source, result):
    values = values_of(source)
    module = parse_module(conversion(cast, source, result, values.size))
    before = results_of(module.clone(), values)
    ForUpstreamPass(saturating=True).run(module)
    verify_module(module)
    text = print_module(module)
    left = [line for line in text.splitlines() if " arith." in line and "bitcast" not in line and "f8" in line]
    assert not left
    assert_same(before, results_of(module, values))


def test_copies_between_views_are_loops_and_others_stay():
    module = parse_module("""
    func.func @copies(%a: memref<4x8xf32>, %b: memref<4x8xf32>) {
      memref.copy %a, %b : memref<4x8xf32> to memref<4x8xf32>
      %v = memref.subview %a[0, 0] [4, 2] [1, 1] : memref<4x8xf32> to memref<4x2xf32, strided<[8, 1]>>
      %w = memref.subview %b[0, 4] [4, 2] [1, 1] : memref<4x8xf32> to memref<4x2xf32, strided<[8, 1], offset: 4>>
      memref.copy %v, %w : memref<4x2xf32, strided<[8, 1]>> to memref<4x2xf32, strided<[8, 1], offset: 4>>
      func.return
    }
    """)
    ForUpstreamPass().run(module)
    verify_module(module)
    text = print_module(module)
    assert (text.count("memref.copy"), text.count("linalg.copy ins(")) == (1, 1)


def test_a_product_of_short_floats_stays_a_product():
    module = parse_module("""
    func.func @product(%a: tensor<4x8xf8E5M2>, %b: tensor<8x4xf8E4M3FN>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
      %d = linalg.matmul ins(%a, %b : tensor<4x8xf8E5M2>, tensor<8x4xf8E4M3FN>) outs(%c : tensor<4x4xf32>)
        -> tensor<4x4xf32>
      func.return %d : tensor<4x4xf32>
    }
    """)
    rng = np.random.default_rng(0)
    shapes = {"f8E5M2": (4, 8), "f8E4M3FN": (8, 4), "f32": (4, 4)}
    values = [rng.standard_normal(shape).astype(TYPES[name]) for name, shape in shapes.items()]
    before = results_of(module.clone(), *values)
    ForUpstreamPass().run(module)
    verify_module(module)
    assert re.search(r"linalg.matmul ins\(%\w+, %\w+ : tensor<4x8xf32>, tensor<8x4xf32>\)", print_module(module))
    assert_same(before, results_of(module, *values))
