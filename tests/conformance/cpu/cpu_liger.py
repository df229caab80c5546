"""Kernels of Liger-Kernel: norms, activations, rotations and the like, forward and backward."""

from __future__ import annotations

import torch
from torch.nn import functional

from tests.conformance.cpu.cpu_entries import Load, Pairs, below, both, entry, learnt, normal, one_config

OPS = "src/liger_kernel/ops/"
FLOAT = 1e-4
"""The tolerance of float32: sums of some hundred terms, in another order than torch's."""
HALF = 2e-2
"""The tolerance of bf16 and f16, as in Liger's own tests."""


def _rms(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight


@entry(
    "liger", OPS + "rms_norm.py", "_rms_norm_forward_kernel", "_rms_norm_backward_kernel",
    "_block_rms_norm_forward_kernel", "_block_rms_norm_backward_kernel", call="LigerRMSNormFunction", tolerance=FLOAT,
)  # fmt: skip
def rms_norm(load: Load) -> Pairs:
    """The formula in torch; by rows, and of more than 32,768 short ones by blocks of rows."""
    apply = load("rms_norm").LigerRMSNormFunction.apply
    for shape in ((40, 200), (33_000, 6)):
        yield from both(
            lambda x, w: apply(x, w, 1e-6, 0.0, "llama", False), _rms, learnt(*shape), learnt(shape[1], seed=1)
        )  # fmt: skip


@entry(
    "liger", OPS + "fused_add_rms_norm.py", "_fused_add_rms_norm_forward_kernel", "_fused_add_rms_norm_backward_kernel",
    call="LigerFusedAddRMSNormFunction", tolerance=FLOAT,
)  # fmt: skip
def fused_add_rms_norm(load: Load) -> Pairs:
    """The sum and the formula in torch."""
    apply = load("fused_add_rms_norm").LigerFusedAddRMSNormFunction.apply
    yield from both(
        lambda x, r, w: apply(x, r, w, 1e-6), lambda x, r, w: (_rms(x + r, w), x + r),
        learnt(6, 200), learnt(6, 200, seed=1), learnt(200, seed=2),
    )  # fmt: skip


@entry(
    "liger", OPS + "modulated_rms_norm.py", "_modulated_rms_norm_forward_kernel", "_modulated_rms_norm_backward_kernel",
    call="LigerModulatedRMSNormFunction", tolerance=FLOAT,
)  # fmt: skip
def modulated_rms_norm(load: Load) -> Pairs:
    """The formula in torch."""
    apply = load("modulated_rms_norm").LigerModulatedRMSNormFunction.apply
    yield from both(
        lambda x, w, scale, shift: apply(x, w, scale, shift, 1e-6, 0.0, "llama", False),
        lambda x, w, scale, shift: _rms(x, w) * (1 + scale) + shift,
        learnt(6, 200), learnt(200, seed=1), learnt(6, 200, seed=2), learnt(6, 200, seed=3),
    )  # fmt: skip


@entry(
    "liger", OPS + "layer_norm.py", "_layer_norm_forward_kernel", "_layer_norm_backward_kernel",
    call="LigerLayerNormFunction", tolerance=FLOAT,
)  # fmt: skip
def layer_norm(load: Load) -> Pairs:
    """`torch.nn.functional.layer_norm`."""
    apply = load("layer_norm").LigerLayerNormFunction.apply
    yield from both(
        lambda x, w, b: apply(x, w, b, 1e-6), lambda x, w, b: functional.layer_norm(x, (200,), w, b, 1e-6),
        learnt(6, 200), learnt(200, seed=1), learnt(200, seed=2),
    )  # fmt: skip


@entry(
    "liger", OPS + "group_norm.py", "_group_norm_forward_kernel", "_group_norm_backward_kernel",
    call="LigerGroupNormFunction", tolerance=FLOAT,
)  # fmt: skip
def group_norm(load: Load) -> Pairs:
    """`torch.nn.functional.group_norm`."""
    apply = load("group_norm").LigerGroupNormFunction.apply
    yield from both(
        lambda x, w, b: apply(x, w, b, 6, 3, 1e-6), lambda x, w, b: functional.group_norm(x, 3, w, b, 1e-6),
        learnt(2, 6, 50), learnt(6, seed=1), learnt(6, seed=2),
    )  # fmt: skip


@entry(
    "liger", OPS + "poly_norm.py", "_poly_norm_forward_kernel", "_poly_norm_backward_kernel",
    call="LigerPolyNormFunction", tolerance=FLOAT,
)  # fmt: skip
def poly_norm(load: Load) -> Pairs:
    """The formula in torch: three norms of powers."""
    apply = load("poly_norm").LigerPolyNormFunction.apply
    yield from both(
        lambda x, w, b: apply(x, w, b, 1e-6, False),
        lambda x, w, b: sum((_rms(x**power, w[3 - power]) for power in (1, 2, 3)), b),
        learnt(6, 123), learnt(3, seed=1), learnt(seed=2),
    )  # fmt: skip


@entry("liger", OPS + "dyt.py", "_dyt_fwd_kernel", "_dyt_bwd_kernel", call="LigerDyTFunction", tolerance=FLOAT)
def dyt(load: Load) -> Pairs:
    """The formula in torch."""
    module = load("dyt")
    one_config(module)
    module.infer_device = lambda: "npu"  # the only one whose number of programs does not come from a device
    yield from both(
        module.LigerDyTFunction.apply, lambda x, a, g, b: g * torch.tanh(x * a) + b,
        learnt(9, 700), learnt(1, seed=1), learnt(700, seed=2), learnt(700, seed=3),
    )  # fmt: skip


@entry(
    "liger", OPS + "swiglu.py", "_swiglu_forward_kernel", "_swiglu_backward_kernel", call="LigerSiLUMulFunction",
    tolerance=FLOAT,
)  # fmt: skip
def swiglu(load: Load) -> Pairs:
    """`silu` and a product, with and without factors."""
    apply = load("swiglu").LigerSiLUMulFunction.apply
    yield from both(apply, lambda a, b: functional.silu(a) * b, learnt(6, 300), learnt(6, 300, seed=1))
    yield from both(
        lambda a, b: apply(a, b, 0.7, 1.3), lambda a, b: functional.silu(a * 0.7) * b * 1.3,
        learnt(6, 300), learnt(6, 300, seed=1),
    )  # fmt: skip


@entry(
    "liger", OPS + "swiglu.py", "_swiglu_fused_gate_up_forward_kernel", "_swiglu_fused_gate_up_backward_kernel",
    call="LigerFusedGateUpSiLUMulFunction", tolerance=FLOAT,
)  # fmt: skip
def swiglu_fused(load: Load) -> Pairs:
    """`silu` of one half, times the other."""
    apply = load("swiglu").LigerFusedGateUpSiLUMulFunction.apply
    yield from both(apply, lambda y: functional.silu(y[:, :300]) * y[:, 300:], learnt(6, 600))


@entry(
    "liger", OPS + "geglu.py", "_geglu_tanh_forward_kernel", "_geglu_tanh_backward_kernel", call="LigerGELUMulFunction",
    tolerance=FLOAT,
)  # fmt: skip
def geglu(load: Load) -> Pairs:
    """`gelu` by tanh and a product."""
    apply = load("geglu").LigerGELUMulFunction.apply
    yield from both(
        apply, lambda a, b: functional.gelu(a, approximate="tanh") * b, learnt(6, 300), learnt(6, 300, seed=1)
    )


@entry(
    "liger", OPS + "relu_squared.py", "_relu_squared_forward_kernel", "_relu_squared_backward_kernel",
    call="LigerReLUSquaredFunction", tolerance=FLOAT,
)  # fmt: skip
def relu_squared(load: Load) -> Pairs:
    """`relu` and a square; in bf16, too."""
    apply = load("relu_squared").LigerReLUSquaredFunction.apply
    yield from both(apply, lambda x: functional.relu(x) ** 2, learnt(6, 300))


@entry(
    "liger", OPS + "softmax.py", "_softmax_single_block_forward_kernel", "_softmax_single_block_backward_kernel",
    call="LigerSoftmaxFunction", tolerance=FLOAT,
)  # fmt: skip
def softmax(load: Load) -> Pairs:
    """`torch.softmax`."""
    yield from both(load("softmax").LigerSoftmaxFunction.apply, lambda x: x.softmax(-1), learnt(4, 300))


@entry(
    "liger", OPS + "softmax.py", "_softmax_multi_block_forward_kernel", "_softmax_multi_block_backward_kernel",
    call="LigerSoftmaxFunction", tolerance=FLOAT,
)  # fmt: skip
def softmax_blocks(load: Load) -> Pairs:
    """`torch.softmax` of rows that are longer than a block."""
    module = load("softmax")
    module.calculate_settings = lambda _: (64, 4)  # its own blocks are as long as any row that it takes
    yield from both(module.LigerSoftmaxFunction.apply, lambda x: x.softmax(-1), learnt(4, 300))


def _sparsemax(x: torch.Tensor) -> torch.Tensor:
    ordered = x.sort(-1, descending=True).values
    support = 1 + torch.arange(1, x.shape[-1] + 1) * ordered > ordered.cumsum(-1)
    number = support.sum(-1, keepdim=True)
    return (x - ((ordered * support).sum(-1, keepdim=True) - 1) / number).clamp_min(0)


@entry(
    "liger", OPS + "sparsemax.py", "_sparsemax_forward_kernel", "_sparsemax_backward_kernel",
    call="LigerSparsemaxFunction", tolerance=FLOAT,
)  # fmt: skip
def sparsemax(load: Load) -> Pairs:
    """The projection onto the simplex by `torch.sort`."""
    apply = load("sparsemax").LigerSparsemaxFunction.apply
    yield from both(lambda x: apply(x, -1), _sparsemax, learnt(5, 123))


def _turned(x: torch.Tensor) -> torch.Tensor:
    low, high = x.chunk(2, -1)
    return torch.cat((-high, low), -1)


@entry("liger", OPS + "rope.py", "_triton_rope", call="LigerRopeFunction", tolerance=FLOAT)
def rope(load: Load) -> Pairs:
    """`x * cos + rotate_half(x) * sin`."""
    angles = normal(1, 9, 16).repeat(1, 1, 2)
    yield from both(
        load("rope").LigerRopeFunction.apply,
        lambda q, k, cos, sin: tuple(x * cos[:, None] + _turned(x) * sin[:, None] for x in (q, k)),
        learnt(2, 4, 9, 32), learnt(2, 2, 9, 32, seed=1), angles.cos(), angles.sin(),
    )  # fmt: skip


@entry("liger", OPS + "llama4_rope.py", "_llama4_rope_kernel", call="LigerLlama4RopeFunction", tolerance=FLOAT)
def llama4_rope(load: Load) -> Pairs:
    """A product of complex numbers."""
    frequencies = torch.polar(torch.ones(9, 16), normal(9, 16))

    def reference(q: torch.Tensor, k: torch.Tensor, f: torch.Tensor) -> tuple[torch.Tensor, ...]:
        pairs = (torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2)) * f[None, :, None] for x in (q, k))
        return tuple(torch.view_as_real(x).flatten(-2) for x in pairs)

    apply = load("llama4_rope").LigerLlama4RopeFunction.apply
    yield from both(apply, reference, learnt(2, 9, 4, 32), learnt(2, 9, 2, 32, seed=1), frequencies)


@entry("liger", OPS + "qwen2vl_mrope.py", "_triton_qwen2vl_mrope", call="LigerQwen2VLMRopeFunction", tolerance=FLOAT)
def qwen2vl_mrope(load: Load) -> Pairs:
    """`x * cos + rotate_half(x) * sin`, with the angles of three axes side by side."""
    sections, angles = [4, 6, 6], normal(3, 2, 9, 16).repeat(1, 1, 1, 2)

    def mixed(table: torch.Tensor) -> torch.Tensor:
        parts = table.split(sections * 2, -1)
        return torch.cat([part[at % 3] for at, part in enumerate(parts)], -1)[:, None]

    apply = load("qwen2vl_mrope").LigerQwen2VLMRopeFunction.apply
    yield from both(
        lambda q, k, cos, sin: apply(q, k, cos, sin, sections),
        lambda q, k, cos, sin: tuple(x * mixed(cos) + _turned(x) * mixed(sin) for x in (q, k)),
        learnt(2, 4, 9, 32), learnt(2, 2, 9, 32, seed=1), angles.cos(), angles.sin(),
    )  # fmt: skip


@entry(
    "liger", OPS + "experimental/embedding.py", "embedding_forward_kernel", "embedding_backward_kernel",
    call="LigerEmbeddingFunction", tolerance=FLOAT,
)  # fmt: skip
def embedding(load: Load) -> Pairs:
    """`torch.nn.functional.embedding`; its gradient adds up what one index gets."""
    apply = load("experimental.embedding").LigerEmbeddingFunction.apply
    indices = below(20, 3, 17, dtype=torch.int64)
    yield from both(
        lambda table: apply(table, indices), lambda table: functional.embedding(indices, table), learnt(20, 60)
    )


@entry(
    "liger", OPS + "swiglu.py", "_swiglu_forward_kernel_tiled", "_swiglu_backward_kernel_tiled",
    call="LigerSiLUMulFunction", tolerance=FLOAT,
)  # fmt: skip
def swiglu_tiled(load: Load) -> Pairs:
    """`silu` and a product, by the kernels for wide rows."""
    module = load("swiglu")
    module._should_tile = lambda _: True
    yield from both(
        module.LigerSiLUMulFunction.apply, lambda a, b: functional.silu(a) * b, learnt(3, 3000), learnt(3, 3000, seed=1)
    )


@entry(
    "liger", OPS + "mlp.py", "_swiglu_kernel_forward", "_swiglu_kernel_forward_inference",
    "_swiglu_kernel_backward_dGU", "_swiglu_kernel_backward_dI", call="gemm_swiglu", tolerance=2e-2,
)  # fmt: skip
def mlp(load: Load) -> Pairs:
    """Products of matrices and `silu`; gradients by autograd."""
    module, hidden = load("mlp"), 72
    one_config(module)
    x, gate, up, down = (
        normal(2, 37, 48), normal(hidden, 48, seed=1, scale=0.2), normal(hidden, 48, seed=2, scale=0.2),
        normal(48, hidden, seed=3, scale=0.2),
    )  # fmt: skip
    leaves = [each.clone().requires_grad_() for each in (x, gate, up)]
    gates, ups = leaves[0] @ leaves[1].T, leaves[0] @ leaves[2].T
    gates.retain_grad()
    ups.retain_grad()
    active = functional.silu(gates) * ups
    yield module.gemm_swiglu(x, gate, up, 1.0, False)[0], active
    stored, config = module.gemm_swiglu(x, gate, up, 1.0, True)
    yield stored, torch.cat((active, gates, ups), -1)
    gradient = normal(2, 37, 48, seed=4)
    (active @ down.T).backward(gradient)
    config = config or module._swiglu_kernel_forward.configs[0]
    module.swiglu_backward_dGU(gradient, down, stored, config, 1.0, 1.0)
    assert gates.grad is not None
    assert ups.grad is not None
    yield stored[..., hidden:], torch.cat((gates.grad, ups.grad), -1)
    yield module.swiglu_backward_dI(gate, up, stored), leaves[0].grad
