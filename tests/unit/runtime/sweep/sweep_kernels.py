"""Kernels for the tests of sweeps: of each verdict one."""

import os

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def add_one(x, BLOCK: tl.constexpr, UNUSED: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at) + 1)


@tlx_xdsl.jit
def assembly(x, TEXT: tl.constexpr):
    """LLVM ends the process over an operand that does not exist."""
    at = tl.arange(0, 128)
    moved = tl.inline_asm_elementwise(TEXT, "=r,r", [tl.load(x + at)], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(x + at, moved)


@tlx_xdsl.jit
def staged(x, ROWS: tl.constexpr, ARRAYS: tl.constexpr):
    """Arrays of shared memory, each of ROWS * 256 bytes, that are all in use in a loop; no task captures them."""
    at = tl.arange(0, ROWS)[:, None] * 64 + tl.arange(0, 64)[None, :]
    first = tlx.local_alloc((ROWS, 64), tl.int32, 1)
    last = tlx.local_alloc((ROWS, 64), tl.int32, ARRAYS)
    tlx.local_store(first[0], tl.load(x + at))
    tlx.local_store(last[0], tl.load(x + at))
    for i in range(4):
        total = tlx.local_load(first[0]) + tlx.local_load(last[0])
        tlx.local_store(first[0], total)
        tlx.local_store(last[0], total + i)
    tl.store(x + at, tlx.local_load(first[0]) + tlx.local_load(last[0]))


@tlx_xdsl.jit
def tasks(x, WARPS: tl.constexpr):
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tl.store(x + tl.arange(0, 128), 1)
        with tlx.async_task(num_warps=WARPS):
            tl.store(x + 128 + tl.arange(0, 128), 2)
        with tlx.async_task(num_warps=WARPS):
            tl.store(x + 256 + tl.arange(0, 128), 3)


@tlx_xdsl.constexpr_function
def end_process(number, home):
    if number == 0 and os.getpid() != home:
        os._exit(7)
    return 128


@tlx_xdsl.jit
def deadly(x, NUMBER: tl.constexpr, HOME: tl.constexpr):
    """Configuration 0 ends any process that compiles it but HOME."""
    at = tl.arange(0, end_process(NUMBER, HOME)) + NUMBER
    tl.store(x + at, NUMBER)


@tlx_xdsl.jit
def captured(x, ROWS: tl.constexpr, ARRAYS: tl.constexpr, WARPS: tl.constexpr):
    """Arrays of shared memory, each of ROWS * 256 bytes, that two tasks have at the same time."""
    first = tlx.local_alloc((ROWS, 64), tl.int32, 2)
    last = tlx.local_alloc((ROWS, 64), tl.int32, ARRAYS)
    full = tlx.alloc_barriers(1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            at = tl.arange(0, ROWS)[:, None] * 64 + tl.arange(0, 64)[None, :]
            tlx.local_store(first[1], tl.load(x + at))
            tlx.local_store(last[0], tl.load(x + at))
            tlx.barrier_arrive(full[0])
        with tlx.async_task(num_warps=WARPS):
            tlx.barrier_wait(full[0], 0)
            at = tl.arange(0, ROWS)[:, None] * 64 + tl.arange(0, 64)[None, :]
            tl.store(x + at, tlx.local_load(first[1]) + tlx.local_load(last[0]))


@tlx_xdsl.jit
def in_tensor_memory(x, COLUMNS: tl.constexpr, ARRAYS: tl.constexpr):
    """Arrays of COLUMNS columns of tensor memory."""
    at = tl.arange(0, 128)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    first = tlx.local_alloc((128, COLUMNS), tl.float32, 1, tlx.storage_kind.tmem)
    last = tlx.local_alloc((128, COLUMNS), tl.float32, ARRAYS, tlx.storage_kind.tmem)
    tlx.local_store(first[0], tl.load(x + at))
    tlx.local_store(last[0], tl.load(x + at))
    tl.store(x + at, tlx.local_load(first[0]) + tlx.local_load(last[0]))
