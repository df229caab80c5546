"""`linalg-recognize-extrema`: a reduction whose region chooses the larger of two elements becomes one of `maximumf`.

Kernels write a maximum that keeps NaN, such as that of inductor, as comparisons and a choice. One operation has a
neutral element, may be done in any order, and is an instruction.

Before:
```mlir
%r = "tt.reduce"(%x) <{axis = 0 : i32}> ({
^bb0(%a: f32, %b: f32):
  %greater = arith.cmpf ogt, %a, %b : f32
  %nan = arith.cmpf une, %a, %a : f32
  %first = arith.ori %greater, %nan : i1
  %chosen = arith.select %first, %a, %b : f32
  tt.reduce.return %chosen : f32
}) : (tensor<64xf32>) -> f32
```
After:
```mlir
%r = "tt.reduce"(%x) <{axis = 0 : i32}> ({
^bb0(%a: f32, %b: f32):
  %chosen = arith.maximumf %a, %b : f32
  tt.reduce.return %chosen : f32
}) : (tensor<64xf32>) -> f32
```
The region is evaluated for every way in which two elements can compare: less, equal or greater, and one or both NaN.
It must choose what the operation chooses in each. Of two equal elements, or two NaN, it may choose either: a
`tt.reduce` leaves the order open, so that the result may be either zero of 0 and -0. `maximumf` gives 0, the greater.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from xdsl.dialects import arith as scalar
from xdsl.dialects.builtin import ModuleOp, i1
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import is_side_effect_free

from tlx_xdsl.dialects import arith, tt
from tlx_xdsl.dialects.base import integer_bits, is_float, scalar_type
from tlx_xdsl.transforms.rewriting import Pass, constant_integer, insert_before, ops_of


class RecognizeExtremaPass(Pass):
    """Give reductions that choose by comparisons the operation that does the same."""

    name = "linalg-recognize-extrema"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for reduction in ops_of(op, tt.ReduceOp):
            _recognize(reduction.combine_op.block)


class _Case(Enum):
    """A way in which two elements compare."""

    LESS = "lt"
    EQUAL = "eq"
    GREATER = "gt"
    FIRST_NAN = "first"
    SECOND_NAN = "second"
    BOTH_NAN = "both"


_NUMBERS = (_Case.LESS, _Case.EQUAL, _Case.GREATER)
_SWAPPED = {_Case.LESS: _Case.GREATER, _Case.GREATER: _Case.LESS}
_HOLDS: Mapping[str, frozenset[_Case]] = {
    "eq": frozenset({_Case.EQUAL}), "ne": frozenset({_Case.LESS, _Case.GREATER}),
    "lt": frozenset({_Case.LESS}), "le": frozenset({_Case.LESS, _Case.EQUAL}),
    "gt": frozenset({_Case.GREATER}), "ge": frozenset({_Case.GREATER, _Case.EQUAL}),
}  # fmt: skip
"""By a comparison without its first letter the cases of numbers in which it holds."""

# Whether the first element is chosen, where two elements differ.
_MAXIMUM = {_Case.LESS: False, _Case.GREATER: True}
_MINIMUM = {_Case.LESS: True, _Case.GREATER: False}
_KEEPS_NAN = {_Case.FIRST_NAN: True, _Case.SECOND_NAN: False}
_DROPS_NAN = {_Case.FIRST_NAN: False, _Case.SECOND_NAN: True}

_OF_FLOATS: tuple[tuple[type[Operation], Mapping[_Case, bool]], ...] = (
    (scalar.MaximumfOp, _MAXIMUM | _KEEPS_NAN),
    (scalar.MinimumfOp, _MINIMUM | _KEEPS_NAN),
    (scalar.MaxnumfOp, _MAXIMUM | _DROPS_NAN),
    (scalar.MinnumfOp, _MINIMUM | _DROPS_NAN),
)
_OF_INTEGERS: Mapping[str, tuple[tuple[type[Operation], Mapping[_Case, bool]], ...]] = {
    "s": ((scalar.MaxSIOp, _MAXIMUM), (scalar.MinSIOp, _MINIMUM)),
    "u": ((scalar.MaxUIOp, _MAXIMUM), (scalar.MinUIOp, _MINIMUM)),
}


def _recognize(block: Block) -> None:
    last = block.last_op
    assert last is not None
    if len(block.args) != 2:
        return
    first, second = block.args
    old = last.operands[0]
    found = choice(first, second, old)
    if found is not None and not isinstance(old.owner, found):
        made = insert_before(last, found.create(operands=[first, second], result_types=[old.type]))
        made.results[0].name_hint = old.name_hint
        last.operands[0] = made.results[0]
    # Nothing needs the operations that ask for types, as those of inductor's functions do.
    for op in reversed(list(block.ops)):
        if op is not last and is_side_effect_free(op) and not any(result.uses for result in op.results):
            block.erase_op(op)


def choice(first: SSAValue, second: SSAValue, result: SSAValue) -> type[Operation] | None:
    """The operation that chooses between two values, or their elements, as the operations of `result` do; else None."""
    needed = _needed(first, second, result)
    type_ = scalar_type(first.type)
    candidates = _OF_FLOATS
    if not is_float(type_):
        signs = {op.predicate_name[0] for op in needed if isinstance(op, arith.CmpiOp)} & set(_OF_INTEGERS)
        # Bits are no numbers, and there is nothing to choose from in pointers.
        if integer_bits(type_) in (None, 1) or len(signs) != 1:
            return None
        candidates = _OF_INTEGERS[signs.pop()]
    cases = tuple(_Case) if is_float(type_) else _NUMBERS
    choices = {case: _chosen(first, second, result, needed, case) for case in cases}
    if None in choices.values():
        return None
    for operation, wanted in candidates:
        if all(choices[case] is is_first for case, is_first in wanted.items()):
            return operation
    return None


_MOST = 16
"""Operations of a choice."""


def _needed(first: SSAValue, second: SSAValue, result: SSAValue) -> list[Operation]:
    """The operations that a result depends on, back to the two values, in their order; none where they are many."""
    found: list[Operation] = []

    def visit(value: SSAValue) -> None:
        op = value.owner
        if value in (first, second) or not isinstance(op, Operation) or op in found or len(found) > _MOST:
            return
        for operand in op.operands:
            visit(operand)
        found.append(op)

    visit(result)
    return found if len(found) <= _MOST else []


def _chosen(
    first: SSAValue, second: SSAValue, result: SSAValue, needed: Sequence[Operation], case: _Case
) -> bool | None:
    """Return whether a result is the first of two values in a case; None if that can't be said."""
    values: dict[SSAValue, bool] = {}
    """Bits as they are."""
    sides = {first: True, second: False}
    """Whether a value is the first one."""
    for op in needed:
        match op:
            case arith.CmpfOp() | arith.CmpiOp():
                if op.lhs not in sides or op.rhs not in sides:
                    return None
                values[op.result] = _holds(op, sides[op.lhs], sides[op.rhs], case)
            case arith.SelectOp():
                condition, *both = op.operands
                if condition not in values:
                    return None
                value = both[0 if values[condition] else 1]
                if value in sides:
                    sides[op.result] = sides[value]
                elif value in values:
                    values[op.result] = values[value]
                else:
                    return None
            case scalar.AndIOp() | scalar.OrIOp() | scalar.XOrIOp() if all(each in values for each in op.operands):
                one, other = (values[each] for each in op.operands)
                values[op.result] = (
                    one and other if isinstance(op, scalar.AndIOp) else
                    one or other if isinstance(op, scalar.OrIOp) else one != other
                )  # fmt: skip
            case scalar.ConstantOp() if op.result.type == i1:
                values[op.result] = bool(constant_integer(op.result))
            case _:
                return None
    return sides.get(result)


def _holds(op: arith.CmpfOp | arith.CmpiOp, is_first: bool, with_first: bool, case: _Case) -> bool:
    """Return whether a comparison of two of the elements holds in a case."""
    name = op.predicate_name
    if isinstance(op, arith.CmpiOp) and name in ("eq", "ne"):
        name = f"o{name}"
    if name in ("true", "false"):
        return name == "true"
    is_nan = {
        True: case in (_Case.FIRST_NAN, _Case.BOTH_NAN),
        False: case in (_Case.SECOND_NAN, _Case.BOTH_NAN),
    }
    unordered = is_nan[is_first] or is_nan[with_first]
    if name in ("ord", "uno"):
        return unordered == (name == "uno")
    if unordered:
        return name[0] == "u"
    if is_first == with_first:
        case = _Case.EQUAL
    elif not is_first:
        case = _SWAPPED.get(case, case)
    return case in _HOLDS[name[1:]]
