"""The work of a launch, counted by hand and by the numbers of well-known kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.addresses.coverage.launch import Launch
from tlx_xdsl.addresses.work import work_of
from tlx_xdsl.interpreter.plan import kernel_of
from tlx_xdsl.runtime.driver.compilation import frontend_module
from tlx_xdsl.runtime.driver.specialization import Specialization
from tlx_xdsl.tools.launch_line.loading import load_kernel

EXAMPLES = Path(__file__).parents[3] / "examples"


def work(source, specialization, grid, **numbers):
    module = frontend_module(source, specialization)
    return work_of(module, kernel_of(module), Launch(grid, numbers))


@tlx_xdsl.jit
def copies(x, y, n, STEPS: tl.constexpr):
    at = tl.arange(0, 64)
    for _ in range(0, n, 2):
        tl.store(y + at, tl.load(x + at))
    for _ in tl.static_range(STEPS):
        tl.store(y, 1.0)


def copied(grid, n):
    return work(copies.source, Specialization({"x": "*fp16", "y": "*fp32", "n": "i32"}, {"STEPS": 3}), grid, n=n)


def test_accesses_count_as_often_as_their_loop_turns():
    found = copied((2, 3, 1), 5)
    assert (found.read_bytes, found.written_bytes) == (6 * 3 * 64 * 2, 6 * (3 * 64 * 4 + 3 * 4))
    assert (found.flops, found.unknown_loops) == (0, [])
    assert copied((1, 1, 1), 0).read_bytes == 0


def test_a_loop_of_unknown_length_counts_once_and_is_named():
    found = work(copies.source, Specialization({"x": "*fp16", "y": "*fp32", "n": "i32"}, {"STEPS": 0}), (1, 1, 1))
    assert found.read_bytes == 64 * 2
    assert [op.name for op in found.unknown_loops] == ["scf.for"]


@tlx_xdsl.jit
def by_program(x, n):
    if tl.program_id(0) >= n:
        return
    for _ in range(tl.program_id(0), n, tl.num_programs(0)):
        tl.store(x, 1.0)


def test_the_program_in_the_middle_is_followed():
    specialization = Specialization({"x": "*fp32", "n": "i32"})
    # Of four programs the third: it writes at 2, 6 and 10.
    assert work(by_program.source, specialization, (4, 1, 1), n=12).written_bytes == 4 * 3 * 4
    assert work(by_program.source, specialization, (4, 1, 1), n=2).written_bytes == 0


@pytest.mark.parametrize(
    ("kernel", "rows", "columns", "persistent"),
    [
        ("hopper_gemm_ws.py:matmul", 128, 256, False),
        ("hopper_gemm_pipelined.py:matmul", 128, 256, False),
        ("ampere_gemm_pipelined.py:matmul", 128, 128, False),
        ("blackwell_gemm_ws.py:matmul", 128, 256, True),
    ],
)
def test_the_examples_multiply_as_often_as_the_sizes_say(kernel, rows, columns, persistent):
    """Count the work of tasks, TMA and products of all three generations: 2 M N K operations, and C written once."""
    loaded, defaults = load_kernel(str(EXAMPLES / kernel))
    options = {name: value for name, value in defaults.options.items() if name in ("num_warps", "target")}
    specialization = Specialization(defaults.signature, defaults.constexprs, **options)
    tile = defaults.constexprs
    assert (tile["BLOCK_M"], tile["BLOCK_N"]) == (rows, columns)
    m, n, k = 1024, 2048, 512
    tiles = m // rows * (n // columns)
    grid = (tiles // 2 if persistent else tiles, 1, 1)
    found = work(loaded.source, specialization, grid, M=m, N=n, K=k)
    assert found.flops == 2 * m * n * k
    assert found.written_bytes == 2 * m * n
    operands = 2 * tiles * k * (rows + columns)
    # Loads ahead of the loop's end are masked, and count all the same.
    ahead = (tile["NUM_STAGES"] - 1) * operands * tile["BLOCK_K"] // k if "pipelined" in kernel else 0
    assert operands <= found.read_bytes <= operands + ahead
    assert found.unknown_loops == []
