"""Operations of `linalg` and `tensor` that passes do not make, and what is wrong in their use."""

import numpy as np
import pytest

from tests.unit.cpu.linalg.functions import results_of
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.simulate.interpret import interpret_text
from tlx_xdsl.text.parser import parse_module


def run(text, *arguments):
    return results_of(parse_module(text), *arguments)


def function(arguments, results, body):
    return f"func.func @f({arguments}) -> ({results}) {{\n{body}\n}}"


def counted(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


MAPS = {
    "turned": ("(d0, d1)", "(d1, d0)", (3, 2), lambda x: x.T),
    "repeated": ("(d0, d1)", "(d1)", (3,), lambda x: np.stack([x, x])),
    "every_second": ("(d0, d1)", "(d0 * 2, d1)", (3, 3), lambda x: x[::2]),
    "shared": ("(d0, d1)", "(d1 floordiv 2)", (2,), lambda x: np.stack([x.repeat(2)[:3]] * 2)),
}


@pytest.mark.parametrize("name", MAPS)
def test_inputs_by_affine_maps(name):
    dims, places, shape, expected = MAPS[name]
    type_ = f"tensor<{'x'.join(map(str, shape))}xf32>"
    body = f"""
      %e = tensor.empty() : tensor<2x3xf32>
      %r = linalg.generic {{indexing_maps = [affine_map<{dims} -> {places}>, affine_map<{dims} -> {dims}>],
          iterator_types = ["parallel", "parallel"]}} ins(%x : {type_}) outs(%e : tensor<2x3xf32>) {{
      ^bb0(%a: f32, %b: f32):
        linalg.yield %a : f32
      }} -> tensor<2x3xf32>
      return %r : tensor<2x3xf32>"""
    given = counted(*shape)
    (found,) = run(function(f"%x: {type_}", "tensor<2x3xf32>", body), given)
    np.testing.assert_array_equal(found, expected(given))


def test_reduced_dimensions_run_in_their_order():
    """A body that is not associative shows the order; its result is written by a map of its own."""
    body = """
      %r = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>,
          affine_map<(d0, d1, d2) -> (d1, d0)>], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x : tensor<2x3x4xf32>) outs(%y : tensor<3x2xf32>) {
      ^bb0(%a: f32, %b: f32):
        %i = linalg.index 2 : index
        %n = arith.index_cast %i : index to i32
        %f = arith.sitofp %n : i32 to f32
        %p = arith.mulf %b, %f : f32
        %s = arith.subf %a, %p : f32
        linalg.yield %s : f32
      } -> tensor<3x2xf32>
      return %r : tensor<3x2xf32>"""
    x, y = counted(2, 3, 4), counted(3, 2)
    (found,) = run(function("%x: tensor<2x3x4xf32>, %y: tensor<3x2xf32>", "tensor<3x2xf32>", body), x, y)
    expected = y.T.copy()
    for number in range(4):
        expected = x[..., number] - expected * number
    np.testing.assert_array_equal(found, expected.T)


def test_products_in_narrow_types_are_rounded_in_each_step():
    body = """
      %r = linalg.matmul ins(%x, %x : tensor<4x4xf16>, tensor<4x4xf16>) outs(%y : tensor<4x4xf16>) -> tensor<4x4xf16>
      return %r : tensor<4x4xf16>"""
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((4, 4)).astype(np.float16) for _ in range(2))
    (found,) = run(function("%x: tensor<4x4xf16>, %y: tensor<4x4xf16>", "tensor<4x4xf16>", body), x, y)
    expected = y.copy()
    for number in range(4):
        expected = expected + x[:, number, None] * x[None, number]
    np.testing.assert_array_equal(found, expected)


def test_sums_of_floats_are_added_in_their_order():
    body = """
      %r = linalg.reduce { arith.addf } ins(%x : tensor<3x64xf32>) outs(%y : tensor<3xf32>) dimensions = [1]
      return %r : tensor<3xf32>"""
    x = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)
    y = np.full(3, 100, np.float32)
    (found,) = run(function("%x: tensor<3x64xf32>, %y: tensor<3xf32>", "tensor<3xf32>", body), x, y)
    expected = y
    for number in range(64):
        expected = expected + x[:, number]
    np.testing.assert_array_equal(found, expected)


def test_operations_on_memory():
    text = """
    tt.func public @kernel(%x: !tt.ptr<f32>) {
      %m = builtin.unrealized_conversion_cast %x : !tt.ptr<f32> to memref<*xf32>
      %r = memref.reinterpret_cast %m to offset: [1], sizes: [3, 2], strides: [2, 1]
        : memref<*xf32> to memref<3x2xf32, strided<[2, 1], offset: 1>>
      %a = memref.alloc() : memref<3x2xf32>
      %c = arith.constant 3.0 : f32
      linalg.fill ins(%c : f32) outs(%a : memref<3x2xf32>)
      linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>],
          iterator_types = ["parallel", "parallel"]}
          ins(%a : memref<3x2xf32>) outs(%r : memref<3x2xf32, strided<[2, 1], offset: 1>>) {
      ^bb0(%p: f32, %q: f32):
        %s = arith.addf %p, %q : f32
        linalg.yield %s : f32
      }
      tt.return
    }"""
    x = counted(8)
    interpret_text(text, (1,), [x])
    np.testing.assert_array_equal(x, counted(8) + np.array([0, *[3] * 6, 0]))


def test_shapes_and_slices():
    body = """
      %0 = tensor.extract_slice %x[%n, 0] [2, 3] [1, 2] : tensor<4x6xf32> to tensor<2x3xf32>
      %1 = tensor.insert_slice %0 into %x[0, 0] [2, 3] [2, 1] : tensor<2x3xf32> into tensor<4x6xf32>
      %2 = tensor.concat dim(0) %1, %x : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
      %s = arith.constant dense<[3, 16]> : tensor<2xi32>
      %3 = tensor.reshape %2(%s) : (tensor<8x6xf32>, tensor<2xi32>) -> tensor<3x16xf32>
      %f = tensor.extract %x[%n, %n] : tensor<4x6xf32>
      %4 = tensor.from_elements %f, %f : tensor<2xf32>
      %5 = tensor.splat %f : tensor<2xf32>
      return %3, %4, %5 : tensor<3x16xf32>, tensor<2xf32>, tensor<2xf32>"""
    x = counted(4, 6)
    text = function("%x: tensor<4x6xf32>, %n: index", "tensor<3x16xf32>, tensor<2xf32>, tensor<2xf32>", body)
    found = run(text, x, np.int64(1))
    changed = x.copy()
    changed[:3:2, :3] = x[1:3, ::2]
    np.testing.assert_array_equal(found[0], np.concatenate((changed, x)).reshape(3, 16))
    np.testing.assert_array_equal(found[1], [7, 7])
    np.testing.assert_array_equal(found[2], [7, 7])


OUTSIDE = {
    "%0 = tensor.extract %x[%n] : tensor<4xf32>": "index 4 is outside of the 4 elements of dimension 0",
    "%0 = tensor.insert %f into %x[%n] : tensor<4xf32>": "index 4 is outside of the 4 elements of dimension 0",
    "%0 = tensor.extract_slice %x[%n] [2] [1] : tensor<4xf32> to tensor<2xf32>":
        "elements 4 to 5 are not inside of the 4 elements of dimension 0",
}  # fmt: skip


@pytest.mark.parametrize("operation", OUTSIDE)
def test_indices_outside_are_faults(operation):
    text = function("%x: tensor<4xf32>, %n: index, %f: f32", "", f"{operation}\nreturn")
    with pytest.raises(CompilationError, match=OUTSIDE[operation]):
        run(text, counted(4), np.int64(4), np.float32(1))


def test_a_function_without_a_body_that_no_library_has_is_a_fault():
    text = "func.func private @own(f32) -> f32\n" + function(
        "%x: f32", "f32", "%0 = func.call @own(%x) : (f32) -> f32\nreturn %0 : f32"
    )
    with pytest.raises(CompilationError, match="'@own' has no body"):
        run(text, np.float32(1))
