"""Kernels of unsloth: gates, norms, rotations, cross entropy and products of fp8, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn import functional

from tests.conformance.cpu.cpu_entries import Load, Pairs, below, both, entry, learnt, normal

KERNELS = "unsloth/kernels/"
FLOAT = 1e-4
"""The tolerance of float32."""
HALF = 2e-2
"""The tolerance of bf16 and f16."""
DTYPES = torch.float32, torch.bfloat16, torch.float16


def _gate(forward: Any, backward: Any, act: Callable[[torch.Tensor], torch.Tensor]) -> Pairs:
    """Compare a gate and the three products of its backward pass, which lie where its arguments lay."""
    for at, dtype in enumerate(DTYPES):
        gate, up, gradient = (normal(2, 5, 67 + at, seed=seed, dtype=dtype) for seed in (0, 1, 2))
        yield forward(gate, up), act(gate.float()) * up.float()
        x = gate.float().requires_grad_()
        act(x).backward(gradient.float() * up.float())
        found = backward(*(each.flatten(0, 1).clone() for each in (gradient, gate, up)))
        of_gate = act(gate.float())
        for got, want in zip(found, (of_gate * up, gradient * of_gate, x.grad), strict=True):
            assert want is not None
            yield got, want.flatten(0, 1)


@entry("unsloth", KERNELS + "swiglu.py", "_fg_kernel", "_DWf_DW_dfg_kernel", call="swiglu_fg_kernel", tolerance=HALF)
def swiglu(load: Load) -> Pairs:
    """`silu` and a product, and the products of its backward pass, in float32, bf16 and f16."""
    module = load("kernels.swiglu")
    yield from _gate(module.swiglu_fg_kernel, module.swiglu_DWf_DW_dfg_kernel, functional.silu)


@entry(
    "unsloth", KERNELS + "geglu.py", "_exact_forward_kernel", "_exact_backward_kernel", "_approx_forward_kernel",
    "_approx_backward_kernel", call="geglu_exact_forward_kernel", tolerance=HALF,
)  # fmt: skip
def geglu(load: Load) -> Pairs:
    """`gelu` both ways and a product, and the products of their backward passes, in float32, bf16 and f16."""
    module = load("kernels.geglu")
    yield from _gate(module.geglu_exact_forward_kernel, module.geglu_exact_backward_kernel, functional.gelu)
    tanh = partial(functional.gelu, approximate="tanh")
    yield from _gate(module.geglu_approx_forward_kernel, module.geglu_approx_backward_kernel, tanh)


@entry(
    "unsloth", KERNELS + "layernorm.py", "layernorm_forward", "layernorm_backward", call="Fast_Layernorm",
    tolerance=HALF,
)  # fmt: skip
def layer_norm(load: Load) -> Pairs:
    """`layer_norm` in float32 and bf16, whose gradient overwrites the result's."""
    apply = load("kernels.layernorm").Fast_Layernorm.apply
    for dtype in (torch.float32, torch.bfloat16):
        for width in (257, 96, 5):
            weight, bias = normal(width, seed=1, dtype=dtype), normal(width, seed=2, dtype=dtype)
            yield from both(
                lambda x, w=weight, b=bias: apply(x, w, b, 1e-5),
                lambda x, w=weight, b=bias: functional.layer_norm(x, x.shape[-1:], w, b, 1e-5),
                learnt(2, 4, width, dtype=dtype),
            )  # fmt: skip


@entry(
    "unsloth", KERNELS + "rms_layernorm.py", "_rms_layernorm_forward", "_gemma_rms_layernorm_forward",
    "_rms_layernorm_backward", call="Fast_RMS_Layernorm", tolerance=HALF,
)  # fmt: skip
def rms_norm(load: Load) -> Pairs:
    """The formula in torch, with the weight and with the weight and 1, in float32 and bf16."""
    apply = load("kernels.rms_layernorm").Fast_RMS_Layernorm.apply

    def formula(x: torch.Tensor, weight: torch.Tensor, more: float) -> torch.Tensor:
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6) * (weight.float() + more)).to(x.dtype)

    for dtype in (torch.float32, torch.bfloat16):
        for width in (257, 128, 33):
            weight = normal(width, seed=1, dtype=dtype)
            for gemma in (False, True):
                yield from both(
                    lambda x, w=weight, gemma=gemma: apply(x, w, 1e-6, gemma),
                    lambda x, w=weight, gemma=gemma: formula(x, w, float(gemma)),
                    learnt(2, 4, width, dtype=dtype),
                )  # fmt: skip


def _turned(x: torch.Tensor) -> torch.Tensor:
    low, high = x.chunk(2, -1)
    return torch.cat((-high, low), -1)


@entry("unsloth", KERNELS + "rope_embedding.py", "_rope_embedding", call="Fast_RoPE_Embedding", tolerance=FLOAT)
def rope(load: Load) -> Pairs:
    """`x * cos + rotate_half(x) * sin`, of 6 heads in groups of 4."""
    apply = load("kernels.rope_embedding").Fast_RoPE_Embedding.apply
    angles = normal(11, 20).repeat(1, 2)
    cos, sin = angles.cos(), angles.sin()
    yield from both(
        lambda x: apply(x * 1, cos, sin), lambda x: x * cos[None, :9, None] + _turned(x) * sin[None, :9, None],
        learnt(2, 9, 6, 40),
    )  # fmt: skip


@entry("unsloth", KERNELS + "rope_embedding.py", "_rope_embedding_QK", call="Fast_RoPE_Embedding_QK", tolerance=FLOAT)
def rope_qk(load: Load) -> Pairs:
    """`x * cos + rotate_half(x) * sin` of queries and fewer keys, at positions in a row and at given ones."""
    apply = load("kernels.rope_embedding").Fast_RoPE_Embedding_QK.apply
    angles = normal(16, 20).repeat(1, 2)
    cos, sin = angles.cos(), angles.sin()
    for places in (None, below(16, 2, 9)):
        at = torch.arange(9).expand(2, 9) if places is None else places.long()

        def formula(*given: torch.Tensor, at: torch.Tensor = at) -> Any:
            return [x * cos[at][:, None] + _turned(x) * sin[at][:, None] for x in given]

        yield from both(
            lambda q, k, places=places: apply(q * 1, k * 1, cos, sin, places), formula,
            learnt(2, 6, 9, 40), learnt(2, 2, 9, 40, seed=1),
        )  # fmt: skip


@entry(
    "unsloth", KERNELS + "cross_entropy_loss.py", "_cross_entropy_forward", "_chunked_cross_entropy_forward",
    "_cross_entropy_backward", call="fast_cross_entropy_loss", tolerance=FLOAT,
)  # fmt: skip
def cross_entropy(load: Load) -> Pairs:
    """`cross_entropy`, of 70,000 classes in parts, too, with capped and scaled logits, and an index to ignore."""
    loss = load("kernels.cross_entropy_loss").fast_cross_entropy_loss
    for classes, cap, scale in ((301, 0, 0), (301, 30.0, 0), (1000, 0, 0.5), (70_000, 0, 0), (70_000, 30.0, 0)):
        labels = below(classes, 2, 3, dtype=torch.int64)
        labels[1, 1] = -100

        def formula(x: torch.Tensor, labels: torch.Tensor = labels, cap: float = cap, scale: float = scale) -> Any:
            x = x * scale if scale else x
            x = cap * torch.tanh(x / cap) if cap else x
            return functional.cross_entropy(x.flatten(0, 1), labels.flatten())

        yield from both(
            lambda x, labels=labels, cap=cap, scale=scale: loss(x * 1, labels, cap, scale), formula,
            learnt(2, 3, classes, scale=2),
        )  # fmt: skip


@entry(
    "unsloth", KERNELS + "fp8.py", "weight_dequant_kernel", "act_quant_kernel", "_w8a8_block_fp8_matmul",
    call="w8a8_block_fp8_matmul_triton", tolerance=1e-2,
)  # fmt: skip
def fp8(load: Load) -> Pairs:
    """Quantising and back in torch's fp8, and the product of the matrices that they stand for."""
    module = load("kernels.fp8")
    x = normal(7, 256, scale=3)
    x[3, :128] = 0
    quantised, scales = module.act_quant(x)
    parts = x.unflatten(-1, (2, 128))
    largest = parts.abs().amax(-1) / 448
    largest = torch.where(largest == 0, 1.0, largest)
    yield scales, largest
    yield quantised.float(), (parts / largest[..., None]).to(torch.float8_e4m3fn).float().flatten(1)
    weight = normal(200, 256, seed=1).to(torch.float8_e4m3fn)
    factors = normal(2, 2, seed=2).abs()
    spread = factors.repeat_interleave(128, 0)[:200].repeat_interleave(128, 1)
    yield module.weight_dequant(weight, factors, torch.float32), weight.float() * spread
    got = module.w8a8_block_fp8_matmul_triton(quantised, weight, scales, factors, [128, 128])
    back = (quantised.float().unflatten(-1, (2, 128)) * scales[..., None]).flatten(1)
    want = back @ (weight.float() * spread).T
    yield got / 100, want / 100
