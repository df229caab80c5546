"""Products by instructions that multiply neighbours along the depth, against numpy and against those without them."""

# covers: target.cpu

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit import volume
from tests.unit.cpu.codegen.native import Guarded, Native, bufferized
from tlx_xdsl.cpu.codegen.host import Features, Host, host
from tlx_xdsl.cpu.codegen.llvm import load, optimized
from tlx_xdsl.cpu.codegen.module import CpuObject, llvm_module
from tlx_xdsl.cpu.runtime.linalg import plain_module
from tlx_xdsl.frontend.python.foreign import source_of
from tlx_xdsl.runtime.driver.compilation import Specialization

LINUX = "x86_64-unknown-linux-gnu"
ON_AVX512 = Features(True, 64, 32, bf16_products=True, byte_products=True)


@tlx_xdsl.jit
def product(
    a, b, c, depth, row, column, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BYTES: tl.constexpr
):  # fmt: skip
    """`row` and `column` are B's strides; elements beyond the depth are 1 in A and 0 in B."""
    rows, columns, at = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    total = tl.zeros((M, N), tl.int32 if BYTES else tl.float32)
    for k in range(0, depth, K):
        inside = k + at < depth
        x = tl.load(a + rows[:, None] * depth + (k + at)[None, :], mask=inside[None, :], other=1)
        y = tl.load(b + (k + at)[:, None] * row + columns[None, :] * column, mask=inside[:, None], other=0)
        total = tl.dot(x, y, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total)


def module_of(element, m, n, k):
    of_c = "i32" if element == "i8" else "fp32"
    signature = {"a": f"*{element}", "b": f"*{element}", "c": f"*{of_c}"}
    signature |= dict.fromkeys(("depth", "row", "column"), "i32")
    constants = {"M": m, "N": n, "K": k, "BYTES": element == "i8"}
    return bufferized(plain_module(source_of(product), Specialization(signature, constants)))


def made(target, element, m=32, n=64, k=32):
    text, metadata = llvm_module(module_of(element, m, n, k), target, checks=False)
    return optimized(text, target=target), metadata


def with_features(**features):
    return replace(host(), features=replace(host().features, **features))


def run(target, element, a, b, m, n, k, *, turned=False):
    compiled, metadata = made(target, element, m, n, k)
    code = compiled.object_code()
    kernel = Native(CpuObject(code, metadata), load(code, metadata.symbol, dict.fromkeys(metadata.symbols)))
    c = np.zeros((m, n), np.int32 if element == "i8" else np.float32)
    x, y, z = (Guarded(each).array for each in (a, np.ascontiguousarray(b.T) if turned else b, c))
    depth = a.shape[1]
    assert kernel.run((1, 1, 1), [x, y, z, depth, 1 if turned else n, depth if turned else 1]) is None
    return z


def needs(*features):
    held = all(host().has(each) for each in features)
    return pytest.mark.skipif(not held, reason=f"this CPU has not all of {', '.join(features)}")


SHAPES = [(128, 128, 64, 192), (16, 16, 32, 40), (32, 8, 32, 33)] + (
    [(2, 64, 32, 64), (16, 4, 64, 17)] if volume.is_full() else []
)
"""Rows, columns, the depth of a tile, and the whole depth: some tiles are masked, and some vectors are short."""


@needs("avx512vnni", "avx512vl")
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("m", "n", "k", "depth"), SHAPES)
def test_products_of_bytes_are_exact(m, n, k, depth, turned):
    rng = np.random.default_rng(depth)
    a, b = (rng.integers(-128, 128, size).astype(np.int8) for size in ((m, depth), (depth, n)))
    a[0], b[:, 0] = -128, -128
    found = run(with_features(byte_products=True), "i8", a, b, m, n, k, turned=turned)
    assert (found == a.astype(np.int64) @ b.astype(np.int64)).all()


@needs("avxvnni", "avx2")
def test_products_of_bytes_in_256_bits():
    fewer = ",".join(each for each in host().attributes.split(",") if "avx512" not in each and "avx10" not in each)
    target = Host(host().triple, "x86-64-v3", f"{fewer},+avxvnni", Features(True, 32, 16, byte_products=True))
    a, b = (np.random.default_rng(1).integers(-128, 128, size).astype(np.int8) for size in ((16, 64), (64, 32)))
    text = made(target, "i8", 16, 32, 64)[0].assembly()
    assert "vpdpbusd" in text
    assert "%zmm" not in text
    assert (run(target, "i8", a, b, 16, 32, 64) == a.astype(np.int64) @ b.astype(np.int64)).all()


def halves(m, n, depth, scale=1.0):
    rng = np.random.default_rng(depth)
    return (
        (rng.standard_normal(size) * scale).astype(ml_dtypes.bfloat16) for size in ((m, depth), (depth, n))
    )  # fmt: skip


@needs("avx512bf16", "avx512vl")
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("m", "n", "k", "depth"), [each for each in SHAPES if each[3] % 2 == 0])
def test_products_of_bf16_round_each_addition_once(m, n, k, depth, turned):
    a, b = halves(m, n, depth)
    found = run(with_features(bf16_products=True), "bf16", a, b, m, n, k, turned=turned)
    wide = a.astype(float), b.astype(float)
    # Each of the additions rounds by half a unit of a sum that is no larger than that of the magnitudes.
    bound = depth * 2.0**-24 * (np.abs(wide[0]) @ np.abs(wide[1]))
    assert (np.abs(found - wide[0] @ wide[1]) <= bound).all()
    if not host().cpu.startswith("znver"):
        # Seen on Intel's.
        plain = run(with_features(bf16_products=False), "bf16", a, b, m, n, k, turned=turned)
        assert (found.view(np.int32) == plain.view(np.int32)).all()


@needs("avx512bf16", "avx512vl")
def test_subnormal_sums_of_bf16_are_zero_in_the_instruction_alone():
    a, b = halves(16, 16, 32, 1e-20)
    plain = run(with_features(bf16_products=False), "bf16", a, b, 16, 16, 32)
    assert (np.abs(plain) < np.finfo(np.float32).tiny).all()
    assert plain.any()
    assert not run(with_features(bf16_products=True), "bf16", a, b, 16, 16, 32).any()


@pytest.mark.parametrize(
    ("element", "cpu", "instruction"),
    [("bf16", "znver4", "vdpbf16ps"), ("bf16", "znver5", "vdpbf16ps"), ("i8", "icelake-server", "vpdpbusd")],
)
def test_cpus_that_have_an_instruction_get_it(element, cpu, instruction):
    target = Host(LINUX, cpu, "", ON_AVX512)
    assert made(target, element)[0].assembly().count(instruction) > 8
    for other in ("vdpbf16ps", "vpdpbusd"):
        assert other not in made(replace(target, features=Features(True, 64, 32)), element)[0].assembly()


def test_an_odd_shape_keeps_the_products_of_wide_elements():
    assert "vpdpbusd" not in made(Host(LINUX, "znver4", "", ON_AVX512), "i8", 16, 2)[0].assembly()


@pytest.mark.quick
@pytest.mark.parametrize(
    ("cpu", "names", "bf16", "in_bytes"),
    [
        ("znver4", ("avx512f", "avx512bf16", "avx512vnni"), True, True),
        ("znver5", ("avx512f", "avx512bf16", "avx512vnni", "avxvnni"), True, True),
        ("emeraldrapids", ("avx512f", "avx512bf16", "avx512vnni", "avxvnni"), False, True),
        ("znver3", ("avx2",), False, False),
        ("alderlake", ("avx2", "avxvnni"), False, True),
        ("skylake-avx512", ("avx512f",), False, False),
    ],
)
def test_what_a_cpu_is_asked_for(cpu, names, bf16, in_bytes):
    found = Features.of(dict.fromkeys(names, True), LINUX, cpu)
    assert (found.bf16_products, found.byte_products) == (bf16, in_bytes)
