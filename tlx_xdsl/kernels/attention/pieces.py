"""Blocks of heads in pieces, for attention's kernel: a head of 96 or 192 elements is three of 32 or 64.

A buffer's extents are powers of two, and so are those of a product's result. A block of rows that wide is therefore
PIECES buffers, one after the other in their ring, each with the same columns of all rows; one barrier counts the bytes
of all. Q K^T is the sum over the pieces, P V has a product and f32 sums for each: `acc` is a tuple of them. TMA reads
zeros after a head's last column and writes nothing there, so pieces may reach beyond it.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

from typing import Any, NamedTuple

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

ROWS = tl.constexpr(64)
"""Rows of a consumer: those of one wgmma."""


class Ring(NamedTuple):
    """Blocks in shared memory, and barriers for each: `full` says that it is there, `empty` that it is free."""

    buffers: Any
    full: Any
    empty: Any
    pieces: Any
    """Those of a block, a compile-time `config.Pieces`."""


class Slot(NamedTuple):
    """The pieces of one block of a ring, and its barriers."""

    block: Any
    full: Any
    empty: Any


@tlx_xdsl.jit
def buffers_for(desc, COUNT: tl.constexpr, pieces, reuse=None):
    """Buffers for COUNT blocks that a descriptor loads or stores."""
    return tlx.local_alloc(desc.block_shape, tlx.dtype_of(desc), COUNT * pieces.number, reuse=reuse)


@tlx_xdsl.jit
def rings_of(k, v, COUNT: tl.constexpr, READERS: tl.constexpr, T: tl.constexpr):
    """The rings of K and V (or of Q and dO), of COUNT blocks, which READERS tasks read."""
    k_full = tlx.alloc_barriers(COUNT)
    v_full = tlx.alloc_barriers(COUNT)
    k_empty = tlx.alloc_barriers(COUNT, arrive_count=READERS)
    v_empty = tlx.alloc_barriers(COUNT, arrive_count=READERS)
    return Ring(k, k_full, k_empty, T.qk), Ring(v, v_full, v_empty, T.v)


@tlx_xdsl.jit
def as_matrix(buffer):
    """A buffer of one head's block, (..., rows, columns), as (rows, columns)."""
    return tlx.local_reshape(buffer, buffer.shape[-2:])


@tlx_xdsl.jit
def block_of(ring, at):
    """The pieces of the block at `at` of a ring."""
    return [ring.buffers[at * ring.pieces.number + piece] for piece in range(ring.pieces.number)]


@tlx_xdsl.jit
def matrices_of(ring, at):
    """The same pieces as (rows, columns)."""
    return [as_matrix(each) for each in block_of(ring, at)]


@tlx_xdsl.jit
def arrived(ring, at, phase):
    """A consumer: the matrices of a block, once it is there."""
    tlx.barrier_wait(ring.full[at], phase)
    return matrices_of(ring, at)


@tlx_xdsl.jit
def slot_of(ring, at, COUNT: tl.constexpr = None):
    """A block of a ring, or its first COUNT pieces, with its barriers."""
    return Slot(block_of(ring, at)[:COUNT], ring.full[at], ring.empty[at])


@tlx_xdsl.jit
def load_parts(desc, slot, parts, head, row, phase, numbers_ptr=None, numbers=None):
    """Producer: when a block is free, load that at `row` of a head to it, with a number for each row if there are any.

    Each of `parts` has the coordinates before the head of as many rows: the batch, a page, or those of a ragged
    descriptor.
    """
    block, full, empty = slot
    PIECE: tl.constexpr = block[0].shape[-1]
    BYTES: tl.constexpr = len(block) * block[0].shape[-2] * PIECE * tlx.size_of(tlx.dtype_of(desc))
    tlx.barrier_wait(empty, phase ^ 1)
    tlx.barrier_expect_bytes(full, BYTES if numbers is None else BYTES + 4 * numbers.shape[0])
    for at in tl.static_range(len(block)):
        column = at // len(parts) * PIECE
        tlx.async_descriptor_load(desc, block[at], [*parts[at % len(parts)], head, row, column], full)
    if numbers is not None:
        tlx.async_load(numbers_ptr, numbers, bulk=True, barrier=full)


@tlx_xdsl.jit
def load_pieces(desc, slot, where, head, row, phase):
    """Producer: load the block at `row` of a head, whose rows are all of `where` (`load_parts`)."""
    load_parts(desc, slot, (where,), head, row, phase)


@tlx_xdsl.jit
def scores_of(q, k):
    """Issue S = Q K^T of the matrices of two blocks, one product for each piece. Those of Q may be in registers."""
    scores = tlx.async_dot(q[0], tlx.local_trans(k[0]))
    for piece in tl.static_range(1, len(q)):
        scores = tlx.async_dot(q[piece], tlx.local_trans(k[piece]), scores)
    return scores


@tlx_xdsl.jit
def zeros_of(ROWS: tl.constexpr, COLUMNS: tl.constexpr, COUNT: tl.constexpr):
    """Sums that are zero, of COUNT pieces."""
    return [tl.zeros((ROWS, COLUMNS), tl.float32) for _ in range(COUNT)]


@tlx_xdsl.jit
def add_values(p, v, acc):
    """Issue acc += P V of a block, one product for each piece."""
    return [tlx.async_dot(p, v[piece], acc[piece]) for piece in range(len(acc))]


@tlx_xdsl.jit
def wait_for(acc):
    """The sums, when no product is in flight any more."""
    return [tlx.async_dot_wait(0, each) for each in acc]


@tlx_xdsl.jit
def times(acc, factor):
    """The sums, each row times its factor."""
    return [each * factor[:, None] for each in acc]


@tlx_xdsl.jit
def put(block, values, dtype: tl.constexpr):
    """Write values to a block that is free, for TMA to store."""
    for piece in tl.static_range(len(values)):
        tlx.local_store(as_matrix(block[piece]), values[piece].to(dtype))
    tlx.fence_async_shared()  # TMA reads through the async proxy what the threads wrote


@tlx_xdsl.jit
def store_pieces(desc, where, head, row, block):
    """Store a block to the rows of a head from `row` on; `where` as in `load_pieces`."""
    for piece in tl.static_range(len(block)):
        tlx.async_descriptor_store(desc, block[piece], [*where, head, row, piece * block[piece].shape[-1]])
