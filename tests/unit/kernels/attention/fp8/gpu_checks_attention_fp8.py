"""Checks of attention in fp8 on a GPU, against float32 references of the dequantised inputs.

With the device `cpu` everything goes through the interpreter, at small sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn import functional

from tests.unit.kernels.gemm.gpu_checks_fp8 import error_of
from tests.unit.kernels.gpu_checks import Check, poisoned, relative_error
from tlx_xdsl.kernels.attention.config import AttentionFp8Config
from tlx_xdsl.kernels.attention.forward import attention_fp8_launch

LIMIT = 0.03
"""Norm of the difference over that of the reference: e4m3 rounds probabilities to 4 bits."""

LSE_LIMIT = 1e-3
"""The tensor cores keep some 14 bits of a score."""

OUT = {"bf16": torch.bfloat16, "fp16": torch.float16}

Case = tuple[int, int, int, int, int, int, bool]
"""Batch, heads of q, heads of k and v, queries, keys, head dim, causal."""

CASES: tuple[Case, ...] = (
    (1, 1, 1, 128, 128, 128, False),
    (1, 1, 1, 128, 128, 64, False),
    (2, 3, 3, 512, 512, 128, True),
    (2, 3, 3, 512, 512, 64, True),
    (2, 4, 2, 333, 517, 128, False),
    (2, 4, 2, 333, 517, 64, True),
    (1, 6, 2, 1000, 300, 128, True),
    (1, 6, 2, 1000, 300, 64, False),
    (1, 2, 1, 1, 1, 64, False),
    (1, 2, 1, 1, 200, 128, True),
    (2, 8, 2, 4096, 4096, 128, True),
    (1, 4, 4, 4096, 4096, 128, False),
)


def inputs(case: Case, device: str) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """q, k and v in e4m3, which lie as (batch, length, heads, dim), and a scale for each of their heads."""
    batch, heads, kv_heads, queries, keys, dim, _ = case
    generator = torch.Generator(device).manual_seed(0)
    tensors, scales = [], []
    for count, length in ((heads, queries), (kv_heads, keys), (kv_heads, keys)):
        values = torch.randn((batch, length, count, dim), generator=generator, device=device)
        tensors.append((values * 8).to(torch.float8_e4m3fn).transpose(1, 2))
        scales.append(torch.rand((batch, count), generator=generator, device=device) * 0.05 + 0.1)
    return tensors, scales


def reference(case: Case, tensors: list[torch.Tensor], scales: list[torch.Tensor], dtype: torch.dtype) -> Any:
    """torch's output for the dequantised inputs in `dtype`, and the logarithms of the denominators, in f32."""
    group = case[1] // case[2]
    wide = [each.float() * scale[..., None, None] for each, scale in zip(tensors, scales, strict=True)]
    q, k, v = (each.to(dtype) for each in (wide[0], *(each.repeat_interleave(group, 1) for each in wide[1:])))
    out = functional.scaled_dot_product_attention(q, k, v, is_causal=case[-1])
    scores = q.float() @ k.float().transpose(-1, -2) * case[5] ** -0.5
    if case[-1]:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        scores = scores.masked_fill(~seen, float("-inf"))
    return out, scores.logsumexp(-1)


def check_attention_fp8(
    case: Case,
    device: str,
    *,
    out: str = "bf16",
    config: AttentionFp8Config | None = None,
    run: Callable[[Callable[[], Any], str], None],
) -> Iterator[Check]:
    """Compare one case. `run` makes the launch."""
    tensors, scales = inputs(case, device)
    result, lse = poisoned(tensors[0].shape, OUT[out], device), poisoned(tensors[0].shape[:3], torch.float32, device)
    given = dict(zip(("q_scale", "k_scale", "v_scale"), scales, strict=True))
    label = f"attention fp8 {case} {out} {config or 'chosen'}"
    run(attention_fp8_launch(*tensors, result, lse, **given, causal=case[-1], config=config).bind(), label)
    expected, sums = reference(case, tensors, scales, torch.float32)
    theirs, _ = reference(case, tensors, scales, torch.bfloat16)
    yield Check(
        f"{label}, torch's in bf16 {relative_error(theirs, expected):.1e}", error_of(result, expected.double()), LIMIT
    )
    yield Check(f"{label} lse", relative_error(lse, sums), LSE_LIMIT)
