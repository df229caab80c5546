"""One frozen dataclass per layout attribute of Triton's `ttg` and `ttng` dialects (TritonGPUAttrDefs.td,
TritonNvidiaGPUAttrDefs.td).

The dataclass *is* the payload of the xDSL attribute of the same name (`dialects/ttg/attrs.py`): its fields, in
order, are the keys of the textual form, spelled as `key_of` says; a field whose value equals its default is not
printed. Where Triton's text is not a flat list of keys, the docstring shows it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

Ints: TypeAlias = tuple[int, ...]
Bases: TypeAlias = tuple[Ints, ...]
"""The image of each bit of an index: entry i is the tensor coordinate that the index 2**i has (`linear_layout`)."""
CGALayout: TypeAlias = Bases
"""Bases of the CTA-in-cluster dimension, in tiles of one CTA; empty for one CTA."""


def key_of(name: str) -> str:
    """The spelling of a field in the textual form: `warps_per_cta` is `warpsPerCTA`."""
    first, *others = (_ABBREVIATIONS.get(word, word) for word in name.split("_"))
    return first + "".join(word[0].upper() + word[1:] for word in others)


_ABBREVIATIONS = {"cga": "CGA", "cta": "CTA", "ctas": "CTAs"}


@dataclass(frozen=True, slots=True)
class BlockedLayout:
    """Each thread owns `size_per_thread` contiguous elements; threads and warps tile the tensor in `order`."""

    mnemonic: ClassVar[str] = "blocked"

    size_per_thread: Ints
    threads_per_warp: Ints
    warps_per_cta: Ints
    order: Ints
    """Dimensions from the fastest varying to the slowest."""
    cga_layout: CGALayout = ()


@dataclass(frozen=True, slots=True)
class SliceLayout:
    """`parent` with dimension `dim` removed: the layout of a tensor that is expanded to or reduced from it."""

    mnemonic: ClassVar[str] = "slice"

    dim: int
    parent: DistributedLayout


@dataclass(frozen=True, slots=True)
class NvidiaMmaLayout:
    """Accumulator layout of a tensor-core instruction: version 2 is mma.sync, version 3 is wgmma."""

    mnemonic: ClassVar[str] = "nvidia_mma"

    version_major: int
    version_minor: int
    warps_per_cta: Ints
    cga_layout: CGALayout = ()
    instr_shape: Ints = ()


@dataclass(frozen=True, slots=True)
class DotOperandLayout:
    """Layout of operand `op_idx` (0 is A, 1 is B) of a dot whose accumulator has layout `parent`."""

    mnemonic: ClassVar[str] = "dot_op"

    op_idx: int
    parent: DistributedLayout
    k_width: int = 0


@dataclass(frozen=True, slots=True)
class DistributedLinearLayout:
    """A register layout that is spelled out: every basis moves along one dimension, and no two of them alike.

    The shape that the bases span is that of the layout; a larger tensor repeats it, a smaller one is broadcast.
    """

    mnemonic: ClassVar[str] = "linear"

    register: Bases
    lane: Bases
    warp: Bases
    block: Bases


@dataclass(frozen=True, slots=True)
class GenericLinearLayout:
    """A `DistributedLinearLayout` whose warp bases may move along several dimensions, and whose elements may have
    several holders. From Triton 3.8 on.
    """

    mnemonic: ClassVar[str] = "generic_linear"

    register: Bases
    lane: Bases
    warp: Bases
    block: Bases


DistributedLayout: TypeAlias = (
    BlockedLayout | SliceLayout | NvidiaMmaLayout | DotOperandLayout | DistributedLinearLayout | GenericLinearLayout
)
"""Layouts of tensors in registers."""


@dataclass(frozen=True, slots=True)
class SwizzledSharedLayout:
    """Shared memory swizzled in vectors of `vec` elements: row r is XORed with (r / per_phase) mod max_phase."""

    mnemonic: ClassVar[str] = "swizzled_shared"

    vec: int
    per_phase: int
    max_phase: int
    order: Ints
    cga_layout: CGALayout = ()


@dataclass(frozen=True, slots=True)
class NvmmaSharedLayout:
    """The shared-memory tile layout that TMA writes and wgmma and tcgen05 read (PTX: "swizzling modes")."""

    mnemonic: ClassVar[str] = "nvmma_shared"

    swizzling_byte_width: int
    """Bytes in a swizzled row: 0, 32, 64 or 128."""
    transposed: bool
    element_bit_width: int
    fp4_padded: bool = False
    rank: int = 2
    cga_layout: CGALayout = ()


@dataclass(frozen=True, slots=True)
class PaddedSharedLayout:
    """Shared memory in the order that `offset` spells out, with `paddings[k]` elements of padding after every
    `intervals[k]` elements.

    Text: `#ttg.padded_shared<[4:+2, 8:+1] {offset = [[0, 1], [1, 0]], block = []}>`, and for elements that simply
    follow each other `#ttg.padded_shared<[4:+2, 8:+1] {order = [1, 0], shape = [2, 2]}>`.
    """

    mnemonic: ClassVar[str] = "padded_shared"

    intervals: Ints
    paddings: Ints
    offset: Bases
    block: Bases


@dataclass(frozen=True, slots=True)
class SharedLinearLayout:
    """Shared memory in the order that `offset` spells out, one basis per bit of the element's offset.

    Text: `#ttg.shared_linear<{offset = [[0, 1], [1, 0]], block = [[2, 0]]}, alignment = 16>`; an empty `block` is
    not printed.
    """

    mnemonic: ClassVar[str] = "shared_linear"

    offset: Bases
    block: Bases = ()
    alignment: int = field(kw_only=True)
    """Bytes that the buffer's address is a multiple of."""


SharedLayout: TypeAlias = SwizzledSharedLayout | NvmmaSharedLayout | PaddedSharedLayout | SharedLinearLayout
"""Layouts of buffers in shared memory."""


@dataclass(frozen=True, slots=True)
class TensorMemoryLayout:
    """Tensor memory in blocks of `block_m` by `block_n` elements, one after the other along M and then along N.

    Text: `#ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>`, without braces.
    """

    mnemonic: ClassVar[str] = "tensor_memory_encoding"

    block_m: int
    """Rows of the accumulator that one CTA holds: 64 or 128."""
    block_n: int
    col_stride: int
    """Elements from one element of a row to the next: 1, or more where elements are kept unpacked."""
    cga_layout: CGALayout = ()
    two_ctas: bool = False
    """Two CTAs work on one accumulator (PTX: `.cta_group::2`)."""
    fp4_padded: bool = False
    """Bytes of two fp4 values each take the space of two bytes (PTX: "kind::mxf8f6f4")."""

    @property
    def halves_columns(self) -> bool:
        """True where the right half of the columns is in lanes 64 to 127 (PTX ISA, "tcgen05.mma", "Layout B")."""
        return self.two_ctas and self.block_m == 64


BlockRepOrder: TypeAlias = Literal["mnThenK", "kThenMn"]


@dataclass(frozen=True, slots=True)
class TensorMemoryScalesLayout:
    """Tensor memory with the scales of a block-scaled MMA (PTX: "tcgen05 scale factor layout").

    Text: `#ttng.tensor_memory_scales_encoding<CGALayout = [[1, 0]], blockRepOrder = kThenMn>`, without braces.
    """

    mnemonic: ClassVar[str] = "tensor_memory_scales_encoding"

    cga_layout: CGALayout = ()
    block_rep_order: BlockRepOrder = "mnThenK"
    """The dimension along which blocks of scales advance first: M (or N), or K."""


TmemLayout: TypeAlias = TensorMemoryLayout | TensorMemoryScalesLayout
"""Layouts of buffers in tensor memory."""

Layout: TypeAlias = DistributedLayout | SharedLayout | TmemLayout


def describe(layout: Layout) -> str:
    """The kind of the layout, with the numbers by which a reader knows it: `nvmma_shared, swizzle of 128 bytes`."""
    if isinstance(layout, DistributedLayout):
        return _registers(layout)
    if isinstance(layout, SharedLayout):
        return _shared(layout)
    if isinstance(layout, TensorMemoryLayout):
        return f"tensor memory in blocks of {layout.block_m}x{layout.block_n}"
    return "tensor memory for scales"


def _registers(layout: DistributedLayout) -> str:
    match layout:
        case BlockedLayout():
            parts = f"{_by(layout.size_per_thread)} per thread, {_by(layout.threads_per_warp)} threads"
            return f"blocked, {parts}, {_by(layout.warps_per_cta)} warps"
        case SliceLayout():
            return f"slice without dimension {layout.dim} of ({describe(layout.parent)})"
        case NvidiaMmaLayout(version_major=3):
            return f"accumulator of wgmma with N = {layout.instr_shape[1]}, {_by(layout.warps_per_cta)} warps"
        case NvidiaMmaLayout():
            return f"accumulator of mma.sync {_by(layout.instr_shape)}, {_by(layout.warps_per_cta)} warps"
        case DotOperandLayout():
            return f"operand {'AB'[layout.op_idx]} of a dot with ({describe(layout.parent)})"
        case DistributedLinearLayout() | GenericLinearLayout():
            return f"{layout.mnemonic}, {1 << len(layout.register)} registers, {1 << len(layout.warp)} warps"


def _shared(layout: SharedLayout) -> str:
    match layout:
        case NvmmaSharedLayout():
            width = layout.swizzling_byte_width
            swizzle = f"swizzle of {width} bytes" if width else "no swizzle"
            return f"nvmma_shared{' transposed' if layout.transposed else ''}, {swizzle}"
        case SwizzledSharedLayout(max_phase=1):
            return f"swizzled_shared, no swizzle, order {list(layout.order)}"
        case SwizzledSharedLayout():
            phases = f"{layout.max_phase} phases of {layout.per_phase} rows"
            return f"swizzled_shared, vectors of {layout.vec}, {phases}, order {list(layout.order)}"
        case PaddedSharedLayout():
            pairs = zip(layout.intervals, layout.paddings, strict=True)
            return f"padded_shared, {', '.join(f'{more} more after every {every}' for every, more in pairs)}"
        case SharedLinearLayout():
            return f"shared_linear, aligned at {layout.alignment} bytes"


def _by(sizes: Ints) -> str:
    return "x".join(map(str, sizes))
