"""Layouts of wgmma accumulators, and of all values that are one with them.

The result of an asynchronous dot is in flight until its wait: no instruction may touch it, not even a layout
conversion. So the accumulator, and everything that carries it (the wait, loop variables, results of branches), must
have the layout of the instruction from the start. Values form *webs*: two values are in one web when one is the
other, only later. A web that holds a dot gets the dot's layout; the others are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.arith import ConstantOp
from xdsl.ir import Operation, Region, SSAValue

from tlx_xdsl.analysis.value_classes import ValueClasses
from tlx_xdsl.dialects import regions, ttg, ttng
from tlx_xdsl.errors import InputError
from tlx_xdsl.layouts.distributed import wgmma_accumulator_layout
from tlx_xdsl.layouts.encodings import NvidiaMmaLayout
from tlx_xdsl.text.diagnostics import error_at


def accumulator_layouts(func: Operation, num_warps: int) -> dict[SSAValue, NvidiaMmaLayout]:
    """The layout of each value that is an accumulator at some time; `num_warps` warps run `func`.

    Raises CompilationError when a dot fits no instruction or two dots disagree about one accumulator.
    """
    ops = list(warps_of_ops(func, num_warps))
    continuations = [pair for op, _ in ops for pair in _continuations(op)]
    # What these values are defined by, and constants, can be in any layout; all else is computed in one of its own.
    free = {target for _, targets in continuations for target in targets}
    webs = ValueClasses()
    for source, targets in continuations:
        webs.join(*targets, *([source] if source in free or isinstance(source.owner, ConstantOp) else []))
    layouts: dict[SSAValue, tuple[NvidiaMmaLayout, ttng.WarpGroupDotOp]] = {}
    for dot, warps in ((op, warps) for op, warps in ops if isinstance(op, ttng.WarpGroupDotOp)):
        layout = _layout_of_dot(dot, warps)
        known, first = layouts.setdefault(webs.representative(dot.d), (layout, dot))
        if known != layout:
            raise error_at(
                dot,
                "this dot needs its accumulator in another layout than an earlier dot that is still in flight",
                [f"{error_at(first, 'the earlier dot').location}: the earlier dot"],
            )
    result: dict[SSAValue, NvidiaMmaLayout] = {}
    for value in webs.values():
        found = layouts.get(webs.representative(value))
        if found is not None:
            result[value] = found[0]
    return result


def _layout_of_dot(dot: ttng.WarpGroupDotOp, num_warps: int) -> NvidiaMmaLayout:
    m, n = ttg.tensor_type(dot.d.type).get_shape()
    try:
        return wgmma_accumulator_layout((m, n), ttg.memdesc_type(dot.b.type).element_bits, num_warps)
    except InputError as error:
        raise error_at(dot, str(error)) from error


def _continuations(op: Operation) -> Iterator[tuple[SSAValue, Sequence[SSAValue]]]:
    """Operands of `op`, each with the values that it is from now on."""
    match op:
        case ttng.WarpGroupDotOp():
            yield op.c, [op.d]
        case ttng.WarpGroupDotWaitOp():
            yield from ((before, [after]) for before, after in zip(op.inputs, op.outputs, strict=True))
        case _:
            yield from ((op.operands[number], targets) for number, targets in regions.forwarded(op).items())


def regions_with_warps(op: Operation, num_warps: int) -> list[tuple[Region, int]]:
    """The regions of `op` with the warps that run each: partitions have warps of their own."""
    if isinstance(op, ttg.WarpSpecializeOp):
        partitions = zip(op.partitions.partition_regions, op.num_warps, strict=True)
        return [(op.default_region, num_warps), *partitions]
    return [(region, num_warps) for region in op.regions]


def warps_of_ops(op: Operation, num_warps: int) -> Iterator[tuple[Operation, int]]:
    """The operations inside of `op`, with the warps that run each."""
    for region, warps in regions_with_warps(op, num_warps):
        for block in region.blocks:
            for inner in block.ops:
                yield inner, warps
                yield from warps_of_ops(inner, warps)
