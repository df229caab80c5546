"""`ttl-allocate-circular-buffers`: each circular buffer gets its number, and its place in the memory of a core.

Before:
```mlir
%a = ttl.create_cb shape=[1, 1], element_type=!ttcore.tile<32x32, f32>, buffer_factor=2 : !ttl.cb<...>
%b = ttl.create_cb shape=[1, 1], element_type=!ttcore.tile<32x32, f32>, buffer_factor=2 : !ttl.cb<...>
```
After:
```mlir
%a = ttl.create_cb shape=[1, 1], ... buffer_factor=2 {cb_index = 0 : i32, l1_address = 0 : i32} : !ttl.cb<...>
%b = ttl.create_cb shape=[1, 1], ... buffer_factor=2 {cb_index = 1 : i32, l1_address = 8192 : i32} : !ttl.cb<...>
```
The threads of a core run at the same time, so a buffer is in use during the whole kernel, unless all that happens to it
happens before anything happens to another one (`analysis.ttl.cb_lifetimes`): these two share memory. They keep numbers
of their own, for the pointers into a buffer live as long as its number.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.errors import CompilationError, OverBudgetError
from tlx_xdsl.text.diagnostics import error_at, source_location
from tlx_xdsl.transforms.rewriting import Pass, ops_of

from ..analysis.cb_lifetimes import conflicts_of
from ..analysis.first_fit import aligned, place
from ..dialects.ttcore import CIRCULAR_BUFFERS, L1_BYTES, format_of
from ..dialects.ttl.buffers import CreateCBOp
from ..dialects.ttl.kernel import KernelOp
from .thread_function import integer


@dataclass(frozen=True)
class AllocateCircularBuffersPass(Pass):
    """Set `cb_index` and `l1_address` of every circular buffer; `budget` is the memory that there is, in bytes."""

    name = "ttl-allocate-circular-buffers"

    budget: int = L1_BYTES
    """The memory of a core for circular buffers, in bytes."""

    def run(self, op: ModuleOp) -> None:
        """Annotate the module in place.

        Raises CompilationError for a kernel with too many circular buffers, OverBudgetError for one whose buffers do
        not fit.
        """
        for kernel in ops_of(op, KernelOp):
            self._allocate(kernel)

    def _allocate(self, kernel: KernelOp) -> None:
        buffers = ops_of(kernel, CreateCBOp)
        if len(buffers) > CIRCULAR_BUFFERS:
            raise _too_many(buffers)
        placement = place([buffer.type.bytes for buffer in buffers], conflicts_of(kernel, buffers))
        if placement.bytes > self.budget:
            raise _too_large(kernel, buffers, placement.bytes, self.budget)
        for index, (buffer, address) in enumerate(zip(buffers, placement.addresses, strict=True)):
            buffer.cb_index = integer(index)
            buffer.l1_address = integer(address)


def _too_many(buffers: list[CreateCBOp]) -> CompilationError:
    return error_at(
        buffers[CIRCULAR_BUFFERS],
        f"a core has {CIRCULAR_BUFFERS} circular buffers, the kernel makes {len(buffers)}: "
        "use one buffer for several tensors, or split the kernel",
        _listed(buffers),
    )


def _too_large(kernel: KernelOp, buffers: list[CreateCBOp], required: int, budget: int) -> OverBudgetError:
    largest = max(buffers, key=lambda buffer: buffer.type.bytes)
    name = kernel.sym_name.data
    error = error_at(
        largest,
        f"the circular buffers of '{name}' need {required:,} B of a core's memory, there are {budget:,}: "
        f"{_advice(buffers, largest, required - budget)}",
        _listed(buffers),
    )
    return OverBudgetError.of(error, "circular buffers", required, budget)


def _advice(buffers: list[CreateCBOp], largest: CreateCBOp, excess: int) -> str:
    """Return what makes the buffers smaller."""
    saved = sum(buffer.type.bytes - aligned(buffer.type.bytes // buffer.type.buffer_factor) for buffer in buffers)
    if saved >= excess:
        return "use a smaller buffer_factor"
    block = "x".join(map(str, largest.type.shape))
    return f"use smaller blocks than {block} ({_named(largest)} is the largest buffer)"


def _listed(buffers: list[CreateCBOp]) -> list[str]:
    notes: list[str] = []
    for buffer in buffers:
        type_, place = buffer.type, source_location(buffer.location)
        shape = "x".join(map(str, type_.shape))
        unit = f"tiles of {format_of(type_.data_type)}" if type_.is_tiled else f"{type_.data_type}"
        made = "the compiler's own" if buffer.internal is not None else "made"
        where = "" if place is None else f", {made} at {place}"
        notes.append(f"{_named(buffer)}: {shape} {unit}, buffer_factor {type_.buffer_factor}, {type_.bytes:,} B{where}")
    return notes


def _named(buffer: CreateCBOp) -> str:
    return "a circular buffer" if buffer.result.name_hint is None else f"'{buffer.result.name_hint}'"
