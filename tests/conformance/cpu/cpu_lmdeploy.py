"""Kernels of LMDeploy's PyTorch engine: norms, gates, rotations, sampling, quantised products, attention, experts."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from tests.conformance.cpu.cpu_entries import EXACT, Load, Pairs, below, entry, ints, longs, normal
from tests.conformance.cpu.cpu_philox import rand

CUDA = "lmdeploy/pytorch/kernels/cuda/"
HALF = 1e-2
"""The tolerance of bf16 and f16."""


def _load(load: Load, name: str) -> Any:
    return load(f"pytorch.kernels.cuda.{name}")


@entry("lmdeploy", CUDA + "rms_norm.py", "add_rms_norm_kernel", call="rms_norm", tolerance=HALF)
def rms_norm(load: Load) -> Pairs:
    """The formula in torch, with and without a residual, in float32, bf16 and f16."""
    norm = _load(load, "rms_norm").rms_norm
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for shape in ((2, 3, 257), (5, 130), (33,)):
            x, residual = normal(*shape, dtype=dtype), normal(*shape, seed=1, dtype=dtype)
            weight = normal(shape[-1], seed=2, dtype=dtype)

            def formula(x: torch.Tensor, weight: torch.Tensor = weight) -> torch.Tensor:
                wide = x.float()
                return wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6) * weight.float()

            yield norm(x, weight).float(), formula(x)
            got, kept = norm(x, weight, residual=residual)
            yield kept, x + residual
            yield got.float(), formula(x + residual)


@entry("lmdeploy", CUDA + "activation.py", "_silu_and_mul_kernel", call="silu_and_mul", tolerance=HALF)
def silu_and_mul(load: Load) -> Pairs:
    """`silu` of one half, times the other, in float32, bf16 and f16."""
    function = _load(load, "activation").silu_and_mul
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for width in (33, 512, 700):
            x = normal(7, 2 * width, dtype=dtype)
            yield function(x), functional.silu(x[:, :width].float()) * x[:, width:].float()


@entry(
    "lmdeploy", CUDA + "apply_rotary_pos_emb.py", "apply_rotary_pos_emb_qk_kernel", call="apply_rotary_pos_emb",
    tolerance=HALF,
)  # fmt: skip
def rotary(load: Load) -> Pairs:
    """`x * cos + rotate_half(x) * sin`, and a product of complex numbers, in float32 and bf16."""
    function = _load(load, "apply_rotary_pos_emb").apply_rotary_pos_emb
    for dtype in (torch.float32, torch.bfloat16):
        q, k = normal(11, 4, 80, dtype=dtype), normal(11, 2, 80, seed=1, dtype=dtype)
        half = normal(11, 40, seed=2)
        angles = half.repeat(1, 2)
        cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)
        for got, x in zip(function(q, k, cos, sin), (q, k), strict=True):
            low, high = x.chunk(2, -1)
            yield got, x * cos[:, None] + torch.cat((-high, low), -1) * sin[:, None]
        real, imaginary = half.cos().to(dtype), half.sin().to(dtype)
        for got, x in zip(function(q, k, real, imaginary, complex_mode=True), (q, k), strict=True):
            turned = torch.view_as_complex(x.float().unflatten(-1, (-1, 2))) * torch.complex(
                real.float(), imaginary.float()
            )[:, None]  # fmt: skip
            yield got.float(), torch.view_as_real(turned).flatten(-2)


@entry(
    "lmdeploy", CUDA + "bitonic_topk.py", "_bitonic_topk_kernel0", "_bitonic_topk_kernel1", call="bitonic_topk",
    tolerance=EXACT,
)  # fmt: skip
def bitonic_topk(load: Load) -> Pairs:
    """`torch.topk` of rows of several lengths: 64 of 300, and 512 of 3,000."""
    topk = _load(load, "bitonic_topk").bitonic_topk
    for kept, width, lengths in ((64, 300, (300, 128, 40)), (512, 3000, (3000, 1100))):
        scores = torch.stack([torch.randperm(width).float() for _ in lengths])
        ones = torch.ones(len(lengths), dtype=torch.int32)
        got = topk(scores, ones, ints(*lengths), kept)
        want = torch.full((len(lengths), kept), -1, dtype=torch.int32)
        for row, length in enumerate(lengths):
            number = min(kept, length)
            want[row, :number] = scores[row, :length].topk(number).indices.int()
        yield got, want


@entry(
    "lmdeploy", CUDA + "multinomial_sampling.py", "_multinomial_sampling_kernel", call="multinomial_sampling",
    tolerance=EXACT,
)  # fmt: skip
def multinomial_sampling(load: Load) -> Pairs:
    """The first sum of probabilities that reaches Philox's number in Python."""
    sample = _load(load, "multinomial_sampling").multinomial_sampling
    scores = normal(9, 300, scale=2).softmax(-1).sort(-1, descending=True).values
    seeds, offsets = below(1 << 30, 9, dtype=torch.int64), below(1000, 9, seed=1, dtype=torch.int64)
    indices = torch.stack([torch.randperm(300) for _ in range(9)])
    drawn = torch.stack([
        rand(int(seed), offset.int()[None])[0] for seed, offset in zip(seeds, offsets, strict=True)
    ])  # fmt: skip
    at = (scores.cumsum(-1) < drawn[:, None]).sum(-1)
    yield sample(scores, seeds, offsets, indices), indices.gather(1, at[:, None])[:, 0]


@entry("lmdeploy", CUDA + "w8a8_triton_kernels.py", call="matmul_kernel_dynamic_quant", tolerance=HALF)
def w8a8(load: Load) -> Pairs:
    """Quantising of rows, of a normed row, too, and the product of the matrices that they stand for."""
    module = _load(load, "w8a8_triton_kernels")
    x, weight = normal(37, 200), normal(70, 200, seed=1)
    quantised, scales = module.per_token_quant_int8(x, 1e-7)
    yield scales, x.abs().amax(-1, keepdim=True) / 127
    yield (quantised * scales - x).abs().amax(-1) <= scales[:, 0] * 0.501, torch.ones(37, dtype=torch.bool)
    eight, factors = module.per_channel_quant(weight, torch.int8)
    residual = normal(37, 70, seed=2)
    for more in (None, residual):
        got = module.matmul_kernel_dynamic_quant(
            quantised, eight, scales, factors, residual=more, output_dtype=torch.float32
        )  # fmt: skip
        want = (quantised.float() @ eight.float().T) * scales * factors.T
        yield got, want if more is None else want + more
    norm = normal(200, seed=3)
    eight, scales = module.rms_norm_dynamic_quant(x, norm, 1e-6)
    normed = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * norm
    yield scales, normed.abs().amax(-1, keepdim=True) / 127
    yield (eight * scales - normed).abs() <= scales * 0.51, torch.ones(37, 200, dtype=torch.bool)


@entry("lmdeploy", CUDA + "fused_lora.py", "_fused_lora_kernel", call="fused_lora", tolerance=HALF)
def fused_lora(load: Load) -> Pairs:
    """Two products of matrices for each sequence's adapter, alone and added to a tensor."""
    function = _load(load, "fused_lora").fused_lora
    ranks, lengths, adapters = longs(8, 4, 16), longs(9, 1, 21), longs(2, 0, 1)
    starts = torch.cat((longs(0), lengths.cumsum(0)[:-1]))
    of_rank = torch.cat((longs(0), ranks.cumsum(0)[:-1]))
    scaling = torch.tensor([0.5, 1.0, 2.0])
    x = normal(31, 70, dtype=torch.float16, scale=0.3)
    a, b = (
        normal(28, 70, seed=1, dtype=torch.float16, scale=0.3),
        normal(28, 90, seed=2, dtype=torch.float16, scale=0.3),
    )
    want = torch.zeros(31, 90)
    for start, length, adapter in zip(starts.tolist(), lengths.tolist(), adapters.tolist(), strict=True):
        rows = slice(start, start + length)
        part = slice(int(of_rank[adapter]), int(of_rank[adapter] + ranks[adapter]))
        want[rows] = x[rows].float() @ a[part].float().T @ b[part].float() * scaling[adapter]
    more = x, a, b, scaling, of_rank, ranks, starts, lengths, adapters, 16, 21
    yield function(*more), want
    kept = normal(31, 90, seed=3, dtype=torch.float16)
    yield function(*more, output=kept.clone(), cum=True), want + kept.float()


@entry(
    "lmdeploy", CUDA + "flashattention.py", "_flash_prefill_fwd_kernel", call="flash_attn_varlen_func", tolerance=2e-2
)
def flash_attention(load: Load) -> Pairs:
    """`softmax` and products of matrices for each sequence, causal and not, with shared and capped heads."""
    attend = _load(load, "flashattention").flash_attn_varlen_func
    queries, keys, heads, shared, size = (37, 5, 130), (37, 70, 130), 4, 2, 64
    q = normal(sum(queries), heads, size, dtype=torch.float16)
    k, v = (normal(shared, sum(keys), size, seed=at, dtype=torch.float16) for at in (1, 2))
    starts = [torch.tensor((0, *each)).cumsum(0).int() for each in (queries, keys)]
    for causal, cap in ((False, 0.0), (True, 0.0), (True, 5.0)):
        got = attend(q, k, v, *starts, max_seqlen_q=max(queries), causal=causal, softcap=cap)
        found: list[torch.Tensor] = []
        for at, (rows, columns) in enumerate(zip(queries, keys, strict=True)):
            of_q, of_k = (int(each[at]) for each in starts)
            mine = q[of_q : of_q + rows].float().transpose(0, 1)
            both = [each[:, of_k : of_k + columns].float().repeat_interleave(heads // shared, 0) for each in (k, v)]
            scores = mine @ both[0].transpose(1, 2) / size**0.5
            scores = cap * torch.tanh(scores / cap) if cap else scores
            if causal:
                seen = torch.arange(columns) <= torch.arange(rows)[:, None] + columns - rows
                scores = scores.masked_fill(~seen, float("-inf"))
            found.append((scores.softmax(-1) @ both[1]).transpose(0, 1))
        yield got.float(), torch.cat(found)


NIBBLES = 0, 16, 4, 20, 8, 24, 12, 28
"""The lowest bit of each of the eight columns that a word holds."""


@entry("lmdeploy", CUDA + "awq_kernels.py", "awq_linear_kernel", call="awq_linear", tolerance=HALF)
def awq_linear(load: Load) -> Pairs:
    """The product with the matrix that words of 8 nibbles, zeros and scales stand for; the kernel holds PTX."""
    linear = _load(load, "awq_kernels").awq_linear
    rows, inner, columns, group = 19, 256, 128, 128
    codes, zeros = below(16, inner, columns, dtype=torch.int64), below(16, 2, columns, seed=1, dtype=torch.int64)
    scales = normal(2, columns, seed=2).abs().half() * 0.1

    def packed(each: torch.Tensor) -> torch.Tensor:
        words = (each.unflatten(1, (-1, 8)) << longs(*NIBBLES)).sum(-1)
        return torch.where(words >= 1 << 31, words - (1 << 32), words).int()

    x = normal(rows, inner, dtype=torch.float16)
    spread = [each.repeat_interleave(group, 0).float() for each in (zeros, scales)]
    want = x.float() @ ((codes.float() - spread[0]) * spread[1])
    yield linear(x, packed(codes), scales, packed(zeros)).float() / 10, want / 10


@entry(
    "lmdeploy", CUDA + "blocked_gemm_fp8.py", "_quant_fp8_kernel", "_gemm_fp8_tma_kernel", "_gemm_fp8_kernel",
    call="blocked_gemm_fp8", tolerance=HALF,
)  # fmt: skip
def blocked_gemm_fp8(load: Load) -> Pairs:
    """Quantising in torch's fp8, and the product of the matrices that they stand for, by pointers and descriptors."""
    module = _load(load, "blocked_gemm_fp8")
    x, weight = normal(37, 256), normal(200, 256, seed=1).to(torch.float8_e4m3fn)
    quantised, scales = module.quant_fp8(x, 128)
    largest = x.unflatten(1, (2, 128)).abs().amax(-1) / 448
    yield scales, largest
    yield quantised.float() / 448, (x.unflatten(1, (2, 128)) / largest[..., None]).flatten(1).to(
        torch.float8_e4m3fn
    ).float() / 448  # fmt: skip
    factors = normal(2, 2, seed=2).abs()
    back = (quantised.float().unflatten(1, (2, 128)) * scales[..., None]).flatten(1)
    spread = factors.repeat_interleave(128, 0).repeat_interleave(128, 1)[:, :200]
    want = back @ (weight.float().T * spread)
    for second in (weight.T, weight.T.float().contiguous().to(torch.float8_e4m3fn)):
        got = module.blocked_gemm_fp8(quantised, scales, second, factors, torch.float32)
        yield got / 10, want / 10


@entry("lmdeploy", CUDA + "fused_noaux_tc.py", "_fused_noaux_tc_kernel", call="fused_noaux_tc_routing", tolerance=1e-5)
def noaux_routing(load: Load) -> Pairs:
    """The experts with the greatest scores in the groups whose two greatest are, with `torch.topk`."""
    route = _load(load, "fused_noaux_tc").fused_noaux_tc_routing
    logits, bias = normal(11, 256), normal(256, seed=1, scale=0.1)
    for groups, kept, renormalised in ((8, 4, True), (8, 3, False), (1, 1, True)):
        weights, places = route(
            logits, bias, n_group=groups, topk_group=kept, top_k=8, renormalize=renormalised
        )  # fmt: skip
        scores = logits.sigmoid()
        choice = scores + bias
        best = choice.unflatten(1, (groups, -1)).topk(2, -1).values.sum(-1).topk(kept, -1).indices
        seen = torch.zeros(11, groups).scatter(1, best, 1.0).bool().repeat_interleave(256 // groups, 1)
        want = (choice.masked_fill(~seen, 0.0) if groups > 1 else choice).topk(8, -1).indices
        yield places, want
        chosen = scores.gather(1, want)
        yield weights, 2.5 * (chosen / chosen.sum(-1, keepdim=True) if renormalised else chosen)


@entry("lmdeploy", CUDA + "fused_moe.py", call="fused_moe", tolerance=HALF)
def fused_moe(load: Load) -> Pairs:
    """A loop over the experts of each token, with and without biases, in f16."""
    mixture = _load(load, "fused_moe").fused_moe
    tokens, experts, size, inner, kept = 13, 8, 64, 96, 3
    x = normal(tokens, size, dtype=torch.float16, scale=0.5)
    first = normal(experts, 2 * inner, size, seed=1, dtype=torch.float16, scale=0.2)
    second = normal(experts, size, inner, seed=2, dtype=torch.float16, scale=0.2)
    weights, places = normal(tokens, experts, seed=3).softmax(-1).topk(kept, -1)
    biases = normal(experts, 2 * inner, seed=4, dtype=torch.float16), normal(experts, size, seed=5, dtype=torch.float16)
    for one, two in ((None, None), biases):
        got = mixture(x, first, second, weights, places, kept, w1_bias=one, w2_bias=two, renormalize=True)
        want = torch.zeros(tokens, size)
        for token in range(tokens):
            for weight, expert in zip(weights[token] / weights[token].sum(), places[token].tolist(), strict=True):
                both = first[expert].float() @ x[token].float() + (0 if one is None else one[expert].float())
                gated = functional.silu(both[:inner]) * both[inner:]
                want[token] += weight * (second[expert].float() @ gated + (0 if two is None else two[expert].float()))
        yield got.float(), want


@entry("lmdeploy", CUDA + "fill_kv_cache.py", "_fill_kv_cache_kernel", call="fill_kv_cache", tolerance=EXACT)
def fill_kv_cache(load: Load) -> Pairs:
    """Rows put into the blocks of their sequences, one by one."""
    fill = _load(load, "fill_kv_cache").fill_kv_cache
    heads, size, block = 3, 40, 16
    for counts, lengths in (((21, 3, 40), (21, 50, 45)), ((1, 1, 1), (17, 33, 5))):
        starts = torch.cat((longs(0), longs(*counts).cumsum(0)[:-1]))
        states = [normal(sum(counts), heads, size, seed=at, dtype=torch.float16) for at in (0, 1)]
        caches = [torch.full((12, block, heads, size), 7.0, dtype=torch.float16) for _ in states]
        wanted = [each.clone() for each in caches]
        places = torch.randperm(12).view(3, 4)
        fill(*states, *caches, starts, longs(*counts), longs(*lengths), max(counts), places)
        for state, cache in zip(states, wanted, strict=True):
            for row, (count, length) in enumerate(zip(counts, lengths, strict=True)):
                for at in range(count):
                    position = length - count + at
                    cache[places[row, position // block], position % block] = state[int(starts[row]) + at]
        yield from zip(caches, wanted, strict=True)
