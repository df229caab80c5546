"""Tensor descriptors that a kernel makes in global memory, and the memory that it makes them in.

A descriptor takes 128 bytes whose meaning NVIDIA doesn't publish (PTX ISA, "tensormap"); here they hold what
`ttng.tensormap_create` was given, in a form of our own. What writes them and TMA, which reads them, use different
proxies: a fence must stand in between, and the last byte says whether one does.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.dialects import scf, tlx, tt, ttg, ttng
from tlx_xdsl.dialects.base import enclosing
from tlx_xdsl.element_types import BY_TENSOR_MAP

from ..descriptor import SIZE, Descriptor
from ..faults import Unsupported, fault_at
from ..global_memory import GlobalMemory
from ..machine import Task, ThreadBlock
from ..numbers import dtype_of
from ..registry import Built, Kind, immediate, structured

ALIGNMENT = 64
"""Bytes that the address of a descriptor is a multiple of (CUDA driver API, `CUtensorMap`)."""
_MAGIC = b"tmap"
_FIELDS = struct.Struct("<4s4BQ5I4Q5I")
"""Mark, rank, bytes of an element, fill mode, filler; address; sizes; strides in bytes; box."""
_FENCED = SIZE - 1
"""The byte that says whether TMA may see what was written."""
_ELEMENT_BYTES = {number: each.bytes for number, each in BY_TENSOR_MAP.items()} | dict.fromkeys((13, 14, 15), 1)
"""By the number of an element type (PTX ISA, "tensormap.replace", table of `.elemtype`); 13 to 15 are less than one."""


@immediate(ttg.GlobalScratchAllocOp)
def global_scratch_alloc(task: Task, op: ttg.GlobalScratchAllocOp) -> np.int64:
    """Memory of this program alone, or of its cluster; every execution gives the same one, as in compiled code."""
    size, alignment = op.nbytes.value.data, op.alignment.value.data
    name = f"the scratch memory of {op.result.name_hint or 'the program'}"
    of_cluster = op.shared_cluster_state is not None
    block = task.cluster.blocks[0] if of_cluster else task.block
    return np.int64(_place_of(block, op, task.global_memory, name, size, alignment))


def _place_of(block: ThreadBlock, op: Operation, memory: GlobalMemory, name: str, size: int, alignment: int) -> int:
    """The address of what a thread block has for an operation, called `name`.

    Programs that follow each other on it share that, as they share everything else there.
    """
    if (address := block.scratch.get(op)) is None:
        address = block.scratch[op] = memory.add(name, np.full(size, 0xFF, np.uint8), alignment=alignment)
    return address


@dataclass(frozen=True)
class _Map:
    """The content of a descriptor, from the fastest dimension to the slowest; strides in bytes, without the fastest."""

    element_bytes: int
    fill: int
    """1: NaN outside of the tensor."""
    address: int
    sizes: Sequence[int]
    strides: Sequence[int]
    box: Sequence[int]

    def write(self, op: Operation, memory: GlobalMemory, place: int, *, is_fenced: bool) -> None:
        """Write the descriptor to memory; `is_fenced` says whether TMA may see it already.

        Raises Fault where it can't lie.
        """
        target = memory.bytes_at(op, place, SIZE, "store")
        if place % ALIGNMENT:
            raise fault_at(
                op, f"misaligned tensor descriptor: it is {place % ALIGNMENT} bytes past a multiple of {ALIGNMENT}"
            )
        packed = _FIELDS.pack(
            _MAGIC, len(self.sizes), self.element_bytes, self.fill, 0, self.address,
            *_padded(self.sizes, 5, 32), *_padded(self.strides, 4, 64), *_padded(self.box, 5, 32),
        )  # fmt: skip
        target[: len(packed)] = np.frombuffer(packed, np.uint8)
        target[_FENCED] = is_fenced


def _padded(numbers: Sequence[int], count: int, bits: int) -> list[int]:
    return [number % (1 << bits) for number in numbers] + [0] * (count - len(numbers))


@immediate(ttng.TensormapCreateOp)
def tensormap_create(task: Task, op: ttng.TensormapCreateOp, place: np.int64, address: np.int64, *rest: Any) -> None:
    """Write a descriptor; TMA sees it after a fence."""
    rank = len(op.box_dim)
    kind, fill = op.elem_type.value.data, op.fill_mode.value.data
    numbers = [int(number) for number in rest]
    box, sizes, strides = numbers[:rank], numbers[rank : 2 * rank], numbers[2 * rank : 3 * rank - 1]
    if kind not in _ELEMENT_BYTES:
        raise fault_at(op, f"no tensor descriptor has elements of type number {kind}")
    if any(step != 1 for step in numbers[3 * rank - 1 :]):
        raise fault_at(op, "the interpreter can't run TMA copies that skip elements", kind=Unsupported)
    made = _Map(_ELEMENT_BYTES[kind], fill, int(address), sizes, strides, box)
    made.write(op, task.global_memory, int(place), is_fenced=False)


@immediate(tlx.MakeTensorDescOp)
def make_tensor_descriptor(
    task: Task, op: tlx.MakeTensorDescOp, place: np.int64, address: np.int64, *rest: Any
) -> Descriptor:
    """Write a descriptor, which TMA sees at once, and give it."""
    rank, dtype, block = len(op.shape), dtype_of(op.result.type.element_type), tuple(op.result.type.shape)
    is_nan = tt.PaddingOption(op.padding.value.data) is tt.PaddingOption.PAD_NAN
    size = dtype.itemsize
    sizes, strides = [int(at) for at in rest[:rank]], [int(at) for at in rest[rank:]]
    bytes_ = [stride * size for stride in strides[-2::-1]]
    made = _Map(size, int(is_nan), int(address), sizes[::-1], bytes_, block[::-1])
    made.write(op, task.global_memory, int(place), is_fenced=True)
    return Descriptor(int(address), tuple(sizes), tuple(strides), block, dtype, is_nan, place=int(place))


@structured(tt.MakeTensorDescOp)
def make_descriptor(op: tt.MakeTensorDescOp, _planner: Any) -> Built:
    """A descriptor of a tensor in memory.

    Compiled code has one place for those of an operation in a loop: another one is written where the last one was.
    """
    type_, count = op.result.type, len(op.shape)
    dtype, is_nan = dtype_of(type_.element_type), tt.PaddingOption(op.padding.value.data) is tt.PaddingOption.PAD_NAN
    block = tuple(type_.shape)

    def described(base: np.int64, *extents: Any) -> Descriptor:
        numbers = tuple(int(extent) for extent in extents)
        return Descriptor(int(base), numbers[:count], numbers[count:], block, dtype, is_nan)

    def written(task: Task, base: np.int64, *extents: Any) -> Descriptor:
        made, kept = described(base, *extents), task.block.descriptors.get(op)
        if kept is None or made != replace(kept, place=None):
            name = f"the descriptor of {op.result.name_hint or 'a tensor'}"
            place = _place_of(task.block, op, task.global_memory, name, SIZE, ALIGNMENT)
            task.global_memory.bytes_at(op, place, SIZE, "store")
            kept = task.block.descriptors[op] = replace(made, place=place)
        return kept

    return (Kind.PURE, described) if enclosing(op, *scf.LOOPS) is None else (Kind.EFFECT, written)


@immediate(ttng.TensormapFenceproxyAcquireOp)
def tensormap_fenceproxy_acquire(task: Task, op: ttng.TensormapFenceproxyAcquireOp, place: np.int64) -> None:
    """Make what was written visible to TMA (PTX ISA, "fence.proxy.tensormap")."""
    task.global_memory.bytes_at(op, int(place), SIZE, "load")[_FENCED] = 1


@immediate(ttng.ReinterpretTensorDescOp)
def reinterpret_tensor_descriptor(task: Task, op: ttng.ReinterpretTensorDescOp, place: np.int64) -> Descriptor:
    """Read a descriptor; its boxes must fill the blocks of the type, as one block may take several copies."""
    type_ = op.result.type
    assert isinstance(type_, tt.TensorDescType)
    block, dtype = tuple(type_.shape), dtype_of(type_.element_type)
    data = task.global_memory.bytes_at(op, int(place), SIZE, "load")
    mark, rank, size, fill, _, address, *numbers = _FIELDS.unpack(data[: _FIELDS.size].tobytes())
    if mark != _MAGIC:
        raise fault_at(op, "there is no tensor descriptor at the address: it was not created")
    if not data[_FENCED]:
        raise fault_at(
            op,
            "the tensor descriptor is used without a fence after what has written it: it need not be visible to TMA",
            ("put ttng.tensormap_fenceproxy_acquire in between",),
        )
    if size != dtype.itemsize:
        raise fault_at(op, f"the tensor descriptor has elements of {size} bytes, expected {dtype.itemsize}")
    shape, box = numbers[:rank][::-1], numbers[9 : 9 + rank][::-1]
    if len(block) != rank or any(whole % part for whole, part in zip(block, box, strict=True)):
        raise fault_at(op, f"the tensor descriptor has boxes of {box} elements, expected parts of {list(block)}")
    strides = [stride // size for stride in numbers[5 : 5 + rank - 1][::-1]]
    return Descriptor(address, tuple(shape), (*strides, 1), block, dtype, fill == 1, place=int(place))
