"""Arrays that the host has not filled: what reads them before a write is found, at the line and by the argument."""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.numerics.uninitialized import UninitializedArray

# Kernels are read by the frontend, not run by Python.
# pyright: basic

DESCRIPTOR = tlx_xdsl.TensorDescriptor.from_tensor


def fault_of(kernel, *arguments, grid=1, **options):
    """Return the report of a run of the kernel, or None."""
    try:
        tlx_xdsl.interpret(kernel, grid, *arguments, **options)
    except Fault as fault:
        return str(fault)
    return None


@tlx_xdsl.jit
def histogram(x, counts, ZERO: tl.constexpr):
    """Counts into memory that must be zero."""
    offsets = tl.arange(0, 16)
    if ZERO:
        tl.store(counts + offsets, 0)
        tl.debug_barrier()
    tl.atomic_add(counts + tl.load(x + offsets), 1)


def test_an_atomic_operation_on_memory_that_is_not_zeroed():
    x = np.arange(16, dtype=np.int32)
    found = fault_of(histogram, x, tlx_xdsl.uninitialized(16, "i32"), False)
    assert "'counts' in global memory is read before it is written: 16 of 16 elements, byte 0 of the array" in found
    assert "tl.atomic_add(counts" in found
    assert "note: 'counts' is declared uninitialized: the host must fill it before the launch" in found
    counts = tlx_xdsl.uninitialized(16, "i32")
    assert fault_of(histogram, x, counts, True) is None
    assert (counts == 1).all()
    assert fault_of(histogram, x, np.empty(16, np.int32), False) is None  # not declared


@tlx_xdsl.jit
def copy(x, out, count, MASKED: tl.constexpr):
    offsets = tl.arange(0, 64)
    value = tl.load(x + offsets, mask=offsets < count) if MASKED else tl.load(x + offsets)
    tl.store(out + offsets, value, mask=offsets < count)


def test_what_the_host_has_written_may_be_read():
    x, out = tlx_xdsl.uninitialized(64), tlx_xdsl.uninitialized((64,), np.float32)
    x[:48] = 1
    assert fault_of(copy, x, out, 48, True) is None
    assert "'x' in global memory is read before it is written: 16 of 64" in fault_of(copy, x, out, 48, False)
    assert "byte 192 of the array first" in fault_of(copy, x, out, 49, True)


@pytest.mark.parametrize("options", [{}, {"global_order": True}])
def test_what_a_launch_has_written_the_next_one_may_read(options):
    x, out, last = np.ones(64, np.float32), tlx_xdsl.uninitialized(64), np.zeros(64, np.float32)
    assert fault_of(copy, x, out, 40, True, **options) is None
    assert fault_of(copy, out, last, 40, True, **options) is None
    assert "'x' in global memory" in fault_of(copy, out, last, 64, False, **options)


def test_a_part_of_an_element_is_not_enough():
    x = tlx_xdsl.uninitialized(64, "i32")
    x.view(np.int16)[::2] = 0
    assert "64 of 64 elements" in fault_of(copy, x, np.zeros(64, np.int32), 64, False)


def test_a_warning_instead():
    out = np.zeros(64, np.float32)
    result = tlx_xdsl.interpret(copy, 1, tlx_xdsl.uninitialized(64), out, 64, False, unwritten="warn")
    (warning,) = result.warnings
    assert warning.message == "'x' in global memory is read before it is written"
    assert np.isnan(out).all()


@tlx_xdsl.jit
def by_tma(source, target, REDUCE: tl.constexpr):
    tile, full = tlx.local_alloc((8, 16), tl.float32, 1), tlx.alloc_barriers(1)
    tlx.barrier_expect_bytes(full[0], 8 * 16 * 4)
    tlx.async_descriptor_load(source, tile[0], [0, 0], full[0])
    tlx.barrier_wait(full[0], 0)
    tlx.fence_async_shared()
    if REDUCE:
        tlx.async_descriptor_store(target, tile[0], [0, 0], store_reduce="add")
    else:
        tlx.async_descriptor_store(target, tile[0], [0, 0])
    tlx.async_descriptor_store_wait(0)


def test_copies_by_tma():
    """A tile is read as far as it is inside; a reduction reads what it adds to."""
    source, target = tlx_xdsl.uninitialized((6, 32)), tlx_xdsl.uninitialized((8, 16))
    source[:, :16] = 1

    def run(reduce):
        return fault_of(by_tma, DESCRIPTOR(source, [8, 16]), DESCRIPTOR(target, [8, 16]), reduce)

    assert "'target' in global memory is read before it is written: 512 of 512 elements" in run(True)
    assert run(False) is None
    assert run(True) is None
    source = tlx_xdsl.uninitialized((6, 32))
    assert "'source' in global memory" in run(False)


def test_several_processes_see_what_others_have_written():
    x, out = np.ones((4, 64), np.float32), tlx_xdsl.uninitialized((4, 64))
    assert fault_of(copy, x, out, 64, False, grid=4, jobs=2) is None
    assert fault_of(copy, out, x, 64, False) is None


def test_views_and_copies():
    base = tlx_xdsl.uninitialized((4, 8), "fp16")
    assert base.dtype == np.float16
    base[1, ..., 2] = 3
    copied = base.copy()
    copied[0] = 1
    other = np.zeros((4, 8), np.float16)
    base[3] = other[0]
    base[2] = copied[0]
    base[0] = copied[1]  # as uninitialized as that
    assert isinstance(copied, UninitializedArray)
    written = base.record.written.reshape(4, 8, 2).all(2)
    assert written[1:].sum(1).tolist() == [1, 8, 8]
    assert written[0].tolist() == written[1].tolist()
    assert copied.record.written.reshape(4, 8, 2).all(2).sum(1).tolist() == [8, 1, 0, 0]
    assert (base + 1).shape == (4, 8)


def test_types():
    assert tlx_xdsl.uninitialized(3, "bf16").dtype.name == "bfloat16"
    assert tlx_xdsl.uninitialized((2, 0), tl.int8).shape == (2, 0)
    with pytest.raises(TypeError, match="expected an element type such as fp16"):
        tlx_xdsl.uninitialized(3, "complex64")


def test_a_check_restores_what_is_uninitialized():
    """Each order begins with memory that nothing has written."""
    counts = tlx_xdsl.uninitialized(16, "i32")
    x = np.arange(16, dtype=np.int32)
    assert tlx_xdsl.check(histogram, 1, x, counts, True, seconds=0.2, launches=2)
    assert not counts.record.written.any()
    (finding,) = tlx_xdsl.check(histogram, 1, x, counts, False, seconds=0.2).findings
    assert "'counts' in global memory is read before it is written" in finding.diagnostic.message
