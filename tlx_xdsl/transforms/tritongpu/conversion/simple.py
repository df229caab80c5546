"""Operations that compute element by element, and those that take or give any layout."""

from __future__ import annotations

from xdsl.dialects import arith, builtin, ub
from xdsl.ir import Operation

from tlx_xdsl.dialects import tlx, tt, ttg, ttng
from tlx_xdsl.dialects.base import layout_attr, layout_of, pointers_of
from tlx_xdsl.layouts.distributed import WARP_SIZE, blocked_layout, paired_layout
from tlx_xdsl.layouts.encodings import BlockedLayout, DistributedLayout, SliceLayout
from tlx_xdsl.transforms.rewriting import retyped

from .converter import Converter, handles


@handles(
    tt.AtomicPollOp, tt.ElementwiseInlineAsmOp, tt.ExternElementwiseOp, tt.MapElementwiseOp, tt.ScanOp,
)  # fmt: skip
def elementwise(converter: Converter, op: Operation) -> None:
    """Results and operands share one layout."""
    converter.elementwise(op)


@handles(tlx.VoteBallotOp)
def vote(converter: Converter, op: tlx.VoteBallotOp) -> None:
    """Votes as a number are of what threads hold already."""
    if ttg.as_tensor(op.result.type) is not None:
        converter.elementwise(op)


@handles(ttng.PackedArithOp)
def packed_arithmetic(converter: Converter, op: ttng.PackedArithOp) -> None:
    """A thread holds all lanes of an instruction, side by side: pairs of fp4 lie along one dimension, else the last."""
    result = ttg.tensor_type(op.result.type)
    shape, lanes = result.get_shape(), ttng.LANES[type(result.element_type)]
    pairs = {index: ttg.tensor_type(value.type).get_shape() for index, value in enumerate(op.inputs)}
    axes = [dim for sizes in pairs.values() for dim, size in enumerate(sizes) if size != shape[dim]]
    axis = axes[0] if axes else len(shape) - 1
    order = (axis, *(dim for dim in reversed(range(len(shape))) if dim != axis))
    sizes = tuple(lanes if dim == axis else 1 for dim in range(len(shape)))
    converter.settle(op.result, layout_attr(blocked_layout(shape, sizes, order, converter.warps)))
    encoding = ttg.tensor_type(op.result.type).encoding
    layout = layout_of(encoding)
    half = paired_layout(layout, shape, axis) if isinstance(layout, DistributedLayout) else None
    for index, sizes in pairs.items():
        if sizes == shape:
            converter.require(op, index, encoding)
        elif half is not None:
            converter.require(op, index, layout_attr(half))


@handles(
    tt.AtomicCASOp, tt.AtomicLoadOp, tt.AtomicRMWOp, tt.AtomicStoreOp, tt.LoadOp, tt.StoreOp,
    ttg.AsyncCopyGlobalToLocalOp,
)  # fmt: skip
def access(converter: Converter, op: Operation) -> None:
    """Pointers, masks and values share one layout: that of the pointers, or the one that was chosen for the access."""
    if (layout := converter.accesses.get(op)) is not None:
        converter.elementwise(op, layout_attr(layout))
        return
    pointers = pointers_of(op)
    type_ = None if pointers is None else ttg.as_tensor(pointers.type)
    converter.elementwise(op, None if type_ is None else type_.encoding)


@handles(
    tt.AssertOp, tt.DescriptorLoadOp, tt.DescriptorReduceOp, tt.DescriptorStoreOp, tt.HistogramOp, tt.MakeRangeOp,
    tt.PrintOp, tt.SplatOp, tt.UnsplatOp, ttg.ConvertLayoutOp, ttg.LocalAllocOp, ttg.LocalLoadOp, ttg.LocalStoreOp,
    tlx.AssertSameLayoutExpectedOp, tlx.AssertSameLayoutOp, tlx.AsyncRemoteStoreOp, tlx.DumpLayoutOp,
    tlx.RemoteStoreOp, ub.PoisonOp,
)  # fmt: skip
def results_only(converter: Converter, op: Operation) -> None:
    """Results get layouts; operands may have any."""
    for result in op.results:
        converter.settle(result)


@handles(tt.GatherOp, ttg.LocalGatherOp)
def gather(converter: Converter, op: tt.GatherOp | ttg.LocalGatherOp) -> None:
    """The indices have the layout of the result; the source may have any."""
    converter.settle(op.result)
    converter.require(op, 1, op.result.type.encoding)


@handles(tt.DescriptorGatherOp, tt.DescriptorScatterOp, ttng.AsyncTMAGatherOp, ttng.AsyncTMAScatterOp)
def descriptor_rows(converter: Converter, op: Operation) -> None:
    """Four row numbers in each thread, the same ones in all threads of a warp, as one instruction takes them."""
    results_only(converter, op)
    rows = BlockedLayout((1, 4), (WARP_SIZE, 1), (1, converter.warps), (1, 0))
    converter.require(op, 1, layout_attr(SliceLayout(0, rows)))


@handles(ttg.LocalScatterOp, ttg.LocalAtomicScatterRMWOp)
def scatter(converter: Converter, op: ttg.LocalScatterOp | ttg.LocalAtomicScatterRMWOp) -> None:
    """Values and indices, and what was there before, have one layout."""
    results_only(converter, op)
    encoding = ttg.tensor_type(op.values.type).encoding
    for index in range(len(op.operands)):
        converter.require(op, index, encoding)


@handles(arith.ConstantOp)
def constant(converter: Converter, op: arith.ConstantOp) -> None:
    """The attribute of a constant has the type of its result."""
    converter.settle(op.result)
    type_, value = ttg.as_tensor(op.result.type), op.value
    if type_ is not None and isinstance(value, builtin.DenseIntOrFPElementsAttr):
        op.properties["value"] = retyped(value, type_)
