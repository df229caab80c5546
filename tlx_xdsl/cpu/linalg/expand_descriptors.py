"""`linalg-expand-descriptors`: accesses through tensor descriptors become accesses through pointers, with masks.

A descriptor is a base, sizes and strides, in elements. A block at an index holds the elements that lie inside of the
tensor; what is outside is 0 (or NaN) when it is loaded, and is not written.

Before:
```mlir
%d = tt.make_tensor_descriptor %x, [%m], [%one] : <f32>, <64xf32>
%v = tt.descriptor_load %d[%i] : !tt.tensordesc<64xf32> -> tensor<64xf32>
```
After:
```mlir
%at = arith.addi %first, %range : tensor<64xi64>       // %i, and the position in the block
%low = arith.cmpi sge, %at, %zeros : tensor<64xi64>
%high = arith.cmpi slt, %at, %sizes : tensor<64xi64>
%mask = arith.andi %low, %high : tensor<64xi1>
%p = tt.addptr %bases, %offsets : tensor<64x!tt.ptr<f32>>, tensor<64xi64>
%v = tt.load %p, %mask, %fill : tensor<64x!tt.ptr<f32>>
```
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan

from xdsl.dialects.builtin import (
    AnyFloat,
    FunctionType,
    IntegerType,
    ModuleOp,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from tlx_xdsl.dialects import arith, tt
from tlx_xdsl.dialects.base import integer_bits, scalar_type, shape_of_tensor
from tlx_xdsl.dialects.tt.enums import DescriptorReduceKind, MemSemantic, MemSyncScope, PaddingOption, RMWOp
from tlx_xdsl.dialects.tt.types import TensorDescType
from tlx_xdsl.layouts.encodings import Ints
from tlx_xdsl.transforms.rewriting import Pass, constant, insert_before, ops_of, retype

from .blocks import Strided, block_places, elements, reshaped, splat
from .emitter import refuse
from .slots import add_neighbour, drop_inputs, drop_operands, set_operand, slots_of


class ExpandDescriptorsPass(Pass):
    """Expand all tensor descriptors of a module."""

    name = "linalg-expand-descriptors"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place.

        Raises CompilationError where the tensor of a descriptor is not known.
        """
        for function in ops_of(op, tt.FuncOp):
            _Expander(function).run()


@dataclass(frozen=True)
class _Descriptor(Strided):
    pads_with_nan: bool = False


def _is_descriptor(value: SSAValue) -> bool:
    return isinstance(value.type, TensorDescType)


class _Expander:
    """Expands the descriptors of a function."""

    def __init__(self, function: tt.FuncOp):
        self.function = function
        self.known: dict[SSAValue, _Descriptor] = {}

    def run(self) -> None:
        """Rewrite the function."""
        self._enter()
        slots = slots_of(self.function, _is_descriptor)
        parts = [[add_neighbour(slot, type_) for type_ in _part_types(slot.inputs[0].type)] for slot in slots]
        pads = any(
            PaddingOption(op.padding.value.data) is PaddingOption.PAD_NAN
            for op in ops_of(self.function, tt.MakeTensorDescOp)
        )
        for slot, neighbours in zip(slots, parts, strict=True):
            for number, input_ in enumerate(slot.inputs):
                if pads:
                    raise refuse(slot.operands[0][0], "it carries descriptors, of which some pad with NaN")
                base, *rest = (each.inputs[number] for each in neighbours)
                half = len(rest) // 2
                self.known[input_] = _Descriptor(base, tuple(rest[:half]), tuple(rest[half:]))
        made: list[Operation] = []
        for op in list(self.function.walk()):
            if isinstance(op, tt.MakeTensorDescOp):
                self.known[op.result] = _Descriptor(op.base, tuple(op.shape), tuple(op.strides), _pads_with_nan(op))
                made.append(op)
            elif (
                not op.regions
                and not op.successors
                and op.next_op is not None
                and any(map(_is_descriptor, op.operands))
            ):
                self._access(op)
        for slot, neighbours in zip(slots, parts, strict=True):
            for number, (op, at) in enumerate(slot.operands):
                found = self._of(op, op.operands[at])
                for neighbour, value in zip(neighbours, (found.base, *found.shape, *found.strides), strict=True):
                    set_operand(neighbour.operands[number], value)
        drop_operands(slots)
        drop_inputs(slots)
        for op in reversed(made):
            Rewriter.erase_op(op)
        self._leave()

    def _enter(self) -> None:
        """A descriptor among the arguments stands before its sizes (i32) and strides (i64)."""
        arguments = self.function.body.blocks[0].args
        for number, argument in enumerate(arguments):
            if not isinstance(type_ := argument.type, TensorDescType):
                continue
            rank = len(type_.shape)
            rest = arguments[number + 1 : number + 1 + 2 * rank]
            if [each.type for each in rest] != [i32] * rank + [i64] * rank:
                raise refuse(self.function, f"argument {number} is a descriptor without its sizes and strides")
            self.known[argument] = _Descriptor(argument, tuple(rest[:rank]), tuple(rest[rank:]))

    def _leave(self) -> None:
        """Let descriptors among the arguments be the pointers to their tensors."""
        arguments = self.function.body.blocks[0].args
        for argument in arguments:
            if isinstance(type_ := argument.type, TensorDescType):
                retype(argument, tt.PointerType.get(_signless(type_.element_type)))
        outputs = list(self.function.function_type.outputs.data)
        self.function.function_type = FunctionType.from_lists([each.type for each in arguments], outputs)

    def _of(self, op: Operation, value: SSAValue) -> _Descriptor:
        if (found := self.known.get(value)) is None:
            origin = f"'{value.owner.name}'" if isinstance(value.owner, Operation) else "an argument"
            raise refuse(op, f"the tensor of its descriptor is not known (it comes from {origin})")
        return found

    # Accesses --------------------------------------------------------------------------------------------------------

    def _access(self, op: Operation) -> None:
        match op:
            case tt.DescriptorLoadOp():
                block = _block_of(op.desc)
                result = self._load(op, self._block(op, op.desc, op.indices), block, op.result.type)
                op.result.replace_all_uses_with(result)
            case tt.DescriptorStoreOp():
                pointers, mask = self._block(op, op.desc, op.indices)
                insert_before(op, tt.StoreOp(pointers, reshaped(op, op.src, _block_of(op.desc)), mask))
            case tt.DescriptorReduceOp():
                self._reduce(op)
            case tt.DescriptorGatherOp():
                rows = self._rows(op, op.desc, op.x_offsets, op.y_offset)
                op.result.replace_all_uses_with(self._load(op, rows, shape_of_tensor(op.result.type), op.result.type))
            case tt.DescriptorScatterOp():
                pointers, mask = self._rows(op, op.desc, op.x_offsets, op.y_offset)
                insert_before(op, tt.StoreOp(pointers, op.src, mask))
            case _:
                raise refuse(op, "it takes a descriptor")
        Rewriter.erase_op(op)

    def _load(
        self, op: tt.DescriptorLoadOp | tt.DescriptorGatherOp, block: tuple[SSAValue, SSAValue], shape: Ints,
        type_: Attribute,
    ) -> SSAValue:  # fmt: skip
        element = scalar_type(type_)
        fill = nan if self._of(op, op.desc).pads_with_nan and isinstance(element, AnyFloat) else 0
        # A splat: xDSL takes a dense NaN for a list of different numbers.
        other = splat(op, insert_before(op, constant(fill, element)).result, shape)
        value = insert_before(op, tt.LoadOp(*block, other)).result
        return reshaped(op, value, shape_of_tensor(type_))

    def _reduce(self, op: tt.DescriptorReduceOp) -> None:
        kind = DescriptorReduceKind(op.kind.value.data)
        element = scalar_type(op.src.type)
        signed = _block_element(op.desc)
        is_unsigned = str(signed).startswith("ui")
        names = {"max": "umax", "min": "umin"} if is_unsigned else {}
        name = "fadd" if kind is DescriptorReduceKind.ADD and isinstance(element, AnyFloat) else kind.keyword
        found = next((each for each in RMWOp if each.keyword == names.get(name, name)), None)
        if found is None or (isinstance(element, AnyFloat) and found is not RMWOp.FADD):
            raise refuse(op, f"'{kind.keyword}' of {element} has no atomic operation")
        pointers, mask = self._block(op, op.desc, op.indices)
        value = reshaped(op, op.src, _block_of(op.desc))
        properties = {"atomic_rmw_op": found.attr, "sem": MemSemantic.RELAXED.attr, "scope": MemSyncScope.GPU.attr}
        reduction = tt.AtomicRMWOp.create(
            operands=[pointers, value, mask], result_types=[value.type], properties=properties
        )
        insert_before(op, reduction)

    def _block(self, op: Operation, desc: SSAValue, indices: Sequence[SSAValue]) -> tuple[SSAValue, SSAValue]:
        """The pointers of a block at indices, and the mask of what is inside of the tensor."""
        block = _block_of(desc)
        return self._pointers(op, desc, block_places(op, indices, block), block)

    def _rows(self, op: Operation, desc: SSAValue, rows: SSAValue, column: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The pointers of rows with these numbers, from a column on, and the mask."""
        shape = (shape_of_tensor(rows.type)[0], _block_of(desc)[1])
        numbers = rows if scalar_type(rows.type) == i64 else insert_before(op, arith.ExtSIOp(rows, i64)).result
        return self._pointers(op, desc, [numbers, *block_places(op, [column], shape[1:])], shape)

    def _pointers(
        self, op: Operation, desc: SSAValue, places: Sequence[SSAValue], block: Ints
    ) -> tuple[SSAValue, SSAValue]:
        """The pointers to the elements with these places (i64) along each dimension, and the mask."""
        found = self._of(op, desc)
        if len(found.shape) != len(block):
            raise refuse(op, f"the block has {len(block)} dimensions, the tensor {len(found.shape)}")
        # A descriptor among the arguments becomes a pointer at the end.
        pointer = tt.PointerType.get(_signless(_block_element(desc)))
        pointers, mask = elements(op, found, pointer, places, block, range(len(block)))
        assert mask is not None, "a block has dimensions"
        return pointers, mask


def _pads_with_nan(op: tt.MakeTensorDescOp) -> bool:
    return PaddingOption(op.padding.value.data) is PaddingOption.PAD_NAN


def _part_types(descriptor: Attribute) -> list[Attribute]:
    assert isinstance(descriptor, TensorDescType)
    rank = len(descriptor.shape)
    return [tt.PointerType.get(_signless(descriptor.element_type)), *[i32] * rank, *[i64] * rank]


def _signless(element: Attribute) -> Attribute:
    """An element as a pointer has it: a descriptor's integers may have a sign."""
    bits = integer_bits(element)
    return element if bits is None else IntegerType(bits)


def _block_of(desc: SSAValue) -> Ints:
    assert isinstance(desc.type, TensorDescType)
    return desc.type.shape


def _block_element(desc: SSAValue) -> Attribute:
    assert isinstance(desc.type, TensorDescType)
    return desc.type.element_type
