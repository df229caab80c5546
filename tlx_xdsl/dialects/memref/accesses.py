"""Accesses to memory: loads, stores, copies, and read-modify-write operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, cast

from xdsl.dialects import memref as upstream
from xdsl.dialects.builtin import (
    IndexType,
    IntegerAttr,
    MemRefType,
    UnrankedMemRefType,
    i64,
)
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsTerminator, MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from ..base import is_float
from .types import (
    ANY_MEMREF,
    compatible,
    element_of,
    ranked,
    sizes_of,
)

ATOMIC_KINDS = (
    "addf", "addi", "assign", "maximumf", "maxs", "maxu", "minimumf", "mins", "minu", "mulf", "muli", "ori", "andi",
    "maxnumf", "minnumf", "xori",
)  # fmt: skip
"""Names of the read-modify-write operations, in the order of their numbers (ArithBase.td, AtomicRMWKind).

LLVM 19 has no `xori`.
"""

_ON_ANY = frozenset({"assign"})


@irdl_op_definition
class CopyOp(IRDLOperation):
    """Copy all elements of `source` to `target`; the two don't overlap unless they are the same memory.

    Example: `memref.copy %0, %1 : memref<128xf32, strided<[1], offset: ?>> to memref<128xf32>`
    """

    name = "memref.copy"

    source = operand_def(ANY_MEMREF)
    target = operand_def(ANY_MEMREF)

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$source `,` $target attr-dict `:` type($source) `to` type($target)"

    def __init__(self, source: SSAValue, target: SSAValue):
        super().__init__(operands=[source, target])

    def verify_(self) -> None:
        """Shapes and element types agree."""
        source, target = self.source.type, self.target.type
        same = element_of(source) == element_of(target)
        if same and not any(isinstance(type_, UnrankedMemRefType) for type_ in (source, target)):
            sizes, to_sizes = sizes_of(source), sizes_of(target)
            same = len(sizes) == len(to_sizes) and all(map(compatible, sizes, to_sizes))
        if not same:
            raise VerifyException(f"cannot copy {source} to {target}")


def _check_indices(memory: Attribute, indices: Sequence[SSAValue]) -> None:
    rank = ranked(memory).get_num_dims()
    if len(indices) != rank:
        raise VerifyException(f"expected an index for each of the {rank} dimensions of {memory}, found {len(indices)}")


class LoadOp(upstream.LoadOp):
    """Read an element: `%1 = memref.load %0[%i] : memref<4xf32>`; xDSL raises a bare Exception for a missing index."""

    def verify_(self) -> None:
        """Check that there is an index for each dimension."""
        _check_indices(self.memref.type, self.indices)


class StoreOp(upstream.StoreOp):
    """Write an element: `memref.store %v, %0[%i] : memref<4xf32>`."""

    def verify_(self) -> None:
        """Check that there is an index for each dimension."""
        _check_indices(self.memref.type, self.indices)


@irdl_op_definition
class AtomicRMWOp(IRDLOperation):
    """Combine an element with `value` as one access, and give the element as it was before.

    Example: `%1 = memref.atomic_rmw addf %v, %0[%i] : (f32, memref<4xf32>) -> f32`
    """

    name = "memref.atomic_rmw"

    kind = prop_def(IntegerAttr.constr(i64))
    value = operand_def()
    memref = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    result = result_def()

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, kind: str, value: SSAValue, memref: SSAValue, indices: Sequence[SSAValue]):
        super().__init__(
            operands=[value, memref, indices],
            properties={"kind": IntegerAttr(ATOMIC_KINDS.index(kind), i64)},
            result_types=[value.type],
        )

    @property
    def kind_name(self) -> str:
        """The operation, such as `addf`."""
        return ATOMIC_KINDS[self.kind.value.data]

    def verify_(self) -> None:
        """The value and the result are elements, of a type that the operation is for."""
        element = element_of(self.memref.type)
        if not 0 <= self.kind.value.data < len(ATOMIC_KINDS):
            raise VerifyException(f"there is no operation number {self.kind.value.data}")
        _check_indices(self.memref.type, self.indices)
        if self.value.type != element or self.result.type != element:
            raise VerifyException(f"the elements are {element}, found {self.value.type}")
        if self.kind_name not in _ON_ANY and self.kind_name.endswith("f") != is_float(element):
            raise VerifyException(f"'{self.kind_name}' is no operation on {element}")

    def print(self, printer: Printer) -> None:
        """Print ` addf %v, %m[%i] : (f32, memref<4xf32>) -> f32`."""
        printer.print_string(f" {self.kind_name} ")
        printer.print_operand(self.value)
        printer.print_string(", ")
        printer.print_operand(self.memref)
        with printer.in_square_brackets():
            printer.print_list(self.indices, printer.print_operand)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_function_type([self.value.type, self.memref.type], [self.result.type])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse what `print` writes."""
        position = parser.pos
        kind = parser.parse_identifier_or_str_literal()
        if kind not in ATOMIC_KINDS:
            parser.raise_error(f"expected one of {', '.join(ATOMIC_KINDS)}, found '{kind}'", position)
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        memory = parser.parse_unresolved_operand()
        indices = _parse_indices(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        types = parser.parse_function_type().inputs.data
        if len(types) != 2:
            parser.raise_error(f"expected the types of a value and of memory, found {len(types)}", position)
        op = cls(
            kind,
            parser.resolve_operand(value, types[0]),
            parser.resolve_operand(memory, types[1]),
            [parser.resolve_operand(index, IndexType()) for index in indices],
        )
        op.attributes |= attributes
        return op


def _parse_indices(parser: Parser) -> list[UnresolvedOperand]:
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_unresolved_operand)


@irdl_op_definition
class GenericAtomicRMWOp(IRDLOperation):
    """Replace an element by what a region makes of it, as one access, and give the element as it was before.

    That is what upstream's lowering to LLVM gives; its documentation says "the latest value that was stored".

    Example:
        %1 = memref.generic_atomic_rmw %0[%i] : memref<4xf32> {
        ^bb0(%current: f32):
          %new = arith.addf %current, %v : f32
          memref.atomic_yield %new : f32
        }
    """

    name = "memref.generic_atomic_rmw"

    memref = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    result = result_def()
    body = region_def("single_block")

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, memref: SSAValue, indices: Sequence[SSAValue], body: Region):
        super().__init__(operands=[memref, indices], result_types=[element_of(memref.type)], regions=[body])

    def verify_(self) -> None:
        """The region takes the element and yields one."""
        element = element_of(self.memref.type)
        _check_indices(self.memref.type, self.indices)
        if [argument.type for argument in self.body.block.args] != [element]:
            raise VerifyException(f"the region must take the element, of type {element}")
        last = self.body.block.last_op
        if not isinstance(last, AtomicYieldOp) or last.result.type != element:
            raise VerifyException(f"the region must end in 'memref.atomic_yield' of an element, of type {element}")
        if self.result.type != element:
            raise VerifyException(f"the result must be {element}, found {self.result.type}")

    def print(self, printer: Printer) -> None:
        """Print ` %m[%i] : memref<4xf32> { ... }`."""
        printer.print_string(" ")
        printer.print_operand(self.memref)
        with printer.in_square_brackets():
            printer.print_list(self.indices, printer.print_operand)
        printer.print_string(" : ")
        printer.print_attribute(self.memref.type)
        printer.print_string(" ")
        printer.print_region(self.body)
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse what `print` writes."""
        memory = parser.parse_unresolved_operand()
        indices = _parse_indices(parser)
        parser.parse_punctuation(":")
        position = parser.pos
        type_: Attribute = parser.parse_type()
        if not isinstance(type_, MemRefType):
            parser.raise_error(f"expected a ranked memref, found {type_}", position)
        operand = parser.resolve_operand(memory, cast(Attribute, type_))
        op = cls(operand, [parser.resolve_operand(index, IndexType()) for index in indices], parser.parse_region())
        op.attributes |= parser.parse_optional_attr_dict()
        return op


@irdl_op_definition
class AtomicYieldOp(IRDLOperation):
    """End the region of a `memref.generic_atomic_rmw` with the new element."""

    name = "memref.atomic_yield"

    result = operand_def()

    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(GenericAtomicRMWOp), Pure()))
    assembly_format = "$result attr-dict `:` type($result)"

    def __init__(self, result: SSAValue):
        super().__init__(operands=[result])
