"""`ttl-split-pipes`: multicasts whose receivers have the block in different places become one pipe for each place.

Before, where core (2, 0) pushes a block of its own first, so that its next block is in another place:
```mlir
%p = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [2, 0]] : !ttl.pipe
ttl.if_src %p {
  %xf = ttl.copy %view, %p : tensor<...>, !ttl.pipe -> !ttl.transfer_handle<write>
  ttl.wait %xf
}
```
After:
```mlir
%p = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [2, 0]] : !ttl.pipe
%q = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [1, 0]] : !ttl.pipe
%r = ttl.create_pipe src=[0, 0] dst_range=[[2, 0], [2, 0]] : !ttl.pipe
ttl.if_src %p {
  ttl.if_src %q {
    %xf = ttl.copy %view, %q : ...
    ttl.wait %xf
  }
  ttl.if_src %r {
    %xf = ttl.copy %view, %r : ...
    ttl.wait %xf
  }
}
```
A multicast writes to one address on all of its receivers. Receivers that have all blocks in the same places stay
together, in rectangles. What else stands in the branches of the pipe is done once, as before. Where the places are not
known before the kernel runs, the pipe stays whole.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region
from xdsl.rewriter import Rewriter

from tlx_xdsl.transforms.rewriting import Pass, insert_before, ops_of

from ..dialects.ttl import CopyOp, CreatePipeOp, Direction, IfDstOp, IfSrcOp, KernelOp, Place, WaitOp, rectangle
from .pipe_ends import PipeEnds, Slots, drop_waits, ends_of


class SplitPipesPass(Pass):
    """Split the multicasts of every kernel where they need that."""

    name = "ttl-split-pipes"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place.

        Raises CompilationError for a pipe that is used on one side only, or on the wrong one.
        """
        for kernel in ops_of(op, KernelOp):
            slots = Slots(kernel)
            for pipe in ops_of(kernel, CreatePipeOp):
                if len(pipe.destinations) > 1 and (ends := ends_of(kernel, pipe)) is not None:
                    parts = _parts(ends, slots)
                    if len(parts) > 1:
                        _split(ends, parts)


def _parts(ends: PipeEnds, slots: Slots) -> list[tuple[Place, Place]]:
    """Return rectangles of receivers of the first way whose blocks are in the same places; none if that is unknown."""
    pipe = ends.pipe
    places = [[slots.of(ends.receives, place, way.src) for place in way.destinations] for way in pipe.ways]
    if any(None in way for way in places):
        return []
    left = dict(zip(pipe.destinations, zip(*places, strict=True), strict=True))
    parts: list[tuple[Place, Place]] = []
    while left:
        (x, y), same = next(iter(left.items()))
        right, bottom = x, y
        while left.get((right + 1, y)) == same:
            right += 1
        while all(left.get((column, bottom + 1)) == same for column in range(x, right + 1)):
            bottom += 1
        parts.append(((x, y), (right, bottom)))
        for place in rectangle(*parts[-1]):
            del left[place]
    return parts


def _split(ends: PipeEnds, parts: list[tuple[Place, Place]]) -> None:
    pipe, sends, receives = ends
    for corners in parts:
        made = insert_before(pipe, CreatePipeOp(pipe.src, *corners, pipe.count, gathers=pipe.gathers is not None))
        made.result.name_hint = pipe.result.name_hint
        for copy in (*sends, *receives):
            is_sent = copy.direction is Direction.WRITE
            far = (copy.source, made.result) if is_sent else (made.result, copy.destination)
            part = CopyOp(*far, copy.source_indices, copy.destination_indices)
            inside = [part, WaitOp(part.handle)]
            for op in inside:
                op.location = copy.location
            insert_before(copy, (IfSrcOp if is_sent else IfDstOp)(made.result, Region(Block(inside))))
    for copy in (*sends, *receives):
        drop_waits(copy)
        Rewriter.erase_op(copy)
