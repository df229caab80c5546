"""Kernels of mamba-ssm: its norms, gates and the state-space scans, forward and backward."""

from __future__ import annotations

import torch
from torch.nn import functional

from tests.conformance.cpu.cpu_entries import Load, Pairs, both, entry, learnt, normal

OPS = "mamba_ssm/ops/triton/"
FLOAT = 1e-3
"""The tolerance of float32."""
TF32 = 2e-2
"""The tolerance of products of float32 that a kernel leaves at TF32, and of bf16."""


@entry("mamba", OPS + "k_activations.py", "_swiglu_fwd_kernel", "_swiglu_bwd_kernel", call="swiglu", tolerance=TF32)
def swiglu(load: Load) -> Pairs:
    """`silu` of one half, times the other, in float32 and bf16, of odd lengths."""
    apply = load("ops.triton.k_activations").swiglu
    for dtype in (torch.float32, torch.bfloat16):
        for shape in ((5, 514), (2, 3, 66), (4, 2 * 257)):
            half = shape[-1] // 2
            yield from both(
                apply, lambda x, n=half: (functional.silu(x[..., :n].float()) * x[..., n:].float()).to(x.dtype),
                learnt(*shape, dtype=dtype),
            )  # fmt: skip


def _rms(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight


@entry(
    "mamba", OPS + "layer_norm.py", "_layer_norm_fwd_1pass_kernel", "_layer_norm_bwd_kernel", call="layer_norm_fn",
    tolerance=TF32,
)  # fmt: skip
def layer_norm(load: Load) -> Pairs:
    """`layer_norm` and the formula of RMS norm, with a residual that is added before, in float32 and bf16."""
    module = load("ops.triton.layer_norm")
    width = 203
    x, residual, weight, bias = (
        learnt(*shape, seed=at) for at, shape in enumerate(((7, width), (7, width), (width,), (width,)))
    )  # fmt: skip

    def layer(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(x + residual, (width,), weight, bias, 1e-6)

    yield from both(lambda x, r, w, b: module.layer_norm_fn(x, w, b, residual=r), layer, x, residual, weight, bias)
    yield from both(
        lambda x, r, w: module.rms_norm_fn(x, w, None, residual=r, prenorm=True),
        lambda x, r, w: (_rms(x + r, w), x + r), x, residual, weight,
    )  # fmt: skip
    yield from both(lambda x, w: module.rms_norm_fn(x, w, None), _rms, x, weight)
    yield from both(
        lambda x, w: module.rms_norm_fn(x, w, None), lambda x, w: _rms(x.float(), w).bfloat16(),
        learnt(5, 257, dtype=torch.bfloat16), learnt(257, seed=1),
    )  # fmt: skip


@entry(
    "mamba", OPS + "layernorm_gated.py", "_layer_norm_fwd_1pass_kernel", "_layer_norm_bwd_kernel",
    call="layernorm_fn", tolerance=FLOAT,
)  # fmt: skip
def gated_norm(load: Load) -> Pairs:
    """The formulas of both norms and `silu` of the gate, before and after the norm, of the row and of its groups."""
    module = load("ops.triton.layernorm_gated")
    width = 192
    x, z, weight, bias = learnt(6, width), learnt(6, width, seed=1), learnt(width, seed=2), learnt(width, seed=3)
    for size in (None, 64):
        groups = 1 if size is None else width // size
        for first in (True, False):

            def rms(x: torch.Tensor, z: torch.Tensor, w: torch.Tensor, n: int = groups, first: bool = first):
                x = x if first else x * functional.silu(z)
                parts = _rms(x.unflatten(-1, (n, -1)), w.unflatten(0, (n, -1))).flatten(-2)
                return parts * functional.silu(z) if first else parts

            yield from both(
                lambda x, z, w, size=size, first=first: module.rmsnorm_fn(
                    x, w, None, z, group_size=size, norm_before_gate=first
                ),
                rms, x, z, weight,
            )  # fmt: skip
    yield from both(
        lambda x, w, b: module.layernorm_fn(x, w, b), lambda x, w, b: functional.layer_norm(x, (width,), w, b, 1e-6),
        x, weight, bias,
    )  # fmt: skip


@entry(
    "mamba", OPS + "selective_state_update.py", "_selective_scan_update_kernel", call="selective_state_update",
    tolerance=FLOAT,
)  # fmt: skip
def selective_state_update(load: Load) -> Pairs:
    """The recurrence's step in torch, with and without heads; the state that is left, too."""
    update = load("ops.triton.selective_state_update").selective_state_update
    heads, groups, dim, size = 6, 2, 37, 19
    state = normal(3, heads, dim, size)
    x, dt, z = (normal(3, heads, dim, seed=at) for at in (1, 2, 3))
    a, bias, skip = -normal(heads, dim, size, seed=4).abs(), normal(heads, dim, seed=5), normal(heads, dim, seed=6)
    b, c = normal(3, groups, size, seed=7), normal(3, groups, size, seed=8)
    mine = state.clone()
    got = update(mine, x, dt, a, b, c, skip, z=z, dt_bias=bias, dt_softplus=True)
    step = functional.softplus(dt + bias)[..., None]
    each_b, each_c = (each.repeat_interleave(heads // groups, 1)[:, :, None] for each in (b, c))
    left = state * torch.exp(step * a) + step * each_b * x[..., None]
    yield mine, left
    yield got, ((left * each_c).sum(-1) + x * skip) * functional.silu(z)
    plain = state[:, 0].clone()
    got = update(plain, x[:, 0], dt[:, 0].abs(), a[0], b[:, 0], c[:, 0], skip[0], dt_bias=bias[0].abs())
    step = (dt[:, 0].abs() + bias[0].abs())[..., None]
    left = state[:, 0] * torch.exp(step * a[0]) + step * b[:, 0, None] * x[:, 0, :, None]
    yield plain, left
    yield got, (left * c[:, 0, None]).sum(-1) + x[:, 0] * skip[0]


def _scan(
    x: torch.Tensor, dt: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, skip: torch.Tensor,
    z: torch.Tensor | None = None,
) -> torch.Tensor:  # fmt: skip
    heads = x.shape[2]
    b, c = (each.repeat_interleave(heads // each.shape[2], 2) for each in (b, c))
    step = functional.softplus(dt)
    state = torch.zeros(x.shape[0], heads, x.shape[3], b.shape[3])
    found: list[torch.Tensor] = []
    for at in range(x.shape[1]):
        now = step[:, at, :, None, None]
        state = state * torch.exp(now * a[:, None, None]) + now * x[:, at, :, :, None] * b[:, at, :, None]
        found.append((state * c[:, at, :, None]).sum(-1) + skip[:, None] * x[:, at])
    result = torch.stack(found, 1)
    return result if z is None else result * functional.silu(z)


@entry("mamba", OPS + "ssd_combined.py", call="mamba_chunk_scan_combined", tolerance=TF32)
def ssd_scan(load: Load) -> Pairs:
    """The recurrence over all positions in torch, and autograd; with and without a gate."""
    scan = load("ops.triton.ssd_combined").mamba_chunk_scan_combined
    length, heads, groups = 45, 4, 2
    x, z = (learnt(2, length, heads, 16, seed=at) for at in (0, 1))
    dt, a = learnt(2, length, heads, seed=2), (-normal(heads, seed=3).abs() - 0.1).requires_grad_()
    b, c = (learnt(2, length, groups, 24, seed=at, scale=0.5) for at in (4, 5))
    skip = learnt(heads, seed=6)
    yield from both(
        lambda x, dt, a, b, c, skip: scan(x, dt, a, b, c, 16, D=skip, dt_softplus=True), _scan, x, dt, a, b, c, skip
    )  # fmt: skip
    yield from both(
        lambda x, dt, a, b, c, skip, z: scan(x, dt, a, b, c, 32, D=skip, z=z, dt_softplus=True), _scan,
        x, dt, a, b, c, skip, z,
    )  # fmt: skip
