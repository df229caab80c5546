"""One frozen dataclass per layout attribute of Triton's `ttg` and `ttng` dialects (TritonGPUAttrDefs.td,
TritonNvidiaGPUAttrDefs.td).

The dataclass *is* the payload of the xDSL attribute of the same name (`dialects/ttg/attrs.py`): its fields, in
order, are the keys of the textual form. A field's `key` metadata is its spelling in the text; a field whose value
equals its default is not printed. Where Triton's text is not a flat list of keys, the docstring shows it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

Ints: TypeAlias = tuple[int, ...]
Bases: TypeAlias = tuple[Ints, ...]
"""The image of each bit of an index: entry i is the tensor coordinate that the index 2**i has (`linear_layout`)."""
CGALayout: TypeAlias = Bases
"""Bases of the CTA-in-cluster dimension, in tiles of one CTA; empty for one CTA."""


def _key(name: str, **kwargs: Any) -> Any:
    """A dataclass field that is spelled `name` in the textual form."""
    return field(metadata={"key": name}, **kwargs)


@dataclass(frozen=True, slots=True)
class BlockedLayout:
    """Each thread owns `size_per_thread` contiguous elements; threads and warps tile the tensor in `order`."""

    mnemonic: ClassVar[str] = "blocked"

    size_per_thread: Ints = _key("sizePerThread")
    threads_per_warp: Ints = _key("threadsPerWarp")
    warps_per_cta: Ints = _key("warpsPerCTA")
    order: Ints = _key("order")
    """Dimensions from the fastest varying to the slowest."""
    cga_layout: CGALayout = _key("CGALayout", default=())


@dataclass(frozen=True, slots=True)
class SliceLayout:
    """`parent` with dimension `dim` removed: the layout of a tensor that is expanded to or reduced from it."""

    mnemonic: ClassVar[str] = "slice"

    dim: int = _key("dim")
    parent: DistributedLayout = _key("parent")


@dataclass(frozen=True, slots=True)
class NvidiaMmaLayout:
    """Accumulator layout of a tensor-core instruction: version 2 is mma.sync, version 3 is wgmma."""

    mnemonic: ClassVar[str] = "nvidia_mma"

    version_major: int = _key("versionMajor")
    version_minor: int = _key("versionMinor")
    warps_per_cta: Ints = _key("warpsPerCTA")
    cga_layout: CGALayout = _key("CGALayout", default=())
    instr_shape: Ints = _key("instrShape", default=())


@dataclass(frozen=True, slots=True)
class DotOperandLayout:
    """Layout of operand `op_idx` (0 is A, 1 is B) of a dot whose accumulator has layout `parent`."""

    mnemonic: ClassVar[str] = "dot_op"

    op_idx: int = _key("opIdx")
    parent: DistributedLayout = _key("parent")
    k_width: int = _key("kWidth", default=0)


@dataclass(frozen=True, slots=True)
class DistributedLinearLayout:
    """A register layout that is spelled out: every basis moves along one dimension, and no two of them alike.

    The shape that the bases span is that of the layout; a larger tensor repeats it, a smaller one is broadcast.
    """

    mnemonic: ClassVar[str] = "linear"

    register: Bases = _key("register")
    lane: Bases = _key("lane")
    warp: Bases = _key("warp")
    block: Bases = _key("block")


@dataclass(frozen=True, slots=True)
class GenericLinearLayout:
    """Like `DistributedLinearLayout`, but a warp basis may move along several dimensions, and elements may have
    several holders. From Triton 3.8 on.
    """

    mnemonic: ClassVar[str] = "generic_linear"

    register: Bases = _key("register")
    lane: Bases = _key("lane")
    warp: Bases = _key("warp")
    block: Bases = _key("block")


DistributedLayout: TypeAlias = (
    BlockedLayout | SliceLayout | NvidiaMmaLayout | DotOperandLayout | DistributedLinearLayout | GenericLinearLayout
)
"""Layouts of tensors in registers."""


@dataclass(frozen=True, slots=True)
class SwizzledSharedLayout:
    """Shared memory swizzled in vectors of `vec` elements: row r is XORed with (r / per_phase) mod max_phase."""

    mnemonic: ClassVar[str] = "swizzled_shared"

    vec: int = _key("vec")
    per_phase: int = _key("perPhase")
    max_phase: int = _key("maxPhase")
    order: Ints = _key("order")
    cga_layout: CGALayout = _key("CGALayout", default=())


@dataclass(frozen=True, slots=True)
class NvmmaSharedLayout:
    """The shared-memory tile layout that TMA writes and wgmma and tcgen05 read (PTX: "swizzling modes")."""

    mnemonic: ClassVar[str] = "nvmma_shared"

    swizzling_byte_width: int = _key("swizzlingByteWidth")
    """Bytes in a swizzled row: 0, 32, 64 or 128."""
    transposed: bool = _key("transposed")
    element_bit_width: int = _key("elementBitWidth")
    fp4_padded: bool = _key("fp4Padded", default=False)
    rank: int = _key("rank", default=2)
    cga_layout: CGALayout = _key("CGALayout", default=())


@dataclass(frozen=True, slots=True)
class PaddedSharedLayout:
    """Shared memory in the order that `offset` spells out, with `paddings[k]` elements of padding after every
    `intervals[k]` elements.

    Text: `#ttg.padded_shared<[4:+2, 8:+1] {offset = [[0, 1], [1, 0]], block = []}>`, and for elements that simply
    follow each other `#ttg.padded_shared<[4:+2, 8:+1] {order = [1, 0], shape = [2, 2]}>`.
    """

    mnemonic: ClassVar[str] = "padded_shared"

    intervals: Ints = _key("intervals")
    paddings: Ints = _key("paddings")
    offset: Bases = _key("offset")
    block: Bases = _key("block")


@dataclass(frozen=True, slots=True)
class SharedLinearLayout:
    """Shared memory in the order that `offset` spells out, one basis per bit of the element's offset.

    Text: `#ttg.shared_linear<{offset = [[0, 1], [1, 0]], block = [[2, 0]]}, alignment = 16>`; an empty `block` is
    not printed.
    """

    mnemonic: ClassVar[str] = "shared_linear"

    offset: Bases = _key("offset")
    block: Bases = _key("block", default=())
    alignment: int = _key("alignment", kw_only=True)
    """Bytes that the buffer's address is a multiple of."""


SharedLayout: TypeAlias = SwizzledSharedLayout | NvmmaSharedLayout | PaddedSharedLayout | SharedLinearLayout
"""Layouts of buffers in shared memory."""


@dataclass(frozen=True, slots=True)
class TensorMemoryLayout:
    """Tensor memory in blocks of `block_m` by `block_n` elements, one after the other along M and then along N.

    Text: `#ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>`, without braces.
    """

    mnemonic: ClassVar[str] = "tensor_memory_encoding"

    block_m: int = _key("blockM")
    """Rows of the accumulator that one CTA holds: 64 or 128."""
    block_n: int = _key("blockN")
    col_stride: int = _key("colStride")
    """Elements from one element of a row to the next: 1, or more where elements are kept unpacked."""
    cga_layout: CGALayout = _key("CGALayout", default=())
    two_ctas: bool = _key("twoCTAs", default=False)
    """Two CTAs work on one accumulator (PTX: `.cta_group::2`)."""
    fp4_padded: bool = _key("fp4Padded", default=False)
    """Bytes of two fp4 values each take the space of two bytes (PTX: "kind::mxf8f6f4")."""


BlockRepOrder: TypeAlias = Literal["mnThenK", "kThenMn"]


@dataclass(frozen=True, slots=True)
class TensorMemoryScalesLayout:
    """Tensor memory with the scales of a block-scaled MMA (PTX: "tcgen05 scale factor layout").

    Text: `#ttng.tensor_memory_scales_encoding<CGALayout = [[1, 0]], blockRepOrder = kThenMn>`, without braces.
    """

    mnemonic: ClassVar[str] = "tensor_memory_scales_encoding"

    cga_layout: CGALayout = _key("CGALayout", default=())
    block_rep_order: BlockRepOrder = _key("blockRepOrder", default="mnThenK")
    """Whether blocks of scales advance along M (or N) first, or along K."""


TmemLayout: TypeAlias = TensorMemoryLayout | TensorMemoryScalesLayout
"""Layouts of buffers in tensor memory."""

Layout: TypeAlias = DistributedLayout | SharedLayout | TmemLayout
