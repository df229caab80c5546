"""Kernels for matrices that TMA cannot read or write: any strides, any alignment.

- `copy_tiles` copies a matrix between two places of any strides, tile by tile through shared memory, so that each side
  is accessed as its own alignment allows: one element for each thread where rows start anywhere, 16 bytes where they
  are aligned.
- `gemm_direct` multiplies what it loads by `tl.load`, for problems that are short in M or N, where a copy of the larger
  factor would cost more than the product. A step of K is loaded to registers while the one before is multiplied from
  shared memory. K is dealt out to several programs for each tile, whose sums go to a workspace, and `add_splits` adds
  them in their order: the same inputs give the same bits.
- `store_part_by_pointer` stores a part of an accumulator to rows that TMA can't write.

What is read and written at once is a *vector*: a number of elements that the launch knows to be aligned. Extents along
which there are vectors are counted in them, so that the compiler sees that no vector is half outside.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false

from typing import Any, NamedTuple

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from .device import operand


@tlx_xdsl.jit
def places(
    ptr, rows, row_stride, columns, column_stride,
    DENSE: tl.constexpr, VECTOR: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """The addresses of the block of `rows` x `columns` after `ptr`, whose VECTOR neighbours are aligned as one.

    Where it is DENSE the column stride is 1. WIDE says that offsets in a block need 64 bits.
    """
    dtype: tl.constexpr = ptr.dtype.element_ty
    if WIDE:
        rows, columns = rows.to(tl.int64), columns.to(tl.int64)
    if not DENSE:
        columns = columns * column_stride
    at = ptr + (rows * row_stride)[:, None] + columns[None, :]
    return tl.multiple_of(at, (1, VECTOR * tlx.size_of(dtype))) if VECTOR > 1 else at


class Way(NamedTuple):
    """Places of the elements of a copy: distances of rows and of columns, and extents, whose columns count vectors."""

    source_strides: Any
    target_strides: Any
    source_shape: Any
    target_shape: Any


@tlx_xdsl.jit
def copy_tile(tile, buffer, source_ptr, target_ptr, way, FROM: tl.constexpr, TO: tl.constexpr, WIDE: tl.constexpr):
    """Copy one tile of a matrix, as large as the buffer; what the target has more than the source becomes zeros.

    FROM and TO say how the source and the target lie (`unaligned_config.Placement`).
    """
    BLOCK_ROWS: tl.constexpr = buffer.shape[0]
    BLOCK_COLUMNS: tl.constexpr = buffer.shape[1]
    HALF_ROWS: tl.constexpr = BLOCK_ROWS // 2
    source, target = way.source_strides, way.target_strides
    tiles = tl.cdiv(way.target_shape[1] * TO.vector, BLOCK_COLUMNS)
    tile_row = tile // tiles
    first_row = tile_row * BLOCK_ROWS
    first_column = (tile - tile_row * tiles) * BLOCK_COLUMNS
    source_ptr += first_row.to(tl.int64) * source[0] + first_column.to(tl.int64) * source[1]
    target_ptr += first_row.to(tl.int64) * target[0] + first_column.to(tl.int64) * target[1]

    rows, columns = tl.arange(0, BLOCK_ROWS), tl.arange(0, BLOCK_COLUMNS)
    at = places(source_ptr, rows, source[0], columns, source[1], FROM.dense, FROM.vector, WIDE)
    inside = columns < way.source_shape[1] * FROM.vector - first_column
    mask = (rows < way.source_shape[0] - first_row)[:, None] & inside[None, :]
    tlx.local_store(buffer, tl.load(at, mask=mask, other=0.0))
    # Blocks of one shape would have one layout, that of the longest vectors.
    inside = columns < way.target_shape[1] * TO.vector - first_column
    for half in tl.static_range(2):
        rows = half * HALF_ROWS + tl.arange(0, HALF_ROWS)
        at = places(target_ptr, rows, target[0], columns, target[1], TO.dense, TO.vector, WIDE)
        block = tlx.local_load(tlx.local_slice(buffer, [half * HALF_ROWS, 0], [HALF_ROWS, BLOCK_COLUMNS]))
        tl.store(at, block, mask=(rows < way.target_shape[0] - first_row)[:, None] & inside[None, :])


@tlx_xdsl.jit
def copy_tiles(
    source_ptr, target_ptr, way, source_ptr2, target_ptr2, way2, TILES, BLOCK_ROWS: tl.constexpr,
    BLOCK_COLUMNS: tl.constexpr, FROM: tl.constexpr, TO: tl.constexpr, FROM2: tl.constexpr, TO2: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """Copy a matrix, a tile for each program, or two: then the first TILES programs have the first one."""
    tile = tl.program_id(0)
    buffer = tlx.local_alloc((BLOCK_ROWS, BLOCK_COLUMNS), source_ptr.dtype.element_ty, 1)
    if source_ptr2 is None or tile < TILES:
        copy_tile(tile, buffer[0], source_ptr, target_ptr, way, FROM, TO, WIDE)
    else:
        copy_tile(tile - TILES, buffer[0], source_ptr2, target_ptr2, way2, FROM2, TO2, WIDE)


@tlx_xdsl.jit
def pinned(block, SIDE: tl.constexpr):
    """A block, in a layout where each of 4 warps accesses SIDE neighbours by a thread, and whole rows after each other.

    A thread then has as few rows as can be, for each has an address of its own.
    """
    ROWS: tl.constexpr = block.shape[0]
    COLUMNS: tl.constexpr = block.shape[1]
    LANES: tl.constexpr = 32 if COLUMNS >= 32 * SIDE else COLUMNS // SIDE
    layout: tl.constexpr = tlx.layout(
        shape=((LANES, 32 // LANES, 4), (SIDE, COLUMNS // (SIDE * LANES), ROWS * LANES // 128)),
        stride=((SIDE, COLUMNS, COLUMNS * (32 // LANES)), (1, SIDE * LANES, COLUMNS * (128 // LANES))),
    )
    return tlx.require_layout(block, layout)


@tlx_xdsl.jit
def factor_places(
    outer_stride, k_stride, inside, SIZE: tl.constexpr, BLOCK_K: tl.constexpr,
    K_FIRST: tl.constexpr, DENSE: tl.constexpr, VECTOR: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Offsets of a step's rows and of its columns, as blocks, and which of its SIZE are inside.

    A step is SIZE rows of A (or columns of B) by BLOCK_K; with K_FIRST the block is BLOCK_K x SIZE. The last dimension
    is that along which neighbours lie closer. Addresses of rows are computed, so a row that is not inside is the first
    one again, whose product is not stored; addresses along the columns are constants, so those outside are masked.
    """
    outer, k = tl.arange(0, SIZE), tl.arange(0, BLOCK_K)
    there = outer < inside
    if not K_FIRST:
        outer = tl.where(there, outer, 0)
    if WIDE:
        outer, k = outer.to(tl.int64), k.to(tl.int64)
    if K_FIRST:
        rows, columns = tl.broadcast((k * k_stride)[:, None], (outer if DENSE else outer * outer_stride)[None, :])
    else:
        rows, columns = tl.broadcast((outer * outer_stride)[:, None], (k if DENSE else k * k_stride)[None, :])
    # What is loaded one by one is stored to shared memory in words of two.
    SIDE: tl.constexpr = 2 if VECTOR == 1 else VECTOR
    return pinned(rows, SIDE), pinned(columns, SIDE), there


@tlx_xdsl.jit
def load_step(ptr, k, k_stride, places, count, K_FIRST: tl.constexpr, VECTOR: tl.constexpr, MASKED: tl.constexpr):
    """Load the step of K from `k` on. With MASKED it is zeros from `count` on; else all of it is there."""
    rows, columns, there = places
    dtype: tl.constexpr = ptr.dtype.element_ty
    at = ptr + k.to(tl.int64) * k_stride + rows + columns
    if VECTOR > 1:
        at = tl.multiple_of(at, (1, VECTOR * tlx.size_of(dtype)))
    if K_FIRST:
        if MASKED:
            return tl.load(at, mask=(tl.arange(0, rows.shape[0]) < count)[:, None] & there[None, :], other=0.0)
        return tl.load(at, mask=there[None, :], other=0.0)
    if MASKED:
        return tl.load(at, mask=(tl.arange(0, rows.shape[1]) < count)[None, :], other=0.0)
    return tl.load(at)


class Distances(NamedTuple):
    """Elements between neighbours of a product's matrices along rows, columns and K, and between matrices of sums."""

    a_row: Any
    a_k: Any
    b_column: Any
    b_k: Any
    c_row: Any
    c_column: Any
    c_split: Any


@tlx_xdsl.jit
def gemm_direct(
    a_ptr, b_ptr, c_ptr, shape, strides, STEPS, UNITS: tl.constexpr, BLOCK: tl.constexpr,
    A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, PARTIAL: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """C = A @ B: a tile for each program along x and y, and STEPS steps of K for each along z.

    `shape` is M, N and K, counted in UNITS of so many elements; BLOCK are the extents of a step. A, B and C say how
    the matrices lie (`unaligned_config.Placement`). With PARTIAL each program along z has a matrix of its own,
    `c_split` after the one before, whose rows have room for whole vectors.
    """
    if PARTIAL:
        tl.extra.cuda.gdc_launch_dependents()  # `add_splits` waits for the end of this launch itself
    BLOCK_M: tl.constexpr = BLOCK[0]
    BLOCK_N: tl.constexpr = BLOCK[1]
    BLOCK_K: tl.constexpr = BLOCK[2]
    M, N, K = shape[0] * UNITS[0], shape[1] * UNITS[1], shape[2] * UNITS[2]
    a_row, a_k, b_column, b_k, c_row, c_column, c_split = strides
    dtype: tl.constexpr = a_ptr.dtype.element_ty
    first_m, first_n = tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_N
    first_k = tl.program_id(2) * (STEPS * BLOCK_K)
    last_k = tl.minimum(K, first_k + STEPS * BLOCK_K)
    # The incomplete step comes first: those in the loop need no mask.
    count = last_k - first_k - (tl.cdiv(last_k - first_k, BLOCK_K) - 1) * BLOCK_K
    a_ptr += first_m.to(tl.int64) * a_row
    b_ptr += first_n.to(tl.int64) * b_column
    a_buffer = tlx.local_alloc((BLOCK_K, BLOCK_M) if A.columns else (BLOCK_M, BLOCK_K), dtype, 1)
    b_buffer = tlx.local_alloc((BLOCK_N, BLOCK_K) if B.columns else (BLOCK_K, BLOCK_N), dtype, 1)
    a_places = factor_places(a_row, a_k, M - first_m, BLOCK_M, BLOCK_K, A.columns, A.dense, A.vector, WIDE)
    b_places = factor_places(b_column, b_k, N - first_n, BLOCK_N, BLOCK_K, not B.columns, B.dense, B.vector, WIDE)

    a = load_step(a_ptr, first_k, a_k, a_places, count, A.columns, A.vector, True)
    b = load_step(b_ptr, first_k, b_k, b_places, count, not B.columns, B.vector, True)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(first_k + count, last_k, BLOCK_K):
        tlx.local_store(a_buffer[0], a)
        tlx.local_store(b_buffer[0], b)
        tlx.fence_async_shared()  # the tensor cores read through the async proxy what the threads wrote
        a = load_step(a_ptr, k, a_k, a_places, count, A.columns, A.vector, False)
        b = load_step(b_ptr, k, b_k, b_places, count, not B.columns, B.vector, False)
        acc = tlx.async_dot(operand(a_buffer[0], A.columns), operand(b_buffer[0], B.columns), acc)
        acc = tlx.async_dot_wait(0, acc)
    tlx.local_store(a_buffer[0], a)
    tlx.local_store(b_buffer[0], b)
    tlx.fence_async_shared()
    acc = tlx.async_dot(operand(a_buffer[0], A.columns), operand(b_buffer[0], B.columns), acc)
    acc = tlx.async_dot_wait(0, acc)

    c_ptr += first_m.to(tl.int64) * c_row + first_n.to(tl.int64) * c_column + tl.program_id(2).to(tl.int64) * c_split
    tile = acc.to(c_ptr.dtype.element_ty)
    rows, columns = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    inside_m, inside_n = rows < M - first_m, columns < N - first_n
    if PARTIAL:
        at = places(c_ptr, rows, c_row, columns, c_column, C.dense, C.vector, WIDE)
        stored_n = columns < tl.cdiv(N, C.vector) * C.vector - first_n
        tl.store(at, tile, mask=inside_m[:, None] & stored_n[None, :])
    elif C.columns:
        at = places(c_ptr, columns, c_column, rows, c_row, C.dense, C.vector, WIDE)
        tl.store(at, tl.trans(tile), mask=inside_n[:, None] & inside_m[None, :])
    else:
        at = places(c_ptr, rows, c_row, columns, c_column, C.dense, C.vector, WIDE)
        tl.store(at, tile, mask=inside_m[:, None] & inside_n[None, :])


@tlx_xdsl.jit
def add_splits(
    parts_ptr, c_ptr, SPLITS, M, N, part_row, part_split, c_row, c_column,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, TOGETHER: tl.constexpr,
    C_COLUMNS: tl.constexpr, C_DENSE: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """C = the sum of SPLITS matrices of f32, `part_split` apart, in an order that is always the same.

    TOGETHER of them are loaded at once, each of which has a sum of its own until the end. Their rows start at multiples
    of 16 bytes, and have room for whole ones.
    """
    tl.extra.cuda.gdc_wait()  # the programs of this launch are there before the product has ended
    first_m, first_n = tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_N
    rows, columns, splits = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, TOGETHER)
    inside_m, inside_n = rows < M - first_m, columns < N - first_n
    parts_ptr += first_m.to(tl.int64) * part_row + first_n
    at = (splits.to(tl.int64) * part_split)[:, None, None] + (rows * part_row)[None, :, None] + columns[None, None, :]
    loaded_n = columns < tl.cdiv(N, 4) * 4 - first_n
    there = inside_m[None, :, None] & loaded_n[None, None, :]
    total = tl.zeros((TOGETHER, BLOCK_M, BLOCK_N), tl.float32)
    for split in range(0, SPLITS, TOGETHER):
        here = tl.multiple_of(parts_ptr + split.to(tl.int64) * part_split + at, (1, 1, 16))
        total += tl.load(here, mask=(splits < SPLITS - split)[:, None, None] & there, other=0.0)
    tile = tl.sum(total, 0).to(c_ptr.dtype.element_ty)
    c_ptr += first_m.to(tl.int64) * c_row + first_n.to(tl.int64) * c_column
    if C_COLUMNS:
        at = places(c_ptr, columns, c_column, rows, c_row, C_DENSE, 1, WIDE)
        tl.store(at, tl.trans(tile), mask=inside_n[:, None] & inside_m[None, :])
    else:
        at = places(c_ptr, rows, c_row, columns, c_column, C_DENSE, 1, WIDE)
        tl.store(at, tile, mask=inside_m[:, None] & inside_n[None, :])


@tlx_xdsl.jit
def store_part_by_pointer(
    part, buffer, c_ptr, stride_m, stride_n, row, column, M, N, C_COLUMNS: tl.constexpr, C_DENSE: tl.constexpr
):  # fmt: skip
    """Store the part of C at (row, column), of C's type, to memory of any strides, by one warp group.

    It goes through `buffer`, which only this task uses, so that neighbouring threads write neighbouring elements: the
    buffer has the shape of the part, or of its transpose with C_COLUMNS, where neighbours in a column lie closer.
    C_DENSE says that they lie side by side. What is not inside M x N is not stored.
    """
    tlx.local_store(operand(buffer, C_COLUMNS), part)
    if C_COLUMNS:
        row, column, stride_m, stride_n, M, N = column, row, stride_n, stride_m, N, M
    ROWS: tl.constexpr = buffer.shape[0]
    COLUMNS: tl.constexpr = buffer.shape[1]
    c_ptr += tl.cast(row, tl.int64) * stride_m + tl.cast(column, tl.int64) * stride_n
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    inside = (rows < M - row)[:, None] & (columns < N - column)[None, :]
    far, near = tl.broadcast((rows * stride_m)[:, None], (columns if C_DENSE else columns * stride_n)[None, :])
    tl.store(c_ptr + pinned(far, 1) + pinned(near, 1), tlx.local_load(buffer), mask=inside)
