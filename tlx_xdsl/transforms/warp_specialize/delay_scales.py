"""`tlx-ws-delay-scales`: a positive scale is multiplied with the maximum of a row, not with each element before it.

For a positive scale the maximum of products is the product of the maximum, in every bit: rounding keeps the order. What
is left of the multiplication then has one user, the subtraction of the maximum, and both become one instruction.

Before:
```mlir
%y = arith.mulf %x, %scales : tensor<64x128xf32>
%masked = arith.select %keep, %y, %hidden : tensor<64x128xi1>, tensor<64x128xf32>
%m = "tt.reduce"(%masked) <{axis = 1 : i32}> ({ ... arith.maxnumf ... }) : (tensor<64x128xf32>) -> tensor<64xf32>
```
After, with the condition that the argument `scale` is positive:
```mlir
%0 = arith.select %keep, %x, %hidden : tensor<64x128xi1>, tensor<64x128xf32>
%masked = arith.mulf %0, %scales : tensor<64x128xf32>
%1 = "tt.reduce"(%0) <{axis = 1 : i32}> ({ ... arith.maxnumf ... }) : (tensor<64x128xf32>) -> tensor<64xf32>
%m = arith.mulf %1, %2 : tensor<64xf32>
```
`%hidden` is minus infinity. Scales whose sign does not follow from the arguments stay where they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects import arith as upstream
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, ModuleOp, f32
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from tlx_xdsl.dialects import arith, tt
from tlx_xdsl.dialects.base import as_tensor, tensor_type

from ..rewriting import Pass, insert_before, ops_of
from .accesses.arguments import add_conditions

LARGEST = 1e30
"""The largest scale: with an infinite one, products of zeros are no numbers."""
_MAXIMA = (upstream.MaximumfOp, upstream.MaxnumfOp)


@dataclass(frozen=True)
class DelayScalesPass(Pass):
    """Multiply maxima instead of what they are the maxima of."""

    name = "tlx-ws-delay-scales"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place; conditions go to the function's launch conditions."""
        for function in ops_of(op, tt.FuncOp):
            for product in ops_of(function, upstream.MulfOp):
                _delay(function, product)


def _delay(function: tt.FuncOp, product: upstream.MulfOp) -> None:
    tensor = as_tensor(product.result.type)
    if tensor is None or tensor.element_type != f32:
        return
    for value, scales in (product.operands, reversed(product.operands)):
        scale = _uniform(scales)
        conditions = None if scale is None else _positive(scale)
        if scale is None or conditions is None or not _has_maximum(product.result):
            continue
        add_conditions(function, conditions)
        _push(product, value, scales)
        return


def _uniform(scales: SSAValue) -> SSAValue | float | None:
    """The number that all elements are, as a value or as a constant."""
    match scales.owner:
        case tt.SplatOp() as op:
            number = op.src.owner
            if isinstance(number, upstream.ConstantOp) and isinstance(number.value, FloatAttr):
                return number.value.value.data
            return op.src
        case upstream.ConstantOp(value=DenseIntOrFPElementsAttr() as value):
            elements = set(value.iter_values())
            return cast(float, elements.pop()) if len(elements) == 1 else None
        case _:
            return None


def _positive(scale: SSAValue | float) -> list[str] | None:
    """The conditions on arguments under which a scale is positive; None where that does not follow from them."""
    if not isinstance(scale, SSAValue):
        return [] if 0 < scale < LARGEST else None
    match scale.owner:
        case Block() if isinstance(scale.owner.parent_op(), tt.FuncOp) and scale.name_hint is not None:
            return [f"0 < {scale.name_hint} < {LARGEST:g}"]
        case upstream.ConstantOp(value=FloatAttr() as value):
            return _positive(value.value.data)
        case upstream.MulfOp() | upstream.DivfOp():
            parts = [_positive(operand) for operand in scale.owner.operands]
            return None if None in parts else [each for part in parts for each in part or ()]
        case _:
            return None


def _has_maximum(value: SSAValue) -> bool:
    """True if a maximum is taken of a value, or of it where a mask hides some elements."""
    return any(
        _is_maximum(use.operation) or (_hides(use.operation, use.index) and _has_maximum(use.operation.results[0]))
        for use in value.uses
    )


def _is_maximum(op: Operation) -> bool:
    if not isinstance(op, tt.ReduceOp) or len(op.operands) != 1:
        return False
    body = [inner for region in op.regions for block in region.blocks for inner in block.ops]
    return len(body) == 2 and isinstance(body[0], _MAXIMA)


def _hides(op: Operation, index: int) -> bool:
    """True for a select that replaces elements by minus infinity."""
    return isinstance(op, arith.SelectOp) and index == 1 and _uniform(op.false_value) == -math.inf


def _push(product: upstream.MulfOp, value: SSAValue, scales: SSAValue) -> None:
    """Move a multiplication after masks and maxima."""
    for use in list(product.result.uses):
        op = use.operation
        if _is_maximum(op):
            made = op.clone({product.result: value})
            insert_before(op, made)
            scale = _uniform(scales)
            type_ = tensor_type(op.results[0].type)
            assert scale is not None
            if not isinstance(scale, SSAValue):
                constant = upstream.ConstantOp(DenseIntOrFPElementsAttr.from_list(cast("Any", type_), [scale]))
                factors = insert_before(op, constant).results[0]
            else:
                factors = insert_before(op, tt.SplatOp(operands=[scale], result_types=[type_])).results[0]
            scaled = insert_before(op, upstream.MulfOp(made.results[0], factors))
            scaled.result.name_hint = op.results[0].name_hint
            op.results[0].replace_all_uses_with(scaled.result)
            Rewriter.erase_op(op)
        elif _hides(op, use.index):
            assert isinstance(op, arith.SelectOp)
            masked = insert_before(op, arith.SelectOp(op.condition, value, op.false_value))
            again = insert_before(op, upstream.MulfOp(masked.result, scales))
            again.result.name_hint = op.result.name_hint
            op.result.replace_all_uses_with(again.result)
            Rewriter.erase_op(op)
            _push(again, masked.result, scales)
    if product.result.first_use is None:
        Rewriter.erase_op(product)
