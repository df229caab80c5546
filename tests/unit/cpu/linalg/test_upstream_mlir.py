"""Modules of the kind that a Triton kernel becomes, in upstream MLIR and in our interpreter: the numbers agree.

Upstream is LLVM 24 in the wheel `torch-mlir`, and `mlir-opt-19` of Debian; what asks one that is absent is skipped.
"""

from pathlib import Path

import numpy as np
import pytest
from ml_dtypes import bfloat16

from tests.oracle import upstream_mlir
from tests.oracle.upstream_mlir import MLIR_OPT_19, REASON, UpstreamError
from tlx_xdsl.cpu.linalg.for_upstream import ForUpstreamPass
from tlx_xdsl.runtime.simulate.interpret import interpret_text
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.profiles import mlir_profile

TEXTS = {path.stem: path for path in (Path(__file__).parent / "kernels").glob("*.mlir")}
OPERATIONS = Path(__file__).parents[3] / "filecheck/dialects/memory_ops.mlir"

needs_wheel = pytest.mark.skipif(REASON is not None, reason=str(REASON))
needs_19 = pytest.mark.skipif(MLIR_OPT_19 is None, reason="mlir-opt-19 is not installed (Debian: mlir-19-tools)")


def random(*shape, dtype=np.float32):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def row_softmax(x):
    powers = np.exp(x - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def vector_add():
    x, y = random(1000), random(1000)
    return (8, 1, 1), [x, y, np.full(1000, np.nan, np.float32), np.int32(1000)], x + y, 0


def softmax():
    x = random(20, 100)
    return (20, 1, 1), [x, np.full_like(x, np.nan), np.int32(100), np.int32(100)], row_softmax(x), 1e-7


def matmul():
    a, b, c = random(64, 48, dtype=np.float16), random(48, 96, dtype=np.float16), np.full((64, 96), np.nan, np.float32)
    return (2, 3, 1), [a, b, c, np.int32(96), np.int32(48)], a.astype(np.float32) @ b.astype(np.float32), 1e-5


def reduction():
    x = np.arange(128).astype(bfloat16)
    return (1, 1, 1), [x, np.zeros(1, bfloat16)], np.array([8128], bfloat16), 0


CASES = {each.__name__: each for each in (vector_add, softmax, matmul, reduction)}


def printed(path, release="newest", *passes):
    module = parse_module(path.read_text(), filename=str(path))
    for each in passes:
        each.run(module)
    return print_module(module, profile=mlir_profile(release))


def for_upstream(name):
    return printed(TEXTS[name], "newest", ForUpstreamPass())


def copies(arguments):
    return [each.copy() for each in arguments]


def last_array(arguments):
    return [each for each in arguments if each.ndim][-1]


@needs_wheel
@pytest.mark.parametrize("path", [*TEXTS.values(), OPERATIONS], ids=lambda path: path.stem)
def test_the_newest_llvm_reads_what_is_printed(path):
    upstream_mlir.check(printed(path))


@needs_19
@pytest.mark.parametrize("path", [*TEXTS.values(), OPERATIONS], ids=lambda path: path.stem)
def test_llvm_19_reads_what_is_printed_for_it(path):
    upstream_mlir.read_by_19(printed(path, "19"))


@needs_19
def test_llvm_19_refuses_the_newest_spelling():
    with pytest.raises(UpstreamError, match="custom op 'to' is unknown"):
        upstream_mlir.read_by_19(printed(OPERATIONS))


@pytest.mark.parametrize("name", CASES)
def test_the_interpreter_has_the_numbers_of_numpy(name):
    for text in (TEXTS[name].read_text(), for_upstream(name)):
        grid, arguments, expected, tolerance = CASES[name]()
        interpret_text(text, grid, arguments, filename=str(TEXTS[name]))
        np.testing.assert_allclose(last_array(arguments), expected, rtol=0, atol=tolerance)


@needs_wheel
@pytest.mark.parametrize("name", CASES)
def test_upstream_has_the_numbers_of_the_interpreter(name):
    grid, arguments, expected, tolerance = CASES[name]()
    found = upstream_mlir.run_kernel(for_upstream(name), name, grid, copies(arguments))[-1]
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
    interpret_text(TEXTS[name].read_text(), grid, arguments)
    np.testing.assert_allclose(last_array(arguments), found, rtol=0, atol=tolerance)


TILE_AND_FUSE = """
transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
  %maps = transform.structured.match ops{["linalg.generic"]} in %root : (!transform.any_op) -> !transform.any_op
  %powers, %ratios = transform.split_handle %maps : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %tiled, %loop = transform.structured.tile_using_forall %ratios tile_sizes [32]
    : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %fused, %fused_loop = transform.structured.fuse_into_containing_op %powers into %loop
    : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield
}
"""


@needs_wheel
def test_upstream_tiles_and_fuses_a_kernel():
    grid, arguments, expected, tolerance = softmax()
    text = upstream_mlir.transformed(for_upstream("softmax"), TILE_AND_FUSE)
    assert "scf.forall (%arg7) in (4)" in text
    inside = text[text.index("scf.forall") :]
    assert "math.exp" in inside
    assert "tensor<32xf32>" in inside
    found = upstream_mlir.run_kernel(text, "softmax", grid, arguments)[-1]
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


FUNCTIONAL = """
func.func @scaled(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %c: f32) -> tensor<4x4xf32> {
  %empty = tensor.empty() : tensor<4x4xf32>
  %begin = linalg.fill ins(%c : f32) outs(%empty : tensor<4x4xf32>) -> tensor<4x4xf32>
  %sum = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%begin : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %sum : tensor<4x4xf32>
}
"""


@needs_wheel
def test_a_functional_module_runs_there():
    a, b = random(4, 8), random(8, 4)
    (found,) = upstream_mlir.run_function(FUNCTIONAL, "scaled", [a, b, np.float32(2)], [np.zeros((4, 4), np.float32)])
    np.testing.assert_allclose(found, a @ b + 2, rtol=0, atol=1e-5)


UPDATES = """
func.func @updates(%p: memref<*xf32>, %q: memref<*xf32>, %x: i32, %y: i32, %z: i32) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %three = arith.constant 3.0 : f32
  %m = memref.reinterpret_cast %p to offset: [0], sizes: [2], strides: [1]
    : memref<*xf32> to memref<2xf32, strided<[1]>>
  %before = memref.reinterpret_cast %q to offset: [0], sizes: [2], strides: [1]
    : memref<*xf32> to memref<2xf32, strided<[1]>>
  %first = memref.atomic_rmw addf %three, %m[%zero] : (f32, memref<2xf32, strided<[1]>>) -> f32
  %second = memref.generic_atomic_rmw %m[%one] : memref<2xf32, strided<[1]>> {
  ^bb0(%current: f32):
    %product = arith.mulf %current, %three : f32
    memref.atomic_yield %product : f32
  }
  affine.store %first, %before[0] : memref<2xf32, strided<[1]>>
  affine.store %second, %before[1] : memref<2xf32, strided<[1]>>
  return
}
"""


def test_updates_give_what_was_there_before():
    p, q = np.array([1, 2], np.float32), np.zeros(2, np.float32)
    interpret_text(UPDATES, 1, [p, q])
    assert (p.tolist(), q.tolist()) == ([4, 6], [1, 2])


@needs_wheel
def test_upstream_gives_what_was_there_before():
    p, q = np.array([1, 2], np.float32), np.zeros(2, np.float32)
    p, q = upstream_mlir.run_kernel(UPDATES, "updates", (1, 1, 1), [p, q])
    assert (p.tolist(), q.tolist()) == ([4, 6], [1, 2])


@needs_wheel
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func @f( {", "expected"),
        ('func.func @f(%m: memref<4xf32>) { "memref.load"(%m) : (memref<4xf32>) -> f32 return }', "expected"),
    ],
)
def test_what_upstream_refuses_is_an_error(text, message):
    with pytest.raises(UpstreamError, match=message):
        upstream_mlir.check(text)
