"""Places in a ring of buffers, turns at the tensor cores, and tiles from a counter, for kernels.

Programs take tiles from a counter in global memory, so that one that is done early has the next tile. The first tile of
a program is that of its number. A producer takes the others, and passes them to the consumers through shared memory:
`full` says that a tile is there, `empty` that all consumers have read it.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

from typing import Any, NamedTuple

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


@tlx_xdsl.jit
def tile_of(tile, tiles, HEADS_TOGETHER, ROWS: tl.constexpr):
    """Head (over all batches) and first row of a tile of ROWS: HEADS_TOGETHER heads take their tiles in turn."""
    together = tiles * HEADS_TOGETHER
    rest = tile % together
    return tile // together * HEADS_TOGETHER + rest % HEADS_TOGETHER, rest // HEADS_TOGETHER * ROWS


class Queue(NamedTuple):
    """The place of a program's next tile in shared memory, and its barriers."""

    tile: Any
    full: Any
    empty: Any


@tlx_xdsl.jit
def queue_for(READERS: tl.constexpr):
    """A place for the next tile, which READERS consumers read."""
    tile = tlx.local_alloc((1,), tl.int32, 1)
    full = tlx.alloc_barriers(1)
    return Queue(tile, full, tlx.alloc_barriers(1, arrive_count=READERS))


@tlx_xdsl.jit
def take_next(counter_ptr, queue, turn):
    """Producer: take the next tile that no program has, for the consumers' `turn`-th turn after their first."""
    tile, full, empty = queue.tile[0], queue.full[0], queue.empty[0]
    taken = tl.num_programs(0) + tl.atomic_add(counter_ptr.to(tl.pointer_type(tl.int32), bitcast=True), 1)
    tlx.barrier_wait(empty, (turn & 1) ^ 1)
    tlx.local_store(tile, tl.full((1,), taken, tl.int32))
    tlx.barrier_arrive(full)
    return taken


@tlx_xdsl.jit
def taken_next(queue, turn):
    """A consumer: the tile that the producer has taken."""
    tile, full, empty = queue.tile[0], queue.full[0], queue.empty[0]
    tlx.barrier_wait(full, turn & 1)
    taken = tl.sum(tlx.local_load(tile), 0)
    tlx.barrier_arrive(empty)
    return taken
