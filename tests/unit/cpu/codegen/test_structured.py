"""Loop nests of linalg as machine code: dimensions in any order, masked remainders, reductions, indices, products."""

# covers: target.cpu

import re

import ml_dtypes
import numpy as np
import pytest

from tests.unit.cpu.codegen.native import Guarded, compiled_buffers
from tlx_xdsl.cpu.codegen.host import host
from tlx_xdsl.cpu.codegen.module import llvm_module, lowered
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.parser import parse_module

pytestmark = pytest.mark.quick

RNG = np.random.default_rng(3)


def run(types, body, arrays, *, arena=65536, checks=False):
    """The arrays after a program with `body`, whose pointers are %a0, %a1, ... with elements of `types`."""
    pointers = ", ".join(f"%a{number}: memref<*x{type_}>" for number, type_ in enumerate(types))
    kernel = compiled_buffers(
        f"""func.func @k({pointers}, %n: index, %x: i32, %y: i32, %z: i32)
    attributes {{tt.program_ids = 3 : i32, arena.bytes = {arena} : i64}} {{
  {body}
  func.return
}}""",
        checks=checks,
    )
    held = [Guarded(np.asarray(each)).array for each in arrays]
    # The number of elements of the first array.
    site = kernel.run((1, 1, 1), [*held, held[0].size])
    assert site is None, site
    return held


def whole(number, shape, type_):
    """See all of an array as memory of a shape: `%m0`."""
    sizes, strides, step = "x".join(map(str, shape)), [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return (
        f"%m{number} = memref.reinterpret_cast %a{number} to offset: [0], sizes: {list(shape)}, strides: {strides} : "
        f"memref<*x{type_}> to memref<{sizes}x{type_}, strided<{strides}>>",
        f"memref<{sizes}x{type_}, strided<{strides}>>",
    )


def test_a_view_of_any_length():
    for size in (0, 1, 7, 16, 33):
        (_, out) = run(["f32", "f32"], """
  %s = memref.reinterpret_cast %a0 to offset: [0], sizes: [%n], strides: [1]
      : memref<*xf32> to memref<?xf32, strided<[1]>>
  %t = memref.reinterpret_cast %a1 to offset: [0], sizes: [%n], strides: [1]
      : memref<*xf32> to memref<?xf32, strided<[1]>>
  memref.copy %s, %t : memref<?xf32, strided<[1]>> to memref<?xf32, strided<[1]>>""",
            [np.arange(size, dtype=np.float32), np.zeros(size, np.float32)])  # fmt: skip
        assert (out == np.arange(size)).all()


@pytest.mark.parametrize(
    ("length", "stores"),
    [
        ("%s = arith.constant 21 : index", 0),
        ("%s = arith.addi %n, %five : index", 1),
        # LLVM finds out that it is 5.
        ("%none = arith.andi %n, %zero : index\n  %s = arith.addi %none, %five : index", 1),
    ],
)
def test_no_store_has_a_mask_of_constants(length, stores):
    module = parse_module(f"""func.func @k(%a: memref<*xi8>, %n: index, %x: i32, %y: i32, %z: i32)
    attributes {{tt.program_ids = 3 : i32, arena.bytes = 0 : i64}} {{
  %zero = arith.constant 0 : index
  %five = arith.constant 5 : index
  %c = arith.constant 3 : i8
  {length}
  %m = memref.reinterpret_cast %a to offset: [0], sizes: [%s], strides: [1]
      : memref<*xi8> to memref<?xi8, strided<[1]>>
  linalg.fill ins(%c : i8) outs(%m : memref<?xi8, strided<[1]>>)
  func.return
}}""")
    calls = [line for line in lowered(module)[0].llvm_ir().splitlines() if "call void @llvm.masked.store" in line]
    assert len(calls) == stores, calls
    assert not [call for call in calls if "i1 true" in call or "splat (i1" in call]


def test_a_choice_of_elements_is_made_in_the_lanes_of_vectors():
    module = parse_module("""func.func @k(%a: memref<*xf32>, %n: index, %x: i32, %y: i32, %z: i32)
    attributes {tt.program_ids = 3 : i32, arena.bytes = 0 : i64} {
  %m = memref.reinterpret_cast %a to offset: [0], sizes: [64], strides: [1]
      : memref<*xf32> to memref<64xf32, strided<[1]>>
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%m : memref<64xf32, strided<[1]>>) outs(%m : memref<64xf32, strided<[1]>>) {
  ^bb0(%in: f32, %old: f32):
    %zero = arith.constant 0.0 : f32
    %is_positive = arith.cmpf ogt, %in, %zero : f32
    %new = arith.select %is_positive, %in, %zero : f32
    linalg.yield %new : f32
  }
  func.return
}""")  # fmt: skip
    assert "select <16 x i1>" in lowered(module)[0].llvm_ir()


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (4, 16), (16, 4), (7, 33), (16, 16), (32, 48), (40, 17), (19, 64)])
@pytest.mark.parametrize(("type_", "dtype"), [("i8", np.int8), ("f64", np.float64), ("i1", np.bool_)])
def test_transpose(shape, type_, dtype):
    value = RNG.integers(0, 2 if type_ == "i1" else 100, shape).astype(dtype)
    (first, one), (second, two) = whole(0, shape, type_), whole(1, shape[::-1], type_)
    _, out = run([type_, type_], f"""
  {first}
  {second}
  linalg.transpose ins(%m0 : {one}) outs(%m1 : {two}) permutation = [1, 0]""",
        [value, np.zeros(shape[::-1], dtype)])  # fmt: skip
    assert (out == value.T).all()


@pytest.mark.parametrize(
    ("rows", "columns", "strides", "gathers"),
    [
        (32, 32, (1, 100), False),
        (20, 32, (1, 100), True),  # with four rows that are no block
        (8, 32, (1, 100), True),
        (32, 8, (1, 100), True),
        (32, 32, (2, 100), True),
        (32, 32, (0, 100), True),
    ],
)
def test_blocks_are_transposed_in_registers(rows, columns, strides, gathers):
    """Rows of 16 elements are read as they lie, where they lie one after the other."""
    module = parse_module(f"""func.func @k(%a: memref<*xf32>, %b: memref<*xf32>, %x: i32, %y: i32, %z: i32)
    attributes {{tt.program_ids = 3 : i32, arena.bytes = 0 : i64}} {{
  %from = memref.reinterpret_cast %a to offset: [0], sizes: [{rows}, {columns}], strides: {list(strides)}
      : memref<*xf32> to memref<{rows}x{columns}xf32, strided<{list(strides)}>>
  %to = memref.reinterpret_cast %b to offset: [0], sizes: [{rows}, {columns}], strides: [{columns}, 1]
      : memref<*xf32> to memref<{rows}x{columns}xf32, strided<[{columns}, 1]>>
  memref.copy %from, %to
      : memref<{rows}x{columns}xf32, strided<{list(strides)}>> to memref<{rows}x{columns}xf32, strided<[{columns}, 1]>>
  func.return
}}""")
    text, _ = llvm_module(module, host(), checks=False)
    assert (
        "call <16 x float> @llvm.masked.gather" in text or "call <8 x float> @llvm.masked.gather" in text
    ) == gathers
    assert ("shufflevector <16 x float>" in text) == (strides == (1, 100) and min(rows, columns) >= 16)


@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 33, 64])
@pytest.mark.parametrize(("strides", "gathers"), [((2, 1), False), ((1, 2), False), ((3, 1), True)])
def test_every_second_element(strides, gathers, size):
    """Pairs are read as they lie, and parted in registers; nothing lies after the last element of either array."""
    near, far = [np.arange(stride * (size - 1) + 1, dtype=np.float32) + 1 for stride in strides]
    views = [
        f"%m{number} = memref.reinterpret_cast %a{number} to offset: [0], sizes: [{size}], strides: [{stride}]"
        f" : memref<*xf32> to memref<{size}xf32, strided<[{stride}]>>"
        for number, stride in enumerate(strides)
    ]
    types = [f"memref<{size}xf32, strided<[{stride}]>>" for stride in strides]
    body = f"{views[0]}\n{views[1]}\nmemref.copy %m0, %m1 : {types[0]} to {types[1]}"
    _, found = run(["f32", "f32"], body, [near, far])
    expected = far.copy()
    expected[:: strides[1]] = near[:: strides[0]]
    assert (found == expected).all()
    module = parse_module(f"""func.func @k(%a0: memref<*xf32>, %a1: memref<*xf32>, %x: i32, %y: i32, %z: i32)
    attributes {{tt.program_ids = 3 : i32, arena.bytes = 0 : i64}} {{
  {body}
  func.return
}}""")
    text, _ = llvm_module(module, host(), checks=False)
    # What is left after whole vectors has a mask.
    if size % 16 == 0:
        assert ("llvm.masked.gather" in text) is gathers
        assert "llvm.masked.scatter" not in text


def test_broadcast_along_any_dimension():
    (first, one), (second, two) = whole(0, (6,), "i32"), whole(1, (6, 20), "i32")
    value = np.arange(6, dtype=np.int32)
    _, out = run(["i32", "i32"], f"""
  {first}
  {second}
  linalg.broadcast ins(%m0 : {one}) outs(%m1 : {two}) dimensions = [1]""",
        [value, np.zeros((6, 20), np.int32)])  # fmt: skip
    assert (out == value[:, None]).all()


REDUCTIONS = {
    "arith.addf": (np.add, "f32"), "arith.mulf": (np.multiply, "f32"), "arith.maxnumf": (np.fmax, "f32"),
    "arith.minimumf": (np.minimum, "f32"), "arith.addi": (np.add, "i32"), "arith.xori": (np.bitwise_xor, "i32"),
    "arith.maxsi": (np.maximum, "i32"), "arith.minsi": (np.minimum, "i8"), "arith.maxnumf ": (np.fmax, "f16"),
}  # fmt: skip
DTYPES = {"f32": np.float32, "i32": np.int32, "i8": np.int8, "f16": np.float16}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize(("shape", "axis"), [((5, 100), 1), ((100, 5), 0), ((3, 7), 0), ((64, 64), 1)])
def test_reductions(name, shape, axis):
    function, type_ = REDUCTIONS[name]
    dtype = DTYPES[type_]
    value = RNG.integers(-50, 50, shape).astype(dtype) if dtype != np.float32 else RNG.standard_normal(shape, dtype)
    if type_ in ("f32", "f16") and "m" in name[6:]:
        value[0, 0] = np.nan
    start = RNG.integers(-3, 3, shape[1 - axis]).astype(dtype)
    kept = (shape[1 - axis],)
    (first, one), (second, two) = whole(0, shape, type_), whole(1, kept, type_)
    _, out = run([type_, type_], f"""
  {first}
  {second}
  linalg.reduce ins(%m0 : {one}) outs(%m1 : {two}) dimensions = [{axis}] (%in: {type_}, %old: {type_}) {{
    %new = {name} %old, %in : {type_}
    linalg.yield %new : {type_}
  }}""", [value, start])  # fmt: skip
    expected = function(start, function.reduce(value, axis))
    if name in ("arith.addf", "arith.mulf"):
        np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-4)
    else:
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("operands", ["%old, %in", "%in, %old"])
@pytest.mark.parametrize("name", ["maxnumf", "minnumf"])
@pytest.mark.parametrize("row", ["nan nan", "nan -inf", "nan 3", "-0 0", "0 -0", "inf nan", "-5 nan", "-inf -inf"])
def test_extrema_of_what_is_rare(name, operands, row):
    value = np.tile(np.array(row.split(), np.float32), (1, 20))
    (first, one), (second, two) = whole(0, (1, 40), "f32"), whole(1, (1,), "f32")
    _, out = run(["f32", "f32"], f"""
  {first}
  {second}
  linalg.reduce ins(%m0 : {one}) outs(%m1 : {two}) dimensions = [1] (%in: f32, %old: f32) {{
    %new = arith.{name} {operands} : f32
    linalg.yield %new : f32
  }}""", [value, np.full(1, np.nan, np.float32)])  # fmt: skip
    expected = (np.fmax if name == "maxnumf" else np.fmin).reduce(value, 1)
    np.testing.assert_array_equal(out, expected)
    if not expected.any():
        assert np.signbit(out[0]) == (name == "minnumf")


def test_a_combination_whose_order_matters_is_done_in_order():
    value = RNG.standard_normal((3, 40), dtype=np.float32)
    (first, one), (second, two) = whole(0, (3, 40), "f32"), whole(1, (3,), "f32")
    _, out = run(["f32", "f32"], f"""
  {first}
  {second}
  %half = arith.constant 0.5 : f32
  linalg.reduce ins(%m0 : {one}) outs(%m1 : {two}) dimensions = [1] (%in: f32, %old: f32) {{
    %less = arith.mulf %old, %half : f32
    %new = arith.addf %less, %in : f32
    linalg.yield %new : f32
  }}""", [value, np.zeros(3, np.float32)])  # fmt: skip
    expected = np.zeros(3, np.float32)
    for column in value.T:
        expected = expected * np.float32(0.5) + column
    assert (out == expected).all()


def test_indices_and_elements_of_other_memory_in_a_body():
    (first, one), (second, two) = whole(0, (40,), "i32"), whole(1, (4, 40), "i32")
    value = RNG.integers(0, 40, 40).astype(np.int32)
    _, out = run(["i32", "i32"], f"""
  {first}
  {second}
  linalg.generic {{indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>],
                  iterator_types = ["parallel", "parallel"]}}
      ins(%m0 : {one}) outs(%m1 : {two}) {{
  ^bb0(%in: i32, %old: i32):
    %at = arith.index_cast %in : i32 to index
    %there = memref.load %m0[%at] : {one}
    %row = linalg.index 0 : index
    %column = linalg.index 1 : index
    %sum = arith.addi %row, %column : index
    %number = arith.index_cast %sum : index to i32
    %new = arith.addi %there, %number : i32
    linalg.yield %new : i32
  }}""", [value, np.zeros((4, 40), np.int32)])  # fmt: skip
    assert (out == value[value] + np.arange(4)[:, None] + np.arange(40)).all()


@pytest.mark.parametrize("sizes", [(4, 16, 3), (16, 64, 8), (17, 8, 5), (1, 1, 1), (64, 128, 32), (6, 80, 2)])
@pytest.mark.parametrize("types", ["f32 f32", "f16 f32", "bf16 f32", "i8 i32", "f64 f64", "f8E5M2 f32"])
def test_products(sizes, types):
    element, total = types.split()
    dtypes = {"bf16": ml_dtypes.bfloat16, "f64": np.float64, "f8E5M2": ml_dtypes.float8_e5m2, **DTYPES}
    M, N, K = sizes
    a, b, c = (
        RNG.integers(-3, 4, shape).astype(dtypes[each])
        for shape, each in (((M, K), element), ((K, N), element), ((M, N), total))
    )
    parts = [
        whole(number, each.shape, type_)
        for number, (each, type_) in enumerate(zip((a, b, c), (element, element, total), strict=True))
    ]
    lines = "\n  ".join(line for line, _ in parts)
    *_, out = run([element, element, total], f"""
  {lines}
  linalg.matmul ins(%m0, %m1 : {parts[0][1]}, {parts[1][1]}) outs(%m2 : {parts[2][1]})""",
        [a, b, c], arena=64)  # fmt: skip
    assert (out == c.astype(float) + a.astype(float) @ b.astype(float)).all()


def test_an_unknown_operation_is_refused_at_its_line():
    with pytest.raises(CompilationError, match=r"'memref\.dealloc' cannot be compiled for a CPU") as refused:
        run(["f32"], """
  %m = memref.alloc() {arena.offset = 0 : i64} : memref<4xf32>
  memref.dealloc %m : memref<4xf32>""", [np.zeros(1, np.float32)])  # fmt: skip
    assert refused.value.location is not None


def test_a_box_that_leaves_its_array_ends_a_program_that_checks():
    kernel = compiled_buffers("""func.func @k(%a: memref<*xf32>, %n: index, %x: i32, %y: i32, %z: i32)
    attributes {tt.program_ids = 3 : i32, arena.bytes = 0 : i64} {
  %o = arith.constant 1.0 : f32
  %i = arith.index_cast %x : i32 to index
  %m = memref.reinterpret_cast %a to offset: [%i], sizes: [%n], strides: [2]
      : memref<*xf32> to memref<?xf32, strided<[2], offset: ?>>
  linalg.fill ins(%o : f32) outs(%m : memref<?xf32, strided<[2], offset: ?>>)
  func.return
}""", checks=True)  # fmt: skip
    a = np.zeros(9, np.float32)
    assert kernel.run((1, 1, 1), [a, 5]) is None
    assert a.tolist() == [1, 0, 1, 0, 1, 0, 1, 0, 1]
    assert kernel.run((1, 1, 1), [a, 0]) is None
    site = kernel.run((2, 1, 1), [a, 5])
    assert (site.line, site.message) == (7, "access outside of its array")
    site = kernel.run((1, 1, 1), [a, 6])
    assert site.line == 7


def test_loops_end_in_their_conditions():
    """LLVM would turn loops with conditions at the head, in time that grows with the square of their number."""
    text = """func.func @k(%x: memref<*xf32>, %n: index, %i: i32, %j: i32, %k: i32)
    attributes {tt.program_ids = 3 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %zero = arith.constant 1.0 : f32
  %known = scf.for %a = %c0 to %c5 step %c1 iter_args(%s = %zero) -> (f32) {
    %t = arith.addf %s, %s : f32
    scf.yield %t : f32
  }
  %sum = scf.for %b = %c0 to %n step %c1 iter_args(%s = %known) -> (f32) {
    %t = arith.addf %s, %s : f32
    scf.yield %t : f32
  }
  %m = memref.reinterpret_cast %x to offset: [0], sizes: [1], strides: [1]
      : memref<*xf32> to memref<1xf32, strided<[1]>>
  affine.store %sum, %m[0] : memref<1xf32, strided<[1]>>
  func.return
}"""
    written, _ = llvm_module(parse_module(text), host(), checks=False)
    body = written[written.index('@"k.body"') : written.index("\n}")]
    loops = re.findall(r"^(\w+):\n(?:  .*\n)*?(  %\S+ = phi i64(?:.*\n)+?  br .*)$", body, re.MULTILINE)
    assert len(loops) == 2, body
    for label, block in loops:
        assert f"label %{label}, label" in block.splitlines()[-1], block
    for turns, expected in ((0, 32), (1, 64), (3, 256)):
        out = np.zeros(1, np.float32)
        assert compiled_buffers(text).run((1, 1, 1), [out, turns]) is None
        assert out[0] == expected
