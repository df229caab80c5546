"""Emits index arithmetic, loops and views of memory at one place, with one location."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager

from xdsl.dialects import arith as upstream, scf, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, LocationAttr, MemRefType, TensorType, i64
from xdsl.dialects.memref import AllocOp, SubviewOp as UpstreamSubview
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tlx_xdsl.dialects import arith, memref
from tlx_xdsl.dialects.base import as_tensor
from tlx_xdsl.dialects.memref import ranked
from tlx_xdsl.dialects.scf import WhileOp
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.diagnostics import error_at

from .scalars import Scalars

Index = SSAValue | int
"""An index, as a number if it is one (MLIR's `OpFoldResult`)."""
INDEX = IndexType()


class Emitter:
    """Emits operations before an operation, and inside of what it has opened there."""

    def __init__(self, scalars: Scalars, anchor: Operation):
        self.scalars = scalars
        self._anchor = anchor
        self._point = InsertPoint.before(anchor)
        self.location: LocationAttr = anchor.location

    def add(self, op: Operation) -> Operation:
        """Insert an operation."""
        op.location = self.location
        Rewriter.insert_op(op, self._point)
        return op

    def value(self, op: Operation) -> SSAValue:
        """Insert an operation with one result."""
        return self.add(op).results[0]

    # Numbers ---------------------------------------------------------------------------------------------------------

    def operand(self, index: Index) -> SSAValue:
        """An index as a value."""
        return self.scalars.number(index, 64, for_=self._anchor) if isinstance(index, int) else index

    def plus(self, left: Index, right: Index) -> Index:
        """The sum."""
        if isinstance(left, int) and isinstance(right, int):
            return left + right
        if left == 0 or right == 0:
            return right if left == 0 else left
        return self.value(upstream.AddiOp(self.operand(left), self.operand(right)))

    def minus(self, left: Index, right: Index) -> Index:
        """The difference."""
        if isinstance(left, int) and isinstance(right, int):
            return left - right
        return left if right == 0 else self.value(upstream.SubiOp(self.operand(left), self.operand(right)))

    def times(self, left: Index, right: Index) -> Index:
        """The product."""
        if isinstance(left, int) and isinstance(right, int):
            return left * right
        if left == 0 or right == 0:
            return 0
        if left == 1 or right == 1:
            return right if left == 1 else left
        return self.value(upstream.MuliOp(self.operand(left), self.operand(right)))

    def least(self, left: Index, right: Index) -> Index:
        """The smaller one."""
        if isinstance(left, int) and isinstance(right, int):
            return min(left, right)
        return self.value(upstream.MinSIOp(self.operand(left), self.operand(right)))

    def as_index(self, value: SSAValue, *, signed: bool = True) -> SSAValue:
        """An integer of any width as an index."""
        if isinstance(value.type, IndexType):
            return value
        # xDSL has no `arith.index_castui`.
        number = value if signed or value.type == i64 else self.value(arith.ExtUIOp(value, i64))
        return self.value(upstream.IndexCastOp(number, INDEX))

    # Control flow ----------------------------------------------------------------------------------------------------

    @contextmanager
    def loop(self, lower: Index, upper: Index) -> Generator[SSAValue]:
        """Run what is emitted for each index from `lower` to `upper - 1`."""
        block = Block(arg_types=[INDEX])
        first, end, step = (self.operand(each) for each in (lower, upper, 1))
        self.add(scf.ForOp(first, end, step, [], Region(block)))
        with self.inside(block, scf.YieldOp()):
            yield block.args[0]

    @contextmanager
    def elements(self, shape: Sequence[int]) -> Generator[list[Index]]:
        """Run what is emitted for each position of a tensor."""
        with ExitStack() as stack:
            yield [0 if size == 1 else stack.enter_context(self.loop(0, size)) for size in shape]

    @contextmanager
    def when(self, condition: SSAValue | None) -> Generator[None]:
        """Run what is emitted if the condition holds; always without one."""
        if condition is None:
            yield
            return
        block = Block()
        self.add(scf.IfOp(condition, [], Region(block)))
        with self.inside(block, scf.YieldOp()):
            yield

    @contextmanager
    def chunks(self, lower: Index, upper: Index) -> Generator[tuple[SSAValue, list[Index]]]:
        """Run what is emitted from position `lower` on while it is below `upper`.

        Gives the position and a list, to which the length of the chunk that begins there is added.
        """
        before, after = Block(arg_types=[INDEX]), Block(arg_types=[INDEX])
        start, end = self.operand(lower), self.operand(upper)
        self.add(WhileOp([start], [INDEX], Region(before), Region(after)))
        with self.inside(before):
            goes_on = self.value(arith.CmpiOp("slt", before.args[0], end))
            self.add(scf.ConditionOp(goes_on, before.args[0]))
        length: list[Index] = []
        with self.inside(after):
            yield after.args[0], length
            self.add(scf.YieldOp(self.operand(self.plus(after.args[0], length[0]))))

    @contextmanager
    def inside(self, block: Block, end: Operation | None = None) -> Generator[None]:
        """Emit at the end of a block, which `end` terminates."""
        outer, self._point = self._point, InsertPoint.at_end(block)
        yield
        if end is not None:
            self.add(end)
        self._point = outer

    # Tensors and memory ----------------------------------------------------------------------------------------------

    def buffer(self, shape: Sequence[int], element: Attribute) -> SSAValue:
        """New memory."""
        return self.value(AllocOp([], [], MemRefType(element, shape)))

    def load(self, memory: SSAValue, positions: Sequence[Index]) -> SSAValue:
        """An element of memory."""
        return self.value(memref.LoadOp.get(memory, [self.operand(each) for each in positions]))

    def store(self, value: SSAValue, memory: SSAValue, positions: Sequence[Index]) -> None:
        """Write an element of memory."""
        self.add(memref.StoreOp.get(value, memory, [self.operand(each) for each in positions]))

    def element(self, value: SSAValue, positions: Sequence[Index]) -> SSAValue:
        """An element of a tensor; a scalar is its own."""
        if as_tensor(value.type) is None:
            return value
        return self.value(tensor.ExtractOp(value, [self.operand(each) for each in positions], _element(value)))

    def part(self, memory: SSAValue, offsets: Sequence[Index], sizes: Sequence[Index]) -> SSAValue:
        """A box of memory; all of it without an operation."""
        type_ = ranked(memory.type)
        if all(offset == 0 for offset in offsets) and tuple(sizes) == tuple(type_.get_shape()):
            return memory
        steps = [1] * len(offsets)
        lists = [[each if isinstance(each, int) else DYNAMIC_INDEX for each in values] for values in (offsets, sizes)]
        shown = [[each if isinstance(each, int) else None for each in values] for values in (offsets, sizes)]
        result = UpstreamSubview.infer_result_type(type_, shown[0], shown[1], steps)  # pyright: ignore
        dynamic = [[each for each in values if not isinstance(each, int)] for values in (offsets, sizes)]
        return self.value(memref.SubviewOp(memory, *dynamic, [], *lists, steps, result))  # pyright: ignore

    def slice(self, value: SSAValue, offsets: Sequence[Index], sizes: Sequence[Index]) -> SSAValue:
        """A box of a tensor; all of it without an operation."""
        type_ = as_tensor(value.type)
        assert type_ is not None
        if all(offset == 0 for offset in offsets) and tuple(sizes) == tuple(type_.get_shape()):
            return value
        shape = [each if isinstance(each, int) else DYNAMIC_INDEX for each in sizes]
        result = TensorType(type_.element_type, shape)
        return self.value(tensor.ExtractSliceOp(value, offsets, sizes, [1] * len(sizes), result))


def _element(value: SSAValue) -> Attribute:
    type_ = as_tensor(value.type)
    assert type_ is not None
    return type_.element_type


# The error for what has no lowering.


def refuse(op: Operation, reason: str) -> CompilationError:
    """Return the error for an operation that cannot be lowered, at its line."""
    return error_at(op, f"'{op.name}' cannot be lowered to linalg: {reason}")
