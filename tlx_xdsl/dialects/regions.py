"""Control flow between regions and blocks: the edges along which control goes on and operands are forwarded.

This is MLIR's `RegionBranchOpInterface` and `BranchOpInterface` for the operations that our modules consist of. An
edge leads from an operation to a block, or past an operation with regions, whose results it then defines. The values
that an edge defines are its *successor inputs*: arguments of the block, or the results. What is not listed among them
is computed by the operation with the regions: an induction variable, or the elements that a reduction combines.

Control flow of an operation that is not listed here is unknown, never empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import TypeAlias

from xdsl.dialects import cf, scf
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from . import tt, ttg


@dataclass(frozen=True, eq=False)
class Edge:
    """One way for control to go on after `source`, which forwards some of its operands."""

    source: Operation
    """A terminator, or an operation with regions before it enters them."""
    target: Block | Operation
    """The block where control goes on, or the operation with regions past which it goes on."""
    first: int = 0
    """The number of the first operand of `source` that is forwarded."""
    inputs: Sequence[SSAValue] = ()
    """Values that the forwarded operands define, one by one."""

    @property
    def operands(self) -> Sequence[SSAValue]:
        """The forwarded operands, as many as there are inputs."""
        return self.source.operands[self.first : self.first + len(self.inputs)]

    @property
    def pairs(self) -> Iterable[tuple[SSAValue, SSAValue]]:
        """Each forwarded operand with the input that it defines."""
        return zip(self.operands, self.inputs, strict=True)


Edges: TypeAlias = tuple[Edge, ...]

SCALAR_CODE = (tt.ReduceOp, tt.ScanOp, tt.MapElementwiseOp)
"""Operations whose regions compute with single elements of their tensors."""


@singledispatch
def edges(op: Operation) -> Edges | None:
    """Return the edges that leave `op`, in the order in which it names its successors.

    Empty for an operation that control only passes, and for the end of a partition; None where they are unknown.
    """
    # Terminators are the last of their blocks; most operations are not.
    if op.regions or op.successors or (op.next_op is None and op.has_trait(IsTerminator)):
        return None
    return ()


@singledispatch
def condition_of(op: Operation) -> SSAValue | None:
    """Return the i1 that chooses between the two edges of `op`, the first where it is true; None where nothing does."""
    return None


@condition_of.register(scf.IfOp)
@condition_of.register(scf.ConditionOp)
@condition_of.register(cf.ConditionalBranchOp)
def _first_operand(op: Operation) -> SSAValue:
    return op.operands[0]


def region_edges(op: Operation) -> Edges | None:
    """Return the edges into the regions of `op`, between them, and past it, without branches between blocks.

    None where one of them is unknown.
    """
    found = edges(op)
    for region in op.regions:
        for end in (block.last_op for block in region.blocks):
            if found is None:
                return None
            if end is not None and not end.successors and not end.regions:
                found = None if (leaving := edges(end)) is None else found + leaving
    return found


def edge_to(source: Operation | None, target: Block | Operation) -> Edge:
    """Return the one edge from `source` to `target`.

    Raises ValueError where there is none, or several.
    """
    (found,) = [edge for edge in (edges(source) if source else None) or () if edge.target is target]
    return found


def call_edges(call: tt.CallOp, callee: tt.FuncOp) -> Edges:
    """Return the edges of a call of `callee`, which has a body: into it, and from each return past the call."""
    entry = callee.body.blocks[0]
    returns = [block.last_op for block in callee.body.blocks if isinstance(block.last_op, tt.ReturnOp)]
    return Edge(call, entry, 0, entry.args), *(Edge(end, call, 0, call.results) for end in returns)


def forwarded(op: Operation) -> dict[int, list[SSAValue]]:
    """Return the inputs that each operand of `op` defines, by the operand's number; none where edges are unknown."""
    found: dict[int, list[SSAValue]] = {}
    for edge in edges(op) or ():
        for number, value in enumerate(edge.inputs, edge.first):
            found.setdefault(number, []).append(value)
    return found


def incoming(leaving: Iterable[Edge]) -> dict[SSAValue, list[SSAValue]]:
    """Return the operands that may define each input of these edges."""
    found: dict[SSAValue, list[SSAValue]] = {}
    for edge in leaving:
        for operand, value in edge.pairs:
            found.setdefault(value, []).append(operand)
    return found


# --- the operations ---------------------------------------------------------------------------------------------------


@edges.register
def _for(op: scf.ForOp) -> Edges:
    body = op.body.block
    return Edge(op, body, 3, body.args[1:]), Edge(op, op, 3, op.results)


@edges.register
def _while(op: scf.WhileOp) -> Edges:
    before = op.before_region.block
    return (Edge(op, before, 0, before.args),)


@edges.register
def _condition(op: scf.ConditionOp) -> Edges | None:
    parent = op.parent_op()
    if not isinstance(parent, scf.WhileOp):
        return None
    after = parent.after_region.block
    return Edge(op, after, 1, after.args), Edge(op, parent, 1, parent.results)


@edges.register
def _if(op: scf.IfOp) -> Edges:
    return tuple(Edge(op, region.block if region.blocks else op) for region in op.regions)


@edges.register
def _yield(op: scf.YieldOp) -> Edges | None:
    match parent := op.parent_op():
        case scf.ForOp():
            body = parent.body.block
            return Edge(op, body, 0, body.args[1:]), Edge(op, parent, 0, parent.results)
        case scf.WhileOp():
            before = parent.before_region.block
            return (Edge(op, before, 0, before.args),)
        case scf.IfOp() | scf.IndexSwitchOp() | scf.ExecuteRegionOp():
            return (Edge(op, parent, 0, parent.results),)
        case _:
            return None


@edges.register
def _branch(op: cf.BranchOp) -> Edges:
    return (Edge(op, op.successor, 0, op.successor.args),)


@edges.register
def _cond_branch(op: cf.ConditionalBranchOp) -> Edges:
    then, otherwise = op.then_block, op.else_block
    return Edge(op, then, 1, then.args), Edge(op, otherwise, 1 + len(then.args), otherwise.args)


@edges.register(scf.IndexSwitchOp)
@edges.register(scf.ExecuteRegionOp)
@edges.register(tt.FuncOp)
@edges.register(ttg.MaskOp)
@edges.register(ttg.WarpSpecializeOp)
def _enter_regions(op: Operation) -> Edges:
    """Enter each region once; `ttg.warp_specialize` has the partitions in its second one."""
    return tuple(Edge(op, region.blocks[0]) for region in op.regions if region.blocks)


@edges.register
def _partitions(op: ttg.WarpSpecializePartitionsOp) -> Edges:
    return tuple(Edge(op, region.blocks[0], 0, region.blocks[0].args) for region in op.partition_regions)


@edges.register(ttg.WarpReturnOp)
def _end_partition(_op: ttg.WarpReturnOp) -> Edges:
    """Return no edges: control goes on after the default region."""
    return ()


@edges.register(ttg.WarpYieldOp)
@edges.register(ttg.MaskReturnOp)
def _define_results(op: Operation) -> Edges | None:
    parent = op.parent_op()
    return None if parent is None else (Edge(op, parent, 0, parent.results),)


@edges.register
def _return(op: tt.ReturnOp) -> Edges | None:
    """Leave the function; which values the operands define is known where it is called (`call_edges`)."""
    parent = op.parent_op()
    return None if parent is None else (Edge(op, parent),)


for _class in SCALAR_CODE:
    edges.register(_class, _enter_regions)


@edges.register(tt.ReduceReturnOp)
@edges.register(tt.ScanReturnOp)
@edges.register(tt.MapElementwiseReturnOp)
def _combine_again(op: Operation) -> Edges | None:
    """Go on with other elements, or past the operation, which makes its results of them."""
    region = op.parent_region()
    return None if region is None or region.parent is None else (Edge(op, region.blocks[0]), Edge(op, region.parent))
