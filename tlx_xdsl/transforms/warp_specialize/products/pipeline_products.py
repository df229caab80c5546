"""`tlx-ws-pipeline-products`: the first products of a turn are issued before the last ones of the turn before.

In attention a turn of the loop computes scores, their softmax, and a product with the result. The two products of one
turn wait for each other, and the tensor cores for the softmax between them. So the loop is rotated: a turn begins with
its own first product, goes on with the second one of the turn before, and ends with the softmax, which runs while the
second product does. The first turn's beginning comes before the loop, and the last turn's end after it.

The pass works on blocks, before `tlx-ws-async-dots`, which then puts the waits where the rotated loop allows them.

Before:
```mlir
%acc = scf.for %n = %c0 to %num step %c1 iter_args(%a = %zero) -> (...) : i32 {
  %k = ttg.local_load %k_slot : ...
  %s = tt.dot %q, %k, %zero : ...
  %e = math.exp2 %s : ...
  %p = arith.truncf %e : ...
  %v = ttg.local_load %v_slot : ...
  %d = tt.dot %p, %v, %a : ...
  scf.yield %d : ...
}
```
After:
```mlir
%k0 = ttg.local_load %k_slot0 : ...
%s0 = tt.dot %q, %k0, %zero : ...
%e0 = math.exp2 %s0 : ...
%p0 = arith.truncf %e0 : ...
%l:2 = scf.for %n = %c1 to %num step %c1 iter_args(%a = %zero, %p = %p0) -> (...) : i32 {
  %k = ttg.local_load %k_slot : ...
  %s = tt.dot %q, %k, %zero : ...
  %v = ttg.local_load %v_slot_before : ...
  %d = tt.dot %p, %v, %a : ...
  %e = math.exp2 %s : ...
  %p_next = arith.truncf %e : ...
  scf.yield %d, %p_next : ...
}
%v1 = ttg.local_load %v_slot_last : ...
%acc = tt.dot %l#1, %v1, %l#0 : ...
```
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from tlx_xdsl.dialects import tt, ttg, ttng

from ...rewriting import Pass, ops_of
from ..tasks_of import NOTE
from .ring_links import RingLinks
from .rotation import rotate
from .stages import stages_of
from .sums import fold_sums


class PipelineProductsPass(Pass):
    """Rotate the loops of partitions whose products depend on each other."""

    name = "tlx-ws-pipeline-products"

    def run(self, op: ModuleOp) -> None:
        """Handle each innermost loop of each partition by itself."""
        for tasks in ops_of(op, ttg.WarpSpecializeOp):
            rings = RingLinks(tasks)
            for region in tasks.partitions.partition_regions:
                fold_sums(region)
                for loop in [inner for inner in region.walk() if isinstance(inner, scf.ForOp)]:
                    if any(isinstance(each, tt.DotOp) for each in loop.body.block.ops):
                        _rotate(loop, rings)


def _depths(loop: scf.ForOp) -> Iterator[int]:
    """The slots of the rings that a loop waits for."""
    for op in loop.body.block.ops:
        if isinstance(op, ttng.WaitBarrierOp) and isinstance(view := op.alloc.owner, ttg.MemDescIndexOp):
            yield ttg.memdesc_type(view.src.type).shape[0]


def _rotate(loop: scf.ForOp, rings: RingLinks) -> None:
    # A rotated loop holds a slot while it waits for the next one: with one slot the producer would wait for it.
    if any(depth == 1 for depth in _depths(loop)):
        return
    stages = stages_of(loop, rings)
    if stages is None:
        return
    rotated: Operation = rotate(loop, stages)
    rotated.attributes[NOTE] = StringAttr(
        "a turn issues its first products before the last ones of the turn before, which run beside its other work"
    )
