"""Layout and memory-space attributes of `ttg`, and its enumeration (TritonGPUAttrDefs.td, TritonGPUEnums.td).

Each layout attribute wraps the frozen dataclass of the same layout in `tlx_xdsl.layouts.encodings`; one generic
parser and printer serves them all: `#ttg.blocked<{sizePerThread = [1, 4], ...}>`.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from tlx_xdsl.layouts import encodings
from tlx_xdsl.layouts.encodings import Bases, Ints, Layout, PaddedSharedLayout, SharedLinearLayout

from ..base import Keyword, LayoutAttr, Space, parameter_types, parse_entries, print_entries, shown_entries


class SharedKind(Keyword):
    """Kinds of access to shared memory: by instructions, by an asynchronous engine, or as an mbarrier."""

    Generic = 0
    Async = 1
    Barrier = 2


class AddrSpace(Keyword):
    """Memory that a barrier orders; a bit mask."""

    Null = 0b00000, "none"
    Local = 0b00001
    GlobalRead = 0b00010, "global_read"
    GlobalWrite = 0b00100, "global_write"
    TensorRead = 0b01000, "tensor_read"
    TensorWrite = 0b10000, "tensor_write"
    All = 0b11111

    @staticmethod
    def of(mask: int) -> tuple[AddrSpace, ...]:
        """The fewest cases that make up `mask`, which must be within `All`."""
        for whole in (AddrSpace.Null, AddrSpace.All):
            if mask == whole.value:
                return (whole,)
        return tuple(space for space in AddrSpace if space not in (AddrSpace.Null, AddrSpace.All) and mask & space)


@irdl_attr_definition
class BlockedEncodingAttr(LayoutAttr):
    """`#ttg.blocked`: see `BlockedLayout`."""

    name = "ttg.blocked"
    layout_class = encodings.BlockedLayout


@irdl_attr_definition
class SliceEncodingAttr(LayoutAttr):
    """`#ttg.slice`: see `SliceLayout`."""

    name = "ttg.slice"
    layout_class = encodings.SliceLayout


@irdl_attr_definition
class NvidiaMmaEncodingAttr(LayoutAttr):
    """`#ttg.nvidia_mma`: see `NvidiaMmaLayout`.

    Parameters of before `CGALayout` are read where they say that there is one CTA; stock Triton skips them.
    """

    name = "ttg.nvidia_mma"
    layout_class = encodings.NvidiaMmaLayout
    PARSED_DEFAULTS: ClassVar = {"versionMinor": 0}
    FORMER: ClassVar = ("CTAsPerCGA", "CTASplitNum", "CTAOrder")

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Layout:
        """Parse `<{key = value, ...}>`."""
        with parser.in_angle_brackets():
            position = parser.pos
            types = {**parameter_types(cls.layout_class), **dict.fromkeys(cls.FORMER, Ints)}
            found = parse_entries(parser, cls.name, types)
        for key in cls.FORMER:
            sizes = found.pop(key, ())
            if key != "CTAOrder" and isinstance(sizes, tuple) and set(sizes) - {1}:
                parser.raise_error(f"'{cls.name}' of several CTAs needs CGALayout, '{key}' is not read", position)
        return cls.make(parser, found)


@irdl_attr_definition
class DotOperandEncodingAttr(LayoutAttr):
    """`#ttg.dot_op`: see `DotOperandLayout`."""

    name = "ttg.dot_op"
    layout_class = encodings.DotOperandLayout


@irdl_attr_definition
class SwizzledSharedEncodingAttr(LayoutAttr):
    """`#ttg.swizzled_shared`: see `SwizzledSharedLayout`."""

    name = "ttg.swizzled_shared"
    layout_class = encodings.SwizzledSharedLayout


@irdl_attr_definition
class NvmmaSharedEncodingAttr(LayoutAttr):
    """`#ttg.nvmma_shared`: see `NvmmaSharedLayout`."""

    name = "ttg.nvmma_shared"
    layout_class = encodings.NvmmaSharedLayout
    PARSED_DEFAULTS: ClassVar = {"transposed": False}


@irdl_attr_definition
class LinearEncodingAttr(LayoutAttr):
    """`#ttg.linear`: see `DistributedLinearLayout`."""

    name = "ttg.linear"
    layout_class = encodings.DistributedLinearLayout


@irdl_attr_definition
class GenericLinearEncodingAttr(LayoutAttr):
    """`#ttg.generic_linear`: see `GenericLinearLayout`."""

    name = "ttg.generic_linear"
    layout_class = encodings.GenericLinearLayout


@irdl_attr_definition
class PaddedSharedEncodingAttr(LayoutAttr):
    """`#ttg.padded_shared`: see `PaddedSharedLayout`."""

    name = "ttg.padded_shared"
    layout_class = PaddedSharedLayout

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Layout:
        """Parse `<[interval:+padding, ...] {offset = ..., block = ...}>`, or `{order = ..., shape = ...}`."""

        def parse_padding() -> tuple[int, int]:
            interval = parser.parse_integer(allow_boolean=False)
            parser.parse_punctuation(":")
            parser.parse_punctuation("+")
            return interval, parser.parse_integer(allow_boolean=False)

        with parser.in_angle_brackets():
            pairs = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parse_padding)
            position = parser.pos
            found = parse_entries(parser, cls.name, {"order": Ints, "shape": Ints, "offset": Bases, "block": Bases})
        match found:
            case {"order": tuple() as order, "shape": tuple() as shape} if len(found) == 2:
                if sorted(order) != list(range(len(shape))):
                    message = f"the order of '{cls.name}' must name each of the {len(shape)} dimensions once"
                    parser.raise_error(message, position)
                offset, block = row_major_bases(order, shape), ()
            case {"offset": tuple() as offset, "block": tuple() as block} if len(found) == 2:
                pass
            case _:
                parser.raise_error(f"'{cls.name}' takes either offset and block, or order and shape", position)
        intervals, paddings = tuple(i for i, _ in pairs), tuple(p for _, p in pairs)
        return cls.make(parser, {"intervals": intervals, "paddings": paddings, "offset": offset, "block": block})

    def print_parameter(self, printer: Printer) -> None:
        """Print what `parse_parameter` reads, with order and shape where they say it all."""
        layout = self.data
        assert isinstance(layout, PaddedSharedLayout)
        with printer.in_angle_brackets():
            with printer.in_square_brackets():
                pairs = zip(layout.intervals, layout.paddings, strict=True)
                printer.print_list(pairs, lambda pair: printer.print_string(f"{pair[0]}:+{pair[1]}"))
            printer.print_string(" ")
            with printer.in_braces():
                plain = None if layout.block else order_and_shape(layout.offset)
                if plain is None:
                    print_entries(printer, {"offset": layout.offset, "block": layout.block})
                else:
                    print_entries(printer, {"order": plain[0], "shape": plain[1]})


def row_major_bases(order: Ints, shape: Ints) -> Bases:
    """The bases of elements that follow each other, the dimension `order[0]` first."""
    return tuple(
        tuple(1 << bit if dim == along else 0 for dim in range(len(shape)))
        for along in order
        for bit in range(shape[along].bit_length() - 1)
    )


def order_and_shape(bases: Bases) -> tuple[Ints, Ints] | None:
    """The order and shape with the bases `bases`; None where elements do not simply follow each other."""
    if not bases:
        return None
    order: list[int] = []
    shape = [1] * len(bases[0])
    for basis in bases:
        moves = [(dim, step) for dim, step in enumerate(basis) if step]
        if len(moves) != 1 or moves[0][1] != shape[moves[0][0]]:
            return None
        dim = moves[0][0]
        if dim not in order:
            order.append(dim)
        elif order[-1] != dim:
            return None
        shape[dim] *= 2
    rest = [dim for dim in reversed(range(len(shape))) if dim not in order]
    return tuple(order + rest), tuple(shape)


@irdl_attr_definition
class SharedLinearEncodingAttr(LayoutAttr):
    """`#ttg.shared_linear`: see `SharedLinearLayout`."""

    name = "ttg.shared_linear"
    layout_class = SharedLinearLayout

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Layout:
        """Parse `<{offset = ..., block = ...}, alignment = 16>`."""
        with parser.in_angle_brackets():
            found = parse_entries(parser, cls.name, {"offset": Bases, "block": Bases})
            parser.parse_punctuation(",")
            parser.parse_keyword("alignment")
            parser.parse_punctuation("=")
            found["alignment"] = parser.parse_integer(allow_boolean=False)
        return cls.make(parser, found)

    def print_parameter(self, printer: Printer) -> None:
        """Print what `parse_parameter` reads."""
        entries = shown_entries(self.data)
        alignment = entries.pop("alignment")
        with printer.in_angle_brackets():
            with printer.in_braces():
                print_entries(printer, entries)
            printer.print_string(f", alignment = {alignment}")


@irdl_attr_definition
class PartitionedSharedEncodingAttr(ParametrizedAttribute):
    """Pieces of a buffer in several allocations, which AMD hardware uses; it can be read and printed, no more.

    Example: `#ttg.partitioned_shared<{numPartitions = 2, numGroups = 4, partitionDim = 0, partitionLayout = #shared}>`
    """

    name = "ttg.partitioned_shared"

    num_partitions: IntAttr = param_def()
    num_groups: IntAttr = param_def()
    partition_dim: IntAttr = param_def()
    partition_layout: Attribute = param_def()

    KEYS: ClassVar = ("numPartitions", "numGroups", "partitionDim", "partitionLayout")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Parse the parameters in their order."""
        parameters: list[Attribute] = []
        with parser.in_angle_brackets(), parser.in_braces():
            for key in cls.KEYS:
                if parameters:
                    parser.parse_punctuation(",")
                parser.parse_keyword(key)
                parser.parse_punctuation("=")
                is_layout = key == "partitionLayout"
                parameters.append(parser.parse_attribute() if is_layout else IntAttr(parser.parse_integer()))
        return parameters

    def print_parameters(self, printer: Printer) -> None:
        """Print what `parse_parameters` reads."""
        numbers = (self.num_partitions, self.num_groups, self.partition_dim)
        with printer.in_angle_brackets(), printer.in_braces():
            for key, number in zip(self.KEYS, numbers, strict=False):
                printer.print_string(f"{key} = {number.data}, ")
            printer.print_string("partitionLayout = ")
            printer.print_attribute(self.partition_layout)


@irdl_attr_definition
class SharedMemorySpaceAttr(ParametrizedAttribute):
    """`#ttg.shared_memory`: the memory space of buffers in the shared memory of the thread block."""

    name = "ttg.shared_memory"
    SPACE: ClassVar = Space.SHARED
