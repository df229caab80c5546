"""MLIR's `bufferization` with what xDSL 0.75 has in part: memory with strides and offsets, and the text of older LLVM.
What builds one must take it from here.

https://mlir.llvm.org/docs/Dialects/BufferizationOps/
"""

from __future__ import annotations

from typing import Self

from xdsl.dialects import bufferization as upstream
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    MemRefType,
    TensorType,
    UnitAttr,
    UnrankedMemRefType,
    UnrankedTensorType,
)
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    base,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    opt_result_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from .base import as_tensor, spells
from .memref import ANY_MEMREF, is_memref

_ANY_TENSOR = base(TensorType) | base(UnrankedTensorType)


def tensor_of(type_: Attribute) -> Attribute:
    """The tensor with the elements of memory of this type.

    Raises VerifyException for any other type.
    """
    match type_:
        case MemRefType():
            return TensorType(type_.element_type, type_.get_shape())
        case UnrankedMemRefType():
            return UnrankedTensorType(type_.element_type)
        case _:
            raise VerifyException(f"expected a memref, found {type_}")


def _check(memory: Attribute, tensor: Attribute) -> None:
    if tensor_of(memory) != tensor:
        raise VerifyException(f"the tensor of {memory} is {tensor_of(memory)}, found {tensor}")


def _flags(op: IRDLOperation, printer: Printer, *names: str) -> None:
    for name in names:
        if name in op.properties:
            printer.print_string(f" {name}")


def _parse_flags(parser: Parser, *names: str) -> dict[str, bool]:
    return {name: parser.parse_optional_keyword(name) is not None for name in names}


def _unit(present: bool) -> UnitAttr | None:
    return UnitAttr() if present else None


@irdl_op_definition
class ToTensorOp(IRDLOperation):
    """The elements of memory as a tensor; with `restrict` nothing else gives a tensor of it, with `writable` it may be
    overwritten where the tensor is not used after.

    Example: `%1 = bufferization.to_tensor %0 restrict writable : memref<4xf32> to tensor<4xf32>`; in LLVM 19 the type
    of the tensor is left out.
    """

    name = "bufferization.to_tensor"

    memref = operand_def(ANY_MEMREF)
    tensor = result_def(_ANY_TENSOR)
    restrict = opt_prop_def(UnitAttr)
    writable = opt_prop_def(UnitAttr)

    traits = traits_def(MemoryReadEffect())

    def __init__(self, memref: SSAValue, *, restrict: bool = False, writable: bool = False):
        super().__init__(
            operands=[memref],
            properties={"restrict": _unit(restrict), "writable": _unit(writable)},
            result_types=[tensor_of(memref.type)],
        )

    def verify_(self) -> None:
        """The tensor has the elements of the memory."""
        _check(self.memref.type, self.tensor.type)

    def print(self, printer: Printer) -> None:
        """Print ` %m restrict writable : memref<4xf32> to tensor<4xf32>`."""
        printer.print_string(" ")
        printer.print_operand(self.memref)
        _flags(self, printer, "restrict", "writable")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.memref.type)
        if not spells(printer, "to_tensor_of_memref"):
            printer.print_string(" to ")
            printer.print_attribute(self.tensor.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse what `print` writes for any version."""
        memory = parser.parse_unresolved_operand()
        flags = _parse_flags(parser, "restrict", "writable")
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        type_: Attribute = parser.parse_type()
        if not is_memref(type_):
            parser.raise_error(f"expected a memref, found {type_}", position)
        tensor = parser.parse_type() if parser.parse_optional_keyword("to") is not None else tensor_of(type_)
        return cls.create(
            operands=[parser.resolve_operand(memory, type_)],
            properties={name: UnitAttr() for name, present in flags.items() if present},
            attributes=attributes,
            result_types=[tensor],
        )


@irdl_op_definition
class ToBufferOp(IRDLOperation):
    """The memory that holds the elements of a tensor; with `read_only` nothing writes there.

    Example: `%1 = bufferization.to_buffer %0 : tensor<4xf32> to memref<4xf32>`; in LLVM 19 it is
    `bufferization.to_memref %0 : memref<4xf32>`.
    """

    name = "bufferization.to_buffer"

    tensor = operand_def(_ANY_TENSOR)
    buffer = result_def(ANY_MEMREF)
    read_only = opt_prop_def(UnitAttr)

    def __init__(self, tensor: SSAValue, type_: Attribute, *, read_only: bool = False):
        super().__init__(operands=[tensor], properties={"read_only": _unit(read_only)}, result_types=[type_])

    def verify_(self) -> None:
        """The tensor has the elements of the memory."""
        _check(self.buffer.type, self.tensor.type)

    def print(self, printer: Printer) -> None:
        """Print ` %t read_only : tensor<4xf32> to memref<4xf32>`."""
        printer.print_string(" ")
        printer.print_operand(self.tensor)
        _flags(self, printer, "read_only")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        if not spells(printer, "to_memref"):
            printer.print_attribute(self.tensor.type)
            printer.print_string(" to ")
        printer.print_attribute(self.buffer.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse what `print` writes for any version."""
        tensor = parser.parse_unresolved_operand()
        flags = _parse_flags(parser, "read_only")
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        first: Attribute = parser.parse_type()
        second = parser.parse_type() if parser.parse_optional_keyword("to") is not None else first
        op = cls(parser.resolve_operand(tensor, tensor_of(first) if second is first else first), second, **flags)
        op.attributes |= attributes
        return op


@irdl_op_definition
class MaterializeInDestinationOp(IRDLOperation):
    """Write a tensor to `dest`: memory, or a tensor, of which the written one is the result.

    Example: `bufferization.materialize_in_destination %0 in writable %1
        : (tensor<4xf32>, memref<4xf32, strided<[1], offset: ?>>) -> ()`
    """

    name = "bufferization.materialize_in_destination"

    source = operand_def(_ANY_TENSOR)
    dest = operand_def(ANY_MEMREF | _ANY_TENSOR)
    result = opt_result_def(_ANY_TENSOR)
    restrict = opt_prop_def(UnitAttr)
    writable = opt_prop_def(UnitAttr)

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "$source `in` (`restrict` $restrict^)? (`writable` $writable^)? $dest attr-dict "
        "`:` functional-type(operands, results)"
    )

    def __init__(self, source: SSAValue, dest: SSAValue, *, restrict: bool = False, writable: bool = False):
        into_tensor = isinstance(dest.type, TensorType | UnrankedTensorType)
        super().__init__(
            operands=[source, dest],
            properties={"restrict": _unit(restrict), "writable": _unit(writable)},
            result_types=[dest.type if into_tensor else None],
        )

    def verify_(self) -> None:
        """Both have one shape; memory is written in place, and must be `writable`."""
        into_tensor = isinstance(self.dest.type, TensorType | UnrankedTensorType)
        dest = self.dest.type if into_tensor else tensor_of(self.dest.type)
        if not _may_be_one(self.source.type, dest):
            raise VerifyException(f"cannot write {self.source.type} to {self.dest.type}")
        if into_tensor:
            if self.result is None or self.result.type != dest or self.restrict or self.writable:
                raise VerifyException(f"what is written to a tensor gives {dest}, with no 'restrict' and no 'writable'")
        elif self.result is not None:
            raise VerifyException("what is written to memory gives no result")
        elif self.writable is None:
            raise VerifyException("memory that is written must be 'writable'")


def _may_be_one(first: Attribute, second: Attribute) -> bool:
    """True if two tensors have the same elements, and shapes that may be equal when it runs."""
    one, other = as_tensor(first), as_tensor(second)
    if one is None or other is None:
        return first == second
    sizes = [one.get_shape(), other.get_shape()]
    return (
        one.element_type == other.element_type
        and len(sizes[0]) == len(sizes[1])
        and all(a == b or DYNAMIC_INDEX in (a, b) for a, b in zip(*sizes, strict=True))
    )


_OURS = (MaterializeInDestinationOp, ToBufferOp, ToTensorOp)

Bufferization = Dialect(
    "bufferization",
    [*(op for op in upstream.Bufferization.operations if op.name not in {ours.name for ours in _OURS}), *_OURS],
    list(upstream.Bufferization.attributes),
)
