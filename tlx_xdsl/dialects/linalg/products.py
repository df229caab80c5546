"""Products of matrices, whose operands may be narrower than the accumulator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.builder import ImplicitBuilder
from xdsl.dialects import arith as scalar
from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyFloat,
    ArrayAttr,
)
from xdsl.dialects.linalg import abstract_ops, attrs, ops
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.irdl import (
    irdl_op_definition,
    prop_def,
)

from .. import arith
from ..base import as_tensor, element_bits
from .structured import EFFECTS, PARALLEL, REDUCTION, YieldOp

_OPERANDS = 3
"""Of a product: two matrices, and the accumulator."""


def _product_body(operands: Sequence[SSAValue]) -> Region:
    """Multiply and add in the type of the accumulator, to which elements of operands are converted first.

    Integers are signed (OpDSL, `TypeFn.cast_signed`). Of another number of operands than three, which the verifier
    refuses at the operation, the body gives the last back.
    """
    types = abstract_ops.NamedOperation.body_arg_types(operands)
    block = Block(arg_types=types)
    if len(types) != _OPERANDS:
        block.add_op(YieldOp(*block.args[-1:]))
        return Region(block)
    target = types[-1]
    is_float = isinstance(target, AnyFloat)
    with ImplicitBuilder(block):
        left, right = (_converted(value, target) for value in block.args[:2])
        product = scalar.MulfOp(left, right) if is_float else scalar.MuliOp(left, right)
        total = (
            scalar.AddfOp(block.args[2], product.result) if is_float else scalar.AddiOp(block.args[2], product.result)
        )
        YieldOp(total.result)
    return Region(block)


def _converted(value: SSAValue, target: Attribute) -> SSAValue:
    """`value` in another type; the operations are made where the implicit builder is."""
    if value.type == target:
        return value
    of_float, to_float = isinstance(value.type, AnyFloat), isinstance(target, AnyFloat)
    grows = element_bits(target) > element_bits(value.type)
    match of_float, to_float:
        case True, True:
            if element_bits(target) == element_bits(value.type):
                raise ValueError(f"linalg can't convert {value.type} to {target}")
            return (arith.ExtFOp if grows else arith.TruncFOp)(value, target).result
        case False, False:
            return (arith.ExtSIOp if grows else arith.TruncIOp)(value, target).result
        case False, True:
            return arith.SIToFPOp(value, target).result
        case _:
            return arith.FPToSIOp(value, target).result


class MatmulOp(ops.MatmulOp):
    """`c + a * b` in the type of c: `linalg.matmul ins(%a, %b : ..., ...) outs(%c : ...) -> ...`."""

    traits = EFFECTS

    @classmethod
    def get_hidden_region(cls, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Region:
        """The body, which text leaves out."""
        return _product_body((*inputs, *outputs))


def _batch_map(*dims: int) -> AffineMapAttr:
    return AffineMapAttr(AffineMap(4, 0, tuple(AffineDimExpr(dim) for dim in dims)))


@irdl_op_definition
class BatchMatmulOp(abstract_ops.NamedOperation):
    """`linalg.matmul` of each matrix of stacks: their first dimension is that of the matrices' numbers."""

    name = "linalg.batch_matmul"

    PRINT_ATTRS_IN_FRONT: ClassVar[bool] = True
    indexing_maps = prop_def(
        ArrayAttr[AffineMapAttr],
        default_value=ArrayAttr([_batch_map(0, 1, 3), _batch_map(0, 3, 2), _batch_map(0, 1, 2)]),
    )
    traits = EFFECTS

    def __init__(self, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]):
        super().__init__(
            ins=inputs,
            outs=outputs,
            result_types=[[value.type for value in outputs if as_tensor(value.type) is not None]],
            hidden_region=self.get_hidden_region(inputs, outputs),
        )

    @classmethod
    def get_hidden_region(cls, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Region:
        """The body, which text leaves out."""
        return _product_body((*inputs, *outputs))

    def get_default_indexing_maps(self) -> Sequence[AffineMap]:
        """Return the maps that the operation has."""
        return [each.data for each in self.indexing_maps]

    def get_indexing_maps(self) -> ArrayAttr[AffineMapAttr]:
        """Stack, rows, columns, and the dimension that both operands share."""
        return self.indexing_maps

    def get_iterator_types(self) -> ArrayAttr[attrs.IteratorTypeAttr]:
        """The shared dimension is reduced."""
        return ArrayAttr([PARALLEL, PARALLEL, PARALLEL, REDUCTION])
