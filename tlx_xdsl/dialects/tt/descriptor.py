"""Tensor descriptors: making them, and loads and stores through them (TritonOps.td)."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import Attribute
from xdsl.irdl import (
    SameVariadicOperandSize,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..base import (
    ANY_TENSOR,
    INDEX_TENSOR,
    POINTER,
    TMA,
    Effects,
    EnumNumber,
    Feature,
    Needs,
    TritonOp,
    atomically,
    element_bits,
    integer_bits,
    keyword_directive,
    reads,
    scalar_type,
    shape_of_tensor,
    stripped_directive,
    writes,
)
from .attrs import CacheKeywords
from .enums import DescriptorReduceKind, PaddingOption
from .types import DescriptorType, PointerType, TensorDescType, descriptor_type


@irdl_op_definition
class MakeTensorDescOp(TritonOp):
    """A descriptor of the tensor at `base` with the given shape and strides (in elements, the last one 1).

    Example: `%d = tt.make_tensor_descriptor %p, [%m, %n], [%s, %one] : <f16>, <64x64xf16>`
    """

    name = "tt.make_tensor_descriptor"
    NEEDS: ClassVar = Needs("tl.make_tensor_descriptor", Feature.TMA)

    base = operand_def(POINTER)
    shape = var_operand_def(i32)
    strides = var_operand_def(i64)
    padding = prop_def(EnumNumber(PaddingOption), default_value=PaddingOption.PAD_ZERO.attr)
    result = result_def(TensorDescType)

    irdl_options = (SameVariadicOperandSize(),)
    traits = traits_def(Pure())
    custom_directives = (stripped_directive("Ptr", PointerType), stripped_directive("Desc", TensorDescType))
    assembly_format = (
        "$base `,` `[` $shape `]` `,` `[` $strides `]` attr-dict `:` custom<Ptr>(type($base)) `,` "
        "custom<Desc>(type($result))"
    )

    def verify_(self) -> None:
        """The block has the dimensions and the elements of the tensor."""
        block = self.result.type
        if len(block.shape) > len(self.shape):
            raise VerifyException(f"the block has {len(block.shape)} dimensions, the tensor {len(self.shape)}")
        pointer = self.base.type
        assert isinstance(pointer, PointerType)
        if element_bits(pointer.pointee) != block.element_bits:
            raise VerifyException(f"the elements differ: {pointer} and {block}")


def verify_block(descriptor: DescriptorType, tensor: Attribute) -> None:
    """Check that a block of `descriptor` and a tensor hold the same number of elements of one type.

    The descriptor may have leading dimensions of 1, and its integers have a sign, those of the tensor have none.
    """
    shape = shape_of_tensor(tensor)
    block = descriptor.shape
    lead = len(block) - len(shape)
    if lead < 0 or block[lead:] != shape or any(size != 1 for size in block[:lead]):
        raise VerifyException(f"the tensor {tensor} does not have the shape of the block {descriptor}")
    verify_elements(descriptor, tensor)


def verify_elements(descriptor: DescriptorType, tensor: Attribute) -> None:
    """Check that a descriptor and a tensor have elements of one type, up to the sign of integers."""
    block, element = descriptor.element_type, scalar_type(tensor)
    if block != element and (integer_bits(block) is None or integer_bits(block) != integer_bits(element)):
        raise VerifyException(f"the descriptor has {block} elements, the tensor {element}")


def verify_indices(descriptor: DescriptorType, count: int) -> None:
    """Check that there is one index per dimension of the block."""
    if count != len(descriptor.shape):
        raise VerifyException(f"the descriptor has {len(descriptor.shape)} dimensions, found {count} indices")


def verify_rows(descriptor: DescriptorType, offsets: tuple[int, ...], rows: tuple[int, ...]) -> None:
    """Check that a descriptor of one-row blocks gathers or scatters `rows` at the offsets."""
    block = descriptor.shape
    if len(block) != 2 or block[0] != 1:
        raise VerifyException(f"the block must have one row, found {'x'.join(map(str, block))}")
    if len(offsets) != 1:
        raise VerifyException(f"the row offsets must be 1-D, found {len(offsets)} dimensions")
    if rows != (offsets[0], block[1]):
        raise VerifyException(f"expected {offsets[0]} rows of {block[1]} elements, found {'x'.join(map(str, rows))}")


@irdl_op_definition
class DescriptorLoadOp(TritonOp):
    """Load the block at `indices` (in elements): `tt.descriptor_load %d[%i, %j] : !tt.tensordesc<..> -> tensor<..>`."""

    name = "tt.descriptor_load"
    NEEDS: ClassVar = Needs("a load through a tensor descriptor", Feature.TMA)
    EFFECTS: ClassVar = Effects(reads("desc"), by=TMA)

    desc = operand_def(TensorDescType)
    indices = var_operand_def(i32)
    cache_policy = opt_prop_def(Attribute, prop_name="cachePolicy")
    result = result_def(ANY_TENSOR)

    custom_directives = (CacheKeywords,)
    assembly_format = "$desc `[` $indices `]` custom<CacheKeywords>() attr-dict `:` type($desc) `->` type($result)"

    def verify_(self) -> None:
        """Block, tensor and indices agree."""
        verify_indices(descriptor_type(self.desc.type), len(self.indices))
        verify_block(descriptor_type(self.desc.type), self.result.type)


@irdl_op_definition
class DescriptorStoreOp(TritonOp):
    """Store a tensor to the block at `indices`; what lies outside the tensor in memory is not written."""

    name = "tt.descriptor_store"
    NEEDS: ClassVar = Needs("a store through a tensor descriptor", Feature.TMA)
    EFFECTS: ClassVar = Effects(writes("desc"), by=TMA)

    desc = operand_def(TensorDescType)
    src = operand_def(ANY_TENSOR)
    indices = var_operand_def(i32)

    assembly_format = "$desc `[` $indices `]` `,` $src attr-dict `:` type($desc) `,` type($src)"

    def verify_(self) -> None:
        """Block, tensor and indices agree."""
        verify_indices(descriptor_type(self.desc.type), len(self.indices))
        verify_block(descriptor_type(self.desc.type), self.src.type)


@irdl_op_definition
class DescriptorReduceOp(TritonOp):
    """Combine a tensor into the block at `indices`: `tt.descriptor_reduce add, %d[%i, %j], %v : ..., ...`."""

    name = "tt.descriptor_reduce"
    NEEDS: ClassVar = Needs("an atomic store through a tensor descriptor", Feature.TMA)
    EFFECTS: ClassVar = Effects(atomically("desc"), by=TMA)

    kind = prop_def(EnumNumber(DescriptorReduceKind))
    desc = operand_def(TensorDescType)
    src = operand_def(ANY_TENSOR)
    indices = var_operand_def(i32)

    custom_directives = (keyword_directive(DescriptorReduceKind),)
    assembly_format = (
        "custom<DescriptorReduceKind>($kind) `,` $desc `[` $indices `]` `,` $src "
        "attr-dict `:` type($desc) `,` type($src)"
    )

    def verify_(self) -> None:
        """Block, tensor and indices agree."""
        verify_indices(descriptor_type(self.desc.type), len(self.indices))
        verify_block(descriptor_type(self.desc.type), self.src.type)


@irdl_op_definition
class DescriptorGatherOp(TritonOp):
    """Load rows: row `x_offsets[i]` from column `y_offset` on becomes row i of the result.

    Example: `%0 = tt.descriptor_gather %d[%rows, %col] : (!tt.tensordesc<1x64xf16>, tensor<32xi32>, i32) -> ...`
    """

    name = "tt.descriptor_gather"
    NEEDS: ClassVar = Needs("a gather through a tensor descriptor", Feature.TMA_GATHER)
    EFFECTS: ClassVar = Effects(reads("desc"), by=TMA)

    desc = operand_def(TensorDescType)
    x_offsets = operand_def(INDEX_TENSOR)
    y_offset = operand_def(i32)
    result = result_def(ANY_TENSOR)

    assembly_format = "$desc `[` $x_offsets `,` $y_offset `]` attr-dict `:` functional-type(operands, results)"

    def verify_(self) -> None:
        """The block is a row, and the result has one row per offset."""
        verify_rows(
            descriptor_type(self.desc.type), shape_of_tensor(self.x_offsets.type), shape_of_tensor(self.result.type)
        )
        verify_elements(descriptor_type(self.desc.type), self.result.type)


@irdl_op_definition
class DescriptorScatterOp(TritonOp):
    """Store rows: row i of `src` goes to row `x_offsets[i]`, from column `y_offset` on."""

    name = "tt.descriptor_scatter"
    NEEDS: ClassVar = Needs("a scatter through a tensor descriptor", Feature.TMA_SCATTER)
    EFFECTS: ClassVar = Effects(writes("desc"), by=TMA)

    desc = operand_def(TensorDescType)
    x_offsets = operand_def(INDEX_TENSOR)
    y_offset = operand_def(i32)
    src = operand_def(ANY_TENSOR)

    assembly_format = "$desc `[` $x_offsets `,` $y_offset `]` `,` $src attr-dict `:` type(operands)"

    def verify_(self) -> None:
        """The block is a row, and the source has one row per offset."""
        verify_rows(
            descriptor_type(self.desc.type), shape_of_tensor(self.x_offsets.type), shape_of_tensor(self.src.type)
        )
        verify_elements(descriptor_type(self.desc.type), self.src.type)
