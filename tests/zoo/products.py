"""Products on Hopper's tensor cores (wgmma): operands and accumulators in flight, and copies by `cp.async`."""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.zoo.arrays import described, numbers, zeros
from tests.zoo.bugs import Cage

# Kernels are read by the frontend, not run by Python.
# pyright: basic


def operands(steps, rows=64):
    """A of rows x (16 * steps) and B of (16 * steps) x 16, by blocks, and room for the product."""
    return (
        described(numbers(rows, 16 * steps), rows, 16),
        described(numbers(16 * steps, 16), 16, 16),
        zeros(rows * 16, dtype="float32"),
    )


@tlx_xdsl.jit
def store(out, values, ROWS: tl.constexpr):
    tl.store(out + tl.arange(0, ROWS)[:, None] * 16 + tl.arange(0, 16)[None, :], values)


@tlx_xdsl.jit
def pipelined(a_desc, b_desc, out, STEPS: tl.constexpr, SLOTS: tl.constexpr, BUG: tl.constexpr):
    """One product stays in flight while the next one is issued; a slot is free when its product is done."""
    a = tlx.local_alloc((64, 16), tl.float16, SLOTS)
    b = tlx.local_alloc((16, 16), tl.float16, SLOTS)
    full = tlx.alloc_barriers(SLOTS)
    empty = tlx.alloc_barriers(SLOTS)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for k in range(STEPS):
                slot, phase = tlx.get_bufidx_phase(k, SLOTS)
                tlx.barrier_wait(empty[slot], phase ^ 1)  # at: slot of no one
                tlx.barrier_expect_bytes(full[slot], (64 + 16) * 16 * 2)
                # at: frees the slot in flight, waits for too few, frees after the issue
                tlx.async_descriptor_load(a_desc, a[slot], [0, k * 16], full[slot])
                tlx.async_descriptor_load(b_desc, b[slot], [k * 16, 0], full[slot])
        with tlx.async_task(num_warps=4):
            acc = tl.zeros((64, 16), tl.float32)
            for k in range(STEPS):
                slot, phase = tlx.get_bufidx_phase(k, SLOTS)
                if BUG != "not full":
                    tlx.barrier_wait(full[slot], phase)
                acc = tlx.async_dot(a[slot], b[slot], acc)  # at: not full
                if BUG == "frees after the issue":
                    tlx.barrier_arrive(empty[slot])
                if BUG == "waits for too few":
                    acc = tlx.async_dot_wait(2, acc)
                elif BUG == "right: nothing in flight":
                    acc = tlx.async_dot_wait(0, acc)
                else:
                    acc = tlx.async_dot_wait(1, acc)
                if BUG == "frees the slot in flight":
                    tlx.barrier_arrive(empty[slot])
                elif BUG == "right: nothing in flight":
                    tlx.barrier_arrive(empty[slot])
                elif BUG == "slot of no one":
                    # Frees the slot of the step after this one, which is not full yet.
                    tlx.barrier_arrive(empty[(k + 1) % SLOTS], pred=k > 0)
                elif BUG != "frees after the issue":
                    tlx.barrier_arrive(empty[(k + SLOTS - 1) % SLOTS], pred=k > 0)
            if BUG != "result in flight":
                acc = tlx.async_dot_wait(0, acc)
            acc *= 0.5  # at: result in flight
            store(out, acc, 64)


RESULT = "uses the result of an asynchronous dot that may still be in flight"
IN_FLIGHT = "writes '[ab].0.', and nothing orders it after the wgmma"
PIPELINED = (
    Cage(pipelined, lambda: operands(6), constants={"STEPS": 6, "SLOTS": 3})
    .bug("frees the slot in flight", "operand in flight", IN_FLIGHT)
    .bug("frees after the issue", "operand in flight", IN_FLIGHT, twin={"BUG": "right: nothing in flight"})
    .bug("waits for too few", "operand in flight", IN_FLIGHT)
    .bug("slot of no one", "wrong slot", "'empty.[012].'")
    .bug("not full", "wait missing", "'[ab].0.'.*(read before it is written|nothing orders it after the TMA load)")
    .bug("result in flight", "result in flight", RESULT)
    .clean(STEPS=0)
    .clean(STEPS=1)
    .clean(SLOTS=2)
    .clean(seconds=0.2)
)


@tlx_xdsl.jit
def from_threads(x, b_ptr, out, BUG: tl.constexpr):
    """Threads write the operands: the tensor cores read them through another proxy."""
    a = tlx.local_alloc((64, 16), tl.float16, 1)
    b = tlx.local_alloc((16, 16), tl.float16, 1)
    offsets = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tlx.local_store(b[0], tl.load(b_ptr + offsets))
    tlx.fence_async_shared()
    acc = tl.zeros((64, 16), tl.float32)
    rows = tl.arange(0, 64)[:, None] * 16 + tl.arange(0, 16)[None, :]
    for t in range(3):
        tlx.local_store(a[0], tl.load(x + t * 1024 + rows))  # at: written in flight
        if BUG != "no fence":
            tlx.fence_async_shared()
        acc = tlx.async_dot(a[0], b[0], acc)  # at: no fence
        if BUG == "written in flight":
            acc = tlx.async_dot_wait(1, acc)
        else:
            acc = tlx.async_dot_wait(0, acc)
    acc = tlx.async_dot_wait(0, acc)
    store(out, acc, 64)


FROM_THREADS = (
    Cage(from_threads, lambda: (numbers(3 * 1024), numbers(256), zeros(1024, dtype="float32")))
    .bug("no fence", "proxy fence", "wgmma .*reads 'a.0.'.*without a proxy fence")
    .bug("written in flight", "operand in flight", "writes 'a.0.', and nothing orders it after the wgmma")
)


@tlx_xdsl.jit
def chained(a_desc, b_desc, out, BUG: tl.constexpr):
    """The first product, rounded, is the second one's operand: in registers, or by way of shared memory."""
    a = tlx.local_alloc((64, 16), tl.float16, 1)
    b = tlx.local_alloc((16, 16), tl.float16, 2)
    p = tlx.local_alloc((64, 16), tl.float16, 1)
    full = tlx.alloc_barriers(2)
    tlx.barrier_expect_bytes(full[0], (64 + 16) * 16 * 2)
    tlx.async_descriptor_load(a_desc, a[0], [0, 0], full[0])
    tlx.async_descriptor_load(b_desc, b[0], [0, 0], full[0])
    tlx.barrier_expect_bytes(full[1], 512)
    tlx.async_descriptor_load(b_desc, b[1], [16, 0], full[1])
    tlx.barrier_wait(full[0], 0)
    scores = tlx.async_dot(a[0], b[0])
    if BUG != "scores in flight":
        scores = tlx.async_dot_wait(0, scores)
    weights = (scores * 0.5).to(tl.float16)  # at: scores in flight
    if BUG != "second operand":
        tlx.barrier_wait(full[1], 0)
    if BUG == "right: in registers":
        total = tlx.async_dot(weights, b[1])
    else:
        tlx.local_store(p[0], weights)
        if BUG != "not fenced":
            tlx.fence_async_shared()
        total = tlx.async_dot(p[0], b[1])  # at: not fenced, second operand
    if BUG == "second operand":
        tlx.barrier_wait(full[1], 0)
    store(out, tlx.async_dot_wait(0, total), 64)


CHAINED = (
    Cage(chained, lambda: operands(2))
    .bug("scores in flight", "result in flight", RESULT)
    .bug("not fenced", "proxy fence", "reads 'p.0.'.*without a proxy fence", twin={"BUG": "right: in registers"})
    .bug("second operand", "wait missing", "'b.1.'.*(read before it is written|nothing orders it after the TMA load)")
)


@tlx_xdsl.jit
def copies(x, out, STEPS: tl.constexpr, BUG: tl.constexpr):
    """A ring that `cp.async` fills: groups are waited for by their number, and only by who has started them."""
    ring = tlx.local_alloc((32, 16), tl.float16, 2)
    offsets = tl.arange(0, 32)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tlx.async_load_commit_group([tlx.async_load(x + offsets, ring[0])])
    for t in range(STEPS):
        if t + 1 < STEPS:
            # at: refills what it reads
            tlx.async_load(x + (t + 1) * 512 + offsets, ring[t % 2 if BUG == "refills what it reads" else (t + 1) % 2])
        if BUG != "no group" or t == STEPS - 1:
            # Empty in the last step, so that the number of groups after the current one is always 1.
            tlx.async_load_commit_group()
        if BUG == "waits for the one before":
            tlx.async_load_wait_group(2)
        elif BUG != "no wait":
            tlx.async_load_wait_group(1)
        # at: waits for the one before, no wait, no group
        tl.store(out + t * 512 + offsets, tlx.local_load(ring[t % 2]))
    tlx.async_load_wait_group(0)


UNORDERED = "reads 'ring.[01].', and nothing orders it after the cp.async|'ring.0.' is read before it is written"
COPIES = (
    Cage(copies, lambda: (numbers(4 * 512), zeros(4 * 512)), constants={"STEPS": 4})
    .bug("no wait", "wait missing", UNORDERED)
    .bug("waits for the one before", "group count", UNORDERED)
    .bug("no group", "group count", UNORDERED)
    .bug("refills what it reads", "early release", "writes 'ring.[01].'.*|reads 'ring.[01].', and nothing orders it")
    .clean(STEPS=1)
    .clean(STEPS=2)
)


@tlx_xdsl.jit
def copies_for_products(x, b_ptr, out, BUG: tl.constexpr):
    """`cp.async` writes as threads do: a product that reads it needs the wait and a proxy fence."""
    a = tlx.local_alloc((64, 16), tl.float16, 1)
    b = tlx.local_alloc((16, 16), tl.float16, 1)
    tlx.async_load(x + tl.arange(0, 64)[:, None] * 16 + tl.arange(0, 16)[None, :], a[0])
    tlx.async_load(b_ptr + tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :], b[0])
    tlx.async_load_commit_group()
    if BUG != "no wait":
        tlx.async_load_wait_group(0)
    if BUG != "no fence":
        tlx.fence_async_shared()
    acc = tlx.async_dot_wait(0, tlx.async_dot(a[0], b[0]))  # at: no wait, no fence
    tlx.async_load_wait_group(0)
    store(out, acc, 64)


COPIES_FOR_PRODUCTS = (
    Cage(copies_for_products, lambda: (numbers(1024), numbers(256), zeros(1024, dtype="float32")))
    .bug("no wait", "wait missing", "'[ab].0.'.*(nothing orders it after the cp.async|read before it is written)")
    .bug(
        "no fence",
        "proxy fence",
        "reads '[ab].0.'.*without a proxy fence",
    )
)

CAGES = (PIPELINED, FROM_THREADS, CHAINED, COPIES, COPIES_FOR_PRODUCTS)
