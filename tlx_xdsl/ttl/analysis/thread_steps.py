"""What the thread of one core does, step by step: the operations that synchronise it with others, in order.

A thread is followed through its loops and branches like a program that runs, with the steps of circular buffers and the
operations on semaphores as its only effects. Where a branch or a trip count can't be known, the walk raises
`Undecidable`: what was found until then has still happened.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import affine, scf
from xdsl.ir import Block, Operation, SSAValue

from ..dialects.ttl import CBOp, CreatePipeOp, IfDstOp, IfSrcOp, SemaphoreOp
from .core_values import Core, CoreValues

Loop = affine.ForOp | scf.ForOp


class Undecidable(Exception):
    """What the thread does next follows from something that is unknown before it runs."""

    def __init__(self, op: Operation):
        super().__init__(op.name)
        self.op = op


def with_steps(root: Operation, *extra: type[Operation]) -> set[Operation]:
    """The operations inside of `root` that are steps, or of the `extra` classes, or have some in their regions."""
    found: set[Operation] = set()
    for op in root.walk():
        if isinstance(op, (CBOp, SemaphoreOp, *extra)):
            around: Operation | None = op
            while around is not None and around not in found:
                found.add(around)
                around = None if around is root else around.parent_op()
    return found


def side_runs(op: IfSrcOp | IfDstOp, core: Core) -> bool | None:
    """Whether a core is on this side of the pipe; None if the pipe is not one of the kernel's."""
    pipe = op.pipe.owner
    if not isinstance(pipe, CreatePipeOp):
        return None
    return core.place == pipe.src if isinstance(op, IfSrcOp) else core.place in pipe.destinations


class ThreadWalk:
    """A walk of one core through one of its threads."""

    def __init__(
        self,
        thread: Operation,
        core: Core,
        relevant: set[Operation] | None = None,
        also: tuple[type[Operation], ...] = (),
    ):
        self.thread = thread
        self.also = also
        """Further operations that count as steps."""
        self.values = CoreValues(core)
        self.core = core
        self.relevant = with_steps(thread, *also) if relevant is None else relevant

    def steps(self) -> Iterator[Operation]:
        """The steps of the thread; `values` has the values of a step while it is the last one.

        Raises Undecidable.
        """
        yield from self._block(self.thread.regions[0].block)

    def _block(self, block: Block) -> Iterator[Operation]:
        for op in block.ops:
            if isinstance(op, (CBOp, SemaphoreOp, *self.also)):
                yield op
            elif op.regions and op in self.relevant:
                yield from self._structure(op)

    def _structure(self, op: Operation) -> Iterator[Operation]:
        match op:
            case affine.ForOp() | scf.ForOp():
                yield from self._loop(op)
            case scf.IfOp():
                condition = self.values.of(op.cond)
                if condition is None:
                    raise Undecidable(op)
                region = op.true_region if condition else op.false_region
                if region.blocks:
                    yield from self._block(region.block)
                    self._bind(op.results, self._yielded(region.block))
            case IfSrcOp() | IfDstOp():
                runs = side_runs(op, self.core)
                if runs is None:
                    raise Undecidable(op)
                if runs:
                    yield from self._block(op.body.block)
            case _:
                raise Undecidable(op)

    def _loop(self, loop: Loop) -> Iterator[Operation]:
        indices = self.values.range_of(loop)
        if indices is None:
            raise Undecidable(loop)
        initial = loop.inits if isinstance(loop, affine.ForOp) else loop.iter_args
        carried = [self.values.of(each) for each in initial]
        block = loop.body.block
        for index in indices:
            self._bind(block.args, [index, *carried])
            yield from self._block(block)
            carried = self._yielded(block)
        self._bind(loop.results, carried)

    def _yielded(self, block: Block) -> list[int | None]:
        last = block.last_op
        return [] if last is None else [self.values.of(each) for each in last.operands]

    def _bind(self, values: tuple[SSAValue, ...] | list[SSAValue], numbers: list[int | None]) -> None:
        self.values.known.update(zip(values, numbers, strict=False))
