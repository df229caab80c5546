"""Checks of `scaled_gemm` on a GPU, against float64 references and beside `torch._scaled_mm`.

Outputs are NaN before. With the device `cpu` everything goes through the interpreter, at small sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

from tests.unit.kernels.gpu_checks import Check, check_repeated, poisoned, random
from tlx_xdsl.kernels.gemm.scaled.call import scaled_gemm_launch
from tlx_xdsl.kernels.gemm.scaled.config import ScaledConfig

FP8 = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
WIDE = {"bf16": torch.bfloat16, "fp16": torch.float16}
OUT = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}

MODES = ("tensors", "tensors fast", "rows", "rows fast", "blocks", "blocks by rows")
MIXED_MODES = ("tensors", "rows", "blocks", "block columns")

LIMITS = {"bf16": 4e-3, "fp16": 1e-3, "fp32": 5e-4}
"""Norm of the difference over that of the reference, for sums per step."""
FAST_LIMIT = 1e-2
"""The same for sums in the tensor cores: their 14 bits lose more, the longer K is."""
BESIDE_TORCH = 1.1
"""Our error over that of torch."""


def eight_bits(rows: int, columns: int, dtype: str, device: str, seed: int) -> torch.Tensor:
    """A random matrix of 8-bit floats whose rows start at multiples of 16 bytes; what lies between them is NaN."""
    padded = torch.full((rows, -(-columns // 16) * 16), math.nan, device=device)
    padded[:, :columns] = random((rows, columns), torch.float32, device, seed)
    return padded.to(FP8[dtype])[:, :columns]


def scales_of(mode: str, m: int, n: int, k: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Scales, in the orders of memory that torch has of them; those of "blocks by rows" are loaded without TMA."""

    def uniform(shape: tuple[int, ...], seed: int) -> torch.Tensor:
        generator = torch.Generator(device=device).manual_seed(seed)
        return torch.rand(shape, device=device, generator=generator) + 0.5

    steps, blocks = -(-k // 128), -(-n // 128)
    if mode.startswith("tensors"):
        return uniform((1,), 3), uniform((1,), 4)
    if mode.startswith("rows"):
        return uniform((m, 1), 3), uniform((1, n), 4)
    if mode == "blocks by rows":
        return uniform((m, steps), 3), uniform((steps, blocks), 4)
    if mode == "block columns":
        return uniform((1,), 3), uniform((steps, n), 4)
    return uniform((steps, m), 3).T, uniform((blocks, -(-steps // 4) * 4), 4)[:, :steps].T


def spread(scale: torch.Tensor, shape: tuple[int, int]) -> torch.Tensor:
    """A number for each element, of scales of elements, rows or blocks of 128."""
    wide = scale.double().reshape(scale.shape if scale.ndim == 2 else (1, 1))
    for dim, extent in enumerate(shape):
        if wide.shape[dim] not in (1, extent):
            wide = wide.repeat_interleave(128, dim).narrow(dim, 0, extent)
    return wide


def reference(a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor) -> torch.Tensor:
    """The product of the operands times their scales, in float64."""
    left = a.float().double() * spread(scale_a, (a.shape[0], a.shape[1]))
    return left @ (b.float().double() * spread(scale_b, (b.shape[0], b.shape[1])))


def error_of(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The norm of the difference over that of the reference, in float64; NaN where something was not written."""
    return ((found.double() - expected).norm() / expected.norm()).item()


def torch_error(
    a: Any, b: Any, scale_a: Any, scale_b: Any, out: str, fast: bool, expected: torch.Tensor
) -> float | None:
    """The error of torch's product, None where it has none for these operands."""
    try:
        found = torch._scaled_mm(a, b, scale_a, scale_b, out_dtype=OUT[out], use_fast_accum=fast)
    except (RuntimeError, ValueError, NotImplementedError):
        return None
    return error_of(found, expected)


def check_scaled(
    shape: tuple[int, int, int],
    mode: str,
    device: str,
    *,
    dtypes: tuple[str, str] = ("e4m3", "e4m3"),
    out: str = "bf16",
    config: ScaledConfig | None = None,
    run: Callable[[Callable[[], Any], str], None],
) -> Iterator[Check]:
    """Compare a product of (m, n, k), with scales and sums as one of MODES says. `run` makes the launch.

    Where torch has the same product, the second check is our error over its own.
    """
    m, n, k = shape
    fast = mode.endswith("fast")
    a, b = eight_bits(m, k, dtypes[0], device, 1), eight_bits(n, k, dtypes[1], device, 2).T
    scale_a, scale_b = scales_of(mode, m, n, k, device)
    c = poisoned((m, -(-n // 8) * 8), OUT[out], device)[:, :n]
    label = f"scaled_gemm {m}x{n}x{k} {mode} {'/'.join(dtypes)} {out} {config or 'chosen'}"
    run(scaled_gemm_launch(a, b, scale_a, scale_b, c, fast=fast, config=config).bind(), label)
    expected = reference(a, b, scale_a, scale_b)
    error = error_of(c, expected)
    yield Check(label, error, FAST_LIMIT if fast else LIMITS[out])
    theirs = torch_error(a, b, scale_a, scale_b, out, fast, expected)
    if theirs is not None:
        yield Check(f"{label}, error over torch's of {theirs:.2e}", error / theirs, BESIDE_TORCH)


def check_mixed(
    shape: tuple[int, int, int],
    mode: str,
    device: str,
    *,
    dtypes: tuple[str, str] = ("bf16", "e4m3"),
    run: Callable[[Callable[[], Any], str], None],
) -> Check:
    """Compare a product of 16-bit activations with 8-bit weights; the scales are as one of MIXED_MODES says."""
    m, n, k = shape
    a = random((m, -(-k // 16) * 16), WIDE[dtypes[0]], device, 1)[:, :k]
    b = eight_bits(n, k, dtypes[1], device, 2).T
    scale_b = scales_of(mode, m, n, k, device)[1]
    c = poisoned((m, -(-n // 8) * 8), WIDE[dtypes[0]], device)[:, :n]
    label = f"scaled_gemm {m}x{n}x{k} {mode} {'/'.join(dtypes)}"
    run(scaled_gemm_launch(a, b, None, scale_b, c).bind(), label)
    expected = reference(a, b, torch.ones(1, device=device), scale_b)
    return Check(label, error_of(c, expected), LIMITS[dtypes[0]])


def repeated_scaled(
    shape: tuple[int, int, int], mode: str, device: str, *, config: ScaledConfig | None = None, times: int = 200
) -> Check:
    """`check_repeated` of a product."""
    m, n, k = shape
    a, b = eight_bits(m, k, "e4m3", device, 1), eight_bits(n, k, "e4m3", device, 2).T
    scale_a, scale_b = scales_of(mode, m, n, k, device)
    c = poisoned((m, -(-n // 8) * 8), torch.bfloat16, device)[:, :n]
    launch = scaled_gemm_launch(a, b, scale_a, scale_b, c, fast=mode.endswith("fast"), config=config).bind()
    return check_repeated(launch, [c], f"scaled_gemm {m}x{n}x{k} {mode}", times)
