"""Threads of one task: what they hand to each other by global memory, and barriers that only some of them reach."""

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.zoo.arrays import empty, numbers, zeros
from tests.zoo.bugs import Cage

# Kernels are read by the frontend, not run by Python.
# pyright: basic


def floats(*counts):
    return lambda: tuple(numbers(count, dtype="float32") for count in counts)


@tlx_xdsl.jit
def reversed_in_place(x, BUG: tl.constexpr):
    """Elements change their places: all are read before one is written."""
    offsets = tl.arange(0, 128)
    values = tl.load(x + offsets)
    if BUG == "":
        tl.debug_barrier()
    tl.store(x + 127 - offsets, values)  # at: no barrier


REVERSED = Cage(reversed_in_place, floats(128)).bug(
    "no barrier",
    "threads of one task: written too early",
    "a thread of .* writes byte .* of 'x' .* nothing orders it after another one, by which it is read",
)


@tlx_xdsl.jit
def filled_and_scattered(x, places, out, BUG: tl.constexpr):
    """The result is set to -1, and some elements are written: other threads do that than have set them."""
    offsets = tl.arange(0, 64)
    tl.store(out + offsets, tl.zeros((64,), tl.float32) - 1.0)
    if BUG == "":
        tl.debug_barrier()
    target = tl.load(places + offsets)
    # at: no barrier
    tl.store(out + target, tl.load(x + offsets), mask=offsets < 32)


FILLED = Cage(
    filled_and_scattered,
    lambda: (*floats(64)(), (np.arange(64, dtype=np.int32) * 5) % 64, zeros(64, dtype="float32")),
).bug(
    "no barrier",
    "threads of one task: written twice",
    "a thread of .* writes byte .* of 'out' .* nothing orders it after another one, by which it is written",
)


@tlx_xdsl.jit
def shifted(x, line, out, STEPS: tl.constexpr, BUG: tl.constexpr):
    """Move each element one place in each step: two barriers, one of them at the loop's end."""
    offsets = tl.arange(0, 64)
    tl.store(line + offsets, tl.load(x + offsets))
    for _ in range(STEPS):
        if BUG != "no barrier after the store":
            tl.debug_barrier()
        values = tl.load(line + (offsets + 1) % 64)  # at: no barrier after the store
        if BUG != "no barrier before the store":
            tl.debug_barrier()
        tl.store(line + offsets, values)  # at: no barrier before the store
    tl.store(out + offsets, tl.load(line + offsets))


OF_LINE = "a thread of .* {} byte .* of 'line' in global memory, and nothing orders it after another one"
SHIFTED = (
    Cage(shifted, floats(64, 64, 64), constants={"STEPS": 3})
    .bug("no barrier after the store", "threads of one task: in a loop", OF_LINE.format("reads"))
    .bug("no barrier before the store", "threads of one task: in a loop", OF_LINE.format("writes"))
    .clean(STEPS=0)
)


@tlx_xdsl.jit
def some_threads(out, BUG: tl.constexpr):
    """The first warp stores something; all of them meet afterwards."""
    if tlx.thread_id(0) < 32:
        tl.store(out, 1)
        if BUG == "barrier in the branch":
            tl.debug_barrier()  # at: barrier in the branch
        elif BUG == "named barrier in the branch":
            tlx.named_barrier_wait(1, 128)  # at: named barrier in the branch
    if BUG == "":
        tl.debug_barrier()
    tl.store(out + 1, 2)


SOME = "all threads of the task meet at this barrier, and only 32 of 128 run here"
SOME_THREADS = (
    Cage(some_threads, lambda: (zeros(2, dtype="int32"),))
    .bug("barrier in the branch", "barrier in a branch of threads", SOME)
    .bug("named barrier in the branch", "barrier in a branch of threads", SOME)
)


@tlx_xdsl.jit
def edges(x, out, ROWS, COLUMNS, BUG: tl.constexpr):
    """A matrix by tiles of 16 x 16, into memory that no one has filled."""
    rows = tl.program_id(0) * 16 + tl.arange(0, 16)[:, None]
    columns = tl.program_id(1) * 16 + tl.arange(0, 16)[None, :]
    mask = (rows < ROWS) & (columns < COLUMNS)
    values = tl.load(x + rows * COLUMNS + columns, mask=mask)
    if BUG == "last column left out":
        mask = (rows < ROWS) & (columns < COLUMNS - 1)
    elif BUG == "whole tiles only":
        mask = (tl.program_id(0) * 16 + 16 <= ROWS) & (columns < COLUMNS) & (rows >= 0)
    tl.store(out + rows * COLUMNS + columns, values, mask=mask)  # at: last column left out, whole tiles only


EDGES = (
    Cage(edges, lambda: (*floats(40 * 24)(), empty(40, 24), 40, 24), grid=(3, 2))
    .bug("last column left out", "element left out", "40 of its 960 elements are left so, element .0, 23. first")
    .bug("whole tiles only", "element left out", "192 of its 960 elements are left so, element .32, 0. first")
)


@tlx_xdsl.jit
def scaled_rows(x, out, scale, BUG: tl.constexpr):
    """The row of a program, by way of a number that does not fit into 32 bits."""
    pid = tl.program_id(0)
    if BUG == "32 bits":
        row = pid * scale // scale
    else:
        row = (pid.to(tl.int64) * scale // scale).to(tl.int32)
    offsets = row * 32 + tl.arange(0, 32)
    tl.store(out + pid * 32 + tl.arange(0, 32), tl.load(x + offsets))  # at: 32 bits


SCALED = Cage(scaled_rows, lambda: (*floats(128, 128)(), 1 << 30), grid=4).bug(
    "32 bits", "offset wraps around", "load out of bounds: .*; its offset wraps around in 32 bits"
)


@tlx_xdsl.jit
def two_shapes(x, out, BUG: tl.constexpr):
    """Threads write a tile, and read it again as one of another shape, whose swizzle is another one."""
    tile = tlx.local_alloc((16, 64), tl.float16, 1, layout=tlx.swizzled_shared_layout_encoding(8, 1, 8, [1, 0]))
    view = tlx.local_reinterpret(tile[0], tl.float16, [32, 32])
    wide = tl.arange(0, 16)[:, None] * 64 + tl.arange(0, 64)[None, :]
    high = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    if BUG == "written as the other":
        tlx.local_store(tile[0], tl.load(x + wide))
    else:
        tlx.local_store(view, tl.load(x + high))
    tl.store(out + high, tlx.local_load(view))  # at: written as the other


TWO_SHAPES = Cage(two_shapes, lambda: (numbers(1024), zeros(1024))).bug(
    "written as the other", "layout of a view", "is read with another layout than it is written with"
)


@tlx_xdsl.jit
def described_anew(x, dst, GROUPS: tl.constexpr, BUG: tl.constexpr):
    """Each tile goes to a tensor of its own, whose descriptor is written where the one before was."""
    room = tlx.allocate_tensor_descriptor(1)
    tile = tlx.local_alloc((16, 16), tl.float16, 2)
    offsets = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    for g in tl.static_range(GROUPS):
        # at: no wait, waits for reads only
        target = tlx.make_tensor_descriptor(room[0], dst + g * 256, [16, 16], [16, 1], [16, 16])
        tlx.local_store(tile[g % 2], tl.load(x + g * 256 + offsets))
        tlx.fence_async_shared()
        tlx.async_descriptor_store(target, tile[g % 2], [0, 0])
        if BUG == "waits for reads only":
            tlx.async_descriptor_store_wait(0)
        elif BUG != "no wait":
            tlx.async_descriptor_store_wait(0, read=False)
    tlx.async_descriptor_store_wait(0)


ANEW = "writes byte 0 of .*, which holds a tensor descriptor, and nothing orders it after the TMA store"
DESCRIBED_ANEW = (
    Cage(described_anew, lambda: (numbers(4 * 256), zeros(4 * 256)), constants={"GROUPS": 2})
    .bug("no wait", "descriptor in use", ANEW)
    .bug("waits for reads only", "descriptor in use", ANEW)
    .clean(GROUPS=1)
)


@tlx_xdsl.jit
def ring_of_programs(x, slots, filled, taken, out, STEPS: tl.constexpr, BUG: tl.constexpr):
    """Program 0 hands blocks to program 1 by two slots in global memory: it must wait until a slot is free."""
    offsets = tl.arange(0, 32)
    for t in range(STEPS):
        place = slots + t % 2 * 32 + offsets
        if tl.program_id(0) == 0:
            if BUG != "no room asked for":
                limit = t - 2 if BUG == "one too many" else t - 1
                while tl.atomic_add(taken, 0, sem="acquire") < limit:
                    pass
            # at: no room asked for, one too many, freed before it is read
            tl.store(place, tl.load(x + t * 32 + offsets))
            tl.atomic_add(filled, 1, sem="release")
        else:
            while tl.atomic_add(filled, 0, sem="acquire") <= t:
                pass
            values = tl.load(place)  # at: no room asked for, one too many
            if BUG == "freed before it is read":
                tl.atomic_add(taken, 1, sem="relaxed")
            else:
                tl.atomic_add(taken, 1, sem="release")
            tl.store(out + t * 32 + offsets, values)


SLOTS = "of 'slots' in global memory, and nothing orders it after"
RING = Cage(
    ring_of_programs,
    lambda: (
        *floats(192, 64)(), zeros(1, dtype="int32"), zeros(1, dtype="int32"), zeros(192, dtype="float32")
    ),
    grid=2,
    constants={"STEPS": 6, "launches": 1},
)  # fmt: skip
RING.bug("no room asked for", "slot in use", SLOTS)
RING.bug("one too many", "slot in use", SLOTS)
RING.bug("freed before it is read", "no release", SLOTS)
RING.clean(STEPS=1).clean(STEPS=2)

CAGES = (REVERSED, FILLED, SHIFTED, SOME_THREADS, EDGES, SCALED, TWO_SHAPES, DESCRIBED_ANEW, RING)
