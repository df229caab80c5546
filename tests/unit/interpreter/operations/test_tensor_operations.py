"""Operations that rearrange tensors, where the oracle's kernels do not look."""

# covers: tt.shape, tt.joining, tt.reduce, tl.shape

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.interpreter.functions import apply, call, function
from tlx_xdsl.interpreter.faults import Fault

pytestmark = pytest.mark.quick

RNG = np.random.default_rng(11)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_numbers_without_a_bin_count_nowhere(dtype: type) -> None:
    values = RNG.integers(-20, 40, 256).astype(dtype)
    spelled = f"i{8 * values.dtype.itemsize}"
    found = apply(f"tt.histogram %0 : T<{spelled}> -> tensor<16xi32>", values, types=f"T<{spelled}>",
                  result="tensor<16xi32>")  # fmt: skip
    assert found.tolist() == [int((values == number).sum()) for number in range(16)]


def test_a_gather_along_an_axis_may_be_smaller_beside_it() -> None:
    source = RNG.standard_normal((8, 4)).astype(np.float32)
    indices = RNG.integers(0, 8, (16, 2)).astype(np.int32)
    text = function(
        """
    %r = tt.gather %0[%1] {axis = 0 : i32} : (tensor<8x4xf32>, tensor<16x2xi32>) -> tensor<16x2xf32>
    tt.return %r : tensor<16x2xf32>""",
        "%0: tensor<8x4xf32>, %1: tensor<16x2xi32>",
        "tensor<16x2xf32>",
    )
    expected = [[source[indices[i, j], j] for j in range(2)] for i in range(16)]
    np.testing.assert_array_equal(call(text, source, indices), expected)


def test_halves_and_wholes() -> None:
    a, b = RNG.standard_normal((2, 8)).astype(np.float32)
    joined = apply("tt.join %0, %1 : T<f32> -> tensor<8x2xf32>", a, b, types="T<f32>; T<f32>", result="tensor<8x2xf32>")
    np.testing.assert_array_equal(joined, np.stack((a, b), 1))
    both = apply("tt.cat %0, %1 : T<f32> -> tensor<16xf32>", a, b, types="T<f32>; T<f32>", result="tensor<16xf32>")
    np.testing.assert_array_equal(both, np.concatenate((a, b)))
    text = function("    %r = tt.unsplat %0 : tensor<1x1xf32>\n    tt.return %r : f32", "%0: tensor<1x1xf32>", "f32")
    assert call(text, a[:1].reshape(1, 1)) == a[0]


def test_what_is_held_once_is_never_written() -> None:
    # Constants, ranges and broadcasts are shared between runs.
    text = function(
        """
    %r = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
    %c = arith.constant dense<3> : tensor<8xi32>
    %s = arith.addi %r, %c : tensor<8xi32>
    tt.return %r, %c, %s : tensor<8xi32>, tensor<8xi32>, tensor<8xi32>""",
        "",
        "(tensor<8xi32>, tensor<8xi32>, tensor<8xi32>)",
    )
    for _ in range(2):
        held, constant, total = call(text)
        assert (held.tolist(), constant.tolist(), total.tolist()) == (
            list(range(8)), [3] * 8, list(range(3, 11)),
        )  # fmt: skip


def test_a_layout_conversion_keeps_numbers() -> None:
    values = RNG.standard_normal(64).astype(np.float16)
    layouts = [f"#ttg.blocked<{{sizePerThread = [{n}], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}}>"
               for n in (1, 2)]  # fmt: skip
    text = f"""#a = {layouts[0]}
#b = {layouts[1]}
module attributes {{"ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @f(%0: tensor<64xf16, #a>) -> tensor<64xf16, #b> {{
    %r = ttg.convert_layout %0 : tensor<64xf16, #a> -> tensor<64xf16, #b>
    tt.return %r : tensor<64xf16, #b>
  }}
}}
"""
    np.testing.assert_array_equal(call(text, values), values)


def test_an_index_outside_of_the_source_names_its_place() -> None:
    source, indices = np.zeros(4, np.float32), np.array([0, 1, 4, 2], np.int32)
    with pytest.raises(Fault, match=r"index 4 \(element \[2\] of the indices\) is outside of the 4 elements"):
        apply("tt.gather %0[%1] {axis = 0 : i32} : (T<f32>, T<i32>) -> T<f32>", source, indices,
              types="T<f32>; T<i32>", result="T<f32>")  # fmt: skip


@pytest.mark.parametrize("name", ["reduce", "scan"])
def test_a_combination_may_make_a_tensor_that_nothing_uses(name: str) -> None:
    # So inductor asks for the type of a number: `(x + tl.zeros((1,), tl.int1)).dtype`.
    result, more = ("tensor<8xf32>", "") if name == "reduce" else ("tensor<8x4xf32>", ", reverse = false")
    text = function(
        f"""
    %r = "tt.{name}"(%0) <{{axis = 1 : i32{more}}}> ({{
    ^bb0(%a: f32, %b: f32):
      %z = arith.constant dense<0.0> : tensor<1xf32>
      %s = tt.splat %a : f32 -> tensor<1xf32>
      %t = arith.addf %s, %z : tensor<1xf32>
      %m = arith.minimumf %a, %b : f32
      tt.{name}.return %m : f32
    }}) : (tensor<8x4xf32>) -> {result}
    tt.return %r : {result}""",
        "%0: tensor<8x4xf32>",
        result,
    )
    values = RNG.standard_normal((8, 4)).astype(np.float32)
    expected = values.min(1) if name == "reduce" else np.minimum.accumulate(values, 1)
    np.testing.assert_array_equal(call(text, values), expected)
