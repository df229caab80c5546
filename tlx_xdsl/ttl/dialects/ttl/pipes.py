"""Pipes between cores, and semaphores."""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Self

from xdsl.dialects.builtin import ArrayAttr, IndexType, IntAttr, IntegerAttr, UnitAttr, i32
from xdsl.ir import Attribute, Region, SSAValue
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

Place = tuple[int, int]
"""(x, y) of a core."""


class Way(NamedTuple):
    """A way from one core to a rectangle of others, by its corners."""

    src: Place
    first: Place
    last: Place

    @property
    def destinations(self) -> list[Place]:
        """The coordinates of all receivers."""
        return rectangle(self.first, self.last)


def rectangle(first: Place, last: Place) -> list[Place]:
    """The cores from one corner to the other, row by row."""
    return [(x, y) for y in range(first[1], last[1] + 1) for x in range(first[0], last[0] + 1)]


@irdl_op_definition
class CreatePipeOp(TTLOp):
    """A way from one core to a rectangle of others, or several such ways.

    Examples: `%p = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [3, 0]] : !ttl.pipe`,
    `%rows = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [3, 0]] count=[1, 8] : !ttl.pipe`

    Coordinates are (x, y); the corners of the range belong to it. With `count`, there is the same way for so many
    columns and rows, each moved by one core; with `gathers`, only the sources are others. No core is the source of two
    ways, and no core is a receiver of two if they do not gather.
    """

    name = "ttl.create_pipe"

    corners = prop_def(ArrayAttr[IntAttr])
    """The coordinates of the source, the first and the last destination."""
    count_attr = opt_prop_def(ArrayAttr[IntAttr])
    gathers = opt_prop_def(UnitAttr)
    result = result_def(PipeType)

    traits = traits_def(Pure())

    def __init__(self, src: Place, first: Place, last: Place, count: Place = (1, 1), *, gathers: bool = False) -> None:
        numbers = [IntAttr(each) for each in (*src, *first, *last)]
        counts = None if count == (1, 1) else ArrayAttr([IntAttr(each) for each in count])
        super().__init__(
            properties={
                "corners": ArrayAttr(numbers),
                "count_attr": counts,
                "gathers": UnitAttr() if gathers else None,
            },
            result_types=[PipeType()],
        )

    @property
    def src(self) -> Place:
        """The coordinates of the sender, of several ways the first one's."""
        return self.corners.data[0].data, self.corners.data[1].data

    @property
    def dst_range(self) -> tuple[Place, Place]:
        """The coordinates of the first and of the last receiver, of several ways the first one's."""
        x0, y0, x1, y1 = (each.data for each in self.corners.data[2:])
        return (x0, y0), (x1, y1)

    @property
    def count(self) -> Place:
        """The number of ways in x and y."""
        return (1, 1) if self.count_attr is None else (self.count_attr.data[0].data, self.count_attr.data[1].data)

    @property
    def ways(self) -> list[Way]:
        """All ways, row by row."""
        (x, y), ((x0, y0), (x1, y1)) = self.src, self.dst_range
        step = 0 if self.gathers is not None else 1
        columns, rows = self.count
        return [
            Way((x + i, y + j), (x0 + i * step, y0 + j * step), (x1 + i * step, y1 + j * step))
            for j in range(rows)
            for i in range(columns)
        ]

    @property
    def sources(self) -> tuple[Place, Place]:
        """The corners of the rectangle of all senders."""
        (x, y), (columns, rows) = self.src, self.count
        return (x, y), (x + columns - 1, y + rows - 1)

    @property
    def receivers(self) -> tuple[Place, Place]:
        """The corners of the rectangle of all receivers."""
        (first, (x, y)), (columns, rows) = self.dst_range, self.count
        return first, (x, y) if self.gathers is not None else (x + columns - 1, y + rows - 1)

    @property
    def destinations(self) -> list[Place]:
        """The coordinates of the receivers of a way, of several the first one's."""
        return rectangle(*self.dst_range)

    @property
    def has_loopback(self) -> bool:
        """Return whether a sender is a receiver of its own way, too."""
        return self.src in self.destinations

    def verify_(self) -> None:
        """Check that there is a receiver, and that ways do not meet."""
        (x0, y0), (x1, y1) = self.dst_range
        if min(*self.src, x0, y0) < 0:
            raise VerifyException("the coordinates of a core are not negative")
        if x0 > x1 or y0 > y1:
            raise VerifyException(f"the range of a pipe's receivers is empty: from {[x0, y0]} to {[x1, y1]}")
        columns, rows = self.count
        if columns < 1 or rows < 1:
            raise VerifyException(f"a pipe has a positive number of ways, found count={[columns, rows]}")
        if self.gathers is None and ((columns > 1 and x1 > x0) or (rows > 1 and y1 > y0)):
            raise VerifyException(
                "a core receives from two ways of the pipe: a range has one core where ways are moved"
            )

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
        count = [1, 1]
        if parser.parse_optional_keyword("count"):
            parser.parse_punctuation("=")
            count = parse_integers(parser)
        gathers = parser.parse_optional_keyword("gathers") is not None
        attributes = parser.parse_optional_attr_dict()
        if parser.parse_optional_punctuation(":"):
            parser.parse_type()
        if [len(src), *map(len, corners), len(count)] != [2, 2, 2, 2]:
            parser.raise_error("expected two coordinates each: src=[x, y] dst_range=[[x, y], [x, y]]", at)
        first, last = corners
        op = cls((src[0], src[1]), (first[0], first[1]), (last[0], last[1]), (count[0], count[1]), gathers=gathers)
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        """Write the coordinates."""
        first, last = self.dst_range
        count = "" if self.count_attr is None else f" count={list(self.count)}"
        gathers = "" if self.gathers is None else " gathers"
        printer.print_string(f" src={list(self.src)} dst_range=[{list(first)}, {list(last)}]{count}{gathers}")
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
    """The receivers' side of a pipe: `ttl.if_dst %p {...}`.

    Where the pipe gathers, it stands in loops over the sources, whose coordinates the copies name.
    """

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

    RESULTS: ClassVar[tuple[Attribute, ...]] = ()

    def __init__(
        self, semaphore: SSAValue, value: SSAValue, coordinates: tuple[SSAValue, ...] = (), *, loopback: bool = False
    ) -> None:
        super().__init__(
            operands=[semaphore, value, coordinates],
            properties={"loopback": UnitAttr() if loopback else None},
            result_types=self.RESULTS,
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


@irdl_op_definition
class BlockAddressOp(TTLOp):
    """The address of a block in the core's memory: `%at = ttl.block_address %view : tensor<...> -> i32`."""

    name = "ttl.block_address"
    THREADS: ClassVar = Threads.DATAMOVEMENT

    view = operand_def()
    result = result_def(i32)

    assembly_format = "$view attr-dict `:` type($view) `->` type($result)"

    def __init__(self, view: SSAValue) -> None:
        super().__init__(operands=[view], result_types=[i32])


@irdl_op_definition
class SemaphorePublishOp(SemaphoreOp):
    """Report to a core the address of a block, with its semaphore: `ttl.semaphore_publish %s, %address [%x, %y]`.

    The upper bits of the semaphore count what was reported (`PUBLISHED`), the lower ones add up addresses.
    """

    name = "ttl.semaphore_publish"
    COORDINATES: ClassVar = (2,)


@irdl_op_definition
class SemaphoreWaitPublishedOp(SemaphoreOp):
    """Wait until so many cores have reported an address, all the same one: `%at = ttl.semaphore_wait_published %s, %n`.

    The own semaphore is 0 afterwards.
    """

    name = "ttl.semaphore_wait_published"
    RESULTS: ClassVar = (IndexType(),)

    result = result_def(IndexType())


PUBLISHED = 1 << 23
"""A semaphore counts reported addresses in steps of this; below is their sum, in units of `ADDRESS_UNIT`."""
ADDRESS_UNIT = 32
"""Bytes. The sum of the addresses of as many cores as a chip has fits below `PUBLISHED`."""
