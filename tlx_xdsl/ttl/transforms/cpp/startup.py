"""The startup of a compute thread: once, and before anything else that it does.

In 0.81 it is `compute_kernel_hw_startup`, for the buffers of the first configuration in the program. Before, each
configuration did it, too, so that a thread needs one of its own only where it has none.
"""

from __future__ import annotations

from functools import singledispatch
from typing import NamedTuple

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.ttl.dialects import ttkernel

from .conversion import PACKS, Conversion


class _Buffers(NamedTuple):
    """Buffers that the units are configured for."""

    inputs: tuple[SSAValue, ...]
    output: SSAValue
    reversed: bool = False
    """Whether the operands go to the matrix unit in the other order, as those of products do."""


def emit_startup(to: Conversion) -> None:
    """Configure the compute engine where the profile wants it."""
    found = _first_configuration(to.function)
    if found is not None and not to.profile.has_startup:
        return
    buffers = found or _first_buffers(to.function)
    if buffers is None:
        return
    operands = [to.value(value) for value in (*buffers.inputs, buffers.output)]
    to.call("compute_kernel_hw_startup", operands, template=["SrcOrder::Reverse"] if buffers.reversed else [])


def _first_configuration(function: FuncOp) -> _Buffers | None:
    return next((found for op in function.walk() if (found := _configured(op)) is not None), None)


@singledispatch
def _configured(op: Operation) -> _Buffers | None:
    return None


@_configured.register(ttkernel.MMInitOp)
@_configured.register(ttkernel.MMBlockInitOp)
def _product(op: ttkernel.MMInitOp | ttkernel.MMBlockInitOp) -> _Buffers:
    return _Buffers((op.in0, op.in1), op.out, reversed=True)


@_configured.register
def _binary(op: ttkernel.BinaryOpInitCommonOp) -> _Buffers:
    return _Buffers((op.in0, op.in1), op.out)


@_configured.register
def _vector(op: ttkernel.InitSFPUOp) -> _Buffers:
    return _Buffers((op.icb,), op.ocb)


@_configured.register
def _broadcast(op: ttkernel.UnaryBcastInitOp) -> _Buffers:
    return _Buffers((op.icb,), op.ocb)


@_configured.register
def _transposition(op: ttkernel.TransposeWHInitOp) -> _Buffers:
    return _Buffers((op.icb,), op.ocb)


def _first_buffers(function: FuncOp) -> _Buffers | None:
    """The buffers of a thread that only copies, or only writes."""
    copied = next((op.cb for op in function.walk() if isinstance(op, ttkernel.CopyTileInitOp)), None)
    packed = next((op.cb for op in function.walk() if isinstance(op, PACKS)), None)
    first, last = copied or packed, packed or copied
    return None if first is None or last is None else _Buffers((first,), last)
