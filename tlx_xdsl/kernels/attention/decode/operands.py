"""Operands of attention to a long cache: queries, pages, what threads load; and the launch that merges splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tlx_xdsl.kernels.calls.launching import Launch
from tlx_xdsl.kernels.calls.operands import UNIT, Operand, check_places, check_shape, is_aligned, operand

from .device import merge

MAX_QUERIES = 64
"""Queries of a head; more are `attention_forward`'s."""

MIN_PAGE = 8
"""Rows of the smallest page: the swizzle of shared memory repeats after so many."""

MERGED = 2048
"""Sums that a warp merges at once: 64 for each thread."""


def check_queries(queries: Operand, lengths: Any) -> None:
    """Refuse more queries than there may be, and other `lengths` than int32 ones of each sequence, or None.

    Raises TypeError or ValueError.
    """
    if queries.shape[2] > MAX_QUERIES:
        raise ValueError(f"{queries.what}: expected at most {MAX_QUERIES} queries, got {queries.shape[2]}")
    if lengths is not None:
        each = operand(queries.function, "lengths", lengths)
        check_numbers(queries, each)
        check_shape(each, queries.shape[:1], "batch of 'q'")


def paged(queries: Operand, caches: Sequence[Operand], table: Operand) -> list[Operand]:
    """Caches in pages as sequences of all keys that the table has room for. Raises TypeError or ValueError."""
    for each in caches:
        if len(each.shape) != 4:
            raise ValueError(f"{each.what}: expected (pages, heads, rows of a page, head dim), got {each.shape}")
    first, *others = caches
    count, _, rows, _ = first.shape
    if rows < MIN_PAGE or rows & (rows - 1):
        raise ValueError(f"{first.what}: expected pages of a power of two of rows, {MIN_PAGE} or more, got {rows}")
    for each in others:
        if each.shape[0] != count:
            raise ValueError(f"{each.what}: expected {count} pages, as '{first.name}' has, got {each.shape[0]}")
    check_numbers(queries, table)
    if len(table.shape) != 2 or table.shape[:1] != queries.shape[:1] or not table.shape[1]:
        raise ValueError(f"{table.what}: expected (batch of 'q', pages of a sequence), got the shape {table.shape}")
    batch, pages = table.shape
    return [replace(each, shape=(batch, each.shape[1], pages * each.shape[2], each.shape[3])) for each in caches]


def check_numbers(queries: Operand, each: Operand) -> None:
    """Refuse what is not int32, contiguous and where the queries are. Raises TypeError or ValueError."""
    if each.dtype != "i32":
        raise TypeError(f"{each.what}: expected elements of type int32, got {each.value.dtype}")
    check_places((queries, each))
    expected = 1
    for extent, stride in zip(reversed(each.shape), reversed(each.strides), strict=True):
        if extent > 1 and stride != expected:
            raise ValueError(f"{each.what}: expected contiguous elements, got the strides {each.strides}")
        expected *= extent


def check_columns(*operands: Operand) -> None:
    """Refuse rows that are not contiguous. Raises ValueError."""
    for each in operands:
        if each.strides[3] != 1:
            raise ValueError(f"{each.what}: expected a contiguous last dimension, got the strides {each.strides}")


def unit_of_rows(queries: Operand, result: Operand) -> int:
    """UNIT where all rows of both are multiples of it long and apart, and begin at multiples of 16 bytes; else 1."""
    numbers = (*queries.strides[:3], *result.strides[:3], queries.shape[3], result.shape[3])
    return UNIT if all(each % UNIT == 0 for each in numbers) and is_aligned(queries) and is_aligned(result) else 1


def strides_of(name: str, each: Operand, unit: int) -> dict[str, int]:
    """`<name>_batch`, `_head` and `_row`: strides in units."""
    return {f"{name}_{axis}": each.strides[at] // unit for at, axis in enumerate(("batch", "head", "row"))}


def merged(
    queries: Operand, result: Operand, sums: Any, splits: int, unit: int, sources: Mapping[str, str]
) -> Launch:  # fmt: skip
    """The launch that merges the parts of all rows in `sums`; it may start while the parts are written."""
    _, heads, count, v_dim = result.shape
    rows = result.shape[0] * heads * count
    arguments = {
        "sums_ptr": sums,
        "out_ptr": result.value,
        "SPLITS": splits,
        "TOTAL_ROWS": rows,
        "HEADS": heads,
        "QUERIES": count,
        "V_DIM": v_dim // unit,
        **strides_of("out", result, unit),
    }
    parts, width = 1 << (splits - 1).bit_length(), 1 << (v_dim - 1).bit_length()
    return Launch(
        merge, (rows,), arguments, {"COUNT": parts, "WIDTH": width, "UNIT": unit}, queries.device,
        num_warps=min(32, max(4, parts * width // MERGED)), sources=sources, launch_pdl=True,
        aligned=("out_ptr", "sums_ptr") if unit > 1 else (),
    )  # fmt: skip
