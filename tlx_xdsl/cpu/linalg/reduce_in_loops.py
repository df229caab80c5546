"""`linalg-reduce-in-loops`: what a loop accumulates for a reduction after it is reduced in each turn.

A block of accumulators is read and written in each turn. Where nothing but a reduction needs it after the loop, each
turn reduces its own elements, in registers, and the loop carries the result.

Before, for blocks of 2048 elements:
```mlir
%sums = scf.for %i = %lb to %ub step %s iter_args(%acc = %zeros) -> (tensor<2048xf32>) : i32 {
  %more = arith.addf %acc, %x : tensor<2048xf32>
  %next = arith.select %mask, %more, %acc : tensor<2048xi1>, tensor<2048xf32>
  scf.yield %next : tensor<2048xf32>
}
%sum = "tt.reduce"(%sums) <{axis = 0 : i32}> ({ ... arith.addf ... }) : (tensor<2048xf32>) -> f32
```
After:
```mlir
%sum = scf.for %i = %lb to %ub step %s iter_args(%acc = %zero) -> (f32) : i32 {
  %kept = arith.select %mask, %x, %zeros : tensor<2048xi1>, tensor<2048xf32>
  %part = "tt.reduce"(%kept) <{axis = 0 : i32}> ({ ... arith.addf ... }) : (tensor<2048xf32>) -> f32
  %next = arith.addf %acc, %part : f32
  scf.yield %next : f32
}
```
The order of a reduction is open. Sums of f16 and bf16, which each step rounds, stay as they are, and so do short rows,
whose lanes would be combined in each turn for little.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith as upstream, scf
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, Float32Type, Float64Type, IntegerType, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import is_side_effect_free

from tlx_xdsl.dialects import arith, tt
from tlx_xdsl.dialects.base import scalar_type, shape_of_tensor
from tlx_xdsl.dialects.base.tensors import splat_number
from tlx_xdsl.transforms.rewriting import Pass, constant, insert_before, ops_of

from .recognize_extrema import choice
from .slots import Slot, add_neighbour, drop_inputs, drop_operands, set_operand
from .tensors.regions import only_operation


class ReduceInLoopsPass(Pass):
    """Reduce in each turn what loops accumulate for a reduction."""

    name = "linalg-reduce-in-loops"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for loop in ops_of(op, scf.ForOp):
            # What is dropped moves those after it.
            for number in reversed(range(len(loop.iter_args))):
                if (found := _accumulated(loop, number)) is not None:
                    _reduce(loop, number, found)


_START: dict[type[Operation], float | None] = {
    upstream.AddfOp: 0, upstream.AddiOp: 0, upstream.MulfOp: 1, upstream.MuliOp: 1, upstream.XOrIOp: 0,
    **dict.fromkeys((
        upstream.MaximumfOp, upstream.MinimumfOp, upstream.MaxnumfOp, upstream.MinnumfOp, upstream.MaxSIOp,
        upstream.MinSIOp, upstream.MaxUIOp, upstream.MinUIOp, upstream.AndIOp, upstream.OrIOp,
    )),
}  # fmt: skip
"""By the operation the number from which it has to start; None: any, for it changes nothing a second time."""
_EXACT = (Float32Type, Float64Type, IntegerType)
_LONG = 64
"""Elements of a row that are worth to combine the lanes of a vector for."""
_DEPTH = 8
"""How far two masks are compared."""


@dataclass(frozen=True)
class _Accumulated:
    """A block of accumulators."""

    reduction: tt.ReduceOp
    start: float
    combine: Operation
    """The operation that makes the new accumulators of the old ones and the elements of the turn."""
    elements: SSAValue
    mask: SSAValue | None
    """Which of them count."""


def _accumulated(loop: scf.ForOp, number: int) -> _Accumulated | None:
    """The accumulators that a loop carries at a place, if they are some that a reduction alone needs."""
    argument, result = loop.body.block.args[1 + number], loop.results[number]
    reduction = _only_user(result)
    if not isinstance(reduction, tt.ReduceOp) or len(reduction.srcs) != 1 or reduction.parent is not loop.parent:
        return None
    kind = only_operation(reduction.combine_op.block)
    start = _number(loop.iter_args[number])
    if kind is None or type(kind) not in _START or start is None or _START[type(kind)] not in (None, start):
        return None
    if not isinstance(scalar_type(result.type), _EXACT):
        return None
    if shape_of_tensor(result.type)[reduction.axis.value.data] < _LONG:
        return None
    end = loop.body.block.last_op
    assert end is not None
    value, mask = end.operands[number], None
    if isinstance(value.owner, arith.SelectOp) and value.owner.operands[2] is argument and _only_user(value) is end:
        mask, value = value.owner.operands[:2]
    combine = value.owner
    if not isinstance(combine, Operation) or combine.parent is not loop.body.block or _only_user(value) is None:
        return None
    others = dict.fromkeys(each for each in combine.operands[-2:] if each is not argument)
    uses = [use.operation for use in argument.uses if use.operation is not combine]
    if len(others) != 1:
        return None
    (elements,) = others
    if type(combine) is type(kind):
        is_alone = len(uses) == (0 if mask is None else 1) and combine.operands[0] is not combine.operands[1]
    else:
        # A choice by comparisons, which uses the accumulators several times.
        made = {op for op in uses if op is not end.operands[number].owner}
        is_choice = choice(argument, elements, value) is type(kind)
        is_alone = is_choice and all(_leads_to(op, combine) for op in made)
    return _Accumulated(reduction, start, combine, elements, mask) if is_alone else None


def _leads_to(op: Operation, end: Operation) -> bool:
    """Return whether the results of an operation are for nothing but another one."""
    return op is end or all(_leads_to(use.operation, end) for result in op.results for use in result.uses)


def _only_user(value: SSAValue) -> Operation | None:
    uses = list(value.uses)
    return uses[0].operation if len(uses) == 1 else None


def _number(value: SSAValue) -> float | None:
    """The number of all elements of a constant."""
    op = value.owner
    if not isinstance(op, upstream.ConstantOp) or not isinstance(op.value, DenseIntOrFPElementsAttr):
        return None
    return splat_number(op.value) if op.value.is_splat() else None


def _reduce(loop: scf.ForOp, number: int, found: _Accumulated) -> None:
    end = loop.body.block.last_op
    assert end is not None
    slot = Slot(
        [loop.body.block.args[1 + number], loop.results[number]], [(loop, 3 + number), (end, number)]
    )  # fmt: skip
    reduction, combine = found.reduction, found.combine
    type_ = reduction.results[0].type
    part = reduction.clone({reduction.srcs[0]: _kept(found, end)})
    insert_before(end, part, located_at=combine)
    carried = add_neighbour(slot, type_)
    old, total = carried.inputs
    kind = only_operation(reduction.combine_op.block)
    assert kind is not None
    new = type(kind).create(operands=[old, part.results[0]], result_types=[type_], properties=kind.properties)
    insert_before(end, new, located_at=combine)
    set_operand(carried.operands[0], insert_before(loop, constant(found.start, type_)).result)
    set_operand(carried.operands[1], new.results[0])
    reduction.results[0].replace_all_uses_with(total)
    drop_operands([slot])
    for op in (reduction, *_users(slot.inputs[0])):
        assert op.parent is not None
        op.parent.erase_op(op)
    drop_inputs([slot])


def _users(value: SSAValue) -> list[Operation]:
    """The operations that need a value, at first or second hand, the last one first."""
    found: dict[Operation, None] = {}

    def visit(value: SSAValue) -> None:
        for use in value.uses:
            for result in use.operation.results:
                visit(result)
            found[use.operation] = None

    visit(value)
    return list(found)


def _kept(found: _Accumulated, end: Operation) -> SSAValue:
    """The elements of a turn, those that do not count replaced by the start, which changes nothing."""
    elements, mask = found.elements, found.mask
    if mask is None:
        return elements
    load = elements.owner
    # A load gives its other value where its mask does not hold.
    if isinstance(load, tt.LoadOp) and _is_zeroed(load, mask, found.start):
        return elements
    starts = insert_before(end, constant(found.start, elements.type)).result
    return insert_before(end, arith.SelectOp(mask, elements, starts)).result


def _is_zeroed(load: tt.LoadOp, mask: SSAValue, start: float) -> bool:
    """Return whether a load gives the start wherever a mask does not hold."""
    if load.mask is None or load.other is None:
        return False
    # 0 is not -0.
    return repr(_number(load.other)) == repr(start) and _is_same(load.mask, mask, _DEPTH)


def _is_same(one: SSAValue, other: SSAValue, depth: int) -> bool:
    """Return whether two values are made by the same operations of the same values."""
    if one is other:
        return True
    first, second = one.owner, other.owner
    if not isinstance(first, Operation) or not isinstance(second, Operation) or depth == 0:
        return False
    if first.name != second.name or first.properties != second.properties or first.regions:
        return False
    types: list[list[Attribute]] = [[result.type for result in op.results] for op in (first, second)]
    if not is_side_effect_free(first) or types[0] != types[1] or len(first.operands) != len(second.operands):
        return False
    return all(_is_same(a, b, depth - 1) for a, b in zip(first.operands, second.operands, strict=True))
