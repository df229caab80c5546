"""Launch numbers and counters that are never reset, for kernels that several ranks run at once.

A *plan* is one kernel with one grid and one shape. It has counters of its own, symmetric int64 `pads`. After REPORT
others, a rank has

    [launches that each program has counted, at most FIRST programs, then one counter for each signal]

`count_program` counts, so that nothing of the host enters: a CUDA graph that replays the launch counts on. Programs
share no counter of launches, so counting is a load and a store. Signals set their counter to the number of the launch,
or add to it the same number of times in each launch; none is reset. At a launch each microsecond an int64 lasts for
290,000 years.

Reuse of memory. A launch of a rank begins when the one before has ended, on a stream. So a signal of launch e + 1
says that its rank has read all that it reads in launch e. Memory that is written before such a signal has come is there
twice, and launches take turns (`turn`).
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

FIRST = tl.constexpr(256)
"""The first counter of a signal, and the most programs of a launch: more than a GPU has multiprocessors."""

REPORT = tl.constexpr(4)
"""Counters before these: what a program has waited for in vain, as `tlx.wait_signal` writes it."""


@tlx_xdsl.jit
def counters(pads, rank):
    """The counters of a rank."""
    return tlx.peer(pads, rank) + REPORT


@tlx_xdsl.jit
def launch_number(pads):
    """The number of this launch, from 1 on, the same in all its programs."""
    return tl.load(counters(pads, tlx.rank(pads)) + tl.program_id(0)) + 1


@tlx_xdsl.jit
def count_program(pads, number):
    """Store that this program has run in launch `number`; each does so once, when its threads have read the number."""
    tl.debug_barrier()
    tl.store(counters(pads, tlx.rank(pads)) + tl.program_id(0), number)


@tlx_xdsl.jit
def after(rank, i: tl.constexpr, world: tl.constexpr):
    """The rank that is i places after `rank`, in a ring."""
    other = rank + i
    return tl.where(other >= world, other - world, other)


@tlx_xdsl.jit
def in_turn(peers, rank):
    """The addresses of a symmetric tensor on this rank and on those after it, in a ring.

    A kernel loads them at its head: after a fence or a wait they would come from the L2 cache again.
    """
    world: tl.constexpr = tlx.world_size(peers)
    found = ()
    for i in tl.static_range(world):
        found += (tlx.peer(peers, after(rank, i, world)),)
    return found


@tlx_xdsl.jit
def slot(source, world: tl.constexpr, PHASE: tl.constexpr):
    """The counter of a program for signals of `source`, the program of the same number on another rank."""
    return FIRST + (PHASE * world + source) * tl.num_programs(0) + tl.program_id(0)


@tlx_xdsl.jit
def publish():
    """Let what this program's threads have written come before the relaxed signals that follow.

    A release of each signal would wait for the signal before it, which takes as long as the way to a rank and back.
    """
    tl.debug_barrier()
    tlx.fence("sys")


@tlx_xdsl.jit
def signal_others(pads, rank, number, PHASE: tl.constexpr, LIMIT: tl.constexpr):
    """Signal to the programs of this number on all other ranks that what was written is there; `pads` are `in_turn`.

    All ranks add to one counter of a program, so that it reads one. With a LIMIT each sets its own, to be named by it.
    """
    world: tl.constexpr = len(pads)
    publish()
    for i in tl.static_range(1, world):
        if LIMIT is None:
            tlx.signal(pads[i] + REPORT, slot(0, world, PHASE), sem="relaxed")
        else:
            tlx.signal(pads[i] + REPORT, slot(rank, world, PHASE), number, op="set", sem="relaxed")


@tlx_xdsl.jit
def wait_for_others(pads, rank, number, PHASE: tl.constexpr, LIMIT: tl.constexpr):
    """Wait until the programs of this number on all other ranks have signalled, as `signal_others` does.

    A sum of all ranks' signals may hold one of a later launch for one that is on its way. Its rank has waited in this
    launch, and the first to get so far has waited for all, so what they have written is there for whoever sees that.
    """
    world: tl.constexpr = len(pads)
    if LIMIT is None:
        tlx.wait_signal(pads[0] + REPORT, slot(0, world, PHASE), number * (world - 1))
    else:
        for i in tl.static_range(1, world):
            counter = slot(after(rank, i, world), world, PHASE)
            tlx.wait_signal(pads[0] + REPORT, counter, number, limit_ns=LIMIT)


@tlx_xdsl.jit
def announce_launch(pads, rank, number):
    """Program 0 signals to all other ranks that this one has begun launch `number`, so has ended those before."""
    if tl.program_id(0) == 0:
        others = in_turn(pads, rank)
        publish()
        for i in tl.static_range(1, len(others)):
            tlx.signal(others[i] + REPORT, FIRST + rank, number, op="set", sem="relaxed")
