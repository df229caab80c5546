"""Families of cases of the GPU benchmark, each with its rivals, our kernel, and the checks before it.

With `dry` a case is small, lies in the CPU's memory, and our kernel goes through the interpreter.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks.gpu import cute, stock
from tests.unit.kernels import gpu_checks
from tests.unit.kernels.gpu_checks import DTYPES, AttentionShape, Check
from tlx_xdsl.kernels.attention import config as attention_config
from tlx_xdsl.kernels.attention.config import AttentionConfig
from tlx_xdsl.kernels.attention.forward import attention_launch
from tlx_xdsl.kernels.gemm import config as gemm_config
from tlx_xdsl.kernels.gemm.dense import gemm_launch

OURS = "tlx_xdsl"

Launch = Callable[[], Any]
Run = Callable[[Launch, str], None]


@dataclass
class Case:
    """One problem: the same inputs for all candidates.

    `make` gives a function that prepares the launch of each candidate, by name; `target` is the ratio to `peer` that we
    want to reach, and `config` what our kernel runs with, which `make` may set. The other function of `make` compares
    what our kernel has written; or, with checks by name, what several have, even without ours where `checks_all` says
    so. `facts` are for the report. Where memory is the limit, `traffic` has the bytes that each candidate moves, rates
    are in GB/s, and `flops` play no part. `peer` may be several, with commas: the fastest of them counts.
    """

    name: str
    flops: float
    peer: str
    target: float | None
    make: Callable[[], tuple[dict[str, Callable[[], Launch]], Callable[[], Check | Mapping[str, Check]]]]
    config: str = ""
    checks_all: bool = False
    facts: dict[str, Any] = field(default_factory=dict)
    traffic: dict[str, float] = field(default_factory=dict)


@dataclass
class Family:
    """Cases that share a process, and checks of everything before any of them is timed."""

    name: str
    title: str
    checks: Callable[[Run], Iterator[Check]]
    cases: list[Case] = field(default_factory=list)


GEMM_TARGETS = {
    (2048, 2048, 2048): 1.00,
    (4096, 4096, 4096): 1.00,
    (8192, 8192, 8192): 1.01,
    (8192, 8192, 512): 1.09,
    (4096, 14336, 4096): 1.00,
    (3072, 3072, 3072): None,
    (1024, 1024, 1024): None,
    (128, 4096, 4096): None,
}
"""(m, n, k): ratio to cuBLAS; None where it is only looked at."""
SCREENED = {
    "tall": gemm_config.GemmConfig("cooperative", 256, 128, 64, stages=4, subtiles=2),
    "large, one buffer": replace(gemm_config.LARGE, buffers=1),
    "large, groups of 4": replace(gemm_config.LARGE, group_m=4),
    "large, groups of 16": replace(gemm_config.LARGE, group_m=16),
}
"""Configurations that `choose` never gives, to see whether it should."""

ATTENTION_TARGETS = {
    (4, 16, 4096, 128, False): 1.05,
    (2, 16, 16384, 128, False): 1.04,
    (4, 16, 4096, 128, True): 1.14,
    (2, 16, 16384, 128, True): 1.08,
    (4, 16, 4096, 64, False): 1.11,
    (2, 16, 16384, 64, False): 1.15,
    (4, 16, 4096, 64, True): 1.06,
    (2, 16, 16384, 64, True): 1.12,
    (32, 16, 512, 64, True): 1.05,
}
"""(batch, heads, length, head dim, causal): ratio to cuDNN."""


def families(*, dry: bool, screen: bool) -> dict[str, Family]:
    """All families by name; with `screen` the candidates are our configurations instead of rivals."""
    found = [gemm_family(dtype, dry, screen) for dtype in DTYPES]
    found += [attention_family(dim, dtype, dry, screen) for dtype in DTYPES for dim in (128, 64)]
    return {family.name: family for family in found}


def config_label(choice: gemm_config.Choice) -> str:
    """A choice in a few words: its configuration's name, and how the work is divided where it is not in whole tiles."""
    name = next((name for name, each in gemm_config.CONFIGS.items() if each == choice.config), str(choice.config))
    return f"{name}{' swapped' if choice.swapped else ''}" + (
        f" {choice.full_rounds} rounds + {choice.share} steps" if choice.streamed else ""
    )


def _device(dry: bool) -> str:
    return "cpu" if dry else "cuda"


# --- products ---------------------------------------------------------------------------------------------


def gemm_family(dtype: str, dry: bool, screen: bool) -> Family:
    """Products of row-major matrices against cuBLAS and a plain Triton kernel."""
    device = _device(dry)

    def checks(run: Run) -> Iterator[Check]:
        shapes = [(200, 136, 72)] if dry else [(512, 512, 512), (1000, 1304, 712), (129, 2051, 65), (1, 1, 1)]
        orders = itertools.cycle([(True, False), (True, True), (False, True), (False, False)])
        configs = list(gemm_config.CONFIGS.values())
        for config, layouts in zip(configs[:4] if dry else configs, orders, strict=False):
            for shape in shapes:
                yield gpu_checks.check_gemm(shape, dtype, device, layouts=layouts, config=config, run=run)
        for shape in [(64, 64, 64)] if dry else [(4096, 4096, 4096), (8192, 8192, 512), (1000, 1304, 712)]:
            yield gpu_checks.repeated_gemm(shape, dtype, device, times=3 if dry else 200)
        for columns in (100,) if dry else (1000, 20000):
            yield from gpu_checks.check_rows(64, columns, dtype, device)

    family = Family(f"gemm-{dtype}", f"GEMM, {dtype}, row-major A and B", checks)
    for shape, target in GEMM_TARGETS.items():
        family.cases.append(_gemm_case(shape, target if dtype == "fp16" else None, dtype, dry, screen))
    return family


def _gemm_case(shape: tuple[int, int, int], target: float | None, dtype: str, dry: bool, screen: bool) -> Case:
    config = gemm_config.choose(*shape)
    label = config_label(config)
    name = " x ".join(map(str, shape))

    def make():
        m, n, k = (128, 256, 128) if dry else shape
        device = _device(dry)
        a = gpu_checks.random((m, k), DTYPES[dtype], device, 1)
        b = gpu_checks.random((k, n), DTYPES[dtype], device, 2)
        outs: dict[str, torch.Tensor] = {}

        def out(candidate: str) -> torch.Tensor:
            return outs.setdefault(candidate, gpu_checks.poisoned((m, n), DTYPES[dtype], device))

        def ours(candidate: str, chosen: gemm_config.GemmConfig | gemm_config.Choice) -> Launch:
            return gemm_launch(a, b, out(candidate), config=chosen).bind()

        def cublas() -> Launch:
            c = out("cuBLAS")
            return lambda: torch.mm(a, b, out=c)

        def plain() -> Launch:
            if dry:
                signature = stock.matmul_signature(dtype)
                return _compiled(stock.matmul, signature, stock.MATMUL, stock.MATMUL_OPTIONS)
            return stock.bound_matmul(a, b, out("Triton"))

        def verify() -> Check:
            error = gpu_checks.relative_error(out(OURS), a.float() @ b.float())
            return Check(f"gemm {name} {dtype}", error, gpu_checks.LIMITS[dtype])

        candidates: dict[str, Callable[[], Launch]] = {"cuBLAS": cublas}
        if screen:
            for other, chosen in (gemm_config.CONFIGS | SCREENED).items():
                if chosen != config.config:
                    candidates[other] = lambda other=other, chosen=chosen: ours(other, chosen)
        else:
            candidates["Triton"] = plain
        candidates[OURS] = lambda: ours(OURS, config)
        return candidates, verify

    return Case(name, 2 * math.prod(shape), "cuBLAS", target, make, label)


# --- attention --------------------------------------------------------------------------------------------


def attention_family(dim: int, dtype: str, dry: bool, screen: bool) -> Family:
    """Attention forward against cuDNN and FlashAttention through torch, and a plain Triton kernel."""
    device = _device(dry)

    def checks(run: Run) -> Iterator[Check]:
        sizes = [(1, 2, 1, 70, 100)] if dry else [
            (2, 4, 4, 512, 512), (1, 8, 2, 1000, 1000), (3, 2, 1, 77, 2049), (1, 2, 2, 3000, 130), (1, 1, 1, 1, 1)
        ]  # fmt: skip
        for causal in (False, True):
            for size in sizes:
                shape = AttentionShape(*size, dim)
                yield from gpu_checks.check_attention(shape, dtype, device, causal=causal, run=run)
            shape = AttentionShape(*((1, 2, 1, 64, 64) if dry else (4, 16, 4, 1999, 1999)), dim)
            times = 3 if dry else 200
            yield gpu_checks.repeated_attention(shape, dtype, device, causal=causal, times=times)

    family = Family(f"attention-{dim}-{dtype}", f"Attention forward, {dtype}, head dim {dim}", checks)
    for key, target in ATTENTION_TARGETS.items():
        # In bf16 the short sequences: the same instructions, on the same tiles.
        if key[3] == dim and (dtype == "fp16" or key[2] <= 4096):
            family.cases.append(_attention_case(key, target if dtype == "fp16" else None, dtype, dry, screen))
    return family


def _attention_case(
    key: tuple[int, int, int, int, bool], target: float | None, dtype: str, dry: bool, screen: bool
) -> Case:
    batch, heads, length, dim, causal = key
    config = attention_config.choose_config(dim, causal, queries=length)
    name = f"({batch}, {heads}, {length}, {dim}){' causal' if causal else ''}"

    def make():
        device = _device(dry)
        shape = (
            AttentionShape(1, 1, 1, 128, 128, dim) if dry else AttentionShape(batch, heads, heads, length, length, dim)
        )
        q, k, v = gpu_checks.attention_inputs(shape, dtype, device)
        outs: dict[str, torch.Tensor] = {}

        def ours(candidate: str, chosen: AttentionConfig) -> Launch:
            out = outs.setdefault(candidate, gpu_checks.poisoned(q.shape, q.dtype, device))
            lse = gpu_checks.poisoned(q.shape[:3], torch.float32, device)
            return attention_launch(q, k, v, out, lse, causal=causal, config=chosen).bind()

        def library(backend: SDPBackend) -> Launch:
            def launch() -> None:
                with sdpa_kernel(backend):
                    functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

            return launch

        def plain() -> Launch:
            if dry:
                constants = stock.ATTENTION | {"HEAD_DIM": dim, "CAUSAL": causal}
                signature, options = stock.attention_signature(dtype, dim), stock.attention_options(dim)
                return _compiled(stock.attention, signature, constants, options)
            return stock.bound_attention(q, k, v, torch.empty_like(q), causal)

        def verify() -> Check:
            h = heads // 2 if not dry else 0
            expected, _ = gpu_checks.attention_reference(q[0, h], k[0, h], v[0, h], dim**-0.5, causal)
            error = gpu_checks.relative_error(outs[OURS][0, h], expected)
            unwritten = float(outs[OURS].isnan().any())
            return Check(f"attention {name} {dtype}", error + unwritten, gpu_checks.LIMITS[dtype])

        cudnn, flash = SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION
        candidates: dict[str, Callable[[], Launch]] = {"cuDNN": lambda: library(SDPBackend.MATH if dry else cudnn)}
        if screen:
            for consumers, registers in ((2, 240), (3, 160)):
                for together in (False, True):
                    chosen = AttentionConfig(consumers, registers, all_heads=together)
                    if chosen != config and not (dim == 128 and consumers == 3):
                        other = f"{consumers} consumers, {'all heads' if together else 'head by head'}"
                        candidates[other] = lambda other=other, chosen=chosen: ours(other, chosen)
        else:
            candidates["FlashAttention"] = lambda: library(SDPBackend.MATH if dry else flash)
            candidates["Triton"] = plain
            candidates |= cute.attention(q, k, v, causal)
        candidates[OURS] = lambda: ours(OURS, config)
        return candidates, verify

    described = f"{config.consumers} consumers, {'all heads' if config.all_heads else 'head by head'}"
    flops = 4 * batch * heads * length**2 * dim / (2 if causal else 1)
    return Case(name, flops, "cuDNN", target, make, described)


def _compiled(kernel: Any, signature: dict[str, str], constants: dict[str, Any], options: dict[str, int]) -> Launch:
    stock.compile_for_hopper(kernel, signature, constants, options)
    return lambda: None
