"""Mistakes of a kernel, reported at their lines, in words that say what to do."""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.unit.interpreter.reports import at, expect_fault, halves, run

pytestmark = pytest.mark.quick

# Global memory -------------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def load_past_the_end(x_ptr, out_ptr, MASKED: tl.constexpr):
    at = tl.arange(0, 64)
    if MASKED:
        tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < 40, other=0.0))
    else:
        tl.store(out_ptr + at, tl.load(x_ptr + at))  # here


def test_a_load_past_the_end_of_an_array():
    report = expect_fault(
        load_past_the_end, "load out of bounds: 4 bytes at byte 160 of 'x_ptr', which has 160, 24 of 64 elements",
        np.ones(40, np.float32), np.zeros(64, np.float32), False, text="tl.load",
    )  # fmt: skip
    assert any("in program (0, 0, 0)" in note for note in report.notes)


def test_masked_elements_may_be_anywhere():
    out = np.full(64, 7, np.float32)
    assert not run(load_past_the_end, np.ones(40, np.float32), out, True).warnings
    assert out.sum() == 40


@tlx_xdsl.jit
def store_past_the_end(x_ptr):
    at = tl.program_id(0) * 32 + tl.arange(0, 32)
    tl.store(x_ptr + at, at)  # here


def test_a_store_past_the_end_names_the_program():
    report = expect_fault(
        store_past_the_end, "store out of bounds: 4 bytes at byte 240 of 'x_ptr', which has 240, 4 of 32 elements",
        np.zeros(60, np.int32), grid=(2,), text="tl.store", schedule="random", seed=3,
    )  # fmt: skip
    assert "in program (1, 0, 0), schedule 'random', seed 3" in report.notes


@tlx_xdsl.jit
def misaligned_descriptor(x_ptr, out_ptr):
    desc = tl.make_tensor_descriptor(x_ptr + 1, [64, 64], [64, 1], [16, 64])
    tile = desc.load([0, 0])  # here
    tl.store(out_ptr + tl.arange(0, 16)[:, None] * 64 + tl.arange(0, 64)[None, :], tile)


def test_a_misaligned_descriptor():
    expect_fault(
        misaligned_descriptor, "misaligned TMA: the tensor's address is 2 bytes past a multiple of 16",
        halves(65 * 64), halves(16, 64), text="desc.load",
    )  # fmt: skip


# Shared memory -------------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def read_unwritten(out_ptr):
    tiles = tlx.local_alloc((16, 16), tl.float32, 2)
    tlx.local_store(tiles[0], tl.zeros((16, 16), tl.float32))
    value = tlx.local_load(tiles[1])  # here
    tl.store(out_ptr + tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :], value)


def test_uninitialized_memory():
    report = expect_fault(
        read_unwritten,
        "'tiles[1]' is read before it is written: 256 of its 256 elements",
        np.zeros((16, 16), np.float32),
    )
    assert any("'tiles' is written at" in note and "tlx.local_store(tiles[0]" in note for note in report.notes)


@tlx_xdsl.jit
def overlap(out_ptr, LIVE: tl.constexpr):
    storage = tlx.storage_alias_spec(storage=tlx.storage_kind.smem)
    a = tlx.local_alloc((16, 32), tl.float16, 1, reuse=storage)
    b = tlx.local_alloc((16, 16), tl.float32, 1, reuse=storage)
    storage.set_buffer_overlap(tlx.reuse_group(a, b, group_type=tlx.reuse_group_type.shared))
    tlx.local_store(a[0], tl.full((16, 32), 1.0, tl.float16))
    value = tlx.local_load(a[0])
    tlx.local_store(b[0], tl.full((16, 16), 2.0, tl.float32))
    if LIVE:
        value += tlx.local_load(a[0])  # here
    tl.store(out_ptr + tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :], value)


@pytest.mark.parametrize("stage", ["frontend", "aliased"])
def test_a_buffer_that_another_one_has_overwritten(stage):
    expect_fault(overlap, "is read, but 'b", np.zeros((16, 32), np.float16), True, stage=stage)
    assert not run(overlap, np.zeros((16, 32), np.float16), False, stage=stage).warnings


@tlx_xdsl.jit
def cross_index(out_ptr, WRITTEN: tl.constexpr):
    # Both buffers of a pair of `y` lie in one of `x`: y[0] and y[1] in x[0], y[2] and y[3] in x[1].
    storage = tlx.storage_alias_spec(storage=tlx.storage_kind.smem)
    x = tlx.local_alloc((16, 64), tl.float16, 2, reuse=storage)
    y = tlx.local_alloc((16, 32), tl.float16, 4, reuse=storage)
    pairs = tlx.reuse_group(y, group_size=2)
    storage.set_buffer_overlap(tlx.reuse_group(x, pairs, group_type=tlx.reuse_group_type.shared))
    tlx.local_store(x[0], tl.full((16, 64), 1.0, tl.float16))
    tlx.local_store(y[WRITTEN], tl.full((16, 32), 2.0, tl.float16))
    value = tlx.local_load(x[0])  # here
    tl.store(out_ptr + tl.arange(0, 16)[:, None] * 64 + tl.arange(0, 64)[None, :], value)


@pytest.mark.parametrize("stage", ["frontend", "aliased"])
def test_buffers_of_different_indices_that_share_memory(stage):
    expect_fault(
        cross_index, "which lies at the same place, has overwritten it", np.zeros((16, 64), np.float16), 1, stage=stage
    )
    with pytest.raises(tlx_xdsl.CompilationError) as error:
        run(cross_index, np.zeros((16, 64), np.float16), 1, stage=stage)
    assert any("is written at" in note and "tlx.local_store(y[WRITTEN]" in note for note in error.value.notes)
    out = np.zeros((16, 64), np.float16)
    assert not run(cross_index, out, 2, stage=stage).warnings
    assert (out == 1).all()


@tlx_xdsl.jit
def two_layouts(out_ptr, MINE: tl.constexpr):
    storage = tlx.storage_alias_spec(storage=tlx.storage_kind.smem)
    plain: tl.constexpr = tlx.swizzled_shared_layout_encoding(1, 1, 1, [1, 0])
    a = tlx.local_alloc((16, 64), tl.float16, 1, reuse=storage)
    b = tlx.local_alloc((16, 64), tl.float16, 1, reuse=storage, layout=plain)
    storage.set_buffer_overlap(tlx.reuse_group(a, b, group_type=tlx.reuse_group_type.shared))
    tlx.local_store(a[0], tl.full((16, 64), 1.0, tl.float16))
    mine = tlx.local_reinterpret(a[0], tl.float16, (16, 64))
    value = tlx.local_load(mine if MINE else b[0])  # here
    tl.store(out_ptr + tl.arange(0, 16)[:, None] * 64 + tl.arange(0, 64)[None, :], value)


@pytest.mark.parametrize("stage", ["frontend", "aliased"])
def test_data_that_was_written_under_another_layout(stage):
    out = np.zeros((16, 64), np.float16)
    expect_fault(two_layouts, "'b[0]' is read, but 'a", out, False, stage=stage)
    assert not run(two_layouts, out, True, stage=stage).warnings
    assert (out == 1).all()


@tlx_xdsl.jit
def reinterpreted(out_ptr):
    a = tlx.local_alloc((16, 16), tl.float32, 1)
    tlx.local_store(a[0], tl.full((16, 16), 1.0, tl.float32))
    bits = tlx.local_load(tlx.local_reinterpret(a[0], tl.int32, (16, 16)))
    tl.store(out_ptr + tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :], bits)


@pytest.mark.parametrize("stage", ["frontend", "aliased"])
def test_the_user_may_reinterpret_a_buffer(stage):
    out = np.zeros((16, 16), np.int32)
    assert not run(reinterpreted, out, stage=stage).warnings
    assert (out == 0x3F800000).all()


@tlx_xdsl.jit
def between_tasks(out_ptr, SYNC: tl.constexpr):
    tile = tlx.local_alloc((16, 16), tl.float32, 1)
    ready = tlx.alloc_barriers(1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tlx.local_store(tile[0], tl.full((16, 16), 3.0, tl.float32))  # write
            tlx.barrier_arrive(ready[0])
        with tlx.async_task(num_warps=4):
            if SYNC:
                tlx.barrier_wait(ready[0], 0)
            value = tlx.local_load(tile[0])  # here
            tl.store(out_ptr + tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :], value)


def test_a_read_that_nothing_orders_after_the_write():
    report = expect_fault(
        between_tasks, "partition 0 reads 'tile[0]', and nothing orders it after the default task",
        np.zeros((16, 16), np.float32), False,
    )  # fmt: skip
    assert any(at(between_tasks, "write") in note for note in report.notes)
    assert "partition 0 has waited at no barrier so far" in report.notes
    assert not run(between_tasks, np.zeros((16, 16), np.float32), True).warnings


# Asynchronous operations ---------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def load_tile(desc, out_ptr, ROW: tl.constexpr, BYTES: tl.constexpr, WAIT: tl.constexpr):
    tile = tlx.local_alloc((16, 64), tl.float16, 1)
    full = tlx.alloc_barriers(1)
    tlx.barrier_expect_bytes(full[0], BYTES)
    tlx.async_descriptor_load(desc, tile[0], [ROW, 0], full[0])  # load
    if WAIT:
        tlx.barrier_wait(full[0], 0)
    value = tlx.local_load(tile[0])  # here
    tl.store(out_ptr + tl.arange(0, 16)[:, None] * 64 + tl.arange(0, 64)[None, :], value)


def _described(rows=16):
    x = halves(rows, 64)
    return x, tlx_xdsl.TensorDescriptor.from_tensor(x, [16, 64])


@pytest.mark.parametrize("row", [-8, 8, 16, 100])
def test_coordinates_outside_of_a_tensor_give_zeros(row):
    x, desc = _described()
    out = np.full((16, 64), 9, np.float16)
    assert not run(load_tile, desc, out, row, 2048, True).warnings
    for number in range(16):
        source = row + number
        assert (out[number] == (x[source] if 0 <= source < 16 else 0)).all()


def test_a_tile_that_is_read_while_it_is_loaded():
    report = expect_fault(
        load_tile, "the default task reads 'tile[0]', and nothing orders it after the TMA load of the default task",
        _described()[1], np.zeros((16, 64), np.float16), 0, 2048, False,
    )  # fmt: skip
    assert any(at(load_tile, "load") in note for note in report.notes)
    assert any("it is over when its phase of 'full[0]' is complete" in note for note in report.notes)


def test_fewer_bytes_are_expected_than_come():
    expect_fault(
        load_tile, "16 bytes more arrive on 'full[0]' than were expected for its phase 0: the expected bytes are",
        _described()[1], np.zeros((16, 64), np.float16), 0, 2032, True, mark="load",
    )  # fmt: skip


@tlx_xdsl.jit
def dot(a_desc, b_desc, out_ptr, WAIT: tl.constexpr):
    a = tlx.local_alloc((64, 64), tl.float16, 1)
    b = tlx.local_alloc((64, 64), tl.float16, 1)
    full = tlx.alloc_barriers(1)
    tlx.barrier_expect_bytes(full[0], 16384)
    tlx.async_descriptor_load(a_desc, a[0], [0, 0], full[0])
    tlx.async_descriptor_load(b_desc, b[0], [0, 0], full[0])
    tlx.barrier_wait(full[0], 0)
    acc = tlx.async_dot(a[0], b[0])  # dot
    if WAIT:
        acc = tlx.async_dot_wait(0, acc)
    acc = acc * 2.0  # here
    tl.store(out_ptr + tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :], acc)
    if not WAIT:
        tlx.async_dot_wait(0, acc)


def test_the_result_of_a_dot_that_was_not_waited_for():
    a, b = halves(64, 64), halves(64, 64)
    descs = [tlx_xdsl.TensorDescriptor.from_tensor(x, [64, 64]) for x in (a, b)]
    out = np.zeros((64, 64), np.float32)
    report = expect_fault(
        dot, "uses the result of an asynchronous dot that was not waited for", *descs, out, False, text="acc * 2"
    )
    assert any(at(dot, "dot") in note for note in report.notes)
    assert "wait with tlx.async_dot_wait(0, acc)" in report.notes
    assert not run(dot, *descs, out, True).warnings
    np.testing.assert_allclose(out, 2 * (a.astype(np.float32) @ b.astype(np.float32)), rtol=1e-5, atol=1e-4)


@tlx_xdsl.jit
def store_tile(desc, FENCE: tl.constexpr, WAIT: tl.constexpr):
    tile = tlx.local_alloc((16, 64), tl.float16, 1)
    tlx.local_store(tile[0], tl.full((16, 64), 4.0, tl.float16))  # write
    if FENCE:
        tlx.fence_async_shared()
    tlx.async_descriptor_store(desc, tile[0], [0, 0])  # here
    if WAIT:
        tlx.async_descriptor_store_wait(0)


def test_a_store_by_tma_needs_a_proxy_fence():
    report = expect_fault(store_tile, "has written without a proxy fence in between", _described()[1], False, True)
    assert any(at(store_tile, "write") in note for note in report.notes)
    assert any("tlx.fence_async_shared()" in note for note in report.notes)
    x, desc = _described()
    assert not run(store_tile, desc, True, True).warnings
    assert (x == 4).all()


def test_a_store_that_is_in_flight_at_the_end_is_warned_of_and_takes_effect():
    x, desc = _described()
    [warning] = run(store_tile, desc, True, False).warnings
    assert (x == 4).all()
    assert str(warning).startswith(
        f"{at(store_tile)}: warning: the default task ends without waiting for 1 of its TMA stores"
    )
