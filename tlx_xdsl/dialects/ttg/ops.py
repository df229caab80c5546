"""Operations of `ttg`: buffers in shared memory, their views, and layout conversions (TritonGPUOps.td)."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, TensorType, i32
from xdsl.ir import Attribute
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryAllocEffect, MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.dialects.ttg.types import AsyncTokenType, MemDescType, memdesc_type, tensor_type


@irdl_op_definition
class ConvertLayoutOp(IRDLOperation):
    """Move a tensor to another register layout; shape and elements stay.

    Example: `%1 = ttg.convert_layout %0 : tensor<64xf32, #a> -> tensor<64xf32, #b>`
    """

    name = "ttg.convert_layout"

    src = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"

    def verify_(self) -> None:
        """Shape and element type must stay."""
        source, result = tensor_type(self.src.type), tensor_type(self.result.type)
        if source.get_shape() != result.get_shape() or source.element_type != result.element_type:
            raise VerifyException(f"changes more than the layout: from {source} to {result}")


@irdl_op_definition
class LocalAllocOp(IRDLOperation):
    """Allocate a buffer in shared memory, optionally initialised with `src`.

    `alignment` is in bytes. Without `src` the buffer must be mutable.
    Example: `%0 = ttg.local_alloc : () -> !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable>`
    """

    name = "ttg.local_alloc"

    src = opt_operand_def(TensorType)
    alignment = opt_prop_def(IntegerAttr.constr(i32))
    result = result_def(MemDescType)

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(MemoryAllocEffect())
    assembly_format = "($src^)? attr-dict `:` functional-type(operands, results)"

    def verify_(self) -> None:
        """A buffer without an initial value must be mutable."""
        if self.src is None and not memdesc_type(self.result.type).is_mutable:
            raise VerifyException("a buffer without an initial value must be mutable")


@irdl_op_definition
class LocalDeallocOp(IRDLOperation):
    """End the life of a buffer in shared memory."""

    name = "ttg.local_dealloc"

    src = operand_def(MemDescType)

    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$src attr-dict `:` type($src)"


@irdl_op_definition
class MemDescIndexOp(IRDLOperation):
    """Buffer `index` of a multi-buffered allocation: the view loses its first dimension.

    Example: `%1 = ttg.memdesc_index %0[%i] : !ttg.memdesc<3x64x64xf16, ...> -> !ttg.memdesc<64x64xf16, ...>`
    """

    name = "ttg.memdesc_index"

    src = operand_def(MemDescType)
    index = operand_def(i32)
    result = result_def(MemDescType)

    traits = traits_def(Pure())
    assembly_format = "$src `[` $index `]` attr-dict `:` type($src) `->` type($result)"

    def verify_(self) -> None:
        """The result is the source without its first dimension."""
        source, result = memdesc_type(self.src.type), memdesc_type(self.result.type)
        if result.shape != source.shape[1:]:
            raise VerifyException(
                f"the result must drop the first dimension of {list(source.shape)}, found {list(result.shape)}"
            )
        if (result.element_type, result.encoding, result.memory_space) != (
            source.element_type,
            source.encoding,
            source.memory_space,
        ):
            raise VerifyException(f"element type, layout and memory space must stay: from {source} to {result}")


@irdl_op_definition
class MemDescTransOp(IRDLOperation):
    """The same buffer with its dimensions permuted; no data moves.

    Example: `%1 = ttg.memdesc_trans %0 {order = array<i32: 1, 0>} : ... -> ...`
    """

    name = "ttg.memdesc_trans"

    src = operand_def(MemDescType)
    order = prop_def(DenseArrayBase.constr(i32))
    result = result_def(MemDescType)

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"

    def verify_(self) -> None:
        """The result shape is the permuted source shape."""
        source, result = memdesc_type(self.src.type), memdesc_type(self.result.type)
        order: tuple[int, ...] = tuple(self.order.get_values())
        if sorted(order) != list(range(len(source.shape))):
            raise VerifyException(f"order {list(order)} is no permutation of the {len(source.shape)} dimensions")
        if result.shape != tuple(source.shape[dim] for dim in order):
            raise VerifyException(
                f"the result shape {list(result.shape)} is not {list(source.shape)} in the order {list(order)}"
            )


@irdl_op_definition
class MemDescReinterpretOp(IRDLOperation):
    """The same bytes seen with another shape, element type or layout.

    The result must not reach past the source.
    """

    name = "ttg.memdesc_reinterpret"

    src = operand_def(MemDescType)
    result = result_def(MemDescType)

    traits = traits_def(Pure())
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"

    def verify_(self) -> None:
        """The memory space stays and the result fits in the source."""
        source, result = memdesc_type(self.src.type), memdesc_type(self.result.type)
        if source.memory_space != result.memory_space:
            raise VerifyException(f"the memory space must stay: from {source} to {result}")
        have, need = source.bytes_of_trailing(len(source.shape)), result.bytes_of_trailing(len(result.shape))
        if need > have:
            raise VerifyException(f"the result takes {need} bytes, the source has {have}")


@irdl_op_definition
class LocalLoadOp(IRDLOperation):
    """Read a buffer from shared memory into registers."""

    name = "ttg.local_load"

    src = operand_def(MemDescType)
    token = opt_operand_def(AsyncTokenType)
    result = result_def(TensorType)

    traits = traits_def(MemoryReadEffect())
    assembly_format = "$src (`token` $token^)? attr-dict `:` type($src) `->` type($result)"

    def verify_(self) -> None:
        """Tensor and buffer agree in shape and element type."""
        _same_elements(memdesc_type(self.src.type), tensor_type(self.result.type))


@irdl_op_definition
class LocalStoreOp(IRDLOperation):
    """Write a tensor from registers to a buffer in shared memory."""

    name = "ttg.local_store"

    src = operand_def(TensorType)
    dst = operand_def(MemDescType)

    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$src `,` $dst attr-dict `:` type($src) `->` type($dst)"

    def verify_(self) -> None:
        """Tensor and buffer agree in shape and element type, and the buffer is mutable."""
        buffer = memdesc_type(self.dst.type)
        if not buffer.is_mutable:
            raise VerifyException("cannot store into an immutable buffer")
        _same_elements(buffer, tensor_type(self.src.type))


def _same_elements(buffer: MemDescType, tensor: TensorType[Attribute]) -> None:
    if buffer.shape != tensor.get_shape() or buffer.element_type != tensor.element_type:
        raise VerifyException(f"buffer {buffer} and tensor {tensor} differ in shape or element type")
