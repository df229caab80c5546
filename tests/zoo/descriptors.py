"""Descriptors that a kernel makes itself, views of another layout, and work that the hardware gives out."""

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.zoo.arrays import numbers, tiles, zeros
from tests.zoo.bugs import Cage

# Kernels are read by the frontend, not run by Python.
# pyright: basic


@tlx_xdsl.jit
def by_groups(x, out, GROUPS: tl.constexpr, BUG: tl.constexpr):
    """Each group is a matrix of its own, whose descriptor the kernel writes to global memory."""
    room = tlx.allocate_tensor_descriptor(2)
    tile = tlx.local_alloc((16, 16), tl.float16, 2)
    full = tlx.alloc_barriers(2)
    offsets = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    for g in tl.static_range(GROUPS + 1):
        if g < GROUPS:
            if BUG == "rows not aligned":
                # at: rows not aligned
                source = tlx.make_tensor_descriptor(room[g % 2], x + g * 256, [16, 16], [17, 1], [16, 16])
                tlx.barrier_expect_bytes(full[g % 2], 512)
                tlx.async_descriptor_load(source, tile[g % 2], [0, 0], full[g % 2])
            else:
                slot: tl.constexpr = 0 if BUG == "rewritten under a load" else g % 2
                # at: rewritten under a load
                source = tlx.make_tensor_descriptor(room[slot], x + g * 256, [16, 16], [16, 1], [16, 16])
                tlx.barrier_expect_bytes(full[g % 2], 512)
                tlx.async_descriptor_load(source, tile[g % 2], [0, 0], full[g % 2])
        if g > 0:
            # The load of the group before is waited for when that of this one is under way.
            tlx.barrier_wait(full[(g - 1) % 2], (g - 1) // 2 & 1)
            tl.store(out + (g - 1) * 256 + offsets, tlx.local_load(tile[(g - 1) % 2]))


BY_GROUPS = (
    Cage(by_groups, lambda: (numbers(4 * 256), zeros(4 * 256)), constants={"GROUPS": 4})
    .bug(
        "rewritten under a load",
        "descriptor in use",
        "descriptor.*(in flight|nothing orders)",
    )
    .bug("rows not aligned", "descriptor", "strides must be 16-byte aligned")
    .clean(GROUPS=1)
    .clean(GROUPS=3)
)


@tlx_xdsl.jit
def made_in_a_loop(x, out, GROUPS, BUG: tl.constexpr):
    """A descriptor for each group, made by the operation that made the one before: in compiled code, in its place."""
    tile = tlx.local_alloc((16, 16), tl.float16, 2)
    full = tlx.alloc_barriers(2)
    offsets = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    for g in range(GROUPS):
        if BUG == "made under a load":
            source = tl.make_tensor_descriptor(x + g * 256, [16, 16], [16, 1], [16, 16])  # at: made under a load
        else:
            if g > 0:
                tlx.barrier_wait(full[(g - 1) % 2], (g - 1) // 2 & 1)
            source = tl.make_tensor_descriptor(x + g * 256, [16, 16], [16, 1], [16, 16])
        tlx.barrier_expect_bytes(full[g % 2], 512)
        tlx.async_descriptor_load(source, tile[g % 2], [0, 0], full[g % 2])
        if BUG == "made under a load" and g > 0:
            tlx.barrier_wait(full[(g - 1) % 2], (g - 1) // 2 & 1)
        if g > 0:
            tl.store(out + (g - 1) * 256 + offsets, tlx.local_load(tile[(g - 1) % 2]))
    tlx.barrier_wait(full[(GROUPS - 1) % 2], (GROUPS - 1) // 2 & 1)
    tl.store(out + (GROUPS - 1) * 256 + offsets, tlx.local_load(tile[(GROUPS - 1) % 2]))


IN_A_LOOP = (
    Cage(made_in_a_loop, lambda: (numbers(4 * 256), zeros(4 * 256)), constants={"GROUPS": 4})
    .bug("made under a load", "descriptor in use", "tensor descriptor, and nothing orders it after the TMA load")
    .clean(GROUPS=1)
    .clean(GROUPS=3)
)


@tlx_xdsl.jit
def reinterpreted(src, out, BUG: tl.constexpr):
    """A tile that TMA has brought is seen as one of another shape or type."""
    tile = tlx.local_alloc((16, 64), tl.float16, 1)
    full = tlx.alloc_barriers(1)
    tlx.barrier_expect_bytes(full[0], 2048)
    tlx.async_descriptor_load(src, tile[0], [0, 0], full[0])
    tlx.barrier_wait(full[0], 0)
    if BUG == "rows of another length":
        # The tile is swizzled by rows of 128 bytes; the view has rows of 64.
        view = tlx.local_reinterpret(tile[0], tl.float16, [32, 32])
        offsets = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
        tl.store(out + offsets, tlx.local_load(view))  # at: rows of another length
    else:
        offsets = tl.arange(0, 16)[:, None] * 64 + tl.arange(0, 64)[None, :]
        tl.store(out + offsets, tlx.local_load(tile[0]))


REINTERPRETED = Cage(reinterpreted, lambda: (tiles(1, 16, 64), zeros(1024))).bug(
    "rows of another length",
    "layout of a view",
    "layout|swizzl",
)


@tlx_xdsl.jit
def given_out(count, BUG: tl.constexpr):
    """Cluster launch control: a program takes over those that have not begun, one after the other."""
    response = tlx._alloc_clc_responses(1)
    given = tlx.alloc_barriers(1)
    item = tl.program_id(0)
    turn = 0
    while item >= 0:
        if BUG == "half of the bytes":
            tlx.barrier_expect_bytes(given[0], 8)
        elif BUG != "bytes not expected":
            tlx.barrier_expect_bytes(given[0], 16)
        tlx._clc_issue(response[0], given[0])  # at: half of the bytes
        tl.atomic_add(count + item, 1, sem="relaxed")
        if BUG == "parity not turned":
            tlx.barrier_wait(given[0], 0)  # at: parity not turned
        elif BUG != "not waited for":
            tlx.barrier_wait(given[0], turn & 1)  # at: bytes not expected
        item = tlx._clc_query(response[0])  # at: not waited for
        tlx.fence_async_shared()
        turn += 1
    if BUG == "asks again":
        tlx.barrier_expect_bytes(given[0], 16)
        tlx._clc_issue(response[0], given[0])  # at: asks again
        tlx.barrier_wait(given[0], turn & 1)


GIVEN_OUT = (
    Cage(given_out, lambda: (zeros(5, dtype=np.int32),), grid=5, options={"target": "sm_100a"})
    .bug("half of the bytes", "too few bytes", "8 bytes more arrive on 'given.0.'")
    .bug("bytes not expected", "bytes not expected", "deadlock: .*'given.0.'.*not expected")
    .bug("not waited for", "wait missing", "'response.0.'.*(read before it is written|nothing orders it after)")
    .bug("parity not turned", "parity", "deadlock: .*'given.0.' for parity 0, while its phase 2")
    .bug("asks again", "launch control", "again|no more|none|undefined")
    .clean(grid=1)
)

CAGES = (BY_GROUPS, IN_A_LOOP, REINTERPRETED, GIVEN_OUT)
