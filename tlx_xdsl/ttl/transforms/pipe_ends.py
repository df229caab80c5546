"""The two ends of a pipe in a kernel, and whether they fit each other."""

from __future__ import annotations

from typing import NamedTuple

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import constant_integer

from ..analysis.core_values import Core, ThreadWalk, Undecidable, cores_of
from ..analysis.protocol import name_of, place_of
from ..dialects.ttl import (
    ADDRESS_UNIT,
    AcquireOp,
    BlockOp,
    CBType,
    CopyOp,
    CreatePipeOp,
    Direction,
    IfDstOp,
    IfSrcOp,
    KernelOp,
    PipeType,
    Place,
    WaitOp,
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
        raise error_at(copies[0], f"{missing} through {name_of_pipe(pipe)}: the other side waits for ever")
    return PipeEnds(pipe, sends, receives)


def drop_waits(copy: CopyOp) -> None:
    """Remove the waits for a copy: it is waited for at once."""
    for use in list(copy.handle.uses):
        if not isinstance(use.operation, WaitOp):
            raise error_at(use.operation, "a copy through a pipe can be waited for only, with ttl.wait")
        Rewriter.erase_op(use.operation)


def check_ends(kernel: KernelOp, ends: PipeEnds, slots: Slots) -> bool:
    """Check that the ends of a pipe are cores of the grid, and that what is sent fits what is received.

    Return whether the receivers must report the source where their block is. Raises CompilationError.
    """
    _check_cores(kernel, ends.pipe)
    _check_threads(ends)
    _check_buffers(ends)
    return not _is_in_place(ends, slots)


def _is_inside(op: Operation, side: type[IfSrcOp] | type[IfDstOp], pipe: CreatePipeOp) -> bool:
    around = op.parent_op()
    while around is not None:
        if isinstance(around, side) and around.pipe is pipe.result:
            return True
        around = around.parent_op()
    return False


def name_of_pipe(pipe: CreatePipeOp) -> str:
    """Return how messages call a pipe."""
    return "the pipe" if pipe.result.name_hint is None else f"the pipe '{pipe.result.name_hint}'"


def _check_cores(kernel: KernelOp, pipe: CreatePipeOp) -> None:
    grid = kernel.grid
    for role, (x, y) in (("source", pipe.sources[1]), ("last receiver", pipe.receivers[1])):
        if x >= grid.x or y >= grid.y:
            raise error_at(
                pipe,
                f"the {role} of {name_of_pipe(pipe)} is core ({x}, {y}), the grid has {grid.x}x{grid.y} cores",
            )


def _check_threads(ends: PipeEnds) -> None:
    """Check that one thread sends and one receives, and that they can run at the same time where they must."""
    for copies, verb in ((ends.sends, "sends"), (ends.receives, "receives")):
        for op in copies[1:]:
            if thread_around(op) is not thread_around(copies[0]):
                raise error_at(
                    op,
                    f"a second thread {verb} through {name_of_pipe(ends.pipe)}: use one pipe for each",
                    [f"the first one {verb} at {place_of(copies[0])}"],
                )
    send, receive = ends.sends[0], ends.receives[0]
    if ends.pipe.has_loopback and thread_around(send) is thread_around(receive):
        raise error_at(
            receive,
            f"deadlock: the source of {name_of_pipe(ends.pipe)} is one of its receivers, and one thread does both, "
            "which must wait for each other: receive in the other datamovement thread, or leave the source out of "
            "dst_range",
            [f"it sends at {place_of(send)}"],
        )


def thread_around(op: Operation) -> Operation | None:
    """The thread that an operation is in."""
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
                f"the blocks at the ends of {name_of_pipe(ends.pipe)} must have one type, found {op.view.type} and "
                f"{send.view.type}",
                [f"the other one is sent at {place_of(send)}"],
            )
    for op in ends.receives:
        taken = acquisition_of(op.view)
        type_ = taken.cb.type
        assert isinstance(type_, CBType)
        size = type_.block_pages * type_.page_bytes
        if size % ADDRESS_UNIT and taken.cb is not own.cb:
            raise error_at(
                op,
                f"blocks of {size} bytes are received in {name_of(taken.cb)}: where that is not {name_of(own.cb)}, a "
                f"block has a multiple of {ADDRESS_UNIT} bytes",
                [f"it is sent at {place_of(send)}"],
            )


def _is_in_place(ends: PipeEnds, slots: Slots) -> bool:
    """Check that each block that is sent is received; return whether the source knows where.

    It does where that is its own place, or where the receivers' circular buffer has room for one. Receivers of one
    block have it in one place. What is not known before the kernel runs is accepted.
    """
    senders, receivers = ({acquisition_of(op.view).cb for op in each} for each in (ends.sends, ends.receives))
    is_same, is_known, name = len(receivers) == 1, False, name_of_pipe(ends.pipe)
    if len(receivers) == 1 and not senders & receivers:
        type_ = next(iter(receivers)).type
        assert isinstance(type_, CBType)
        is_known = type_.buffer_factor == 1
    for way in ends.pipe.ways:
        sent = slots.of(ends.sends, way.src)
        first: list[Slot] | None = None
        for place in way.destinations:
            taken = slots.of(ends.receives, place, way.src)
            if sent is None or taken is None:
                is_same = False
                continue
            if len(sent) != len(taken):
                raise error_at(
                    ends.receives[0],
                    f"{len(sent)} blocks are sent through {name}, core {place} receives {len(taken)}",
                    [f"they are sent at {place_of(ends.sends[0])}"],
                )
            is_same = is_same and sent == taken
            first = first or taken
            if first != taken:
                raise error_at(
                    ends.receives[0],
                    f"the blocks of {name} are not in the same places on core {way.first} and core {place}, but a "
                    "multicast writes to one address: ttl-split-pipes makes a pipe for each",
                    [f"they are sent at {place_of(ends.sends[0])}"],
                )
    return is_known or is_same


Slot = tuple[SSAValue, int]
"""A circular buffer, and the number of a block in it."""


class Slots:
    """The places in circular buffers of the blocks that each core sends and receives, one after the other."""

    def __init__(self, kernel: KernelOp) -> None:
        self._cores = {core.place: core for core in cores_of(kernel.grid)}
        self._found: dict[tuple[Operation, Place], list[_Moved] | None] = {}

    def of(self, copies: list[CopyOp], place: Place, source: Place | None = None) -> list[Slot] | None:
        """Return those of some copies of a thread, by the source where they name it; None if unknown."""
        thread = thread_around(copies[0])
        assert thread is not None
        if (thread, place) not in self._found:
            core = self._cores.get(place)
            self._found[thread, place] = None if core is None else _moves(thread, core)
        found = self._found[thread, place]
        if found is None:
            return None
        mine = [each for each in found if each.copy in copies and each.source in (None, source)]
        known = [each.slot for each in mine if each.slot is not None]
        return known if len(known) == len(mine) else None


class _Moved(NamedTuple):
    """A copy through a pipe that a core makes: the place of its block, and the source if it is named."""

    copy: CopyOp
    slot: Slot | None
    source: Place | None


def _moves(thread: Operation, core: Core) -> list[_Moved] | None:
    """The copies through pipes that a core makes in a thread; None if unknown."""
    acquired: dict[tuple[object, bool], int] = {}
    starts: dict[AcquireOp, int] = {}
    found: list[_Moved] = []
    walk = ThreadWalk(thread, core, also=(CopyOp,))
    try:
        for number, op in enumerate(walk.steps()):
            if number > _MOST_STEPS:
                return None
            if isinstance(op, AcquireOp):
                key = op.cb, op.PRODUCES
                starts[op] = acquired.get(key, 0)
                acquired[key] = starts[op] + op.num_blocks
            elif isinstance(op, CopyOp) and isinstance(op.far.type, PipeType):
                step, type_ = acquisition_of(op.view), acquisition_of(op.view).cb.type
                assert isinstance(type_, CBType)
                block = op.view.owner
                inner = constant_integer(block.index) if isinstance(block, BlockOp) else 0
                slot = None if inner is None else (step.cb, (starts[step] + inner) % type_.buffer_factor)
                named = [walk.values.of(each) for each in op.indices]
                if None in named:
                    return None
                x, y = named if named else (None, None)
                found.append(_Moved(op, slot, None if x is None or y is None else (x, y)))
    except Undecidable:
        return None
    return found


_MOST_STEPS = 50_000
