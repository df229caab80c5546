"""The layouts in which global memory is accessed, in modules with matrix instructions.

Three rules, in this order:

- A load whose value meets a matrix instruction's result element by element has the layout of that result. A layout of
  its own would make Triton's `remove-layout-conversions`, for which loads are fixed points, compute what lies between
  the two twice, once in each layout: the whole softmax, for a bias that is added to the scores.
- What is stored or added of such a result, with nothing but reshapes and transpositions between, stays where it is if
  a warp's accesses are coalesced so. A kernel may thus choose an order in memory that needs no exchange.
- Any other access is *coalesced*: a thread has as many elements side by side as one instruction takes (16 bytes), if
  the pointers are contiguous and aligned for so many; the threads of a warp lie side by side along the axis along
  which the pointers are most contiguous.

Stock Triton's pass `coalesce` knows the last rule only, and applies it to each access whatever layout it has. So for
these modules the backend leaves it out, and for all others this file leaves the accesses to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import cast

from xdsl.dialects.builtin import ModuleOp, NoneAttr, TensorType
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.analysis.axis_info import axis_infos
from tlx_xdsl.analysis.integers.axis_domain import AxisInfo
from tlx_xdsl.analysis.value_classes import ValueClasses
from tlx_xdsl.dialects import tt, ttg, ttng
from tlx_xdsl.dialects.base import (
    TCGEN05,
    WGMMA,
    LayoutAttr,
    PointerType,
    as_tensor,
    effects_of,
    element_bits,
    is_elementwise,
    layout_attr,
    pointers_of,
)
from tlx_xdsl.errors import InputError
from tlx_xdsl.layouts.distributed import WARP_SIZE, blocked_layout, tensor_memory_register_layout
from tlx_xdsl.layouts.encodings import BlockedLayout, DistributedLayout, NvidiaMmaLayout
from tlx_xdsl.layouts.inferred import places

from ..layout.pinned_tensors import result_layout
from .accumulators import warps_of_ops

_BITS_PER_ACCESS = 128
"""The most that a thread loads or stores by one instruction (PTX ISA, "ld", `.v4.b32`)."""


def has_matrix_instructions(module: ModuleOp) -> bool:
    """True if the accesses of `module` are coalesced here, and not by stock Triton."""
    return any(effects_of(op).by in (WGMMA, TCGEN05) for op in module.walk())


def access_layouts(
    func: tt.FuncOp, num_warps: int, accumulators: Mapping[SSAValue, NvidiaMmaLayout]
) -> dict[Operation, DistributedLayout]:
    """The layout of each access to global memory through pointers that have none yet.

    `num_warps` warps run the function; `accumulators` are the values that wgmma writes.
    """
    layouts: dict[Operation, DistributedLayout] = {}
    infos, warps = axis_infos(func), dict(warps_of_ops(func, num_warps))
    meeting = _Meeting(func, accumulators, warps)
    for op, its_warps in warps.items():
        pointers = pointers_of(op)
        if pointers is None or (type_ := as_tensor(pointers.type)) is None:
            continue
        if isinstance(type_.encoding, NoneAttr):
            layout = coalesced_layout(pointers, infos[pointers], its_warps)
            near = meeting.layout_of(op.result) if isinstance(op, tt.LoadOp) else _as_it_is(op, accumulators, layout)
            layouts[op] = near or layout
    return layouts


def coalesced_layout(pointers: SSAValue, info: AxisInfo, num_warps: int) -> BlockedLayout:
    """The layout of an access through a tensor of pointers of which `info` is known, by `num_warps` warps."""
    type_ = as_tensor(pointers.type)
    assert type_ is not None
    shape = type_.get_shape()
    # Of equally contiguous axes the last one is the fastest, as in memory.
    order = tuple(sorted(reversed(range(len(shape))), key=lambda d: -info.contiguity[d]))
    fastest = order[0]
    bits = max(8, element_bits(cast(PointerType, type_.element_type).pointee))
    aligned = max(1, info.divisibility[fastest] * 8 // bits)
    most = (
        min(info.contiguity[fastest], shape[fastest]),
        aligned,
        _BITS_PER_ACCESS // bits,
        # All threads have something to do before one has more.
        max(1, prod(shape) // (num_warps * WARP_SIZE)),
    )
    sizes = tuple(min(most) if d == fastest else 1 for d in range(len(shape)))
    return blocked_layout(shape, sizes, order, num_warps)


def _as_it_is(
    op: Operation, accumulators: Mapping[SSAValue, NvidiaMmaLayout], coalesced: BlockedLayout
) -> DistributedLayout | None:
    """The layout of the accumulator that `op` writes, reshaped, if its warps' accesses are those of `coalesced`."""
    if not isinstance(op, tt.StoreOp | tt.AtomicRMWOp):
        return None
    written = op.val if isinstance(op, tt.AtomicRMWOp) else op.value
    layout, type_ = _moved(written, accumulators), as_tensor(written.type)
    if layout is None or type_ is None:
        return None
    ours, best = (places(each, type_.get_shape())[:2] for each in (layout, coalesced))
    together = prod(coalesced.size_per_thread).bit_length() - 1
    registers, lanes = best
    return layout if ours[0][:together] == registers[:together] and ours[1] == lanes else None


def _moved(value: SSAValue, accumulators: Mapping[SSAValue, NvidiaMmaLayout]) -> DistributedLayout | None:
    """The layout of an accumulator, also after reshapes and transpositions; None for other values."""
    layout, op = accumulators.get(value), value.owner
    if layout is not None or not isinstance(op, tt.ReshapeOp | tt.TransOp):
        return layout
    before = _moved(op.src, accumulators)
    after = None if before is None else result_layout(op, layout_attr(before))
    return cast(DistributedLayout, after.data) if isinstance(after, LayoutAttr) else None


class _Meeting:
    """Classes of values that meet element by element, and so are best computed in one layout."""

    def __init__(
        self, func: tt.FuncOp, accumulators: Mapping[SSAValue, NvidiaMmaLayout], warps: Mapping[Operation, int]
    ):
        self._classes = ValueClasses.of(func, TensorType)
        for op in warps:
            if not op.regions and is_elementwise(op):
                self._join(op)
        self._layouts: dict[SSAValue, DistributedLayout] = {}
        for op, its_warps in warps.items():
            for result in op.results:
                if (layout := accumulators.get(result) or _tensor_memory(op, its_warps)) is not None:
                    self._layouts.setdefault(self._classes.representative(result), layout)

    def layout_of(self, value: SSAValue) -> DistributedLayout | None:
        """The layout of the matrix instructions' results that `value` meets, if it does."""
        return self._layouts.get(self._classes.representative(value))

    def _join(self, op: Operation) -> None:
        if tensors := [value for value in (*op.operands, *op.results) if isinstance(value.type, TensorType)]:
            self._classes.join(*tensors)


def _tensor_memory(op: Operation, warps: int) -> DistributedLayout | None:
    """The layout in which `op` loads from tensor memory, if it does and its layout is free."""
    if not isinstance(op, ttng.TMEMLoadOp):
        return None
    buffer = ttg.memdesc_type(op.src.type)
    layout = ttng.tensor_memory_layout(buffer)
    try:
        return layout and tensor_memory_register_layout(layout, buffer.shape, warps)
    except InputError:
        # The conversion of this load reports it, at its own line.
        return None
