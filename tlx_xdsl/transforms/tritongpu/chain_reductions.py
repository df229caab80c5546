"""`tlx-chain-reductions`: reduce the rows of Hopper's accumulators one block of columns after the other.

Upstream Triton reduces the elements that one thread has of a row as a tree (since 3.8) or as one chain (3.6, 3.7). A
tree needs all elements at once: ptxas then puts the whole softmax of an attention kernel after the last of them. Here
the columns are taken in blocks of 8, of which each thread has two, and the blocks are combined in order; upstream
reduces the last one. Each row so has two chains in a thread, which need few registers and let the exponentials start
early.

Before:
```mlir
%m = "tt.reduce"(%s) <{axis = 1 : i32}> ({ ... arith.maxnumf ... }) : (tensor<64x16xf32>) -> tensor<64xf32>
```
After:
```mlir
%0 = tt.reshape %s : tensor<64x16xf32> -> tensor<64x2x8xf32>
%1 = tt.trans %0 {order = array<i32: 0, 2, 1>} : tensor<64x2x8xf32> -> tensor<64x8x2xf32>
%left, %right = tt.split %1 : tensor<64x8x2xf32> -> tensor<64x8xf32>
%2 = arith.maxnumf %left, %right : tensor<64x8xf32>
%m = "tt.reduce"(%2) <{axis = 1 : i32}> ({ ... arith.maxnumf ... }) : (tensor<64x8xf32>) -> tensor<64xf32>
```
Done in innermost loops, for sums and extrema in f32 of what was computed from the result of `ttng.warp_group_dot`
element by element, where each warp has whole rows: taking columns apart is then a choice of registers, and no
instruction. On an H200, attention with heads of 64 elements became 4 % faster by it with Triton 3.9.0, and 1 % with
3.6.0; with 128 elements 0 to 0.8 % (docs/attention.md).
"""

from __future__ import annotations

from enum import Enum, auto

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, TensorType, f32, i32
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tlx_xdsl.dialects import tt, ttng
from tlx_xdsl.dialects.base import as_tensor, enclosing, num_warps_of
from tlx_xdsl.dialects.scf import LOOPS

from ..rewriting import Pass, insert_before

BLOCK_COLUMNS = 8
"""Columns of a block of the accumulator's layout, which the lanes of a warp share (PTX ISA, wgmma, "Register Fragments
and Shared Memory Matrix Layouts": D)."""

WARP_ROWS = 16
"""Rows of the accumulator that one warp has (the same figure)."""

_COMBINERS = (arith.AddfOp, arith.MaximumfOp, arith.MaxnumfOp, arith.MinimumfOp, arith.MinnumfOp)


class ChainReductionsPass(Pass):
    """Take the reductions of accumulators' rows apart into blocks of columns."""

    name = "tlx-chain-reductions"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place; the time is linear in its operations."""
        known: dict[SSAValue, _Origin] = {}
        ops = list(op.walk())
        outer = {loop for inner in ops if isinstance(inner, LOOPS) and (loop := _loop_of(inner)) is not None}
        for inner in ops:
            if isinstance(inner, tt.ReduceOp) and (combiner := _combiner(inner)) is not None:
                loop, type_ = _loop_of(inner), _rows_of_warps(inner)
                if loop in outer or loop is None or type_ is None:
                    continue
                if _origin(inner.srcs[0], known) is _Origin.MMA:
                    _chain(inner, type_, combiner)


def _loop_of(op: Operation) -> Operation | None:
    return enclosing(op.parent_op(), *LOOPS)


def _combiner(op: tt.ReduceOp) -> Operation | None:
    """The operation that combines two elements, where it is a single one of `_COMBINERS`."""
    first = op.combine_op.block.first_op
    if isinstance(first, _COMBINERS) and isinstance(first.next_op, tt.ReduceReturnOp):
        arguments = op.combine_op.block.args
        if {*first.operands} == {*arguments} and [*first.next_op.operands] == [first.result]:
            return first
    return None


def _rows_of_warps(op: tt.ReduceOp) -> TensorType[Attribute] | None:
    """The type of the only operand, where its rows are reduced, and each warp has rows of its own."""
    if len(op.srcs) != 1 or op.axis.value.data != 1 or (type_ := as_tensor(op.srcs[0].type)) is None:
        return None
    warps = num_warps_of(op)
    shape = type_.get_shape()
    if type_.element_type != f32 or len(shape) != 2 or warps is None or shape[1] < 2 * BLOCK_COLUMNS:
        return None
    return type_ if shape[0] % (WARP_ROWS * warps) == 0 else None


class _Origin(Enum):
    """The origin of the elements of a tensor."""

    SPREAD = auto()
    """From constants, rows or columns, spread out: such a tensor gets the layout of its users."""
    MMA = auto()
    """From the result of an MMA in registers, element by element, and from what is spread out."""
    OTHER = auto()
    """From elsewhere as well, where columns may belong to different threads."""


def _origin(value: SSAValue, known: dict[SSAValue, _Origin]) -> _Origin:
    """The origin of the elements of a tensor; `known` keeps the answers."""
    pending = [value]
    while pending:
        this = pending[-1]
        sources = _sources(this)
        if this not in known and (unknown := [source for source in sources if source not in known]):
            pending.extend(unknown)
            continue
        if this not in known:
            known[this] = _combined(this, [known[source] for source in sources])
        pending.pop()
    return known[value]


def _combined(value: SSAValue, sources: list[_Origin]) -> _Origin:
    if isinstance(value.owner, ttng.WarpGroupDotOp | ttng.WarpGroupDotWaitOp):
        return _Origin.MMA
    if isinstance(value.owner, arith.ConstantOp | tt.SplatOp | tt.BroadcastOp):
        return _Origin.SPREAD
    if not _is_elementwise(value) or _Origin.OTHER in sources:
        return _Origin.OTHER
    return _Origin.MMA if _Origin.MMA in sources else _Origin.SPREAD


def _is_elementwise(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and value.owner.name.partition(".")[0] in ("arith", "math")


def _sources(value: SSAValue) -> list[SSAValue]:
    """The tensors of the same shape from which `value` is computed element by element."""
    op = value.owner
    if isinstance(op, Block) or not _is_elementwise(value):
        return []
    shape = _shape(value)
    return [operand for operand in op.operands if _shape(operand) == shape]


def _shape(value: SSAValue) -> tuple[int, ...] | None:
    tensor = as_tensor(value.type)
    return None if tensor is None else tensor.get_shape()


def _chain(op: tt.ReduceOp, type_: TensorType[Attribute], combiner: Operation) -> None:
    blocks = _blocks(op, op.srcs[0], type_)
    result = blocks[0]
    for block in blocks[1:]:
        joined = type(combiner).create(
            operands=[result, block],
            result_types=[result.type],
            properties=combiner.properties.copy(),
            attributes=combiner.attributes.copy(),
        )
        result = insert_before(op, joined).results[0]
    op.operands[0] = result


def _blocks(anchor: Operation, value: SSAValue, type_: TensorType[Attribute]) -> list[SSAValue]:
    """The blocks of columns of a tensor, from left to right."""
    rows, columns = type_.get_shape()
    if columns == BLOCK_COLUMNS:
        return [value]
    half = columns // 2
    halves, pairs, part = ((rows, 2, half), (rows, half, 2), (rows, half))
    apart = tt.ReshapeOp.create(operands=[value], result_types=[TensorType(f32, halves)])
    order = DenseArrayBase.from_list(i32, [0, 2, 1])
    turned = tt.TransOp.create(
        operands=[insert_before(anchor, apart).result],
        result_types=[TensorType(f32, pairs)],
        properties={"order": order},
    )
    result = TensorType(f32, part)
    split = tt.SplitOp.create(operands=[insert_before(anchor, turned).result], result_types=[result, result])
    left, right = insert_before(anchor, split).results
    return [*_blocks(anchor, left, result), *_blocks(anchor, right, result)]
