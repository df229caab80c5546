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


@tlx_xdsl.jit
def load_factors(factors_ptr, factors, loaded, start):
    """Producer: load the CTA's piece of the weight, of the bias."""
    BYTES: tl.constexpr = factors[0].shape[0] * tlx.size_of(tlx.dtype_of(factors))
    tlx.barrier_expect_bytes(loaded, len(factors_ptr) * BYTES)
    for which in tl.static_range(len(factors_ptr)):
        tlx.async_load(factors_ptr[which] + start, factors[which], bulk=True, barrier=loaded)


@tlx_xdsl.jit
def load_rows(
    pointers, strides, rings, full, empty, start, first, ROW_COUNT, clusters, UNIT: tl.constexpr, STAGES: tl.constexpr
):  # fmt: skip
    """Producer: load the CTA's piece of each row, of all operands."""
    BYTES: tl.constexpr = rings[0][0].shape[0] * tlx.size_of(tlx.dtype_of(rings[0]))
    stage = 0
    phase = 0
    for row in range(first, ROW_COUNT, clusters):
        tlx.barrier_wait(empty[stage], phase ^ 1)
        tlx.barrier_expect_bytes(full[stage], len(pointers) * BYTES)
        for which in tl.static_range(len(pointers)):
            source = pointers[which] + row.to(tl.int64) * (strides[which] * UNIT) + start
            tlx.async_load(source, rings[which][stage], bulk=True, barrier=full[stage])
        stage, phase = next_place(stage, phase, STAGES)


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
def hand_over(sums, received, complete, ready, free, turn, RANKS: tl.constexpr, NUMBERS: tl.constexpr):
    """Write a CTA's sums of a row to the CTA that makes its numbers, which come to `ready`."""
    SUMS: tl.constexpr = received[0].shape[0]
    place = turn % PLACES
    own = place // RANKS
    rank = tlx.cluster_cta_rank()
    wait_for_place(free, turn)
    tlx.barrier_expect_bytes(ready, NUMBERS * 4)
    tlx.barrier_expect_bytes(complete[own], RANKS * SUMS * 4, place % RANKS == rank)
    mine = received[own * RANKS + rank]
    tlx.async_remote_shmem_store(mine, block_of(sums, SUMS), place % RANKS, complete[own])


@tlx_xdsl.jit
def numbers_at(buffers, index, COUNT: tl.constexpr, BUFFERS: tl.constexpr):
    """The numbers of a buffer, which all threads read."""
    single = tlx.local_reinterpret(buffers, tl.float32, (1,), num=BUFFERS * COUNT)
    found = ()
    for which in tl.static_range(COUNT):
        found = (*found, tl.sum(tlx.local_load(single[index * COUNT + which]), 0))
    return found


@tlx_xdsl.jit
def column(sums, which: tl.constexpr):
    """Return the column of sums of all CTAs."""
    places = tl.arange(0, sums.shape[1])
    return tl.sum(tl.where((places == which)[None, :], sums, 0.0), 1)


@tlx_xdsl.jit
def numbers_of(
    sums, count, eps, skip, BLOCK: tl.constexpr, CENTRED: tl.constexpr, BACKWARD: tl.constexpr
):  # fmt: skip
    """A row's scale, mean, slope and shift, of the sums of all CTAs."""
    squares = column(sums, 0)
    mean = 0.0
    total = 0.0
    products = 0.0
    if CENTRED:
        counts = BLOCK
        if skip is not None:
            counts = tl.minimum(tl.maximum(count - tl.arange(0, sums.shape[0]) * BLOCK, 0), BLOCK).to(tl.float32)
        means = column(sums, 1)
        mean = tl.sum(means * counts, 0) / count
        apart = means - mean
        squares += counts * apart * apart
        if BACKWARD:
            totals = column(sums, 3)
            products = tl.sum(column(sums, 2) + apart * totals, 0)
            total = tl.sum(totals, 0)
    elif BACKWARD:
        products = tl.sum(column(sums, 1), 0)
    scale = tl.rsqrt(tl.sum(squares, 0) / count + eps)
    return scale, mean, products * scale / count, total / count


@tlx_xdsl.jit
def agree_on_rows(
    received, row_numbers, complete, ready, done, free, count, skip, eps, first, ROW_COUNT, clusters,
    BLOCK: tl.constexpr, STAGES: tl.constexpr, RANKS: tl.constexpr, CENTRED: tl.constexpr, BACKWARD: tl.constexpr,
):  # fmt: skip
    """Make the numbers of this CTA's turns of the sums of all CTAs, and write them to all."""
    SUMS: tl.constexpr = received[0].shape[0]
    NUMBERS: tl.constexpr = row_numbers[0].shape[0]
    tl.static_assert(PLACES % RANKS == 0, "the places of a CTA's turns are always the same")
    rank = tlx.cluster_cta_rank()
    by_rank = tlx.local_reinterpret(received, tl.float32, (RANKS, SUMS), num=PLACES // RANKS)
    stage = 0
    phase = 0
    turn = 0
    for _ in range(first, ROW_COUNT, clusters):
        place = turn % PLACES
        if place % RANKS == rank:
            tlx.barrier_wait(complete[place // RANKS], turn // PLACES & 1)
            sums = tlx.local_load(by_rank[place // RANKS])
            numbers = block_of(numbers_of(sums, count, eps, skip, BLOCK, CENTRED, BACKWARD), NUMBERS)
            wait_for_place(free, turn)
            for other in tl.static_range(RANKS):
                tlx.async_remote_shmem_store(row_numbers[place], numbers, other, ready[stage])
        if place % HALF == HALF - 1:
            tlx.barrier_arrive(done[place // HALF])
        turn += 1  # noqa: SIM113
        stage, phase = next_place(stage, phase, STAGES)


@tlx_xdsl.jit
def agreed(row_numbers, ready, phase, done, turn, COUNT: tl.constexpr):
    """Wait for the numbers of a row."""
    place = turn % PLACES
    tlx.barrier_wait(ready, phase)
    numbers = numbers_at(row_numbers, place, COUNT, PLACES)
    if place % HALF == HALF - 1:
        tlx.barrier_arrive(done[place // HALF])
    return numbers


@tlx_xdsl.jit
def give_back(done, free, first, ROW_COUNT, clusters, RANKS: tl.constexpr):
    """Give places back to all CTAs when this one has read them."""
    turn = HALF
    for _ in range(first + HALF * clusters, ROW_COUNT, HALF * clusters):
        half = turn // HALF - 1
        tlx.barrier_wait(done[half % 2], half // 2 & 1)
        for other in tl.static_range(RANKS):
            tlx.barrier_arrive(free[half % 2], 1, other)
        turn += HALF
