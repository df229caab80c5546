"""Kernels, their threads, and the driver that has the resources when the threads are functions of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from xdsl.dialects.builtin import FunctionType, IndexType, IntegerAttr, StringAttr, SymbolNameConstraint, SymbolRefAttr
from xdsl.dialects.utils import parse_func_op_like, print_func_op_like
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.dialects.base.operation import FaultAt

from ..ttcore import ARCHITECTURES, Architecture, GridAttr
from ..ttkernel.base import ThreadKind
from .base import Thread, TTLOp, parse_defined
from .protocol import verify_kernel, verify_thread
from .types import AccessorType, TensorAccessorType, encoding_of

ONE_CORE = GridAttr.get(1, 1)


class _KernelLike(TTLOp):
    """Base of what has the kernel's arguments and the attributes of its launch."""

    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    body = region_def("single_block")

    def __init__(self, name: str, types: Sequence[Attribute], body: Region, attributes: dict[str, Attribute]) -> None:
        super().__init__(
            properties={"sym_name": StringAttr(name), "function_type": FunctionType.from_lists(list(types), [])},
            attributes=attributes,
            regions=[body],
        )

    @property
    def grid(self) -> GridAttr:
        """The cores that run the kernel: one where nothing says so."""
        grid = self.attributes.get("grid")
        return grid if isinstance(grid, GridAttr) else ONE_CORE

    @property
    def architecture(self) -> Architecture:
        """The chip whose cores run the kernel, which `arch` names: a Wormhole where nothing says so."""
        name = self.attributes.get("arch")
        return ARCHITECTURES[name.data if isinstance(name, StringAttr) else "wormhole"]

    @property
    def fp32_dest_acc_en(self) -> bool:
        """Return whether destination registers hold 32 bits for narrower types, too."""
        return "fp32_dest_acc_en" in self.attributes

    @property
    def dst_full_sync_en(self) -> bool:
        """Return whether all destination registers are used at once, instead of one half while the other is packed."""
        return "dst_full_sync_en" in self.attributes

    @property
    def args(self) -> Sequence[SSAValue]:
        """The tensors of the kernel."""
        return self.body.block.args

    def verify_(self) -> None:
        """Arguments are tensors of which it is known where they are, and the architecture is known."""
        name = self.attributes.get("arch")
        if name is not None and (not isinstance(name, StringAttr) or name.data not in ARCHITECTURES):
            raise VerifyException(f"'arch' is one of {', '.join(ARCHITECTURES)}, found {name}")
        if tuple(each.type for each in self.args) != tuple(self.function_type.inputs):
            raise VerifyException("the arguments of the body differ from those of the type")
        for argument in self.args:
            encoding_of(argument.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes."""
        name, types, _, body, extra, _, _ = parse_func_op_like(
            parser, reserved_attr_names=("sym_name", "function_type")
        )
        attributes = {} if extra is None else dict(extra.data)
        return cls(name, types, body, attributes)

    def print(self, printer: Printer) -> None:
        """Write it like a function."""
        print_func_op_like(
            printer,
            self.sym_name,
            self.function_type,
            self.body,
            self.attributes,
            reserved_attr_names=("sym_name", "function_type"),
        )


@irdl_op_definition
class KernelOp(_KernelLike):
    """A kernel with its threads: `ttl.kernel @add(%a: tensor<...>) attributes {grid = #ttcore.grid<1x1>} {...}`.

    The body makes what all threads share, and has an operation for each thread. Every core of the grid runs all threads
    at the same time.
    """

    name = "ttl.kernel"

    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    @property
    def threads(self) -> list[ComputeThreadOp | DatamovementThreadOp]:
        """The threads, in program order."""
        return [op for op in self.body.block.ops if isinstance(op, ComputeThreadOp | DatamovementThreadOp)]

    def verify_(self) -> None:
        """Each circular buffer has one producer and one consumer."""
        super().verify_()
        verify_kernel(self, self.threads)


@irdl_op_definition
class KernelDriverOp(_KernelLike):
    """The part of a kernel that its threads share, and the functions that they run.

    Numbers of circular buffers and of semaphores are given here only.
    """

    name = "ttl.kernel_driver"

    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    def verify_(self) -> None:
        """No two circular buffers have one number."""
        super().verify_()
        seen: dict[int, Operation] = {}
        for op in self.body.block.ops:
            index = op.properties.get("cb_index") if op.name == "ttl.bind_cb" else None
            if isinstance(index, IntegerAttr):
                first = seen.setdefault(index.value.data, op)
                if first is not op:
                    message = f"two circular buffers have the number {index.value.data}"
                    raise FaultAt(op, message, first, "the first one is")


class _End(TTLOp):
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict"


@irdl_op_definition
class KernelReturnOp(_End):
    """The end of a kernel."""

    name = "ttl.kernel_return"


@irdl_op_definition
class KernelDriverReturnOp(_End):
    """The end of a driver."""

    name = "ttl.kernel_driver_return"


@irdl_op_definition
class ThreadReturnOp(_End):
    """The end of a thread."""

    name = "ttl.thread_return"


class _ThreadOp(TTLOp, Thread):
    """Base of the threads of a kernel."""

    sym_name = opt_prop_def(StringAttr)
    body = region_def("single_block")

    def __init__(self, body: Region, name: str | None = None) -> None:
        super().__init__(regions=[body], properties={"sym_name": None if name is None else StringAttr(name)})

    def verify_(self) -> None:
        """Check that what is reserved or waited for is given back, in this order."""
        verify_thread(self)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read an optional name and the body."""
        name = parser.parse_optional_symbol_name()
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(parser.parse_region(), None if name is None else name.data)
        op.attributes.update({} if attributes is None else attributes.data)
        return op

    def print(self, printer: Printer) -> None:
        """Write the name, where it has one, and the body."""
        if self.sym_name is not None:
            printer.print_string(" ")
            printer.print_symbol_name(self.sym_name.data)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body)


@irdl_op_definition
class ComputeThreadOp(_ThreadOp):
    """The thread that computes with tiles: `ttl.compute_thread @compute {... ttl.thread_return}`."""

    name = "ttl.compute_thread"
    KIND: ClassVar = ThreadKind.COMPUTE


@irdl_op_definition
class DatamovementThreadOp(_ThreadOp):
    """A thread that moves data: `ttl.datamovement_thread @read {... ttl.thread_return}`."""

    name = "ttl.datamovement_thread"
    KIND: ClassVar = ThreadKind.NOC


@irdl_op_definition
class LaunchThreadOp(TTLOp):
    """Let each core run a function as one of its threads: `ttl.launch_thread @compute(%a_cb, %b_cb)`."""

    name = "ttl.launch_thread"

    callee = prop_def(SymbolRefAttr)
    arguments = var_operand_def()

    def __init__(self, callee: str, arguments: Sequence[SSAValue]) -> None:
        super().__init__(operands=[arguments], properties={"callee": SymbolRefAttr(callee)})

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read values that were defined before; their types need not be said."""
        name = parser.parse_symbol_name()
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_defined(parser))
        op = cls(name.data, arguments)
        op.attributes.update(parser.parse_optional_attr_dict())
        return op

    def print(self, printer: Printer) -> None:
        """Write the arguments without their types."""
        printer.print_string(" ")
        printer.print_symbol_name(self.callee.root_reference.data)
        with printer.in_parens():
            printer.print_list(self.arguments, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class TensorAccessorOp(TTLOp):
    """The pages of a tensor: `%acc = ttl.tensor_accessor %a : tensor<...> -> !ttl.tensor_accessor<tensor<...>>`."""

    name = "ttl.tensor_accessor"

    tensor = operand_def()
    result = result_def(TensorAccessorType)

    traits = traits_def(Pure())

    def __init__(self, tensor: SSAValue) -> None:
        super().__init__(operands=[tensor], result_types=[TensorAccessorType(tensor.type)])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read the tensor and both types; the second may be the short one, `!ttl.accessor<...>`."""
        tensor = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        parser.parse_punctuation("->")
        place, result = parser.pos, parser.parse_type()
        if isinstance(result, AccessorType):
            if not result.fits(type_):
                parser.raise_error(f"expected an accessor of {type_}, found {result}", place, parser.pos)
            result = TensorAccessorType(type_)
        operand = parser.resolve_operand(tensor, type_)
        return cls.create(operands=[operand], result_types=[result], attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Write the tensor and both types."""
        printer.print_string(" ")
        printer.print_ssa_value(self.tensor)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.tensor.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        """The accessor is that of this tensor."""
        if self.result.type != TensorAccessorType(self.tensor.type):
            raise VerifyException(f"expected {TensorAccessorType(self.tensor.type)}, found {self.result.type}")


@irdl_op_definition
class GetShardIdOp(TTLOp):
    """The number of the core in its grid, row by row: `%id = ttl.get_shard_id() : index`."""

    name = "ttl.get_shard_id"
    NON_NEGATIVE: ClassVar = True

    result = result_def(IndexType())

    traits = traits_def(Pure())
    assembly_format = "`(` `)` attr-dict `:` type($result)"

    def __init__(self) -> None:
        super().__init__(result_types=[IndexType()])


@irdl_op_definition
class CoreOp(TTLOp):
    """The coordinates of the core in its grid: `%x, %y = ttl.core(dims = 2) : index, index`.

    With one dimension, its number row by row: x + y * (columns of the grid).
    """

    name = "ttl.core"
    NON_NEGATIVE: ClassVar = True

    coordinates = var_result_def(IndexType())

    traits = traits_def(Pure())

    def __init__(self, dims: int) -> None:
        super().__init__(result_types=[[IndexType()] * dims])

    def verify_(self) -> None:
        """A grid has two dimensions."""
        if len(self.coordinates) not in (1, 2):
            raise VerifyException(f"a core has one or two coordinates, found dims = {len(self.coordinates)}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read `(dims = 2) : index, index`; the types may be left out."""
        with parser.in_parens():
            parser.parse_keyword("dims")
            parser.parse_punctuation("=")
            dims = parser.parse_integer()
        op = cls(dims)
        op.attributes.update(parser.parse_optional_attr_dict())
        if parser.parse_optional_punctuation(":"):
            parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        return op

    def print(self, printer: Printer) -> None:
        """Write the number of dimensions and the types."""
        printer.print_string(f"(dims = {len(self.coordinates)})")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list(self.coordinates, lambda each: printer.print_attribute(each.type))
