"""`convert-triton-to-tritongpu`: give every tensor a layout.

A tensor that nobody has an opinion on gets the default blocked layout of its region's warps; accumulators of
wgmma keep the instruction's layout all the way (see `accumulators`); layouts that stand in the text stay. Where two
layouts meet, a `ttg.convert_layout` is put, and stock Triton's `remove-layout-conversions` picks the best of them.
Tensor descriptors get the shared-memory layout of the buffers that they are copied to and from.

Before:
```mlir
%0 = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
%1 = tt.expand_dims %0 {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
```
After, with 4 warps:
```mlir
%0 = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #blocked>
%1 = ttg.convert_layout %0 : tensor<128xi32, #blocked> -> tensor<128xi32, #ttg.slice<{dim = 0, parent = #blocked1}>>
%2 = tt.expand_dims %1 {axis = 0 : i32} : tensor<128xi32, #ttg.slice<...>> -> tensor<1x128xi32, #blocked1>
```
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp, NoneAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from tlx_xdsl.dialects import tt, ttg, ttng
from tlx_xdsl.dialects.ttg.attrs import layout_attr, layout_of
from tlx_xdsl.dialects.ttg.types import as_tensor, element_bits, tensor_type
from tlx_xdsl.layouts.distributed import default_blocked_layout
from tlx_xdsl.layouts.encodings import DistributedLayout, DotOperandLayout, NvidiaMmaLayout, SliceLayout
from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import insert_before, retype
from tlx_xdsl.transforms.tritongpu.accumulators import accumulator_layouts
from tlx_xdsl.transforms.tritongpu.descriptors import assign_descriptor_layouts
from tlx_xdsl.transforms.tritongpu.module_attrs import num_warps


@dataclass(frozen=True)
class ConvertTritonToTritonGPUPass(ModulePass):
    """Give every tensor and descriptor a layout, and convert at the borders."""

    name = "convert-triton-to-tritongpu"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Convert all functions of the module."""
        warps = num_warps(op)
        _unshare_tensor_constants(op)
        converter = _Converter(accumulator_layouts(op, warps))
        for inner in op.ops:
            if isinstance(inner, tt.FuncOp):
                assign_descriptor_layouts(inner)
                converter.region(inner.body, warps)


def _unshare_tensor_constants(module: ModuleOp) -> None:
    """Give each use of a tensor constant its own constant, since each use may want another layout."""
    for op in list(module.walk()):
        if not isinstance(op, ConstantOp) or not isinstance(op.result.type, TensorType):
            continue
        for use in list(op.result.uses)[1:]:
            copy = op.clone()
            block = op.parent_block()
            assert block is not None
            block.insert_op_after(copy, op)
            use.operation.operands[use.index] = copy.result


def _with_layout(type_: TensorType[Attribute], encoding: Attribute) -> TensorType[Attribute]:
    return TensorType(type_.element_type, type_.get_shape(), encoding)


class _Converter:
    """Walks a function in program order: operands have their layouts when an operation is reached."""

    def __init__(self, accumulators: dict[SSAValue, NvidiaMmaLayout]):
        self.accumulators = accumulators
        self.warps = 0
        """Warps of the region that we are in."""
        self.conversions: dict[tuple[SSAValue, Attribute, Block | None], SSAValue] = {}

    def region(self, region: Region, warps: int) -> None:
        """Convert the operations of `region`, which `warps` warps run."""
        outer, self.warps = self.warps, warps
        for block in region.blocks:
            for op in list(block.ops):
                self._op(op)
        self.warps = outer

    def _op(self, op: Operation) -> None:
        handler = _HANDLERS.get(type(op))
        if handler is not None:
            handler(self, op)
        elif op.regions:
            raise error_at(op, f"'{op.name}' can't be given layouts yet")
        elif _has_tensors(op):
            if op.name.split(".")[0] not in _ELEMENTWISE_DIALECTS:
                raise error_at(op, f"'{op.name}' can't be given layouts yet")
            self.elementwise(op)

    # --- layouts of values -------------------------------------------------------------------------------------

    def default(self, type_: TensorType[Attribute]) -> TensorType[Attribute]:
        """`type_` with the default layout of the region."""
        return _with_layout(type_, layout_attr(default_blocked_layout(type_.get_shape(), self.warps)))

    def settle(self, value: SSAValue, otherwise: Attribute | None = None) -> None:
        """Give `value` its layout: the one it has, the accumulator's, `otherwise`, or the default."""
        type_ = as_tensor(value.type)
        if type_ is None or not isinstance(type_.encoding, NoneAttr):
            return
        if (accumulator := self.accumulators.get(value)) is not None:
            retype(value, _with_layout(type_, layout_attr(accumulator)))
        elif otherwise is not None:
            retype(value, _with_layout(type_, otherwise))
        else:
            retype(value, self.default(type_))

    def require(self, op: Operation, index: int, encoding: Attribute) -> None:
        """Bring operand `index` of `op` to a layout, by a conversion when it has another."""
        value = op.operands[index]
        type_ = as_tensor(value.type)
        if type_ is None or type_.encoding == encoding:
            return
        # A block needs one conversion of a value to a layout, however many operations want it.
        key = (value, encoding, op.parent_block())
        converted = self.conversions.get(key)
        if converted is None:
            convert = ttg.ConvertLayoutOp(operands=[value], result_types=[_with_layout(type_, encoding)])
            converted = self.conversions[key] = insert_before(op, convert).result
        op.operands[index] = converted

    def require_like(self, op: Operation, targets: Sequence[SSAValue], *, first: int = 0) -> None:
        """Bring the operands from `first` on to the layouts of `targets`, one by one."""
        for index, target in enumerate(targets, first):
            if (type_ := as_tensor(target.type)) is not None:
                self.require(op, index, type_.encoding)

    # --- operations --------------------------------------------------------------------------------------------

    def elementwise(self, op: Operation) -> None:
        """Results and operands of one shape share one layout."""
        for result in op.results:
            self.settle(result)
        tensors = [type_ for result in op.results if (type_ := as_tensor(result.type)) is not None]
        for index, operand in enumerate(op.operands):
            if (type_ := as_tensor(operand.type)) is not None:
                self.require(op, index, (tensors[0] if tensors else self.default(type_)).encoding)

    def results_only(self, op: Operation) -> None:
        """Results get layouts; operands may have any."""
        for result in op.results:
            self.settle(result)

    def constant(self, op: ConstantOp) -> None:
        """The attribute of a constant has the type of its result."""
        self.settle(op.result)
        type_, value = as_tensor(op.result.type), op.value
        if type_ is not None and isinstance(value, DenseIntOrFPElementsAttr):
            op.properties["value"] = DenseIntOrFPElementsAttr(cast(Any, type_), value.data)

    def expand_dims(self, op: tt.ExpandDimsOp) -> None:
        """The operand has the result's layout without the new dimension."""
        self.settle(op.result)
        parent = cast(DistributedLayout, layout_of(op.result.type.encoding))
        self.require(op, 0, layout_attr(SliceLayout(op.axis.value.data, parent)))

    def broadcast(self, op: tt.BroadcastOp) -> None:
        """Operand and result have one layout."""
        self.settle(op.result)
        self.require(op, 0, op.result.type.encoding)

    def reduction(self, op: tt.ReduceOp) -> None:
        """The operands have one layout; a result of it loses the dimension that is reduced."""
        encoding = tensor_type(op.srcs[0].type).encoding
        for index in range(len(op.srcs)):
            self.require(op, index, encoding)
        sliced = layout_attr(SliceLayout(op.axis.value.data, cast(DistributedLayout, layout_of(encoding))))
        for result in op.results:
            if (type_ := as_tensor(result.type)) is not None:
                retype(result, _with_layout(type_, sliced))

    def dot(self, op: ttng.WarpGroupDotOp) -> None:
        """The accumulator has the instruction's layout, and a register operand A that of its dot operand."""
        self.settle(op.d)
        encoding = tensor_type(op.d.type).encoding
        self.require(op, 2, encoding)
        if (a := as_tensor(op.a.type)) is not None:
            layout = layout_of(encoding)
            assert isinstance(layout, NvidiaMmaLayout)
            # Two elements of 16 bits, or one of 32, in each register.
            width = 32 // element_bits(a.element_type)
            self.require(op, 0, layout_attr(DotOperandLayout(0, layout, width)))

    def dot_wait(self, op: ttng.WarpGroupDotWaitOp) -> None:
        """The wait changes nothing but time."""
        for before, after in zip(op.inputs, op.outputs, strict=True):
            retype(after, before.type)

    def for_loop(self, op: scf.ForOp) -> None:
        """Initial value, loop variable, yielded value and result have one layout."""
        arguments = op.body.block.args[1:]
        for argument, result in zip(arguments, op.res, strict=True):
            self.settle(argument)
            retype(result, argument.type)
        self.require_like(op, arguments, first=3)
        self.region(op.body, self.warps)
        terminator = op.body.block.last_op
        assert terminator is not None
        self.require_like(terminator, arguments)

    def branch(self, op: scf.IfOp) -> None:
        """Both yielded values have the layout of the result."""
        for result in op.results:
            self.settle(result)
        for region in op.regions:
            self.region(region, self.warps)
            if region.blocks and (terminator := region.blocks[0].last_op) is not None:
                self.require_like(terminator, op.results)

    def warp_specialize(self, op: ttg.WarpSpecializeOp) -> None:
        """Each partition has warps of its own; the default region has those around it."""
        for result in op.results:
            self.settle(result)
        self.region(op.default_region, self.warps)
        terminator = op.default_region.blocks[0].last_op
        assert terminator is not None
        self.require_like(terminator, op.results)
        for region, warps in zip(op.partitions.partition_regions, op.num_warps, strict=True):
            self.region(region, warps)

    def nothing(self, op: Operation) -> None:
        """Terminators are seen to by what they end."""


def _has_tensors(op: Operation) -> bool:
    return any(isinstance(value.type, TensorType) for value in (*op.operands, *op.results))


_ELEMENTWISE_DIALECTS = ("arith", "math")

_HANDLERS: dict[type[Operation], Callable[[_Converter, Any], None]] = {
    ConstantOp: _Converter.constant,
    scf.ForOp: _Converter.for_loop,
    scf.IfOp: _Converter.branch,
    scf.YieldOp: _Converter.nothing,
    tt.AddPtrOp: _Converter.elementwise,
    tt.BroadcastOp: _Converter.broadcast,
    tt.ExpandDimsOp: _Converter.expand_dims,
    tt.LoadOp: _Converter.elementwise,
    tt.MakeRangeOp: _Converter.results_only,
    tt.ReduceOp: _Converter.reduction,
    tt.ScanOp: _Converter.elementwise,
    tt.SplatOp: _Converter.results_only,
    tt.StoreOp: _Converter.elementwise,
    ttg.AsyncCopyGlobalToLocalOp: _Converter.elementwise,
    ttg.ConvertLayoutOp: _Converter.results_only,
    ttg.LocalAllocOp: _Converter.results_only,
    ttg.LocalLoadOp: _Converter.results_only,
    ttg.LocalStoreOp: _Converter.results_only,
    ttg.WarpSpecializeOp: _Converter.warp_specialize,
    ttg.WarpYieldOp: _Converter.nothing,
    ttng.WarpGroupDotOp: _Converter.dot,
    ttng.WarpGroupDotWaitOp: _Converter.dot_wait,
}
