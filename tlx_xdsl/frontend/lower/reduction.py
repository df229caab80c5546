"""Reductions and scans: operations with a region that combines two elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, i32
from xdsl.ir import Block, Operation, Region
from xdsl.irdl import IRDLOperation

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base import as_tensor
from tlx_xdsl.text.diagnostics import error_at

from .. import semantic
from ..calls import Call, lowers
from ..carry import runtime
from ..functions import call_jitted
from ..python.foreign import source_of
from ..python.source import KernelSource
from ..types import ir_type
from ..values import Constexpr, Tensor, TupleValue, Value
from ..visitor import Argument, CallSite
from .shape import axis_of, reshape


@dataclass(frozen=True)
class _Operands:
    """The blocks that are combined, all of one shape."""

    blocks: tuple[Tensor, ...]
    is_tuple: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of each block."""
        return self.blocks[0].shape

    def result(self, values: Sequence[Tensor]) -> Value:
        """The result for the user: a tuple for a tuple."""
        return TupleValue(tuple(values)) if self.is_tuple else values[0]


def _operands(call: Call) -> _Operands:
    items = call.visitor.items_of(call.args["input"])
    blocks: list[Tensor] = []
    for value in (call.args["input"],) if items is None else items:
        if not isinstance(value, Tensor) or not value.shape:
            call.fail("input", f"'input' must be a block or a tuple of blocks, found {value.describe()}")
        blocks.append(value)
    if not blocks:
        call.expected("input", "a block or a tuple of blocks")
    for block in blocks:
        if block.shape != blocks[0].shape:
            call.fail("input", f"the blocks must have one shape, found {blocks[0].describe()} and {block.describe()}")
    return _Operands(tuple(blocks), items is not None)


# --- the region -----------------------------------------------------------------------------------------------------


def _combine_source(call: Call, count: int) -> KernelSource:
    """The jitted function `combine_fn`, which must take two groups of `count` elements."""
    function = call.args["combine_fn"]
    source = source_of(function.value) if isinstance(function, Constexpr) else None
    if source is None:
        call.expected("combine_fn", "a jitted function")
    try:
        source.signature.bind(*range(2 * count))
    except TypeError as error:
        shown = f"{source.name}({', '.join(source.signature.parameters)})"
        message = f"'combine_fn' must take {2 * count} elements, two of each block, found {shown}"
        call.visitor.locate(call.node)
        raise call.visitor.error(call.nodes["combine_fn"], f"{call.name}: {message}") from error
    return source


def _combination(call: Call, operands: _Operands, end: type[IRDLOperation]) -> Region:
    """The region that calls `combine_fn` on two elements of each block and returns one of each by the op `end`."""
    visitor, builder = call.visitor, call.builder
    source = _combine_source(call, len(operands.blocks))
    types = [ir_type(block.dtype) for block in operands.blocks]
    body = Block(arg_types=types * 2)
    node = call.nodes["combine_fn"]
    arguments: list[Argument] = []
    for argument, block in zip(body.args, operands.blocks * 2, strict=True):
        argument.location = builder.location
        arguments.append((node, Tensor(argument, block.dtype)))
    with builder.at_end_of(body):
        result = runtime(visitor, node, call_jitted(CallSite(visitor, call.node, arguments), source))
        items = visitor.items_of(result)
        values = (result,) if items is None else items
        found = [value.ssa.type if isinstance(value, Tensor) else None for value in values]
        if found != types:
            expected = ", ".join(str(block.dtype) for block in operands.blocks)
            shown = ", ".join(value.describe() for value in values)
            call.fail("combine_fn", f"'{source.name}' must return {expected}, found {shown}")
        builder.emit(end, [value.ssa for value in values if isinstance(value, Tensor)])
    _check_elements(source.name, body)
    return Region(body)


def _check_elements(name: str, body: Block) -> None:
    """Check that what a combination returns comes from numbers. Blocks that nothing uses are left to later passes.

    Raises CompilationError at the operation that makes a block.
    """
    assert body.last_op is not None
    asked: list[Operation] = [body.last_op]
    seen = {body.last_op}
    for op in asked:
        if (made := next((each for each in op.results if as_tensor(each.type) is not None), None)) is not None:
            raise error_at(op, f"'{name}' combines one element with another, and this makes a block: {made.type}")
        makers = {operand.owner for operand in op.operands}
        new = [each for each in makers if isinstance(each, Operation) and each not in seen]
        asked += new
        seen.update(new)


# --- handlers -------------------------------------------------------------------------------------------------------


@lowers("tl.reduce")
def _reduce(call: Call) -> Value:
    operands = _operands(call)
    keep_dims = call.flag("keep_dims")
    rank = len(operands.shape)
    axis = axis_of(call, "axis", call.integer("axis"), rank) if call.given("axis") else None
    if axis is None:
        size = prod(operands.shape)
        # Any order will do: the function that combines is commutative.
        flat = [reshape(call.builder, block, (size,), can_reorder=True) for block in operands.blocks]
        operands = _Operands(tuple(flat), operands.is_tuple)
    results = _reduced(call, operands, axis or 0)
    if keep_dims:
        kept = range(rank) if axis is None else (axis,)
        for dim in kept:
            results = [semantic.expand_dims(call.builder, result, dim) for result in results]
    return operands.result(results)


def _reduced(call: Call, operands: _Operands, axis: int) -> list[Tensor]:
    """The blocks without the dimension `axis`; scalars when it is the only one."""
    region = _combination(call, operands, tt.ReduceReturnOp)
    shape = operands.shape[:axis] + operands.shape[axis + 1 :]
    op = tt.ReduceOp(
        operands=[[block.ssa for block in operands.blocks]],
        properties={"axis": IntegerAttr(axis, i32)},
        result_types=[[ir_type(block.dtype, shape) for block in operands.blocks]],
        regions=[region],
    )
    call.visitor.locate(call.node)
    call.builder.insert(op)
    pairs = zip(op.result, operands.blocks, strict=True)
    return [Tensor(result, block.dtype, shape) for result, block in pairs]


@lowers("tl.associative_scan")
def _associative_scan(call: Call) -> Value:
    operands = _operands(call)
    axis = axis_of(call, "axis", call.integer("axis"), len(operands.shape))
    reverse = call.flag("reverse")
    op = tt.ScanOp(
        operands=[[block.ssa for block in operands.blocks]],
        properties={"axis": IntegerAttr(axis, i32), "reverse": BoolAttr.from_bool(reverse)},
        result_types=[[ir_type(block.dtype, block.shape) for block in operands.blocks]],
        regions=[_combination(call, operands, tt.ScanReturnOp)],
    )
    call.visitor.locate(call.node)
    call.builder.insert(op)
    pairs = zip(op.result, operands.blocks, strict=True)
    return operands.result([Tensor(result, block.dtype, block.shape) for result, block in pairs])
