"""Pipes between cores, and semaphores."""

from __future__ import annotations

from typing import ClassVar, Self

from xdsl.dialects.builtin import ArrayAttr, IndexType, IntAttr, IntegerAttr, UnitAttr, i32
from xdsl.ir import Region, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, NoTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from .base import Threads, TTLOp, parse_defined, parse_indices, parse_integers
from .types import PipeType, SemaphoreType


@irdl_op_definition
class CreatePipeOp(TTLOp):
    """A way from one core to a rectangle of others.

    Example: `%p = ttl.create_pipe src=[0, 0] dst_range=[[0, 1], [0, 3]] : !ttl.pipe`

    Coordinates are (x, y); the corners of the range belong to it.
    """

    name = "ttl.create_pipe"

    corners = prop_def(ArrayAttr[IntAttr])
    """The coordinates of the source, the first and the last destination."""
    result = result_def(PipeType)

    traits = traits_def(Pure())

    def __init__(self, src: tuple[int, int], first: tuple[int, int], last: tuple[int, int]) -> None:
        numbers = [IntAttr(each) for each in (*src, *first, *last)]
        super().__init__(properties={"corners": ArrayAttr(numbers)}, result_types=[PipeType()])

    @property
    def src(self) -> tuple[int, int]:
        """The coordinates of the sender."""
        return self.corners.data[0].data, self.corners.data[1].data

    @property
    def dst_range(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The coordinates of the first and of the last receiver."""
        x0, y0, x1, y1 = (each.data for each in self.corners.data[2:])
        return (x0, y0), (x1, y1)

    @property
    def destinations(self) -> list[tuple[int, int]]:
        """The coordinates of all receivers."""
        (x0, y0), (x1, y1) = self.dst_range
        return [(x, y) for y in range(y0, y1 + 1) for x in range(x0, x1 + 1)]

    @property
    def has_loopback(self) -> bool:
        """Return whether the sender is a receiver, too."""
        return self.src in self.destinations

    def verify_(self) -> None:
        """There is a receiver."""
        (x0, y0), (x1, y1) = self.dst_range
        if min(*self.src, x0, y0) < 0:
            raise VerifyException("the coordinates of a core are not negative")
        if x0 > x1 or y0 > y1:
            raise VerifyException(f"the range of a pipe's receivers is empty: from {[x0, y0]} to {[x1, y1]}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read what `print` writes."""
        parser.parse_keyword("src")
        parser.parse_punctuation("=")
        at = parser.pos
        src = parse_integers(parser)
        parser.parse_keyword("dst_range")
        parser.parse_punctuation("=")
        corners = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_integers(parser))
        attributes = parser.parse_optional_attr_dict()
        if parser.parse_optional_punctuation(":"):
            parser.parse_type()
        if [len(src), *map(len, corners)] != [2, 2, 2]:
            parser.raise_error("expected two coordinates each: src=[x, y] dst_range=[[x, y], [x, y]]", at)
        first, last = corners
        op = cls((src[0], src[1]), (first[0], first[1]), (last[0], last[1]))
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        """Write the coordinates."""
        first, last = self.dst_range
        printer.print_string(f" src={list(self.src)} dst_range=[{list(first)}, {list(last)}]")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)


class _IfOp(TTLOp):
    """Base of what happens on one side of a pipe only."""

    THREADS: ClassVar = Threads.DATAMOVEMENT

    pipe = operand_def(PipeType)
    body = region_def("single_block")

    traits = traits_def(NoTerminator())

    def __init__(self, pipe: SSAValue, body: Region) -> None:
        super().__init__(operands=[pipe], regions=[body])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read a pipe that was defined before, and the body."""
        pipe = parse_defined(parser)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(pipe, parser.parse_region())
        op.attributes.update({} if attributes is None else attributes.data)
        return op

    def print(self, printer: Printer) -> None:
        """Write the pipe and the body."""
        printer.print_string(" ")
        printer.print_ssa_value(self.pipe)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_empty_block=False)


@irdl_op_definition
class IfSrcOp(_IfOp):
    """The sender's side of a pipe: `ttl.if_src %p {...}`."""

    name = "ttl.if_src"


@irdl_op_definition
class IfDstOp(_IfOp):
    """The receivers' side of a pipe: `ttl.if_dst %p {...}`."""

    name = "ttl.if_dst"


@irdl_op_definition
class PipeYieldOp(TTLOp):
    """The end of what happens on one side of a pipe; it may be left out."""

    name = "ttl.pipe_yield"

    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict"


@irdl_op_definition
class CreateSemaphoreOp(TTLOp):
    """A counter that each core has: `%s = ttl.create_semaphore {initial = 0 : i32} : !ttl.semaphore`.

    `index` is its number among those of the kernel, which `ttl-expand-threads` gives.
    """

    name = "ttl.create_semaphore"

    initial = prop_def(IntegerAttr)
    index = opt_prop_def(IntegerAttr)
    result = result_def(SemaphoreType)

    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, initial: int = 0) -> None:
        super().__init__(properties={"initial": IntegerAttr(initial, i32)}, result_types=[SemaphoreType()])


class SemaphoreOp(TTLOp):
    """Base of the operations on a semaphore, of the own core where no coordinates are given.

    Coordinates are (x, y) of a core, or (x, y, x, y) of the corners of a range of cores.
    """

    THREADS: ClassVar = Threads.DATAMOVEMENT

    semaphore = operand_def(SemaphoreType)
    value = operand_def(i32)
    coordinates = var_operand_def(IndexType())
    loopback = opt_prop_def(UnitAttr)

    def __init__(
        self, semaphore: SSAValue, value: SSAValue, coordinates: tuple[SSAValue, ...] = (), *, loopback: bool = False
    ) -> None:
        super().__init__(
            operands=[semaphore, value, coordinates], properties={"loopback": UnitAttr() if loopback else None}
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read `%s, %v [%x, %y]`."""
        semaphore = parse_defined(parser)
        parser.parse_punctuation(",")
        value = parse_defined(parser)
        coordinates = parse_indices(parser)
        attributes = parser.parse_optional_attr_dict()
        op = cls(semaphore, value, tuple(coordinates), loopback=attributes.pop("loopback", None) is not None)
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        """Write `%s, %v [%x, %y]`."""
        printer.print_string(" ")
        printer.print_ssa_value(self.semaphore)
        printer.print_string(", ")
        printer.print_ssa_value(self.value)
        if self.coordinates:
            printer.print_string(" ")
            with printer.in_square_brackets():
                printer.print_list(self.coordinates, printer.print_ssa_value)
        printer.print_op_attributes({**self.properties, **self.attributes})

    COORDINATES: ClassVar = (0,)

    def verify_(self) -> None:
        """A core or a range has so many coordinates."""
        if len(self.coordinates) not in self.COORDINATES:
            expected = " or ".join(map(str, self.COORDINATES))
            raise VerifyException(f"{self.name} takes {expected} coordinates, found {len(self.coordinates)}")


@irdl_op_definition
class SemaphoreWaitEqOp(SemaphoreOp):
    """Wait until the own semaphore has a value: `ttl.semaphore_wait_eq %s, %v`."""

    name = "ttl.semaphore_wait_eq"


@irdl_op_definition
class SemaphoreWaitMinOp(SemaphoreOp):
    """Wait until the own semaphore has at least a value: `ttl.semaphore_wait_min %s, %v`."""

    name = "ttl.semaphore_wait_min"


@irdl_op_definition
class SemaphoreSetOp(SemaphoreOp):
    """Set the own semaphore, or that of a core or of a range of cores: `ttl.semaphore_set %s, %v [%x, %y]`.

    Other cores get the own semaphore's value, which must be the same. With `loopback` the own core is in the range.
    """

    name = "ttl.semaphore_set"
    COORDINATES: ClassVar = (0, 2, 4)


@irdl_op_definition
class SemaphoreIncOp(SemaphoreOp):
    """Add to the semaphore of a core: `ttl.semaphore_inc %s, %v [%x, %y]`."""

    name = "ttl.semaphore_inc"
    COORDINATES: ClassVar = (0, 2)
