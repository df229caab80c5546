"""Storage aliasing: several allocations that share one region of shared memory.

`tlx.storage_alias_spec` names the region, `tlx.storage_alias_local_alloc` allocates in it, `tlx.reuse_group` builds
the tree that says which allocations overlap, and `tlx.set_buffer_overlap` ties the tree to the region. The passes in
`transforms/storage_alias/` turn them into one `ttg.local_alloc` and `tlx.local_alias` views of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..base import ORDERED, DeclaredEffects, Effects, Feature, Features, Needs, View, ViewLayout, allocates
from ..ttg import MemDescType, SharedMemorySpaceAttr, memdesc_type
from ..ttng import TensorMemorySpaceAttr
from .types import (
    ReuseGroupKind,
    ReuseGroupKindAttr,
    ReuseGroupType,
    StorageAliasSpecType,
    StorageKind,
    StorageKindAttr,
)

_MEMORY: dict[StorageKind, tuple[type[Attribute], str]] = {
    StorageKind.SMEM: (SharedMemorySpaceAttr, "shared memory"),
    StorageKind.TMEM: (TensorMemorySpaceAttr, "tensor memory"),
}
"""The memory space of each kind of storage, and its name."""


@irdl_op_definition
class StorageAliasSpecOp(IRDLOperation):
    """Name a region that allocations share.

    `buffer_size_bytes` is the size that the user asked for; `buffer_shape` is what the pass
    `tlx-storage-alias-size-definition` settles on: bytes in shared memory, rows and columns in tensor memory.

    Example: `%s = tlx.storage_alias_spec storage = smem, size = 16384 : !tlx.storage_alias_spec<smem, 16384>`
    """

    name = "tlx.storage_alias_spec"
    NEEDS: ClassVar = Needs("tlx.storage_alias_spec in tensor memory")
    EFFECTS: ClassVar = Effects(allocates("result"))

    storage = prop_def(StorageKindAttr)
    buffer_size_bytes = opt_prop_def(IntegerAttr.constr(i64))
    buffer_shape = opt_prop_def(DenseArrayBase.constr(i64))
    result = result_def(StorageAliasSpecType)

    # No memory of its own, but two specs are two regions: it must not be merged with an equal one.
    traits = traits_def(DeclaredEffects())

    def __init__(self, storage: StorageKind, buffer_size_bytes: int | None = None):
        super().__init__(
            properties={
                "storage": StorageKindAttr(storage),
                "buffer_size_bytes": None if buffer_size_bytes is None else IntegerAttr(buffer_size_bytes, i64),
            },
            result_types=[StorageAliasSpecType.get(storage, buffer_size_bytes)],
        )

    @property
    def explicit_bytes(self) -> int | None:
        """The size that the user asked for, in bytes, or None."""
        return None if self.buffer_size_bytes is None else self.buffer_size_bytes.value.data

    def verify_(self) -> None:
        """The explicit size is positive and the type says the same; the shape is one of its memory."""
        if self.explicit_bytes is not None and self.explicit_bytes <= 0:
            raise VerifyException(f"buffer_size_bytes must be positive, got {self.explicit_bytes}")
        if self.result.type != StorageAliasSpecType.get(self.storage.data, self.explicit_bytes):
            raise VerifyException(f"storage kind and size do not match the type {self.result.type}")
        if self.buffer_shape is None:
            return
        kind, rank = self.storage.data, len(self.buffer_shape)
        if rank != (wanted := 2 if kind == StorageKind.TMEM else 1):
            raise VerifyException(f"{kind.name} storage_alias_spec must have {wanted}D shape, got {rank}D")
        if any(size < 1 for size in self.buffer_shape.get_values()):
            raise VerifyException(f"the shape must be positive, got {self.buffer_shape}")

    def print(self, printer: Printer) -> None:
        """Print ` storage = smem, size = 16384 {buffer_shape = ...} : type`."""
        printer.print_string(f" storage = {self.storage.data.value}")
        if self.explicit_bytes is not None:
            printer.print_string(f", size = {self.explicit_bytes}")
        shape: dict[str, Attribute] = {} if self.buffer_shape is None else {"buffer_shape": self.buffer_shape}
        printer.print_op_attributes(shape | self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse what `print` writes."""
        parser.parse_keyword("storage")
        parser.parse_punctuation("=")
        storage = parser.parse_str_enum(StorageKind)
        size: int | None = None
        if parser.parse_optional_punctuation(",") is not None:
            parser.parse_keyword("size")
            parser.parse_punctuation("=")
            size = parser.parse_integer(allow_boolean=False)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        parser.parse_type()
        op = cls(storage, size)
        if (shape := attributes.pop("buffer_shape", None)) is not None:
            op.properties["buffer_shape"] = shape
        op.attributes |= attributes
        return op

    def also_needs(self) -> Features:
        """Tensor memory is Blackwell's."""
        return (Feature.TENSOR_MEMORY,) if self.storage.data is StorageKind.TMEM else ()


@irdl_op_definition
class StorageAliasLocalAllocOp(IRDLOperation):
    """Allocate buffers in the region of a spec.

    The pass `tlx-buffer-offset-calculation` records the place: `buffer_offset` (from the start of a group to the
    allocation's first buffer), `bytes_between_buffers` (from one group of buffers to the next) and `group_size`
    (buffers of this allocation in a group). The first two are bytes in shared memory; in tensor memory they are
    columns, whatever the name says, because an offset in bytes would depend on the rows.

    Example: `%a = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<smem> -> !ttg.memdesc<...>`
    """

    name = "tlx.storage_alias_local_alloc"
    EFFECTS: ClassVar = Effects(allocates("result"))

    storage_alias = operand_def(StorageAliasSpecType)
    buffer_offset = opt_prop_def(IntegerAttr.constr(i64))
    bytes_between_buffers = opt_prop_def(IntegerAttr.constr(i64))
    group_size = opt_prop_def(IntegerAttr.constr(i64))
    result = result_def(MemDescType)

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(DeclaredEffects())
    assembly_format = "$storage_alias attr-dict `:` type($storage_alias) `->` type($result)"

    @property
    def is_placed(self) -> bool:
        """True if a place is recorded."""
        return self.buffer_offset is not None or self.bytes_between_buffers is not None or self.group_size is not None

    def verify_(self) -> None:
        """An array of buffers in the memory of the spec; a place is recorded as a whole, and can be one."""
        spec, buffers = self.storage_alias.type, self.result.type
        assert isinstance(spec, StorageAliasSpecType)
        kind = spec.storage.data
        space, where = _MEMORY[kind]
        if not isinstance(buffers.memory_space, space):
            raise VerifyException(f"storage_alias_spec has {kind.value} storage but result is not in {where}")
        if len(buffers.shape) < 2:
            raise VerifyException(f"must be an array of buffers, found {buffers}")
        if not self.is_placed:
            return
        if self.buffer_offset is None or self.bytes_between_buffers is None or self.group_size is None:
            raise VerifyException("buffer_offset, bytes_between_buffers and group_size are set together")
        if self.buffer_offset.value.data < 0:
            raise VerifyException(f"buffer_offset must not be negative, got {self.buffer_offset.value.data}")
        for name, attr in (("bytes_between_buffers", self.bytes_between_buffers), ("group_size", self.group_size)):
            if attr.value.data < 1:
                raise VerifyException(f"{name} must be positive, got {attr.value.data}")


@irdl_op_definition
class ReuseGroupOp(IRDLOperation):
    """A node of an overlap tree over allocations and other groups.

    `shared` members occupy the same region at each buffer index, `distinct` members never overlap. With
    `group_size` K, K consecutive buffers of a member count as one.

    Example: `%g = tlx.reuse_group(%a, %b) group_kind = shared, group_size = 2 : (...) -> !tlx.reuse_group<shared>`
    """

    name = "tlx.reuse_group"

    elements = var_operand_def()
    group_kind = prop_def(ReuseGroupKindAttr)
    group_size = prop_def(IntegerAttr.constr(i64))
    result = result_def(ReuseGroupType)

    traits = traits_def(Pure())

    def __init__(self, elements: Sequence[SSAValue], kind: ReuseGroupKind, group_size: int = 1):
        attr = ReuseGroupKindAttr(kind)
        super().__init__(
            operands=[elements],
            properties={"group_kind": attr, "group_size": IntegerAttr(group_size, i64)},
            result_types=[ReuseGroupType(attr)],
        )

    def verify_(self) -> None:
        """Check that there is a member, that members are allocations or groups, and that the group size is positive."""
        if not self.elements:
            raise VerifyException("reuse_group requires at least one element")
        if self.group_size.value.data < 1:
            raise VerifyException(f"group_size must be a positive integer, got {self.group_size.value.data}")
        if self.group_kind != self.result.type.kind:
            raise VerifyException(
                f"group_kind attribute ({self.group_kind.data.value}) doesn't match result type group kind "
                f"({self.result.type.kind.data.value})"
            )
        for element in self.elements:
            if not isinstance(element.type, MemDescType | ReuseGroupType):
                raise VerifyException(f"a member must be an allocation or a reuse_group, found {element.type}")

    def print(self, printer: Printer) -> None:
        """Print `(members) group_kind = kind (, group_size = K)? : (types) -> type`."""
        printer.print_operands(self.elements)
        printer.print_string(f" group_kind = {self.group_kind.data.value}")
        if self.group_size.value.data != 1:
            printer.print_string(f", group_size = {self.group_size.value.data}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_function_type([element.type for element in self.elements], [self.result.type])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse what `print` writes."""
        members = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        parser.parse_keyword("group_kind")
        parser.parse_punctuation("=")
        kind = parser.parse_str_enum(ReuseGroupKind)
        size = 1
        if parser.parse_optional_punctuation(",") is not None:
            parser.parse_keyword("group_size")
            parser.parse_punctuation("=")
            size = parser.parse_integer(allow_boolean=False)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        types = parser.parse_function_type()
        op = cls(parser.resolve_operands(members, types.inputs.data, position), kind, size)
        op.attributes |= attributes
        return op


@irdl_op_definition
class SetBufferOverlapOp(IRDLOperation):
    """Tie an overlap tree to a spec: `tlx.set_buffer_overlap(%spec, %group) : (type, type) -> ()`."""

    name = "tlx.set_buffer_overlap"
    EFFECTS: ClassVar = ORDERED

    storage_alias_spec = operand_def(StorageAliasSpecType)
    overlap_def = operand_def(ReuseGroupType)

    traits = traits_def(DeclaredEffects())
    assembly_format = (
        "`(` $storage_alias_spec `,` $overlap_def `)` attr-dict "
        "`:` `(` type($storage_alias_spec) `,` type($overlap_def) `)` `->` `(` `)`"
    )


@irdl_op_definition
class LocalAliasOp(IRDLOperation):
    """Another view of a buffer, from its first byte on: `%b = tlx.local_alias %a : !ttg.memdesc<..> -> ...`."""

    name = "tlx.local_alias"
    VIEW: ClassVar = View(ViewLayout.OWN, of_array=True)

    src = operand_def(MemDescType)
    result = result_def(MemDescType)

    traits = traits_def(Pure())
    assembly_format = "$src attr-dict `:` type($src) `->` type($result)"

    def verify_(self) -> None:
        """The memory space stays."""
        if memdesc_type(self.src.type).memory_space != memdesc_type(self.result.type).memory_space:
            raise VerifyException("requires the same memory space for all operands and results")
