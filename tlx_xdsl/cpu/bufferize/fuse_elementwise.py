"""`linalg-fuse-elementwise`: what computes element by element is done where its elements are needed.

Before:
```mlir
%0 = linalg.fill ins(%m : f32) outs(%e0 : tensor<64xf32>) -> tensor<64xf32>
%1 = linalg.generic {...} ins(%x, %0 : tensor<64xf32>, tensor<64xf32>) outs(%e1 : tensor<64xf32>) {
^bb0(%a: f32, %b: f32, %out: f32):
  %2 = arith.subf %a, %b : f32
  linalg.yield %2 : f32
} -> tensor<64xf32>
%3 = linalg.reduce ins(%1 : tensor<64xf32>) outs(%start : tensor<f32>) dimensions = [0] (%c: f32, %sum: f32) {
  %4 = arith.addf %sum, %c : f32
  linalg.yield %4 : f32
}
```
After:
```mlir
%3 = linalg.generic {indexing_maps = [(d0) -> (d0), (d0) -> ()], iterator_types = ["reduction"]}
    ins(%x : tensor<64xf32>) outs(%start : tensor<f32>) {
^bb0(%a: f32, %sum: f32):
  %2 = arith.subf %a, %m : f32
  %4 = arith.addf %sum, %2 : f32
  linalg.yield %4 : f32
} -> tensor<f32>
```
Elements are computed by the same operations as before, and reduced in the same order. What is needed at several places
is done again only where that costs less than to write and read it (`fusion_plan.py`). A store of a part of a tensor
computes only that part. It takes time that is linear in the operations.
"""

from __future__ import annotations

from xdsl.dialects import func, tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.traits import is_side_effect_free

from tlx_xdsl.dialects import linalg
from tlx_xdsl.dialects.destinations import destinations
from tlx_xdsl.transforms.rewriting import Pass, ops_of

from .fused_nest import build
from .fusion_plan import FusionPlan, elementwise


class FuseElementwisePass(Pass):
    """Fuse elementwise operations on tensors into what takes their results."""

    name = "linalg-fuse-elementwise"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for function in ops_of(op, func.FuncOp):
            if function.body.blocks:
                fuse(function)


def fuse(function: Operation) -> None:
    """Fuse the operations of a function."""
    _extract_scalars(function)
    plan = FusionPlan.of(function)
    for op in plan.order:
        if op in plan.inlined and op not in plan.spots:
            build(op, plan)
    _fill_where_written(plan)
    for op in reversed(plan.order):
        # The last users are gone first.
        if op.parent is None or not op.results or any(result.first_use is not None for result in op.results):
            continue
        if op in plan.spots or is_side_effect_free(op):
            op.parent.erase_op(op)


def _fill_where_written(plan: FusionPlan) -> None:
    """A fill that others overwrite is done before each of them: memory is filled as fast as copied, and not read."""
    for op in plan.order:
        if not isinstance(op, linalg.FillOp) or op in plan.spots or len(op.results) != 1:
            continue
        uses = list(op.results[0].uses)
        for use in uses:
            user = use.operation
            is_written = any(each.operand == use.index for each in destinations(user))
            if is_written and (len(uses) > 1 or user.parent is not op.parent):
                user.operands[use.index] = _fill_before(user, op)


def _fill_before(user: Operation, op: linalg.FillOp) -> SSAValue:
    block = user.parent
    assert block is not None
    empty = tensor.EmptyOp([], op.results[0].type)
    filled = linalg.FillOp([op.operands[0]], [empty.results[0]])
    for made in (empty, filled):
        made.location = op.location
        block.insert_op_before(made, user)
    filled.results[0].name_hint = op.results[0].name_hint
    return filled.results[0]


def _extract_scalars(function: Operation) -> None:
    """An element of a tensor that is one number everywhere is that number."""
    for op in ops_of(function, tensor.ExtractOp):
        number = _everywhere(op.tensor)
        if number is not None and op.parent is not None:
            op.result.replace_all_uses_with(number)
            op.parent.erase_op(op)


def _everywhere(value: SSAValue) -> SSAValue | None:
    """The scalar that all elements of a tensor are."""
    while isinstance(owner := value.owner, Operation):
        if isinstance(owner, linalg.FillOp):
            return owner.operands[0] if elementwise(owner) is not None else None
        node = elementwise(owner)
        if node is None or node.body is not None:
            return None
        value = node.inputs[0]
    return None
