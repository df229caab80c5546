"""Rows to the ranks of their experts and back: `route`, `dispatch`, `combine`, as kernels.

Rank r has the experts from r * EXPERTS on. Each rank has tokens, rows of x, and CHOICES experts for each. An
*assignment* is a token's choice of an expert; assignment a is choice a % CHOICES of token a // CHOICES. A rank keeps a
place for each assignment that another one can have: `capacity` rows for each source.

* `route` numbers a rank's assignments to each owner, in their order: `places`. So where a row goes depends on nothing
  but the choices, and not on which program comes first.
* `dispatch` stores rows, with the experts' numbers there, to their owners, and how many there are. A row that two
  experts of a rank want goes there twice.
* `combine` stores the experts' results to where the rows came from. There the results of a token are multiplied by its
  weights and added in f32, in the order of its choices, and rounded once. Deterministic.

Nothing is stored to a rank before it has begun the launch: all that it has launched before has then ended, and what
came by the last launch has been read. Signals: 2 for each pair of ranks and program in `dispatch`, less in `combine`.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from .signals import (
    FIRST,
    after,
    announce_launch,
    count_program,
    counters,
    in_turn,
    launch_number,
    publish,
    signal_others,
    wait_for_others,
)


@tlx_xdsl.jit
def route(experts, places, counts, assignments, EXPERTS: tl.constexpr, WORLD: tl.constexpr, BLOCK: tl.constexpr):
    """Number the assignments to each owner, and count them; one program. WORLD is a power of two, ranks or more."""
    owners = tl.arange(0, WORLD)
    before = tl.zeros((WORLD,), tl.int32)
    for begin in range(0, assignments, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        owner = tl.load(experts + at, at < assignments, WORLD * EXPERTS) // EXPERTS
        chosen = (owner[:, None] == owners[None, :]).to(tl.int32)
        number = tl.cumsum(chosen, 0) - 1 + before[None, :]
        tl.store(places + at, tl.sum(number * chosen, 1), at < assignments)
        before += tl.sum(chosen, 0)
    tl.store(counts + owners, before)


@tlx_xdsl.jit
def copy_row(source, target, width, BLOCK: tl.constexpr):
    """Copy a row of so many elements."""
    for begin in range(0, width, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        tl.store(target + at, tl.load(source + at, at < width), at < width)


@tlx_xdsl.jit
def wait_for_all_to_begin(pads, rank, number, LIMIT: tl.constexpr):
    """Wait until all other ranks have begun launch `number`."""
    world: tl.constexpr = tlx.world_size(pads)
    for i in tl.static_range(1, world):
        tlx.wait_signal(counters(pads, rank), FIRST + after(rank, i, world), number, limit_ns=LIMIT)


@tlx_xdsl.jit
def dispatch(
    x, experts, places, counts, rows, numbers, arrived, pads, assignments, width, capacity,
    EXPERTS: tl.constexpr, CHOICES: tl.constexpr, BLOCK: tl.constexpr, LIMIT: tl.constexpr = None,
):  # fmt: skip
    """Store rows of x to the owners of their experts: `rows` [source][capacity][width], `numbers` [source][capacity].

    `arrived` gets for each source how many there are.
    """
    world: tl.constexpr = tlx.world_size(pads)
    rank = tlx.rank(pads)
    number = launch_number(pads)
    announce_launch(pads, rank, number)
    wait_for_all_to_begin(pads, rank, number, LIMIT)
    for a in range(tl.program_id(0), assignments, tl.num_programs(0)):
        expert = tl.load(experts + a)
        owner = expert // EXPERTS
        place = rank * capacity + tl.load(places + a)
        target = tlx.peer(rows, owner) + place.to(tl.int64) * width
        copy_row(x + (a // CHOICES).to(tl.int64) * width, target, width, BLOCK)
        tl.store(tlx.peer(numbers, owner) + place, expert % EXPERTS)
    if tl.program_id(0) == 0:
        for owner in tl.static_range(world):
            tl.store(tlx.peer(arrived, owner) + rank, tl.load(counts + owner))
    signals = in_turn(pads, rank)
    signal_others(signals, rank, number, 1, LIMIT)
    count_program(pads, number)
    wait_for_others(signals, rank, number, 1, LIMIT)


@tlx_xdsl.jit
def combine(
    y, experts, places, weights, arrived, back, pads, out, tokens, width, capacity,
    EXPERTS: tl.constexpr, CHOICES: tl.constexpr, BLOCK: tl.constexpr, LIMIT: tl.constexpr = None,
):  # fmt: skip
    """Store results to where their rows came from, and add those of each token: `y` is as `rows`, and `back` too.

    `arrived` is that of `dispatch`, of this rank.
    """
    world: tl.constexpr = tlx.world_size(pads)
    rank = tlx.rank(pads)
    number = launch_number(pads)
    announce_launch(pads, rank, number)
    wait_for_all_to_begin(pads, rank, number, LIMIT)
    for i in tl.static_range(1, world + 1):
        to = after(rank, i, world)
        for place in range(tl.program_id(0), tl.load(tlx.peer(arrived, rank) + to), tl.num_programs(0)):
            source = y + (to * capacity + place).to(tl.int64) * width
            copy_row(source, tlx.peer(back, to) + (rank * capacity + place).to(tl.int64) * width, width, BLOCK)
    publish()
    for i in tl.static_range(1, world + 1):
        # All programs of a rank add to one counter of each rank, this one among them.
        tlx.signal(counters(pads, after(rank, i, world)), FIRST + world + rank, sem="relaxed")
    count_program(pads, number)
    for i in tl.static_range(world):
        counter = FIRST + world + after(rank, i, world)
        tlx.wait_signal(counters(pads, rank), counter, number * tl.num_programs(0), limit_ns=LIMIT)
    results = tlx.peer(back, rank)
    for token in range(tl.program_id(0), tokens, tl.num_programs(0)):
        for begin in range(0, width, BLOCK):
            at = begin + tl.arange(0, BLOCK)
            total = tl.zeros((BLOCK,), tl.float32)
            for choice in tl.static_range(CHOICES):
                a = token * CHOICES + choice
                place = tl.load(experts + a) // EXPERTS * capacity + tl.load(places + a)
                value = tl.load(results + place.to(tl.int64) * width + at, at < width, 0).to(tl.float32)
                total += tl.load(weights + a).to(tl.float32) * value
            tl.store(out + token.to(tl.int64) * width + at, total.to(out.dtype.element_ty), at < width)
