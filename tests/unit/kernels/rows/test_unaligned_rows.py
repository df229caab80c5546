"""Rows that begin anywhere: softmax, cross_entropy, swiglu and their gradients against numpy in float64.

Tensors lie between sentinels, and results are NaN before. Nine rows of odd lengths begin at all distances from
multiples of 16 bytes.
"""

import re
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from tests.unit.kernels.gemm.test_compiled import compiled
from tests.unit.kernels.rows.test_cross_entropy import classes, expected
from tests.unit.kernels.rows.test_rows import expected_softmax
from tlx_xdsl.kernels.calls.operands import operand, rows_of, width_of
from tlx_xdsl.kernels.rows import softmax as softmax_module
from tlx_xdsl.kernels.rows.cross_entropy import CROSS_ENTROPY, cross_entropy_backward_launch, cross_entropy_launch
from tlx_xdsl.kernels.rows.edges import tile_of
from tlx_xdsl.kernels.rows.softmax import softmax_backward_launch, softmax_launch
from tlx_xdsl.kernels.rows.swiglu import SWIGLU, SWIGLU_BACKWARD

BF16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = {BF16: 8e-3, np.dtype(np.float16): 1e-3, np.dtype(np.float32): 2e-6}
"""Largest error of a result, of the larger of 1 and itself."""

SHORT, FEW = [*range(1, 41), 63, 65, 127, 129, 135], [1, 3, 4, 5, 8, 13, 29]
MIDDLE = [255, 263, 513, 1001, 4095]
ROWS = 9


class Memory:
    """Tensors between sentinels, which are NaN and stay so."""

    def __init__(self):
        self.all = []

    def tensor(self, shape, dtype, values=None):
        whole = np.full(int(np.prod(shape)) + 32, np.nan, dtype)
        found = whole[16:-16].reshape(shape)
        if values is not None:
            found[...] = values
        self.all.append(whole)
        return found

    def random(self, shape, dtype, seed):
        return self.tensor(shape, dtype, 2 * np.random.default_rng(seed).standard_normal(shape))

    def check(self):
        for each in self.all:
            assert np.isnan(each[:16].astype(np.float32)).all()
            assert np.isnan(each[-16:].astype(np.float32)).all()


def check(found, wanted, limit):
    assert (np.abs(found.astype(np.float64) - wanted) <= limit * np.maximum(1, np.abs(wanted))).all()


def exact(*tensors):
    return [each.astype(np.float64) for each in tensors]


def run_softmax(shape, dtype, run):
    memory = Memory()
    x, out = memory.random(shape, dtype, 0), memory.tensor(shape, dtype)
    run(softmax_launch(x, out))
    check(out, expected_softmax(x), DTYPES[dtype])
    dout, dx = memory.random(shape, dtype, 1), memory.tensor(shape, dtype)
    run(softmax_backward_launch(out, dout, dx))
    y, dy = exact(out, dout)
    check(dx, y * (dy - (y * dy).sum(-1, keepdims=True)), DTYPES[dtype])
    memory.check()


def run_cross_entropy(shape, dtype, run):
    memory = Memory()
    x, target = memory.random(shape, dtype, 0), classes(shape)
    rows = shape[0]
    for smoothing in (0.0, 0.1):
        loss, lse = memory.tensor((rows,), np.float32), memory.tensor((rows,), np.float32)
        run(cross_entropy_launch(x, target, loss, lse, smoothing))
        losses, slopes = expected(x, target, smoothing)
        check(loss, losses, 2e-6)
        dloss, dx = memory.random((rows,), np.float32, 1), memory.tensor(shape, dtype)
        run(cross_entropy_backward_launch(dloss, x, target, lse, None, dx, smoothing=smoothing))
        check(dx, slopes * dloss[:, None].astype(np.float64), DTYPES[dtype])
    total = memory.tensor((), np.float32)
    (launch,) = CROSS_ENTROPY.prepare((x, target, None, None, None), (-100, 0.0, "sum", True)).launches
    run(replace(launch, arguments={**launch.arguments, "total_ptr": total}))
    check(total, expected(x, target, 0.0)[0].sum(), 2e-6)
    memory.check()


def run_swiglu(shape, dtype, run):
    memory = Memory()
    gate, up, dout = (memory.random(shape, dtype, seed) for seed in range(3))
    out, dgate, dup = (memory.tensor(shape, dtype) for _ in range(3))
    for prepared in (
        SWIGLU.prepare((gate, up, out), ()),
        SWIGLU_BACKWARD.prepare((gate, up, dout, dgate, dup), ()),
    ):
        run(prepared.launches[0])
    g, u, dy = exact(gate, up, dout)
    s = 1 / (1 + np.exp(-g))
    for found, wanted in ((out, g * s * u), (dgate, dy * u * s * (1 + g * (1 - s))), (dup, dy * g * s)):
        check(found, wanted, DTYPES[dtype])
    memory.check()


FUNCTIONS = {"softmax": run_softmax, "cross_entropy": run_cross_entropy, "swiglu": run_swiglu}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_short_rows(function, dtype):
    for columns in SHORT if dtype == BF16 else FEW:
        FUNCTIONS[function]((ROWS, columns), dtype, lambda launch: launch.run_on_cpu())


@pytest.mark.parametrize("columns", MIDDLE)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_rows_in_pieces(function, columns):
    FUNCTIONS[function]((ROWS, columns), BF16, lambda launch: launch.run_on_cpu())


@pytest.mark.parametrize("dtype", [BF16, np.dtype(np.float32)], ids=str)
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("columns", [9001, 16391])
def test_long_rows(function, columns, dtype, monkeypatch):
    monkeypatch.setattr(softmax_module, "HELD_BACKWARD_COLUMNS", 10000)
    FUNCTIONS[function]((ROWS, columns), dtype, lambda launch: launch.run_on_cpu())


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("columns", [13, 9001])
def test_the_interpreter_has_nothing_against_them(function, columns, monkeypatch):
    monkeypatch.setattr(softmax_module, "HELD_BACKWARD_COLUMNS", 9000)

    def run(launch):
        assert launch.interpret().warnings == ()

    FUNCTIONS[function]((5 if columns < 100 else 2, columns), BF16, run)


def test_programs_with_several_blocks_of_rows():
    x, target = Memory().random((4100, 21), BF16, 0), classes((4100, 21))
    (launch,) = CROSS_ENTROPY.prepare((x, target, None, None, None), (-100, 0.0, "sum", False)).launches
    assert launch.grid == (22,)  # of 65 blocks
    launch.run_on_cpu()
    check(launch.arguments["total_ptr"], expected(x, target, 0.0)[0].sum(), 2e-6)


def test_numbers_that_are_none_stay_in_their_row():
    memory = Memory()
    x, out = memory.random((5, 21), BF16, 0), memory.tensor((5, 21), BF16)
    x[1, 0], x[3, -1] = np.nan, np.inf
    softmax_launch(x, out).run_on_cpu()
    assert np.isnan(out[[1, 3]].astype(np.float32)).any(-1).all()
    check(out[[0, 2, 4]], expected_softmax(x[[0, 2, 4]]), 8e-3)


def test_rows_that_are_not_alike_are_read_by_elements():
    """Vectors of two tensors fit together where their rows begin equally far from multiples of 16 bytes."""
    memory = Memory()
    wide = memory.random((5, 29), BF16, 0)
    x, out = wide[:, :21], memory.tensor((5, 21), BF16)
    alike = softmax_launch(x, out)
    assert alike.constexprs["WIDTH"] == 8
    alike.run_on_cpu()
    check(out, expected_softmax(x), 8e-3)
    other = softmax_launch(memory.random((5, 28), BF16, 0)[:, :21], out)
    assert "WIDTH" not in other.constexprs
    other.run_on_cpu()
    assert not np.isnan(out.astype(np.float32)).any()
    memory.check()


class At:
    """A tensor of torch, as far as operands are concerned, at an address."""

    dtype, shape, itemsize = np.dtype(np.float16), (3, 21), 2

    def __init__(self, address):
        self.data_ptr = lambda: address

    def stride(self):
        return (21, 1)


@pytest.mark.parametrize(("addresses", "width"), [((0, 32), 8), ((0, 2), 1), ((2, 2), 1)])
def test_memory_must_be_aligned(addresses, width):
    operands = tuple(operand("f", "x", At(address)) for address in addresses)
    assert width_of(operands, tuple(map(rows_of, operands))) == width


@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("vectors", [2, 4])
def test_tiles_hold_rows(width, vectors):
    for columns in (*range(1, 600), 1025, 4095, 8191, 32767):
        tile = tile_of(columns, width, vectors)
        assert tile["PIECES"] * tile["LANES"] >= columns // width
        assert tile["LANES"] >= width
        threads = max(128, tile["LANES"])
        assert threads <= 1024
        assert tile["ROWS"] * tile["LANES"] * tile["PIECES"] <= threads * max(vectors, tile["PIECES"])
        assert tile["ROWS"] * tile["LANES"] >= threads


def prepared(function, columns, dtype):
    x = np.empty((64, columns), dtype)
    target, of_rows = np.zeros(64, np.int64), np.empty(64, np.float32)
    if function == "softmax":
        return softmax_launch(x, x)
    if function == "softmax_backward":
        return softmax_backward_launch(x, x, x)
    if function == "cross_entropy":
        return CROSS_ENTROPY.prepare((x, target, None, None, None), (-100, 0.1, "mean", True)).launches[0]
    if function == "cross_entropy_backward":
        return cross_entropy_backward_launch(of_rows, x, target, of_rows, None, x)
    if function == "swiglu":
        return SWIGLU.prepare((x, x, x), ()).launches[0]
    return SWIGLU_BACKWARD.prepare((x, x, x, x, x), ()).launches[0]


ACCESSES = {
    "softmax": (1, 1),
    "softmax_backward": (2, 1),
    "cross_entropy": (1, 0),
    "cross_entropy_backward": (1, 1),
    "swiglu": (2, 1),
    "swiglu_backward": (3, 2),
}
"""Tensors of whole rows that are read, and written."""


@pytest.mark.backend
@pytest.mark.parametrize("columns", [81, 50257])
@pytest.mark.parametrize("function", ACCESSES)
def test_compiled(function, columns):
    """Bodies are moved 16 bytes at a time, edges one element for each of them; nothing is spilled."""
    result = compiled(prepared(function, columns, BF16))
    assert max(result.resources.spill_store_bytes, result.resources.stack_bytes) == 0
    reads, writes = ACCESSES[function]
    wide_reads, wide_writes = (len(re.findall(rf"{each}\.global\S*\.v4\.b32", result.ptx)) for each in ("ld", "st"))
    narrow_reads, narrow_writes = (len(re.findall(rf"{each}\.global\.b16", result.ptx)) for each in ("ld", "st"))
    assert wide_reads >= reads
    assert narrow_reads <= wide_reads + ("cross" in function) * 4
    assert (wide_writes >= writes, narrow_writes <= wide_writes) == (True, True)
    if columns == 81 and function in ("softmax", "softmax_backward", "cross_entropy_backward"):
        # A row's lanes are side by side in one warp, with every version of Triton, and no layout is converted.
        assert not re.search(r"(ld|st)\.shared", result.ptx)
