"""`ttl-verify-layouts`: what is copied fits the pages of its tensor.

Before and after:
```mlir
%a_cb = ttl.create_cb shape=[2, 1], element_type=!ttcore.tile<32x32, f32>, buffer_factor=2 : !ttl.cb<...>
%a = ttl.tensor_accessor %t : tensor<128x64xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>> -> ...
affine.for %i = 0 to 2 {
  %r = affine.apply affine_map<(d0) -> (d0 * 2)> (%i)
  %xf = ttl.copy %a[%r, %c0], %view : T, tensor<2x1x!ttcore.tile<32x32, f32>> -> !ttl.transfer_handle<read>
}
```
Nothing changes. The block has the tensor's data type and what the layout asks for: tiles, whole rows, or a whole shard;
and it lies inside the tensor, here with its tiles 2 and 3 of 4 in the last iteration. Places that are not known before
the kernel runs are accepted.
"""

from __future__ import annotations

from math import prod
from typing import cast

from xdsl.dialects.builtin import MemRefType, ModuleOp, TensorType
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import Pass, ops_of

from ..analysis.core_values import Core, ThreadWalk, Undecidable, cores_of, with_steps
from ..dialects.ttcore import TILE_COLUMNS, TILE_ROWS
from ..dialects.ttl import (
    CBType,
    CopyOp,
    KernelOp,
    LayoutAttr,
    LayoutKind,
    TensorAccessorOp,
    TensorAccessorType,
    acquisition_of,
    aligned,
    block_shape,
    encoding_of,
)

MOST_COPIES = 20_000
"""Copies of a kernel, on all cores, whose places are looked at."""
LEAST_COPIES = 100
"""Those of each thread of a core that are looked at in any case."""


class VerifyLayoutsPass(Pass):
    """Check the accessors and copies of every kernel."""

    name = "ttl-verify-layouts"

    def run(self, op: ModuleOp) -> None:
        """Check the module.

        Raises CompilationError for a copy that does not fit its tensor.
        """
        for kernel in ops_of(op, KernelOp):
            for accessor in ops_of(kernel, TensorAccessorOp):
                _check_tensor(accessor)
            for copy in ops_of(kernel, CopyOp):
                if isinstance(copy.far.type, TensorAccessorType):
                    _check_block(copy)
            _check_places(kernel)


def _tiles(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Rows and columns of tiles that cover a matrix of a tensor, after its other dimensions."""
    return *shape[:-2], -(-shape[-2] // TILE_ROWS), -(-shape[-1] // TILE_COLUMNS)


def _matrix(tiles: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of tiles of all matrices, one below the other, of which shards are cut."""
    return prod(tiles[:-1]), tiles[-1]


def _spelled(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _tensor_of(copy: CopyOp) -> tuple[tuple[int, ...], Attribute, LayoutAttr]:
    """Shape, type of elements and layout of the tensor of a copy."""
    accessor = copy.far.type
    assert isinstance(accessor, TensorAccessorType)
    tensor = accessor.tensor
    layout = encoding_of(tensor).layout
    assert isinstance(tensor, TensorType | MemRefType)
    return tuple(tensor.get_shape()), cast(Attribute, tensor.get_element_type()), layout


def _buffer_of(copy: CopyOp) -> CBType:
    """The circular buffer of the block of a copy."""
    try:
        return acquisition_of(copy.view).cb_type
    except VerifyException as error:
        raise error_at(copy, str(error)) from error


def _check_tensor(accessor: TensorAccessorOp) -> None:
    """Check that a tensor has two or more known dimensions, and that its shards cover it."""
    type_ = accessor.tensor.type
    layout = encoding_of(type_).layout
    assert isinstance(type_, TensorType | MemRefType)
    shape = tuple(type_.get_shape())
    if len(shape) < 2 or min(shape) < 1:
        raise error_at(accessor, f"a kernel's tensor has two or more dimensions of known size, found {type_}")
    if layout.kind is LayoutKind.SHARDED:
        covered = tuple(a * b for a, b in zip(layout.grid, layout.tiles_per_shard, strict=True))
        tiles = _matrix(_tiles(shape))
        if any(has < needs for has, needs in zip(covered, tiles, strict=True)):
            raise error_at(
                accessor,
                f"{_spelled(layout.grid)} shards of {_spelled(layout.tiles_per_shard)} tiles cover "
                f"{_spelled(covered)} tiles, the tensor has {_spelled(tiles)}",
            )


def _check_block(copy: CopyOp) -> None:
    """Check that the block of a copy is what a transfer of this layout moves."""
    shape, element, layout = _tensor_of(copy)
    buffer = _buffer_of(copy)
    if block_shape(copy.view.type) != buffer.shape:
        raise error_at(copy, "one block is copied at a time: take one of the view with ttl.block")
    fault = _fault_of_block(buffer, shape, layout, len(copy.indices))
    if fault is None and buffer.data_type != element:
        fault = f"a tensor of {element} is copied to and from blocks of {element}, found {buffer.data_type}"
    if fault is not None:
        raise error_at(copy, fault, [f"the tensor has {_spelled(shape)} elements, the layout is {layout}"])


def _fault_of_block(buffer: CBType, shape: tuple[int, ...], layout: LayoutAttr, indices: int) -> str | None:
    block = _spelled(buffer.shape)
    if aligned(buffer.shape, len(shape)) is None:
        return f"a block of a tensor with {len(shape)} dimensions has as many, or ones in front, found {block}"
    match layout.kind:
        case LayoutKind.INTERLEAVED:
            if buffer.is_tiled:
                return (
                    "a tensor with an interleaved layout has pages of rows: its circular buffer needs single elements, "
                    f"found {buffer.element_type}"
                )
            if buffer.shape[-1] != shape[-1]:
                return (
                    f"a block holds whole rows of an interleaved tensor, of {shape[-1]} elements, found one of {block}"
                )
        case LayoutKind.TILED:
            if not buffer.is_tiled:
                return f"a tiled tensor needs a circular buffer of tiles, found one of {buffer.element_type}"
            if indices == 1 and prod(buffer.shape) != 1:
                return f"one index is the number of a tile, the block has {block}: give its row and column of tiles"
        case LayoutKind.SHARDED:
            if not buffer.is_tiled:
                return f"a sharded tensor needs a circular buffer of tiles, found one of {buffer.element_type}"
            if indices == 1 and aligned(buffer.shape, 2) != layout.tiles_per_shard:
                return f"a block holds a shard, of {_spelled(layout.tiles_per_shard)} tiles, found one of {block}"
    return None


def _check_places(kernel: KernelOp) -> None:
    """Follow each core through the threads that copy, and check where its blocks are."""
    cores = cores_of(kernel.grid)
    threads = [thread for thread in kernel.threads if ops_of(thread, CopyOp)]
    most = max(LEAST_COPIES, MOST_COPIES // (len(cores) * len(threads) or 1))
    for thread in threads:
        relevant = with_steps(thread, CopyOp)
        for core in cores:
            _check_places_of(thread, core, relevant, most)


def _check_places_of(thread: Operation, core: Core, relevant: set[Operation], most: int) -> None:
    walk = ThreadWalk(thread, core, relevant, (CopyOp,))
    try:
        for op in walk.steps():
            if isinstance(op, CopyOp) and isinstance(op.far.type, TensorAccessorType):
                most -= 1
                if most < 0:
                    return
                _check_place(op, core, [walk.values.of(index) for index in op.indices])
    except Undecidable:
        return


def _check_place(copy: CopyOp, core: Core, place: list[int | None]) -> None:
    """Check where the block of a copy is in its tensor, as far as its place is known."""
    shape, _, layout = _tensor_of(copy)
    buffer = _buffer_of(copy)
    is_rows, is_sharded = (layout.kind is each for each in (LayoutKind.INTERLEAVED, LayoutKind.SHARDED))
    whole = shape if is_rows else _tiles(shape)
    if is_sharded and aligned(buffer.shape, 2) == layout.tiles_per_shard and len(shape) == 2:
        # The last shards may be larger than what is left of the tensor.
        whole = tuple(a * b for a, b in zip(layout.grid, layout.tiles_per_shard, strict=True))
    where = f" on core {core.place}" if core.columns > 1 or core.y else ""
    if len(place) == 1 and not is_rows:
        pages, page = (prod(layout.grid), "shard") if is_sharded else (prod(whole), "tile")
        if place[0] is not None and not 0 <= place[0] < pages:
            raise error_at(copy, f"{page} {place[0]} is outside of the tensor, which has {pages} {page}s{where}")
        return
    if is_rows and len(place) > 1 and place[-1] not in (0, None):
        raise error_at(copy, f"rows of an interleaved tensor are copied from column 0, found column {place[-1]}{where}")
    sizes = aligned(buffer.shape, len(shape))
    assert sizes is not None, "checked for the block"
    if len(place) == 1:
        # Rows are numbered through all matrices.
        whole, sizes = (prod(whole[:-1]),), (prod(sizes[:-1]),)
    for dim, (first, size, there) in enumerate(zip(place, sizes, whole, strict=True)):
        if first is not None and not 0 <= first <= there - size:
            last, word = first + size - 1, line_of(dim, max(len(place), 2))
            unit = "" if is_rows or dim < len(place) - 2 else " of tiles"
            named = f"{word}{unit} {first}" if size == 1 else f"{word}s{unit} {first} to {last}"
            raise error_at(
                copy,
                f"{named} of the block {'is' if size == 1 else 'are'} outside of the tensor, which has {there} "
                f"{word}s{unit}{where}",
            )


def line_of(dim: int, rank: int) -> str:
    """The word for what a dimension of a tensor counts."""
    return {1: "column", 2: "row"}.get(rank - dim, "layer")
