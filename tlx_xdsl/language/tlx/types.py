"""The values of `tlx` as Python objects: what annotations name, and what holds its properties outside of a kernel too.

Inside of a kernel the frontend has values of its own; these classes state the same rules, and raise plain ValueError
and TypeError where they are used outside. All properties are read-only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NoReturn, TypeVar

from ..arguments import Int, Value
from ..core import dtype, hosted, int64, unwrapped

__all__ = [
    "CLCPipelineContext",
    "async_token",
    "async_token_type",
    "buffered_tensor",
    "buffered_tensor_type",
    "clc_response",
    "clc_response_type",
    "mbarrier",
    "mbarrier_type",
    "reuse_group",
    "reuse_group_ir_type",
    "reuse_group_type",
    "storage_alias_spec",
    "storage_alias_spec_type",
    "storage_alias_spec_type_class",
    "storage_kind",
    "tensor_descriptor_ptr",
    "tensor_descriptor_ptr_type",
]


B = TypeVar("B", "buffered_tensor", "mbarrier", "clc_response")
"""What is an array of buffers, barriers or responses, and one of them."""


def _no_index(name: str) -> NoReturn:
    raise RuntimeError(f"the index of a {name} has a meaning only inside a kernel compiled by tlx_xdsl.jit")


class storage_kind(Enum):
    """Memory of a buffer.

    Example: `total = tlx.local_alloc((128, 128), tl.float32, 1, tlx.storage_kind.tmem)`
    """

    smem = "smem"
    """Shared memory of the thread block."""
    tmem = "tmem"
    """Tensor memory (Blackwell)."""
    smemCluster = "smemCluster"
    """Shared memory of the thread-block cluster."""


class reuse_group_type(Enum):
    """Placement of the members of a `reuse_group` in memory.

    Example: `region.set_buffer_overlap(tlx.reuse_group(one, two, group_type=tlx.reuse_group_type.distinct))`
    """

    shared = "shared"
    """Members occupy the same region at each buffer index."""
    distinct = "distinct"
    """Members never overlap."""


def checked_spec(storage: Any, buffer_size_bytes: Any) -> tuple[storage_kind, int | None]:
    """The storage and the size in bytes of a spec, without `constexpr` around them.

    Raises ValueError when storage is no kind for a spec, or the size is not positive.
    """
    storage, size = unwrapped(storage), unwrapped(buffer_size_bytes)
    if not isinstance(storage, storage_kind):
        raise ValueError(f"storage must be a tlx.storage_kind, got {type(storage).__name__}")
    if storage is storage_kind.smemCluster:
        raise ValueError("smemCluster storage is not supported for storage_alias_spec")
    if size is None:
        return storage, None
    if isinstance(size, bool) or not isinstance(size, int):
        raise ValueError("buffer_size_bytes must be a compile-time constant")
    if size <= 0:
        raise ValueError(f"buffer_size_bytes must be positive, got {size}")
    return storage, size


class storage_alias_spec_type:
    """The type of a spec: its storage and its explicit size in bytes."""

    def __init__(self, storage: storage_kind, buffer_size_bytes: int | None = None):
        self._storage, self._size = checked_spec(storage, buffer_size_bytes)

    @property
    def storage(self) -> storage_kind:
        """The memory of the region."""
        return self._storage

    @property
    def buffer_size_bytes(self) -> int | None:
        """The explicit size, or None when the compiler computes it."""
        return self._size

    def mangle(self) -> str:
        """A name for the type that has no two meanings."""
        return f"storage_alias_spec_{self._storage.value}" + ("" if self._size is None else f"_{self._size}")

    def __eq__(self, other: object) -> bool:
        """Types are equal when storage and size are."""
        return isinstance(other, storage_alias_spec_type) and self.mangle() == other.mangle()

    def __hash__(self) -> int:
        """Agree with equality."""
        return hash(self.mangle())

    def __repr__(self) -> str:
        """Return the type as it stands in IR."""
        return f"storage_alias_spec<{self._storage.value}" + (">" if self._size is None else f", {self._size}>")


class storage_alias_spec_type_class:
    """The value that `storage_alias_spec` makes: a region that several allocations share, without an owner."""

    def __init__(
        self,
        handle: Any = None,
        storage: storage_kind = storage_kind.smem,
        buffer_size_bytes: int | None = None,
    ):
        self._handle = handle
        self._type = storage_alias_spec_type(storage, buffer_size_bytes)

    @property
    def handle(self) -> Any:
        """The value in IR, or None outside of a kernel."""
        return self._handle

    @property
    def type(self) -> storage_alias_spec_type:
        """The type of the spec."""
        return self._type

    @property
    def storage(self) -> storage_kind:
        """The memory of the region."""
        return self._type.storage

    @property
    def buffer_size_bytes(self) -> int | None:
        """The explicit size in bytes, or None when the compiler computes it."""
        return self._type.buffer_size_bytes

    def set_buffer_overlap(self, overlap_def: reuse_group) -> None:
        """Say how the allocations of this region overlap; a kernel's code calls it.

        Raises TypeError when `overlap_def` is no reuse_group, RuntimeError outside of a kernel.
        """
        if not isinstance(unwrapped(overlap_def), reuse_group):
            raise TypeError(f"overlap_def must be a reuse_group, got {type(unwrapped(overlap_def)).__name__}")
        raise RuntimeError("set_buffer_overlap has a meaning only inside a kernel compiled by tlx_xdsl.jit")

    def __repr__(self) -> str:
        """Return the constructor call."""
        size = "" if self.buffer_size_bytes is None else f", size={self.buffer_size_bytes}"
        return f"storage_alias_spec(storage={self.storage.value}{size})"


@hosted("tlx")
def storage_alias_spec(
    storage: storage_kind = storage_kind.smem, buffer_size_bytes: int | None = None
) -> storage_alias_spec_type_class:
    """Name a region that several allocations share; its `set_buffer_overlap(group)` says how they overlap.

    `buffer_size_bytes` is the size of the whole region; without it the compiler computes the smallest one.

    Raises ValueError for storage other than smem and tmem, and for a size that is not positive.

    Example: `region = tlx.storage_alias_spec(tlx.storage_kind.smem)`
    """
    return storage_alias_spec_type_class(None, storage, buffer_size_bytes)


def checked_group(count: int, group_type: Any, group_size: Any) -> tuple[reuse_group_type, int]:
    """The kind and the size of a group with `count` members, without `constexpr` around them.

    Raises ValueError for a group without members or with a size below 1, TypeError for another kind of kind.
    """
    kind, size = unwrapped(group_type), unwrapped(group_size)
    if not count:
        raise ValueError("reuse_group requires at least one element")
    if not isinstance(kind, reuse_group_type):
        raise TypeError(f"group_type must be a reuse_group_type, got {type(kind).__name__}")
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise ValueError(f"group_size must be a positive integer, got {size}")
    return kind, size


def not_a_member(name: str) -> TypeError:
    """The error that a value, of the type `name`, can't be a member of a group."""
    return TypeError(f"reuse_group elements must be buffered_tensor or reuse_group, got {name}")


@hosted("tlx")
class reuse_group:
    """A node of an overlap tree over allocations and other groups.

    With `group_size` K, K consecutive buffers of a member count as one.

    Raises ValueError for a group without members or with a size below 1, TypeError for a member that is neither a
    buffered_tensor nor a reuse_group.

    Example: `region.set_buffer_overlap(tlx.reuse_group(one, two))`
    """

    def __init__(self, *args: Any, group_type: reuse_group_type = reuse_group_type.shared, group_size: Int = 1):
        members = tuple(unwrapped(arg) for arg in args)
        self._group_type, self._group_size = checked_group(len(members), group_type, group_size)
        for member in members:
            if not isinstance(member, buffered_tensor | reuse_group):
                raise not_a_member(type(member).__name__)
        self._args = members

    @property
    def args(self) -> tuple[Any, ...]:
        """The members."""
        return self._args

    @property
    def group_type(self) -> reuse_group_type:
        """The placement of the members in memory."""
        return self._group_type

    @property
    def group_size(self) -> int:
        """Consecutive buffers of a member that count as one."""
        return self._group_size

    def __repr__(self) -> str:
        """Return the constructor call."""
        size = "" if self._group_size == 1 else f", group_size={self._group_size}"
        return f"reuse_group({len(self._args)} elements, group_type={self._group_type.value}{size})"


class reuse_group_ir_type:
    """The type of a group in IR."""

    def __init__(self, group_kind: reuse_group_type):
        kind = unwrapped(group_kind)
        if not isinstance(kind, reuse_group_type):
            raise TypeError(f"group_kind must be a reuse_group_type, got {type(kind).__name__}")
        self._group_kind = kind

    @property
    def group_kind(self) -> reuse_group_type:
        """The placement of the members in memory."""
        return self._group_kind

    def mangle(self) -> str:
        """A name for the type that has no two meanings."""
        return f"reuse_group_{self._group_kind.value}"

    def __eq__(self, other: object) -> bool:
        """Types are equal when their kinds are."""
        return isinstance(other, reuse_group_ir_type) and self._group_kind is other._group_kind

    def __hash__(self) -> int:
        """Agree with equality."""
        return hash(self._group_kind)

    def __repr__(self) -> str:
        """Return the type as it stands in IR."""
        return f"reuse_group<{self._group_kind.value}>"


class buffered_tensor_type:
    """The type of `num` buffers of `shape` elements; one view when `num` is 0."""

    def __init__(self, element_ty: dtype, shape: Sequence[int], num: int, storage: storage_kind, layout: Any = None):
        self.element_ty = element_ty
        self.shape = tuple(unwrapped(size) for size in shape)
        self.num: int = unwrapped(num)
        self.storage = storage
        self.layout = layout

    def mangle(self) -> str:
        """A name for the type that has no two meanings."""
        sizes = "_".join(map(str, self.shape))
        return f"buffered_{self.element_ty}_{sizes}_{self.num}_{self.storage.value}"

    def __eq__(self, other: object) -> bool:
        """Types are equal when everything but the layout is."""
        return isinstance(other, buffered_tensor_type) and self.mangle() == other.mangle()

    def __hash__(self) -> int:
        """Agree with equality."""
        return hash(self.mangle())

    def __repr__(self) -> str:
        """Return the type in words."""
        sizes = ", ".join(map(str, self.shape))
        return f"buffered_tensor<{self.num} x {self.element_ty}[{sizes}], {self.storage.value}>"


class mbarrier_type(buffered_tensor_type):
    """The type of `num` mbarriers; one of them when `num` is 0."""

    def __init__(
        self,
        num: int,
        layout: Any = None,
        storage: storage_kind = storage_kind.smem,
        is_warp_barrier: bool = False,
    ):
        super().__init__(int64, (1,), num, storage, layout)
        self.is_warp_barrier = is_warp_barrier

    def mangle(self) -> str:
        """A name for the type that has no two meanings."""
        return f"{'warp_' if self.is_warp_barrier else ''}mbarrier_{self.num}_{self.storage.value}"


class clc_response_type(buffered_tensor_type):
    """The type of `num` responses of the cluster launch control, 16 bytes each; one of them when `num` is 0."""

    def __init__(self, num: int, layout: Any = None):
        super().__init__(int64, (2,), num, storage_kind.smem, layout)

    def mangle(self) -> str:
        """A name for the type that has no two meanings."""
        return f"clc_response_{self.num}"


class async_token_type:
    """The type of a token of asynchronous copies."""

    def __init__(self, value: Any = None):
        self.value = value

    def mangle(self) -> str:
        """A name for the type."""
        return "async_token_type"

    def __eq__(self, other: object) -> bool:
        """Compare types, of which there is one."""
        return isinstance(other, async_token_type)

    def __hash__(self) -> int:
        """Agree with equality."""
        return hash(self.mangle())

    def __repr__(self) -> str:
        """Return the name."""
        return self.mangle()


class tensor_descriptor_ptr_type:
    """The type of a pointer to `num` tensor descriptors of `size` bytes each."""

    def __init__(self, num: int, size: int = 128):
        self.num: int = unwrapped(num)
        self.size: int = unwrapped(size)

    def mangle(self) -> str:
        """A name for the type that has no two meanings."""
        return f"tensor_desc_ptr_{self.num}_{self.size}"

    def __eq__(self, other: object) -> bool:
        """Types are equal when both numbers are."""
        return isinstance(other, tensor_descriptor_ptr_type) and self.mangle() == other.mangle()

    def __hash__(self) -> int:
        """Agree with equality."""
        return hash(self.mangle())

    def __repr__(self) -> str:
        """Return the type with its numbers."""
        return f"tensor_descriptor_ptr_type(num={self.num}, size={self.size})"


class buffered_tensor:
    """An array of buffers in shared or tensor memory, as `local_alloc` makes it; `buf[i]` is buffer `i` of it."""

    def __init__(
        self,
        handle: Any,
        element_ty: dtype,
        shape: Sequence[int],
        num: int,
        storage: storage_kind,
        layout: Any = None,
    ):
        self._handle = handle
        self._type = buffered_tensor_type(element_ty, shape, num, storage, layout)

    @property
    def handle(self) -> Any:
        """The value in IR."""
        return self._handle

    @property
    def type(self) -> buffered_tensor_type:
        """The type, which holds shape, storage and layout."""
        return self._type

    @property
    def dtype(self) -> dtype:
        """The type of the elements."""
        return self._type.element_ty

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one buffer, in elements."""
        return self._type.shape

    def __getitem__(self, index: Value) -> buffered_tensor:
        """Buffer `index` of the array. Raises RuntimeError outside of a kernel."""
        _no_index("buffered_tensor")


@dataclass(eq=False, repr=False)
class mbarrier:
    """An array of `num` mbarriers, as `alloc_barriers` makes it; one barrier when `num` is 0."""

    handle: Any
    num: int
    layout: Any = None
    storage: storage_kind = storage_kind.smem
    is_warp_barrier: bool = False

    def __getitem__(self, index: Value) -> mbarrier:
        """Barrier `index` of the array. Raises RuntimeError outside of a kernel."""
        _no_index("mbarrier")


@dataclass(eq=False, repr=False)
class clc_response:
    """An array of `num` responses of the cluster launch control, 16 bytes each; one when `num` is 0."""

    handle: Any
    num: int
    layout: Any = None

    def __getitem__(self, index: Value) -> clc_response:
        """Response `index` of the array. Raises RuntimeError outside of a kernel."""
        _no_index("clc_response")


@dataclass(eq=False, repr=False)
class CLCPipelineContext:
    """The barriers and responses through which one CTA hands tiles to consumers (`clc_create_context`)."""

    clc_mbars_empty: mbarrier
    clc_mbars_full: mbarrier
    clc_responses: clc_response


class async_token:
    """A handle on an asynchronous copy, which orders operations and holds no data."""

    def __init__(self, handle: Any):
        self.handle = handle


@dataclass(eq=False, repr=False)
class tensor_descriptor_ptr:
    """Room for `num` TMA descriptors of `descriptor_size` bytes in global memory; `ptr[i]` is the i-th."""

    handle: Any
    num: int
    descriptor_size: int = 128

    def __getitem__(self, index: Value) -> tensor_descriptor_ptr:
        """Room for one descriptor. Raises RuntimeError outside of a kernel."""
        _no_index("tensor_descriptor_ptr")
