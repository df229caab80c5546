"""The end of a GEMM tile: from the f32 sums of a consumer to C, in parts, through shared memory and TMA.

`EPILOGUE(sums, *operands)` is a function of the f32 sums of a part, (rows, columns), and gives what is stored. Its
operands come in this order: vectors with a number for each row, as (rows, 1); vectors with a number for each column, as
(1, columns); the part of a second matrix of C's shape and type, as (rows, columns). With PAIRED it has the sums of both
strips before them. With TURNED the kernel computes C^T: what it takes for rows are the columns of who wrote EPILOGUE,
which goes element by element, so that nothing but the order of the vectors depends on it.

Where TMA can't write C, its threads do, through the same buffers. With REDUCE TMA combines what it stores with what is
there ("add"); threads do not.

The second matrix arrives by TMA in the buffer that the result leaves from: no more shared memory, and each element in
the thread that needs it.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

from typing import Any, NamedTuple

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from .device import by_parts, load_tile, operand, ring_of, tile_rings
from .unaligned_device import store_part_by_pointer


@tlx_xdsl.jit
def vector_at(pointer, first, count, LENGTH: tl.constexpr):
    """Load LENGTH numbers of a vector of `count` from `first` on, as f32."""
    at = first + tl.arange(0, LENGTH)
    return tl.load(pointer + at, at < count, 0).to(tl.float32)


@tlx_xdsl.jit
def vectors_at(target, row, column, sizes, ROWS: tl.constexpr, COLUMNS: tl.constexpr, TURNED: tl.constexpr):
    """Load the vectors for the part at (row, column), as f32; with TURNED those of columns come first."""
    of_rows = [vector_at(each, row, sizes.m, ROWS)[:, None] for each in target.rows]
    of_columns = [vector_at(each, column, sizes.n, COLUMNS)[None, :] for each in target.columns]
    return of_columns + of_rows if TURNED else of_rows + of_columns


class Target(NamedTuple):
    """Place of C, and operands of the epilogue: vectors of rows and of columns, and a second matrix, or None.

    Without a descriptor C lies at `ptr`, with its rows and columns so many elements apart.
    """

    desc: Any
    ptr: Any = None
    row_stride: Any = None
    column_stride: Any = None
    rows: Any = ()
    columns: Any = ()
    matrix: Any = None


class Result(NamedTuple):
    """Ends of the tiles of all tasks: C, and buffers of each task for parts of it.

    `arrived` is one barrier for each task, where parts of the second matrix arrive.
    """

    target: Any
    sizes: Any
    form: Any
    buffers: Any
    arrived: Any


@tlx_xdsl.jit
def type_of_result(target):
    """The type of C."""
    return tlx.dtype_of(target.desc) if target.desc is not None else target.ptr.dtype.element_ty


@tlx_xdsl.jit
def ring_and_result(a_desc, target, sizes, form: tl.constexpr, rank=0):
    """The ring of a product in half precision, and its result, with all memory and barriers."""
    tile: tl.constexpr = form.tile
    tiles = tile_rings(tlx.dtype_of(a_desc), form)
    # Parts are transposed where C lies by columns.
    shape: tl.constexpr = (tile.part_n, tile.rows) if form.c_columns else (tile.rows, tile.part_n)
    buffers = tlx.local_alloc(shape, type_of_result(target), tile.consumers * tile.buffers)
    ring = ring_of(tiles, form, rank)
    arrived = tlx.alloc_barriers(tile.consumers) if target.matrix is not None else None
    return ring, Result(target, sizes, form, buffers, arrived)


@tlx_xdsl.jit
def free_buffer(PART: tl.constexpr, BUFFERS: tl.constexpr):
    """Wait until the buffer of a part can be written again: its last store, `BUFFERS` stores ago, has read it."""
    if PART == 0:
        tlx.async_descriptor_store_wait(0)
    elif PART >= BUFFERS:
        tlx.async_descriptor_store_wait(BUFFERS - 1)


@tlx_xdsl.jit
def store_columns(sums, column, state, task: tl.constexpr, PART: tl.constexpr):
    """Store a part of C through a task's buffers; PART is its number in the tile.

    `state` are the result, the row, and the barrier on which a part of the second matrix completes a phase:
    the first one of the tile phase `turn`.
    """
    out, row, arrived, turn = state
    form: tl.constexpr = out.form
    target = out.target
    dtype: tl.constexpr = type_of_result(target)
    ROWS: tl.constexpr = sums[0].shape[0]
    PART_N: tl.constexpr = form.tile.part_n
    BUFFERS: tl.constexpr = form.tile.buffers
    buffer = out.buffers[task * BUFFERS + PART % BUFFERS]
    free_buffer(PART, BUFFERS)
    result = sums[0]
    if form.epilogue is not None:
        operands = vectors_at(target, row, column, out.sizes, ROWS, PART_N, form.turned)
        if target.matrix is not None:
            tlx.barrier_expect_bytes(arrived, ROWS * PART_N * tlx.size_of(dtype))
            load_tile(target.matrix, buffer, row, column, arrived, form.c_columns)
            tlx.barrier_wait(arrived, (turn + PART) & 1)
            operands = (*operands, tlx.local_load(operand(buffer, form.c_columns)).to(tl.float32))
        result = form.epilogue(*sums, *operands)
    result = result.to(dtype)
    if target.desc is None:
        store_part_by_pointer(
            result, buffer, target.ptr, target.row_stride, target.column_stride, row, column,
            out.sizes.m, out.sizes.n, form.c_columns, True,
        )  # fmt: skip
    else:
        tlx.local_store(operand(buffer, form.c_columns), result)
        tlx.fence_async_shared()  # TMA reads through the async proxy what the threads wrote
        where = [column, row] if form.c_columns else [row, column]
        tlx.async_descriptor_store(target.desc, buffer, where, store_reduce=form.reduce)


@tlx_xdsl.jit
def store_tile(sums, out, task: tl.constexpr, row, column, turn):
    """Store a consumer's tile of C at (row, column), whose strips are `sums`; `turn` counts the task's tiles."""
    arrived = out.arrived[task] if out.target.matrix is not None else None
    PART_N: tl.constexpr = out.form.tile.part_n
    WIDTH: tl.constexpr = sums[0].shape[1]
    if out.form.paired:
        by_parts(sums, column, store_columns, (out, row, arrived, turn * (WIDTH // PART_N)), task, PART_N)
    else:
        SECOND: tl.constexpr = sums[1].shape[1] if len(sums) == 2 else 0
        state = (out, row, arrived, turn * ((WIDTH + SECOND) // PART_N))
        by_parts((sums[0],), column, store_columns, state, task, PART_N)
        if len(sums) == 2:
            by_parts((sums[1],), column + WIDTH, store_columns, state, task, PART_N, WIDTH // PART_N)


@tlx_xdsl.jit
def store_sums(sums, column, state, task: tl.constexpr, PART: tl.constexpr):
    """Store a part of f32 sums through the buffers of C."""
    w_desc, out, row = state
    BUFFERS: tl.constexpr = out.form.tile.buffers
    free_buffer(PART, BUFFERS)
    buffer = tlx.local_reinterpret(out.buffers[task * BUFFERS + PART % BUFFERS], tl.float32, sums[0].shape)
    tlx.local_store(buffer, sums[0])
    tlx.fence_async_shared()
    tlx.async_descriptor_store(w_desc, buffer, [row, column])


@tlx_xdsl.jit
def store_partial(sums, w_desc, out, task: tl.constexpr, row):
    """Store a consumer's sums of a piece of K as they are, strips side by side, at `row` of the workspace."""
    # A buffer holds as many bytes of f32 as of C.
    WIDTH: tl.constexpr = out.form.tile.part_n * tlx.size_of(tlx.dtype_of(out.buffers)) // 4
    FIRST: tl.constexpr = sums[0].shape[1]
    state = (w_desc, out, row)
    by_parts((sums[0],), 0, store_sums, state, task, WIDTH)
    if len(sums) == 2:
        by_parts((sums[1],), FIRST, store_sums, state, task, WIDTH, FIRST // WIDTH)
