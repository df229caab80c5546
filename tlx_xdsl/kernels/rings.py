"""Places in a ring of buffers, and turns at the tensor cores, for kernels."""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic

import tlx_xdsl
import tlx_xdsl.language as tl

TURN_THREADS = tl.constexpr(256)
"""Threads that meet at a named barrier: the consumer that waits for its turn, and the one that calls it."""


@tlx_xdsl.jit
def next_place(stage, phase, NUM_STAGES: tl.constexpr):
    """The stage after `stage` in a ring, and the phase (0 or 1) of its barriers' next turn.

    Carried from step to step, this is two selects; `tlx.get_bufidx_phase` of a running number divides at each step.
    """
    wraps = stage == NUM_STAGES - 1
    return tl.where(wraps, 0, stage + 1), phase ^ wraps.to(tl.int32)
