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

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from .device import load_tile, operand
from .unaligned_device import store_part_by_pointer


@tlx_xdsl.jit
def vectors_at(rows, columns, row, column, M, N, ROWS: tl.constexpr, COLUMNS: tl.constexpr, TURNED: tl.constexpr):
    """Load the vectors that are there for the part at (row, column), as f32; with TURNED columns come first."""
    of_rows, of_columns = (), ()
    for index in tl.static_range(len(rows)):
        if rows[index] is not None:
            at = row + tl.arange(0, ROWS)
            of_rows = (*of_rows, tl.load(rows[index] + at, at < M, 0).to(tl.float32)[:, None])
    for index in tl.static_range(len(columns)):
        if columns[index] is not None:
            at = column + tl.arange(0, COLUMNS)
            of_columns = (*of_columns, tl.load(columns[index] + at, at < N, 0).to(tl.float32)[None, :])
    return of_columns + of_rows if TURNED else of_rows + of_columns


@tlx_xdsl.jit
def type_of_result(out):
    """The type of C: `out` is its descriptor, or None and C's address with its strides along rows and columns."""
    return tlx.dtype_of(out[0]) if out[0] is not None else out[1].dtype.element_ty


@tlx_xdsl.jit
def free_buffer(PART: tl.constexpr, BUFFERS: tl.constexpr):
    """Wait until the buffer of a part can be written again: its last store, `BUFFERS` stores ago, has read it."""
    if PART == 0:
        tlx.async_descriptor_store_wait(0)
    elif PART >= BUFFERS:
        tlx.async_descriptor_store_wait(BUFFERS - 1)


@tlx_xdsl.jit
def halves(blocks):
    """The left halves and the right halves of blocks."""
    lefts, rights = (), ()
    for index in tl.static_range(len(blocks)):
        block = blocks[index]
        ROWS: tl.constexpr = block.shape[0]
        HALF: tl.constexpr = block.shape[1] // 2
        left, right = tl.split(tl.permute(tl.reshape(block, (ROWS, 2, HALF)), (0, 2, 1)))
        lefts = (*lefts, left)
        rights = (*rights, right)
    return lefts, rights


@tlx_xdsl.jit
def store_columns(
    sums, out, c, first, row, column, M, N, rows, columns, matrix_desc, arrived, turn,
    PART: tl.constexpr, PART_N: tl.constexpr, BUFFERS: tl.constexpr, C_COLUMNS: tl.constexpr, TURNED: tl.constexpr,
    EPILOGUE: tl.constexpr, REDUCE: tl.constexpr = "",
):  # fmt: skip
    """Store columns of C, in parts of PART_N; PART is the number of the first one in its tile."""
    COLUMNS: tl.constexpr = sums[0].shape[1]
    if COLUMNS > PART_N:
        lefts, rights = halves(sums)
        store_columns(
            lefts, out, c, first, row, column, M, N, rows, columns, matrix_desc, arrived, turn,
            PART, PART_N, BUFFERS, C_COLUMNS, TURNED, EPILOGUE, REDUCE,
        )  # fmt: skip
        store_columns(
            rights, out, c, first, row, column + COLUMNS // 2, M, N, rows, columns, matrix_desc, arrived, turn,
            PART + COLUMNS // 2 // PART_N, PART_N, BUFFERS, C_COLUMNS, TURNED, EPILOGUE, REDUCE,
        )  # fmt: skip
    else:
        dtype: tl.constexpr = type_of_result(out)
        ROWS: tl.constexpr = sums[0].shape[0]
        buffer = c[first + PART % BUFFERS]
        free_buffer(PART, BUFFERS)
        result = sums[0]
        if EPILOGUE is not None:
            operands = vectors_at(rows, columns, row, column, M, N, ROWS, PART_N, TURNED)
            if matrix_desc is not None:
                tlx.barrier_expect_bytes(arrived, ROWS * PART_N * tlx.size_of(dtype))
                load_tile(matrix_desc, buffer, row, column, arrived, C_COLUMNS)
                tlx.barrier_wait(arrived, (turn + PART) & 1)
                operands = (*operands, tlx.local_load(operand(buffer, C_COLUMNS)).to(tl.float32))
            result = EPILOGUE(*sums, *operands)
        result = result.to(dtype)
        c_desc, c_ptr, row_stride, column_stride = out
        if c_desc is None:
            store_part_by_pointer(
                result, buffer, c_ptr, row_stride, column_stride, row, column, M, N, C_COLUMNS, True
            )  # fmt: skip
        else:
            tlx.local_store(operand(buffer, C_COLUMNS), result)
            tlx.fence_async_shared()  # TMA reads through the async proxy what the threads wrote
            if C_COLUMNS:
                tlx.async_descriptor_store(c_desc, buffer, [column, row], store_reduce=REDUCE)
            else:
                tlx.async_descriptor_store(c_desc, buffer, [row, column], store_reduce=REDUCE)


@tlx_xdsl.jit
def store_tile(
    sums, out, c, task, row, column, M, N, rows, columns, matrix_desc, arrived, turn,
    PART_N: tl.constexpr, BUFFERS: tl.constexpr, C_COLUMNS: tl.constexpr, PAIRED: tl.constexpr, TURNED: tl.constexpr,
    EPILOGUE: tl.constexpr, REDUCE: tl.constexpr = "",
):  # fmt: skip
    """Store a consumer's tile of C at (row, column), whose strips are `sums`, through the buffers of its task.

    `arrived` is one barrier for each task, where parts of the second matrix arrive; `turn` counts the task's tiles.
    """
    first = task * BUFFERS
    bar = arrived[task] if matrix_desc is not None else None
    WIDTH: tl.constexpr = sums[0].shape[1]
    PARTS: tl.constexpr = WIDTH // PART_N if PAIRED or len(sums) == 1 else (WIDTH + sums[1].shape[1]) // PART_N
    if PAIRED:
        store_columns(
            sums, out, c, first, row, column, M, N, rows, columns, matrix_desc, bar, turn * PARTS,
            0, PART_N, BUFFERS, C_COLUMNS, TURNED, EPILOGUE, REDUCE,
        )  # fmt: skip
    else:
        store_columns(
            (sums[0],), out, c, first, row, column, M, N, rows, columns, matrix_desc, bar, turn * PARTS,
            0, PART_N, BUFFERS, C_COLUMNS, TURNED, EPILOGUE, REDUCE,
        )  # fmt: skip
        if len(sums) == 2:
            store_columns(
                (sums[1],), out, c, first, row, column + WIDTH, M, N, rows, columns, matrix_desc, bar, turn * PARTS,
                WIDTH // PART_N, PART_N, BUFFERS, C_COLUMNS, TURNED, EPILOGUE, REDUCE,
            )  # fmt: skip


@tlx_xdsl.jit
def store_sums(
    sums, w_desc, c, first, row, column, PART: tl.constexpr, WIDTH: tl.constexpr, BUFFERS: tl.constexpr
):  # fmt: skip
    """Store f32 sums in parts of WIDTH columns, through the buffers of C."""
    COLUMNS: tl.constexpr = sums[0].shape[1]
    if COLUMNS > WIDTH:
        lefts, rights = halves(sums)
        store_sums(lefts, w_desc, c, first, row, column, PART, WIDTH, BUFFERS)
        store_sums(rights, w_desc, c, first, row, column + COLUMNS // 2, PART + COLUMNS // 2 // WIDTH, WIDTH, BUFFERS)
    else:
        ROWS: tl.constexpr = sums[0].shape[0]
        free_buffer(PART, BUFFERS)
        buffer = tlx.local_reinterpret(c[first + PART % BUFFERS], tl.float32, (ROWS, WIDTH))
        tlx.local_store(buffer, sums[0])
        tlx.fence_async_shared()
        tlx.async_descriptor_store(w_desc, buffer, [row, column])


@tlx_xdsl.jit
def store_partial(sums, w_desc, c, task, row, PART_N: tl.constexpr, BUFFERS: tl.constexpr):
    """Store a consumer's sums of a piece of K as they are, strips side by side, at `row` of the workspace."""
    # A buffer holds as many bytes of f32 as of C.
    WIDTH: tl.constexpr = PART_N * tlx.size_of(tlx.dtype_of(c)) // 4
    FIRST: tl.constexpr = sums[0].shape[1]
    store_sums((sums[0],), w_desc, c, task * BUFFERS, row, 0, 0, WIDTH, BUFFERS)
    if len(sums) == 2:
        store_sums((sums[1],), w_desc, c, task * BUFFERS, row, FIRST, FIRST // WIDTH, WIDTH, BUFFERS)
