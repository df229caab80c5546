"""Checks of the kernels that people import, on a GPU, against float32 references, for tests and for the benchmark.

Outputs are NaN before. With the device `cpu` everything goes through the interpreter, at small sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from tlx_xdsl.kernels.attention.forward import attention_launch
from tlx_xdsl.kernels.gemm.config import Choice, GemmConfig
from tlx_xdsl.kernels.gemm.dense import gemm_launch
from tlx_xdsl.kernels.rows.norm import layer_norm
from tlx_xdsl.kernels.rows.softmax import softmax

DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}
LIMITS = {"fp16": 2e-3, "bf16": 6e-3}
"""Norm of the difference over that of the reference."""
LSE_LIMIT = 1e-5

REFERENCE_ROWS = 2048
"""Rows of scores at a time, so that the reference of a long sequence fits the memory."""


@dataclass(frozen=True)
class Check:
    """One comparison: it holds where `error` is less than `limit`, so not where it is NaN."""

    label: str
    error: float
    limit: float

    @property
    def ok(self) -> bool:
        """True if it holds."""
        return self.error < self.limit

    def __str__(self) -> str:
        """Return a line."""
        return f"{'ok    ' if self.ok else 'FAILED'} {self.label}: {self.error:.2e} (limit {self.limit:.0e})"


def relative_error(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The norm of the difference over that of `expected`; NaN where something was not written."""
    return ((found.float() - expected.float()).norm() / expected.float().norm()).item()


def random(shape: Sequence[int], dtype: torch.dtype, device: str, seed: int) -> torch.Tensor:
    """Normally distributed numbers, the same for the same seed."""
    generator = torch.Generator(device=device).manual_seed(seed)
    return torch.randn(tuple(shape), device=device, dtype=torch.float32, generator=generator).to(dtype)


def poisoned(shape: Sequence[int], dtype: torch.dtype, device: str) -> torch.Tensor:
    """NaN everywhere."""
    return torch.full(tuple(shape), math.nan, dtype=dtype, device=device)


def matrix(rows: int, columns: int, dtype: torch.dtype, device: str, *, by_columns: bool, seed: int) -> torch.Tensor:
    """A random matrix whose rows (or columns) start at multiples of 16 bytes; what lies between them is NaN."""
    if by_columns:
        return matrix(columns, rows, dtype, device, by_columns=False, seed=seed).T
    memory = poisoned((rows, -(-columns // 8) * 8), dtype, device)
    memory[:, :columns] = random((rows, columns), dtype, device, seed)
    return memory[:, :columns]


def check_gemm(
    shape: tuple[int, int, int],
    dtype: str,
    device: str,
    *,
    layouts: tuple[bool, bool] = (False, False),
    config: GemmConfig | Choice | None = None,
    run: Callable[[Callable[[], Any], str], None],
) -> Check:
    """Compare a product of (m, n, k); `layouts` say whether A and B lie by columns. `run` makes the launch."""
    m, n, k = shape
    a = matrix(m, k, DTYPES[dtype], device, by_columns=layouts[0], seed=1)
    b = matrix(k, n, DTYPES[dtype], device, by_columns=layouts[1], seed=2)
    c = matrix(m, n, DTYPES[dtype], device, by_columns=False, seed=3)
    c[...] = math.nan
    order = "".join("rc"[by_columns] for by_columns in layouts)
    label = f"gemm {m}x{n}x{k} {dtype} {order} {config or 'chosen'}"
    run(gemm_launch(a, b, c, config=config).bind(), label)
    return Check(label, relative_error(c, a.float() @ b.float()), LIMITS[dtype])


def attention_reference(q, k, v, scale: float, causal: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Output and logarithm of the denominators of one head, (rows, dim), in float32."""
    outs, sums = [], []
    keys = torch.arange(k.shape[0], device=q.device)
    for first in range(0, q.shape[0], REFERENCE_ROWS):
        rows = q[first : first + REFERENCE_ROWS].float()
        scores = rows @ k.float().T * scale
        if causal:
            positions = first + torch.arange(rows.shape[0], device=q.device)
            scores.masked_fill_(keys[None, :] > positions[:, None], -math.inf)
        outs.append(scores.softmax(-1) @ v.float())
        sums.append(scores.logsumexp(-1))
    return torch.cat(outs), torch.cat(sums)


@dataclass(frozen=True)
class AttentionShape:
    """Sizes of an attention problem; `v_dim` is None where it is `dim`."""

    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    dim: int
    v_dim: int | None = None

    def __str__(self) -> str:
        """Return a label."""
        dims = f"{self.dim}" if self.v_dim is None else f"{self.dim}/{self.v_dim}"
        return f"{self.batch}x{self.heads}/{self.kv_heads}x{self.queries}x{self.keys} D{dims}"

    @property
    def out(self) -> tuple[int, int, int, int]:
        """The shape of the result."""
        return self.batch, self.heads, self.queries, self.v_dim or self.dim


def attention_inputs(shape: AttentionShape, dtype: str, device: str) -> list[torch.Tensor]:
    """Q, K and V, contiguous."""
    q_shape = (shape.batch, shape.heads, shape.queries, shape.dim)
    k_shape = (shape.batch, shape.kv_heads, shape.keys, shape.dim)
    v_shape = (*k_shape[:3], shape.out[3])
    return [random(each, DTYPES[dtype], device, seed) for seed, each in enumerate((q_shape, k_shape, v_shape))]


def check_attention(
    shape: AttentionShape, dtype: str, device: str, *, causal: bool, run: Callable[[Callable[[], Any], str], None]
) -> list[Check]:
    """Compare output and denominators of the first, a middle and the last head; all of both must be written."""
    q, k, v = attention_inputs(shape, dtype, device)
    out, lse = poisoned(shape.out, q.dtype, device), poisoned(q.shape[:3], torch.float32, device)
    scale = shape.dim**-0.5
    label = f"attention {shape} {dtype}{' causal' if causal else ''}"
    run(attention_launch(q, k, v, out, lse, causal=causal, scale=scale).bind(), label)
    unwritten = int(out.isnan().sum() + lse.isnan().sum())
    group, count = shape.heads // shape.kv_heads, shape.batch * shape.heads
    errors, lse_errors = [], []
    for head in sorted({0, count // 2, count - 1}):
        b, h = divmod(head, shape.heads)
        expected, sums = attention_reference(q[b, h], k[b, h // group], v[b, h // group], scale, causal)
        errors.append(relative_error(out[b, h], expected))
        lse_errors.append(relative_error(lse[b, h], sums))
    return [
        Check(f"{label}, elements not written", unwritten, 1),
        Check(label, max(errors), LIMITS[dtype]),
        Check(f"{label}, denominators", max(lse_errors), LSE_LIMIT),
    ]


def check_repeated(launch: Callable[[], Any], results: Sequence[torch.Tensor], label: str, times: int = 200) -> Check:
    """Run a launch again and again: how many runs differ from the first one in any bit."""
    launch()
    first = [each.clone() for each in results]
    differing = torch.zeros((), dtype=torch.int64, device=results[0].device)
    for _ in range(times):
        for each in results:
            each.fill_(math.nan)
        launch()
        same = [torch.all(found == before) for found, before in zip(results, first, strict=True)]
        differing += ~torch.stack(same).all()
    return Check(f"{label}, runs of {times} that differ", differing.item(), 1)


def repeated_gemm(shape: tuple[int, int, int], dtype: str, device: str, times: int = 200) -> Check:
    """`check_repeated` of a product."""
    m, n, k = shape
    a = matrix(m, k, DTYPES[dtype], device, by_columns=False, seed=1)
    b = matrix(k, n, DTYPES[dtype], device, by_columns=False, seed=2)
    c = matrix(m, n, DTYPES[dtype], device, by_columns=False, seed=3)
    return check_repeated(gemm_launch(a, b, c).bind(), [c], f"gemm {m}x{n}x{k} {dtype}", times)


def repeated_attention(shape: AttentionShape, dtype: str, device: str, *, causal: bool, times: int = 200) -> Check:
    """`check_repeated` of attention."""
    q, k, v = attention_inputs(shape, dtype, device)
    out, lse = poisoned(shape.out, q.dtype, device), poisoned(q.shape[:3], torch.float32, device)
    launch = attention_launch(q, k, v, out, lse, causal=causal).bind()
    return check_repeated(launch, [out, lse], f"attention {shape} {dtype}{' causal' if causal else ''}", times)


def check_rows(rows: int, columns: int, dtype: str, device: str) -> Iterator[Check]:
    """Compare softmax and layer normalisation with torch in float32."""
    x = random((rows, columns), DTYPES[dtype], device, 0)
    out = poisoned(x.shape, x.dtype, device)
    label = f"{rows}x{columns} {dtype}"
    yield Check(f"softmax {label}", relative_error(softmax(x, out), x.float().softmax(-1)), LIMITS[dtype])
    weight, bias = (random((columns,), DTYPES[dtype], device, seed) for seed in (1, 2))
    out = poisoned(x.shape, x.dtype, device)
    expected = functional.layer_norm(x.float(), (columns,), weight.float(), bias.float())
    yield Check(f"layer_norm {label}", relative_error(layer_norm(x, weight, bias, out=out), expected), LIMITS[dtype])
