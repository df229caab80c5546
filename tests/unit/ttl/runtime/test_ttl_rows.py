"""Row-major tensors that are computed with: rows become tiles and tiles rows, on all machines, against numpy."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import tlx_xdsl.ttl.language as ttl
from tests.unit.ttl.metalium.metalium_programs import needs_compiler
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.ttl.frontend import compile_kernel as frontend
from tlx_xdsl.ttl.interpreter.ttkernel import run as run_plan
from tlx_xdsl.ttl.language.kernel import Kernel
from tlx_xdsl.ttl.runtime import MACHINES, compile_kernel, run
from tlx_xdsl.ttl.runtime.execution import run_cpp
from tlx_xdsl.ttl.transforms.pipeline import ttl_pipeline

DTYPES = [np.float32, ml_dtypes.bfloat16]


@ttl.kernel(grid=(2, 1), tiled=False)
def fused(x, y, out):
    """Compute relu(x * y) + x, of which each core has some rows."""
    rows, columns = x.shape
    x_cb = ttl.make_circular_buffer_like(x, shape=(32, columns))
    y_cb = ttl.make_circular_buffer_like(y, shape=(32, columns))
    o_cb = ttl.make_circular_buffer_like(out, shape=(32, columns))
    each = rows // 2

    @ttl.datamovement()
    def read():
        core, _ = ttl.core(dims=2)
        for r in range(0, each, 32):
            with x_cb.reserve() as a, y_cb.reserve() as b:
                ttl.copy(x[core * each + r : core * each + r + 32, :], a).wait()
                ttl.copy(y[core * each + r : core * each + r + 32, :], b).wait()

    @ttl.compute()
    def compute():
        for _ in range(each // 32):
            with x_cb.wait() as a, y_cb.wait() as b, o_cb.reserve() as o:
                o.store(ttl.math.relu(a * b) + a)

    @ttl.datamovement()
    def write():
        core, _ = ttl.core(dims=2)
        for r in range(0, each, 32):
            with o_cb.wait() as block:
                ttl.copy(block, out[core * each + r : core * each + r + 32, :]).wait()


@ttl.kernel(grid=(1, 1), tiled=False)
def products(a, b, out, largest):
    """Multiply two matrices of rows, and reduce each row of the product."""
    a_cb = ttl.make_circular_buffer_like(a, shape=(32, a.shape[1]))
    b_cb = ttl.make_circular_buffer_like(b, shape=b.shape, buffer_factor=1)
    o_cb = ttl.make_circular_buffer_like(out, shape=(32, out.shape[1]))
    l_cb = ttl.make_circular_buffer_like(largest, shape=(32, 32))
    count = a.shape[0] // 32

    @ttl.datamovement()
    def read():
        with b_cb.reserve() as block:
            ttl.copy(b[:, :], block).wait()
        for r in range(count):
            with a_cb.reserve() as block:
                ttl.copy(a[32 * r : 32 * r + 32, :], block).wait()

    @ttl.compute()
    def compute():
        with b_cb.wait() as right:
            for _ in range(count):
                with a_cb.wait() as left:
                    product = left @ right
                with o_cb.reserve() as o:
                    o.store(product)
                with l_cb.reserve() as o:
                    o.store(ttl.math.broadcast(ttl.math.reduce_max(product, dims=[1]), (1, 1), dims=[1]))

    @ttl.datamovement()
    def write():
        for r in range(count):
            with o_cb.wait() as block:
                ttl.copy(block, out[32 * r : 32 * r + 32, :]).wait()
            with l_cb.wait() as block:
                ttl.copy(block, largest[32 * r : 32 * r + 32, :]).wait()


@ttl.kernel(grid=(1, 1))
def totals(
    x: ttl.tensor((192, 64), ttl.bfloat16, layout=ttl.interleaved),
    ones: ttl.tensor((32, 64), ttl.float32),
    out: ttl.tensor((32, 64), ttl.float32, layout=ttl.interleaved),
):
    """Sum blocks of bf16 rows, two at a time, and tiles of f32; the sum are rows of f32."""
    x_cb = ttl.make_circular_buffer_like(x, shape=(32, 64), buffer_factor=4)
    f_cb = ttl.make_circular_buffer_like(ones, shape=(1, 2), buffer_factor=1)
    o_cb = ttl.make_circular_buffer_like(out, shape=(32, 64), buffer_factor=1)

    @ttl.datamovement()
    def read():
        with f_cb.reserve() as block:
            ttl.copy(ones[0:1, 0:2], block).wait()
        for r in range(6):
            with x_cb.reserve() as block:
                ttl.copy(x[32 * r : 32 * r + 32, :], block).wait()

    @ttl.compute()
    def compute():
        total = ttl.block.fill(0, shape=(1, 2), dtype=ttl.float32)
        for _ in range(3):
            first, second = x_cb.wait(blocks=2)
            total += first - second * 2
            x_cb.pop(blocks=2)
        with f_cb.wait() as block, o_cb.reserve() as o:
            o.store(total + block)

    @ttl.datamovement()
    def write():
        with o_cb.wait() as block:
            ttl.copy(block, out[0:32, :]).wait()


def integers(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> Any:
    """Small integers, which all types hold exactly."""
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)


def wide(array: Any) -> Any:
    return array.astype(np.float32)


@needs_compiler
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_elements(machine: str, dtype: Any) -> None:
    """Ten tiles in a row are more than there are registers: parts of two for f32, of five for bf16."""
    x, y = (integers((128, 320), dtype, seed) for seed in (0, 1))
    out = np.full_like(x, np.nan)
    run(fused, x, y, out, machine=machine)
    np.testing.assert_array_equal(wide(out), np.maximum(wide(x) * wide(y), 0) + wide(x))


@needs_compiler
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_products(machine: str, dtype: Any) -> None:
    """The right side is a block of several rows of tiles."""
    a, b = integers((64, 64), dtype), integers((64, 96), dtype, 1)
    out, largest = np.full((64, 96), np.nan, dtype), np.full((64, 32), np.nan, dtype)
    run(products, a, b, out, largest, machine=machine)
    product = wide(a) @ wide(b)
    np.testing.assert_array_equal(wide(out), product)
    most = product.reshape(64, 3, 32).max(axis=(1, 2))
    np.testing.assert_array_equal(wide(largest), np.repeat(most[:, None], 32, axis=1))


@needs_compiler
@pytest.mark.parametrize("machine", MACHINES)
def test_other_types_and_several_blocks(machine: str) -> None:
    x, ones = integers((192, 64), ml_dtypes.bfloat16), integers((32, 64), np.float32, 1)
    out = np.full((32, 64), np.nan, np.float32)
    run(totals, x, ones, out, machine=machine)
    first, second = wide(x).reshape(3, 2, 32, 64).swapaxes(0, 1)
    np.testing.assert_array_equal(out, (first - second * 2).sum(axis=0) + ones)


def test_bits_are_kept() -> None:
    """Rows of f32 keep all their bits on the way through tiles."""
    bits = np.random.default_rng(0).integers(0, 2**32, (64, 64), np.uint32).view(np.float32)
    bits = np.where(np.isnan(bits), np.float32(0.1), bits)
    out = np.full_like(bits, np.nan)
    run(copied_by_compute, bits, out, machine="ttkernel")
    np.testing.assert_array_equal(out.view(np.uint32), bits.view(np.uint32))


@ttl.kernel(grid=(1, 1), tiled=False)
def copied_by_compute(x, out):
    x_cb = ttl.make_circular_buffer_like(x, shape=(32, x.shape[1]))
    o_cb = ttl.make_circular_buffer_like(out, shape=(32, x.shape[1]))

    @ttl.datamovement()
    def read():
        for r in range(0, x.shape[0], 32):
            with x_cb.reserve() as block:
                ttl.copy(x[r : r + 32, :], block).wait()

    @ttl.compute()
    def compute():
        for _ in range(x.shape[0] // 32):
            with x_cb.wait() as block, o_cb.reserve() as o:
                o.store(block)

    @ttl.datamovement()
    def write():
        for r in range(0, x.shape[0], 32):
            with o_cb.wait() as block:
                ttl.copy(block, out[r : r + 32, :]).wait()


# --- the calls ------------------------------------------------------------------------------------------------------

SPECS = [ttl.TensorSpec((64, 320), layout=ttl.interleaved)] * 2


def test_the_calls() -> None:
    source = compile_kernel(copied_by_compute, SPECS).sources["compute.cpp"]
    calls = [line.strip() for line in source.splitlines() if "tilize" in line and "#" not in line]
    assert calls == [
        "tilize_init(x_cb, 10, x_cb_tiles);",
        "tilize_block(x_cb, 10, x_cb_tiles, 0, 0);",
        "tilize_uninit(x_cb, x_cb_tiles);",
        "pack_untilize_dest_init<2, 10>(o_cb);",
        *(f"pack_untilize_dest<2, 10>(o_cb, 1, {part});" for part in range(5)),
        "pack_untilize_uninit(o_cb);",
    ]
    assert {'#include "api/compute/tilize.h"', '#include "api/compute/pack_untilize.h"'} <= {*source.splitlines()}


def test_f32_goes_straight_to_the_registers() -> None:
    found = {each["name"]: each["unpack_to_dest"] for each in compile_kernel(copied_by_compute, SPECS).manifest["cbs"]}
    assert found["x_cb"]
    assert found["x_cb_tiles"]
    assert found["o_cb_tiles"]


# --- what is wrong is found -----------------------------------------------------------------------------------------


@cache
def lowered() -> ModuleOp:
    module = frontend(copied_by_compute, [ttl.TensorSpec((32, 320), layout=ttl.interleaved)] * 2)
    for each in ttl_pipeline(to="ttkernel"):
        each.apply(make_context(), module)
    return module


CALLS = (
    ("tilize_init", "which the unpacker is not prepared for"),
    ("tilize_block", "which was not written"),
    ("tilize_uninit", "reads a tile while the unpacker reads rows"),
    ("pack_untilize_dest_init", "which the packer is not prepared for"),
    ("pack_untilize_dest", "nothing reads before it is released"),
)


@pytest.mark.parametrize(("name", "message"), CALLS)
def test_a_call_that_is_left_out_is_found(name: str, message: str) -> None:
    module = lowered().clone()
    first = next(op for op in module.walk() if op.name == f"ttkernel.{name}")
    first.detach()
    x, out = integers((32, 320)), np.full((32, 320), np.nan, np.float32)
    with pytest.raises(Fault, match=message):
        run_plan(module, [x, out])


TEXTS = (
    ("tilize_init(x_cb, 10, x_cb_tiles);", "", "the matrix unit is set up for nothing"),
    ("tilize_uninit(x_cb, x_cb_tiles);", "", "tilize_uninit is missing"),
    ("pack_untilize_dest_init<2, 10>(o_cb);", "", "pack_untilize_dest_init for these sizes is missing"),
    ("pack_untilize_uninit(o_cb);", "", "pack_untilize_uninit is missing"),
)


@needs_compiler
@pytest.mark.parametrize(("old", "new", "message"), TEXTS)
def test_a_text_that_is_wrong_is_found(old: str, new: str, message: str) -> None:
    compiled = compile_kernel(copied_by_compute, SPECS)
    assert old in compiled.sources["compute.cpp"]
    sources = {**compiled.sources, "compute.cpp": compiled.sources["compute.cpp"].replace(old, new)}
    with pytest.raises(CompilationError, match=re.escape(message)):
        run_cpp(replace(compiled, sources=sources), SPECS, [integers((64, 320)), np.zeros((64, 320), np.float32)])


# --- errors of the kernel -------------------------------------------------------------------------------------------


def kernel_with(columns: int, rows: int, dtype: str, *, adds: bool) -> tuple[Kernel, list[Any]]:
    @ttl.kernel(grid=(1, 1), tiled=False)
    def made(x, out):
        x_cb = ttl.make_circular_buffer_like(x, shape=(rows, columns))
        o_cb = ttl.make_circular_buffer_like(out, shape=(rows, columns))

        @ttl.datamovement()
        def read():
            with x_cb.reserve() as block:
                ttl.copy(x[0:rows, :], block).wait()

        @ttl.compute()
        def compute():
            with x_cb.wait() as block, o_cb.reserve() as o:
                if adds:
                    o += block
                else:
                    o.store(block + 1)

        @ttl.datamovement()
        def write():
            with o_cb.wait() as block:
                ttl.copy(block, out[0:rows, :]).wait()

    return made, [ttl.TensorSpec((64, columns), dtype, layout=ttl.interleaved)] * 2


@pytest.mark.parametrize(
    ("columns", "rows", "adds", "dtype", "message"),
    [
        (40, 32, False, "float32", "has multiples of 32 rows and columns of f32 or bf16, found 32x40 elements of f32"),
        (64, 16, False, "float32", "has multiples of 32 rows and columns of f32 or bf16, found 16x64 elements of f32"),
        (64, 32, False, "int32", "has multiples of 32 rows and columns of f32 or bf16, found 32x64 elements of i32"),
        (64, 64, False, "float32", "one row of tiles is stored as rows of elements, found 2x2 tiles of f32"),
        (64, 32, True, "float32", "the packer adds to tiles, the block has rows"),
    ],
)
def test_refused(columns: int, rows: int, adds: bool, dtype: str, message: str) -> None:
    kernel, specs = kernel_with(columns, rows, dtype, adds=adds)
    with pytest.raises(CompilationError, match=re.escape(message)) as error:
        frontend(kernel, specs)
    assert error.value.location is not None
