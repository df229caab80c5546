"""Bytes that an mbarrier expects: too many, too few, in the wrong place, or for copies that do not come."""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.zoo.arrays import described, numbers, tiles, zeros
from tests.zoo.bugs import Cage

# Kernels are read by the frontend, not run by Python.
# pyright: basic


@tlx_xdsl.jit
def two_operands(a_desc, b_desc, out, STEPS: tl.constexpr, BUG: tl.constexpr):
    """Two tiles of different types complete on one barrier."""
    a = tlx.local_alloc((16, 16), tl.float16, 2)
    b = tlx.local_alloc((16, 16), tl.float32, 2)
    full = tlx.alloc_barriers(2)
    empty = tlx.alloc_barriers(2)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for t in range(STEPS):
                slot, phase = tlx.get_bufidx_phase(t, 2)
                tlx.barrier_wait(empty[slot], phase ^ 1)
                if BUG == "one operand":
                    tlx.barrier_expect_bytes(full[slot], 16 * 16 * 2)
                elif BUG == "size of the other type":
                    tlx.barrier_expect_bytes(full[slot], 2 * 16 * 16 * 4)
                elif BUG == "smaller type":
                    tlx.barrier_expect_bytes(full[slot], 2 * 16 * 16 * 2)
                elif BUG == "next slot":
                    tlx.barrier_expect_bytes(full[(t + 1) % 2], 16 * 16 * (2 + 4))  # at: next slot
                elif BUG == "twice":
                    # An expect is an arrival, too: two of them need a barrier that counts two.
                    tlx.barrier_expect_bytes(full[slot], 16 * 16 * 2)
                    tlx.barrier_expect_bytes(full[slot], 16 * 16 * 4)  # at: twice
                elif BUG == "arrives instead":
                    tlx.barrier_arrive(full[slot])
                elif BUG != "none":
                    tlx.barrier_expect_bytes(full[slot], 16 * 16 * (2 + 4))
                # at: one operand, smaller type, none, arrives instead
                tlx.async_descriptor_load(a_desc, a[slot], [t * 16, 0], full[slot])
                if BUG != "copy missing":
                    # at: one operand, smaller type, none, arrives instead
                    tlx.async_descriptor_load(b_desc, b[slot], [t * 16, 0], full[slot])
        with tlx.async_task(num_warps=4):
            offsets = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
            for t in range(STEPS):
                slot, phase = tlx.get_bufidx_phase(t, 2)
                tlx.barrier_wait(full[slot], phase)  # at: size of the other type, copy missing, none
                total = tlx.local_load(a[slot]).to(tl.float32) + tlx.local_load(b[slot])
                tlx.barrier_arrive(empty[slot])
                tl.store(out + t * 256 + offsets, total)


TWO_OPERANDS = (
    Cage(
        two_operands,
        lambda: (tiles(5), tiles(5, dtype="float32"), zeros(5 * 256, dtype="float32")),
        constants={"STEPS": 5},
    )
    .bug("one operand", "too few bytes", "bytes more arrive on 'full.0.'.*too few")
    .bug("smaller type", "too few bytes", "bytes more arrive on 'full.0.'.*too few")
    .bug("size of the other type", "too many bytes", "'full.0.'.*lacks 512 bytes")
    .bug("copy missing", "copy missing", "'full.0.'.*lacks 1024 bytes")
    .bug("next slot", "wrong slot", "'full.1.'")
    .bug("twice", "count", "too many arrivals on 'full.0.'")
    .bug("arrives instead", "bytes not expected", "bytes.*'full.0.'|'full.0.'.*not expected")
    .bug("none", "bytes not expected", "'full.0.'.*not expected")
    .clean(STEPS=0)
    .clean(STEPS=1)
    .clean(seconds=0.2)
)


@tlx_xdsl.jit
def ragged(src, out, ROWS, BUG: tl.constexpr):
    """The last tile leaves the tensor: TMA fills it with zeros, which count as bytes."""
    tile = tlx.local_alloc((16, 16), tl.float16, 2)
    full = tlx.alloc_barriers(2)
    steps = tl.cdiv(ROWS, 16)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for t in range(steps):
                if BUG == "bytes inside only":
                    tlx.barrier_expect_bytes(full[t], 16 * 16 * 2, pred=t * 16 + 16 <= ROWS)
                    tlx.barrier_expect_bytes(full[t], 8 * 16 * 2, pred=t * 16 + 16 > ROWS)
                else:
                    tlx.barrier_expect_bytes(full[t], 16 * 16 * 2)
                if BUG == "no copy of the last":
                    tlx.async_descriptor_load(src, tile[t], [t * 16, 0], full[t], pred=t * 16 + 16 <= ROWS)
                else:
                    tlx.async_descriptor_load(src, tile[t], [t * 16, 0], full[t])  # at: bytes inside only
        with tlx.async_task(num_warps=4):
            rows = tl.arange(0, 16)[:, None]
            for t in range(steps):
                tlx.barrier_wait(full[t], 0)  # at: no copy of the last
                values = tlx.local_load(tile[t])
                tl.store(out + (t * 16 + rows) * 16 + tl.arange(0, 16)[None, :], values, mask=t * 16 + rows < ROWS)


RAGGED = (
    Cage(ragged, lambda: (described(numbers(24, 16), 16, 16), zeros(24 * 16), 24))
    .bug("no copy of the last", "copy missing", "deadlock: partition 0 waits at 'full.1.'.*lacks 512 bytes")
    .bug("bytes inside only", "too few bytes", "256 bytes more arrive on 'full.1.'.*too few")
    .clean(arguments=lambda: (described(numbers(32, 16), 16, 16), zeros(32 * 16), 32))
)


@tlx_xdsl.jit
def bulk(x, out, BUG: tl.constexpr):
    """Rows of bytes by bulk copies without a descriptor."""
    row = tlx.local_alloc((256,), tl.float32, 2)
    full = tlx.alloc_barriers(2)
    for t in tl.static_range(2):
        if BUG == "elements for bytes":
            tlx.barrier_expect_bytes(full[t], 256)
        else:
            tlx.barrier_expect_bytes(full[t], 1024)
        if BUG == "half a row":
            tlx.async_load(x + t * 256, row[t], bulk=True, bulk_size=512, barrier=full[t])
        elif BUG == "other barrier":
            tlx.async_load(x + t * 256, row[t], bulk=True, barrier=full[0])
        else:
            tlx.async_load(x + t * 256, row[t], bulk=True, barrier=full[t])  # at: elements for bytes
    for t in tl.static_range(2):
        if BUG == "waits for the first":
            tlx.barrier_wait(full[0], 0)  # at: waits for the first
        else:
            tlx.barrier_wait(full[t], 0)  # at: half a row, other barrier
        tl.store(out + t * 256 + tl.arange(0, 256), tlx.local_load(row[t]))


BULK = (
    Cage(bulk, lambda: (numbers(512, dtype="float32"), zeros(512, dtype="float32")))
    .bug("elements for bytes", "too few bytes", "768 bytes more arrive on 'full.0.'.*too few")
    .bug("half a row", "too many bytes", "deadlock: .*'full.0.'.*lacks 512 bytes")
    .bug("other barrier", "wrong barrier", "'full.(0|1).'.*(lacks|bytes)")
    .bug("waits for the first", "wrong barrier", "waits at 'full.0.' for parity 0 twice in a row")
)


@tlx_xdsl.jit
def conditional(src, out, STEPS: tl.constexpr, BUG: tl.constexpr):
    """Every other step has nothing to load: its barrier is to be passed by an arrival without bytes."""
    tile = tlx.local_alloc((16, 16), tl.float16, 1)
    full = tlx.alloc_barriers(1)
    empty = tlx.alloc_barriers(1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for t in range(STEPS):
                tlx.barrier_wait(empty[0], t & 1 ^ 1)  # at: skips, arrives twice
                is_new = t % 2 == 0
                if BUG == "expects always":
                    tlx.barrier_expect_bytes(full[0], 16 * 16 * 2)
                else:
                    tlx.barrier_expect_bytes(full[0], 16 * 16 * 2, pred=is_new)
                    if BUG == "arrives twice":
                        tlx.barrier_arrive(full[0])  # at: arrives twice
                    elif BUG != "skips":
                        tlx.barrier_arrive(full[0], pred=not is_new)
                tlx.async_descriptor_load(src, tile[0], [t // 2 * 16, 0], full[0], pred=is_new)
        with tlx.async_task(num_warps=4):
            offsets = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
            for t in range(STEPS):
                tlx.barrier_wait(full[0], t & 1)  # at: expects always, skips
                tl.store(out + t * 256 + offsets, tlx.local_load(tile[0]))
                tlx.barrier_arrive(empty[0])


CONDITIONAL = (
    Cage(conditional, lambda: (tiles(2), zeros(4 * 256)), constants={"STEPS": 4})
    .bug("expects always", "copy missing", "'full.0.' for parity 1.*lacks 512 bytes")
    .bug("skips", "arrival missing", "'full.0.' for parity 1.*lacks 1 of 1")
    .bug("arrives twice", "count", "too many arrivals on 'full.0.'")
)

CAGES = (TWO_OPERANDS, RAGGED, BULK, CONDITIONAL)
