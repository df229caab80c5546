"""Steps that the CTAs of a cluster do together for long normalised rows, forward and backward.

A cluster has every so many rows, and CTA r of its RANKS the BLOCK columns of a row from r * BLOCK on: its piece. Where
a row ends in it, the piece starts early enough to be full, so that all copies are of one size; the first `skip`
elements are another CTA's then, and count for nothing here (`skip` is None where there are none anywhere).

A CTA has five tasks, which are at different rows at the same time:

- The producer loads pieces of rows to a ring of STAGES, by bulk copies. `full[stage]` completes with their bytes,
  `empty[stage]` when the tasks that read them have arrived.
- One task makes the sums of a piece, and writes them to the CTA that makes the numbers of this row.
- One warp makes the numbers of every RANKS-th row when the sums of all CTAs have come (`complete`): scale, mean, slope
  and shift. It writes them to all CTAs (`ready[stage]`).
- One warp gives places back, as below.
- The default task writes what the kernel is for.

Sums. With n own elements in the row, m' their mean, d the differences from it and g as in `norm_rows`, a CTA hands over

    sum of d^2,  m',  sum of g d,  sum of g

or those of them that are needed. Of those of all CTAs come those of the row (Chan, Golub, LeVeque, 1979), added up in
the order of the ranks:

    m = sum of n m' / count
    sum of (x - m)^2 = sum over ranks of (sum of d^2 + n (m' - m)^2)
    sum of g (x - m) = sum over ranks of (sum of g d + (m' - m) sum of g)

They go by `st.async`, whose bytes complete on a barrier of the CTA that gets them. One CTA gets the sums of a row, and
then all get its numbers: with sums to all CTAs, which need no second way, gradients of 16 CTAs took 9 % longer (H200).

Places. Turn t of a cluster has place t % PLACES for sums and numbers. A completion by bytes releases these alone, not
what the thread has read before (PTX ISA, `st.async`). So when half of the places were read (`done`), a warp arrives at
`free` of all CTAs, which wait for that before they write there again. Such an arrival is a release to the cluster
(SASS: MEMBAR.ALL.GPU), which waits for what the CTA writes to global memory; that is why this warp does nothing else.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalOperand=false
# pyright: reportAttributeAccessIssue=false

from typing import Any, NamedTuple

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from ..rings import next_place

PLACES = tl.constexpr(32)
"""Rows whose sums and numbers a CTA has place for."""

HALF = tl.constexpr(16)
"""Places that are given back at a time."""

VALUES = 16
"""Elements that a thread has at a time: more of them in registers would leave fewer to other tasks."""


@tlx_xdsl.constexpr_function
def parts_of(block, warps):
    """Return the number of parts in which a piece is read."""
    return max(block // (VALUES * warps * 32), 1)


@tlx_xdsl.jit
def slice_of(buffer, part: tl.constexpr, PARTS: tl.constexpr):
    """A part of a buffer."""
    LENGTH: tl.constexpr = buffer.shape[0] // PARTS
    return tlx.local_slice(buffer, [part * LENGTH], [LENGTH])


@tlx_xdsl.jit
def read(buffer, part: tl.constexpr, PARTS: tl.constexpr, WARPS: tl.constexpr):
    """A part of a buffer in f32, as WARPS warps read it: 16 bytes for a thread at a time."""
    LENGTH: tl.constexpr = buffer.shape[0] // PARTS
    TOGETHER: tl.constexpr = 16 // tlx.size_of(tlx.dtype_of(buffer))
    layout: tl.constexpr = tlx.layout(
        shape=((WARPS * 32,), (TOGETHER, LENGTH // (TOGETHER * WARPS * 32))),
        stride=((TOGETHER,), (1, TOGETHER * WARPS * 32)),
    )
    return tlx.local_load(slice_of(buffer, part, PARTS), layout=layout).to(tl.float32)


@tlx_xdsl.jit
def inside_of(skip, part: tl.constexpr, LENGTH: tl.constexpr):
    """Return the mask of a part's elements that are this CTA's; None for all."""
    return None if skip is None else part * LENGTH + tl.arange(0, LENGTH) >= skip


@tlx_xdsl.jit
def only(x, inside):
    """`x`, and zeros for what is not this CTA's."""
    return x if inside is None else tl.where(inside, x, 0.0)


class Pieces(NamedTuple):
    """A cluster's rows, from `first` on every `clusters`-th of `rows`, and what a CTA has for its pieces of them.

    A row has `count` elements, the piece those from `start` on, of which `skip` are another CTA's. `rings` are buffers
    of each operand, `factors` those of weight and bias, or None; `received` and `numbers` the places of sums and of
    numbers. The top of this file says what the barriers are for, `norm_clusters.ClusterForm` what `form` is.
    """

    rings: Any
    factors: Any
    received: Any
    numbers: Any
    full: Any
    empty: Any
    loaded: Any
    complete: Any
    ready: Any
    done: Any
    free: Any
    start: Any
    skip: Any
    count: Any
    first: Any
    rows: Any
    clusters: Any
    eps: Any
    form: Any


@tlx_xdsl.jit
def pieces_of(
    dtype: tl.constexpr, OPERANDS: tl.constexpr, FACTORS: tl.constexpr, columns, rows, eps, form: tl.constexpr
):  # fmt: skip
    """The pieces of a CTA, whose memory and barriers are ready in all CTAs of the cluster when this returns."""
    BLOCK: tl.constexpr = form.block
    RANKS: tl.constexpr = form.ranks
    STAGES: tl.constexpr = form.stages
    count = columns * form.unit
    first = tl.program_id(0) // RANKS
    clusters = tl.num_programs(0) // RANKS
    mine = tlx.cluster_cta_rank() * BLOCK
    start = mine if form.even else tl.minimum(mine, count - BLOCK)
    skip = None if form.even else mine - start
    rings = [tlx.local_alloc((BLOCK,), dtype, STAGES) for _ in range(OPERANDS)]
    factors = tlx.local_alloc((BLOCK,), dtype, FACTORS) if FACTORS else None
    received = tlx.local_alloc((form.sums,), tl.float32, PLACES)
    numbers = tlx.local_alloc((form.numbers,), tl.float32, PLACES)
    full = tlx.alloc_barriers(STAGES)
    empty = tlx.alloc_barriers(STAGES, arrive_count=2)
    loaded = tlx.alloc_barriers(1)
    complete = tlx.alloc_barriers(PLACES // RANKS)
    ready = tlx.alloc_barriers(STAGES)
    done = tlx.alloc_barriers(2, arrive_count=2)
    free = tlx.alloc_barriers(2, arrive_count=RANKS)
    tlx.cluster_barrier()  # the others run, and their barriers are ready
    return Pieces(
        rings, factors, received, numbers, full, empty, loaded, complete, ready, done, free, start, skip, count, first,
        rows, clusters, eps, form,
    )  # fmt: skip


@tlx_xdsl.jit
def load_factors(pieces, factors_ptr):
    """Producer: load the CTA's piece of the weight, of the bias."""
    factors = pieces.factors
    if factors is not None:
        loaded = pieces.loaded[0]
        BYTES: tl.constexpr = pieces.form.block * tlx.size_of(tlx.dtype_of(factors))
        tlx.barrier_expect_bytes(loaded, len(factors_ptr) * BYTES)
        for which in tl.static_range(len(factors_ptr)):
            tlx.async_load(factors_ptr[which] + pieces.start, factors[which], bulk=True, barrier=loaded)


@tlx_xdsl.jit
def load_rows(pieces, pointers, strides, rings):
    """Producer: load the CTA's piece of each row, of all operands, in the order of `rings`."""
    form: tl.constexpr = pieces.form
    BYTES: tl.constexpr = form.block * tlx.size_of(tlx.dtype_of(rings[0]))
    stage = 0
    phase = 0
    for row in range(pieces.first, pieces.rows, pieces.clusters):
        tlx.barrier_wait(pieces.empty[stage], phase ^ 1)
        tlx.barrier_expect_bytes(pieces.full[stage], len(pointers) * BYTES)
        for which in tl.static_range(len(pointers)):
            source = pointers[which] + row.to(tl.int64) * (strides[which] * form.unit) + pieces.start
            tlx.async_load(source, rings[which][stage], bulk=True, barrier=pieces.full[stage])
        stage, phase = next_place(stage, phase, form.stages)


@tlx_xdsl.jit
def wait_for_factors(pieces):
    """Wait until weight and bias are there."""
    if pieces.factors is not None:
        tlx.barrier_wait(pieces.loaded[0], 0)


@tlx_xdsl.jit
def mean_of(buffer, skip, WARPS: tl.constexpr):
    """The mean of a CTA's elements of a row."""
    BLOCK: tl.constexpr = buffer.shape[0]
    PARTS: tl.constexpr = parts_of(BLOCK, WARPS)
    LENGTH: tl.constexpr = BLOCK // PARTS
    total = tl.zeros((LENGTH,), tl.float32)
    for part in tl.static_range(PARTS):
        total += only(read(buffer, part, PARTS, WARPS), inside_of(skip, part, LENGTH))
    return tl.sum(total, 0) / (BLOCK if skip is None else tl.maximum(BLOCK - skip, 1))


@tlx_xdsl.jit
def block_of(numbers, COUNT: tl.constexpr):
    """The first COUNT numbers, as a block."""
    block = tl.zeros((COUNT,), tl.float32)
    for which in tl.static_range(COUNT):
        block = tl.where(tl.arange(0, COUNT) == which, numbers[which], block)
    return block


@tlx_xdsl.jit
def wait_for_place(free, turn):
    """Wait until the place of a turn may be written again."""
    place = turn % PLACES
    if turn >= PLACES:
        tlx.barrier_wait(free[place // HALF], (turn // PLACES + 1) & 1)


@tlx_xdsl.jit
def hand_over(pieces, sums, stage, turn):
    """Write a CTA's sums of a row to the CTA that makes its numbers, which come to `ready`."""
    RANKS: tl.constexpr = pieces.form.ranks
    SUMS: tl.constexpr = pieces.form.sums
    place = turn % PLACES
    own = place // RANKS
    rank = tlx.cluster_cta_rank()
    wait_for_place(pieces.free, turn)
    tlx.barrier_expect_bytes(pieces.ready[stage], pieces.form.numbers * 4)
    tlx.barrier_expect_bytes(pieces.complete[own], RANKS * SUMS * 4, place % RANKS == rank)
    mine = pieces.received[own * RANKS + rank]
    tlx.async_remote_shmem_store(mine, block_of(sums, SUMS), place % RANKS, pieces.complete[own])


@tlx_xdsl.jit
def numbers_at(buffers, index, COUNT: tl.constexpr, BUFFERS: tl.constexpr):
    """The numbers of a buffer, which all threads read."""
    single = tlx.local_reinterpret(buffers, tl.float32, (1,), num=BUFFERS * COUNT)
    return [tl.sum(tlx.local_load(single[index * COUNT + which]), 0) for which in range(COUNT)]


@tlx_xdsl.jit
def column(sums, which: tl.constexpr):
    """Return the column of sums of all CTAs."""
    places = tl.arange(0, sums.shape[1])
    return tl.sum(tl.where((places == which)[None, :], sums, 0.0), 1)


@tlx_xdsl.jit
def numbers_of(pieces, sums):
    """A row's scale, mean, slope and shift, of the sums of all CTAs."""
    form: tl.constexpr = pieces.form
    count = pieces.count
    squares = column(sums, 0)
    mean = 0.0
    total = 0.0
    products = 0.0
    if form.centred:
        counts = form.block
        if pieces.skip is not None:
            counts = count - tl.arange(0, sums.shape[0]) * form.block
            counts = tl.minimum(tl.maximum(counts, 0), form.block).to(tl.float32)
        means = column(sums, 1)
        mean = tl.sum(means * counts, 0) / count
        apart = means - mean
        squares += counts * apart * apart
        if form.backward:
            totals = column(sums, 3)
            products = tl.sum(column(sums, 2) + apart * totals, 0)
            total = tl.sum(totals, 0)
    elif form.backward:
        products = tl.sum(column(sums, 1), 0)
    scale = tl.rsqrt(tl.sum(squares, 0) / count + pieces.eps)
    return scale, mean, products * scale / count, total / count


@tlx_xdsl.jit
def agree_on_rows(pieces):
    """Make the numbers of this CTA's turns of the sums of all CTAs, and write them to all."""
    form: tl.constexpr = pieces.form
    RANKS: tl.constexpr = form.ranks
    tl.static_assert(PLACES % RANKS == 0, "the places of a CTA's turns are always the same")
    rank = tlx.cluster_cta_rank()
    by_rank = tlx.local_reinterpret(pieces.received, tl.float32, (RANKS, form.sums), num=PLACES // RANKS)
    stage = 0
    phase = 0
    turn = 0
    for _ in range(pieces.first, pieces.rows, pieces.clusters):
        place = turn % PLACES
        if place % RANKS == rank:
            tlx.barrier_wait(pieces.complete[place // RANKS], turn // PLACES & 1)
            sums = tlx.local_load(by_rank[place // RANKS])
            numbers = block_of(numbers_of(pieces, sums), form.numbers)
            wait_for_place(pieces.free, turn)
            for other in tl.static_range(RANKS):
                tlx.async_remote_shmem_store(pieces.numbers[place], numbers, other, pieces.ready[stage])
        if place % HALF == HALF - 1:
            tlx.barrier_arrive(pieces.done[place // HALF])
        turn += 1  # noqa: SIM113
        stage, phase = next_place(stage, phase, form.stages)


@tlx_xdsl.jit
def agreed(pieces, stage, phase, turn):
    """Wait for the numbers of a row."""
    place = turn % PLACES
    tlx.barrier_wait(pieces.ready[stage], phase)
    numbers = numbers_at(pieces.numbers, place, pieces.form.numbers, PLACES)
    if place % HALF == HALF - 1:
        tlx.barrier_arrive(pieces.done[place // HALF])
    return numbers


@tlx_xdsl.jit
def give_back(pieces):
    """Give places back to all CTAs when this one has read them."""
    turn = HALF
    for _ in range(pieces.first + HALF * pieces.clusters, pieces.rows, HALF * pieces.clusters):
        half = turn // HALF - 1
        tlx.barrier_wait(pieces.done[half % 2], half // 2 & 1)
        for other in tl.static_range(pieces.form.ranks):
            tlx.barrier_arrive(pieces.free[half % 2], 1, other)
        turn += HALF
