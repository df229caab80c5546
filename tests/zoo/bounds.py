"""Addresses: masks that are missing, elements that are written twice, memory that no one has written."""

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.zoo.arrays import described, empty, numbers, zeros
from tests.zoo.bugs import Cage

# Kernels are read by the frontend, not run by Python.
# pyright: basic

OUTSIDE = "(load|store) out of bounds"


def floats(*counts):
    return lambda: tuple(numbers(count, dtype="float32") for count in counts)


@tlx_xdsl.jit
def vector(x, y, out, COUNT, BLOCK: tl.constexpr, BUG: tl.constexpr):
    """out = x + y, by blocks, the last of which is not full."""
    first = tl.program_id(0) * BLOCK
    offsets = first + tl.arange(0, BLOCK)
    if BUG == "from one":
        offsets += 1
    if BUG == "mask by block":
        mask = tl.arange(0, BLOCK) < COUNT
    elif BUG == "one too many":
        mask = offsets <= COUNT
    else:
        mask = offsets < COUNT
    if BUG == "no mask at the load":
        a = tl.load(x + offsets)  # at: no mask at the load
    elif BUG == "before the array":
        a = tl.load(x + offsets - 1, mask=mask, other=0.0)  # at: before the array
    else:
        a = tl.load(x + offsets, mask=mask)  # at: mask by block, one too many
    b = tl.load(y + offsets, mask=mask)
    if BUG == "no mask at the store":
        tl.store(out + offsets, a + b)  # at: no mask at the store
    elif BUG == "blocks overlap":
        tl.store(out + tl.program_id(0) * (BLOCK - 1) + tl.arange(0, BLOCK), a + b, mask=mask)  # at: blocks overlap
    else:
        tl.store(out + offsets, a + b, mask=mask)  # at: from one


VECTOR = (
    Cage(vector, lambda: (*floats(100, 100)(), empty(100), 100), grid=4, constants={"BLOCK": 32})
    .bug("no mask at the load", "mask missing", OUTSIDE)
    .bug("no mask at the store", "mask missing", OUTSIDE)
    .bug("mask by block", "wrong mask", OUTSIDE)
    .bug("one too many", "wrong mask", OUTSIDE)
    .bug("before the array", "negative offset", OUTSIDE)
    .bug("blocks overlap", "duplicate address", "byte 124 of 'out' in global memory, and nothing orders it after")
    .bug("from one", "element left out", "'out' is declared uninitialized, and 1 of its 100 elements is left so")
)


@tlx_xdsl.jit
def matrix(x, out, ROWS, COLUMNS, STRIDE, BUG: tl.constexpr):
    """A transposed copy by tiles of 16 x 16."""
    rows = tl.program_id(0) * 16 + tl.arange(0, 16)[:, None]
    columns = tl.program_id(1) * 16 + tl.arange(0, 16)[None, :]
    mask = (rows < ROWS) & (columns < COLUMNS)
    if BUG == "mask of rows only":
        mask = (rows < ROWS) & (columns >= 0)
    elif BUG == "mask exchanged":
        mask = (rows < COLUMNS) & (columns < ROWS)
    values = tl.load(x + rows * STRIDE + columns, mask=mask)
    if BUG == "stride of the input":
        # Rows are as far apart as those of the input, which are longer.
        tl.store(out + columns * STRIDE + rows, values, mask=mask)  # at: stride of the input
    elif BUG == "columns for rows":
        tl.store(out + columns * COLUMNS + rows, values, mask=mask)  # at: columns for rows
    else:
        tl.store(out + columns * ROWS + rows, values, mask=mask)  # at: mask of rows only, mask exchanged


RACE = "of 'out' in global memory, and nothing orders it after"
MATRIX = (
    Cage(matrix, lambda: (*floats(40 * 32, 24 * 40)(), 40, 24, 32), grid=(3, 2))
    .bug("mask of rows only", "wrong mask", OUTSIDE)
    .bug("mask exchanged", "wrong mask", OUTSIDE)
    .bug("stride of the input", "wrong stride", RACE)
    .bug("columns for rows", "wrong stride", RACE)
)


@tlx_xdsl.jit
def gathered(table, indices, out, COUNT, BUG: tl.constexpr):
    """out[i] = table[indices[i]]; an index of -1 means nothing."""
    offsets = tl.arange(0, 64)
    mask = offsets < COUNT
    index = tl.load(indices + offsets, mask=mask, other=-1)
    if BUG == "padding is read":
        values = tl.load(table + index, mask=mask)  # at: padding is read
    elif BUG == "size not known":
        values = tl.load(table + index * 2, mask=index >= 0, other=0.0)  # at: size not known
    else:
        values = tl.load(table + index, mask=index >= 0, other=0.0)
    tl.store(out + offsets, values, mask=mask)


def indices(count):
    held = numbers(count, dtype="int32") * 4
    held[3] = -1
    return held


GATHERED = (
    Cage(gathered, lambda: (*floats(32)(), indices(40), *floats(40)(), 40))
    .bug("padding is read", "negative offset", OUTSIDE)
    .bug("size not known", "index too large", OUTSIDE)
)


@tlx_xdsl.jit
def scattered(x, bins, out, BUG: tl.constexpr):
    """Sums by bins: elements of one store may have one address."""
    offsets = tl.program_id(0) * 32 + tl.arange(0, 32)
    target = tl.load(bins + offsets)
    values = tl.load(x + offsets)
    if BUG == "load and add and store":
        tl.store(out + target, tl.load(out + target) + values)  # at: load and add and store
    elif BUG == "adds of the block":
        tl.atomic_add(out + target, values, sem="relaxed", scope="cta")  # at: adds of the block
    else:
        tl.atomic_add(out + target, values, sem="relaxed")


SCATTERED = (
    Cage(scattered, lambda: (*floats(64)(), numbers(64, dtype="int32"), zeros(8, dtype="float32")), grid=2)
    .bug("load and add and store", "duplicate address", "of 'out' in global memory, and nothing orders it after")
    .bug("adds of the block", "scope", "of 'out' in global memory, and nothing orders it after")
)


@tlx_xdsl.jit
def permuted(x, places, out, BUG: tl.constexpr):
    """One program moves elements to their places; two of them have one place in the mistaken table."""
    offsets = tl.arange(0, 32)
    if BUG == "two at one place":
        target = tl.load(places + offsets) // 2 * 2
    elif BUG == "rows that overlap":
        target = offsets // 8 * 4 + offsets % 8
    else:
        target = tl.load(places + offsets)
    # at: two at one place, rows that overlap
    tl.store(out + target, tl.load(x + offsets))


TWICE = "'out' in global memory is written twice at byte .* by one store"
PERMUTED = (
    Cage(permuted, lambda: (*floats(32)(), np.arange(32, dtype=np.int32)[::-1].copy(), zeros(32, dtype="float32")))
    .bug("two at one place", "duplicate address in one store", TWICE)
    .bug("rows that overlap", "duplicate address in one store", TWICE)
)


@tlx_xdsl.jit
def threads_of_one(x, scratch, out, BUG: tl.constexpr):
    """Threads hand elements to each other by way of global memory: a barrier of the block must be in between."""
    offsets = tl.arange(0, 128)
    tl.store(scratch + offsets, tl.load(x + offsets))
    if BUG == "":
        tl.debug_barrier()
    # at: no barrier
    tl.store(out + offsets, tl.load(scratch + 127 - offsets))


THREADS_OF_ONE = Cage(threads_of_one, floats(128, 128, 128)).bug(
    "no barrier",
    "threads of one task",
    "a thread of .* reads byte .* of 'scratch' in global memory, and nothing orders it after another one",
)


@tlx_xdsl.jit
def accumulated(x, out, BUG: tl.constexpr):
    """Programs add their parts to the result, which another must have set to zero."""
    offsets = tl.arange(0, 32)
    values = tl.load(x + tl.program_id(0) * 32 + offsets)
    if BUG == "zeroed by the first":
        if tl.program_id(0) == 0:
            tl.store(out + offsets, tl.zeros((32,), tl.float32))
    elif BUG == "zeroed by each":
        tl.store(out + offsets, tl.zeros((32,), tl.float32))  # at: zeroed by each
    # at: zeroed by the first, zeroed by each
    tl.atomic_add(out + offsets, values, sem="relaxed")


ACCUMULATED = (
    Cage(accumulated, lambda: (*floats(128)(), zeros(32, dtype="float32")), grid=4)
    .bug("zeroed by the first", "zeroed without order", RACE)
    .bug("zeroed by each", "zeroed without order", RACE)
)


@tlx_xdsl.jit
def output_read(x, out, BUG: tl.constexpr):
    """out = x, or out += x where the caller says that there is something: the output comes from an empty allocation."""
    offsets = tl.arange(0, 32)
    values = tl.load(x + offsets)
    if BUG == "adds to what is there":
        values += tl.load(out + offsets)  # at: adds to what is there
    elif BUG == "multiplied by zero":
        values += tl.load(out + offsets) * 0.0  # at: multiplied by zero
    elif BUG == "adds by atomics":
        tl.atomic_add(out + offsets, values)  # at: adds by atomics
    if BUG != "adds by atomics":
        tl.store(out + offsets, values)


UNWRITTEN = "'out' in global memory is read before it is written: 32 of 32 elements"
OUTPUT_READ = (
    Cage(output_read, lambda: (*floats(32)(), empty(32)))
    .bug("adds to what is there", "output read unwritten", UNWRITTEN)
    .bug("multiplied by zero", "output read unwritten", UNWRITTEN)
    .bug("adds by atomics", "output read unwritten", UNWRITTEN)
)


@tlx_xdsl.jit
def scratch(x, out, BUG: tl.constexpr):
    """Shared memory that is written by blocks, and read as a whole."""
    buffer = tlx.local_alloc((32, 16), tl.float32, 2)
    rows = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    whole = tl.arange(0, 32)[:, None] * 16 + tl.arange(0, 16)[None, :]
    values = tl.load(x + rows)
    tlx.local_store(tlx.local_slice(buffer[0], [0, 0], [16, 16]), values)
    if BUG == "other buffer":
        tlx.local_store(tlx.local_slice(buffer[1], [16, 0], [16, 16]), values)
    elif BUG == "same half":
        tlx.local_store(tlx.local_slice(buffer[0], [0, 0], [16, 16]), values)
    else:
        tlx.local_store(tlx.local_slice(buffer[0], [16, 0], [16, 16]), values)
    index = 1 if BUG == "reads the other" else 0
    tl.store(out + whole, tlx.local_load(buffer[index]))  # at: other buffer, same half, reads the other


SCRATCH = (
    Cage(scratch, floats(256, 512))
    .bug("other buffer", "unwritten", "'buffer.0.' is read before it is written: 256 of its 512 elements")
    .bug("same half", "unwritten", "'buffer.0.' is read before it is written: 256 of its 512 elements")
    .bug("reads the other", "unwritten", "'buffer.1.' is read before it is written")
)


@tlx_xdsl.jit
def by_tma(src, dst, ROWS, BUG: tl.constexpr):
    """Tiles of a matrix whose rows TMA clips; where they begin is up to the kernel."""
    tile = tlx.local_alloc((16, 16), tl.float16, 1)
    full = tlx.alloc_barriers(1)
    row = tl.program_id(0) * (8 if BUG == "tiles overlap" else 16)
    column = tl.program_id(1) * 16
    if BUG == "columns not aligned":
        column += tl.program_id(0)
    tlx.barrier_expect_bytes(full[0], 512)
    tlx.async_descriptor_load(src, tile[0], [row, column], full[0])  # at: columns not aligned
    tlx.barrier_wait(full[0], 0)
    if BUG == "rows of all":
        tlx.async_descriptor_store(dst, tile[0], [0, column])  # at: rows of all
    else:
        tlx.async_descriptor_store(dst, tile[0], [row, column])  # at: tiles overlap
    tlx.async_descriptor_store_wait(0)


BY_TMA = (
    Cage(
        by_tma,
        lambda: (described(numbers(40, 32), 16, 16), described(zeros(40, 32), 16, 16), 40),
        grid=(3, 2),
    )
    .bug("columns not aligned", "TMA alignment", "16 bytes")
    .bug("tiles overlap", "duplicate address", "in global memory, and nothing orders it after the TMA store")
    .bug("rows of all", "duplicate address", "in global memory, and nothing orders it after the TMA store")
)

CAGES = (VECTOR, MATRIX, GATHERED, SCATTERED, PERMUTED, THREADS_OF_ONE, ACCUMULATED, OUTPUT_READ, SCRATCH, BY_TMA)
