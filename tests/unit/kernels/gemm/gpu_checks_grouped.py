"""Checks of the grouped products on a GPU, against float32 references, for tests and for the benchmark.

Rows of no group, and matrices of empty groups, are NaN. With the device `cpu` everything goes through the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from tests.unit.kernels.gpu_checks import (
    DTYPES,
    LIMITS,
    Check,
    check_repeated,
    matrix,
    poisoned,
    random,
    relative_error,
)
from tlx_xdsl.kernels.gemm.grouped.call import grouped_gemm_launch
from tlx_xdsl.kernels.gemm.grouped.config import GroupedConfig
from tlx_xdsl.kernels.gemm.grouped.scaled import scaled_grouped_gemm_launch

SPARE_ROWS = 9
"""Rows after the last group."""

FP8 = torch.float8_e4m3fn


def random_sizes(groups: int, rows: int, seed: int = 0) -> list[int]:
    """Sizes of groups as a router gives them that prefers none."""
    generator = torch.Generator().manual_seed(seed)
    return torch.bincount(torch.randint(groups, (rows,), generator=generator), minlength=groups).tolist()


def ends_of(sizes: Sequence[int], device: str) -> torch.Tensor:
    """The offsets of groups of such sizes."""
    return torch.tensor(sizes).cumsum(0).to(torch.int32).to(device)


def weights(sizes: Sequence[int], k: int, n: int, dtype: torch.dtype, device: str, *, by_columns: bool) -> torch.Tensor:
    """A random matrix for each group, by rows or by columns that start at multiples of 16 bytes."""
    if by_columns:
        return weights(sizes, n, k, dtype, device, by_columns=False).transpose(-2, -1)
    memory = poisoned((len(sizes), k, -(-n // 8) * 8), dtype, device)[..., :n]
    for group, size in enumerate(sizes):
        if size:
            memory[group] = random((k, n), dtype, device, 100 + group)
    return memory


def expected_rows(x: torch.Tensor, w: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """The products of the groups' rows in float32."""
    parts = x[: sum(sizes)].split(list(sizes))
    return torch.cat([rows.float() @ each.float() for rows, each in zip(parts, w, strict=True)])


def unwritten(label: str, out: torch.Tensor, rows: int) -> Check:
    """Count the elements after the last group that are no longer NaN."""
    return Check(f"{label}, elements of no group written", int((~out[rows:].isnan()).sum()), 1)


def check_grouped(
    sizes: Sequence[int],
    k: int,
    n: int,
    dtype: str,
    device: str,
    *,
    layouts: tuple[bool, bool] = (False, False),
    config: GroupedConfig | None = None,
    run: Callable[[Callable[[], Any], str], None],
) -> list[Check]:
    """Compare (rows, k) times (groups, k, n); `layouts` say whether x and w lie by columns. `run` makes the launch."""
    rows = sum(sizes)
    x = matrix(rows + SPARE_ROWS, k, DTYPES[dtype], device, by_columns=layouts[0], seed=1)
    x[rows:] = torch.nan
    w = weights(sizes, k, n, DTYPES[dtype], device, by_columns=layouts[1])
    out = matrix(rows + SPARE_ROWS, n, DTYPES[dtype], device, by_columns=False, seed=3)
    out[...] = torch.nan
    order = "".join("rc"[by_columns] for by_columns in layouts)
    label = f"grouped {len(sizes)} groups {rows}x{n}x{k} {dtype} {order}"
    run(grouped_gemm_launch(x, w, ends_of(sizes, device), out, config=config).bind(), label)
    error = relative_error(out[:rows], expected_rows(x, w, sizes)) if rows else 0.0
    return [Check(label, error, LIMITS[dtype]), unwritten(label, out, rows)]


def check_grouped_sums(
    sizes: Sequence[int],
    m: int,
    n: int,
    dtype: str,
    device: str,
    *,
    config: GroupedConfig | None = None,
    run: Callable[[Callable[[], Any], str], None],
) -> Check:
    """Compare the sums over the rows of each group of (m, rows) times (rows, n): the gradient of the weights."""
    rows = sum(sizes)
    x = matrix(rows + SPARE_ROWS, m, DTYPES[dtype], device, by_columns=False, seed=1)
    y = matrix(rows + SPARE_ROWS, n, DTYPES[dtype], device, by_columns=False, seed=2)
    x[rows:] = torch.nan
    y[rows:] = torch.nan
    out = poisoned((len(sizes), m, -(-n // 8) * 8), DTYPES[dtype], device)[..., :n]
    label = f"grouped sums {len(sizes)} groups {m}x{n}x{rows} {dtype}"
    run(grouped_gemm_launch(x.T, y, ends_of(sizes, device), out, config=config).bind(), label)
    pairs = zip(x[:rows].split(list(sizes)), y[:rows].split(list(sizes)), strict=True)
    expected = torch.stack([a.float().T @ b.float() for a, b in pairs])
    return Check(label, relative_error(out, expected), LIMITS[dtype])


def check_scaled_grouped(
    sizes: Sequence[int],
    k: int,
    n: int,
    device: str,
    *,
    config: GroupedConfig | None = None,
    run: Callable[[Callable[[], Any], str], None],
) -> list[Check]:
    """Compare a product of 8-bit floats with scales of rows and columns; k is a multiple of 16, n of 8."""
    rows = sum(sizes)
    x = random((rows + SPARE_ROWS, k), FP8, device, 1)
    w = random((len(sizes), n, k), FP8, device, 2).transpose(-2, -1)
    scale_x = random((rows + SPARE_ROWS,), torch.float32, device, 3).abs() + 0.5
    scale_w = random((len(sizes), n), torch.float32, device, 4).abs() + 0.5
    out = poisoned((rows + SPARE_ROWS, n), torch.bfloat16, device)
    label = f"scaled grouped {len(sizes)} groups {rows}x{n}x{k}"
    launch = scaled_grouped_gemm_launch(x, w, ends_of(sizes, device), scale_x, scale_w, out, config=config)
    run(launch.bind(), label)
    expected = expected_rows(x.float() * scale_x[:, None], w.float() * scale_w[:, None], sizes)
    return [Check(label, relative_error(out[:rows], expected), LIMITS["bf16"]), unwritten(label, out, rows)]


def repeated_grouped(sizes: Sequence[int], k: int, n: int, dtype: str, device: str, times: int = 200) -> list[Check]:
    """`check_repeated` of both kinds."""
    rows = sum(sizes)
    x, y = random((rows, k), DTYPES[dtype], device, 1), random((rows, n), DTYPES[dtype], device, 2)
    w, ends = weights([1] * len(sizes), k, n, DTYPES[dtype], device, by_columns=False), ends_of(sizes, device)
    out, sums = torch.empty_like(y), torch.empty_like(w)
    label = f"{len(sizes)} groups {rows}x{n}x{k} {dtype}"
    return [
        check_repeated(grouped_gemm_launch(x, w, ends, out).bind(), [out], f"grouped {label}", times),
        check_repeated(grouped_gemm_launch(x.T, y, ends, sums).bind(), [sums], f"grouped sums {label}", times),
    ]
