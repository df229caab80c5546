"""Blocks of heads in pieces, for attention's kernel: a head of 96 or 192 elements is three of 32 or 64.

A buffer's extents are powers of two, and so are those of a product's result. A block of rows that wide is therefore
PIECES buffers, one after the other in their ring, each with the same columns of all rows; one barrier counts the bytes
of all. Q K^T is the sum over the pieces, P V has a product and f32 sums for each: `acc` is a tuple of them. TMA reads
zeros after a head's last column and writes nothing there, so pieces may reach beyond it.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

ROWS = tl.constexpr(64)
"""Rows of a consumer: those of one wgmma."""


@tlx_xdsl.jit
def as_matrix(buffer):
    """A buffer of one head's block, (..., rows, columns), as (rows, columns)."""
    return tlx.local_reshape(buffer, buffer.shape[-2:])


@tlx_xdsl.jit
def load_block(desc, batch, head, row, buffer, full, empty, phase, BYTES: tl.constexpr):
    """Producer: when `buffer` is free, load the block at `row` of a head to it."""
    tlx.barrier_wait(empty, phase ^ 1)
    tlx.barrier_expect_bytes(full, BYTES)
    tlx.async_descriptor_load(desc, buffer, [batch, head, row, 0], full)


@tlx_xdsl.jit
def load_pieces(desc, where, head, row, buffers, at, full, empty, phase, PIECES: tl.constexpr):
    """Producer: when the block at `at` of a ring is free, load that at `row` of a head to it.

    `where` are the coordinates before the head: the batch, or those of a ragged descriptor.
    """
    PIECE: tl.constexpr = buffers.shape[-1]
    BYTES: tl.constexpr = PIECES * buffers.shape[-2] * PIECE * tlx.size_of(tlx.dtype_of(buffers))
    tlx.barrier_wait(empty[at], phase ^ 1)
    tlx.barrier_expect_bytes(full[at], BYTES)
    for piece in tl.static_range(PIECES):
        place = [*where, head, row, piece * PIECE]
        tlx.async_descriptor_load(desc, buffers[at * PIECES + piece], place, full[at])


@tlx_xdsl.jit
def scores_of(q, q_at, k, k_at, PIECES: tl.constexpr):
    """Issue S = Q K^T of two blocks, one product for each piece."""
    scores = tlx.async_dot(as_matrix(q[q_at * PIECES]), tlx.local_trans(as_matrix(k[k_at * PIECES])))
    for piece in tl.static_range(1, PIECES):
        left = as_matrix(q[q_at * PIECES + piece])
        scores = tlx.async_dot(left, tlx.local_trans(as_matrix(k[k_at * PIECES + piece])), scores)
    return scores


@tlx_xdsl.jit
def zeros_of(ROWS: tl.constexpr, PIECE: tl.constexpr, PIECES: tl.constexpr):
    """Sums that are zero."""
    acc = ()
    for _ in tl.static_range(PIECES):
        acc += (tl.zeros((ROWS, PIECE), tl.float32),)
    return acc


@tlx_xdsl.jit
def add_values(p, v, at, acc):
    """Issue acc += P V of a block, one product for each piece."""
    PIECES: tl.constexpr = len(acc)
    sums = ()
    for piece in tl.static_range(PIECES):
        sums += (tlx.async_dot(p, as_matrix(v[at * PIECES + piece]), acc[piece]),)
    return sums


@tlx_xdsl.jit
def wait_for(acc):
    """The sums, when no product is in flight any more."""
    sums = ()
    for piece in tl.static_range(len(acc)):
        sums += (tlx.async_dot_wait(0, acc[piece]),)
    return sums


@tlx_xdsl.jit
def times(acc, factor):
    """The sums, each row times its factor."""
    sums = ()
    for piece in tl.static_range(len(acc)):
        sums += (acc[piece] * factor[:, None],)
    return sums


@tlx_xdsl.jit
def store_pieces(desc, where, head, row, buffers, at, values):
    """Store rows of a head, through the block at `at` of `buffers`, which must be free; `where` as in `load_pieces`."""
    PIECES: tl.constexpr = len(values)
    for piece in tl.static_range(PIECES):
        buffer = as_matrix(buffers[at * PIECES + piece])
        tlx.local_store(buffer, values[piece].to(tlx.dtype_of(buffers)))
    tlx.fence_async_shared()  # TMA reads through the async proxy what the threads wrote
    for piece in tl.static_range(PIECES):
        place = [*where, head, row, piece * buffers.shape[-1]]
        tlx.async_descriptor_store(desc, buffers[at * PIECES + piece], place)
