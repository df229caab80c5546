"""Kernels of buffers, asynchronous copies and `tl.dot` that name no architecture: they compile from sm_80 on."""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def attention(
    q_ptr, k_ptr, v_ptr, out_ptr, scale, length,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Forward attention of one head; keys and values come through a ring of two stages. `length` fills blocks."""
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n, offs_d = tl.arange(0, BLOCK_N), tl.arange(0, HEAD_DIM)
    dtype: tl.constexpr = q_ptr.dtype.element_ty
    query = tlx.local_alloc((BLOCK_M, HEAD_DIM), dtype, 1)
    keys = tlx.local_alloc((BLOCK_N, HEAD_DIM), dtype, 2)
    values = tlx.local_alloc((BLOCK_N, HEAD_DIM), dtype, 2)
    tlx.async_load(q_ptr + offs_m[:, None] * HEAD_DIM + offs_d[None, :], query[0])
    block = offs_n[:, None] * HEAD_DIM + offs_d[None, :]
    tlx.async_load(k_ptr + block, keys[0])
    tlx.async_load(v_ptr + block, values[0])
    tlx.async_load_commit_group()
    top = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)
    steps = length // BLOCK_N
    for step in range(steps):
        following = step + 1
        here = offs_n[:, None] + following * BLOCK_N < length
        tlx.async_load(k_ptr + following * BLOCK_N * HEAD_DIM + block, keys[following % 2], mask=here)
        tlx.async_load(v_ptr + following * BLOCK_N * HEAD_DIM + block, values[following % 2], mask=here)
        tlx.async_load_commit_group()
        tlx.async_load_wait_group(1)
        scores = tl.dot(tlx.local_load(query[0]), tlx.local_load(tlx.local_trans(keys[step % 2]))) * scale
        new_top = tl.maximum(top, tl.max(scores, 1))
        weights = tl.exp(scores - new_top[:, None])
        faded = tl.exp(top - new_top)
        total = total * faded + tl.sum(weights, 1)
        acc = tl.dot(weights.to(dtype), tlx.local_load(values[step % 2]), acc * faded[:, None])
        top = new_top
    tlx.async_load_wait_group(0)
    tl.store(out_ptr + offs_m[:, None] * HEAD_DIM + offs_d[None, :], (acc / total[:, None]).to(dtype))


@tlx_xdsl.jit
def row_norms(x_ptr, out_ptr, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    """The sum of squares of each row, whose pieces come through a ring of STAGES buffers."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    offs = tl.arange(0, BLOCK)
    pieces = tlx.local_alloc((ROWS, BLOCK), tl.float32, STAGES)
    for piece in tl.static_range(STAGES - 1):
        at = piece * BLOCK + offs
        tlx.async_load(x_ptr + rows[:, None] * columns + at[None, :], pieces[piece], mask=at[None, :] < columns)
        tlx.async_load_commit_group()
    total = tl.zeros((ROWS,), tl.float32)
    for piece in range(tl.cdiv(columns, BLOCK)):
        tlx.async_load_wait_group(STAGES - 2)
        value = tlx.local_load(pieces[piece % STAGES])
        total += tl.sum(value * value, 1)
        following = piece + STAGES - 1
        at = following * BLOCK + offs
        tlx.async_load(
            x_ptr + rows[:, None] * columns + at[None, :], pieces[following % STAGES], mask=at[None, :] < columns
        )
        tlx.async_load_commit_group()
    tlx.async_load_wait_group(0)
    tl.store(out_ptr + rows, total)


@tlx_xdsl.jit
def scale_add(x_ptr, y_ptr, out_ptr, factor, n, BLOCK: tl.constexpr, BLOCKS: tl.constexpr):
    """out = factor * x + y in BLOCKS blocks a program, the next block's copies during the arithmetic of this one."""
    first = tl.program_id(0) * BLOCK * BLOCKS
    offs = first + tl.arange(0, BLOCK)
    x = tlx.local_alloc((BLOCK,), tl.float32, 2)
    y = tlx.local_alloc((BLOCK,), tl.float32, 2)
    tlx.async_load(x_ptr + offs, x[0], mask=offs < n)
    tlx.async_load(y_ptr + offs, y[0], mask=offs < n)
    tlx.async_load_commit_group()
    for block in range(BLOCKS):
        after = offs + BLOCK
        tlx.async_load(x_ptr + after, x[(block + 1) % 2], mask=(after < n) & (block + 1 < BLOCKS))
        tlx.async_load(y_ptr + after, y[(block + 1) % 2], mask=(after < n) & (block + 1 < BLOCKS))
        tlx.async_load_commit_group()
        tlx.async_load_wait_group(1)
        tl.store(out_ptr + offs, factor * tlx.local_load(x[block % 2]) + tlx.local_load(y[block % 2]), mask=offs < n)
        offs = after
    tlx.async_load_wait_group(0)


@tlx_xdsl.jit
def producer_consumer(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Two tasks and two mbarriers that threads arrive on one by one: what sm_80 has of them."""
    tile = tlx.local_alloc((BLOCK,), tl.float32, 1)
    full = tlx.alloc_barriers(1)
    empty = tlx.alloc_barriers(1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for step in range(tl.cdiv(n, BLOCK)):
                tlx.barrier_wait(full[0], step % 2)
                offs = step * BLOCK + tl.arange(0, BLOCK)
                value = tlx.local_load(tile[0])
                tlx.barrier_arrive(empty[0])
                tl.store(out_ptr + offs, value * 2.0, mask=offs < n)
        with tlx.async_task(num_warps=4):
            for step in range(tl.cdiv(n, BLOCK)):
                tlx.barrier_wait(empty[0], 1 - step % 2)
                offs = step * BLOCK + tl.arange(0, BLOCK)
                tlx.local_store(tile[0], tl.load(x_ptr + offs, mask=offs < n, other=0.0))
                tlx.barrier_arrive(full[0])


TLX_COMPILE = {
    "attention": {
        "signature": {
            "q_ptr": "*fp16:16",
            "k_ptr": "*fp16:16",
            "v_ptr": "*fp16:16",
            "out_ptr": "*fp16:16",
            "scale": "fp32",
            "length": "i32",
        },
        "constexprs": {"HEAD_DIM": 64, "BLOCK_M": 64, "BLOCK_N": 64},
    },
    "row_norms": {
        "signature": {"x_ptr": "*fp32:16", "out_ptr": "*fp32:16", "columns": "i32:16"},
        "constexprs": {"ROWS": 16, "BLOCK": 64, "STAGES": 3},
    },
    "scale_add": {
        "signature": {"x_ptr": "*fp32:16", "y_ptr": "*fp32:16", "out_ptr": "*fp32:16", "factor": "fp32", "n": "i32:16"},
        "constexprs": {"BLOCK": 1024, "BLOCKS": 4},
    },
    "producer_consumer": {
        "signature": {"x_ptr": "*fp32:16", "out_ptr": "*fp32:16", "n": "i32:16"},
        "constexprs": {"BLOCK": 256},
    },
}
