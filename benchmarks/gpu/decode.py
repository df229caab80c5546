"""The GPU benchmark's families of attention to a long cache: cases, rivals and checks, as in `cases`, in GB/s.

A rate counts K and V, read once. Rivals are torch's `scaled_dot_product_attention` by cuDNN and by FlashAttention, and
the ratio is to the faster one; both have a contiguous cache in 16 bits, ours one in pages, too, and in e4m3, which is
half as many bytes. Latent attention, which torch has no kernel for, is compared with its formula and the copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks.gpu.cases import OURS, Case, Family, Launch, Run
from tests.unit.kernels import gpu_checks
from tests.unit.kernels.gpu_checks import Check
from tlx_xdsl.kernels.attention.decode.call import attention_decode_launch
from tlx_xdsl.kernels.attention.decode.mla import attention_mla_launch

DTYPE = "bf16"
BYTES = 2
DIM = 128
PAGES = (64, 16)
"""Rows of a page."""


class Cache(NamedTuple):
    """Layout of our cache: pages of so many rows, or 0 for none, and whether in e4m3."""

    rows: int = 0
    is_fp8: bool = False

    def __str__(self) -> str:
        """Return the suffix of a case's name."""
        return (", fp8" if self.is_fp8 else "") + (f", pages of {self.rows}" if self.rows else "")


CACHES = (*(Cache(rows) for rows in PAGES), Cache(PAGES[0], True), Cache(0, True), Cache())


class Sizes(NamedTuple):
    """Sizes of a problem: sequences, heads of queries and of keys, keys, queries."""

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
        self.scale = torch.full((kv_heads,), SCALE, device=device)

    def launch(self, out: torch.Tensor, cache: Cache = CACHES[-1]) -> Launch:
        """Ours; pages are in no order."""
        k, v, scales = self.k, self.v, {}
        if cache.is_fp8:
            k, v = (_in_8_bits(each) for each in (k, v))
            scales = {"k_scale": self.scale, "v_scale": self.scale}
        if not cache.rows:
            return attention_decode_launch(self.q, k, v, out, **scales).bind()
        batch, _, keys, _ = self.k.shape
        rows = cache.rows
        count = batch * keys // rows
        order = torch.randperm(count, device=self.q.device, generator=torch.Generator(self.q.device).manual_seed(3))
        k, v = (self._paged(each, rows, order) for each in (k, v))
        table = order.reshape(batch, keys // rows).int()
        return attention_decode_launch(self.q, k, v, out, pages=table, **scales).bind()

    @staticmethod
    def _paged(x: torch.Tensor, rows: int, order: torch.Tensor) -> torch.Tensor:
        """(pages, heads, rows, dim), which lies as (pages, rows, heads, dim)."""
        batch, heads, keys, dim = x.shape
        # torch does not index floats of 8 bits, but bytes.
        values = x.view(torch.uint8) if x.element_size() == 1 else x
        pages = torch.empty((len(order), rows, heads, dim), dtype=values.dtype, device=x.device)
        pages[order] = values.transpose(1, 2).reshape(batch * keys // rows, rows, heads, dim)
        return pages.view(x.dtype).transpose(1, 2)

    def check(self, out: torch.Tensor, label: str, cache: Cache = CACHES[-1]) -> Check:
        """Compare a result with the formula in float32; all of it must be written."""
        batch, kv_heads, _, dim = self.k.shape
        k, v = (_in_8_bits(each).float() * SCALE if cache.is_fp8 else each.float() for each in (self.k, self.v))
        grouped = self.q.float().reshape(batch, kv_heads, -1, dim)
        scores = grouped @ k.transpose(-1, -2) * dim**-0.5
        expected = (scores.softmax(-1) @ v).reshape(out.shape)
        return Check(f"{label} {DTYPE}", gpu_checks.relative_error(out, expected), gpu_checks.LIMITS[DTYPE])


SCALE = 0.03
"""Of caches in e4m3."""


def _in_8_bits(x: torch.Tensor) -> torch.Tensor:
    return (x.float() / SCALE).to(torch.float8_e4m3fn)


def families(*, dry: bool, screen: bool) -> dict[str, Family]:
    """The families by their names; with `screen` ours alone are measured."""
    title = f"Attention to a long cache, {DTYPE}, head dim {DIM}: K and V"
    family = Family("decode", title, lambda run: _checks(run, dry))
    family.cases += [_case(sizes, target, dry, screen) for sizes, target in TARGETS.items()]
    latent = Family("latent", f"Multi-head latent attention to a long cache, {DTYPE}, 576/512", lambda run: iter(()))
    latent.cases += [_latent_case(sizes, dry, screen) for sizes in LATENT]
    return {each.name: each for each in (family, latent)}


LATENT = [(128, 128, 4096), (16, 128, 8192), (2, 128, 65536), (128, 16, 4096)]
"""Sequences, heads, keys."""


def _latent_case(sizes: tuple[int, int, int], dry: bool, screen: bool) -> Case:
    batch, heads, keys = (1, 4, 64) if dry else sizes
    dim, v_dim = (192, 128) if dry else (576, 512)
    scale = 192**-0.5

    def make():
        kind, device = gpu_checks.DTYPES[DTYPE], "cpu" if dry else "cuda"
        q = gpu_checks.random((batch, heads, 1, dim), kind, device, 0)
        cache = gpu_checks.random((batch, 1, keys, dim), kind, device, 1)
        out = gpu_checks.poisoned((batch, heads, 1, v_dim), kind, device)

        def formula(q: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
            # All heads are rows of one product, as nothing but the queries differs.
            weights = (q[:, :, 0] @ cache[:, 0].transpose(1, 2) * scale).softmax(-1)
            return weights @ cache[:, 0, :, :v_dim]

        def copy() -> Launch:
            other = torch.empty_like(cache)
            return lambda: other.copy_(cache)

        def verify() -> Check:
            error = gpu_checks.relative_error(out[:, :, 0], formula(q.float(), cache.float()))
            return Check(f"latent {sizes} {DTYPE}", error, gpu_checks.LIMITS[DTYPE])

        candidates: dict[str, Callable[[], Launch]] = {}
        if not screen:
            candidates |= {"copy": copy, "torch": lambda: lambda: formula(q, cache)}
        candidates[OURS] = lambda: attention_mla_launch(q, cache, out, scale=scale).bind()
        return candidates, verify

    moved = float(BYTES * batch * keys * dim)
    traffic = {"copy": 2 * moved, "torch": moved, OURS: moved}
    return Case(f"({sizes[0]}, {sizes[1]}, {sizes[2]})", 0, "copy", None, make, traffic=traffic)


def _checks(run: Run, dry: bool) -> Iterator[Check]:
    device = "cpu" if dry else "cuda"
    for sizes in [DRY] if dry else [Sizes(1, 1, 1, 64, 1), Sizes(3, 8, 2, 2048, 5), Sizes(2, 12, 1, 8192, 64)]:
        inputs = Inputs(sizes, device)
        for cache in CACHES:
            out = gpu_checks.poisoned(inputs.q.shape, inputs.q.dtype, device)
            label = f"decode {sizes}{cache}"
            run(inputs.launch(out, cache), label)
            yield inputs.check(out, label, cache)
    inputs = Inputs(DRY if dry else Sizes(4, 32, 8, 8192, 1), device)
    for cache in (Cache(), Cache(is_fp8=True)):
        out = gpu_checks.poisoned(inputs.q.shape, inputs.q.dtype, device)
        yield gpu_checks.check_repeated(inputs.launch(out, cache), [out], f"decode{cache}", times=2 if dry else 200)


def _case(sizes: Sizes, target: float, dry: bool, screen: bool) -> Case:
    caches = {f"{OURS}{cache}": cache for cache in CACHES}

    def make():
        inputs = Inputs(DRY if dry else sizes, "cpu" if dry else "cuda")
        outs: dict[str, torch.Tensor] = {}

        def ours(candidate: str) -> Launch:
            out = outs[candidate] = torch.full_like(inputs.q, torch.nan)
            return inputs.launch(out, caches[candidate])

        def library(backend: SDPBackend) -> Launch:
            def launch() -> None:
                with sdpa_kernel(SDPBackend.MATH if dry else backend):
                    functional.scaled_dot_product_attention(inputs.q, inputs.k, inputs.v, enable_gqa=True)

            return launch

        def verify() -> dict[str, Check]:
            return {each: inputs.check(out, f"{each}: decode {sizes}", caches[each]) for each, out in outs.items()}

        candidates: dict[str, Callable[[], Launch]] = {}
        if not screen:
            candidates["cuDNN"] = lambda: library(SDPBackend.CUDNN_ATTENTION)
            candidates["FlashAttention"] = lambda: library(SDPBackend.FLASH_ATTENTION)
        for each in caches:
            candidates[each] = lambda each=each: ours(each)
        return candidates, verify

    traffic: dict[str, float] = dict.fromkeys(("cuDNN", "FlashAttention"), sizes.traffic)
    traffic |= {each: sizes.traffic / (2 if cache.is_fp8 else 1) for each, cache in caches.items()}
    return Case(str(sizes), 0, "cuDNN, FlashAttention", target, make, traffic=traffic)
