"""`tlx-insert-barrier-before-tasks`: a barrier of all threads before tasks whose captures take the place of other data.

Upstream Triton 3.6 stores what tasks capture to shared memory, at bytes that a reduction or a conversion may have used
just before, and puts no barrier in between: a fast warp overwrites what a slow one still reads. The PTX machine reports
it. Later versions have the barrier.

Before:
```mlir
%sum = "tt.reduce"(%values) <{axis = 0 : i32}> ({...}) : (tensor<32xi32, #layout>) -> i32
ttg.warp_specialize(%sum) ...
```
After:
```mlir
%sum = "tt.reduce"(%values) <{axis = 0 : i32}> ({...}) : (tensor<32xi32, #layout>) -> i32
ttg.barrier local
ttg.warp_specialize(%sum) ...
```
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tlx_xdsl.dialects import tt, ttg
from tlx_xdsl.dialects.base import as_tensor

from ..rewriting import Pass, insert_before, ops_of


class InsertBarrierBeforeTasksPass(Pass):
    """Put a barrier before each `ttg.warp_specialize` with captures, in functions that work on tensors outside of it.

    Which of their operations need shared memory is decided by later passes; scalars never do.
    """

    name = "tlx-insert-barrier-before-tasks"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for function in ops_of(op, tt.FuncOp):
            if any(map(_has_tensor, _outside_of_tasks(function))):
                for tasks in ops_of(function, ttg.WarpSpecializeOp):
                    if tasks.partitions.operands:
                        insert_before(tasks, ttg.BarrierOp.of(ttg.AddrSpace.Local))


def _outside_of_tasks(op: Operation) -> list[Operation]:
    found: list[Operation] = []
    for region in op.regions:
        for inner in region.walk():
            found.append(inner)
    tasks = {id(each) for inner in found if isinstance(inner, ttg.WarpSpecializeOp) for each in inner.walk()}
    return [inner for inner in found if id(inner) not in tasks]


def _has_tensor(op: Operation) -> bool:
    return any(as_tensor(value.type) is not None for value in (*op.operands, *op.results))
