"""Control flow: what is carried has one layout wherever it goes."""

from __future__ import annotations

from xdsl.dialects import cf, scf
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Operation

from tlx_xdsl.dialects import tt, ttg
from tlx_xdsl.dialects.scf import WhileOp
from tlx_xdsl.dialects.ttg.types import as_tensor
from tlx_xdsl.transforms.rewriting import retype
from tlx_xdsl.transforms.tritongpu.conversion.converter import Converter, handles


@handles(scf.ForOp)
def for_loop(converter: Converter, op: scf.ForOp) -> None:
    """Initial value, loop variable, yielded value and result have one layout."""
    arguments = op.body.block.args[1:]
    for argument, result in zip(arguments, op.res, strict=True):
        converter.settle(argument)
        retype(result, argument.type)
    converter.require_like(op, arguments, first=3)
    converter.region(op.body, converter.warps)
    terminator = op.body.block.last_op
    assert terminator is not None
    converter.require_like(terminator, arguments)


@handles(WhileOp, scf.WhileOp)
def while_loop(converter: Converter, op: scf.WhileOp) -> None:
    """What goes round has one layout, and so has what leaves."""
    before, after = op.before_region.block, op.after_region.block
    for argument in before.args:
        converter.settle(argument)
    converter.require_like(op, before.args)
    for argument, result in zip(after.args, op.res, strict=True):
        converter.settle(argument)
        retype(result, argument.type)
    converter.region(op.before_region, converter.warps)
    converter.region(op.after_region, converter.warps)
    condition, end = before.last_op, after.last_op
    assert condition is not None
    assert end is not None
    converter.require_like(condition, after.args, first=1)
    converter.require_like(end, before.args)


@handles(scf.IfOp)
def branch(converter: Converter, op: scf.IfOp) -> None:
    """Both yielded values have the layout of the result."""
    for result in op.results:
        converter.settle(result)
    for region in op.regions:
        converter.region(region, converter.warps)
        if region.blocks and (terminator := region.blocks[0].last_op) is not None:
            converter.require_like(terminator, op.results)


@handles(ttg.WarpSpecializeOp)
def warp_specialize(converter: Converter, op: ttg.WarpSpecializeOp) -> None:
    """Each partition has warps of its own; the default region has those around it."""
    for result in op.results:
        converter.settle(result)
    converter.region(op.default_region, converter.warps)
    for block in op.default_region.blocks:
        if isinstance(block.last_op, ttg.WarpYieldOp):
            converter.require_like(block.last_op, op.results)
    for region, warps in zip(op.partitions.partition_regions, op.num_warps, strict=True):
        converter.region(region, warps)


@handles(cf.BranchOp)
def jump(converter: Converter, op: cf.BranchOp) -> None:
    """What is passed has the layout of the block's argument."""
    converter.require_like(op, op.successor.args)


@handles(cf.ConditionalBranchOp)
def conditional_jump(converter: Converter, op: cf.ConditionalBranchOp) -> None:
    """What is passed has the layout of the block's argument."""
    converter.require_like(op, [*op.then_block.args, *op.else_block.args], first=1)


@handles(tt.CallOp)
def call(converter: Converter, op: tt.CallOp) -> None:
    """Tensors go to functions and come back in default layouts."""
    for index, operand in enumerate(op.operands):
        if (type_ := as_tensor(operand.type)) is not None:
            converter.require(op, index, converter.default(type_).encoding)
    for result in op.results:
        converter.settle(result)


@handles(tt.ReturnOp)
def return_(converter: Converter, op: tt.ReturnOp) -> None:
    """Tensors come back in default layouts."""
    for index, operand in enumerate(op.operands):
        if (type_ := as_tensor(operand.type)) is not None:
            converter.require(op, index, converter.default(type_).encoding)


@handles(scf.YieldOp, scf.ConditionOp, ttg.WarpYieldOp, tt.MapElementwiseReturnOp)
def nothing(_converter: Converter, _op: Operation) -> None:
    """Terminators are seen to by what they end."""


def function(converter: Converter, op: tt.FuncOp, warps: int) -> None:
    """Convert a function; its type says the layouts of its arguments and results."""
    converter.region(op.body, warps)
    converter.warps = warps
    outputs = [
        type_ if (tensor := as_tensor(type_)) is None else converter.default(tensor)
        for type_ in op.function_type.outputs.data
    ]
    inputs = [argument.type for argument in op.body.blocks[0].args]
    op.properties["function_type"] = FunctionType.from_lists(inputs, outputs)
