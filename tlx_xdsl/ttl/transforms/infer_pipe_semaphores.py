"""`ttl-infer-pipe-semaphores`: two semaphores for each pipe, by which its source and its receivers wait for each other.

Before:
```mlir
%p = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [3, 0]] : !ttl.pipe
ttl.if_src %p {
  %xf = ttl.copy %view, %p : tensor<...>, !ttl.pipe -> !ttl.transfer_handle<write>
  ttl.wait %xf
}
ttl.if_dst %p {
  %xf = ttl.copy %p, %view : !ttl.pipe, tensor<...> -> !ttl.transfer_handle<read>
  ttl.wait %xf
}
```
After:
```mlir
%ready = ttl.create_semaphore {initial = 0 : i32} : !ttl.semaphore
%valid = ttl.create_semaphore {initial = 0 : i32} : !ttl.semaphore
ttl.if_src %p {
  ttl.semaphore_wait_eq %ready, %c3
  ttl.semaphore_set %ready, %c0
  %xf = ttl.copy %view, %p : tensor<...>, !ttl.pipe -> !ttl.transfer_handle<write>
  ttl.wait %xf
  ttl.semaphore_set %valid, %c1
  ttl.semaphore_set %valid, %c1 [%x1, %y0, %x3, %y0]
}
ttl.if_dst %p {
  ttl.semaphore_set %valid, %c0
  %xf = ttl.copy %p, %view {synchronized} : !ttl.pipe, tensor<...> -> !ttl.transfer_handle<read>
  ttl.semaphore_inc %ready, %c1 [%x0, %y0]
  ttl.semaphore_wait_eq %valid, %c1
}
```
A receiver says that its block is reserved, the source waits for all of them, writes, and says that the block is there.
The receiver takes `valid` back before it says that it is ready, so that it can't take the last block for this one. A
copy that is `synchronized` moves nothing itself; `ttl-lower-data-movement` erases it. It says from where on the block
may change: barriers for what the receiver itself has begun in it stand before it, and so before the source may write.

A core has 16 semaphores, so pipes share them. `ready` is counted at the source: pipes whose sources are other cores
have the same one. The thread that receives waits for `valid`, one block at a time. No sender sets it that was not asked
for a block, so all pipes that a thread receives have the same one.

Where the words are not enough, which is where a core is the source of very many pipes, some of these count in one
word: their source asks the receivers of one pipe after the other, by a word `asked`, and they say that they are ready
when they are asked. On a core each such pipe has another word `asked`, and so those whose receivers are other cores
have the same one.
```mlir
ttl.if_src %p {
  ttl.semaphore_inc %asked, %c1 [%x1, %y0]
  ttl.semaphore_wait_eq %ready, %c1
  ...
ttl.if_dst %p {
  ttl.semaphore_set %valid, %c0
  %xf = ttl.copy %p, %view {synchronized} : ...
  ttl.semaphore_wait_eq %asked, %c1
  ttl.semaphore_set %asked, %c0
  ttl.semaphore_inc %ready, %c1 [%x0, %y0]
  ...
```

A multicast of `valid` copies the source's own word. Where another thread of the source receives blocks with that word,
which it may reset meanwhile, each receiver's word is incremented instead.

Where the block of the receivers is not in the place of the sender's (another circular buffer with room for several, or
another number of blocks before), they report its address with `ready`:
```mlir
ttl.if_src %p {
  %at = ttl.semaphore_wait_published %ready, %c3
  %xf = ttl.copy %view, %p[%at] : ...
ttl.if_dst %p {
  %address = ttl.block_address %view : ...
  ttl.semaphore_publish %ready, %address [%x0, %y0]
```
"""

from __future__ import annotations

from collections import Counter

from xdsl.dialects import affine
from xdsl.dialects.builtin import AffineMapAttr, IndexType, ModuleOp, UnitAttr, i32
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import Pass, constant, insert_before, ops_of, replace

from ..analysis.protocol import place_of
from ..dialects.ttcore import SEMAPHORES
from ..dialects.ttl import (
    BlockAddressOp,
    CopyOp,
    CoreOp,
    CreatePipeOp,
    CreateSemaphoreOp,
    KernelOp,
    Place,
    SemaphoreIncOp,
    SemaphorePublishOp,
    SemaphoreSetOp,
    SemaphoreWaitEqOp,
    SemaphoreWaitPublishedOp,
    WaitOp,
    rectangle,
)
from .pipe_ends import PipeEnds, Slots, check_ends, drop_waits, ends_of, name_of_pipe, thread_around


class InferPipeSemaphoresPass(Pass):
    """Synchronise the pipes of every kernel."""

    name = "ttl-infer-pipe-semaphores"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place.

        Raises CompilationError for a pipe whose ends do not fit, and for too many pipes at a core.
        """
        for kernel in ops_of(op, KernelOp):
            pipes = [ends for pipe in ops_of(kernel, CreatePipeOp) if (ends := ends_of(kernel, pipe)) is not None]
            slots = Slots(kernel)
            published = {ends.pipe for ends in pipes if check_ends(kernel, ends, slots)}
            words = _Words(kernel, pipes)
            for pipe, sends, receives in pipes:
                for copy in sends:
                    _send(pipe, copy, words, published=pipe in published)
                for copy in receives:
                    _receive(pipe, copy, words, published=pipe in published)


class _Words:
    """The semaphores of the pipes of a kernel."""

    def __init__(self, kernel: KernelOp, pipes: list[PipeEnds]) -> None:
        self.copies_own: dict[CreatePipeOp, bool] = {}
        """Whether the source's own word of `valid` can be what the receivers get."""
        self._words: dict[tuple[CreatePipeOp, str], SSAValue] = {}
        made: dict[object, SSAValue] = {}
        keys = _keys(pipes, max(SEMAPHORES - len(ops_of(kernel, CreateSemaphoreOp)), 0))
        counts = Counter(key for each in keys for key in each)
        takers = [thread_around(ends.receives[0]) for ends in pipes]
        for ends, taker, own in zip(pipes, takers, keys, strict=True):
            pipe = ends.pipe
            for key in own:
                name = key[0]
                if key not in made:
                    made[key] = _semaphore(pipe, name, is_shared=counts[key] > 1)
                self._words[pipe, name] = made[key]
            theirs = [each.pipe for each, other in zip(pipes, takers, strict=True) if other is taker]
            receivers = {place for each in theirs for place in rectangle(*each.receivers)}
            is_same = thread_around(ends.sends[0]) is taker
            self.copies_own[pipe] = is_same or not receivers.intersection(rectangle(*pipe.sources))

    def of(self, pipe: CreatePipeOp) -> tuple[SSAValue, SSAValue, SSAValue | None]:
        """Return the words `ready`, `valid` and, where receivers are asked, `asked` of a pipe."""
        return self._words[pipe, "ready"], self._words[pipe, "valid"], self._words.get((pipe, "asked"))


_Key = tuple[str, object]
"""The name of a word, and what else pipes have in common that share it."""


def _keys(pipes: list[PipeEnds], most: int) -> list[list[_Key]]:
    """Choose at most so many words: as few pipes as possible ask.

    Raises CompilationError where the words are not enough.
    """
    for direct in range(most, -1, -1):
        senders: list[set[Place]] = []
        asked: list[set[Place]] = []
        keys: list[list[_Key]] = []
        for pipe, sends, receives in pipes:
            color = _color(pipe.sources, senders)
            own: list[_Key] = [("ready", color), ("valid", thread_around(receives[0]))]
            # Several sources that gather would ask a receiver at the same time.
            if color >= direct and pipe.gathers is None:
                own[0] = "ready", thread_around(sends[0])
                own.append(("asked", _color(pipe.receivers, asked)))
            keys.append(own)
        if len({key for own in keys for key in own}) <= most:
            return keys
    ends: dict[Place, list[CreatePipeOp]] = {}
    for pipe, _, _ in pipes:
        for place in dict.fromkeys([*rectangle(*pipe.sources), *rectangle(*pipe.receivers)]):
            ends.setdefault(place, []).append(pipe)
    place, found = max(ends.items(), key=lambda item: len(item[1]))
    raise error_at(
        found[min(most, len(found) - 1)],
        f"{len(found)} pipes begin or end on core {place}, which are too many for the {most} semaphores that the "
        "kernel leaves them: use a pipe for several blocks, or send in two steps, along a row and then the columns",
        [f"{name_of_pipe(pipe)} at {place_of(pipe)}" for pipe in found[:SEMAPHORES]],
    )


def _color(corners: tuple[Place, Place], taken: list[set[Place]]) -> int:
    """The first word that no core of the rectangle has for another pipe."""
    cores = set(rectangle(*corners))
    for color, places in enumerate(taken):
        if not places & cores:
            places |= cores
            return color
    taken.append(cores)
    return len(taken) - 1


def _semaphore(pipe: CreatePipeOp, name: str, *, is_shared: bool) -> SSAValue:
    """A semaphore, made after the pipe and what was made there before."""
    op = CreateSemaphoreOp()
    op.location = pipe.location
    op.result.name_hint = f"{'pipes' if is_shared else pipe.result.name_hint or 'pipe'}_{name}"
    after: Operation = pipe
    while isinstance(after.next_op, CreateSemaphoreOp) and after.next_op.location == pipe.location:
        after = after.next_op
    Rewriter.insert_op(op, InsertPoint.after(after))
    return op.result


class _Around:
    """Inserts operations before and after a copy."""

    def __init__(self, copy: CopyOp):
        self.copy = copy
        self.last: Operation = copy

    def number(self, number: int) -> SSAValue:
        """A constant that semaphores take."""
        return insert_before(self.copy, constant(number, i32)).result

    def place(self, pipe: CreatePipeOp, place: Place, own: Place) -> tuple[SSAValue, SSAValue]:
        """The coordinates of a core of the first way, or of the one that this core is on, where `own` is on the first.

        Ways of a pipe that gathers differ in their sources only.
        """
        core: CoreOp | None = None
        found: list[SSAValue] = []
        for axis in (0, 1):
            if pipe.count[axis] == 1 or pipe.gathers is not None:
                found.append(insert_before(self.copy, constant(place[axis], IndexType())).result)
                continue
            core = core or insert_before(self.copy, CoreOp(2))
            moved = AffineMap(1, 0, (AffineExpr.dimension(0) + (place[axis] - own[axis]),))
            coordinate = core.results[axis]
            if place[axis] != own[axis]:
                coordinate = insert_before(self.copy, affine.ApplyOp([coordinate], AffineMapAttr(moved))).result
            found.append(coordinate)
        return found[0], found[1]

    def before(self, op: Operation) -> None:
        """Insert before the copy, after what was inserted there."""
        insert_before(self.copy, op)

    def after(self, op: Operation) -> None:
        """Insert after the copy and what was inserted there."""
        op.location = self.copy.location
        Rewriter.insert_op(op, InsertPoint.after(self.last))
        self.last = op


def _send(pipe: CreatePipeOp, copy: CopyOp, words: _Words, *, published: bool) -> None:
    drop_waits(copy)
    around = _Around(copy)
    ready, valid, asked = words.of(pipe)
    everyone, zero, one = (around.number(each) for each in (len(pipe.destinations), 0, 1))
    if asked is not None:
        for place in pipe.destinations:
            around.before(SemaphoreIncOp(asked, one, around.place(pipe, place, pipe.src)))
    if published:
        wait = SemaphoreWaitPublishedOp(ready, everyone)
        around.before(wait)
        copy = replace(copy, CopyOp(copy.source, copy.destination, (), (wait.result,)))
        around.copy = around.last = copy
    else:
        around.before(SemaphoreWaitEqOp(ready, everyone))
        around.before(SemaphoreSetOp(ready, zero))
    around.after(WaitOp(copy.handle))
    if not words.copies_own[pipe]:
        for place in pipe.destinations:
            around.after(SemaphoreIncOp(valid, one, around.place(pipe, place, pipe.src)))
        return
    around.after(SemaphoreSetOp(valid, one))
    first, last = pipe.dst_range
    corners = [first] if first == last else [first, last]
    places = [each for corner in corners for each in around.place(pipe, corner, pipe.src)]
    around.after(SemaphoreSetOp(valid, one, tuple(places)))


def _receive(pipe: CreatePipeOp, copy: CopyOp, words: _Words, *, published: bool) -> None:
    drop_waits(copy)
    around = _Around(copy)
    ready, valid, asked = words.of(pipe)
    zero, one = around.number(0), around.number(1)
    source = copy.indices or around.place(pipe, pipe.src, pipe.dst_range[0])
    around.before(SemaphoreSetOp(valid, zero))
    copy.synchronized = UnitAttr()
    if asked is not None:
        around.after(SemaphoreWaitEqOp(asked, one))
        around.after(SemaphoreSetOp(asked, zero))
    if published:
        address = BlockAddressOp(copy.view)
        around.after(address)
        around.after(SemaphorePublishOp(ready, address.result, (source[0], source[1])))
    else:
        around.after(SemaphoreIncOp(ready, one, (source[0], source[1])))
    around.after(SemaphoreWaitEqOp(valid, one))
