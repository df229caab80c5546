"""Kernels of Liger-Kernel: losses, attention and mixtures, forward and backward."""

from __future__ import annotations

import torch
from torch.nn import functional

from tests.conformance.cpu.cpu_entries import Load, Pairs, below, both, entry, learnt, normal, one_config
from tests.conformance.cpu.cpu_liger import FLOAT, HALF, OPS

IGNORED = -100


def _targets(rows: int, words: int) -> torch.Tensor:
    targets = below(words, rows, seed=5, dtype=torch.int64)
    targets[2] = IGNORED
    return targets


@entry(
    "liger", OPS + "cross_entropy.py", "liger_cross_entropy_kernel", "element_mul_kernel",
    call="LigerCrossEntropyFunction", tolerance=FLOAT,
)  # fmt: skip
def cross_entropy(load: Load) -> Pairs:
    """`torch.nn.functional.cross_entropy`, with and without smoothing and weights."""
    apply, targets = load("cross_entropy").LigerCrossEntropyFunction.apply, _targets(7, 500)
    weight = normal(500, seed=1).abs() + 0.1
    for weighed, smoothing in ((None, 0.0), (None, 0.1), (weight, 0.0)):
        yield from both(
            lambda x, w=weighed, s=smoothing: apply(x, targets, w, IGNORED, 0.0, s)[0],
            lambda x, w=weighed, s=smoothing: functional.cross_entropy(x, targets, w, label_smoothing=s),
            learnt(7, 500, scale=3.0),
        )  # fmt: skip


@entry(
    "liger", OPS + "fused_linear_cross_entropy.py", "liger_cross_entropy_kernel", "element_mul_kernel",
    call="LigerFusedLinearCrossEntropyFunction", tolerance=FLOAT,
)  # fmt: skip
def fused_linear_cross_entropy(load: Load) -> Pairs:
    """A product of matrices and `cross_entropy`."""
    apply, targets = load("fused_linear_cross_entropy").LigerFusedLinearCrossEntropyFunction.apply, _targets(7, 300)
    yield from both(
        lambda x, w, b: apply(x, w, targets, b)[0],
        lambda x, w, b: functional.cross_entropy(functional.linear(x, w, b), targets),
        learnt(7, 32), learnt(300, 32, seed=1), learnt(300, seed=2),
    )  # fmt: skip


@entry(
    "liger", OPS + "vocab_parallel_cross_entropy.py", "liger_vocab_parallel_ce_forward_kernel",
    "liger_vocab_parallel_ce_backward_kernel", call="LigerVocabParallelCEFunction", tolerance=FLOAT,
)  # fmt: skip
def vocab_parallel_cross_entropy(load: Load) -> Pairs:
    """`cross_entropy` of each token, of one rank."""
    apply, targets = load("vocab_parallel_cross_entropy").LigerVocabParallelCEFunction.apply, _targets(6, 500)
    yield from both(
        lambda x: apply(x, targets.view(3, 2), None, IGNORED, 0.0, "megatron", "training"),
        lambda x: functional.cross_entropy(x.view(6, 500), targets, reduction="none").view(3, 2),
        learnt(3, 2, 500, scale=2.0),
    )  # fmt: skip


def _jsd(log_q: torch.Tensor, log_p: torch.Tensor, labels: torch.Tensor | None, beta: float) -> torch.Tensor:
    mixed = torch.lerp(log_q.exp(), log_p.exp(), beta).log()
    terms = beta * functional.kl_div(mixed, log_p, reduction="none", log_target=True)
    terms = terms + (1 - beta) * functional.kl_div(mixed, log_q, reduction="none", log_target=True)
    if labels is None:
        return terms.sum() / len(terms)
    kept = labels != IGNORED
    return (terms * kept[:, None]).sum() / kept.sum()


@entry("liger", OPS + "jsd.py", "_jsd_kernel", call="LigerJSDFunction", tolerance=FLOAT)
def jsd(load: Load) -> Pairs:
    """The formula by `kl_div`, with and without labels."""
    apply, log_p = load("jsd").LigerJSDFunction.apply, normal(7, 300, seed=1).log_softmax(-1)
    log_q = normal(7, 300).log_softmax(-1).requires_grad_()
    for labels in (None, _targets(7, 300)):
        yield from both(
            lambda q, given=labels: apply(q, log_p, given, 0.3),
            lambda q, given=labels: _jsd(q, log_p, given, 0.3),
            log_q,
        )


@entry(
    "liger", OPS + "fused_linear_jsd.py", "_jsd_kernel", "element_mul_kernel", call="LigerFusedLinearJSDFunction",
    tolerance=FLOAT,
)  # fmt: skip
def fused_linear_jsd(load: Load) -> Pairs:
    """Two products of matrices, `log_softmax` and the formula by `kl_div`."""
    apply = load("fused_linear_jsd").LigerFusedLinearJSDFunction.apply
    teacher, weight = normal(6, 24, seed=2), normal(200, 24, seed=3)
    yield from both(
        lambda x, w: apply(x, w, teacher, weight, None, 0.5),
        lambda x, w: _jsd((x @ w.T).log_softmax(-1), (teacher @ weight.T).log_softmax(-1), None, 0.5),
        learnt(6, 16), learnt(200, 16, seed=1),
    )  # fmt: skip


@entry(
    "liger", OPS + "kl_div.py", "_kldiv_kernel_forward", "_kldiv_kernel_backward", call="LigerKLDivLossFunction",
    tolerance=FLOAT,
)  # fmt: skip
def kl_div(load: Load) -> Pairs:
    """`torch.nn.functional.kl_div`, of each reduction."""
    apply, true = load("kl_div").LigerKLDivLossFunction.apply, normal(5, 300, seed=1).softmax(-1)
    predicted = normal(5, 300).log_softmax(-1).requires_grad_()
    for reduction in ("batchmean", "sum", "mean", "none"):
        yield from both(
            lambda y, how=reduction: apply(y, true, how),
            lambda y, how=reduction: functional.kl_div(y, true, reduction=how), predicted,
        )  # fmt: skip


@entry("liger", OPS + "tvd.py", "_tv_distance_kernel", call="LigerTVDLossFunction", tolerance=FLOAT)
def tvd(load: Load) -> Pairs:
    """Half of the sum of absolute differences."""
    apply, other = load("tvd").LigerTVDLossFunction.apply, normal(5, 300, seed=1).softmax(-1)
    yield from both(
        lambda p: apply(p, other), lambda p: (p - other).abs().sum() / 10, normal(5, 300).softmax(-1).requires_grad_()
    )


@entry(
    "liger", OPS + "grpo_loss.py", "_selective_log_softmax_kernel", "_grpo_loss_fwd_kernel", "_grpo_loss_bwd_kernel",
    "_grpo_loss_fwd_kernel_seq", "_grpo_loss_bwd_kernel_seq", call="GrpoLossFunction", tolerance=FLOAT,
)  # fmt: skip
def grpo_loss(load: Load) -> Pairs:
    """The clipped ratio of probabilities and the penalty, for tokens and for sequences."""
    module, ids, advantages = load("grpo_loss"), below(200, 3, 5, seed=1, dtype=torch.int64), normal(3, seed=2)
    mask = torch.ones(3, 5, dtype=torch.int64)
    mask[1, 3:] = 0
    start = normal(3, 6, 200)
    chosen = (start[:, :-1] / 0.9).log_softmax(-1).gather(2, ids[..., None])[..., 0]
    old, ref = chosen + normal(3, 5, seed=3, scale=0.2), chosen + normal(3, 5, seed=4, scale=0.2)
    yield module.fused_selective_log_softmax(start, ids, 0.9, mask), chosen * mask

    def reference(logits: torch.Tensor, level: str) -> torch.Tensor:
        log_p = (logits[:, :-1] / 0.9).log_softmax(-1).gather(2, ids[..., None])[..., 0]
        ratio = (log_p - old).exp()
        if level == "sequence":
            ratio = (((log_p - old) * mask).sum(1) / mask.sum(1)).exp()[:, None].expand(3, 5)
        clipped, gain = ratio.clamp(0.8, 1.4), advantages[:, None]
        loss = -torch.minimum(ratio * gain, clipped * gain)
        loss = (loss + 0.1 * ((ref - log_p).exp() - (ref - log_p) - 1)) * mask
        return (loss.sum(1) / mask.sum(1)).mean()

    for level in ("token", "sequence"):
        yield from both(
            lambda x, level=level: module.GrpoLossFunction.apply(
                x, old, ref, ids, advantages, mask, 0.9, 0.1, 0.2, 0.4, False, "grpo", None, True, level
            )[0],
            lambda x, level=level: reference(x, level),
            start.clone().requires_grad_(),
        )  # fmt: skip


@entry(
    "liger", OPS + "attn_res.py", "_attn_res_fwd_kernel", "_attn_res_bwd_kernel", call="LigerAttnResFunction",
    tolerance=FLOAT,
)  # fmt: skip
def attn_res(load: Load) -> Pairs:
    """`softmax` over the blocks of the products of normed rows with a query."""

    def reference(v: torch.Tensor, query: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        keys = v * torch.rsqrt(v.pow(2).mean(-1, keepdim=True) + 1e-6) * weight
        return torch.einsum("nbt,nbtd->btd", (keys @ query).softmax(0), v)

    apply = load("attn_res").LigerAttnResFunction.apply
    yield from both(
        lambda v, q, w: apply(v, q, w, 1e-6), reference, learnt(3, 2, 5, 100), learnt(100, seed=1, scale=0.3),
        learnt(100, seed=2),
    )  # fmt: skip


@entry(
    "liger", OPS + "fused_neighborhood_attention.py", "_neighborhood_mask_kernel",
    "_fused_neighborhood_attention_qk_kernel", "_fused_neighborhood_attention_av_kernel",
    "_fused_neighborhood_attention_grad_qk_kernel", "_fused_neighborhood_attention_grad_k_kernel",
    "_fused_neighborhood_attention_grad_v_kernel", "_fused_neighborhood_attention_grad_attn_kernel",
    call="LigerFusedNeighborhoodAttentionFunction", tolerance=5e-3,
)  # fmt: skip
def fused_neighborhood_attention(load: Load) -> Pairs:
    """Attention with a mask of the neighbourhood, with and without gaps."""
    apply = load("fused_neighborhood_attention").LigerFusedNeighborhoodAttentionFunction.apply
    distance = torch.arange(24)[:, None] - torch.arange(24)
    for gap in (1, 2):
        mask = (distance.abs() <= 2 * gap) & (distance % gap == 0)
        yield from both(
            lambda q, k, v, gap=gap: apply(q, k, v, 5, gap),
            lambda q, k, v, mask=mask: functional.scaled_dot_product_attention(q, k, v, attn_mask=mask),
            learnt(1, 2, 24, 16), learnt(1, 2, 24, 16, seed=1), learnt(1, 2, 24, 16, seed=2),
        )  # fmt: skip


@entry(
    "liger", OPS + "multi_token_attention.py", "_mask_fwd_kernel", "_mask_bwd_kernel",
    call="LigerMultiTokenAttentionFunction", tolerance=FLOAT,
)  # fmt: skip
def multi_token_attention(load: Load) -> Pairs:
    """A masked `softmax`, `conv2d` and a mask."""
    apply, lower = load("multi_token_attention").LigerMultiTokenAttentionFunction.apply, torch.ones(9, 9).tril().bool()

    def reference(scores: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        shares = scores.masked_fill(~lower, -1e9).softmax(-1)
        return functional.conv2d(shares, weight, bias, padding=1).masked_fill(~lower, 0.0)

    yield from both(
        lambda s, w, b: apply(s, w, b, 1, 1),
        reference,
        learnt(2, 4, 9, 9),
        learnt(4, 4, 3, 3, seed=1),
        learnt(4, seed=2),
    )


@entry(
    "liger", OPS + "fused_moe_kernels.py", "_moe_router_histogram_kernel", "_moe_router_prefix_sum_kernel",
    "_moe_router_scatter_kernel", "_fused_up_proj_swiglu_kernel", "_fused_down_proj_kernel",
    "_token_gather_weighted_sum_kernel", "_moe_bwd_down_proj_kernel", "_moe_bwd_dW2_kernel",
    "_moe_bwd_dX_expanded_kernel", "_moe_bwd_dW1_kernel", call="LigerFusedMoEFunction", tolerance=5e-3,
)  # fmt: skip
def fused_moe(load: Load) -> Pairs:
    """A loop over the experts."""
    one_config(load("fused_moe_kernels"))
    index = torch.stack([torch.randperm(5, generator=torch.Generator().manual_seed(at))[:2] for at in range(12)])

    def reference(x: torch.Tensor, up: torch.Tensor, down: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        total = torch.zeros_like(x)
        for expert in range(5):
            token, place = torch.where(index == expert)
            gate, value = functional.linear(x[token], up[expert]).chunk(2, -1)
            result = functional.linear(functional.silu(gate) * value, down[expert])
            total = total.index_add(0, token, result * weights[token, place, None])
        return total

    apply = load("fused_moe").LigerFusedMoEFunction.apply
    yield from both(
        lambda x, up, down, weights: apply(x, up, down, index.int(), weights), reference,
        learnt(12, 64), learnt(5, 64, 64, seed=1, scale=0.1), learnt(5, 64, 32, seed=2, scale=0.1),
        normal(12, 2, seed=3).softmax(-1).requires_grad_(),
    )  # fmt: skip


@entry(
    "liger", OPS + "mhc.py", "_mhc_mm_norm_fwd_kernel", "_mhc_mm_norm_bwd_fused_kernel",
    "_mhc_split_sinkhorn_fwd_kernel", "_mhc_sinkhorn_bwd_hist_kernel", call="LigerMHCCoeffsFunction", tolerance=HALF,
)  # fmt: skip
def mhc_coefficients(load: Load) -> Pairs:
    """A normed product of matrices, `sigmoid`, and Sinkhorn's iteration."""
    streams, size = 4, 64

    def reference(
        x: torch.Tensor, phi: torch.Tensor, b: torch.Tensor, *alpha: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        rows = x.reshape(-1, streams * size).float()
        mix = rows @ phi.float() * torch.rsqrt(rows.pow(2).mean(-1, keepdim=True) + 1e-6)
        parts = [part * a + c for part, a, c in zip(mix.split((4, 4, 16), 1), alpha, b.split((4, 4, 16)), strict=True)]
        shares = parts[2].view(-1, 4, 4).softmax(-1) + 1e-6
        shares = shares / (shares.sum(-2, keepdim=True) + 1e-6)
        for _ in range(3):
            shares = shares / (shares.sum(-1, keepdim=True) + 1e-6)
            shares = shares / (shares.sum(-2, keepdim=True) + 1e-6)
        outer = x.shape[:-2]
        return (parts[0].sigmoid() + 1e-4).view(*outer, 4), (parts[1].sigmoid() * 2).view(*outer, 4), shares.view(
            *outer, 4, 4
        )  # fmt: skip

    apply = load("mhc").LigerMHCCoeffsFunction.apply
    one = torch.tensor(1.0)
    yield from both(
        lambda *given: apply(*given, True, 4, 1e-6, 1e-4, 1e-6, 2.0), reference, learnt(1, 8, streams, size),
        learnt(streams * size, 24, seed=1, scale=0.02), torch.zeros(24).requires_grad_(),
        *(one.clone().requires_grad_() for _ in range(3)),
    )  # fmt: skip


@entry(
    "liger", OPS + "mhc.py", "_mhc_pre_fwd_kernel", "_mhc_pre_bwd_kernel", call="LigerMHCPreFunction", tolerance=FLOAT
)
def mhc_pre(load: Load) -> Pairs:
    """A weighed sum over the streams."""
    yield from both(
        load("mhc").LigerMHCPreFunction.apply, lambda x, h: (x * h[..., None]).sum(-2), learnt(1, 8, 4, 64),
        learnt(1, 8, 4, seed=1),
    )  # fmt: skip


@entry(
    "liger", OPS + "mhc.py", "_mhc_post_res_fwd_kernel", "_mhc_post_res_bwd_kernel", call="LigerMHCPostResFunction",
    tolerance=FLOAT,
)  # fmt: skip
def mhc_post_res(load: Load) -> Pairs:
    """`torch.einsum` over the streams, and a product."""
    yield from both(
        load("mhc").LigerMHCPostResFunction.apply,
        lambda x, f, post, res: torch.einsum("...oi,...ic->...oc", res, x) + post[..., None] * f[..., None, :],
        learnt(1, 8, 4, 64), learnt(1, 8, 64, seed=1), learnt(1, 8, 4, seed=2), learnt(1, 8, 4, 4, seed=3),
    )  # fmt: skip


@entry("liger", OPS + "mhc.py", "_mhc_sinkhorn_bwd_kernel", call="mhc_sinkhorn_bwd", tolerance=1e-3)
def mhc_sinkhorn(load: Load) -> Pairs:
    """Sinkhorn's iteration and autograd."""
    mix, bias, alpha, gradient = normal(8, 24), normal(24, seed=1), torch.tensor(0.7), normal(8, 4, 4, seed=2)
    logits = (mix[:, 8:] * alpha + bias[8:]).view(8, 4, 4).requires_grad_()
    shares = logits.softmax(-1) + 1e-6
    shares = shares / (shares.sum(-2, keepdim=True) + 1e-6)
    for _ in range(3):
        shares = shares / (shares.sum(-1, keepdim=True) + 1e-6)
        shares = shares / (shares.sum(-2, keepdim=True) + 1e-6)
    shares.backward(gradient)
    yield load("mhc").mhc_sinkhorn_bwd(mix, bias, alpha, gradient, tmax=4, sinkhorn_eps=1e-6), logits.grad
