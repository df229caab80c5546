"""Kernels on the whole grid of a chip: the direction of each network on chip, and the columns of a Blackhole."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tlx_xdsl.language.ttl as ttl

from tlx_xdsl.errors import CompilationError, InputError
from tlx_xdsl.ttl.dialects.ttkernel.base import NOC
from tlx_xdsl.ttl.interpreter.ttkernel import run as run_ttkernel
from tlx_xdsl.ttl.runtime import MACHINES, CompiledKernel, Options, Prepared, compile_kernel, specs_of
from tlx_xdsl.ttl.runtime.execution import run_cpp

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++: apt install g++")
BLACKHOLE = Options(arch="blackhole")


@ttl.kernel(grid=(3, 1))
def both_ways(a, out):
    """Each thread that moves data multicasts a block from core 0 to the others."""
    first = ttl.make_circular_buffer_like(a, shape=(1, 1))
    second = ttl.make_circular_buffer_like(a, shape=(1, 1))
    one, other = (ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(slice(1, 3), 0))]) for _ in range(2))
    x = ttl.core(dims=1)

    @ttl.datamovement()
    def upper():
        with first.reserve() as block:
            if x == 0:
                ttl.copy(a[0, 0], block).wait()
            one.if_src(lambda pipe: ttl.copy(block, pipe).wait())
            one.if_dst(lambda pipe: ttl.copy(pipe, block).wait())
        with second.wait() as block:
            ttl.copy(block, out[1, x]).wait()

    @ttl.datamovement()
    def lower():
        with second.reserve() as block:
            if x == 0:
                ttl.copy(a[1, 0], block).wait()
            other.if_src(lambda pipe: ttl.copy(block, pipe).wait())
            other.if_dst(lambda pipe: ttl.copy(pipe, block).wait())
        with first.wait() as block:
            ttl.copy(block, out[0, x]).wait()


@ttl.kernel(grid="full")
def to_the_row(a, out):
    """The last core of the first row multicasts a block to the others of the row, and sends it to one below."""
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))
    columns, _ = ttl.grid_size(dims=2)
    row = ttl.Pipe(src=(columns - 1, 0), dst=(slice(0, columns - 1), 0))
    below = ttl.Pipe(src=(columns - 1, 0), dst=(0, 1))
    x, y = ttl.core(dims=2)

    @ttl.datamovement()
    def read():
        if y == 0:
            with cb.reserve() as block:
                if x == columns - 1:
                    ttl.copy(a[0, 0], block).wait()
                row.if_src(lambda pipe: ttl.copy(block, pipe).wait())
                below.if_src(lambda pipe: ttl.copy(block, pipe).wait())
                row.if_dst(lambda pipe: ttl.copy(pipe, block).wait())
        elif y == 1 and x == 0:
            with cb.reserve() as block:
                below.if_dst(lambda pipe: ttl.copy(pipe, block).wait())

    @ttl.datamovement()
    def write():
        if y == 0 or (y == 1 and x == 0):
            with cb.wait() as block:
                ttl.copy(block, out[y, x]).wait()


def down_and_right(columns: int) -> Any:
    """Each column sends a block from its first core to the two below, each core of the last row to the next one."""

    @ttl.kernel(grid=(columns, 3))
    def kernel(a, out):
        cb = ttl.make_circular_buffer_like(a, shape=(1, 1))
        other = ttl.make_circular_buffer_like(a, shape=(1, 1))
        down = ttl.PipeNet([ttl.Pipe(src=(x, 0), dst=(x, slice(1, 3))) for x in range(columns)])
        right = ttl.PipeNet([ttl.Pipe(src=(x, 2), dst=(x + 1, 2)) for x in range(columns - 1)])
        x, y = ttl.core(dims=2)

        @ttl.datamovement()
        def read():
            with cb.reserve() as block:
                if y == 0:
                    ttl.copy(a[0, x], block).wait()
                down.if_src(lambda pipe: ttl.copy(block, pipe).wait())
                down.if_dst(lambda pipe: ttl.copy(pipe, block).wait())
            if right.is_dst():
                with other.reserve() as block:
                    right.if_dst(lambda pipe: ttl.copy(pipe, block).wait())

        @ttl.datamovement()
        def write():
            with cb.wait() as block:
                ttl.copy(block, out[y, x]).wait()
                right.if_src(lambda pipe: ttl.copy(block, pipe).wait())
            if right.is_dst():
                with other.wait() as block:
                    ttl.copy(block, out[3, x]).wait()

    return kernel


def tensors(columns: int) -> tuple[np.ndarray, np.ndarray]:
    return np.random.default_rng(0).standard_normal((64, 32)).astype(np.float32), np.zeros((64, 32 * columns), "f4")


def compiled(kernel: Any, arrays: tuple[np.ndarray, ...], options: Options | None = None) -> CompiledKernel:
    return compile_kernel(kernel, specs_of(kernel, list(arrays)), options)


def test_the_second_thread_gives_corners_in_the_order_of_noc_1() -> None:
    found = compiled(both_ways, tensors(3))
    assert [each["noc"] for each in found.manifest["threads"]] == ["NOC_0", "NOC_1"]
    ranges = {name: re.findall(r"multicast_addr\((.*), \w+\);", text) for name, text in found.sources.items()}
    x, y = "my_x[noc_index]", "my_y[noc_index]"
    assert ranges["upper.cpp"][0] == f"{x} + 1, {y}, {x} + 2, {y}"
    assert ranges["lower.cpp"][0] == f"{x} + 2, {y}, {x} + 1, {y}"


@pytest.mark.parametrize("machine", MACHINES)
def test_both_threads_multicast(machine: str) -> None:
    a, out = tensors(3)
    Prepared(both_ways, [a, out], machine).run([a, out])
    np.testing.assert_array_equal(out, np.tile(a, (1, 3)))


def test_the_machine_of_calls_knows_directions() -> None:
    arrays = tensors(3)
    module = compiled(both_ways, arrays).module
    (second,) = [op for op in module.walk() if NOC in op.attributes]
    del second.attributes[NOC]
    with pytest.raises(CompilationError, match=r"multicasts from .* NOC_0 goes from smaller to larger coordinates"):
        run_ttkernel(module, list(arrays))


@needs_compiler
@pytest.mark.parametrize("thread", ["upper", "lower"])
def test_the_machine_of_cpp_knows_directions(thread: str) -> None:
    arrays = tensors(3)
    made = compiled(both_ways, arrays)
    corners = r"(my_x\[noc_index\] \+ \d, my_y\[noc_index\]), (my_x\[noc_index\] \+ \d, my_y\[noc_index\])"
    text, count = re.subn(corners, r"\2, \1", made.sources[f"{thread}.cpp"])
    assert count
    broken = replace(made, sources={**made.sources, f"{thread}.cpp": text})
    way = "larger to smaller" if thread == "lower" else "smaller to larger"
    with pytest.raises(CompilationError, match=f"corners of a multicast are in the other order: NOC_. goes from {way}"):
        run_cpp(broken, specs_of(both_ways, list(arrays)), list(arrays))


@pytest.mark.parametrize("machine", MACHINES)
def test_the_columns_of_a_blackhole_have_a_gap(machine: str) -> None:
    a, out = tensors(13)
    Prepared(to_the_row, [a, out], machine, BLACKHOLE).run([a, out])
    np.testing.assert_array_equal(out[:32], np.tile(a[:32], (1, 13)))
    np.testing.assert_array_equal(out[32:, :32], a[:32])


@pytest.mark.parametrize("machine", ["ttkernel", "cpp"])
def test_ways_on_both_sides_of_the_gap(machine: str) -> None:
    columns = 9
    a = np.random.default_rng(0).standard_normal((32, 32 * columns)).astype(np.float32)
    out = np.zeros((128, 32 * columns), np.float32)
    kernel = down_and_right(columns)
    Prepared(kernel, [a, out], machine, BLACKHOLE).run([a, out])
    np.testing.assert_array_equal(out[:96], np.tile(a, (3, 1)))
    np.testing.assert_array_equal(out[96:, 32:], a[:, :-32])


@needs_compiler
def test_coordinates_that_ignore_the_gap_are_found() -> None:
    arrays = tensors(13)
    made = compiled(to_the_row, arrays, BLACKHOLE)
    assert made.manifest["arch"] == "blackhole"
    assert made.manifest["grid"] == [13, 10]
    text = re.sub(
        r"worker_logical_col_to_virtual_col\[(0|11)\]", r"my_x[noc_index] + \1 - 12", made.sources["read.cpp"]
    )
    with pytest.raises(CompilationError, match="num_dests is 12, but the multicast has 10 destinations"):
        run_cpp(replace(made, sources={**made.sources, "read.cpp": text}), specs_of(to_the_row, [*arrays]), [*arrays])


def test_the_grid_of_a_device() -> None:
    a, out = tensors(8)
    assert compiled(to_the_row, (a, out), Options(grid=(8, 7))).manifest["grid"] == [8, 7]
    with pytest.raises(CompilationError, match="'grid' has 3x1 cores, but the device has 2x7"):
        compiled(both_ways, (a, out), Options(grid=(2, 7)))
    with pytest.raises(InputError, match="a wormhole has 8x8 cores for kernels, found 9x8"):
        compiled(both_ways, (a, out), Options(grid=(9, 8)))
    with pytest.raises(InputError, match="expected one of the architectures wormhole, blackhole, found 'grayskull'"):
        compiled(both_ways, (a, out), Options(arch="grayskull"))
    with pytest.raises(CompilationError, match=r"need 16,384 B of a core's memory, there are 10,000"):
        compiled(both_ways, (a, out), Options(l1=10_000))
