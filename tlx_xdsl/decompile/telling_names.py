"""Names for values that the passes have made, after what they are for: coordinates, counts of turns, loaded blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects import tt, ttng
from tlx_xdsl.dialects.base.tensors import element_bits

from .function import may_inline
from .host import shape_names
from .types import element_of, number_of

_LAST = ("col", "row", "plane")
"""The names of a block's coordinates, from the last one."""


def give_telling_names(module: ModuleOp) -> None:
    """Give hints of names to values without any, in place."""
    for function in module.walk():
        if isinstance(function, tt.FuncOp):
            shapes = shape_names(function)
            for op in function.walk():
                _name_coordinates(op, shapes)
                if (name := _NAMERS.get(op.name)) is not None:
                    name(op)


def _name_loop(op: Any) -> None:
    _carried(op)
    counter = op.body.block.args[0].name_hint
    _hint(op.ub, f"num_{counter}" if number_of(op.step) == 1 and counter else "end")


def _name_tile(op: Any) -> None:
    buffer = _buffer(op.src)
    if op.result.name_hint in (None, buffer):
        # The name is that of the buffers now.
        op.result.name_hint = f"{buffer}_tile"


def _name_view(op: Any) -> None:
    use = op.result.first_use
    if use is not None and use.operation.name == "ttg.memdesc_trans" and op.result.name_hint is None:
        # A view of a view: both in one expression fill a line.
        op.result.name_hint = f"{_buffer(op.src)}_view"
    _hint(op.result, f"{_buffer(op.src)}_view")


def _name_product(op: Any) -> None:
    op.d.name_hint = op.d.name_hint or "product"


def _name_waited(op: Any) -> None:
    for value, result in zip(op.inputs, op.outputs, strict=True):
        result.name_hint = result.name_hint or value.name_hint or "product"


def _name_other(op: Any) -> None:
    for use in op.result.uses:
        if use.operation.name == "arith.subi" and number_of(use.operation.operands[0]) == 1:
            _hint(use.operation.results[0], "other")


def _name_narrow(op: Any) -> None:
    if (name := _narrow(op.results[0])) is not None:
        _hint(op.results[0], name)


_NAMERS: dict[str, Callable[[Any], None]] = {
    "arith.truncf": _name_narrow,
    "scf.for": _name_loop,
    "tlx.replica_id": _name_other,
    "ttg.local_load": _name_tile,
    "ttg.memdesc_reshape": _name_view,
    "ttg.memdesc_trans": _name_view,
    "ttng.warp_group_dot": _name_product,
    "ttng.warp_group_dot_wait": _name_waited,
}


def _name_coordinates(op: Operation, shapes: dict[SSAValue, list[str]]) -> None:
    match op:
        case ttng.AsyncTMACopyGlobalToLocalOp() | ttng.AsyncTMACopyLocalToGlobalOp():
            _coordinates(op.desc, list(op.coord), shapes)
        case tt.DescriptorLoadOp() | tt.DescriptorStoreOp():
            _coordinates(op.desc, list(op.indices), shapes)
        case _:
            pass


def _carried(loop: scf.ForOp) -> None:
    """Name what a loop carries after the sum that a product adds to, or after what it starts with."""
    for argument, start in zip(loop.body.block.args[1:], loop.iter_args, strict=True):
        if argument.name_hint is None:
            sums = [use.operation for use in argument.uses if isinstance(use.operation, ttng.WarpGroupDotOp)]
            names = [each.d.name_hint for each in sums if each.c is argument]
            argument.name_hint = next((name for name in (*names, start.name_hint, _narrow(start)) if name), None)


def _narrow(value: SSAValue) -> str | None:
    """The name of a block that is cast for the tensor cores, with the bits of its elements."""
    op = value.owner
    if not isinstance(op, Operation) or op.name != "arith.truncf" or op.operands[0].name_hint is None:
        return None
    return f"{op.operands[0].name_hint}{element_bits(element_of(value.type))}"


def _hint(value: SSAValue, hint: str) -> None:
    # A value that stands where it is used needs no name.
    if value.name_hint is None and isinstance(value.owner, Operation) and not may_inline(value.owner):
        value.name_hint = hint


def _coordinates(descriptor: SSAValue, indices: list[SSAValue], shapes: dict[SSAValue, list[str]]) -> None:
    names = shapes.get(descriptor, [])
    for dim, index in enumerate(indices):
        extent = names[dim] if dim < len(names) else ""
        if (stem := _multiplied(index)) is not None:
            _hint(index, f"off_{stem}")
        elif extent.isidentifier():
            _hint(index, f"off_{extent.lower()}")
        else:
            _hint(index, _LAST[min(len(indices) - 1 - dim, len(_LAST) - 1)])


def _multiplied(value: SSAValue) -> str | None:
    """The name of what a number of blocks multiplies: of `k` for `k * 64`, and of `pid_m` without its `pid_`."""
    op = value.owner
    if not isinstance(op, Operation) or op.name != "arith.muli":
        return None
    hint = op.operands[0].name_hint
    return hint.removeprefix("pid_") if hint and number_of(op.operands[1]) is not None else None


def _buffer(value: SSAValue) -> str:
    """The name of the array of buffers that a view is of."""
    while isinstance(value.owner, Operation) and value.owner.operands and value.name_hint is None:
        value = value.owner.operands[0]
    return value.name_hint or "buffer"
