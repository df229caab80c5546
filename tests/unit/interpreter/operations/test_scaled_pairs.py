"""Products of pairs of CTAs of 8-bit and 4-bit elements, with and without block scales, as they are compiled."""

# covers: tlx.mma, tlx-lower-pair-products

import re

import ml_dtypes
import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.unit.transforms.nvidia.test_scales_in_shared_memory import lines
from tests.unit.volume import is_full
from tests.versions import INSTALLED
from tlx_xdsl import CompilationError, TensorDescriptor
from tlx_xdsl.numerics.matmul import unpack_e2m1
from tlx_xdsl.runtime.build import compile_kernel
from tlx_xdsl.runtime.driver.compilation import Specialization
from tlx_xdsl.text.profiles import parse_version

ROWS = 128
BITS = {"e4m3": 8, "e5m2": 8, "e2m1": 4}
FLOATS = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


@tlx_xdsl.jit
def pair_product(
    a_desc, b_desc, as_desc, bs_desc, c_ptr, N: tl.constexpr, BYTES: tl.constexpr, WORDS: tl.constexpr,
    LEFT: tl.constexpr, RIGHT: tl.constexpr, SCALES: tl.constexpr, FORM: tl.constexpr = "",
):  # fmt: skip
    """A pair multiplies 256 x K and K x N elements in `BYTES` along K, with `WORDS` words of four scales a row."""
    rank = tlx.cluster_cta_rank()
    a = tlx.local_alloc((128, BYTES), tlx.dtype_of(a_desc), 1)
    b = tlx.local_alloc((N // 2, BYTES), tlx.dtype_of(b_desc), 1)
    acc = tlx.local_alloc((128, N), tl.float32, 1, tlx.storage_kind.tmem)
    full, done = tlx.alloc_barriers(1), tlx.alloc_barriers(1)
    both = tlx.alloc_barriers(1, arrive_count=2)
    tlx.cluster_barrier()
    tlx.barrier_expect_bytes(full[0], (128 + N // 2) * BYTES + (128 + N) * 4 * WORDS)
    tlx.async_descriptor_load(a_desc, a[0], [rank * 128, 0], full[0])
    tlx.async_descriptor_load(b_desc, b[0], [rank * N // 2, 0], full[0])
    if WORDS:
        a_scale = tlx.local_alloc((1, 1, WORDS, 2, 256), SCALES, 1)
        b_scale = tlx.local_alloc((1, N // 128, WORDS, 2, 256), SCALES, 1)
        tlx.async_descriptor_load(as_desc, a_scale[0], [0, rank, 0, 0, 0], full[0])
        tlx.async_descriptor_load(bs_desc, b_scale[0], [0, 0, 0, 0, 0], full[0])
    tlx.barrier_wait(full[0], 0)
    if FORM != "no meeting":
        tlx.barrier_arrive(both[0], 1, remote_cta_rank=0)
        tlx.barrier_wait(both[0], 0, pred=rank == 0)
    if WORDS:
        if FORM == "half of the scales":
            b_scale = tlx.local_alloc((N // 2, 4 * WORDS), SCALES, 1, tlx.storage_kind.tmem)
        tlx.async_dot_scaled(
            a[0], tlx.local_trans(b[0]), acc[0], a_scale[0], LEFT, b_scale[0], RIGHT, use_acc=False,
            mBarriers=[done[0]], two_ctas=True,
        )  # fmt: skip
    else:
        tlx.async_dot(
            a[0], tlx.local_trans(b[0]), acc[0], use_acc=False, pred=rank == 0, mBarriers=[done[0]], two_ctas=True
        )
    tlx.barrier_wait(done[0], 0)
    rows, columns = rank * 128 + tl.arange(0, 128)[:, None], tl.arange(0, N)[None, :]
    tl.store(c_ptr + rows * N + columns, tlx.local_load(acc[0]))
    tlx.cluster_barrier()


def operand(rng, kind, rows, size):
    """An operand of `size` bytes a row, and its elements as f32."""
    if kind == "e2m1":
        packed = rng.integers(0, 256, (rows, size), dtype=np.uint8)
        return packed, unpack_e2m1(packed, 1)
    values = rng.integers(-4, 5, (rows, size)).astype(FLOATS[kind])
    return values, values.astype(np.float32)


def run(left, right, scales, n, size, form="", **options):
    """The product, and the one expected; `scales` are None, bytes of e8m0 or floats."""
    rng = np.random.default_rng(5)
    (a, a_values), (b, b_values) = operand(rng, left, 2 * ROWS, size), operand(rng, right, n, size)
    c, k = np.zeros((2 * ROWS, n), np.float32), a_values.shape[1]
    words = 0 if scales is None else k // (4 * (16 if scales is tl.float8e4nv else 32))
    as_desc = bs_desc = TensorDescriptor.from_tensor(np.zeros((1, 1, 1, 2, 256), np.uint8), [1, 1, 1, 2, 256])
    if words:
        found = [2.0 ** rng.integers(-3, 4, (rows, 4 * words)) for rows in (2 * ROWS, n)]
        as_type = ml_dtypes.float8_e4m3fn if scales is tl.float8e4nv else ml_dtypes.float8_e8m0fnu
        stored = [lines(x.astype(as_type)) for x in found]
        if as_type is ml_dtypes.float8_e8m0fnu:
            stored = [x.view(np.uint8) for x in stored]
        as_desc = TensorDescriptor.from_tensor(stored[0], [1, 1, words, 2, 256])
        bs_desc = TensorDescriptor.from_tensor(stored[1], [1, n // 128, words, 2, 256])
        a_values, b_values = (
            values * np.repeat(x, k // (4 * words), 1)
            for values, x in zip((a_values, b_values), found, strict=True)
        )  # fmt: skip
    tlx_xdsl.interpret(
        pair_product, 2, TensorDescriptor.from_tensor(a, [ROWS, size]),
        TensorDescriptor.from_tensor(b, [n // 2, size]), as_desc, bs_desc, c, n, size, words, left, right, scales, form,
        target="sm_100a", cluster=(2, 1, 1), jobs=1, **options,
    )  # fmt: skip
    return c, a_values @ b_values.T


@pytest.mark.parametrize("stage", ["frontend", "ttgir"])
@pytest.mark.parametrize(
    ("left", "right", "scales", "n", "size"),
    [
        ("e4m3", "e5m2", tl.uint8, 256, 256),
        ("e5m2", "e4m3", tl.uint8, 128, 128),
        ("e2m1", "e2m1", tl.uint8, 256, 128),
        ("e2m1", "e2m1", tl.float8e4nv, 128, 128),
        ("e4m3", "e5m2", None, 64, 128),
    ],
)
def test_products_of_pairs(left, right, scales, n, size, stage):
    found, expected = run(left, right, scales, n, size, stage=stage)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("stage", ["frontend", "ttgir"])
def test_a_copy_of_scales_takes_those_of_both_ctas(stage):
    # The even CTA issues it for both, and nothing says to it that the scales of the odd one have come.
    with pytest.raises(CompilationError, match="of CTA 1"):
        run("e4m3", "e4m3", tl.uint8, 128, 128, "no meeting", stage=stage, schedule="adversarial")


def test_each_cta_needs_the_scales_of_all_columns():
    with pytest.raises(CompilationError, match="128 x 4 scales of B in the tensor memory of each CTA"):
        run("e4m3", "e4m3", tl.uint8, 128, 128, "half of the scales", stage="ttgir")


PRODUCTS = (
    (("fp8e4nv", "fp8e5"), ("e4m3", "e5m2"), "u8", "mxf8f6f4.block_scale.scale_vec::1X"),
    (("u8", "u8"), ("e2m1", "e2m1"), "fp8e4nv", "mxf4nvf4.block_scale.scale_vec::4X"),
    (("u8", "u8"), ("e2m1", "e2m1"), "u8", "mxf4.block_scale.scale_vec::2X"),
    (("fp8e4nv", "fp8e5"), ("e4m3", "e5m2"), None, "f8f6f4"),
)


@pytest.mark.backend
@pytest.mark.parametrize(("elements", "names", "scales", "kind"), PRODUCTS if is_full() else PRODUCTS[:2])
def test_device_code(elements, names, scales, kind):
    if parse_version(INSTALLED) < (3, 8):
        pytest.skip("no memory for pairs")
    words = {None: 0, "u8": 1 if names[0] != "e2m1" else 2, "fp8e4nv": 4}[scales]
    as_block, bs_block = f"[1, 1, {max(words, 1)}, 2, 256]", f"[1, 2, {max(words, 1)}, 2, 256]"
    signature = {
        "a_desc": f"tensordesc<{elements[0]}[128, 128]>",
        "b_desc": f"tensordesc<{elements[1]}[128, 128]>",
        "as_desc": f"tensordesc<{scales or 'u8'}{as_block}>",
        "bs_desc": f"tensordesc<{scales or 'u8'}{bs_block}>",
        "c_ptr": "*fp32",
    }
    constants = {
        "N": 256, "BYTES": 128, "WORDS": words, "LEFT": names[0], "RIGHT": names[1],
        "SCALES": tl.float8e4nv if scales == "fp8e4nv" else tl.uint8,
    }  # fmt: skip
    ptx = compile_kernel(pair_product, Specialization(signature, constants, "sm_100a", cluster=(2, 1, 1))).ptx
    assert f"tcgen05.mma.cta_group::2.kind::{kind} " in ptx
    assert ("tcgen05.cp.cta_group::2.32x128b.warpx4" in ptx) == bool(words)
    assert not re.search(r"tcgen05[\w.:]*cta_group::1", ptx)
