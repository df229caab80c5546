"""Arrays as the tensors of a kernel, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from tlx_xdsl.errors import InputError
from tlx_xdsl.interpreter.faults import location_of
from tlx_xdsl.numerics.arrays import Array
from tlx_xdsl.ttl.dialects.ttcore import TileType
from tlx_xdsl.ttl.dialects.ttl.types import encoding_of
from tlx_xdsl.ttl.tiles import PageLayout, from_pages, to_pages

from .machine import CoreThread, Tensor, wrong


def layout_of(type_: Attribute) -> PageLayout:
    """How the pages of a tensor are cut."""
    layout = encoding_of(type_).layout
    kind = layout.kind.value
    if kind != "sharded":
        return PageLayout(kind)
    rows, columns = layout.grid
    tile_rows, tile_columns = layout.tiles_per_shard
    return PageLayout(kind, (rows, columns), (tile_rows, tile_columns))


def tensor_of(index: int, argument: SSAValue, array: Array) -> Tensor:
    """An array as a tensor in DRAM, which has a copy of it.

    Raises InputError for an array of another shape.
    """
    type_: Any = argument.type
    assert isinstance(type_, TensorType | MemRefType)
    name = argument.name_hint or str(index)
    shape: tuple[int, ...] = tuple(type_.get_shape())
    if array.shape != shape:
        raise InputError(f"argument {index}, '{name}': expected an array of shape {shape}, found {array.shape}")
    element = cast(Attribute, type_.get_element_type())
    dtype = str(element.data_type if isinstance(element, TileType) else element)
    layout = layout_of(argument.type)
    rows, columns = shape
    return Tensor(index, name, (rows, columns), dtype, layout, to_pages(array, dtype, layout))


def tensors_of(arguments: Sequence[SSAValue], arrays: Sequence[Array]) -> list[Tensor]:
    """All arrays of a launch.

    Raises InputError when there are too few or too many.
    """
    if len(arrays) != len(arguments):
        names = ", ".join(each.name_hint or str(index) for index, each in enumerate(arguments))
        raise InputError(f"the kernel takes {len(arguments)} arrays ({names}), found {len(arrays)}")
    return [tensor_of(index, each, array) for index, (each, array) in enumerate(zip(arguments, arrays, strict=True))]


def write_back(tensor: Tensor, array: Array) -> None:
    """Let an array have what its tensor has."""
    values: Any = from_pages(tensor.pages, tensor.shape, tensor.dtype, tensor.layout)
    if tensor.dtype == "bf16" and array.dtype == np.uint16:
        array[...] = (values.view(np.uint32) >> 16).astype(np.uint16)
    else:
        array[...] = values


def note_write(op: Operation, thread: CoreThread, tensor: Tensor, page: int) -> None:
    """Note that a write to a page has landed.

    Raises Fault where another thread has written it: which one is the last to write is not known.
    """
    earlier = tensor.writes.setdefault(page, [])
    if earlier:
        tensor.overwritten[page] = (earlier[-1][1], op)
        if earlier[-1][0] is not thread and thread.machine.checks:
            raise wrong(
                op, thread, f"writes page {page} of tensor '{tensor.name}', which another thread has written, too",
                [f"{location_of(earlier[-1][1])}: {earlier[-1][0].label} has written it here"],
            )  # fmt: skip
    earlier.append((thread, op))
    tensor.written.add(page)
