"""A run warns of what the GPU would refuse, with the compiler's words; and of a launch of nothing."""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl import CompilationError
from tlx_xdsl.errors import OverBudgetError, shown_path


@tlx_xdsl.jit
def rings(x_ptr, B: tl.constexpr, STAGES: tl.constexpr):
    ring = tlx.local_alloc((B, B), tl.float32, STAGES)
    i = tl.arange(0, B)
    value = tl.load(x_ptr + i[:, None] * 0 + i[None, :])
    tlx.local_store(ring[0], value)
    tl.store(x_ptr + i, tl.max(tlx.local_load(ring[0]), axis=0) + 1)


@tlx_xdsl.jit
def tasks(x_ptr, B: tl.constexpr, REGISTERS: tl.constexpr):
    with tlx.async_tasks():
        with tlx.async_task("default"):
            i = tl.arange(0, B)
            tl.store(x_ptr + i, tl.load(x_ptr + i) + 1)
        with tlx.async_task(num_warps=4, registers=REGISTERS, replicate=2):
            j = tl.arange(0, B) + B + B * tlx.async_task_replica_id()
            tl.store(x_ptr + j, tl.load(x_ptr + j) + 1)


@tlx_xdsl.jit
def plain(x_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x_ptr + i, tl.load(x_ptr + i) + 1)


@tlx_xdsl.jit
def copy(src, dst, ROW: tl.constexpr):
    dst.store([0, 0], src.load([ROW, 0]))


def run(kernel, *constants, grid=1, **options):
    x = np.zeros(512, np.float32)
    result = kernel.interpret(grid, x, *constants, **options)
    return x, [str(each) for each in result.warnings]


def test_what_fits_is_run_without_a_word():
    for kernel, constants in ((rings, (64, 4)), (tasks, (128, 152)), (plain, (128,))):
        x, said = run(kernel, *constants)
        assert x[0] == 1
        assert said == []


def test_more_shared_memory_than_there_is():
    x, (said,) = run(rings, 64, 16)
    assert x[0] == 1, "the run is right all the same"
    place = f"{shown_path(__file__)}:{rings.source.tree.lineno + 1}:"
    assert said.startswith(place)
    assert "warning: sm_90a would refuse this launch: 'rings' needs 262,144 B of shared memory" in said
    assert "note: 262,144 B: ring, 16 buffers of 16,384" in said
    # What the compiler says.
    with pytest.raises(OverBudgetError, match="'rings' needs 262,144 B of shared memory, sm_90a has 232,448"):
        rings.compile(np.zeros(512, np.float32), 64, 16)
    _, (less,) = run(rings, 64, 12, target="sm_80")
    assert "sm_80 would refuse this launch: 'rings' needs 196,608 B of shared memory, sm_80 has 166,912" in less


def test_more_registers_than_there_are():
    x, (said,) = run(tasks, 128, 256)
    assert x[0] == 1
    assert "sm_90a would refuse this launch: the tasks ask for more registers than the thread block has" in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_warps": 3}, "num_warps must be a power of two, found 3"),
        ({"num_warps": 64}, "the kernel needs 2,048 threads, a CTA has at most 1,024"),
        ({"cluster": (32, 1, 1), "grid": 32}, "a cluster has at most 16 CTAs, found 32"),
        ({"grid": (1, 65_536)}, "a grid has at most 65,535 programs along y, found 65,536"),
    ],
)
def test_sizes_that_no_launch_has(options, message):
    if "grid" in options and options["grid"] != 32:
        # Sixty thousand programs are not run for it.
        options = {**options, "unlaunchable": "error"}
        with pytest.raises(CompilationError, match=message):
            run(plain, 128, **options)
        return
    _, (said,) = run(plain, 128, **options)
    assert (
        f"{shown_path(__file__)}:{plain.source.tree.lineno}:1: warning: sm_90a would refuse this launch: {message}"
        in said
    )


def test_it_is_an_error_where_that_is_asked_for():
    x = np.zeros(512, np.float32)
    with pytest.raises(OverBudgetError, match="'rings' needs"):
        rings.interpret(1, x, 64, 16, unlaunchable="error")
    assert not x.any(), "nothing was run"
    with pytest.raises(ValueError, match="unlaunchable must be warn or error, found 'never'"):
        rings.interpret(1, x, 64, 16, unlaunchable="never")


def test_a_grid_without_programs_is_said():
    x, (said,) = run(plain, 128, grid=0)
    assert not x.any()
    assert "remark: the grid 0x1x1 has no programs: nothing was run" in said


@pytest.mark.parametrize(("row", "warns"), [(0, False), (64, False), (448, False), (512, True), (-576, True)])
def test_a_block_far_outside_of_its_tensor_is_said(row, warns):
    # A few blocks further are parts of a last tile; eight are not.
    arrays = [np.zeros((64, 64), np.float16) for _ in range(2)]
    source, target = (tlx_xdsl.TensorDescriptor.from_tensor(array, [64, 64]) for array in arrays)
    said = [str(each) for each in copy.interpret(1, source, target, row).warnings]
    assert len(said) == warns
    if warns:
        assert "warning: this load is far outside of the tensor: every element is padding" in said[0]
        assert f"note: block [64, 64] at [{row}, 0] of a tensor of [64, 64]" in said[0]
