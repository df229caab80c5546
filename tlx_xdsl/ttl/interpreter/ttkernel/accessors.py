"""Tensors as threads see them: what describes a tensor must agree with how the host has cut it into pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.ir import Operation

from tlx_xdsl.interpreter.faults import fault_at
from tlx_xdsl.ttl.dialects.ttcore import TileType

from .machine import CoreThread, Tensor, wrong
from .translate import Builder, Local, attribute, integer, integers


@dataclass(frozen=True)
class Accessor:
    """A tensor as a thread sees it."""

    tensor: Tensor


def accessor_args(op: Operation) -> Local:
    """The number of a tensor among those of the kernel, and of its address among the thread's arguments."""
    cta, crta = integer(op, "cta"), integer(op, "crta")

    def run(thread: CoreThread) -> tuple[int, int]:
        number = cta - len(thread.core.buffers)
        if not 0 <= number < len(thread.machine.tensors):
            first = len(thread.core.buffers)
            raise wrong(
                op, thread,
                f"takes compile-time argument {cta} for a tensor: those of the {len(thread.machine.tensors)} tensors "
                f"begin at {first}, after the circular buffers",
            )  # fmt: skip
        if not 0 <= crta < len(thread.tensors) or thread.tensors[crta] != number:
            raise wrong(
                op, thread,
                f"takes common runtime argument {crta} for tensor {number}, but its own tensors are "
                f"{list(thread.tensors)}",
            )  # fmt: skip
        return number, crta

    return run


def accessor(op: Operation) -> Local:
    """The pages of a tensor, which must be cut as the host has cut them."""
    shape = integers(op, "shape")
    element = attribute(op, "element")
    layout: Any = attribute(op, "layout")
    kind = layout.kind.value if layout is not None else "tiled"

    def run(thread: CoreThread, args: tuple[int, int], base: int, size: int) -> Accessor:
        tensor = thread.machine.tensors[args[0]]
        if base != tensor.base:
            raise wrong(
                op, thread, f"takes {base:#x} for the address of tensor '{tensor.name}', which is {tensor.base:#x}"
            )
        if size != tensor.pages.shape[1]:
            raise wrong(
                op, thread,
                f"takes pages of {size} bytes, but those of tensor '{tensor.name}' have {tensor.pages.shape[1]}"
            )  # fmt: skip
        if kind != tensor.layout.kind or isinstance(element, TileType) != (kind != "interleaved"):
            raise wrong(op, thread, f"takes tensor '{tensor.name}' for {kind}, but it is {tensor.layout.kind}")
        if shape and tuple(shape) != tensor.shape:
            raise wrong(
                op, thread,
                f"takes tensor '{tensor.name}' for one of {list(shape)} elements, found {list(tensor.shape)}"
            )  # fmt: skip
        return Accessor(tensor)

    return run


def common_argument(op: Operation) -> Local:
    """The address of one of the thread's tensors."""
    index = integer(op, "index")

    def run(thread: CoreThread) -> int:
        if index >= len(thread.tensors):
            raise fault_at(
                op, f"{thread.label} asks for common runtime argument {index}, but has {len(thread.tensors)}"
            )
        return thread.machine.tensors[thread.tensors[index]].base

    return run


BUILDERS: dict[str, Builder] = {
    "ttkernel.get_common_arg_val": common_argument,
    "ttkernel.TensorAccessorArgs": accessor_args,
    "ttkernel.TensorAccessor": accessor,
}
