"""The two ends of a pipe in a kernel, and whether they fit each other."""

from __future__ import annotations

from itertools import zip_longest
from typing import NamedTuple

from xdsl.ir import Operation

from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import constant_integer

from ..analysis.core_values import Core, ThreadWalk, Undecidable, cores_of
from ..analysis.protocol import name_of, place_of
from ..dialects.ttl import (
    AcquireOp,
    BlockOp,
    CBType,
    CopyOp,
    CreatePipeOp,
    Direction,
    IfDstOp,
    IfSrcOp,
    KernelOp,
    acquisition_of,
    thread_of,
)


class PipeEnds(NamedTuple):
    """A pipe, and the copies through it."""

    pipe: CreatePipeOp
    sends: list[CopyOp]
    receives: list[CopyOp]


def ends_of(kernel: KernelOp, pipe: CreatePipeOp) -> PipeEnds | None:
    """The copies through a pipe; None for one that is not used, or that is synchronised already.

    Raises CompilationError for a copy that is not in the branch of its side, or that has no other side.
    """
    copies = [op for op in kernel.walk() if isinstance(op, CopyOp) and op.far is pipe.result]
    sends = [op for op in copies if op.direction is Direction.WRITE]
    receives = [op for op in copies if op.direction is Direction.READ]
    if not copies or (receives and all(op.synchronized is not None for op in receives)):
        return None
    for op in copies:
        side, word = (IfSrcOp, "if_src") if op in sends else (IfDstOp, "if_dst")
        if not _is_inside(op, side, pipe):
            runner = "source" if op in sends else "receivers"
            raise error_at(op, f"only the {runner} of a pipe may do this: put the copy into ttl.{word} of the pipe")
    if not sends or not receives:
        missing = "nothing receives what is sent" if sends else "nothing is sent, but a block is received"
        raise error_at(copies[0], f"{missing} through {_name(pipe)}: the other side waits for ever")
    return PipeEnds(pipe, sends, receives)


def check_ends(kernel: KernelOp, ends: PipeEnds) -> None:
    """Check that the ends of a pipe are cores of the grid, and that what is sent fits what is received.

    Raises CompilationError.
    """
    _check_cores(kernel, ends.pipe)
    _check_threads(ends)
    _check_buffers(ends)
    _check_slots(kernel, ends)


def _is_inside(op: Operation, side: type[IfSrcOp] | type[IfDstOp], pipe: CreatePipeOp) -> bool:
    around = op.parent_op()
    while around is not None:
        if isinstance(around, side) and around.pipe is pipe.result:
            return True
        around = around.parent_op()
    return False


def _name(pipe: CreatePipeOp) -> str:
    return "the pipe" if pipe.result.name_hint is None else f"the pipe '{pipe.result.name_hint}'"


def _check_cores(kernel: KernelOp, pipe: CreatePipeOp) -> None:
    grid = kernel.grid
    for role, (x, y) in (("source", pipe.src), ("last receiver", pipe.dst_range[1])):
        if x >= grid.x or y >= grid.y:
            raise error_at(
                pipe,
                f"the {role} of {_name(pipe)} is core ({x}, {y}), the grid has {grid.x}x{grid.y} cores",
            )


def _check_threads(ends: PipeEnds) -> None:
    """Check that one thread sends and one receives, and that they can run at the same time where they must."""
    for copies, verb in ((ends.sends, "sends"), (ends.receives, "receives")):
        for op in copies[1:]:
            if _thread(op) is not _thread(copies[0]):
                raise error_at(
                    op,
                    f"a second thread {verb} through {_name(ends.pipe)}: use one pipe for each",
                    [f"the first one {verb} at {place_of(copies[0])}"],
                )
    send, receive = ends.sends[0], ends.receives[0]
    if ends.pipe.has_loopback and _thread(send) is _thread(receive):
        raise error_at(
            receive,
            f"deadlock: the source of {_name(ends.pipe)} is one of its receivers, and one thread does both, which must "
            "wait for each other: receive in the other datamovement thread, or leave the source out of dst_range",
            [f"it sends at {place_of(send)}"],
        )


def _thread(op: Operation) -> Operation | None:
    found = thread_of(op)
    return None if found is None else found[0]


def _check_buffers(ends: PipeEnds) -> None:
    """Check that receivers take what is sent, at the address to which the source writes it."""
    send = ends.sends[0]
    own = acquisition_of(send.view)
    for op in (*ends.sends, *ends.receives):
        if op.view.type != send.view.type:
            raise error_at(
                op,
                f"the blocks at the ends of {_name(ends.pipe)} must have one type, found {op.view.type} and "
                f"{send.view.type}",
                [f"the other one is sent at {place_of(send)}"],
            )
    first = acquisition_of(ends.receives[0].view)
    for op in ends.receives:
        taken = acquisition_of(op.view)
        type_ = taken.cb.type
        assert isinstance(type_, CBType)
        if taken.cb is not first.cb:
            raise error_at(
                op,
                f"{_name(ends.pipe)} is received in two circular buffers, {name_of(first.cb)} and {name_of(taken.cb)}: "
                "use a pipe for each",
            )
        if taken.cb is not own.cb and type_.buffer_factor > 1:
            raise error_at(
                op,
                f"a block of {name_of(own.cb)} is received in {name_of(taken.cb)}, which has room for "
                f"{type_.buffer_factor}, so that the source does not know where it goes: receive it in "
                f"{name_of(own.cb)}, or use buffer_factor=1",
                [f"it is sent at {place_of(send)}"],
            )


def _check_slots(kernel: KernelOp, ends: PipeEnds) -> None:
    """Check that each block that is sent is received, and in its place of the circular buffer where it is the same.

    What is not known before the kernel runs is accepted.
    """
    cores = {core.place: core for core in cores_of(kernel.grid)}
    sent = _slots(ends.sends, cores[ends.pipe.src])
    for place in ends.pipe.destinations:
        taken = _slots(ends.receives, cores[place])
        if sent is None or taken is None:
            return
        for number, pair in enumerate(zip_longest(sent, taken)):
            source, receiver = pair
            if source is None or receiver is None:
                raise error_at(
                    ends.receives[0],
                    f"{len(sent)} blocks are sent through {_name(ends.pipe)}, core {place} receives {len(taken)}",
                    [f"they are sent at {place_of(ends.sends[0])}"],
                )
            same = acquisition_of(ends.sends[0].view).cb is acquisition_of(ends.receives[0].view).cb
            if same and source != receiver:
                raise error_at(
                    ends.receives[0],
                    f"block {number} of {_name(ends.pipe)} is in place {source} of the source's circular buffer, core "
                    f"{place} expects it in place {receiver}: let all cores push the same blocks, or receive in a "
                    "circular buffer of its own with buffer_factor=1",
                    [f"it is sent at {place_of(ends.sends[0])}"],
                )


def _slots(copies: list[CopyOp], core: Core) -> list[int] | None:
    """The place in the circular buffer of each block that a core copies, one after the other; None if unknown."""
    thread = _thread(copies[0])
    assert thread is not None
    acquired: dict[tuple[object, bool], int] = {}
    starts: dict[AcquireOp, int] = {}
    found: list[int] = []
    walk = ThreadWalk(thread, core, also=(CopyOp,))
    try:
        for number, op in enumerate(walk.steps()):
            if number > _MOST_STEPS:
                return None
            if isinstance(op, AcquireOp):
                key = op.cb, op.PRODUCES
                starts[op] = acquired.get(key, 0)
                acquired[key] = starts[op] + op.num_blocks
            elif isinstance(op, CopyOp) and op in copies:
                step, type_ = acquisition_of(op.view), acquisition_of(op.view).cb.type
                assert isinstance(type_, CBType)
                block = op.view.owner
                inner = constant_integer(block.index) if isinstance(block, BlockOp) else 0
                if inner is None:
                    return None
                found.append((starts[step] + inner) % type_.buffer_factor)
    except Undecidable:
        return None
    return found


_MOST_STEPS = 50_000
