"""`linalg-expand-block-pointers`: accesses through pointers to blocks become accesses through pointers, with masks.

A pointer to a block is a tensor (a base, sizes and strides) and the place of the block in it. Control flow carries the
place; the tensor as well, where it may be one of several.

Before:
```mlir
%p = tt.make_tensor_ptr %x, [%n], [%one], [%i] {order = array<i32: 0>} : <tensor<64xf32>>
%v = tt.load %p {boundaryCheck = array<i32: 0>} : !tt.ptr<tensor<64xf32>>
```
After:
```mlir
%at = arith.addi %first, %range : tensor<64xi64>       // %i, and the position in the block
%low = arith.cmpi sge, %at, %zeros : tensor<64xi64>
%high = arith.cmpi slt, %at, %sizes : tensor<64xi64>
%mask = arith.andi %low, %high : tensor<64xi1>
%p = tt.addptr %bases, %offsets : tensor<64x!tt.ptr<f32>>, tensor<64xi64>
%v = tt.load %p, %mask : tensor<64x!tt.ptr<f32>>
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan

from xdsl.dialects import arith as upstream
from xdsl.dialects.builtin import AnyFloat, ModuleOp, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base import pointee_type, scalar_type, shape_of_tensor
from tlx_xdsl.dialects.tt.block_pointer import boundaries_of, element_pointer, is_block_pointer, padding_of
from tlx_xdsl.dialects.tt.enums import PaddingOption
from tlx_xdsl.transforms.rewriting import Pass, constant, insert_before, ops_of

from .blocks import Strided, block_places, elements, splat
from .emitter import refuse
from .slots import Slot, add_neighbour, drop_inputs, drop_operands, set_operand, slots_of


class ExpandBlockPointersPass(Pass):
    """Expand all pointers to blocks of a module."""

    name = "linalg-expand-block-pointers"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place.

        Raises CompilationError where the tensor of a block is not known.
        """
        for function in ops_of(op, tt.FuncOp):
            _expand(function)


@dataclass(frozen=True)
class _Block:
    tensor: Strided
    offsets: tuple[SSAValue, ...]
    """i32."""

    @property
    def parts(self) -> tuple[SSAValue, ...]:
        """All values that a pointer to it consists of."""
        return (self.tensor.base, *self.tensor.shape, *self.tensor.strides, *self.offsets)

    def with_parts(self, parts: Sequence[SSAValue]) -> _Block:
        """A block with the last ones of its parts replaced."""
        rank = len(self.offsets)
        base, *rest = (*self.parts[: len(self.parts) - len(parts)], *parts)
        return _Block(Strided(base, tuple(rest[:rank]), tuple(rest[rank : 2 * rank])), tuple(rest[2 * rank :]))


def _is_block(value: SSAValue) -> bool:
    return is_block_pointer(value.type)


def _made(op: tt.MakeTensorPtrOp) -> _Block:
    return _Block(Strided(op.base, tuple(op.shape), tuple(op.strides)), tuple(op.offsets))


def _expand(function: tt.FuncOp) -> None:
    slots = slots_of(function, _is_block)
    by_input = {input_: slot for slot in slots for input_ in slot.inputs}
    known: dict[SSAValue, _Block] = {}
    carried = {slot: _split(slot, _origins(slot, by_input), known) for slot in slots}
    dead: list[Operation] = []
    for op in list(function.walk()):
        match op:
            case tt.MakeTensorPtrOp():
                known[op.result] = _made(op)
                dead.append(op)
            case tt.AdvanceOp():
                known[op.result] = _advanced(op, _of(op, op.ptr, known))
                dead.append(op)
            case tt.LoadOp() | tt.StoreOp() if _is_block(op.ptr):
                _access(op, _of(op, op.ptr, known))
            case _ if any(map(_is_block, op.operands)) and not op.regions and not op.successors and op.next_op:
                raise refuse(op, "it takes a pointer to a block")
            case _:
                pass
    for slot, parts in carried.items():
        for number, (op, at) in enumerate(slot.operands):
            values = _of(op, op.operands[at], known).parts
            for part, value in zip(parts, values[len(values) - len(parts) :], strict=True):
                set_operand(part.operands[number], value)
    drop_operands(slots)
    for op in reversed(dead):
        Rewriter.erase_op(op)
    drop_inputs(slots)


def _of(op: Operation, value: SSAValue, known: Mapping[SSAValue, _Block]) -> _Block:
    if (found := known.get(value)) is None:
        raise refuse(op, "the tensor of its block is not known")
    return found


def _origins(slot: Slot, by_input: Mapping[SSAValue, Slot]) -> list[tt.MakeTensorPtrOp]:
    """Return what makes the pointers of a slot.

    Raises CompilationError for a pointer that nothing here makes.
    """
    found: dict[tt.MakeTensorPtrOp, None] = {}
    pending, seen = [slot], {slot}
    while pending:
        current = pending.pop()
        for (op, _), value in zip(current.operands, current.values, strict=True):
            while isinstance(value.owner, tt.AdvanceOp):
                value = value.owner.ptr
            if isinstance(value.owner, tt.MakeTensorPtrOp):
                found[value.owner] = None
            elif (other := by_input.get(value)) is None:
                raise refuse(op, "the tensor of its block is not known")
            elif other not in seen:
                seen.add(other)
                pending.append(other)
    return list(found)


def _split(slot: Slot, origins: Sequence[tt.MakeTensorPtrOp], known: dict[SSAValue, _Block]) -> list[Slot]:
    """Add what is carried of the parts of a pointer: all of them, unless they are of one tensor."""
    first = _made(origins[0])
    types: list[Attribute] = [i32] * len(first.offsets)
    if len(origins) > 1:
        types = [element_pointer(slot.inputs[0].type), *[i64] * (2 * len(first.offsets)), *types]
    parts = [add_neighbour(slot, type_) for type_ in types]
    for number, input_ in enumerate(slot.inputs):
        known[input_] = first.with_parts([part.inputs[number] for part in parts])
    return parts


def _advanced(op: tt.AdvanceOp, block: _Block) -> _Block:
    sums = (upstream.AddiOp(at, step) for at, step in zip(block.offsets, op.offsets, strict=True))
    return replace(block, offsets=tuple(insert_before(op, each).result for each in sums))


def _access(op: tt.LoadOp | tt.StoreOp, block: _Block) -> None:
    type_ = pointee_type(op.ptr.type)
    shape, element = shape_of_tensor(type_), scalar_type(type_)
    places = block_places(op, block.offsets, shape)
    pointers, mask = elements(op, block.tensor, element_pointer(op.ptr.type), places, shape, boundaries_of(op) or ())
    if isinstance(op, tt.StoreOp):
        insert_before(op, tt.StoreOp(pointers, op.value, mask, cache_policy=op.cache_policy))
    else:
        pads_with_nan = padding_of(op) is PaddingOption.PAD_NAN and isinstance(element, AnyFloat)
        # A splat: xDSL takes a dense NaN for a list of different numbers.
        number = insert_before(op, constant(nan if pads_with_nan else 0, element)).result
        other = None if mask is None else splat(op, number, shape)
        is_volatile = bool(op.is_volatile.value.data)
        loaded = tt.LoadOp(pointers, mask, other, cache_policy=op.cache_policy, is_volatile=is_volatile)
        op.result.replace_all_uses_with(insert_before(op, loaded).result)
    Rewriter.erase_op(op)
