"""A layout in few words."""

from __future__ import annotations

from .encodings import (
    BlockedLayout,
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
)


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
