"""Dimensions that can be cut together: which part of the operands gives a part of the results.

A *tie* is a set of dimensions, of operands and results of one operation. Where each of them is cut into the same number
of equal parts, the n-th parts of the results are what the operation makes of the n-th parts of those operands and of
all of the other ones. The rows of a product are tied to the rows of its first operand and of its accumulator; what a
product or a reduction sums over is in no tie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import NamedTuple, TypeAlias

from xdsl.dialects import arith as upstream_arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, Operation, SSAValue

from . import tt
from .base import EachElement, as_tensor, is_elementwise, shape_of_tensor


class Side(NamedTuple):
    """A dimension of an operand or a result."""

    is_result: bool
    number: int
    """Its place among the operands or the results."""
    dim: int

    def value(self, op: Operation) -> SSAValue:
        """Return the operand or the result of `op`."""
        return op.results[self.number] if self.is_result else op.operands[self.number]


Tie: TypeAlias = frozenset[Side]


def shape_of_value(value: SSAValue) -> tuple[int, ...]:
    """Return the shape of a tensor, or of the blocks of a descriptor; empty for anything else."""
    if isinstance(value.type, tt.DescriptorType):
        return value.type.shape
    tensor = as_tensor(value.type)
    return () if tensor is None else tensor.get_shape()


@singledispatch
def ties(op: Operation) -> Sequence[Tie]:
    """Return the ties of `op`; none where nothing is known, or nothing can be cut."""
    if op.regions or op.successors or not (is_elementwise(op) or op.has_trait(EachElement)):
        return ()
    return _one_by_one(op)


def _one_by_one(op: Operation) -> Sequence[Tie]:
    """Tie each dimension of the tensors of an operation that combines the same elements of all of them."""
    sides = _tensors(op)
    shapes = {shape_of_tensor(value.type) for _, _, value in sides}
    if len(shapes) != 1:
        return ()
    (shape,) = shapes
    return [frozenset(Side(is_result, index, dim) for is_result, index, _ in sides) for dim in range(len(shape))]


def _tensors(op: Operation) -> list[tuple[bool, int, SSAValue]]:
    """Return the tensors among the operands and the results of `op`."""
    sides = [(False, index, value) for index, value in enumerate(op.operands)]
    sides += [(True, index, value) for index, value in enumerate(op.results)]
    return [side for side in sides if as_tensor(side[2].type) is not None]


def _mapped(dims: Callable[[int], int | None]) -> Callable[[Operation], Sequence[Tie]]:
    """Make the ties of an operation with one operand: `dims` gives the one of the operand for each of the result."""

    def found(op: Operation) -> Sequence[Tie]:
        return [_pair(dims(dim), dim) for dim in range(len(shape_of_tensor(op.results[0].type)))]

    return found


def _pair(source: int | None, result: int) -> Tie:
    """Tie a dimension of the only operand to one of the only result."""
    own = Side(True, 0, result)
    return frozenset((own,) if source is None else (own, Side(False, 0, source)))


# --- the operations ---------------------------------------------------------------------------------------------------


@ties.register
def _constant(op: upstream_arith.ConstantOp) -> Sequence[Tie]:
    """Cut a tensor of one number anywhere."""
    value = op.value
    is_splat = isinstance(value, DenseIntOrFPElementsAttr) and value.is_splat()
    return _mapped(lambda _: None)(op) if is_splat else ()


@ties.register
def _range(op: tt.MakeRangeOp) -> Sequence[Tie]:
    """Cut a range: the n-th part begins n times its length later."""
    return _mapped(lambda _: None)(op)


@ties.register
def _splat(op: tt.SplatOp) -> Sequence[Tie]:
    return _mapped(lambda _: None)(op)


@ties.register
def _access(op: tt.LoadOp) -> Sequence[Tie]:
    return _one_by_one(op) if as_tensor(op.ptr.type) is not None else ()


@ties.register
def _store(op: tt.StoreOp) -> Sequence[Tie]:
    return _one_by_one(op) if as_tensor(op.ptr.type) is not None else ()


@ties.register(tt.AtomicRMWOp)
@ties.register(tt.AtomicCASOp)
@ties.register(tt.AssertOp)
@ties.register(tt.ExternElementwiseOp)
def _each_element(op: Operation) -> Sequence[Tie]:
    return _one_by_one(op)


@ties.register
def _map(op: tt.MapElementwiseOp) -> Sequence[Tie]:
    """Cut what a function maps one by one: which elements come together else is up to the layout."""
    return _one_by_one(op) if op.pack.value.data == 1 else ()


@ties.register
def _inline_assembly(op: tt.ElementwiseInlineAsmOp) -> Sequence[Tie]:
    return _one_by_one(op) if op.packed_element.value.data == 1 else ()


@ties.register
def _expand_dims(op: tt.ExpandDimsOp) -> Sequence[Tie]:
    axis = op.axis.value.data
    dims = [dim for dim in range(len(shape_of_tensor(op.result.type))) if dim != axis]
    return [_pair(dim - (dim > axis), dim) for dim in dims]


@ties.register
def _broadcast(op: tt.BroadcastOp) -> Sequence[Tie]:
    """Cut a repeated dimension in the result alone."""
    source, result = shape_of_tensor(op.src.type), shape_of_tensor(op.result.type)
    return _mapped(lambda dim: dim if source[dim] == result[dim] else None)(op)


@ties.register
def _transpose(op: tt.TransOp) -> Sequence[Tie]:
    order = tuple(op.order.get_values())
    return _mapped(lambda dim: order[dim])(op)


@ties.register
def _reshape(op: tt.ReshapeOp) -> Sequence[Tie]:
    """Tie the slowest dimensions of what is merged or split."""
    if op.allow_reorder is not None:
        return ()
    return [
        _pair(before, after)
        for before, after in _slowest(shape_of_tensor(op.src.type), shape_of_tensor(op.result.type))
    ]


def _slowest(source: Sequence[int], result: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first dimensions larger than 1 of the smallest runs of both shapes with the same elements."""
    found: list[tuple[int, int]] = []
    before = after = 0
    while True:
        while before < len(source) and source[before] == 1:
            before += 1
        while after < len(result) and result[after] == 1:
            after += 1
        if before == len(source) or after == len(result):
            return found
        found.append((before, after))
        elements, of_result = source[before], result[after]
        before, after = before + 1, after + 1
        while elements != of_result:
            if elements < of_result:
                elements, before = elements * source[before], before + 1
            else:
                of_result, after = of_result * result[after], after + 1


@ties.register(tt.JoinOp)
@ties.register(tt.SplitOp)
def _halves(op: Operation) -> Sequence[Tie]:
    """Tie all dimensions but the last one of the whole, along which the halves lie."""
    sides = _tensors(op)
    rank = min(len(shape_of_tensor(value.type)) for _, _, value in sides)
    return [frozenset(Side(is_result, index, dim) for is_result, index, _ in sides) for dim in range(rank)]


@ties.register
def _reduce(op: tt.ReduceOp) -> Sequence[Tie]:
    axis, rank = op.axis.value.data, len(shape_of_tensor(op.srcs[0].type))
    return [
        frozenset(
            Side(is_result, index, dim - (is_result and dim > axis))
            for is_result, values in ((False, op.operands), (True, op.results))
            for index in range(len(values))
        )
        for dim in range(rank)
        if dim != axis
    ]


@ties.register
def _scan(op: tt.ScanOp) -> Sequence[Tie]:
    return _all_but(_one_by_one(op), op.axis.value.data)


@ties.register
def _gather(op: tt.GatherOp) -> Sequence[Tie]:
    """Cut a dimension beside the axis where the indices have all of it."""
    source, indices = shape_of_tensor(op.src.type), shape_of_tensor(op.indices.type)
    dims = [dim for dim in range(len(source)) if dim != op.axis.value.data and source[dim] == indices[dim]]
    return [frozenset((Side(False, 0, dim), Side(False, 1, dim), Side(True, 0, dim))) for dim in dims]


def _all_but(found: Sequence[Tie], axis: int) -> Sequence[Tie]:
    """Leave out the tie of one dimension."""
    return [tie for tie in found if all(side.dim != axis for side in tie)]


@ties.register
def _dot(op: tt.DotOp) -> Sequence[Tie]:
    return _product(op, op.a, op.b, op.c)


@ties.register
def _dot_scaled(op: tt.DotScaledOp) -> Sequence[Tie]:
    """Tie rows and columns, each with the scales along them, where no two of them are packed into one element."""
    rows, columns = _product(op, op.a, op.b, op.c)[-2:]
    found: list[Tie] = []
    for tie, scale, is_packed_along_k in (
        (rows, op.a_scale, op.lhs_k_pack.value.data),
        (columns, op.b_scale, op.rhs_k_pack.value.data),
    ):
        if is_packed_along_k:
            has_scale = () if scale is None else (Side(False, op.operands.index(scale), _rank(scale.type) - 2),)
            found.append(tie | frozenset(has_scale))
    return found


def _product(op: Operation, a: SSAValue, b: SSAValue, c: SSAValue) -> Sequence[Tie]:
    """Tie each dimension of a stack, the rows, and the columns."""
    assert list(op.operands[:3]) == [a, b, c]
    rank = _rank(c.type)
    whole = [Side(False, 2, dim) for dim in range(rank)], [Side(True, 0, dim) for dim in range(rank)]
    accumulators = list(zip(*whole, strict=True))
    stacks = [frozenset((Side(False, 0, dim), Side(False, 1, dim), *accumulators[dim])) for dim in range(rank - 2)]
    rows = frozenset((Side(False, 0, rank - 2), *accumulators[rank - 2]))
    columns = frozenset((Side(False, 1, rank - 1), *accumulators[rank - 1]))
    return [*stacks, rows, columns]


def _rank(type_: Attribute) -> int:
    return len(shape_of_tensor(type_))


@ties.register
def _make_descriptor(op: tt.MakeTensorDescOp) -> Sequence[Tie]:
    """Cut the blocks: the tensor in memory stays."""
    return [frozenset((Side(True, 0, dim),)) for dim in range(len(op.result.type.shape))]


@ties.register(tt.DescriptorLoadOp)
@ties.register(tt.DescriptorStoreOp)
@ties.register(tt.DescriptorReduceOp)
def _block(op: tt.DescriptorLoadOp | tt.DescriptorStoreOp | tt.DescriptorReduceOp) -> Sequence[Tie]:
    """Tie the block of the descriptor to the tensor: the n-th part of a block begins n times its length later."""
    ((is_result, index, tensor),) = _tensors(op)
    rank = _rank(tensor.type)
    lead = len(shape_of_value(op.desc)) - rank
    return [
        frozenset((Side(False, op.operands.index(op.desc), lead + dim), Side(is_result, index, dim)))
        for dim in range(rank)
    ]


@ties.register
def _gather_rows(op: tt.DescriptorGatherOp) -> Sequence[Tie]:
    return [frozenset((Side(False, op.operands.index(op.x_offsets), 0), Side(True, 0, 0)))]


@ties.register
def _scatter_rows(op: tt.DescriptorScatterOp) -> Sequence[Tie]:
    offsets, source = op.operands.index(op.x_offsets), op.operands.index(op.src)
    return [frozenset((Side(False, offsets, 0), Side(False, source, 0)))]
