"""Places in a ring of buffers, and turns at the tensor cores, for kernels."""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportArgumentType=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

TURN_THREADS = tl.constexpr(256)
"""Threads that meet at a named barrier: the consumer that waits for its turn, and the one that calls it."""


@tlx_xdsl.jit
def next_place(stage, phase, NUM_STAGES: tl.constexpr):
    """The stage after `stage` in a ring, and the phase (0 or 1) of its barriers' next turn.

    Carried from step to step, this is two selects; `tlx.get_bufidx_phase` of a running number divides at each step.
    """
    wraps = stage == NUM_STAGES - 1
    return tl.where(wraps, 0, stage + 1), phase ^ wraps.to(tl.int32)


@tlx_xdsl.jit
def begin_turns(c: tl.constexpr, CONSUMERS: tl.constexpr):
    """Consumer c, before its first turn: the last one calls consumer 0. One alone has no turns."""
    if CONSUMERS > 1 and c == CONSUMERS - 1:
        tlx.named_barrier_arrive(0, TURN_THREADS)


@tlx_xdsl.jit
def wait_for_turn(c: tl.constexpr, CONSUMERS: tl.constexpr):
    """Consumer c: wait until it may issue products."""
    if CONSUMERS > 1:
        tlx.named_barrier_wait(c, TURN_THREADS)


@tlx_xdsl.jit
def call_next(c: tl.constexpr, CONSUMERS: tl.constexpr):
    """Consumer c has issued its products: the next one may."""
    if CONSUMERS > 1:
        tlx.named_barrier_arrive((c + 1) % CONSUMERS, TURN_THREADS)


@tlx_xdsl.jit
def end_turns(c: tl.constexpr, CONSUMERS: tl.constexpr):
    """Consumer c, after its last turn: consumer 0 takes the last call."""
    if CONSUMERS > 1 and c == 0:
        tlx.named_barrier_wait(0, TURN_THREADS)
