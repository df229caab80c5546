"""Sums over ranks: `all_reduce_one_shot`, `all_reduce_two_shot`, `reduce_scatter`, and `all_gather`, as kernels.

Each program has blocks p, p + P, ... of what its rank has, and talks to the programs of its number on the other ranks.

* What travels has the type of `x`. Sums are in f32, in the order of ranks 0, 1, ... whoever computes them, and rounded
  once, to the type of the result. They are deterministic, and all ranks have the same bits.
* One-shot: each rank stores all of x to all others, and each sums everything. One signal for each pair of ranks.
* Two-shot: rank r receives part r of the others and sums it; then all load the sums. Each byte of x is stored once and
  each byte of the result loaded once: 2 (world - 1) / world of the bytes of x instead of world - 1, and two signals.
* `reduce_scatter` is the first half of it. `all_gather` is the second half, of x itself.

Stores to others begin with the next rank and end with the one before, so that at no time all store to one.
`signals` says why memory is used again when it may be, and what the counters are.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from .signals import after, count_program, in_turn, launch_number, signal_others, wait_for_others


@tlx_xdsl.jit
def place(turn, source, world: tl.constexpr, length):
    """First element of what `source` has stored for this launch in `[2][world][length]`."""
    return (turn * world + source).to(tl.int64) * length


@tlx_xdsl.jit
def sum_of_ranks(received, turn, offsets, mask, length, world: tl.constexpr):
    """The sum over all ranks, in their order, of what they have stored here: f32."""
    total = tl.load(received + place(turn, 0, world, length) + offsets, mask, 0).to(tl.float32)
    for source in tl.static_range(1, world):
        total += tl.load(received + place(turn, source, world, length) + offsets, mask, 0).to(tl.float32)
    return total


@tlx_xdsl.jit
def all_reduce_one_shot(x, staging, pads, out, n, length, BLOCK: tl.constexpr, LIMIT: tl.constexpr = None):
    """Store the sum over ranks of x, of n elements; `staging` has [2][world][length] on each rank, length >= n."""
    world: tl.constexpr = tlx.world_size(pads)
    rank = tlx.rank(pads)
    number = launch_number(pads)
    turn = number % 2
    staged, signals = in_turn(staging, rank), in_turn(pads, rank)
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        offsets = block * BLOCK + tl.arange(0, BLOCK)
        value = tl.load(x + offsets, offsets < n)
        for i in tl.static_range(world):
            tl.store(staged[i] + place(turn, rank, world, length) + offsets, value, offsets < n)
    signal_others(signals, rank, number, 0, LIMIT)
    count_program(pads, number)
    wait_for_others(signals, rank, number, 0, LIMIT)
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        offsets = block * BLOCK + tl.arange(0, BLOCK)
        total = sum_of_ranks(staged[0], turn, offsets, offsets < n, length, world)
        tl.store(out + offsets, total.to(out.dtype.element_ty), offsets < n)


@tlx_xdsl.jit
def scatter_parts(x, staged, pads, signals, rank, number, turn, n, part, BLOCK: tl.constexpr, LIMIT: tl.constexpr):
    """Store part s of x to rank s, for all s, and signal; then wait for those that come to this rank."""
    world: tl.constexpr = len(signals)
    # A block of all parts at a time, so that the loads are under way together.
    for block in range(tl.program_id(0), tl.cdiv(part, BLOCK), tl.num_programs(0)):
        offsets = block * BLOCK + tl.arange(0, BLOCK)
        values = ()
        for i in tl.static_range(1, world + 1):
            begin = after(rank, i, world).to(tl.int64) * part
            values += (tl.load(x + begin + offsets, (offsets < part) & (begin + offsets < n)),)
        for i in tl.static_range(1, world + 1):
            mask = (offsets < part) & (after(rank, i, world).to(tl.int64) * part + offsets < n)
            tl.store(staged[i % world] + place(turn, rank, world, part) + offsets, values[i - 1], mask)
    signal_others(signals, rank, number, 0, LIMIT)
    count_program(pads, number)
    wait_for_others(signals, rank, number, 0, LIMIT)
    # What this rank has for itself was written by other threads, if there is no other rank.
    if world == 1:
        tl.debug_barrier()


@tlx_xdsl.jit
def reduce_scatter(x, staging, pads, out, n, part, BLOCK: tl.constexpr, LIMIT: tl.constexpr = None):
    """Store part r of the sum over ranks of x, on rank r: x has n = world * part elements, `staging` 2 * n."""
    world: tl.constexpr = tlx.world_size(pads)
    rank = tlx.rank(pads)
    number = launch_number(pads)
    staged, signals = in_turn(staging, rank), in_turn(pads, rank)
    scatter_parts(x, staged, pads, signals, rank, number, number % 2, n, part, BLOCK, LIMIT)
    for block in range(tl.program_id(0), tl.cdiv(part, BLOCK), tl.num_programs(0)):
        offsets = block * BLOCK + tl.arange(0, BLOCK)
        total = sum_of_ranks(staged[0], number % 2, offsets, offsets < part, part, world)
        tl.store(out + offsets, total.to(out.dtype.element_ty), offsets < part)


@tlx_xdsl.jit
def all_reduce_two_shot(x, staging, sums, pads, out, n, part, BLOCK: tl.constexpr, LIMIT: tl.constexpr = None):
    """Store the sum over ranks of x, of n <= world * part elements; `staging` has [world][part], `sums` [part].

    `sums` is there once: it is written after the others have signalled in this launch, so they have read the last one.
    So is `staging`: who signals that its sums are there has read what it was sent, and all wait for that.
    """
    world: tl.constexpr = tlx.world_size(pads)
    rank = tlx.rank(pads)
    number = launch_number(pads)
    staged, parts, signals = in_turn(staging, rank), in_turn(sums, rank), in_turn(pads, rank)
    scatter_parts(x, staged, pads, signals, rank, number, 0, n, part, BLOCK, LIMIT)
    begin = rank.to(tl.int64) * part
    for block in range(tl.program_id(0), tl.cdiv(part, BLOCK), tl.num_programs(0)):
        offsets = block * BLOCK + tl.arange(0, BLOCK)
        mask = (offsets < part) & (begin + offsets < n)
        total = sum_of_ranks(staged[0], 0, offsets, mask, part, world).to(out.dtype.element_ty)
        tl.store(parts[0] + offsets, total, mask)
        tl.store(out + begin + offsets, total, mask)
    signal_others(signals, rank, number, 1, LIMIT)
    load_parts(parts, signals, out, rank, number, 0, n, part, 1, BLOCK, LIMIT)


@tlx_xdsl.jit
def load_parts(
    parts, signals, out, rank, number, first, n, part, PHASE: tl.constexpr, BLOCK: tl.constexpr, LIMIT: tl.constexpr
):  # fmt: skip
    """Load part s from rank s, from element `first` of its memory on, for all others, when they have signalled."""
    world: tl.constexpr = len(parts)
    wait_for_others(signals, rank, number, PHASE, LIMIT)
    # A block of all ranks at a time, so that the loads are under way together.
    for block in range(tl.program_id(0), tl.cdiv(part, BLOCK), tl.num_programs(0)):
        offsets = block * BLOCK + tl.arange(0, BLOCK)
        values = ()
        for i in tl.static_range(1, world):
            mask = (offsets < part) & (after(rank, i, world).to(tl.int64) * part + offsets < n)
            values += (tl.load(parts[i] + first + offsets, mask),)
        for i in tl.static_range(1, world):
            begin = after(rank, i, world).to(tl.int64) * part
            tl.store(out + begin + offsets, values[i - 1], (offsets < part) & (begin + offsets < n))


@tlx_xdsl.jit
def all_gather(x, staging, pads, out, part, length, BLOCK: tl.constexpr, LIMIT: tl.constexpr = None):
    """Store x of rank 0, x of rank 1, ..., of `part` elements each; `staging` has [2][length] on each rank."""
    world: tl.constexpr = tlx.world_size(pads)
    rank = tlx.rank(pads)
    number = launch_number(pads)
    first = (number % 2) * length
    staged, signals = in_turn(staging, rank), in_turn(pads, rank)
    begin = rank.to(tl.int64) * part
    for block in range(tl.program_id(0), tl.cdiv(part, BLOCK), tl.num_programs(0)):
        offsets = block * BLOCK + tl.arange(0, BLOCK)
        value = tl.load(x + offsets, offsets < part)
        tl.store(staged[0] + first + offsets, value, offsets < part)
        tl.store(out + begin + offsets, value, offsets < part)
    signal_others(signals, rank, number, 0, LIMIT)
    count_program(pads, number)
    load_parts(staged, signals, out, rank, number, first, world * part, part, 0, BLOCK, LIMIT)
