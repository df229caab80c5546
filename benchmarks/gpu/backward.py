"""The GPU benchmark's family of attention's gradients: cases, rivals and checks, as in `cases`.

Rivals are torch's: the gradients of `scaled_dot_product_attention` by cuDNN and by FlashAttention, through
`torch.autograd.grad`, without the forward pass; and FlashAttention 4's where it is installed (`cute`). Ours are three
launches, with and without `deterministic`; those for heads of more than 128 elements are always deterministic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks.gpu import cute
from benchmarks.gpu.cases import OURS, Case, Family, Launch, Run
from tests.unit.kernels import gpu_checks
from tests.unit.kernels.attention.backward import gpu_checks_backward
from tests.unit.kernels.gpu_checks import AttentionShape, Check
from tlx_xdsl.kernels.attention.backward.config import choose_config, is_wide

DETERMINISTIC = f"{OURS}, deterministic"

DTYPE = "bf16"

TARGETS: dict[tuple[int, int, int, int, int, int, bool], float] = {
    (4, 16, 16, 4096, 128, 128, False): 1.00,
    (4, 16, 16, 4096, 128, 128, True): 1.00,
    (2, 16, 16, 16384, 128, 128, False): 1.00,
    (2, 16, 16, 16384, 128, 128, True): 1.00,
    (4, 16, 16, 4096, 64, 64, False): 1.00,
    (4, 16, 16, 4096, 64, 64, True): 1.00,
    (2, 16, 16, 16384, 64, 64, False): 1.00,
    (2, 16, 16, 16384, 64, 64, True): 1.00,
    (2, 32, 8, 8192, 128, 128, True): 1.00,
    (8, 16, 16, 1024, 128, 128, True): 1.00,
    (4, 16, 16, 4096, 192, 128, False): 1.00,
    (4, 16, 16, 4096, 192, 128, True): 1.00,
    (4, 16, 16, 4096, 256, 256, False): 1.00,
    (4, 16, 16, 4096, 256, 256, True): 1.00,
}
"""(batch, heads of queries, heads of keys, length, elements of a head and of V's, causal): ratio to cuDNN.

What counts is the mean.
"""

FACTOR = 1.1
"""Errors are compared with those of the formula with sums in f32 (`gpu_checks_backward`), times this."""


def families(*, dry: bool, screen: bool) -> dict[str, Family]:
    """The family by its name; with `screen` ours alone are measured."""
    family = Family(f"attention-backward-{DTYPE}", f"Attention backward, {DTYPE}", lambda run: _checks(run, dry))
    family.cases += [_case(key, target, dry, screen) for key, target in TARGETS.items()]
    return {family.name: family}


def _checks(run: Run, dry: bool) -> Iterator[Check]:
    device = "cpu" if dry else "cuda"
    # As few kernels as will do: groups of one and of two.
    sizes = [(1, 2, 1, 70, 100)] if dry else [
        (2, 3, 3, 512, 512), (2, 4, 2, 333, 517), (1, 6, 3, 1000, 300), (1, 2, 1, 1, 1), (1, 2, 2, 4096, 4096)
    ]  # fmt: skip
    dims = (64,) if dry else (128, 64)
    shapes = [AttentionShape(*size, dim) for size in sizes for dim in dims]
    gpu_checks_backward.compile_ahead([(each, DTYPE, causal) for each in shapes for causal in (False, True)], device)
    for dim in dims:
        for causal in (False, True):
            for size in sizes:
                for deterministic in (False, True):
                    yield from gpu_checks_backward.check_backward(
                        AttentionShape(*size, dim), DTYPE, device,
                        causal=causal, deterministic=deterministic, factor=FACTOR if size[3] > 1000 else 0.0, run=run,
                    )  # fmt: skip
            shape = AttentionShape(*((1, 1, 1, 64, 64) if dry else (4, 16, 8, 1999, 1999)), dim)
            times = 2 if dry else 200
            yield gpu_checks_backward.repeated_backward(shape, DTYPE, device, causal=causal, times=times)


def _case(key: tuple[int, int, int, int, int, int, bool], target: float, dry: bool, screen: bool) -> Case:
    batch, heads, kv_heads, length, dim, v_dim, causal = key
    wide = is_wide(dim, v_dim)
    shown = f"{heads}" if heads == kv_heads else f"{heads}/{kv_heads}"
    elements = f"{dim}" if dim == v_dim else f"{dim}/{v_dim}"
    name = f"({batch}, {shown}, {length}, {elements}){' causal' if causal else ''}"
    device = "cpu" if dry else "cuda"

    def make():
        shape = AttentionShape(*((1, 1, 1, 128, 128) if dry else (batch, heads, kv_heads, length, length)), dim, v_dim)
        problem = gpu_checks_backward.Problem(shape, DTYPE, device, causal)
        problem.forward()
        grads: dict[str, list[torch.Tensor]] = {}

        def ours(candidate: str) -> Launch:
            found = grads[candidate] = [torch.full_like(each, torch.nan) for each in problem.grads]
            return problem.launch(deterministic=candidate == DETERMINISTIC, grads=found)

        def library(backend: SDPBackend) -> Launch:
            inputs = [each.detach().requires_grad_() for each in (problem.q, problem.k, problem.v)]
            with sdpa_kernel(SDPBackend.MATH if dry else backend):
                out = functional.scaled_dot_product_attention(*inputs, is_causal=causal, enable_gqa=heads != kv_heads)
            return lambda: torch.autograd.grad(out, inputs, problem.dout, retain_graph=True)

        def verify() -> dict[str, Check]:
            at = 0 if dry else batch * kv_heads // 2
            return {
                candidate: _worst(problem.compare(at, grads=found, factor=FACTOR), f"{candidate}: {problem.label}")
                for candidate, found in grads.items()
            }

        candidates: dict[str, Callable[[], Launch]] = {}
        if not screen:
            candidates["cuDNN"] = lambda: library(SDPBackend.CUDNN_ATTENTION)
            if dim == v_dim:  # it has no others
                candidates["FlashAttention"] = lambda: library(SDPBackend.FLASH_ATTENTION)
            given = (problem.q, problem.k, problem.v, problem.out, problem.dout)
            candidates |= cute.attention_backward(given, problem.lse, causal)
        for each in (OURS,) if wide else (DETERMINISTIC, OURS):
            candidates[each] = lambda each=each: ours(each)
        return candidates, verify

    flops = 2 * batch * heads * length**2 * (3 * dim + 2 * v_dim) / (2 if causal else 1)
    blocks = "64 keys, blocks of 64 queries"
    if not wide:
        config = choose_config(dim, v_dim)
        blocks = f"{config.block_n} keys, blocks of {config.block_m} queries"
    return Case(name, flops, "cuDNN", target, make, blocks)


def _worst(checks: list[Check], label: str) -> Check:
    """The check that is nearest to its limit, or beyond it, under another label."""
    worst = max(checks, key=lambda check: check.error / check.limit if check.error == check.error else float("inf"))
    return gpu_checks.Check(label, worst.error, worst.limit)
