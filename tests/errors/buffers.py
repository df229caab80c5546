"""Buffers, barriers and asynchronous copies."""

from tests.errors.entry import Entry, Topic

TOPIC = Topic(
    "Buffers and barriers",
    "`tlx.local_alloc` makes an array of buffers, `tlx.alloc_barriers` an array of mbarriers; operations take one of "
    "them, `buf[i]` or `bars[i]`.",
    (
        Entry(
            "A buffer without a choice",
            """
@tlx_xdsl.jit
def kernel(x):
    buffers = tlx.local_alloc((64, 64), tl.float16, 2)
    block = tlx.local_load(buffers)  # error
    tl.store(x, tl.sum(tl.sum(block, 0), 0))
""",
            "Say which: `tlx.local_load(buffers[0])`.",
        ),
        Entry(
            "A buffer that is not there",
            """
@tlx_xdsl.jit
def kernel(x):
    buffers = tlx.local_alloc((64, 64), tl.float16, 2)
    block = tlx.local_load(buffers[2])  # error
    tl.store(x, tl.sum(tl.sum(block, 0), 0))
""",
            "Buffers count from 0. In a ring the index is the turn modulo the number of buffers.",
        ),
        Entry(
            "A block stored to a buffer of another type",
            """
@tlx_xdsl.jit
def kernel():
    buffers = tlx.local_alloc((64, 64), tl.float16, 1)
    tlx.local_store(buffers[0], tl.zeros([64, 64], tl.float32))  # error
""",
            "Convert first: `block.to(tl.float16)`.",
        ),
        Entry(
            "A buffer whose shape is no block",
            """
@tlx_xdsl.jit
def kernel(x):
    buffers = tlx.local_alloc((64, 48), tl.float16, 2)  # error
    tl.store(x, 1.0)
""",
            "Each size is a power of two; the number of buffers need not be.",
        ),
        Entry(
            "A number instead of a barrier",
            """
@tlx_xdsl.jit
def kernel(n):
    tlx.barrier_wait(n, 0)  # error
""",
            "Barriers come from `tlx.alloc_barriers`; hardware barriers with numbers are `tlx.named_barrier_wait`.",
        ),
        Entry(
            "All barriers at once",
            """
@tlx_xdsl.jit
def kernel():
    full = tlx.alloc_barriers(2)
    tlx.barrier_wait(full, 0)  # error
""",
            "One barrier is waited for at a time: `full[i]`.",
        ),
        Entry(
            "A copy into a buffer of another shape",
            """
@tlx_xdsl.jit
def kernel(tiles):
    buffers = tlx.local_alloc((64, 32), tl.float16, 1)
    full = tlx.alloc_barriers(1)
    tlx.async_descriptor_load(tiles, buffers[0], [0, 0], full[0])  # error
""",
            "TMA copies the block of the descriptor as it is: allocate the buffer with the descriptor's block "
            "shape and type.",
        ),
        Entry(
            "A copy from within 16 bytes",
            """
@tlx_xdsl.jit
def kernel(tiles):
    buffers = tlx.local_alloc((64, 64), tl.float16, 1)
    full = tlx.alloc_barriers(1)
    tlx.async_descriptor_load(tiles, buffers[0], [0, 4], full[0])  # error
""",
            "Along the contiguous dimension TMA begins to copy at multiples of 16 bytes, in either direction; from "
            "elsewhere it is an illegal instruction. Other dimensions are free. An offset that is known only at run "
            "time [is checked there](#a-copy-that-begins-within-16-bytes).",
        ),
        Entry(
            "A product that is used before it is there",
            """
@tlx_xdsl.jit
def kernel(x):
    a = tlx.local_alloc((64, 64), tl.float16, 2)
    i = tl.arange(0, 64)
    acc = tlx.async_dot(a[0], a[1])
    tl.store(x + i, tl.sum(acc, 1))  # error
""",
            "`tlx.async_dot` on Hopper goes on while the kernel does: `acc = tlx.async_dot_wait(0, acc)` waits for it, "
            "and gives the value to go on with. Another dot may add to `acc` before that, and a loop may carry it. A "
            "wait for all but the last n dots, `tlx.async_dot_wait(n, acc)`, is enough where n dots were issued since.",
        ),
        Entry(
            "Rows that lie apart, at a place that is known at run time",
            """
@tlx_xdsl.jit
def kernel(x, n):
    tile = tlx.local_alloc((128, 128), tl.float16, 1)
    i = tl.arange(0, 128)
    tlx.local_store(tile[0], tl.load(x + i[:, None] * 128 + i[None, :]).to(tl.float16))
    for row in range(0, n, 64):
        part = tlx.local_slice(tile[0], [row, 0], [64, 128])  # error
        tl.store(x + row + tl.arange(0, 64), tl.sum(tlx.local_load(part).to(tl.float32), 1))
""",
            "Rows of 256 bytes are wider than the swizzle of 128, so the tile is two boxes beside each other, and 64 "
            "rows are a part of both. Take columns as wide as the swizzle, make the buffer an array of parts "
            "(`local_alloc((64, 128), tl.float16, 2)`), or let the loop be a `tl.static_range`, whose numbers are "
            "constants.",
        ),
    ),
)
