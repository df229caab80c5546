"""Buffers in shared memory: allocation, loads, stores, gathers and scatters (TritonGPUOps.td)."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Attribute
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
)
from xdsl.utils.exceptions import VerifyException

from ..base import (
    ANY_TENSOR,
    INT_TENSOR,
    Derived,
    Effects,
    Engine,
    EnumNumber,
    TritonOp,
    allocates,
    atomically,
    frees,
    is_float,
    is_integer,
    keyword_directive,
    mask_type,
    reads,
    same,
    scalar_type,
    shape_of_tensor,
    tensor_type,
    writes,
)
from ..tt import RMWOp
from .attrs import SharedMemorySpaceAttr
from .types import AsyncTokenType, MemDescType, memdesc_type


def verify_shared(buffer: MemDescType) -> None:
    """Check that a buffer lies in shared memory."""
    if not isinstance(buffer.memory_space, SharedMemorySpaceAttr):
        raise VerifyException(f"the buffer must be in shared memory, found {buffer}")


def verify_mutable(buffer: MemDescType) -> None:
    """Check that a buffer may be written."""
    if not buffer.is_mutable:
        raise VerifyException("cannot store into an immutable buffer")


def verify_same_elements(buffer: MemDescType, type_: Attribute) -> None:
    """Check that a buffer and a tensor agree in shape and element type."""
    tensor = tensor_type(type_)
    if buffer.shape != tensor.get_shape() or buffer.element_type != tensor.element_type:
        raise VerifyException(f"buffer {buffer} and tensor {tensor} differ in shape or element type")


@irdl_op_definition
class LocalAllocOp(TritonOp):
    """Allocate a buffer in shared memory, optionally initialised with `src`.

    `alignment` is in bytes. Without `src` the buffer must be mutable.
    Example: `%0 = ttg.local_alloc : () -> !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable>`
    """

    name = "ttg.local_alloc"

    src = opt_operand_def(ANY_TENSOR)
    alignment = opt_prop_def(IntegerAttr.constr(i32))
    result = result_def(MemDescType)

    assembly_format = "($src^)? attr-dict `:` functional-type(operands, results)"

    def verify_(self) -> None:
        """A buffer in shared memory, mutable or with an initial value of its shape, aligned to a power of two."""
        buffer = self.result.type
        verify_shared(buffer)
        if (fault := buffer.fault()) is not None:
            raise VerifyException(fault)
        if buffer.element_bits % 8:
            raise VerifyException(f"elements in shared memory are whole bytes, found {buffer.element_type}")
        if self.src is not None:
            verify_same_elements(buffer, self.src.type)
        elif not buffer.is_mutable:
            raise VerifyException("a buffer without an initial value must be mutable")
        if buffer.alloc_shape != buffer.shape:
            raise VerifyException("an allocation cannot be a part of a larger one")
        if self.alignment is not None:
            bytes_ = self.alignment.value.data
            if bytes_ < 1 or bytes_ & (bytes_ - 1):
                raise VerifyException(f"the alignment must be a power of two, found {bytes_}")

    def effects(self) -> Effects:
        """New memory, with the initial value if there is one."""
        return Effects(allocates("result", initialised=bool(self.operands)))


@irdl_op_definition
class LocalDeallocOp(TritonOp):
    """End the life of a buffer in shared memory."""

    name = "ttg.local_dealloc"
    EFFECTS: ClassVar = Effects(frees("src"))

    src = operand_def(MemDescType)

    assembly_format = "$src attr-dict `:` type($src)"


@irdl_op_definition
class LocalLoadOp(TritonOp):
    """Read a buffer from shared memory into registers; a token orders the load after an asynchronous copy.

    Example: `%1 = ttg.local_load %0 token %t : !ttg.memdesc<64xf32, ...> -> tensor<64xf32, #blocked>`
    """

    name = "ttg.local_load"
    EFFECTS: ClassVar = Effects(reads("src"))

    src = operand_def(MemDescType)
    token = opt_operand_def(AsyncTokenType)
    result = result_def(ANY_TENSOR)

    assembly_format = "$src (`token` $token^)? attr-dict `:` type($src) `->` type($result)"

    def verify_(self) -> None:
        """Tensor and buffer agree in shape and element type."""
        verify_shared(memdesc_type(self.src.type))
        verify_same_elements(memdesc_type(self.src.type), self.result.type)


@irdl_op_definition
class LocalStoreOp(TritonOp):
    """Write a tensor from registers to a buffer in shared memory."""

    name = "ttg.local_store"
    EFFECTS: ClassVar = Effects(writes("dst"))

    src = operand_def(ANY_TENSOR)
    dst = operand_def(MemDescType)

    assembly_format = "$src `,` $dst attr-dict `:` type($src) `->` type($dst)"

    def verify_(self) -> None:
        """Tensor and buffer agree in shape and element type, and the buffer is mutable."""
        verify_mutable(memdesc_type(self.dst.type))
        verify_shared(memdesc_type(self.dst.type))
        verify_same_elements(memdesc_type(self.dst.type), self.src.type)


def _verify_along_axis(buffer: MemDescType, indices: Attribute, values: Attribute, axis: int) -> None:
    """Check a gather or scatter of `values` at `indices` along a dimension of `buffer`."""
    verify_shared(buffer)
    if not 0 <= axis < len(buffer.shape):
        raise VerifyException(f"axis {axis} is outside the {len(buffer.shape)} dimensions of the buffer")
    if len(shape_of_tensor(indices)) != len(buffer.shape):
        raise VerifyException(f"the indices must have {len(buffer.shape)} dimensions, found {indices}")
    if shape_of_tensor(values) != shape_of_tensor(indices):
        raise VerifyException(f"values and indices must have one shape, found {values} and {indices}")
    if scalar_type(values) != buffer.element_type:
        raise VerifyException(f"the buffer has {buffer.element_type} elements, the tensor {scalar_type(values)}")


@irdl_op_definition
class LocalGatherOp(TritonOp):
    """Pick from a buffer along `axis`: `result[i][j] = src[indices[i][j]][j]` for axis 0.

    Example: `%1 = ttg.local_gather %0[%i] {axis = 0 : i32} : !ttg.memdesc<...>, tensor<64xi32> -> tensor<64xf32>`
    """

    name = "ttg.local_gather"
    EFFECTS: ClassVar = Effects(reads("src"), by=Engine("a gather"))

    src = operand_def(MemDescType)
    indices = operand_def(INT_TENSOR)
    axis = prop_def(IntegerAttr.constr(i32))
    token = opt_operand_def(AsyncTokenType)
    result = result_def(ANY_TENSOR)

    assembly_format = (
        "$src `[` $indices `]` (`token` $token^)? attr-dict `:` type($src) `,` type($indices) `->` type($result)"
    )

    def verify_(self) -> None:
        """The result has the shape of the indices and the elements of the buffer."""
        _verify_along_axis(memdesc_type(self.src.type), self.indices.type, self.result.type, self.axis.value.data)


@irdl_op_definition
class LocalScatterOp(TritonOp):
    """Put values into a buffer along `axis`: `dst[indices[i][j]][j] = values[i][j]` for axis 0."""

    name = "ttg.local_scatter"
    EFFECTS: ClassVar = Effects(writes("dst"), by=Engine("a scatter"))

    dst = operand_def(MemDescType)
    values = operand_def(ANY_TENSOR)
    indices = operand_def(INT_TENSOR)
    axis = prop_def(IntegerAttr.constr(i32))
    token = opt_operand_def(AsyncTokenType)

    assembly_format = (
        "$dst `[` $indices `]` `,` $values (`token` $token^)? "
        "attr-dict `:` type($dst) `,` type($indices) `,` type($values)"
    )

    def verify_(self) -> None:
        """The buffer is mutable; the values have the shape of the indices and the elements of the buffer."""
        verify_mutable(memdesc_type(self.dst.type))
        _verify_along_axis(memdesc_type(self.dst.type), self.indices.type, self.values.type, self.axis.value.data)


@irdl_op_definition
class LocalAtomicScatterRMWOp(TritonOp):
    """Atomically combine values into a buffer along `axis`, and yield what was there.

    Example: `%old = ttg.local_atomic_scatter_rmw add, %buf[%i], %v, %mask {axis = 0 : i32} : (...) -> tensor<64xi32>`
    """

    name = "ttg.local_atomic_scatter_rmw"
    EFFECTS: ClassVar = Effects(atomically("dst"), by=Engine("atomics"))

    VALUES: ClassVar = same("VALUES", ANY_TENSOR)

    atomic_rmw_op = prop_def(EnumNumber(RMWOp))
    dst = operand_def(MemDescType)
    values = operand_def(VALUES)
    indices = operand_def(INT_TENSOR)
    mask = opt_operand_def(Derived("VALUES", mask_type, "the mask"))
    axis = prop_def(IntegerAttr.constr(i32))
    result = result_def(VALUES)

    custom_directives = (keyword_directive(RMWOp),)
    assembly_format = (
        "custom<RMWOp>($atomic_rmw_op) `,` $dst `[` $indices `]` `,` $values (`,` $mask^)? "
        "attr-dict `:` functional-type(operands, results)"
    )

    def verify_(self) -> None:
        """Check what a scatter needs, and that the operation exists for the element type."""
        verify_mutable(memdesc_type(self.dst.type))
        _verify_along_axis(memdesc_type(self.dst.type), self.indices.type, self.values.type, self.axis.value.data)
        kind, element = RMWOp(self.atomic_rmw_op.value.data), memdesc_type(self.dst.type).element_type
        if kind is RMWOp.FADD and not is_float(element):
            raise VerifyException(f"'{kind.keyword}' takes floating-point values, found {element}")
        if kind not in (RMWOp.FADD, RMWOp.XCHG) and not is_integer(element):
            raise VerifyException(f"'{kind.keyword}' takes integers, found {element}")
