"""Mistakes of running kernels: the interpreter's reports."""

from tests.errors.entry import Entry, Topic

TILES = {"src": "desc(randn:fp16[64,64], [64,64])", "dst": "desc(zeros:fp16[64,64], [64,64])"}

TOPIC = Topic(
    "Running",
    "`tlx run` and `tlx_xdsl.interpret` run a kernel on the CPU, and report what would be a wrong result, a crash or a "
    "hang on the GPU, at the line that does it. [interpreter.md](interpreter.md) explains how.",
    (
        Entry(
            "A deadlock",
            """
@tlx_xdsl.jit
def kernel(src, dst):
    tile = tlx.local_alloc((64, 64), tlx.dtype_of(src), 1)
    full, empty = tlx.alloc_barriers(1), tlx.alloc_barriers(1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tlx.barrier_wait(empty[0], 0)  # error
            tlx.barrier_expect_bytes(full[0], 64 * 64 * 2)
            tlx.async_descriptor_load(src, tile[0], [0, 0], full[0])
        with tlx.async_task(num_warps=4):
            tlx.barrier_wait(full[0], 0)
            tlx.async_descriptor_store(dst, tile[0], [0, 0])
            tlx.async_descriptor_store_wait(0)
            tlx.barrier_arrive(empty[0])
""",
            "The loader waits until the tile is free, and no task frees a tile that was never full. A wait for the "
            "phase before the first one passes at once: `tlx.barrier_wait(empty[0], 1)`.",
            arguments=TILES,
        ),
        Entry(
            "A read of what is not there yet",
            """
@tlx_xdsl.jit
def kernel(src, out):
    tile = tlx.local_alloc((64, 64), tlx.dtype_of(src), 1)
    full = tlx.alloc_barriers(1)
    tlx.barrier_expect_bytes(full[0], 64 * 64 * 2)
    tlx.async_descriptor_load(src, tile[0], [0, 0], full[0])
    values = tlx.local_load(tile[0])  # error
    rows, columns = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    tl.store(out + rows * 64 + columns, values)
""",
            "TMA copies while the kernel goes on. `tlx.barrier_wait(full[0], 0)` before the read waits for it.",
            arguments={"src": TILES["src"], "out": "zeros:fp16[64,64]"},
        ),
        Entry(
            "Uninitialized shared memory",
            """
@tlx_xdsl.jit
def kernel(out):
    tiles = tlx.local_alloc((64,), tl.float32, 2)
    at = tl.arange(0, 64)
    tlx.local_store(tiles[0], at.to(tl.float32))
    tl.store(out + at, tlx.local_load(tiles[1]))  # error
""",
            "It holds whatever the last kernel has left. Here the index is wrong.",
            arguments={"out": "zeros:fp32[64]"},
        ),
        Entry(
            "A missing proxy fence",
            """
@tlx_xdsl.jit
def kernel(dst):
    tile = tlx.local_alloc((64, 64), tlx.dtype_of(dst), 1)
    tlx.local_store(tile[0], tl.zeros((64, 64), tl.float16))
    tlx.async_descriptor_store(dst, tile[0], [0, 0])  # error
    tlx.async_descriptor_store_wait(0)
""",
            "TMA reads shared memory through another proxy than threads write it, and may see what was there before. "
            "`tlx.fence_async_shared()` goes between the two.",
            arguments={"dst": TILES["dst"]},
        ),
        Entry(
            "More bytes than were expected",
            """
@tlx_xdsl.jit
def kernel(src):
    tile = tlx.local_alloc((64, 64), tlx.dtype_of(src), 1)
    full = tlx.alloc_barriers(1)
    tlx.barrier_expect_bytes(full[0], 64 * 64)
    tlx.async_descriptor_load(src, tile[0], [0, 0], full[0])  # error
    tlx.barrier_wait(full[0], 0)
""",
            "The barrier counts bytes, and an fp16 has two: `64 * 64 * tlx.size_of(tlx.dtype_of(src))`. With too many "
            "expected bytes the wait never ends.",
            arguments={"src": TILES["src"]},
        ),
        Entry(
            "More arrivals than a phase waits for",
            """
@tlx_xdsl.jit
def kernel(out):
    ready = tlx.alloc_barriers(1, arrive_count=2)
    tlx.barrier_arrive(ready[0], 3)  # error
    tlx.barrier_wait(ready[0], 0)
    tl.store(out, 1)
""",
            "Hardware counts below zero and the phases of the barrier are out of step from then on. The count of "
            "`alloc_barriers` is that of all arrivals of a phase.",
            arguments={"out": "zeros:i32[1]"},
        ),
        Entry(
            "An accumulator that is read before the products are done",
            """
@tlx_xdsl.jit
def kernel(src, out):
    tile = tlx.local_alloc((128, 128), tlx.dtype_of(src), 1)
    product = tlx.local_alloc((128, 128), tl.float32, 1, tlx.storage_kind.tmem)
    full, done = tlx.alloc_barriers(1), tlx.alloc_barriers(1)
    tlx.barrier_expect_bytes(full[0], 128 * 128 * 2)
    tlx.async_descriptor_load(src, tile[0], [0, 0], full[0])
    tlx.barrier_wait(full[0], 0)
    tlx.async_dot(tile[0], tile[0], product[0], use_acc=False, force_async=True)
    tlx.async_dot(tile[0], tile[0], product[0], use_acc=True, mBarriers=[done[0]])
    values = tlx.local_load(product[0])  # error
    rows, columns = tl.arange(0, 128)[:, None], tl.arange(0, 128)[None, :]
    tl.store(out + rows * 128 + columns, values)
""",
            "The tensor cores go on by themselves. `tlx.barrier_wait(done[0], 0)` before the load waits for both "
            "products: a barrier that one names completes when all are done that its task has issued so far.",
            target="sm_100a",
            arguments={"src": "desc(randn:fp16[128,128], [128,128])", "out": "zeros:fp32[128,128]"},
        ),
        Entry(
            "Another CTA's memory when that CTA may have ended",
            """
@tlx_xdsl.jit
def kernel(out):
    rank = tlx.cluster_cta_rank()
    last = tlx.alloc_barriers(1)
    with tlx.async_tasks(no_ending_cluster_sync=True):
        with tlx.async_task("default"):
            tlx.barrier_arrive(last[0], 1, remote_cta_rank=rank ^ 1)  # error
        with tlx.async_task(num_warps=4):
            tl.store(out + rank, rank)
""",
            "`no_ending_cluster_sync` leaves out the wait that the compiler puts after tasks and at the end of a "
            "kernel. Then each CTA must itself wait for what others do with its memory, here by "
            "`tlx.barrier_wait(last[0], 0)`.",
            grid=2,
            cluster=2,
            arguments={"out": "zeros:i32[2]"},
        ),
        Entry(
            "An mbarrier for other CTAs that a loop allocates",
            """
@tlx_xdsl.jit
def kernel(out, n):
    rank = tlx.cluster_cta_rank()
    for turn in range(n):
        ready = tlx.alloc_barriers(1)  # error
        tlx.barrier_arrive(ready[0], 1, remote_cta_rank=rank ^ 1)
        tlx.barrier_wait(ready[0], 0)
    tl.store(out + rank, rank)
""",
            "An mbarrier must be initialised before another CTA arrives there, and that CTA may be a turn ahead. The "
            "compiler moves initialisations to the start of the kernel where it can; in a loop they happen again and "
            "again. Allocate it before the loop.",
            grid=2,
            cluster=2,
            arguments={"out": "zeros:i32[2]", "n": "3"},
        ),
        Entry(
            "A load out of bounds",
            """
@tlx_xdsl.jit
def kernel(x, out, n):
    at = tl.program_id(0) * 64 + tl.arange(0, 64)
    values = tl.load(x + at)  # error
    tl.store(out + at, values, mask=at < n)
""",
            "The last program reads past the end of the array: `mask=at < n`. In the interpreter there is a gap "
            "between any two arrays, so that an index is found that is only a little wrong.",
            arguments={"x": "randn:fp32[100]", "out": "zeros:fp32[100]", "n": "100"},
            grid=2,
        ),
        Entry(
            "A copy that begins within 16 bytes",
            """
@tlx_xdsl.jit
def kernel(src, n):
    tile = tlx.local_alloc((8, 8), tlx.dtype_of(src), 1)
    full = tlx.alloc_barriers(1)
    tlx.barrier_expect_bytes(full[0], 8 * 8 * 2)
    tlx.async_descriptor_load(src, tile[0], [0, n], full[0])  # error
    tlx.barrier_wait(full[0], 0)
""",
            "A GPU stops here with an illegal instruction, even where the place is outside of the tensor. Begin at a "
            "multiple of 8 fp16 before it and leave out the first columns in registers, or load through pointers.",
            arguments={"src": "desc(randn:fp16[64,64], [8,8])", "n": "4"},
        ),
        Entry(
            "A store past the end of a row",
            """
@tlx_xdsl.jit
def kernel(x, n):
    room = tlx.allocate_tensor_descriptor(1)
    desc = tlx.make_tensor_descriptor(room, x, [8, n], [8, 1], [8, 8])
    tile = tlx.local_alloc((8, 8), tl.float32, 1)
    tlx.local_store(tile[0], tl.zeros((8, 8), tl.float32))
    tlx.fence_async_shared()
    tlx.async_descriptor_store(desc, tile[0], [0, 0])  # error
    tlx.async_descriptor_store_wait(0)
""",
            "The rows of the tensor have 5 elements of 4 bytes, and TMA writes units of 16 bytes: 8 elements. Between "
            "rows it overwrites what is there, which must be padding; after the last row there is no memory. Allocate "
            "whole units, or store through pointers and a mask.",
            arguments={"x": "zeros:fp32[61]", "n": "5"},
        ),
        Entry(
            "An assertion of the kernel",
            """
@tlx_xdsl.jit
def kernel(x):
    value = tl.load(x)
    tl.device_assert(value > 0, "x must be positive")  # error
    tl.store(x, tl.log(value))
""",
            "`tl.device_assert` is always on in the interpreter; a compiled kernel has it only with `debug`.",
            arguments={"x": "zeros:fp32[1]"},
        ),
    ),
)
