"""Control flow: what is carried has one layout wherever it goes."""

from __future__ import annotations

from xdsl.dialects import builtin, cf, scf
from xdsl.ir import Operation

from tlx_xdsl.dialects import tt, ttg
from tlx_xdsl.dialects.regions import forwarded
from tlx_xdsl.dialects.scf import WhileOp
from tlx_xdsl.transforms.rewriting import retype

from ..accumulators import regions_with_warps
from .converter import Converter, handles


@handles(scf.ForOp, WhileOp, scf.WhileOp, scf.IfOp, ttg.WarpSpecializeOp)
def structured(converter: Converter, op: Operation) -> None:
    """Values that one operand defines, a loop's argument and result, have one layout; forwarded values get it."""
    ends = [block.last_op for region in op.regions for block in region.blocks if block.last_op is not None]
    for source in (op, *(end for end in ends if not end.successors and not end.regions)):
        for first, *others in forwarded(source).values():
            converter.settle(first)
            for value in others:
                retype(value, first.type)
    forward(converter, op)
    for region, warps in regions_with_warps(op, converter.warps):
        converter.region(region, warps)


@handles(scf.YieldOp, scf.ConditionOp, ttg.WarpYieldOp, cf.BranchOp, cf.ConditionalBranchOp)
def forward(converter: Converter, op: Operation) -> None:
    """Forwarded values have the layout of the values that they define."""
    for number, (first, *_) in forwarded(op).items():
        if (type_ := ttg.as_tensor(first.type)) is not None:
            converter.require(op, number, type_.encoding)


@handles(tt.CallOp, tt.ReturnOp)
def call(converter: Converter, op: tt.CallOp | tt.ReturnOp) -> None:
    """Tensors go to functions and come back in default layouts."""
    for index, operand in enumerate(op.operands):
        if (type_ := ttg.as_tensor(operand.type)) is not None:
            converter.require(op, index, converter.default(type_).encoding)
    for result in op.results:
        converter.settle(result)


@handles(tt.MapElementwiseReturnOp)
def nothing(_converter: Converter, _op: Operation) -> None:
    """The operation that it ends gives it a layout."""


def function(converter: Converter, op: tt.FuncOp, warps: int) -> None:
    """Convert a function; its type says the layouts of its arguments and results."""
    converter.region(op.body, warps)
    converter.warps = warps
    outputs = [
        type_ if (tensor := ttg.as_tensor(type_)) is None else converter.default(tensor)
        for type_ in op.function_type.outputs.data
    ]
    inputs = [argument.type for argument in op.body.blocks[0].args]
    op.properties["function_type"] = builtin.FunctionType.from_lists(inputs, outputs)
