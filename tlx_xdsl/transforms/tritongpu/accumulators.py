"""Which values are wgmma accumulators, and so live in the accumulator's layout.

The result of an asynchronous dot is in flight until its wait: no instruction may touch it, not even a layout
conversion. So the accumulator, and everything that carries it (the wait, loop variables, results of branches), must
have the layout of the instruction from the start. Values form *webs*: two values are in one web when one is the
other, only later. A web that holds a dot gets the dot's layout; the others are left alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import cf, scf
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from tlx_xdsl.dialects.ttg import WarpSpecializeOp
from tlx_xdsl.dialects.ttg.types import memdesc_type, tensor_type
from tlx_xdsl.dialects.ttng import WarpGroupDotOp, WarpGroupDotWaitOp
from tlx_xdsl.layouts.distributed import wgmma_accumulator_layout
from tlx_xdsl.layouts.encodings import NvidiaMmaLayout
from tlx_xdsl.text.diagnostics import error_at

_CARRIERS = (WarpGroupDotOp, WarpGroupDotWaitOp, scf.ForOp, scf.WhileOp, scf.IfOp, WarpSpecializeOp, ConstantOp)
"""Operations whose results can be born in any layout; others compute in a layout of their own."""


class _Webs:
    """Union-find over values."""

    def __init__(self) -> None:
        self._parent: dict[SSAValue, SSAValue] = {}

    def root(self, value: SSAValue) -> SSAValue:
        parent = self._parent.setdefault(value, value)
        while parent is not value:
            # Path halving keeps the trees flat, so that the whole pass stays near linear.
            self._parent[value] = grandparent = self._parent[parent]
            value, parent = grandparent, self._parent[grandparent]
        return value

    def join(self, a: SSAValue, b: SSAValue) -> None:
        self._parent[self.root(a)] = self.root(b)

    def join_carried(self, source: SSAValue, target: SSAValue) -> None:
        """Join unless `source` is computed by an operation with a layout of its own."""
        if isinstance(target.type, TensorType) and is_carrier(source):
            self.join(source, target)

    def values(self) -> list[SSAValue]:
        return list(self._parent)


def is_carrier(value: SSAValue) -> bool:
    """Whether `value` can take any layout without a conversion."""
    if isinstance(value, BlockArgument):
        region = value.block.parent_region()
        carries = isinstance(value.block.parent_op(), scf.ForOp | scf.WhileOp)
        # Of a function, what branches pass: its own arguments have layouts that callers know.
        return carries or (region is not None and value.block is not region.blocks[0])
    return isinstance(value.owner, _CARRIERS)


def accumulator_layouts(func: Operation, num_warps: int) -> dict[SSAValue, NvidiaMmaLayout]:
    """The layout of each value that is an accumulator at some time; `num_warps` warps run `func`.

    Raises CompilationError when a dot fits no instruction or two dots disagree about one accumulator.
    """
    webs = _Webs()
    dots: list[tuple[WarpGroupDotOp, int]] = []
    _collect(func, num_warps, webs, dots)
    layouts: dict[SSAValue, tuple[NvidiaMmaLayout, WarpGroupDotOp]] = {}
    for dot, warps in dots:
        layout = _layout_of_dot(dot, warps)
        known, first = layouts.setdefault(webs.root(dot.d), (layout, dot))
        if known != layout:
            raise error_at(
                dot,
                "this dot needs its accumulator in another layout than an earlier dot that is still in flight",
                [f"{error_at(first, 'the earlier dot').location}: the earlier dot"],
            )
    result: dict[SSAValue, NvidiaMmaLayout] = {}
    for value in webs.values():
        found = layouts.get(webs.root(value))
        if found is not None:
            result[value] = found[0]
    return result


def _layout_of_dot(dot: WarpGroupDotOp, num_warps: int) -> NvidiaMmaLayout:
    m, n = tensor_type(dot.d.type).get_shape()
    try:
        return wgmma_accumulator_layout((m, n), memdesc_type(dot.b.type).element_bits, num_warps)
    except ValueError as error:
        raise error_at(dot, str(error)) from error


def _collect(op: Operation, num_warps: int, webs: _Webs, dots: list[tuple[WarpGroupDotOp, int]]) -> None:
    """Join what `op` and everything inside it carries; list the dots with the warps that issue them."""
    match op:
        case WarpGroupDotOp():
            webs.join_carried(op.c, op.d)
            webs.root(op.d)
            dots.append((op, num_warps))
        case WarpGroupDotWaitOp():
            for before, after in zip(op.inputs, op.outputs, strict=True):
                webs.join_carried(before, after)
        case _:
            _join_control_flow(op, webs)
    for region, warps in regions_with_warps(op, num_warps):
        for block in region.blocks:
            for inner in block.ops:
                _collect(inner, warps, webs, dots)


def _join_control_flow(op: Operation, webs: _Webs) -> None:
    """Join what loops, branches and jumps hand on."""
    match op:
        case scf.ForOp():
            _join_loop(op, webs)
        case scf.WhileOp():
            _join_while(op, webs)
        case WarpSpecializeOp():
            last = op.default_region.blocks[-1].last_op
            for yielded, result in zip(last.operands if last else (), op.results, strict=False):
                webs.join_carried(yielded, result)
        case cf.BranchOp():
            _join_jump(op.arguments, op.successor, webs)
        case cf.ConditionalBranchOp():
            _join_jump(op.then_arguments, op.then_block, webs)
            _join_jump(op.else_arguments, op.else_block, webs)
        case scf.IfOp():
            for region in op.regions:
                terminator = region.blocks[0].last_op if region.blocks else None
                for yielded, result in zip(terminator.operands if terminator else (), op.results, strict=False):
                    webs.join_carried(yielded, result)
        case _:
            pass


def regions_with_warps(op: Operation, num_warps: int) -> list[tuple[Region, int]]:
    """The regions of `op` with the warps that run each: partitions have warps of their own."""
    if isinstance(op, WarpSpecializeOp):
        partitions = zip(op.partitions.partition_regions, op.num_warps, strict=True)
        return [(op.default_region, num_warps), *partitions]
    return [(region, num_warps) for region in op.regions]


def _join_loop(loop: scf.ForOp, webs: _Webs) -> None:
    terminator = loop.body.block.last_op
    assert terminator is not None
    carried = zip(loop.iter_args, loop.body.block.args[1:], terminator.operands, loop.res, strict=True)
    for initial, argument, yielded, result in carried:
        if not isinstance(result.type, TensorType):
            continue
        webs.join(argument, result)
        webs.join_carried(initial, argument)
        webs.join_carried(yielded, argument)


def _join_while(loop: scf.WhileOp, webs: _Webs) -> None:
    before, after = loop.before_region.block, loop.after_region.block
    condition, end = before.last_op, after.last_op
    assert condition is not None
    assert end is not None
    for initial, argument, yielded in zip(loop.arguments, before.args, end.operands, strict=True):
        webs.join_carried(initial, argument)
        webs.join_carried(yielded, argument)
    for handed, argument, result in zip(condition.operands[1:], after.args, loop.res, strict=True):
        if isinstance(result.type, TensorType):
            webs.join(argument, result)
            webs.join_carried(handed, argument)


def _join_jump(values: Sequence[SSAValue], target: Block, webs: _Webs) -> None:
    for value, argument in zip(values, target.args, strict=True):
        webs.join_carried(value, argument)
