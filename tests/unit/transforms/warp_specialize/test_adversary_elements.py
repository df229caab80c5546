"""Element types at which a naive specialisation errs: products of integers, sums of fp8 in f32, loaded indices."""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl import TensorDescriptor
from tlx_xdsl.runtime.specialize.specialized import warp_specialized

B = 64
PASSES = ["after:frontend=tlx-ws-form-tasks{depth=2}", "after:frontend=tlx-ws-prefetch-loads"]
PASSES += ["after:frontend=tlx-ws-async-dots"]


def product(a, b, out, K, imprecise: tl.constexpr, element: tl.constexpr, B: tl.constexpr):
    rows = tl.arange(0, B)
    acc = tl.zeros((B, B), element)
    for k in range(0, K, B):
        x, y = a.load([0, k]), b.load([0, k])
        acc = tl.dot(x, tl.trans(y), acc, max_num_imprecise_acc=imprecise, out_dtype=element)
        # A second product of the same slot, in flight before the first one of the next.
        acc = tl.dot(y, tl.trans(x), acc, out_dtype=element)
    tl.store(out + rows[:, None] * B + rows[None, :], acc)


def gathered(a, b, out, K, scales, B: tl.constexpr):
    """Places of scales that come through a ring: they can't be asked for a turn ahead."""
    rows = tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        acc += tl.dot(a.load([0, k]), tl.trans(a.load([0, k]))) * tl.load(scales + b.load([k]))[:, None]
    tl.store(out + rows[:, None] * B + rows[None, :], acc)


def both(fn, values, **constants):
    """Return the results that the plain and the specialised kernel store."""
    found = []
    for passes, stage in (((), "frontend"), (PASSES, "ttgir")):
        args = values()
        tlx_xdsl.jit(fn, passes=passes).interpret((1,), *args, B=B, stage=stage, **constants)
        found.append(args[2])
    return found


@pytest.mark.parametrize(("kind", "imprecise"), [("int8", None), ("fp8", None), ("fp8", 32)])
def test_products_of_a_byte(kind, imprecise):
    def values():
        random = np.random.default_rng(0)
        numbers = [random.integers(-3, 4, (B, 192)) for _ in range(2)]
        if kind == "int8":
            arrays, out = [each.astype(np.int8) for each in numbers], np.zeros((B, B), np.int32)
        else:
            ml_dtypes = pytest.importorskip("ml_dtypes")
            arrays, out = [each.astype(ml_dtypes.float8_e4m3fn) for each in numbers], np.zeros((B, B), np.float32)
        return *(TensorDescriptor.from_tensor(each, [B, B]) for each in arrays), out, 192

    expected, found = both(
        fn=product, values=values, imprecise=imprecise, element=tl.int32 if kind == "int8" else tl.float32
    )
    np.testing.assert_array_equal(found, expected)


def test_an_index_that_comes_through_a_ring():
    def values():
        random = np.random.default_rng(0)
        a, places = random.standard_normal((B, 192)).astype(np.float16), random.integers(0, 99, 192).astype(np.int32)
        described = TensorDescriptor.from_tensor(a, [B, B]), TensorDescriptor.from_tensor(places, [B])
        return *described, np.zeros((B, B), np.float32), 192, random.standard_normal(99).astype(np.float32)

    expected, found = both(gathered, values)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("limit", [None, 32, 64])
def test_a_limit_of_sums_in_the_tensor_cores_is_kept(limit):
    """`tlx.async_dot` has no such limit, so that product stays `tl.dot`, and the other one does not."""
    block = f"tensordesc<fp8e4nv[{B}, {B}]>"
    types = {"a": block, "b": block, "out": "*fp32:16", "K": "i32"}
    found = warp_specialized(tlx_xdsl.jit(product), types, {"imprecise": limit, "element": tl.float32, "B": B})
    assert found.source.count(f"max_num_imprecise_acc={limit}") == (limit is not None)
    assert found.source.count("tlx.async_dot(") == (1 if limit else 2)
