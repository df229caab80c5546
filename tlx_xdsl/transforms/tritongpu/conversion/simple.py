"""Operations that compute element by element, and those that take or give any layout."""

from __future__ import annotations

from xdsl.dialects import arith, builtin, ub
from xdsl.ir import Operation

from tlx_xdsl.dialects import tlx, tt, ttg, ttng
from tlx_xdsl.dialects.base import layout_attr, pointers_of
from tlx_xdsl.layouts.distributed import WARP_SIZE
from tlx_xdsl.layouts.encodings import BlockedLayout, SliceLayout
from tlx_xdsl.transforms.rewriting import retyped

from .converter import Converter, handles


@handles(
    tt.AtomicPollOp, tt.ElementwiseInlineAsmOp, tt.ExternElementwiseOp, tt.MapElementwiseOp, tt.ScanOp,
    ttng.PackedArithOp, tlx.VoteBallotOp,
)  # fmt: skip
def elementwise(converter: Converter, op: Operation) -> None:
    """Results and operands share one layout."""
    converter.elementwise(op)


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


@handles(tt.DescriptorGatherOp, tt.DescriptorScatterOp)
def descriptor_rows(converter: Converter, op: tt.DescriptorGatherOp | tt.DescriptorScatterOp) -> None:
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
