"""What the CTAs of a cluster do together for normalised rows: they load pieces of rows, and agree on sums."""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalOperand=false
# pyright: reportAttributeAccessIssue=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.kernels.rings import next_place

PLACES = tl.constexpr(16)
"""Rows whose sums a CTA has place for, of which half are given back at a time."""

HALF = tl.constexpr(8)


@tlx_xdsl.jit
def piece(buffer, WARPS: tl.constexpr):
    """A buffer in f32 as WARPS warps read it, 16 bytes for a thread at a time."""
    BLOCK: tl.constexpr = buffer.shape[0]
    TOGETHER: tl.constexpr = 16 // tlx.size_of(tlx.dtype_of(buffer))
    layout: tl.constexpr = tlx.layout(
        shape=((WARPS * 32,), (TOGETHER, BLOCK // (TOGETHER * WARPS * 32))),
        stride=((TOGETHER,), (1, TOGETHER * WARPS * 32)),
    )
    return tlx.local_load(buffer, layout=layout).to(tl.float32)


@tlx_xdsl.jit
def load_factors(factors_ptr, factors, loaded, start):
    """Producer: the CTA's piece of the weight, of the bias."""
    BYTES: tl.constexpr = factors[0].shape[0] * tlx.size_of(tlx.dtype_of(factors))
    tlx.barrier_expect_bytes(loaded, len(factors_ptr) * BYTES)
    for which in tl.static_range(len(factors_ptr)):
        tlx.async_load(factors_ptr[which] + start, factors[which], bulk=True, barrier=loaded)


@tlx_xdsl.jit
def load_row(pointers, strides, rings, full, start, row, stage, UNIT: tl.constexpr):
    """Load the CTA's piece of a row, of all operands, to a stage."""
    BYTES: tl.constexpr = rings[0][0].shape[0] * tlx.size_of(tlx.dtype_of(rings[0]))
    tlx.barrier_expect_bytes(full[stage], len(pointers) * BYTES)
    for which in tl.static_range(len(pointers)):
        source = pointers[which] + row.to(tl.int64) * (strides[which] * UNIT) + start
        tlx.async_load(source, rings[which][stage], bulk=True, barrier=full[stage])


@tlx_xdsl.jit
def load_first_rows(
    pointers, strides, rings, full, start, first, ROW_COUNT, clusters, UNIT: tl.constexpr, STAGES: tl.constexpr
):  # fmt: skip
    """The rows for which there are stages from the beginning."""
    for stage in tl.static_range(STAGES):
        row = first + stage * clusters
        if row < ROW_COUNT:
            load_row(pointers, strides, rings, full, start, row, stage, UNIT)


@tlx_xdsl.jit
def load_rows(
    pointers, strides, rings, full, empty, start, first, ROW_COUNT, clusters, UNIT: tl.constexpr, STAGES: tl.constexpr
):  # fmt: skip
    """Producer: the other rows."""
    stage = 0
    phase = 0
    for row in range(first + STAGES * clusters, ROW_COUNT, clusters):
        tlx.barrier_wait(empty[stage], phase)
        load_row(pointers, strides, rings, full, start, row, stage, UNIT)
        stage, phase = next_place(stage, phase, STAGES)


@tlx_xdsl.jit
def place_after(stage, phase, STEPS: tl.constexpr, STAGES: tl.constexpr):
    """The stage STEPS rows later."""
    for _ in tl.static_range(STEPS):
        stage, phase = next_place(stage, phase, STAGES)
    return stage, phase


@tlx_xdsl.jit
def differences(buffer, inside, own, CENTRED: tl.constexpr, WARPS: tl.constexpr):
    """The differences of a CTA's elements from their mean, and the mean; `own` are the elements that the row has."""
    mean = 0.0
    x = piece(buffer, WARPS)
    if inside is not None:
        x = tl.where(inside, x, 0.0)
    if CENTRED:
        mean = tl.sum(x, 0) / tl.maximum(own, 1)
        # Read again: registers do not hold it meanwhile.
        x = piece(buffer, WARPS) - mean
        if inside is not None:
            x = tl.where(inside, x, 0.0)
    return x, mean


@tlx_xdsl.jit
def hand_over(sums, received, complete, free, turn, RANKS: tl.constexpr, TASKS: tl.constexpr):
    """Write a CTA's sums of a row to a place of all CTAs; `received` has RANKS buffers for each place."""
    SUMS: tl.constexpr = received[0].shape[0]
    place = turn % PLACES
    if turn >= PLACES and place % HALF < TASKS:
        tlx.barrier_wait(free[place // HALF], (turn // PLACES + 1) & 1)
    block = tl.zeros((SUMS,), tl.float32)
    for which in tl.static_range(len(sums)):
        block = tl.where(tl.arange(0, SUMS) == which, sums[which], block)
    tlx.barrier_expect_bytes(complete[place], RANKS * SUMS * 4)
    for other in tl.static_range(RANKS):
        mine = received[place * RANKS + tlx.cluster_cta_rank()]
        tlx.async_remote_shmem_store(mine, block, other, complete[place])


@tlx_xdsl.jit
def numbers_at(buffers, index, COUNT: tl.constexpr, BUFFERS: tl.constexpr):
    """The numbers of a buffer, which all threads read."""
    single = tlx.local_reinterpret(buffers, tl.float32, (1,), num=BUFFERS * COUNT)
    found = ()
    for which in tl.static_range(COUNT):
        found = (*found, tl.sum(tlx.local_load(single[index * COUNT + which]), 0))
    return found


@tlx_xdsl.jit
def of_rank(rank, count, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    """Elements of a row that a CTA has."""
    return BLOCK * 1.0 if EVEN else tl.minimum(tl.maximum(count - rank * BLOCK, 0), BLOCK).to(tl.float32)


@tlx_xdsl.jit
def agree_on_rows(
    received, row_numbers, complete, free, empty, ready, count, eps, first, ROW_COUNT, clusters,
    BLOCK: tl.constexpr, STAGES: tl.constexpr, RANKS: tl.constexpr, CENTRED: tl.constexpr, BACKWARD: tl.constexpr,
    EVEN: tl.constexpr,
):  # fmt: skip
    """Make the numbers of each row of the sums of all CTAs: its scale, mean, slope and shift."""
    SUMS: tl.constexpr = received[0].shape[0]
    NUMBERS: tl.constexpr = row_numbers[0].shape[0]
    stage = 0
    phase = 0
    turn = 0
    for _ in range(first, ROW_COUNT, clusters):
        place = turn % PLACES
        tlx.barrier_wait(complete[place], turn // PLACES & 1)
        sums = ()
        for rank in tl.static_range(RANKS):
            sums = (*sums, numbers_at(received, place * RANKS + rank, SUMS, PLACES * RANKS))
        if place % HALF == HALF - 1:
            for other in tl.static_range(RANKS):
                tlx.barrier_arrive(free[place // HALF], 1, other)
        mean = 0.0
        squares = 0.0
        products = 0.0
        total = 0.0
        if CENTRED:
            for rank in tl.static_range(RANKS):
                mean += sums[rank][1] * of_rank(rank, count, BLOCK, EVEN)
            mean = mean / count
        for rank in tl.static_range(RANKS):
            squares += sums[rank][0]
            if CENTRED:
                apart = sums[rank][1] - mean
                squares += of_rank(rank, count, BLOCK, EVEN) * apart * apart
                if BACKWARD:
                    products += sums[rank][2] + apart * sums[rank][3]
                    total += sums[rank][3]
            elif BACKWARD:
                products += sums[rank][1]
        scale = tl.rsqrt(squares / count + eps)
        numbers = (scale, mean, products * scale / count, total / count)
        which = tl.arange(0, NUMBERS)
        block = tl.zeros((NUMBERS,), tl.float32)
        for each in tl.static_range(NUMBERS):
            block = tl.where(which == each, numbers[each], block)
        tlx.barrier_wait(empty[stage], phase ^ 1)
        tlx.local_store(row_numbers[stage], block)
        tlx.barrier_arrive(ready[stage])
        turn += 1  # noqa: SIM113
        stage, phase = next_place(stage, phase, STAGES)
