"""Tensor descriptors, and the blocks of global memory that they give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.layouts.encodings import Ints
from tlx_xdsl.numerics.arrays import Array, Dtype, is_float
from tlx_xdsl.numerics.host_arrays import written_columns
from tlx_xdsl.numerics.rounding import nearest_tf32
from tlx_xdsl.targets import TMA_UNIT
from tlx_xdsl.text.diagnostics import report_warning

from .faults import Fault, fault_at
from .global_memory import GlobalMemory

SIZE = 128
"""Bytes of a descriptor in memory (CUDA driver API, `CUtensorMap`)."""
ALIGNMENT = 16
"""Bytes that the address and the outer strides of a tensor map are multiples of (cuTensorMapEncodeTiled)."""
_ADDRESSES = 1 << 64
"""Addresses have 64 bits: strides and coordinates whose sum is larger wrap around, as on a GPU."""


@dataclass(frozen=True)
class Descriptor:
    """A tensor in global memory, and the shape of the blocks in which it is copied."""

    address: int
    shape: Ints
    """Elements."""
    strides: Ints
    """Elements; the last one is 1."""
    block: Ints
    """Elements."""
    dtype: Dtype
    pads_with_nan: bool = False
    rounds_to_tf32: bool = False
    """True if loads round f32 elements to tf32 (CU_TENSOR_MAP_DATA_TYPE_TFLOAT32)."""
    surplus: int = 0
    """Elements after the last one of a row that stores write, too (`in_units`)."""
    place: int | None = None
    """The address of its 128 bytes, where the kernel has made it in global memory: each copy reads them."""

    def check(self, op: Operation) -> None:
        """Raise Fault for what TMA cannot address."""
        size = self.dtype.itemsize
        if self.address % ALIGNMENT:
            raise fault_at(
                op, f"misaligned TMA: the tensor's address is {self.address % ALIGNMENT} bytes past a multiple of 16"
            )
        for dim, stride in enumerate(self.strides[:-1]):
            if stride * size % ALIGNMENT:
                raise fault_at(
                    op, f"misaligned TMA: the stride of dimension {dim} is {stride * size} bytes, no multiple of 16"
                )
        if self.strides[-1] != 1:
            raise fault_at(op, f"TMA needs a last stride of 1 element, found {self.strides[-1]}")

    def check_start(self, op: Operation, corner: Sequence[int]) -> None:
        """Raise Fault for the corner of a tile that TMA cannot begin to copy at (`numerics/host_arrays.py`)."""
        if (start := corner[-1] * self.dtype.itemsize) % TMA_UNIT:
            raise fault_at(
                op,
                f"misaligned TMA: along the contiguous dimension a copy begins at a multiple of {TMA_UNIT} bytes, "
                f"found element {corner[-1]}, which is byte {start}",
                ("on the GPU that is an illegal instruction",),
            )

    def load(self, op: Operation, memory: GlobalMemory, corner: Sequence[int]) -> Array:
        """The block at `corner`; what is outside of the tensor is 0, or NaN where the descriptor says so."""
        inside, source = self._window(op, memory, corner, "load")
        if source is not None and source.shape == tuple(self.block):
            return nearest_tf32(source) if self.rounds_to_tf32 else source.copy()
        fill = np.nan if self.pads_with_nan and is_float(self.dtype) else 0
        result = np.full(self.block, fill, self.dtype)
        if source is not None:
            result[inside] = nearest_tf32(source) if self.rounds_to_tf32 else source
        return result

    def window(
        self, op: Operation, memory: GlobalMemory, corner: Sequence[int], verb: str = "store"
    ) -> tuple[tuple[slice, ...], Array] | None:
        """The part of a block that is inside of the tensor, and its elements in memory; None where nothing is."""
        inside, target = self._window(op, memory, corner, verb)
        return None if target is None else (inside, target)

    def store(self, op: Operation, memory: GlobalMemory, corner: Sequence[int], values: Array) -> None:
        """Write a block; what is outside of the tensor is dropped, but for the surplus of its rows."""
        if (found := self.window(op, memory, corner)) is not None:
            inside, target = found
            target[...] = values.reshape(self.block)[inside]

    def in_units(self) -> Descriptor:
        """The same tensor for the stores of tiles, which write whole units of a row (`numerics/host_arrays.py`)."""
        columns = self.shape[-1]
        return replace(self, surplus=written_columns(columns, self.dtype.itemsize) - columns)

    def row(self, number: int) -> Descriptor:
        """The descriptor of one row of a matrix, whose blocks have one row."""
        return replace(
            self,
            address=self.address + number * self.strides[0] * self.dtype.itemsize,
            shape=(1, *self.shape[1:]),
            block=(1, *self.block[1:]),
        )

    def _warn_of_outside(self, op: Operation, memory: GlobalMemory, corner: Sequence[int], verb: str) -> None:
        """Warn, once for each operation, of a block that is far outside of the tensor: swapped offsets look like that.

        The last tile of a tensor may have parts that lie outside, and are meant to.
        """
        near = (
            -_PARTS * part <= at < size + (_PARTS - 1) * part
            for at, size, part in zip(corner, self.shape, self.block, strict=True)
        )
        if op in memory.outside or all(near):
            return
        memory.outside.add(op)
        message = f"this {verb} is far outside of the tensor: {_EFFECT.get(verb, 'it has no effect')}"
        note = f"block {list(self.block)} at {list(corner)} of a tensor of {list(self.shape)}"
        report_warning(op, message, (note,))

    def _window(
        self, op: Operation, memory: GlobalMemory, corner: Sequence[int], verb: str
    ) -> tuple[tuple[slice, ...], Array | None]:
        if self.place is not None:
            memory.read_descriptor(op, self.place, SIZE)
        low = [max(-at, 0) for at in corner]
        reach = (*self.shape[:-1], self.shape[-1] + self.surplus)
        high = [min(size - at, part) for at, size, part in zip(corner, reach, self.block, strict=True)]
        inside = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
        if any(a >= b for a, b in zip(low, high, strict=True)):
            self._warn_of_outside(op, memory, corner, verb)
            return inside, None
        firsts = [at + a for at, a in zip(corner, low, strict=True)]
        counts = [b - a for a, b in zip(low, high, strict=True)]
        size = self.dtype.itemsize
        first = sum(at * stride for at, stride in zip(firsts, self.strides, strict=True))
        address = (self.address + first * size) % _ADDRESSES
        try:
            return inside, memory.strided(
                op, address, counts, [stride * size for stride in self.strides], self.dtype, verb
            )
        except Fault as fault:
            if (past := firsts[-1] + counts[-1] - self.shape[-1]) > 0:
                fault.notes = (*fault.notes, _past_the_end(past * size))
            raise


_PARTS = 8
"""Blocks that a tile of a kernel is copied in, along one dimension: those of several tasks, or of a cluster."""
_EFFECT = {"load": "every element is padding", "store": "nothing is written"}


def _past_the_end(size: int) -> str:
    return f"TMA writes rows in units of {TMA_UNIT} bytes, here the {size} bytes after the last column, too"
