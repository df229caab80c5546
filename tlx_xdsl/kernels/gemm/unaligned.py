"""Products of matrices that TMA cannot read or write: by rows and columns of any strides, from any element on.

Two ways, of which `gemm_unaligned_config.plan_unaligned` takes the one that should be done first:

- *repacking*: what TMA can't read is copied to rows that it can (`copy_tiles`), for the kernels of `gemm`;
- *direct*: `gemm_direct` reads everything as it lies, which is better where the product is short in M or N, so that a
  copy of the larger factor would move three times the bytes, and where launches are what takes the time.

Both need memory while they run, `unaligned_workspace` bytes, from a multiple of 16 bytes on. A matrix by columns is
copied as its transpose by rows, so that no copy transposes anything; C^T = B^T A^T makes the longer side of C that of
the rows of the tensor cores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..calls.launching import WORKSPACE, Launch
from ..calls.operands import TMA_ALIGNMENT, Operand, torch_module, transposed
from .unaligned_config import Direct, Placement, UnalignedPlan
from .unaligned_device import Copy, Distances, add_splits, copy_tiles, gemm_direct

LINE_BYTES = 128
"""Matrices in the workspace begin at multiples of it: lines of the L2 cache."""

COPIED_ROWS, COPIED_COLUMNS = 32, 128
"""The tile of a program that copies: 32 elements for a thread, all of whose loads are under way at once."""


def placement(each: Operand) -> Placement:
    """Return how a matrix lies. Raises ValueError for strides that are negative."""
    (rows, columns), (row, column) = each.shape, each.strides
    if min(row, column) < 0:
        raise ValueError(f"{each.what}: expected strides that are not negative, got {each.strides}")
    # The stride of a single element means nothing.
    far = max(rows * columns, 1)
    row, column = row if rows > 1 else far, column if columns > 1 else far
    by_columns = column != 1 and (row == 1 or row < column)
    inner, outer = (row, column) if by_columns else (column, row)
    extent, count = (rows, columns) if by_columns else (columns, rows)
    dense = inner == 1 or extent == 1
    step = TMA_ALIGNMENT // each.element_bytes
    aligned = dense and address(each.value) % TMA_ALIGNMENT == 0 and (count == 1 or (outer % step == 0 and outer > 0))
    return Placement(by_columns, dense, step if aligned and extent % step == 0 else 1, aligned)


def address(value: Any) -> int:
    """The address of the first element of a tensor or array."""
    if callable(getattr(value, "data_ptr", None)):
        return int(value.data_ptr())
    return int(value.ctypes.data)


# --- launches -----------------------------------------------------------------------------------------------------


def copy_launch(source: Operand, target: Operand, *more: Operand) -> Launch:
    """The launch of a copy of a matrix, of elements of 1 or 2 bytes, between any strides; no extent may be 0.

    What the target has more of rows or columns becomes zeros; what the source has more is not copied. `more` are the
    source and the target of a second copy, of elements of the same type.

    Raises ValueError for strides that are negative.
    """
    found = [_copy(*pair) for pair in ((source, target), more) if pair]
    tiles = [count for count, _, _ in found]
    values = {"copies": tuple(copy for _, copy, _ in found), "TILES": tiles[0]}
    far = max(stride for _, copy, _ in found for stride in (*copy.source_strides, *copy.target_strides))
    constants = {
        "BLOCK": (COPIED_ROWS, COPIED_COLUMNS),
        "LIES": tuple(lies for _, _, lies in found),
        "WIDE": far * max(COPIED_ROWS, COPIED_COLUMNS) >= 1 << 31,
    }
    return Launch.of(copy_tiles, (sum(tiles),), values, constants, source.device)


def _copy(source: Operand, target: Operand) -> tuple[int, Copy, tuple[Placement, Placement]]:
    """Return the tiles of a copy, its memory, and how both sides lie.

    It goes in the order of the target, whose columns are those that lie closer.
    """
    if placement(target).columns:
        source, target = transposed(source), transposed(target)
    read, written = placement(source), placement(target)
    dense = source.shape[1] == 1 or source.strides[1] == 1
    read = Placement(dense=dense, vector=1 if read.columns else read.vector)
    written = Placement(dense=written.dense, vector=written.vector)
    tiles = -(-target.shape[0] // COPIED_ROWS) * -(-target.shape[1] // COPIED_COLUMNS)
    shapes = ((each.shape[0], each.shape[1] // way.vector) for each, way in ((source, read), (target, written)))
    return tiles, Copy(source, target, source.strides, target.strides, *shapes), (read, written)


def padded_bytes(each: Operand) -> int:
    """Memory for a copy of a matrix that TMA can read."""
    rows, columns = each.shape[::-1] if placement(each).columns else each.shape
    step = TMA_ALIGNMENT // each.element_bytes
    return -(-rows * -(-columns // step) * TMA_ALIGNMENT // LINE_BYTES) * LINE_BYTES


def unaligned_workspace(left: Operand, right: Operand, target: Operand, plan: UnalignedPlan) -> int:
    """Bytes that the launches of `plan` need while they run."""
    if plan.direct is not None:
        return plan.direct.partial_bytes
    given = {"left": left, "right": right, "target": target}
    return sum(padded_bytes(given[name]) for name in sorted(plan.copies))


def unaligned_launches(
    left: Operand, right: Operand, target: Operand, plan: UnalignedPlan, workspace: Any,
    make_gemm: Callable[[Operand, Operand, Operand], Sequence[Launch]],
) -> tuple[Launch, ...]:  # fmt: skip
    """The launches of target = left @ right, in order; no extent may be 0.

    `workspace` is a tensor or array of `unaligned_workspace` bytes from a multiple of 16 on (None for 0 bytes);
    `make_gemm` makes the launches of a product of matrices that TMA can read, which are named "workspace" if they lie
    there.
    """
    if plan.direct is not None:
        return _direct_launches(left, right, target, plan.direct, workspace)
    operands = {"left": left, "right": right, "target": target}
    packed, padded, at = dict(operands), dict(operands), 0
    for name in sorted(plan.copies):
        padded[name], packed[name] = _padded(operands[name], workspace, at)
        at += padded_bytes(operands[name])
    copied = [each for name in ("left", "right") if name in plan.copies for each in (operands[name], padded[name])]
    launches = [copy_launch(*copied)] if copied else []
    launches += make_gemm(packed["left"], packed["right"], packed["target"])
    if "target" in plan.copies:
        launches.append(copy_launch(padded["target"], target))
    return tuple(launches)


def _padded(each: Operand, workspace: Any, at: int) -> tuple[Operand, Operand]:
    """A matrix like `each` that TMA can read, in the workspace from the byte `at` on: with the padding, and without.

    It lies by columns where `each` does.
    """
    columns = placement(each).columns
    rows, width = each.shape[::-1] if columns else each.shape
    step = TMA_ALIGNMENT // each.element_bytes
    pitch = -(-width // step) * step
    value = _typed(workspace, at, rows * pitch, each.value.dtype).reshape(rows, pitch)
    whole = replace(each, name=WORKSPACE, value=value, shape=(rows, pitch), strides=(pitch, 1))
    exact = replace(whole, value=value[:, :width], shape=(rows, width))
    return (transposed(whole), transposed(exact)) if columns else (whole, exact)


def _typed(workspace: Any, at: int, count: int, dtype: Any) -> Any:
    """`count` elements of the workspace from the byte `at` on, as another type."""
    return workspace[at : at + count * int(dtype.itemsize)].view(dtype)


def _direct_launches(
    left: Operand, right: Operand, target: Operand, direct: Direct, workspace: Any
) -> tuple[Launch, ...]:
    if direct.swapped:
        left, right, target = transposed(right), transposed(left), transposed(target)
    (m, k), n = left.shape, right.shape[1]
    c = replace(placement(target), tma=False)
    units = tuple(8 if size % 8 == 0 else 1 for size in (m, n, k))
    far = max(*left.strides, *right.strides, *target.strides) * max(direct.block_m, direct.block_k)
    wide = far >= 1 << 31
    stored, written, split = target, c, 0
    if direct.splits > 1:
        value = _typed(workspace, 0, direct.partial_bytes // 4, float32_of(workspace))
        stored = replace(target, name=WORKSPACE, value=value, strides=(direct.part_columns, 1))
        written, split = Placement(vector=4), direct.part_rows * direct.part_columns
    product = Launch.of(
        gemm_direct,
        (*direct.tiles, direct.splits),
        {
            "a_ptr": left,
            "b_ptr": right,
            "c_ptr": stored,
            "shape": tuple(size // unit for size, unit in zip((m, n, k), units, strict=True)),
            "strides": Distances(left.strides, right.strides[::-1], stored.strides, split),
            "STEPS": direct.steps,
        },
        {
            "UNITS": units,
            "BLOCK": (direct.block_m, direct.block_n, direct.block_k),
            "A": replace(placement(left), tma=False),
            "B": replace(placement(right), tma=False),
            "C": written,
            "PARTIAL": stored is not target,
            "WIDE": wide,
        },
        left.device,
    )
    if stored is target:
        return (product,)
    together = min(16, 1 << (direct.splits - 1).bit_length())
    block_m = max(1, 2048 // (together * direct.block_n))
    values = {
        "parts_ptr": stored, "c_ptr": target, "SPLITS": direct.splits, "shape": (m, n),
        "part_row": direct.part_columns, "part_split": split, "strides": target.strides,
    }  # fmt: skip
    constants = {
        "BLOCK_M": block_m, "BLOCK_N": direct.block_n, "TOGETHER": together, "C": replace(c, vector=1), "WIDE": wide
    }  # fmt: skip
    grid = (-(-m // block_m), direct.tiles[1])
    return product, Launch.of(add_splits, grid, values, constants, left.device, launch_pdl=True)


def float32_of(workspace: Any) -> Any:
    """The type of f32, as the workspace's library calls it."""
    if callable(getattr(workspace, "data_ptr", None)):
        return torch_module().float32
    import numpy as np

    return np.dtype(np.float32)
