"""Faults of layouts, and of layouts for the shape of a buffer: what stock Triton refuses where the text names them
(the verifiers of TritonGPUAttrDefs.td, TritonNvidiaGPUAttrDefs.td and of `!ttg.memdesc`).

Each function returns a sentence that says what was expected and what was found, or None where all is well.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

from .conversion.distributed import rank_of
from .conversion.shared import MAX_BOX, buffer_rank
from .conversion.tiling import dim_names
from .encodings import (
    Bases,
    BlockedLayout,
    CGALayout,
    DistributedLayout,
    DistributedLinearLayout,
    DotOperandLayout,
    GenericLinearLayout,
    Ints,
    Layout,
    NvidiaMmaLayout,
    NvmmaSharedLayout,
    PaddedSharedLayout,
    SharedLayout,
    SharedLinearLayout,
    SliceLayout,
    SwizzledSharedLayout,
    TensorMemoryLayout,
    TensorMemoryScalesLayout,
)
from .linear_layout import LinearLayout

SWIZZLES = (0, 32, 64, 128)
"""Bytes of a swizzled row of shared memory (PTX ISA, "Swizzling modes")."""


@lru_cache(maxsize=4096)
def fault_of(layout: Layout) -> str | None:
    """The fault of a layout on its own."""
    match layout:
        case SwizzledSharedLayout():
            return _fault_of_order(layout.order) or _fault_of_cga(layout.cga_layout, len(layout.order))
        case NvmmaSharedLayout():
            return _fault_of_nvmma(layout)
        case PaddedSharedLayout():
            return _fault_of_padded(layout)
        case SharedLinearLayout():
            return _fault_of_shared_linear(layout)
        case TensorMemoryLayout():
            return _fault_of_tensor_memory(layout)
        case TensorMemoryScalesLayout():
            return _fault_of_cga(layout.cga_layout, 2)
        case _:
            return _fault_of_distributed(layout)


def _fault_of_distributed(layout: DistributedLayout) -> str | None:
    match layout:
        case BlockedLayout():
            return _fault_of_blocked(layout)
        case SliceLayout(dim, parent):
            rank = rank_of(parent) or 1
            if rank < 2:
                return f"the parent of a slice needs at least two dimensions, found {rank}"
            return None if 0 <= dim < rank else f"dimension {dim} is none of the {rank} of the parent"
        case NvidiaMmaLayout():
            if layout.version_major not in (2, 3):
                return f"versionMajor must be 2 (mma.sync) or 3 (wgmma), found {layout.version_major}"
            return _fault_of_cga(layout.cga_layout, len(layout.warps_per_cta))
        case DotOperandLayout():
            return _fault_of_operand(layout)
        case DistributedLinearLayout(register, lane, warp, block):
            what = "a linear layout must permute the bits of the elements, up to zero bases"
            return _fault_of_permutation((*register, *lane, *warp, *block), what)
        case GenericLinearLayout():
            return _fault_of_generic(layout)


def holders_of(layout: Layout) -> tuple[int | None, int | None, int | None]:
    """The threads of a warp, the warps and the CTAs that a layout is for; None where it does not say."""
    match layout:
        case BlockedLayout():
            return prod(layout.threads_per_warp), prod(layout.warps_per_cta), 1 << len(layout.cga_layout)
        case NvidiaMmaLayout():
            return 32, prod(layout.warps_per_cta), 1 << len(layout.cga_layout)
        case SliceLayout() | DotOperandLayout():
            return holders_of(layout.parent)
        case DistributedLinearLayout() | GenericLinearLayout():
            return 1 << len(layout.lane), 1 << len(layout.warp), 1 << len(layout.block)
        case SwizzledSharedLayout() | NvmmaSharedLayout() | TensorMemoryLayout() | TensorMemoryScalesLayout():
            return None, None, 1 << len(layout.cga_layout)
        case PaddedSharedLayout() | SharedLinearLayout():
            return None, None, 1 << len(layout.block)


def _fault_of_blocked(layout: BlockedLayout) -> str | None:
    parts = (layout.size_per_thread, layout.threads_per_warp, layout.warps_per_cta)
    names = ("sizePerThread", "threadsPerWarp", "warpsPerCTA")
    rank = len(layout.order)
    for name, sizes in zip(names, parts, strict=True):
        if len(sizes) != rank:
            return f"{name} has {len(sizes)} dimensions, the order {rank}"
        if (size := next((size for size in sizes if not _is_power(size)), None)) is not None:
            return f"each of {name} must be a power of two, found {size}"
    return _fault_of_order(layout.order) or _fault_of_cga(layout.cga_layout, rank)


def _fault_of_operand(layout: DotOperandLayout) -> str | None:
    if layout.op_idx not in (0, 1):
        return f"opIdx must be 0 or 1, found {layout.op_idx}"
    match layout.parent:
        case NvidiaMmaLayout(version_major=version):
            if layout.k_width == 0:
                return f"the operand of an mma of version {version} needs a kWidth"
            if version == 3 and layout.op_idx != 0:
                return "only operand 0 of a wgmma may be in registers, found opIdx 1"
            return None
        case BlockedLayout():
            return f"a blocked parent takes no kWidth, found {layout.k_width}" if layout.k_width else None
        case other:
            return f"the parent must be a layout of an mma or blocked, found {other.mnemonic}"


def _fault_of_generic(layout: GenericLinearLayout) -> str | None:
    for name, bases in (("register", layout.register), ("lane", layout.lane), ("block", layout.block)):
        if (basis := next((basis for basis in bases if sum(map(bool, basis)) > 1), None)) is not None:
            return f"a {name} basis must move along one dimension, found {list(basis)}"
    bases = {"": (*layout.register, *layout.lane, *layout.warp, *layout.block)}
    names = dim_names(rank_of(layout) or 1)
    return None if LinearLayout.from_bases(bases, names).is_surjective() else "the layout does not reach every element"


def _fault_of_nvmma(layout: NvmmaSharedLayout) -> str | None:
    if layout.element_bit_width < 1:
        return f"elementBitWidth must be positive, found {layout.element_bit_width}"
    if layout.swizzling_byte_width not in SWIZZLES:
        return f"swizzlingByteWidth must be 0, 32, 64 or 128, found {layout.swizzling_byte_width}"
    return _fault_of_cga(layout.cga_layout, buffer_rank(layout))


def _fault_of_padded(layout: PaddedSharedLayout) -> str | None:
    for name, values in (("interval", layout.intervals), ("padding", layout.paddings)):
        if (value := next((value for value in values if not _is_power(value)), None)) is not None:
            return f"each {name} must be a power of two, found {value}"
    if not layout.intervals:
        return "needs at least one interval and its padding"
    if len(set(layout.intervals)) != len(layout.intervals):
        return f"the intervals must differ, found {list(layout.intervals)}"
    rank = buffer_rank(layout)
    for basis in (*layout.offset, *layout.block):
        if len(basis) != rank or sum(map(bool, basis)) > 1 or any(step and not _is_power(step) for step in basis):
            return f"each basis must be zero or a power of two along one dimension, found {list(basis)}"
    if any(not any(basis) for basis in layout.offset) or len(set(layout.offset)) != len(layout.offset):
        return "no two offsets may hold one element"
    return None


def _fault_of_shared_linear(layout: SharedLinearLayout) -> str | None:
    if not _is_power(layout.alignment):
        return f"the alignment must be a power of two, found {layout.alignment}"
    bases = [basis for basis in (*layout.offset, *layout.block) if any(basis)]
    linear = LinearLayout.from_bases({"": bases}, dim_names(buffer_rank(layout)))
    if not linear.is_surjective():
        return "the layout does not reach every element"
    return None if linear.is_injective() else "no two offsets may hold one element, up to zero bases"


def _fault_of_tensor_memory(layout: TensorMemoryLayout) -> str | None:
    if layout.block_m not in (64, 128):
        return f"blockM must be 64 or 128, found {layout.block_m}"
    if not _is_power(layout.block_n):
        return f"blockN must be a power of two, found {layout.block_n}"
    if layout.col_stride not in (1, 2, 4):
        return f"colStride must be 1, 2 or 4, found {layout.col_stride}"
    if layout.fp4_padded and layout.col_stride != 1:
        return f"fp4Padded needs colStride 1, found {layout.col_stride}"
    if layout.two_ctas and layout.cga_layout and layout.cga_layout[0] != (1, 0):
        return f"twoCTAs splits the rows first: the CGALayout begins with [1, 0], found {list(layout.cga_layout[0])}"
    return _fault_of_cga(layout.cga_layout, 2)


def _fault_of_order(order: Ints) -> str | None:
    return None if sorted(order) == [*range(len(order))] else f"order must be a permutation, found {list(order)}"


def _fault_of_cga(bases: CGALayout, rank: int) -> str | None:
    if (basis := next((basis for basis in bases if len(basis) != rank), None)) is not None:
        return f"a basis of the CGALayout needs {rank} dimensions, found {list(basis)}"
    return _fault_of_permutation(bases, "the CGALayout must permute the bits of the tiles, up to zero bases")


def _fault_of_permutation(bases: Bases, what: str) -> str | None:
    """`what`, unless the bases that are not zero are the powers of two below some size along each dimension."""
    ranks = {len(basis) for basis in bases}
    if len(ranks) > 1:
        return f"the bases must have one number of dimensions, found {sorted(ranks)}"
    seen = {basis for basis in bases if any(basis)}
    for basis in seen:
        steps = [(dim, step) for dim, step in enumerate(basis) if step]
        dim, step = steps[0]
        below = (*basis[:dim], step // 2, *basis[dim + 1 :])
        if len(steps) > 1 or not _is_power(step) or (step > 1 and below not in seen):
            return f"{what}, found {list(basis)}"
    counted = [basis for basis in bases if any(basis)]
    if len(counted) != len(seen):
        return f"{what}, found {list(next(basis for basis in counted if counted.count(basis) > 1))} twice"
    return None


def _is_power(size: int) -> bool:
    return size > 0 and size & (size - 1) == 0


# --- buffers ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def fault_in_buffer(layout: Layout, shape: Ints, alloc_shape: Ints, element_bits: int) -> str | None:
    """The fault of `layout` as that of a buffer of `shape`, in elements, which is part of one of `alloc_shape`."""
    match layout:
        case TensorMemoryLayout():
            return _fault_in_tensor_memory(layout, shape, alloc_shape, element_bits)
        case TensorMemoryScalesLayout():
            if len(alloc_shape) not in (2, 3):
                return f"a buffer in tensor memory has 2 or 3 dimensions, found {len(alloc_shape)}"
            return None if element_bits == 8 else f"scales have 8 bits, found {element_bits}"
        case NvmmaSharedLayout() | SwizzledSharedLayout() | PaddedSharedLayout() | SharedLinearLayout():
            return _fault_in_shared_memory(layout, shape, alloc_shape)
        case _:
            return f"a layout of registers can't be that of a buffer: {layout.mnemonic}"


def _fault_in_tensor_memory(
    layout: TensorMemoryLayout, shape: Ints, alloc_shape: Ints, element_bits: int
) -> str | None:
    if len(shape) not in (2, 3):
        return f"a buffer in tensor memory has 2 or 3 dimensions, found {len(shape)}"
    if element_bits * layout.col_stride > 32:
        return (
            f"colStride must be 1, 2 or 4 and fill at most 32 bits, found {layout.col_stride} for {element_bits} bits"
        )
    return None


def _fault_in_shared_memory(layout: SharedLayout, shape: Ints, alloc_shape: Ints) -> str | None:
    rank = buffer_rank(layout)
    if rank not in (len(shape), len(shape) - 1):
        return f"the layout has {rank} dimensions, the buffer {len(shape)}"
    whole = alloc_shape[len(alloc_shape) - rank :]
    match layout:
        case NvmmaSharedLayout():
            return _fault_of_swizzle(layout, whole)
        case PaddedSharedLayout() | SharedLinearLayout():
            return _fault_of_size((*layout.offset, *layout.block), whole)
        case SwizzledSharedLayout():
            return None


def _fault_of_size(bases: Bases, shape: Ints) -> str | None:
    for dim, size in enumerate(shape):
        found = 1 << max((basis[dim].bit_length() for basis in bases), default=0)
        if found != size:
            return f"the layout has {found} elements along dimension {dim}, the allocation {size}"
    return None


def _fault_of_swizzle(layout: NvmmaSharedLayout, shape: Ints) -> str | None:
    dim = 0 if layout.transposed else len(shape) - 1
    ctas = 1 << max((basis[dim].bit_length() for basis in layout.cga_layout), default=0)
    row = min(shape[dim] // ctas * (2 if layout.fp4_padded else 1), MAX_BOX)
    if row * layout.element_bit_width >= 8 * layout.swizzling_byte_width:
        return None
    return (
        f"a row of {row} elements of {layout.element_bit_width} bits is shorter than the swizzle of "
        f"{layout.swizzling_byte_width} bytes"
    )
