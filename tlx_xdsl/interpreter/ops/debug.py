"""Printing and assertions of a kernel."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base.tensors import scalar_type
from tlx_xdsl.dialects.tt.types import PointerType
from tlx_xdsl.interpreter.faults import fault_at
from tlx_xdsl.interpreter.machine import Task
from tlx_xdsl.interpreter.numbers import dtype_of
from tlx_xdsl.interpreter.registry import Unary, immediate
from tlx_xdsl.numerics.arrays import Array, is_float, unsigned


@immediate(tt.AssertOp)
def assertion(task: Task, op: tt.AssertOp, condition: Array) -> None:
    """Raises Fault with the text of the user where the condition does not hold."""
    message = op.message.data
    if not condition.all():
        program = ", ".join(map(str, task.block.program))
        where = ""
        if condition.ndim:
            where = f", first at element {np.argwhere(~condition)[0].tolist()} of {list(condition.shape)}"
        raise fault_at(op, f"assertion failed: {message}" if message else "assertion failed",
                       (f"in program ({program}){where}",))  # fmt: skip


@immediate(tt.PrintOp)
def print_values(task: Task, op: tt.PrintOp, *values: Array) -> None:
    """One line for each element, with the program and the index in front, as Triton prints on the device."""
    prefix, is_hex = op.prefix.data, bool(op.hex.value.data)
    formats = [_formatter(value.type, is_hex, bool(sign)) for value, sign in
               zip(op.args, op.is_signed.get_values(), strict=True)]  # fmt: skip
    program = "pid ({}, {}, {})".format(*task.block.program)
    if not values:
        print(f"{program}{prefix}")
    for number, (value, text) in enumerate(zip(values, formats, strict=True)):
        which = f"(operand {number}) " if len(values) > 1 else ""
        widths = [len(str(size - 1)) for size in value.shape]
        for index in product(*map(range, value.shape)):
            place = ", ".join(f"{at:{width}}" for at, width in zip(index, widths, strict=True))
            print(f"{program} idx ({place}){prefix}{which}{text(value[index])}")


def _formatter(type_: Any, is_hex: bool, is_signed: bool) -> Unary:
    """The text of a number: integers in decimal or all their digits in base 16, floats with six decimals."""
    dtype = dtype_of(type_)
    if isinstance(scalar_type(type_), PointerType):
        return lambda value: f"0x{int(value):x}"
    if is_hex:
        bits = np.dtype(f"u{dtype.itemsize}")
        return lambda value: f"0x{int(value.view(bits)):0{2 * dtype.itemsize}x}"
    if is_float(dtype):
        return lambda value: f"{float(value):f}"
    if is_signed:
        return lambda value: str(int(value))
    return lambda value: str(int(value.view(unsigned(dtype))))
