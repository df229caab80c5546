"""Normalised rows of which each CTA of a cluster holds a piece, forward and backward: longer rows, read once.

CTA r of the RANKS of a cluster has the BLOCK columns of a row from r * BLOCK on. With n of these in the row, m' their
mean, d the differences from it and g as in `norm_rows`, it hands four sums to all CTAs of the cluster:

    m',  sum of d^2,  sum of g d,  sum of g

of which each makes those of the row (Chan, Golub, LeVeque, 1979), in the order of the ranks, so that all find the same:

    m = sum of n m' / count
    sum of (x - m)^2 = sum over ranks of (sum of d^2 + n (m' - m)^2)
    sum of g (x - m) = sum over ranks of (sum of g d + (m' - m) sum of g)

So a row costs one exchange. It goes by `st.async`, whose bytes complete on a barrier of the CTA that gets them, to one
of PLACES in turns. Such a completion releases the bytes alone, not what the thread has read before (PTX ISA,
`st.async`): before places are taken again, the cluster waits for all of its CTAs, once in PLACES rows. An arrival at
each other CTA for each row would order that, too, but it is a release, which waits for the row's stores.

`norm_rows` has the formulas, says what UNIT is, and adds up the sums that clusters have of dw and db.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalOperand=false
# pyright: reportAttributeAccessIssue=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

SUMS = tl.constexpr(4)
"""Those that CTAs hand over."""

PLACES = tl.constexpr(8)
"""Rows whose sums a CTA has place for."""


@tlx_xdsl.jit
def sums_of(mean, squares, products, total):
    """The sums that a CTA hands over, as a block."""
    which = tl.arange(0, SUMS)
    return tl.where(which == 0, mean, tl.where(which == 1, squares, tl.where(which == 2, products, total)))


@tlx_xdsl.jit
def hand_over(sums, received, complete, place, RANKS: tl.constexpr):
    """Write a CTA's sums to a place of all CTAs; `received` has RANKS buffers for each place."""
    tlx.barrier_expect_bytes(complete[place], RANKS * SUMS * 4)
    for other in tl.static_range(RANKS):
        mine = received[place * RANKS + tlx.cluster_cta_rank()]
        tlx.async_remote_shmem_store(mine, sums, other, complete[place])


@tlx_xdsl.jit
def handed_over(received, complete, place, phase, RANKS: tl.constexpr, COUNT: tl.constexpr):
    """Wait for the sums of all CTAs: [RANKS, SUMS]."""
    tlx.barrier_wait(complete[place], phase)
    return tlx.local_load(tlx.local_reinterpret(received, tl.float32, (RANKS, SUMS), num=COUNT)[place])


@tlx_xdsl.jit
def column(sums, which: tl.constexpr):
    """One of the sums of all CTAs."""
    places = tl.arange(0, SUMS)
    return tl.sum(tl.where((places == which)[None, :], sums, 0.0), 1)


@tlx_xdsl.jit
def mean_and_squares(sums, count, BLOCK: tl.constexpr, CENTRED: tl.constexpr):
    """The mean of a row, or 0, the sum of the squares of the differences, and each CTA's mean less that of the row."""
    RANKS: tl.constexpr = sums.shape[0]
    squares = column(sums, 1)
    if not CENTRED:
        return 0.0, tl.sum(squares, 0), squares
    counts = tl.minimum(tl.maximum(count - tl.arange(0, RANKS) * BLOCK, 0), BLOCK).to(tl.float32)
    means = column(sums, 0)
    mean = tl.sum(means * counts, 0) / count
    apart = means - mean
    return mean, tl.sum(squares + counts * apart * apart, 0), apart


@tlx_xdsl.jit
def piece_of(x, of_row, own, CENTRED: tl.constexpr):
    """The differences of a CTA's elements from their mean, and the mean; `own` are the elements that the row has."""
    mean = 0.0
    if CENTRED:
        mean = tl.sum(x, 0) / tl.maximum(own, 1)
        x = tl.where(of_row, x - mean, 0.0)
    return x, mean


@tlx_xdsl.jit
def norm_cluster_rows(
    x_ptr, weight_ptr, bias_ptr, out_ptr, x_stride, out_stride, COLUMNS, eps,
    BLOCK: tl.constexpr, RANKS: tl.constexpr, UNIT: tl.constexpr, CENTRED: tl.constexpr,
):  # fmt: skip
    """One row for each cluster."""
    count = COLUMNS * UNIT
    rank = tlx.cluster_cta_rank()
    columns = rank * BLOCK + tl.arange(0, BLOCK)
    of_row = columns < count
    row = (tl.program_id(0) // RANKS).to(tl.int64)
    received = tlx.local_alloc((SUMS,), tl.float32, RANKS)
    complete = tlx.alloc_barriers(1)
    x = tl.load(x_ptr + row * (x_stride * UNIT) + columns, of_row, 0.0).to(tl.float32)
    x, own_mean = piece_of(x, of_row, tl.minimum(count - rank * BLOCK, BLOCK), CENTRED)
    tlx.cluster_barrier()  # the others run, and their barriers are ready
    hand_over(sums_of(own_mean, tl.sum(x * x, 0), 0.0, 0.0), received, complete, 0, RANKS)
    sums = handed_over(received, complete, 0, 0, RANKS, 1)
    mean, squares, _ = mean_and_squares(sums, count, BLOCK, CENTRED)
    y = (x + (own_mean - mean)) * tl.rsqrt(squares / count + eps)
    if weight_ptr is not None:
        y = y * tl.load(weight_ptr + columns, of_row, 0.0).to(tl.float32)
    if bias_ptr is not None:
        y = y + tl.load(bias_ptr + columns, of_row, 0.0).to(tl.float32)
    tl.store(out_ptr + row * (out_stride * UNIT) + columns, y.to(out_ptr.dtype.element_ty), of_row)


@tlx_xdsl.jit
def add_three(one, two, three, other_one, other_two, other_three):
    """How three sums are made at once."""
    return one + other_one, two + other_two, three + other_three


@tlx_xdsl.jit
def norm_backward_cluster_rows(
    x_ptr, weight_ptr, dout_ptr, dx_ptr, parts_ptr, x_stride, dout_stride, dx_stride, ROW_COUNT, COLUMNS, eps,
    BLOCK: tl.constexpr, RANKS: tl.constexpr, UNIT: tl.constexpr, CENTRED: tl.constexpr, WITH_BIAS: tl.constexpr,
):  # fmt: skip
    """dx, and this cluster's sums of dw and db: `parts_ptr` has RANKS * BLOCK of each for each cluster."""
    count = COLUMNS * UNIT
    rank = tlx.cluster_cta_rank()
    first = tl.program_id(0) // RANKS
    clusters = tl.num_programs(0) // RANKS
    columns = rank * BLOCK + tl.arange(0, BLOCK)
    of_row = columns < count
    own = tl.minimum(count - rank * BLOCK, BLOCK)
    received = tlx.local_alloc((SUMS,), tl.float32, PLACES * RANKS)
    complete = tlx.alloc_barriers(PLACES)
    if weight_ptr is not None:
        weight = tl.load(weight_ptr + columns, of_row, 0.0).to(tl.float32)
    dweight = tl.zeros((BLOCK,), tl.float32)
    dbias = tl.zeros((BLOCK,), tl.float32)
    at = first.to(tl.int64)
    next_x = tl.load(x_ptr + at * (x_stride * UNIT) + columns, of_row, 0.0)
    next_dy = tl.load(dout_ptr + at * (dout_stride * UNIT) + columns, of_row, 0.0)
    tlx.cluster_barrier()  # the others run, and their barriers are ready
    turn = 0
    for row in range(first, ROW_COUNT, clusters):
        x = next_x.to(tl.float32)
        dy = next_dy.to(tl.float32)
        # The last one again where there is none: what it loads is not used.
        at = tl.minimum(row + clusters, ROW_COUNT - 1).to(tl.int64)
        next_x = tl.load(x_ptr + at * (x_stride * UNIT) + columns, of_row, 0.0)
        next_dy = tl.load(dout_ptr + at * (dout_stride * UNIT) + columns, of_row, 0.0)
        x, own_mean = piece_of(x, of_row, own, CENTRED)
        g = dy if weight_ptr is None else dy * weight
        squares, products, total = tl.reduce((x * x, g * x, g), 0, add_three)
        place = turn % PLACES
        if place == 0 and turn > 0:
            tlx.cluster_barrier()  # all have read what lies in the places
        hand_over(sums_of(own_mean, squares, products, total), received, complete, place, RANKS)
        sums = handed_over(received, complete, place, turn // PLACES & 1, RANKS, PLACES)
        turn += 1  # noqa: SIM113
        mean, squares, apart = mean_and_squares(sums, count, BLOCK, CENTRED)
        scale = tl.rsqrt(squares / count + eps)
        products = column(sums, 2)
        shift = 0.0
        if CENTRED:
            totals = column(sums, 3)
            products += apart * totals
            shift = tl.sum(totals, 0) / count
        h = (x + (own_mean - mean)) * scale
        dx = (g - h * (tl.sum(products, 0) * scale / count) - shift) * scale
        target = dx_ptr + row.to(tl.int64) * (dx_stride * UNIT) + columns
        tl.store(target, dx.to(dx_ptr.dtype.element_ty), of_row)
        if weight_ptr is not None:
            dweight += dy * h
        if WITH_BIAS:
            dbias += dy
    parts = parts_ptr + first.to(tl.int64) * (2 * RANKS * BLOCK) + columns
    if weight_ptr is not None:
        tl.store(parts, dweight)
    if WITH_BIAS:
        tl.store(parts + RANKS * BLOCK, dbias)
