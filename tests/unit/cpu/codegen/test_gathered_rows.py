"""Gathered rows that are stored as they are: without a tile where no row that is read is written.

The oracle is numpy: a program reads all rows before it stores one.
"""

# covers: target.cpu

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit import volume
from tests.unit.cpu.codegen.native import bufferized
from tlx_xdsl.cpu.codegen.gathered_rows import gathers
from tlx_xdsl.cpu.runtime.linalg import plain_module
from tlx_xdsl.frontend.python.foreign import source_of
from tlx_xdsl.runtime.driver.compilation import Specialization

SEEDS = range(60 if volume.is_full() else 5)


@tlx_xdsl.jit
def gathered(memory, index, at, n, columns, from_step, to_step, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Rows of memory to rows from `at` on, which may be the same."""
    row, column = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    rows = tl.load(index + row, mask=row < n, other=0)
    inside = (row < n)[:, None] & (column < columns)[None, :]
    value = tl.load(memory + rows[:, None] * from_step + column[None, :], mask=inside)
    tl.store(memory + at + row[:, None] * to_step + column[None, :], value, mask=inside)


@tlx_xdsl.jit
def whole(memory, index, at, n, columns, from_step, to_step, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The same with rows of a known length."""
    row, column = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    rows = tl.load(index + row, mask=row < n, other=0)
    inside = (row < n)[:, None]
    value = tl.load(memory + rows[:, None] * from_step + column[None, :], mask=inside)
    tl.store(memory + at + row[:, None] * to_step + column[None, :], value, mask=inside)


@tlx_xdsl.jit
def doubled(memory, index, at, n, columns, from_step, to_step, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Rows that are not stored as they are."""
    row, column = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    rows = tl.load(index + row, mask=row < n, other=0)
    value = tl.load(memory + rows[:, None] * from_step + column[None, :])
    tl.store(memory + at + row[:, None] * to_step + column[None, :], value + value)


def expected(memory: Any, index: Any, at: int, columns: int, from_step: int, to_step: int, block: int) -> Any:
    found = memory.copy()
    for first in range(0, len(index), block):
        rows = [found[row * from_step : row * from_step + columns].copy() for row in index[first : first + block]]
        for number, row in enumerate(rows, first):
            found[at + number * to_step : at + number * to_step + columns] = row
    return found


@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int64])
@pytest.mark.parametrize("kernel", [gathered, whole])
def test_rows_that_may_be_written(kernel: Any, dtype: Any, checks: bool):
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        block = int(rng.choice([2, 8]))
        width = int(rng.choice([4, 32, 128]))
        columns = width if kernel is whole else int(rng.integers(1, width + 1))
        n, table = int(rng.integers(1, 20)), int(rng.integers(1, 12))
        from_step = int(rng.choice([columns, columns + 3, max(columns - 1, 1)]))
        # Rows next to each other, apart, from the last to the first; on both sides of those that are read, and in them.
        to_step = int(rng.choice([columns, columns + 2, -columns]))
        room = table * from_step + columns + n * abs(to_step) + 2 * width
        read_end = (table - 1) * from_step + columns
        at = int(rng.choice([read_end, int(rng.integers(0, read_end + 1))]))
        at += (n - 1) * -to_step if to_step < 0 else 0
        # It begins anywhere in a line of the cache.
        memory = rng.integers(-100, 100, room + 64).astype(dtype)[int(rng.integers(64)) :]
        index = rng.integers(0, table, n)
        right = expected(memory, index, at, columns, from_step, to_step, block)
        tlx_xdsl.set_cpu_threads(1)
        kernel[(-(-n // block),)](
            memory, index, at, n, columns, from_step, to_step, ROWS=block, COLUMNS=width, target="cpu", checks=checks
        )
        tlx_xdsl.set_cpu_threads(None)
        assert np.array_equal(memory, right), seed


def test_rows_that_touch():
    """All ways in which two rows of bytes lie beside those that are written, or have a byte in common with them."""
    tlx_xdsl.set_cpu_threads(1)
    for first, second, to_step, at in itertools.product(range(4), range(4), (-5, -4, 4, 5), range(5, 25)):
        memory, index = np.arange(40, dtype=np.int8), np.array([first, second])
        right = expected(memory, index, at, 4, 5, to_step, 2)
        whole[(1,)](memory, index, at, 2, 4, 5, to_step, ROWS=2, COLUMNS=4, target="cpu")
        assert np.array_equal(memory, right), (first, second, to_step, at)
    tlx_xdsl.set_cpu_threads(None)


@pytest.mark.parametrize(("kernel", "count"), [(whole, 1), (gathered, 1), (doubled, 0)])
def test_gathers_that_are_stored_as_they_are(kernel: Any, count: int):
    signature = {"memory": "*fp32", "index": "*i64"} | dict.fromkeys(
        ("at", "n", "columns", "from_step", "to_step"), "i32"
    )
    module = bufferized(plain_module(source_of(kernel), Specialization(signature, {"ROWS": 8, "COLUMNS": 32})))
    assert len({id(each) for each in gathers(module).values()}) == count
