"""One frozen dataclass per layout attribute of Triton's `ttg` dialect (TritonGPUAttrDefs.td).

The dataclass *is* the payload of the xDSL attribute of the same name (`dialects/ttg/attrs.py`): its fields, in
order, are the keys of the textual form. A field's `key` metadata is its spelling in the text; a field whose value
equals its default is not printed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

Ints: TypeAlias = tuple[int, ...]
CGALayout: TypeAlias = tuple[Ints, ...]
"""Bases of the CTA-in-cluster dimension; empty for one CTA."""


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


DistributedLayout: TypeAlias = BlockedLayout | SliceLayout | NvidiaMmaLayout | DotOperandLayout
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


SharedLayout: TypeAlias = SwizzledSharedLayout | NvmmaSharedLayout
"""Layouts of buffers in shared memory."""

Layout: TypeAlias = DistributedLayout | SharedLayout
