"""Attributes, enumerations and descriptors of `ttng`: tensor memory and its layouts, cache policies.

TritonNvidiaGPUAttrDefs.td, TritonNvidiaGPUEnums.td, TritonNvidiaGPUTypes.td.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import FloatAttr, IntAttr, IntegerAttr, NoneAttr, f32, i32
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.layouts.encodings import Layout, TensorMemoryLayout, TensorMemoryScalesLayout

from ..base import (
    Keyword,
    LayoutAttr,
    Space,
    parameter_types,
    parse_entries,
    parse_keyword_of,
    print_entries,
    shown_entries,
    spells,
)
from ..tt import CacheModifier, DescriptorType


class CacheEvictionPriority(Keyword):
    """The eviction priority of a cache line (PTX ISA, "Cache Eviction Priority Hints")."""

    NONE = 0
    EVICT_NORMAL = 1
    EVICT_UNCHANGED = 2
    EVICT_FIRST = 3
    EVICT_LAST = 4
    NO_ALLOCATE = 5


class TMEMWaitKind(Keyword):
    """The accesses to tensor memory that a wait is for."""

    LOAD = 0
    STORE = 1


class TMEMLoadReduceModifier(Keyword):
    """The reduction that a load from tensor memory makes along the way."""

    MIN = 1
    MAX = 2


class PackedArithOpKind(Keyword):
    """The function that a packed arithmetic instruction computes."""

    ADD = 0
    SUB = 1
    MUL = 2
    FMA = 3
    MIN = 4
    MAX = 5


class TensorMemoryScalesBlockRepOrder(Keyword):
    """The dimension along which blocks of scales advance first: M (or N), or K."""

    MN_THEN_K = 0, "mnThenK"
    K_THEN_MN = 1, "kThenMn"


_SPLIT_KEYS = {"CTASplitM": (1, 0), "CTASplitN": (0, 1)}
"""The CGA layout of tensor memory as Triton 3.6 and 3.7 write it, and the basis that splits along that dimension."""


class _TensorMemoryLayoutAttr(LayoutAttr):
    """Shared text of the layouts of tensor memory: no braces, and two spellings of the CGA layout."""

    braces = False

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Layout:
        """Parse `<blockM = 128, ...>`, with `CGALayout = [[1, 0]]` or `CTASplitM = 2`."""
        types = {**parameter_types(cls.layout_class), **dict.fromkeys(_SPLIT_KEYS, int)}
        position = parser.pos
        found = parse_entries(parser, cls.name, types, parser.Delimiter.ANGLE)
        bases: list[tuple[int, int]] = []
        for key, (m, n) in _SPLIT_KEYS.items():
            count = found.pop(key, 1)
            if not isinstance(count, int) or count < 1 or count & (count - 1):
                parser.raise_error(f"{key} must be a power of two", position)
            bases += [(m << bit, n << bit) for bit in range(count.bit_length() - 1)]
        if bases:
            found["CGALayout"] = tuple(bases)
        return cls.make(parser, found)

    def print_parameter(self, printer: Printer) -> None:
        """Print what `parse_parameter` reads, as the Triton version of the printer spells it."""
        entries = shown_entries(self.data)
        if spells(printer, "tmem_cta_splits"):
            bases = entries.get("CGALayout", ())
            assert isinstance(bases, tuple)
            splits = {key: 1 << sum(1 for basis in bases if basis[axis]) for axis, key in enumerate(_SPLIT_KEYS)}
            shown = {key: count for key, count in splits.items() if count > 1}
            entries = {
                name: value
                for key, old in entries.items()
                for name, value in (shown.items() if key == "CGALayout" else ((key, old),))
            }
        with printer.in_angle_brackets():
            print_entries(printer, entries)


@irdl_attr_definition
class TensorMemoryEncodingAttr(_TensorMemoryLayoutAttr):
    """`#ttng.tensor_memory_encoding`: see `TensorMemoryLayout`."""

    name = "ttng.tensor_memory_encoding"
    layout_class = TensorMemoryLayout


@irdl_attr_definition
class TensorMemoryScalesEncodingAttr(_TensorMemoryLayoutAttr):
    """`#ttng.tensor_memory_scales_encoding`: see `TensorMemoryScalesLayout`."""

    name = "ttng.tensor_memory_scales_encoding"
    layout_class = TensorMemoryScalesLayout


@irdl_attr_definition
class TensorMemorySpaceAttr(ParametrizedAttribute):
    """`#ttng.tensor_memory`: the memory space of buffers in the tensor memory of the multiprocessor (Blackwell)."""

    name = "ttng.tensor_memory"
    SPACE: ClassVar = Space.TENSOR


class _KeywordAttr(ParametrizedAttribute):
    """Base of an enumeration that is an attribute of its own: `#ttng.redOp<min>`.

    Each defines `number` again: xDSL compares attributes by the parameters of their own class.
    """

    number: IntAttr = param_def()

    ENUM: ClassVar[type[Keyword]]

    @property
    def case(self) -> Keyword:
        """The case."""
        return self.ENUM(self.number.data)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Parse `<keyword>`."""
        with parser.in_angle_brackets():
            return [IntAttr(parse_keyword_of(parser, cls.ENUM).value)]

    def print_parameters(self, printer: Printer) -> None:
        """Print what `parse_parameters` reads."""
        printer.print_string(f"<{self.case.keyword}>")


@irdl_attr_definition
class TMEMLoadReduceModifierAttr(_KeywordAttr):
    """`#ttng.redOp<min>`: the reduction of a `ttng.tmem_load`."""

    name = "ttng.redOp"

    number: IntAttr = param_def()

    ENUM: ClassVar[type[Keyword]] = TMEMLoadReduceModifier


@irdl_attr_definition
class TensorMemoryScalesBlockRepOrderAttr(_KeywordAttr):
    """`#ttng.blockRepOrder<kThenMn>`; in a layout the order stands as a bare keyword."""

    name = "ttng.blockRepOrder"

    number: IntAttr = param_def()

    ENUM: ClassVar[type[Keyword]] = TensorMemoryScalesBlockRepOrder


@irdl_attr_definition
class CachePolicyAttr(ParametrizedAttribute):
    """Hints for the caches of an NVIDIA GPU; what is not given has no hint.

    Example: `#ttng.cache_policy<l2_primary = evict_last, l2_fraction = 5.000000e-01 : f32>`
    """

    name = "ttng.cache_policy"

    cache_modifier: IntAttr = param_def()
    l1: IntAttr = param_def()
    l2_primary: IntAttr = param_def()
    l2_secondary: IntAttr = param_def()
    l2_fraction: Attribute = param_def()
    """A float attribute, or `none`."""
    l2_prefetch_size: Attribute = param_def()
    """An integer attribute, or `none`."""

    ENUMS: ClassVar[dict[str, type[Keyword]]] = {
        "cache_modifier": CacheModifier,
        "l1": CacheEvictionPriority,
        "l2_primary": CacheEvictionPriority,
        "l2_secondary": CacheEvictionPriority,
    }
    NUMBERS: ClassVar = ("l2_fraction", "l2_prefetch_size")

    def verify(self) -> None:
        """The parts of an L2 policy come together, and the numbers are those that PTX has."""
        primary, secondary = CacheEvictionPriority(self.l2_primary.data), CacheEvictionPriority(self.l2_secondary.data)
        l2_fraction, prefetch = self.l2_fraction, self.l2_prefetch_size
        given = [
            primary is not CacheEvictionPriority.NONE,
            secondary is not CacheEvictionPriority.NONE,
            not isinstance(l2_fraction, NoneAttr),
        ]
        if any(given) and not all(given):
            raise VerifyException("l2_primary, l2_secondary and l2_fraction come together")
        if primary is CacheEvictionPriority.NO_ALLOCATE:
            raise VerifyException(f"l2_primary cannot be {primary.keyword}")
        if secondary.value not in _SECONDARY:
            raise VerifyException(f"l2_secondary must be evict_first or evict_unchanged, found {secondary.keyword}")
        if not isinstance(l2_fraction, NoneAttr):
            value = float(l2_fraction.value.data) if isinstance(l2_fraction, FloatAttr) else 0.0
            if not 0 < value <= 1 or l2_fraction != FloatAttr(value, f32):
                raise VerifyException(f"l2_fraction must be an f32 above 0 and at most 1, found {l2_fraction}")
        if not isinstance(prefetch, NoneAttr) and prefetch not in _PREFETCH_SIZES:
            raise VerifyException(f"l2_prefetch_size must be an i32 of 64, 128 or 256, found {prefetch}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Parse `<name = value, ...>`, in any order."""
        found: dict[str, Attribute] = {}

        def parse_entry() -> None:
            position = parser.pos
            name = parser.parse_identifier(context_msg=" (cache policy parameter)")
            parser.parse_punctuation("=")
            if name in cls.ENUMS:
                found[name] = IntAttr(parse_keyword_of(parser, cls.ENUMS[name]).value)
            elif name in cls.NUMBERS:
                found[name] = parser.parse_attribute()
            else:
                names = ", ".join((*cls.ENUMS, *cls.NUMBERS))
                parser.raise_error(f"a cache policy has no parameter '{name}', expected one of {names}", position)

        parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parse_entry)
        return [
            *(found.get(name, IntAttr(_unset(enum).value)) for name, enum in cls.ENUMS.items()),
            *(found.get(name, NoneAttr()) for name in cls.NUMBERS),
        ]

    def print_parameters(self, printer: Printer) -> None:
        """Print what `parse_parameters` reads, without what is not given."""
        keywords = (self.cache_modifier, self.l1, self.l2_primary, self.l2_secondary)
        entries: list[tuple[str, Keyword | Attribute]] = [
            (name, enum(value.data))
            for (name, enum), value in zip(self.ENUMS.items(), keywords, strict=True)
            if value.data != _unset(enum)
        ]
        numbers = (self.l2_fraction, self.l2_prefetch_size)
        entries += [
            (name, value) for name, value in zip(self.NUMBERS, numbers, strict=True) if not isinstance(value, NoneAttr)
        ]

        def print_entry(entry: tuple[str, Keyword | Attribute]) -> None:
            name, value = entry
            printer.print_string(f"{name} = ")
            if isinstance(value, Attribute):
                printer.print_attribute(value)
            else:
                printer.print_string(value.keyword)

        with printer.in_angle_brackets():
            printer.print_list(entries, print_entry)


_SECONDARY = [
    priority.value
    for priority in (
        CacheEvictionPriority.NONE,
        CacheEvictionPriority.EVICT_FIRST,
        CacheEvictionPriority.EVICT_UNCHANGED,
    )
]
_PREFETCH_SIZES = [IntegerAttr(size, i32) for size in (64, 128, 256)]


def _unset(enum: type[Keyword]) -> Keyword:
    return enum["NONE"]


@irdl_attr_definition
class TensorDescIm2ColType(DescriptorType):
    """A TMA descriptor that reads an image as the columns of a matrix, for convolutions (PTX ISA, "im2col mode").

    Syntax: `!ttng.tensordesc_im2col<64x64xf16, #shared>`.
    """

    name = "ttng.tensordesc_im2col"

    def verify(self) -> None:
        """Blocks are matrices."""
        if len(self.shape) != 2:
            raise VerifyException(f"a block of im2col mode has two dimensions, found {len(self.shape)}")
