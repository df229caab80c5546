"""Values that an expression of a kernel can have while it is compiled."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, fields
from types import ModuleType
from typing import Any, ClassVar, TypeAlias, TypeVar, cast, dataclass_transform

from xdsl.ir import SSAValue

from tlx_xdsl.errors import let_through
from tlx_xdsl.language.core import builtin_name, dtype, pointer_type
from tlx_xdsl.language.tlx.ranks import Peers
from tlx_xdsl.layouts.encodings import Ints


def describe_object(value: Any) -> str:
    """The display name of a compile-time object, on one short line: a function by its name, a number by its digits."""
    if isinstance(value, ModuleType):
        return f"the module '{value.__name__}'"
    if isinstance(value, dtype | pointer_type):
        return f"the type {value}"
    name = getattr(value, "__name__", None)
    if isinstance(value, type):
        return f"the class '{name}'"
    if callable(value) and isinstance(name, str):
        return f"the function '{builtin_name(value) or name}'"
    return "None" if value is None else f"the constexpr {shown(value)}"


_LONGEST = 80
"""Characters of a compile-time object that messages show."""


def shown(value: Any) -> str:
    """A compile-time object as Python writes it, on one line and cut where it gets long; a function by its name."""
    name = getattr(value, "__name__", None)
    if isinstance(name, str):
        return builtin_name(value) or name
    try:
        text = " ".join(repr(value).split())
    except Exception as error:
        let_through(error)
        # An integer of thousands of digits has no decimal spelling, and a class of the user's can do anything.
        text = hex(value) if isinstance(value, int) else f"<{type(value).__name__}>"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


@dataclass_transform(frozen_default=True, eq_default=False)
class _Base:
    """Base of the values, each of which is a frozen dataclass that is compared by identity."""

    CLASS_NAME: ClassVar[str] = ""
    """The name of the class of the language whose instances these are; empty when there is none."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, eq=False)(cls)


class Constexpr(_Base):
    """A Python object known at compile time: a number, a type, a function, a module."""

    value: Any

    def describe(self) -> str:
        """The display name of the value, for error messages."""
        return describe_object(self.value)


class Tensor(_Base):
    """A runtime value: a scalar (shape `()`) or a block."""

    CLASS_NAME: ClassVar = "tensor"
    ssa: SSAValue
    dtype: dtype | pointer_type
    shape: Ints = ()

    def describe(self) -> str:
        """The display name of the value, for error messages."""
        if not self.shape:
            return f"a runtime value of type {self.dtype}"
        return f"a block of type {self.dtype}[{', '.join(map(str, self.shape))}]"


class BufferedTensor(_Base):
    """Buffers in shared or tensor memory: `num` of them, or one view when `num` is 0."""

    CLASS_NAME: ClassVar = "buffered_tensor"
    ssa: SSAValue
    dtype: dtype
    shape: Ints
    """Shape of one buffer, in elements."""
    num: int

    def describe(self) -> str:
        """The display name of the value, for error messages."""
        what = f"{self.num} buffers" if self.num else "a buffer"
        return f"{what} of type {self.dtype}[{', '.join(map(str, self.shape))}]"


class MBarriers(_Base):
    """mbarriers: `num` of them, or one when `num` is 0."""

    CLASS_NAME: ClassVar = "mbarrier"
    ssa: SSAValue
    num: int
    per_thread: bool = False
    """True if each thread that arrives counts for itself (`tlx.alloc_warp_barrier`)."""

    def describe(self) -> str:
        """The display name of the value, for error messages."""
        return f"an array of {self.num} mbarriers" if self.num else "an mbarrier"


class ClcResponses(_Base):
    """Responses of the cluster launch control: `num` of them, or one when `num` is 0."""

    CLASS_NAME: ClassVar = "clc_response"
    ssa: SSAValue
    num: int

    def describe(self) -> str:
        """The display name of the value, for error messages."""
        return f"an array of {self.num} CLC responses" if self.num else "a CLC response"


class ClcContext(_Base):
    """State that the producer and the consumers of tiles share (`tlx.clc_create_context`)."""

    CLASS_NAME: ClassVar = "CLCPipelineContext"
    empty: MBarriers
    full: MBarriers
    responses: ClcResponses

    def describe(self) -> str:
        """The display name of the value, for error messages."""
        return "a CLC context"


class DescriptorRoom(_Base):
    """Room for TMA descriptors of 128 bytes in global memory: for `num` of them, or one when `num` is 0."""

    CLASS_NAME: ClassVar = "tensor_descriptor_ptr"
    ssa: SSAValue
    num: int

    def describe(self) -> str:
        """The display name of the value, for error messages."""
        return f"room for {self.num} tensor descriptors" if self.num else "room for a tensor descriptor"


class AsyncToken(_Base):
    """A handle on an asynchronous copy."""

    CLASS_NAME: ClassVar = "async_token"
    ssa: SSAValue

    def describe(self) -> str:
        """The display name of the value, for error messages."""
        return "an async_token"


class TensorDescriptor(_Base):
    """A TMA descriptor with the tensor's shape (int32, elements) and strides (int64, elements)."""

    CLASS_NAME: ClassVar = "tensor_descriptor"
    ssa: SSAValue
    dtype: dtype
    block_shape: Ints
    shape: tuple[Tensor, ...]
    strides: tuple[Tensor, ...]

    def describe(self) -> str:
        """The display name of the value, for error messages."""
        return f"a tensor descriptor with blocks of type {self.dtype}[{', '.join(map(str, self.block_shape))}]"


class BlockPointer(_Base):
    """A block of a tensor in global memory at an offset that moves (`tl.make_block_ptr`)."""

    base: Tensor
    """The tensor's first element, a scalar pointer."""
    shape: tuple[Tensor, ...]
    """The tensor's sizes, int64, in elements."""
    strides: tuple[Tensor, ...]
    """int64, in elements."""
    offsets: tuple[Tensor, ...]
    """Coordinates at which the block begins, int32, in elements."""
    block_shape: Ints

    def describe(self) -> str:
        """The display name of the value, for error messages."""
        return f"a block pointer of type {self.base.dtype}[{', '.join(map(str, self.block_shape))}]"


class StorageAliasSpec(_Base):
    """A region that allocations share."""

    CLASS_NAME: ClassVar = "storage_alias_spec_type_class"
    ssa: SSAValue

    def describe(self) -> str:
        """The display name of the value, for error messages."""
        return "a storage_alias_spec"


class ReuseGroup(_Base):
    """A node of an overlap tree."""

    CLASS_NAME: ClassVar = "reuse_group"
    ssa: SSAValue

    def describe(self) -> str:
        """The display name of the value, for error messages."""
        return "a reuse_group"


class TupleValue(_Base):
    """A tuple or list of values; a named one has its class."""

    CLASS_NAME: ClassVar = "tuple"
    items: tuple[Value, ...]
    cls: Any = None
    """The class that `collections.namedtuple` or `typing.NamedTuple` made; None for a plain tuple."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the items of a named tuple; empty for a plain one."""
        return () if self.cls is None else self.cls._fields

    def describe(self) -> str:
        """The display name of the value, for error messages."""
        if self.cls is not None:
            return f"a {self.cls.__name__}"
        return f"a tuple of {len(self.items)} value{'s' if len(self.items) != 1 else ''}"


def symmetric_of(values: Iterable[Value]) -> TupleValue | None:
    """The first symmetric tensor among values."""
    return next((each for each in values if isinstance(each, TupleValue) and each.cls is Peers), None)


class Aggregate(_Base):
    """An instance of an aggregate class: its declared fields, in order."""

    cls: Any
    names: tuple[str, ...]
    items: tuple[Value, ...]

    def describe(self) -> str:
        """The display name of the value, for error messages."""
        return f"a {self.cls.__name__}"


class NewAggregate(_Base):
    """The `self` of an aggregate's `__init__`: fields appear as they are assigned."""

    cls: Any
    names: tuple[str, ...]
    items: dict[str, Value]

    def describe(self) -> str:
        """The display name of the value, for error messages."""
        return f"a {self.cls.__name__} that is being made"


class Method(_Base):
    """A method of a value, not called yet."""

    receiver: Value
    name: str
    function: Any = None
    """For a method that the user wrote: the jitted function."""

    def describe(self) -> str:
        """The display name of the value, for error messages."""
        return f"the method '{self.name}'"


Value: TypeAlias = (
    Constexpr
    | Tensor
    | BufferedTensor
    | MBarriers
    | ClcResponses
    | ClcContext
    | DescriptorRoom
    | AsyncToken
    | TensorDescriptor
    | BlockPointer
    | StorageAliasSpec
    | ReuseGroup
    | TupleValue
    | Aggregate
    | NewAggregate
    | Method
)
"""Any of the above."""
Values: TypeAlias = dict[str, Value]
"""Values by the names that have them."""

NONE = Constexpr(None)
"""Result of a function that returns nothing."""


V = TypeVar("V")


def parts(value: Value) -> list[SSAValue]:
    """The IR values that `value` holds, in a fixed order: what a loop, a branch or a call passes on of it."""
    return list(_parts(value))


def _parts(value: object) -> Iterator[SSAValue]:
    if isinstance(value, SSAValue):
        yield value
    elif isinstance(value, tuple):
        for item in cast(tuple[object, ...], value):
            yield from _parts(item)
    elif not isinstance(value, Constexpr) and _is_value(value):
        for field in fields(cast(Any, value)):
            yield from _parts(getattr(value, field.name))


def rebuild(value: V, ssa: Iterator[SSAValue]) -> V:
    """`value` with other IR values instead of its own, in the order of `parts`."""
    if isinstance(value, SSAValue):
        return cast(V, next(ssa))
    if isinstance(value, tuple):
        return cast(V, tuple(rebuild(item, ssa) for item in cast(tuple[object, ...], value)))
    if not isinstance(value, Constexpr) and _is_value(value):
        new = {field.name: rebuild(getattr(value, field.name), ssa) for field in fields(cast(Any, value))}
        return cast(V, type(value)(**new))
    return value


def kind(value: object) -> Hashable:
    """Properties that values must share to be carried under one name: all but their IR values."""
    if isinstance(value, SSAValue):
        return cast(SSAValue, value).type
    if isinstance(value, tuple):
        return tuple(kind(item) for item in cast(tuple[object, ...], value))
    if isinstance(value, Constexpr):
        return (Constexpr, _hashable(value.value))
    if _is_value(value):
        return (type(value), *(kind(getattr(value, field.name)) for field in fields(cast(Any, value))))
    return _hashable(value)


def _hashable(value: object) -> Hashable:
    """`value` so that equal ones of equal type compare equal: True is not 1, and what has no hash is itself."""
    if isinstance(value, tuple | list):
        items = cast(tuple[object, ...], value)
        return (isinstance(value, list), tuple(_hashable(item) for item in items))
    try:
        hash(value)
    except TypeError:
        return (type(value), id(value))
    return (type(value), cast(Hashable, value))


def _is_value(value: object) -> bool:
    return type(value).__module__ == __name__
