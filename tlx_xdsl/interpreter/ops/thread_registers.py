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

from tlx_xdsl.dialects import tlx, tt, ttg
from tlx_xdsl.dialects.base import LayoutAttr, as_tensor, layout_of
from tlx_xdsl.layouts.conversion.distributed import distributed_to_linear
from tlx_xdsl.layouts.conversion.tiling import BLOCK, LANE, REGISTER, WARP
from tlx_xdsl.layouts.encodings import Ints, SharedLayout
from tlx_xdsl.layouts.offset_terms import offset_of, offset_terms
from tlx_xdsl.numerics.arrays import Array, where
from tlx_xdsl.numerics.ptx.instructions import LANES

from ..addresses import TensorMap, encode, remember
from ..faults import Unsupported, fault_at
from ..machine import Task
from ..memory import View
from ..registry import Ternary, Unary, effect, pure, threadwise
from ..threads import differs, uniform
from .memrefs import memory_cast


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


def give_to_elements(op: Operation, holders: tuple[Array, ...], values: Array, shape: Ints) -> Array:
    """The tensor whose elements the threads hold as `values`, by register, warp and lane.

    Raises Fault where threads that hold the same element do not agree on it.
    """
    result = np.empty(shape, values.dtype)
    result[holders] = values
    if (result[holders] != values).any():
        raise fault_at(op, "threads that hold the same element of the result get different values for it")
    return result


def held_by(op: Operation, value: SSAValue, threads: Array) -> Array:
    """A bool for each element of a tensor: whether one of `threads` holds it, a bool for each thread of the task.

    Raises Fault without a layout.
    """
    holders = _holders(op, held_elements(value))
    tensor = as_tensor(value.type)
    assert tensor is not None
    result = np.zeros(tensor.get_shape(), np.bool_)
    np.logical_or.at(result, holders, np.broadcast_to(threads.reshape(-1, LANES), holders[0].shape))
    return result


def stored_by(op: Operation, pointers: SSAValue, threads: Array) -> Array:
    """The same for whether one of them stores it: of those that hold it, the ones whose free bits are zero."""
    tensor = as_tensor(pointers.type)
    if tensor is not None and isinstance(tensor.encoding, LayoutAttr):
        free = distributed_to_linear(tensor.encoding.data, tensor.get_shape()).free_variables()  # pyright: ignore[reportArgumentType]
        warps, lanes = np.divmod(np.arange(threads.size), LANES)
        threads = threads & ((warps & free.get(WARP, 0)) == 0) & ((lanes & free.get(LANE, 0)) == 0)
    return held_by(op, pointers, threads)


def merged(op: Operation, value: SSAValue, taken: Array, first: Any, second: Any) -> Any:
    """`value` where threads have taken two ways: those of `taken` the first one.

    Raises Fault where the two differ in what is one thing for the task, or in a tensor without a layout.
    """
    if first is second:
        return first
    if not all(isinstance(each, np.ndarray | np.generic) for each in (first, second)):
        raise fault_at(op, "threads that take different ways bring back different things, of which the task has one")
    if as_tensor(value.type) is None:
        return where(taken, first, second)
    return first if np.array_equal(first, second) else where(spread(op, value, taken), first, second)


def spread(op: Operation, value: SSAValue, numbers: Array) -> Array:
    """The tensor `value`, in whose elements each thread has put its own one of `numbers`."""
    holders = _holders(op, held_elements(value))
    held = np.broadcast_to(numbers.reshape(-1, LANES), holders[0].shape)
    tensor = as_tensor(value.type)
    assert tensor is not None
    return give_to_elements(op, holders, held, tensor.get_shape())


def _holders(op: Operation, holders: tuple[Array, ...] | None) -> tuple[Array, ...]:
    if holders is None:
        raise fault_at(op, "the threads of the task differ here, and without a layout it is unknown which holds what")
    return holders


@pure(UnrealizedConversionCastOp)
def cast(op: UnrealizedConversionCastOp) -> Unary:
    """A tensor becomes the elements of each thread, register by register; a buffer its address."""
    if (function := memory_cast(op)) is not None:
        return function
    if len(op.operands) != 1 or len(op.results) != 1:
        raise fault_at(op, "the interpreter can't run a cast of several values", kind=Unsupported)
    match op.operands[0].type:
        case ttg.MemDescType() as type_ if isinstance(type_.memory_space, ttg.SharedMemorySpaceAttr):
            return _address(op, type_)
        case tt.TensorDescType() as type_ if isinstance(layout := layout_of(type_.encoding), SharedLayout):
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


def _address(op: UnrealizedConversionCastOp, type_: ttg.MemDescType) -> Unary:
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


@threadwise(tlx.VoteBallotOp)
@effect(tlx.VoteBallotOp)
def vote_ballot(op: tlx.VoteBallotOp) -> Ternary:
    """A bit for each thread of the mask that holds a true element.

    Who holds what is known only of a tensor with a layout. Raises Fault without one, but for votes of all or of none;
    where warps that hold the same element vote differently; and for a mask without all threads of the warp, which all
    vote: PTX leaves undefined what a thread outside of the mask does ("vote.sync"), and an H200 counts some of them.
    """
    holders, is_tensor = held_elements(op.pred), as_tensor(op.pred.type) is not None
    gives_tensor = as_tensor(op.result.type) is not None

    def run(task: Task, mask: Any, pred: Any) -> Any:
        mask = uniform(op, mask, task.active)
        if task.active is not None:
            raise fault_at(op, "a vote is of all threads of a warp, and only some of the task's threads run here")
        if (named := int(mask) & _ALL_LANES) != _ALL_LANES:
            raise fault_at(
                op, f"the mask {named:#x} leaves out threads, and all {LANES} of a warp vote: PTX leaves that undefined"
            )
        if differs(pred) and not is_tensor:
            return np.repeat(_ballots(pred.reshape(-1, LANES)), LANES)
        votes: Array = np.asarray(pred)
        if votes.all() or not votes.any():
            ballot = np.uint32(_ALL_LANES if votes.any() else 0).view(np.int32)
            return np.full(votes.shape, ballot)[()] if gives_tensor else ballot
        if holders is None:
            raise fault_at(
                op, "the threads of a warp do not agree, and without a layout it is unknown which thread holds what"
            )
        bits = _ballots(np.asarray(votes[holders].any(axis=0)))
        if not gives_tensor:
            return np.repeat(bits, LANES)
        return give_to_elements(op, holders, np.broadcast_to(bits[:, None], holders[0].shape), votes.shape)

    return run


def _ballots(votes: Array) -> Array:
    """The votes of each warp as bits, of votes by warp and lane."""
    ballots = (votes.astype(np.uint64) << np.arange(LANES, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
    return ballots.astype(np.uint32).view(np.int32)
