"""Programmatic dependent launch: what a kernel does before it has waited for the launch before it."""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.zoo.arrays import numbers, zeros
from tests.zoo.bugs import Cage

# Kernels are read by the frontend, not run by Python.
# pyright: basic

RELAUNCHED = {"launches": 2}
"""The launch before is of the same kernel, on the same arrays."""


@tlx_xdsl.jit
def stepped(state, weights, out, BUG: tl.constexpr):
    """A step of a recurrence, whose weights no launch writes."""
    at = tl.program_id(0) * 128 + tl.arange(0, 128)
    factor = tl.load(weights + at)
    if BUG == "reads before the wait":
        values = tl.load(state + at)  # at: reads before the wait
    if BUG == "clears before the wait":
        tl.store(out + at, 0.0)  # at: clears before the wait
    if BUG == "right: waits first":
        tl.extra.cuda.gdc_launch_dependents()
    tl.extra.cuda.gdc_wait()
    if BUG != "reads before the wait":
        values = tl.load(state + at)
    values = values * factor
    if BUG != "right: waits first":
        tl.extra.cuda.gdc_launch_dependents()
    tl.store(state + at, values)
    tl.store(out + at, values)


STEPPED = (
    Cage(
        stepped,
        lambda: (numbers(256, dtype="float32"), numbers(256, dtype="float32"), zeros(256, dtype="float32")),
        grid=2,
        options=RELAUNCHED,
    )
    .bug("reads before the wait", "dependent launch reads", "'state' is read before gdc_wait: .* write byte 0")
    .bug("clears before the wait", "dependent launch writes", "'out' is written before gdc_wait")
    .clean(BUG="right: waits first")
)


@tlx_xdsl.jit
def divided(x, out, BUG: tl.constexpr):
    """A task waits for the launch before, and the other one for that task."""
    ready = tlx.alloc_barriers(1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tl.extra.cuda.gdc_wait()
            tlx.barrier_arrive(ready[0])
        with tlx.async_task(num_warps=4):
            at = tl.arange(0, 128)
            if BUG != "does not ask":
                tlx.barrier_wait(ready[0], 0)
            values = tl.load(x + at)  # at: does not ask
            tl.extra.cuda.gdc_launch_dependents()
            tl.store(x + at, values + 1)  # at: does not ask
            if BUG == "does not ask":
                tlx.barrier_wait(ready[0], 0)


DIVIDED = Cage(
    divided,
    lambda: (numbers(128, dtype="float32"), zeros(128, dtype="float32")),
    options=RELAUNCHED,
).bug("does not ask", "dependent launch reads", "'x' is (read|written) before gdc_wait")

CAGES = (STEPPED, DIVIDED)
