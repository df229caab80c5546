"""Kernels on which commands report, with `--format json` and as tools of `tlx mcp`."""

KERNELS = '''"""Kernels, and a line on standard output."""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

print("imported")


@tlx_xdsl.jit
def scale(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, at < n) * 2, at < n)


@tlx_xdsl.jit
def ring(x, y, T):
    buffers = tlx.local_alloc((16,), tl.float32, 2)
    full = tlx.alloc_barriers(2)
    empty = tlx.alloc_barriers(2)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for t in range(T):
                tlx.barrier_wait(empty[t % 2], ((t // 2) & 1) ^ 1)
                tlx.local_store(buffers[t % 2], tl.load(x + t * 16 + tl.arange(0, 16)))
                tlx.barrier_arrive(full[t % 2])
        with tlx.async_task(num_warps=4):
            for t in range(T):
                tlx.barrier_wait(full[t % 2], (t // 2) & 1)
                value = tlx.local_load(buffers[t % 2])
                tlx.barrier_arrive(empty[t % 2])
                tl.store(y + t * 16 + tl.arange(0, 16), value)


@tlx_xdsl.jit
def race(x, y):
    tl.store(y, tl.load(x) + tl.load(y))


TLX_COMPILE = {
    "scale": {"signature": {"x": "*fp32", "y": "*fp32", "n": "i32"}, "constexprs": {"BLOCK": 16}},
    "ring": {"signature": {"x": "*fp32", "y": "*fp32", "T": "i32"}},
}
'''

PLAIN = """import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def matmul(a_desc, b_desc, c_desc, K, BLOCK: tl.constexpr):
    row, column = tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, 64):
        total = tl.dot(a_desc.load([row, k]), b_desc.load([k, column]), total)
    c_desc.store([row, column], total.to(tl.float16))


TLX_COMPILE = {
    "matmul": {
        "signature": {
            "a_desc": "tensordesc<fp16[128, 64]>", "b_desc": "tensordesc<fp16[64, 128]>",
            "c_desc": "tensordesc<fp16[128, 128]>", "K": "i32",
        },
        "constexprs": {"BLOCK": 128},
    }
}
"""
