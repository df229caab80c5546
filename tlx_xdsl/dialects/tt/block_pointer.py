"""Block pointers, which Triton has up to version 3.7: blocks of a tensor in global memory that move."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import DenseArrayBase, IntegerType, i32, i64
from xdsl.ir import Attribute, Operation
from xdsl.irdl import (
    IRDLOperation,
    SameVariadicOperandSize,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.irdl.declarative_assembly_format import (
    CustomDirective,
    ParsingState,
    PrintingState,
    TypeDirective,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from ..base import (
    POINTER,
    TritonOp,
    as_tensor,
    parse_stripped,
    pointee_type,
    print_stripped,
    same,
    scalar_type,
    shape_of_tensor,
    stripped_directive,
)
from .enums import PaddingOption
from .types import PointerType


def element_pointer(type_: Attribute) -> Attribute:
    """A pointer to an element of the tensor that a block pointer points into.

    Raises VerifyException for any other pointer.
    """
    if not isinstance(type_, PointerType) or not is_block_pointer(type_):
        raise VerifyException(f"expected a pointer to a tensor, found {type_}")
    return PointerType(scalar_type(type_.pointee), type_.address_space)


def is_block_pointer(type_: Attribute) -> bool:
    """Return whether a type is that of pointers to whole blocks, `!tt.ptr<tensor<64x64xf16>>`."""
    return isinstance(type_, PointerType) and as_tensor(type_.pointee) is not None


def boundaries_of(access: Operation) -> tuple[int, ...] | None:
    """The dimensions along which a load or a store stays inside of the tensor; None where it says nothing of them.

    Raises VerifyException for what are no numbers.
    """
    if (held := access.attributes.get("boundaryCheck")) is None:
        return None
    if not isa(held, DenseArrayBase[IntegerType]):
        raise VerifyException(f"boundaryCheck must be an array of dimensions, found {held}")
    return tuple(held.get_values())


def padding_of(access: Operation) -> PaddingOption | None:
    """Return what a load gives outside of the tensor.

    Raises VerifyException for what is none of the values.
    """
    if (held := access.attributes.get("padding")) is None:
        return None
    found = next((option for option in PaddingOption if option.attr == held), None)
    if found is None:
        raise VerifyException(f"padding must be 1 (zero) or 2 (nan), found {held}")
    return found


@irdl_custom_directive
class BlockAndBase(CustomDirective):
    """The type of a pointer to a block, without its name; that of the tensor's first element follows from it."""

    block: TypeDirective
    base: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Parse the type."""
        position = parser.pos
        type_ = parse_stripped(parser, PointerType)
        if not is_block_pointer(type_):
            parser.raise_error(f"expected a pointer to a tensor, found {type_}", position)
        self.block.set(state, (type_,))
        self.base.set(state, (element_pointer(type_),))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print the type."""
        (type_,) = self.block.get(op)
        assert isinstance(type_, PointerType)
        state.print_whitespace(printer)
        print_stripped(printer, type_)


@irdl_op_definition
class MakeTensorPtrOp(TritonOp):
    """A pointer to the block at `offsets` of the tensor at `base` with that shape and those strides, in elements.

    Example: `%p = tt.make_tensor_ptr %x, [%m, %n], [%s, %one], [%i, %j] {order = array<i32: 1, 0>} : <tensor<8x8xf16>>`
    """

    name = "tt.make_tensor_ptr"

    base = operand_def(POINTER)
    shape = var_operand_def(i64)
    strides = var_operand_def(i64)
    offsets = var_operand_def(i32)
    order = prop_def(DenseArrayBase)
    result = result_def(POINTER)

    irdl_options = (SameVariadicOperandSize(),)
    traits = traits_def(Pure())
    custom_directives = (BlockAndBase,)
    assembly_format = (
        "$base `,` `[` $shape `]` `,` `[` $strides `]` `,` `[` $offsets `]` attr-dict `:` "
        "custom<BlockAndBase>(type($result), type($base))"
    )

    def verify_(self) -> None:
        """The block has the dimensions and the elements of the tensor."""
        if self.base.type != (expected := element_pointer(self.result.type)):
            raise VerifyException(f"the base must be {expected}, found {self.base.type}")
        block = pointee_type(self.result.type)
        if len(self.shape) != len(shape_of_tensor(block)):
            raise VerifyException(f"the block {block} and the tensor of {len(self.shape)} dimensions differ in rank")


@irdl_op_definition
class AdvanceOp(TritonOp):
    """Move a block pointer by so many elements along each dimension.

    Example: `%q = tt.advance %p, [%zero, %step] : <tensor<8x8xf16>>`
    """

    name = "tt.advance"

    POINTER: ClassVar = same("POINTER", POINTER)

    ptr = operand_def(POINTER)
    offsets = var_operand_def(i32)
    result = result_def(POINTER)

    traits = traits_def(Pure())
    custom_directives = (stripped_directive("Ptr", PointerType),)
    assembly_format = "$ptr `,` `[` $offsets `]` attr-dict `:` custom<Ptr>(type($result))"

    def verify_(self) -> None:
        """One offset for each dimension of the block."""
        element_pointer(self.ptr.type)
        rank = len(shape_of_tensor(pointee_type(self.ptr.type)))
        if len(self.offsets) != rank:
            raise VerifyException(f"the block has {rank} dimensions, found {len(self.offsets)} offsets")
