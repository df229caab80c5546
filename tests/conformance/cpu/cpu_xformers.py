"""Kernels of xFormers that need nothing but Triton: rows by index, a norm, and a product of tiled matrices."""

from __future__ import annotations

import torch

from tests.conformance.cpu.cpu_entries import EXACT, Load, Pairs, entry, longs, normal

OPS = "xformers/ops/_triton/"
HALF = 1e-2
"""The tolerance of bf16 and f16."""


@entry(
    "xformers", OPS + "k_index_select_cat.py", "index_select_cat_fwd_kernel", "index_select_cat_bwd_kernel",
    call="index_select_cat_fwd", tolerance=EXACT,
)  # fmt: skip
def index_select_cat(load: Load) -> Pairs:
    """Rows by index, and back to where they came from, in float32 and f16."""
    module = load("ops._triton.k_index_select_cat")
    at = longs(3, 0, 11, 7)
    for dtype in (torch.float32, torch.float16):
        source = normal(12, 133, dtype=dtype)
        found = torch.empty(4, 133, dtype=dtype)
        module.index_select_cat_fwd(found, source, at)
        yield found, source[at]
        back = torch.zeros(12, 133, dtype=dtype)
        module.index_select_cat_bwd(back, at, found)
        yield back, torch.zeros(12, 133, dtype=dtype).index_copy(0, at, found)


@entry(
    "xformers", OPS + "k_scaled_index_add.py", "scaled_index_add_fwd_kernel", "scaled_index_add_bwd_kernel",
    call="scaled_index_add_fwd", tolerance=HALF,
)  # fmt: skip
def scaled_index_add(load: Load) -> Pairs:
    """`index_add` with factors and without, and autograd, in float32, bf16 and f16."""
    module = load("ops._triton.k_scaled_index_add")
    at = longs(4, 1, 0)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        x, source = normal(6, 5, 67, dtype=dtype), normal(3, 5, 67, seed=1, dtype=dtype)
        gradient = normal(6, 5, 67, seed=3, dtype=dtype)
        for factors in (normal(67, seed=2, dtype=dtype), None):
            more = source * (1 if factors is None else factors)
            mine = x.clone()
            module.scaled_index_add_fwd(mine, at, source, factors, 0.5)
            yield mine, x.index_add(0, at, more, alpha=0.5)
            of_source = torch.empty_like(source)
            of_factors = None if factors is None else torch.empty_like(source)
            module.scaled_index_add_bwd(gradient, of_source, of_factors, source, factors, at, 0.5)
            yield of_source, 0.5 * gradient[at] * (1 if factors is None else factors)
            if of_factors is not None:
                yield of_factors, 0.5 * gradient[at] * source


@entry(
    "xformers", OPS + "rmsnorm_kernels.py", "_rms_norm_kernel", "_rms_norm_add_kernel", call="_rms_norm_forward",
    tolerance=HALF,
)  # fmt: skip
def rms_norm(load: Load) -> Pairs:
    """The formula in torch, with and without weights, and after a sum that is kept, in float32 and bf16."""
    module = load("ops._triton.rmsnorm_kernels")

    def formula(x: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
        wide = x.float()
        normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return (normed if weight is None else normed * weight.float()).to(x.dtype)

    for dtype in (torch.float32, torch.bfloat16):
        for width in (257, 1024, 9001):
            x, y = normal(3, 2, width, dtype=dtype), normal(3, 2, width, seed=1, dtype=dtype)
            for weight in (normal(width, seed=2, dtype=dtype), None):
                yield module._rms_norm_forward(x, weight, 1e-6), formula(x, weight)
                mine = x.clone()
                normed = module._rms_norm_add_forward(mine, y, weight, 1e-6)
                yield mine, x + y
                yield normed, formula(x + y, weight)


@entry(
    "xformers", OPS + "tiled_matmul_kernels.py", "_xformers_tiled_matmul_kernel", call="_launch_triton_matmul",
    tolerance=2e-2,
)  # fmt: skip
def tiled_matmul(load: Load) -> Pairs:
    """Products of matrices that are cut into tiles of several sizes, in float32 and f16."""
    launch = load("ops._triton.tiled_matmul_kernels")._launch_triton_matmul
    for dtype in (torch.float32, torch.float16):
        for ms, ns, ks in (([40, 24], [48, 16, 32], [64, 32]), ([33], [20, 50], [70])):
            a = normal(sum(ms), sum(ks), dtype=dtype, scale=0.3)
            b = normal(sum(ks), sum(ns), seed=1, dtype=dtype, scale=0.3)
            c = torch.full((sum(ms), sum(ns)), 7.0, dtype=dtype)
            left = [list(rows.split(ks, 1)) for rows in a.split(ms)]
            right = [list(rows.split(ns, 1)) for rows in b.split(ks)]
            launch(left, right, [list(rows.split(ns, 1)) for rows in c.split(ms)], ms, ns, ks)
            yield c, (a.float() @ b.float()).to(dtype)
