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


@tlx_xdsl.jit
def store_block(ptr, block, strides, inside, LIES: tl.constexpr, WIDE: tl.constexpr):
    """Store the rows and columns of a block that are `inside` of so many, `strides` elements apart, from `ptr` on."""
    rows, columns = tl.arange(0, block.shape[0]), tl.arange(0, block.shape[1])
    inside_m, inside_n = rows < inside[0], columns < inside[1]
    if LIES.columns:
        at = places(ptr, columns, strides[1], rows, strides[0], LIES.dense, LIES.vector, WIDE)
        tl.store(at, tl.trans(block), mask=inside_n[:, None] & inside_m[None, :])
    else:
        at = places(ptr, rows, strides[0], columns, strides[1], LIES.dense, LIES.vector, WIDE)
        tl.store(at, block, mask=inside_m[:, None] & inside_n[None, :])


class Copy(NamedTuple):
    """Memory of a copy: pointers, distances of rows and of columns, and extents, whose columns count vectors."""

    source: Any
    target: Any
    source_strides: Any
    target_strides: Any
    source_shape: Any
    target_shape: Any


@tlx_xdsl.jit
def copy_tile(tile, buffer, copy, LIES: tl.constexpr, WIDE: tl.constexpr):
    """Copy one tile of a matrix, as large as the buffer; what the target has more than the source becomes zeros.

    LIES says how the source and the target lie (`unaligned_config.Placement`).
    """
    FROM: tl.constexpr = LIES[0]
    TO: tl.constexpr = LIES[1]
    BLOCK_ROWS: tl.constexpr = buffer.shape[0]
    BLOCK_COLUMNS: tl.constexpr = buffer.shape[1]
    HALF_ROWS: tl.constexpr = BLOCK_ROWS // 2
    source, target = copy.source_strides, copy.target_strides
    tiles = tl.cdiv(copy.target_shape[1] * TO.vector, BLOCK_COLUMNS)
    tile_row = tile // tiles
    first_row = tile_row * BLOCK_ROWS
    first_column = (tile - tile_row * tiles) * BLOCK_COLUMNS
    source_ptr = copy.source + (first_row.to(tl.int64) * source[0] + first_column.to(tl.int64) * source[1])
    target_ptr = copy.target + (first_row.to(tl.int64) * target[0] + first_column.to(tl.int64) * target[1])

    rows, columns = tl.arange(0, BLOCK_ROWS), tl.arange(0, BLOCK_COLUMNS)
    at = places(source_ptr, rows, source[0], columns, source[1], FROM.dense, FROM.vector, WIDE)
    inside = columns < copy.source_shape[1] * FROM.vector - first_column
    mask = (rows < copy.source_shape[0] - first_row)[:, None] & inside[None, :]
    tlx.local_store(buffer, tl.load(at, mask=mask, other=0.0))
    # Blocks of one shape would have one layout, that of the longest vectors.
    inside = columns < copy.target_shape[1] * TO.vector - first_column
    for half in tl.static_range(2):
        rows = half * HALF_ROWS + tl.arange(0, HALF_ROWS)
        at = places(target_ptr, rows, target[0], columns, target[1], TO.dense, TO.vector, WIDE)
        block = tlx.local_load(tlx.local_slice(buffer, [half * HALF_ROWS, 0], [HALF_ROWS, BLOCK_COLUMNS]))
        tl.store(at, block, mask=(rows < copy.target_shape[0] - first_row)[:, None] & inside[None, :])


@tlx_xdsl.jit
def copy_tiles(copies, TILES, BLOCK: tl.constexpr, LIES: tl.constexpr, WIDE: tl.constexpr):
    """Copy a matrix, a tile for each program, or two: then the first TILES programs have the first one."""
    tile = tl.program_id(0)
    buffer = tlx.local_alloc(BLOCK, copies[0].source.dtype.element_ty, 1)
    if len(copies) == 1 or tile < TILES:
        copy_tile(tile, buffer[0], copies[0], LIES[0], WIDE)
    else:
        copy_tile(tile - TILES, buffer[0], copies[1], LIES[1], WIDE)


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


class Factor(NamedTuple):
    """A factor of a product, from a tile's first row (or column) on: where its elements are, and room for a step."""

    ptr: Any
    k_stride: Any
    places: Any
    buffer: Any


@tlx_xdsl.jit
def factor_of(
    ptr, first, count, strides, SIZE: tl.constexpr, BLOCK_K: tl.constexpr,
    K_FIRST: tl.constexpr, LIES: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """A factor with `count` rows of A (or columns of B), from the row `first` on; `strides` are those of rows and of K.

    A step is SIZE rows by BLOCK_K; with K_FIRST the block is BLOCK_K x SIZE. The last dimension is that along which
    neighbours lie closer. Places are offsets of a step's rows and of its columns, as blocks, and which of its SIZE are
    inside. Addresses of rows are computed, so a row that is not inside is the first one again, whose product is not
    stored; addresses along the columns are constants, so those outside are masked.
    """
    outer, k = tl.arange(0, SIZE), tl.arange(0, BLOCK_K)
    there = outer < count - first
    if not K_FIRST:
        outer = tl.where(there, outer, 0)
    if WIDE:
        outer, k = outer.to(tl.int64), k.to(tl.int64)
    # Neighbours of a dense factor are one element apart.
    if K_FIRST:
        rows, columns = k * strides[1], outer if LIES.dense else outer * strides[0]
    else:
        rows, columns = outer * strides[0], k if LIES.dense else k * strides[1]
    rows, columns = tl.broadcast(rows[:, None], columns[None, :])
    # What is loaded one by one is stored to shared memory in words of two.
    SIDE: tl.constexpr = 2 if LIES.vector == 1 else LIES.vector
    buffer = tlx.local_alloc(rows.shape, ptr.dtype.element_ty, 1)
    ptr += first.to(tl.int64) * strides[0]
    return Factor(ptr, strides[1], (pinned(rows, SIDE), pinned(columns, SIDE), there), buffer[0])


@tlx_xdsl.jit
def load_step(factor, k, count, K_FIRST: tl.constexpr, VECTOR: tl.constexpr, MASKED: tl.constexpr):
    """Load the step of K from `k` on. With MASKED it is zeros from `count` on; else all of it is there."""
    rows, columns, there = factor.places
    at = factor.ptr + k.to(tl.int64) * factor.k_stride + rows + columns
    if VECTOR > 1:
        at = tl.multiple_of(at, (1, VECTOR * tlx.size_of(factor.ptr.dtype.element_ty)))
    if K_FIRST:
        mask = there[None, :]
        if MASKED:
            mask = (tl.arange(0, rows.shape[0]) < count)[:, None] & mask
        return tl.load(at, mask=mask, other=0.0)
    if MASKED:
        return tl.load(at, mask=(tl.arange(0, rows.shape[1]) < count)[None, :], other=0.0)
    return tl.load(at)


class Distances(NamedTuple):
    """Elements between neighbours of a product's matrices: (rows, K) of A, (columns, K) of B, (rows, columns) of C.

    `split` are those between matrices of sums.
    """

    a: Any
    b: Any
    c: Any
    split: Any


@tlx_xdsl.jit
def gemm_direct(
    a_ptr, b_ptr, c_ptr, shape, strides, STEPS, UNITS: tl.constexpr, BLOCK: tl.constexpr,
    A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, PARTIAL: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """C = A @ B: a tile for each program along x and y, and STEPS steps of K for each along z.

    `shape` is M, N and K, counted in UNITS of so many elements; BLOCK are the extents of a step. A, B and C say how
    the matrices lie (`unaligned_config.Placement`). With PARTIAL each program along z has a matrix of its own,
    `strides.split` after the one before, whose rows have room for whole vectors.
    """
    if PARTIAL:
        tl.extra.cuda.gdc_launch_dependents()  # `add_splits` waits for the end of this launch itself
    BLOCK_M: tl.constexpr = BLOCK[0]
    BLOCK_N: tl.constexpr = BLOCK[1]
    BLOCK_K: tl.constexpr = BLOCK[2]
    A_FIRST: tl.constexpr = A.columns
    B_FIRST: tl.constexpr = not B.columns
    M, N, K = shape[0] * UNITS[0], shape[1] * UNITS[1], shape[2] * UNITS[2]
    first_m, first_n = tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_N
    first_k = tl.program_id(2) * (STEPS * BLOCK_K)
    last_k = tl.minimum(K, first_k + STEPS * BLOCK_K)
    # The incomplete step comes first: those in the loop need no mask.
    count = last_k - first_k - (tl.cdiv(last_k - first_k, BLOCK_K) - 1) * BLOCK_K
    left = factor_of(a_ptr, first_m, M, strides.a, BLOCK_M, BLOCK_K, A_FIRST, A, WIDE)
    right = factor_of(b_ptr, first_n, N, strides.b, BLOCK_N, BLOCK_K, B_FIRST, B, WIDE)

    a = load_step(left, first_k, count, A_FIRST, A.vector, True)
    b = load_step(right, first_k, count, B_FIRST, B.vector, True)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(first_k + count, last_k, BLOCK_K):
        store_step(left, right, a, b)
        a = load_step(left, k, count, A_FIRST, A.vector, False)
        b = load_step(right, k, count, B_FIRST, B.vector, False)
        acc = multiplied(left, right, acc, A.columns, B.columns)
    store_step(left, right, a, b)
    acc = multiplied(left, right, acc, A.columns, B.columns)

    c_ptr += first_m.to(tl.int64) * strides.c[0] + first_n.to(tl.int64) * strides.c[1]
    c_ptr += tl.program_id(2).to(tl.int64) * strides.split
    stored_n = tl.cdiv(N, C.vector) * C.vector if PARTIAL else N
    store_block(c_ptr, acc.to(c_ptr.dtype.element_ty), strides.c, (M - first_m, stored_n - first_n), C, WIDE)


@tlx_xdsl.jit
def store_step(left, right, a, b):
    """Store a step of both factors to shared memory."""
    tlx.local_store(left.buffer, a)
    tlx.local_store(right.buffer, b)
    tlx.fence_async_shared()  # the tensor cores read through the async proxy what the threads wrote


@tlx_xdsl.jit
def multiplied(left, right, acc, A_COLUMNS: tl.constexpr, B_COLUMNS: tl.constexpr):
    """Add the products of the step in shared memory."""
    acc = tlx.async_dot(operand(left.buffer, A_COLUMNS), operand(right.buffer, B_COLUMNS), acc)
    return tlx.async_dot_wait(0, acc)


@tlx_xdsl.jit
def add_splits(
    parts_ptr, c_ptr, SPLITS, shape, part_row, part_split, strides,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, TOGETHER: tl.constexpr, C: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """C = the sum of SPLITS matrices of f32, `part_split` apart, in an order that is always the same.

    TOGETHER of them are loaded at once, each of which has a sum of its own until the end. Their rows start at multiples
    of 16 bytes, and have room for whole ones.
    """
    tl.extra.cuda.gdc_wait()  # the programs of this launch are there before the product has ended
    M, N = shape
    first_m, first_n = tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_N
    rows, columns, splits = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, TOGETHER)
    parts_ptr += first_m.to(tl.int64) * part_row + first_n
    at = (splits.to(tl.int64) * part_split)[:, None, None] + (rows * part_row)[None, :, None] + columns[None, None, :]
    loaded_n = columns < tl.cdiv(N, 4) * 4 - first_n
    there = (rows < M - first_m)[None, :, None] & loaded_n[None, None, :]
    total = tl.zeros((TOGETHER, BLOCK_M, BLOCK_N), tl.float32)
    for split in range(0, SPLITS, TOGETHER):
        here = tl.multiple_of(parts_ptr + split.to(tl.int64) * part_split + at, (1, 1, 16))
        total += tl.load(here, mask=(splits < SPLITS - split)[:, None, None] & there, other=0.0)
    c_ptr += first_m.to(tl.int64) * strides[0] + first_n.to(tl.int64) * strides[1]
    store_block(c_ptr, tl.sum(total, 0).to(c_ptr.dtype.element_ty), strides, (M - first_m, N - first_n), C, WIDE)


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
