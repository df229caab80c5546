"""Casts to what stock Triton lowers values to: the registers of single threads, addresses of buffers and descriptors.

A number that differs between the threads of a task is an array with one for each of them; arithmetic and PTX take it
like any other. The address of a buffer in shared memory is a number (`interpreter/addresses`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects import llvm
from xdsl.dialects.builtin import UnrealizedConversionCastOp
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects import tlx, tt
from tlx_xdsl.dialects.base.layouts import LayoutAttr, layout_of
from tlx_xdsl.dialects.base.tensors import as_tensor
from tlx_xdsl.dialects.tt.types import TensorDescType
from tlx_xdsl.dialects.ttg.attrs import SharedMemorySpaceAttr
from tlx_xdsl.dialects.ttg.types import MemDescType
from tlx_xdsl.interpreter.addresses import TensorMap, encode, remember
from tlx_xdsl.interpreter.faults import fault_at
from tlx_xdsl.interpreter.memory import View
from tlx_xdsl.interpreter.ptx.instructions import LANES
from tlx_xdsl.interpreter.registry import Binary, Unary, pure
from tlx_xdsl.layouts.conversion.distributed import distributed_to_linear
from tlx_xdsl.layouts.conversion.tiling import BLOCK, LANE, REGISTER, WARP
from tlx_xdsl.layouts.encodings import SharedLayout
from tlx_xdsl.layouts.offset_terms import offset_of, offset_terms
from tlx_xdsl.numerics.arrays import Array


def held_elements(value: SSAValue) -> tuple[Array, ...] | None:
    """The index of each element of a tensor along its dimensions, by register, warp and lane.

    None where it is unknown, because the tensor has no layout.
    """
    tensor = as_tensor(value.type)
    if tensor is None or not isinstance(tensor.encoding, LayoutAttr):
        return None
    linear = distributed_to_linear(tensor.encoding.data, tensor.get_shape())  # pyright: ignore[reportArgumentType]
    sizes = linear.in_sizes
    names = (REGISTER, WARP, LANE)
    grid = np.indices([sizes.get(name, 1) for name in names])
    indices = dict(zip(names, grid, strict=True)) | {BLOCK: np.zeros_like(grid[0])}
    found = linear.apply_array({name: indices[name] for name in linear.in_names})
    return tuple(np.broadcast_to(found[name], grid[0].shape) for name in linear.out_names)


def give_to_elements(op: Operation, holders: tuple[Array, ...], values: Array, shape: tuple[int, ...]) -> Array:
    """The tensor whose elements the threads hold as `values`, by register, warp and lane.

    Raises Fault where threads that hold the same element do not agree on it.
    """
    result = np.empty(shape, values.dtype)
    result[holders] = values
    if (result[holders] != values).any():
        raise fault_at(op, "threads that hold the same element of the result get different values for it")
    return result


@pure(UnrealizedConversionCastOp)
def cast(op: UnrealizedConversionCastOp) -> Unary:
    """A tensor becomes the elements of each thread, register by register; a buffer its address."""
    if len(op.operands) != 1 or len(op.results) != 1:
        raise fault_at(op, "the interpreter can't run a cast of several values")
    match op.operands[0].type:
        case MemDescType() as type_ if isinstance(type_.memory_space, SharedMemorySpaceAttr):
            return _address(op, type_)
        case TensorDescType() as type_ if isinstance(layout := layout_of(type_.encoding), SharedLayout):
            return lambda descriptor: TensorMap(descriptor, layout)
        case type_ if as_tensor(type_) is None:
            return lambda value: value
        case _:
            pass
    holders = held_elements(op.operands[0])
    if holders is None:
        raise fault_at(op, "without a layout it is unknown which thread holds what")

    def run(values: Array) -> Any:
        held = values[holders]
        return tuple(register.reshape(-1) for register in held)

    return run


def _address(op: UnrealizedConversionCastOp, type_: MemDescType) -> Unary:
    """The address of the tile that a buffer is a part of, and the index of the part in it."""
    rank, terms = len(type_.shape), None
    if (tile := type_.alloc_shape[-rank:]) != type_.shape:
        layout = layout_of(type_.encoding)
        assert isinstance(layout, SharedLayout)
        terms = offset_terms(layout, tile, type_.element_bits)

    def run(view: View) -> Any:
        remember(view)
        first = int(view.offsets.flat[0])
        if terms is None:
            return (np.int32(encode(op, view, first)), *[np.int32(0)] * rank)
        # The offset of the part's start is an exclusive or with that of the tile, which its swizzle keeps aligned.
        return (np.int32(encode(op, view, first - offset_of(terms, view.start))), *map(np.int32, view.start))

    return run


@pure(llvm.ExtractValueOp)
def extract_value(op: llvm.ExtractValueOp) -> Unary:
    """One part of a structure."""
    (index,) = op.position.get_values()
    return lambda parts: parts[index]


@pure(tlx.RequireLayoutOp, tlx.ReleaseLayoutOp, tt.IntToPtrOp, tt.PtrToIntOp, llvm.PtrToIntOp)
def unchanged(_op: Operation) -> Unary:
    """A requirement for a layout changes no value, and a pointer is a number already, or what stands for it."""
    return lambda value: value


# Votes ---------------------------------------------------------------------------------------------------------------


_ALL_LANES = (1 << LANES) - 1


@pure(tlx.VoteBallotOp)
def vote_ballot(op: tlx.VoteBallotOp) -> Binary:
    """A bit for each thread of the mask that holds a true element.

    Who holds what is known only of a tensor with a layout. Raises Fault without one, but for votes of all or of none;
    where warps that hold the same element vote differently; and for a mask without all threads of the warp, which all
    vote: PTX leaves undefined what a thread outside of the mask does ("vote.sync"), and an H200 counts some of them.
    """
    holders = held_elements(op.pred)

    def run(mask: np.int32, pred: Any) -> Any:
        if (named := int(mask) & _ALL_LANES) != _ALL_LANES:
            raise fault_at(
                op, f"the mask {named:#x} leaves out threads, and all {LANES} of a warp vote: PTX leaves that undefined"
            )
        votes = np.asarray(pred)
        if votes.all() or not votes.any():
            ballot = np.uint32(_ALL_LANES if votes.any() else 0).view(np.int32)
            return np.full(votes.shape, ballot)[()]
        if holders is None:
            raise fault_at(
                op, "the threads of a warp do not agree, and without a layout it is unknown which thread holds what"
            )
        held = votes[holders].any(axis=0)
        ballots = (held.astype(np.uint64) << np.arange(LANES, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
        bits = ballots.astype(np.uint32).view(np.int32)
        return give_to_elements(op, holders, np.broadcast_to(bits[:, None], holders[0].shape), votes.shape)

    return run
