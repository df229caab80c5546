"""Published performance bugs, each beside a twin without it.

- A tile that is written by rows and read by columns with nothing between its rows (Harris, "An Efficient Matrix
  Transpose in CUDA C/C++", 2013): a column lies in one bank.
- A ring with one stage too few for the latency of its loads.
- Consumers that multiply and store all at the same time, where the tensor cores wait for each epilogue; what helps is
  that two take turns (Wright and Hoque, "Deep Dive on CUTLASS Ping-Pong GEMM Kernel", 2024).
"""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

CONFLICTS = tl.constexpr(tlx.swizzled_layout(0, 0, 5))
SWIZZLED = tl.constexpr(tlx.swizzled_layout(5, 0, 5))


@tlx_xdsl.jit
def transpose(source, target, TIMES: tl.constexpr, LAYOUT: tl.constexpr):
    """Turns a tile many times, as the passes of a two-dimensional transform do."""
    here = tl.program_id(0) * 1024 + tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    tile = tlx.local_alloc((32, 32), tl.float32, 1, layout=LAYOUT)
    values = tl.load(source + here)
    for _ in range(TIMES):
        tlx.local_store(tile[0], values)
        values = 0.5 * tlx.local_load(tlx.local_trans(tile[0]))
    tl.store(target + here, values)


@tlx_xdsl.jit
def follow(links, target, TIMES: tl.constexpr, IS_CHAIN: tl.constexpr, BUFFERS: tl.constexpr):
    """Loads many times; in a chain each address is what was loaded before. Other CTAs get no room beside buffers."""
    here = tl.program_id(0) * 128 + tl.arange(0, 128)
    buffers = tlx.local_alloc((128,), tl.int32, BUFFERS)
    at, total = here, here
    for _ in tl.static_range(TIMES):
        found = tl.load(links + at)
        total += found
        at = found if IS_CHAIN else at + 128
    tlx.local_store(buffers[0], total)
    tl.store(target + here, tlx.local_load(buffers[0]))
