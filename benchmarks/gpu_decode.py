"""The GPU benchmark's family of attention to a long cache: cases, rivals and checks, as in `gpu_cases`, in GB/s.

A rate counts K and V, read once. Rivals are torch's `scaled_dot_product_attention` by cuDNN and by FlashAttention, and
the ratio is to the faster one; both have a contiguous cache, ours one in pages, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from gpu_cases import OURS, Case, Family, Launch, Run
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from tests.unit.kernels import gpu_checks
from tests.unit.kernels.gpu_checks import Check
from tlx_xdsl.kernels.attention_decode import attention_decode_launch

DTYPE = "bf16"
BYTES = 2
DIM = 128
PAGES = (64, 16)
"""Rows of a page."""


class Sizes(NamedTuple):
    """Of a problem: sequences, heads of queries and of keys, keys, queries."""

    batch: int
    heads: int
    kv_heads: int
    keys: int
    queries: int

    @property
    def traffic(self) -> int:
        """Bytes of K and V."""
        return 2 * BYTES * self.batch * self.kv_heads * self.keys * DIM

    def __str__(self) -> str:
        """Return a label."""
        queries = "" if self.queries == 1 else f", {self.queries} queries"
        return f"({self.batch}, {self.heads}/{self.kv_heads}, {self.keys}){queries}"


TARGETS: dict[Sizes, float] = {
    Sizes(16, 32, 8, 8192, 1): 0.97,
    Sizes(64, 32, 8, 4096, 1): 0.97,
    Sizes(1, 32, 8, 65536, 1): 0.97,
    Sizes(128, 32, 8, 1024, 1): 0.97,
    Sizes(4, 64, 8, 32768, 1): 0.97,
    Sizes(4, 32, 8, 8192, 16): 1.15,
}
"""Ratio to the better of the rivals."""

DRY = Sizes(1, 4, 2, 128, 1)


class Inputs:
    """Random queries, keys and values, and what attention gives, in float32."""

    def __init__(self, sizes: Sizes, device: str):
        batch, heads, kv_heads, keys, queries = sizes
        kind = gpu_checks.DTYPES[DTYPE]
        self.q = gpu_checks.random((batch, heads, queries, DIM), kind, device, 0)
        self.k, self.v = (gpu_checks.random((batch, kv_heads, keys, DIM), kind, device, seed) for seed in (1, 2))

    def launch(self, out: torch.Tensor, rows: int = 0) -> Launch:
        """Ours, with a cache in pages of so many rows, in no order, or with 0 contiguous."""
        if not rows:
            return attention_decode_launch(self.q, self.k, self.v, out).bind()
        batch, _, keys, _ = self.k.shape
        count = batch * keys // rows
        order = torch.randperm(count, device=self.q.device, generator=torch.Generator(self.q.device).manual_seed(3))
        k, v = (self._paged(each, rows, order) for each in (self.k, self.v))
        table = order.reshape(batch, keys // rows).int()
        return attention_decode_launch(self.q, k, v, out, pages=table).bind()

    @staticmethod
    def _paged(x: torch.Tensor, rows: int, order: torch.Tensor) -> torch.Tensor:
        """(pages, heads, rows, dim), which lies as (pages, rows, heads, dim)."""
        batch, heads, keys, dim = x.shape
        pages = torch.empty((len(order), rows, heads, dim), dtype=x.dtype, device=x.device)
        pages[order] = x.transpose(1, 2).reshape(batch * keys // rows, rows, heads, dim)
        return pages.transpose(1, 2)

    def check(self, out: torch.Tensor, label: str) -> Check:
        """Compare a result with the formula in float32; all of it must be written."""
        batch, kv_heads, _, dim = self.k.shape
        grouped = self.q.float().reshape(batch, kv_heads, -1, dim)
        scores = grouped @ self.k.float().transpose(-1, -2) * dim**-0.5
        expected = (scores.softmax(-1) @ self.v.float()).reshape(out.shape)
        return Check(f"{label} {DTYPE}", gpu_checks.relative_error(out, expected), gpu_checks.LIMITS[DTYPE])


def families(*, dry: bool, screen: bool) -> dict[str, Family]:
    """The family by its name; with `screen` ours alone are measured."""
    title = f"Attention to a long cache, {DTYPE}, head dim {DIM}: K and V"
    family = Family("decode", title, lambda run: _checks(run, dry))
    family.cases += [_case(sizes, target, dry, screen) for sizes, target in TARGETS.items()]
    return {family.name: family}


def _checks(run: Run, dry: bool) -> Iterator[Check]:
    device = "cpu" if dry else "cuda"
    for sizes in [DRY] if dry else [Sizes(1, 1, 1, 64, 1), Sizes(3, 8, 2, 2048, 5), Sizes(2, 12, 1, 8192, 64)]:
        inputs = Inputs(sizes, device)
        for rows in (0, *PAGES):
            out = gpu_checks.poisoned(inputs.q.shape, inputs.q.dtype, device)
            label = f"decode {sizes}{_described(rows)}"
            run(inputs.launch(out, rows), label)
            yield inputs.check(out, label)
    inputs = Inputs(DRY if dry else Sizes(4, 32, 8, 8192, 1), device)
    out = gpu_checks.poisoned(inputs.q.shape, inputs.q.dtype, device)
    yield gpu_checks.check_repeated(inputs.launch(out), [out], "decode", times=2 if dry else 200)


def _described(rows: int) -> str:
    return f", pages of {rows}" if rows else ""


def _case(sizes: Sizes, target: float, dry: bool, screen: bool) -> Case:
    paged = {f"{OURS}{_described(rows)}": rows for rows in (*PAGES, 0)}

    def make():
        inputs = Inputs(DRY if dry else sizes, "cpu" if dry else "cuda")
        outs: dict[str, torch.Tensor] = {}

        def ours(candidate: str) -> Launch:
            out = outs[candidate] = torch.full_like(inputs.q, torch.nan)
            return inputs.launch(out, paged[candidate])

        def library(backend: SDPBackend) -> Launch:
            def launch() -> None:
                with sdpa_kernel(SDPBackend.MATH if dry else backend):
                    functional.scaled_dot_product_attention(inputs.q, inputs.k, inputs.v, enable_gqa=True)

            return launch

        def verify() -> dict[str, Check]:
            return {each: inputs.check(out, f"{each}: decode {sizes}") for each, out in outs.items()}

        candidates: dict[str, Callable[[], Launch]] = {}
        if not screen:
            candidates["cuDNN"] = lambda: library(SDPBackend.CUDNN_ATTENTION)
            candidates["FlashAttention"] = lambda: library(SDPBackend.FLASH_ATTENTION)
        for each in paged:
            candidates[each] = lambda each=each: ours(each)
        return candidates, verify

    traffic = dict.fromkeys(("cuDNN", "FlashAttention", *paged), sizes.traffic)
    return Case(str(sizes), 0, "cuDNN, FlashAttention", target, make, traffic=traffic)
