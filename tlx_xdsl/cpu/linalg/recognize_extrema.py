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

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TypeAlias

from xdsl.dialects import arith as scalar
from xdsl.dialects.builtin import IntegerType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import is_side_effect_free

from tlx_xdsl.dialects import arith, tt
from tlx_xdsl.dialects.base import integer_bits, is_float
from tlx_xdsl.transforms.rewriting import Pass, constant_integer, insert_before, ops_of


class RecognizeExtremaPass(Pass):
    """Give reductions that choose by comparisons the operation that does the same."""

    name = "linalg-recognize-extrema"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for reduction in ops_of(op, tt.ReduceOp):
            _recognize(reduction.combine_op.block)


class _Case(Enum):
    """How two elements compare: those of the predicates that hold (`arith.cmpf`, without the order of bits)."""

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

_Operation: TypeAlias = Callable[[SSAValue, SSAValue], Operation]

# Whether the first element is chosen, where two elements differ.
_MAXIMUM = {_Case.LESS: False, _Case.GREATER: True}
_MINIMUM = {_Case.LESS: True, _Case.GREATER: False}
_KEEPS_NAN = {_Case.FIRST_NAN: True, _Case.SECOND_NAN: False}
_DROPS_NAN = {_Case.FIRST_NAN: False, _Case.SECOND_NAN: True}

_OF_FLOATS: tuple[tuple[_Operation, Mapping[_Case, bool]], ...] = (
    (scalar.MaximumfOp, _MAXIMUM | _KEEPS_NAN),
    (scalar.MinimumfOp, _MINIMUM | _KEEPS_NAN),
    (scalar.MaxnumfOp, _MAXIMUM | _DROPS_NAN),
    (scalar.MinnumfOp, _MINIMUM | _DROPS_NAN),
)
_OF_INTEGERS: Mapping[str, tuple[tuple[_Operation, Mapping[_Case, bool]], ...]] = {
    "s": ((scalar.MaxSIOp, _MAXIMUM), (scalar.MinSIOp, _MINIMUM)),
    "u": ((scalar.MaxUIOp, _MAXIMUM), (scalar.MinUIOp, _MINIMUM)),
}


def _recognize(block: Block) -> None:
    last = block.last_op
    assert last is not None
    if len(block.args) != 2:
        return
    needed = _needed(block)
    # One operation is known by its name.
    found = _operation(block, needed) if len(needed) > 1 else None
    if found is not None:
        old = last.operands[0]
        made = insert_before(last, found(block.args[0], block.args[1]))
        made.results[0].name_hint = old.name_hint
        last.operands[0] = made.results[0]
    # What only asks for types, as inductor's functions do, leaves operations behind that nothing needs.
    for op in reversed(list(block.ops)):
        if op is not last and is_side_effect_free(op) and not any(result.uses for result in op.results):
            block.erase_op(op)


def _needed(block: Block) -> list[Operation]:
    """The operations of a block that its result depends on."""
    last = block.last_op
    assert last is not None
    waiting, found = list(last.operands), set[Operation]()
    while waiting:
        op = waiting.pop().owner
        if isinstance(op, Operation) and op.parent is block and op not in found:
            found.add(op)
            waiting.extend(op.operands)
    return [op for op in block.ops if op in found]


def _operation(block: Block, needed: Sequence[Operation]) -> _Operation | None:
    """The operation that chooses as a region does; None for one that does anything else."""
    type_ = block.args[0].type
    cases: Sequence[_Case] = tuple(_Case) if is_float(type_) else _NUMBERS
    candidates = _OF_FLOATS
    if not is_float(type_):
        # Bits are no numbers, and there is nothing to choose from in pointers.
        if integer_bits(type_) in (None, 1):
            return None
        signs = {op.predicate_name[0] for op in needed if isinstance(op, arith.CmpiOp)} & set(_OF_INTEGERS)
        if len(signs) != 1:
            return None
        candidates = _OF_INTEGERS[signs.pop()]
    choices = {case: _chosen(block, needed, case) for case in cases}
    if None in choices.values():
        return None
    for operation, wanted in candidates:
        if all(choices[case] is is_first for case, is_first in wanted.items()):
            return operation
    return None


def _chosen(block: Block, needed: Sequence[Operation], case: _Case) -> bool | None:
    """Return whether a region gives its first argument in a case; None if that can't be said."""
    first, second = block.args
    values: dict[SSAValue, bool] = {}
    """Bits as they are; of elements whether they are the first one."""
    sides: dict[SSAValue, bool] = {first: True, second: False}
    for op in needed:
        known = [values.get(value, constant_integer(value)) for value in op.operands]
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
            case scalar.AndIOp() | scalar.OrIOp() | scalar.XOrIOp() if None not in known:
                one, other = (bool(each) for each in known)
                values[op.result] = (
                    one and other if isinstance(op, scalar.AndIOp) else
                    one or other if isinstance(op, scalar.OrIOp) else one != other
                )  # fmt: skip
            case scalar.ConstantOp() if op.result.type == IntegerType(1):
                values[op.result] = bool(constant_integer(op.result))
            case _:
                return None
    last = block.last_op
    assert last is not None
    return sides.get(last.operands[0])


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
