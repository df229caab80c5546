"""Types and enumerations of `tlx`."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import IntAttr, NoneAttr
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, ParametrizedAttribute, SpacedOpaqueSyntaxAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.str_enum import StrEnum


class StorageKind(StrEnum):
    """The memory that a buffer is in."""

    SMEM = "smem"
    """Shared memory of the thread block."""
    TMEM = "tmem"
    """Tensor memory of the multiprocessor (Blackwell)."""


class ReuseGroupKind(StrEnum):
    """The arrangement of the members of a reuse group in memory."""

    SHARED = "shared"
    """Members occupy the same region at each buffer index."""
    DISTINCT = "distinct"
    """Members never overlap."""


@irdl_attr_definition
class StorageKindAttr(EnumAttribute[StorageKind], SpacedOpaqueSyntaxAttribute):
    """`#tlx<storage_kind smem>`."""

    name = "tlx.storage_kind"


@irdl_attr_definition
class ReuseGroupKindAttr(EnumAttribute[ReuseGroupKind], SpacedOpaqueSyntaxAttribute):
    """`#tlx<reuse_group_kind shared>`."""

    name = "tlx.reuse_group_kind"


@irdl_attr_definition
class StorageAliasSpecType(ParametrizedAttribute, TypeAttribute):
    """A region that several allocations share: `!tlx.storage_alias_spec<smem>` or `<smem, 16384>` (bytes)."""

    name = "tlx.storage_alias_spec"

    storage: StorageKindAttr = param_def()
    size: Attribute = param_def()
    """An `IntAttr` in bytes, or `none` when the compiler computes it."""

    @staticmethod
    def get(storage: StorageKind, size: int | None) -> StorageAliasSpecType:
        """The type of a spec with an explicit `size` in bytes, or with a computed one."""
        return StorageAliasSpecType(StorageKindAttr(storage), NoneAttr() if size is None else IntAttr(size))

    @property
    def size_bytes(self) -> int | None:
        """The explicit size in bytes, or None."""
        size: Attribute = self.size
        return None if isinstance(size, NoneAttr) else cast(IntAttr[int], size).data

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Parse `<storage (, size)?>`."""
        with parser.in_angle_brackets():
            storage = parser.parse_str_enum(StorageKind)
            size: Attribute = NoneAttr()
            if parser.parse_optional_punctuation(",") is not None:
                size = IntAttr(parser.parse_integer(allow_boolean=False))
        return [StorageKindAttr(storage), size]

    def print_parameters(self, printer: Printer) -> None:
        """Print what `parse_parameters` reads."""
        with printer.in_angle_brackets():
            printer.print_string(self.storage.data.value)
            if self.size_bytes is not None:
                printer.print_string(f", {self.size_bytes}")


@irdl_attr_definition
class ReuseGroupType(ParametrizedAttribute, TypeAttribute):
    """A node of an overlap tree: `!tlx.reuse_group<shared>`."""

    name = "tlx.reuse_group"

    kind: ReuseGroupKindAttr = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Parse `<kind>`."""
        with parser.in_angle_brackets():
            return [ReuseGroupKindAttr(parser.parse_str_enum(ReuseGroupKind))]

    def print_parameters(self, printer: Printer) -> None:
        """Print what `parse_parameters` reads."""
        with printer.in_angle_brackets():
            printer.print_string(self.kind.data.value)
