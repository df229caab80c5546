"""Cases of the tutorials that are parts of models: MXFP8 attention, generalized attention, HSTU, IKBO, plain Triton."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch

from tests.conformance.tutorial_cases import (
    BLACKWELL,
    HOPPER,
    Load,
    add,
    check,
    check_angle,
    heads,
    mxfp8,
    one_config,
    seeded,
)  # fmt: skip

# Attention in MXFP8 --------------------------------------------------------------------------------------------------

_MXFP8 = "blackwell_fa_ws_pipelined_persistent_mxfp8"
_MXFP8_FORWARD = {
    "BLOCK_M": 256, "BLOCK_N": 128, "NUM_BUFFERS_Q": 1, "NUM_BUFFERS_KV": 3, "NUM_BUFFERS_QK": 1, "NUM_MMA_GROUPS": 2,
    "NUM_Q_SCALE_TMEM_BUFFERS": 1, "NUM_KV_SCALE_TMEM_BUFFERS": 2, "GROUP_SIZE_N": 1, "RESCALE_OPT": True,
}  # fmt: skip


def mxfp8_forward(head: int, causal: bool) -> Callable[[Load], None]:
    """The forward pass with quantized inputs; the reference is that of the inputs before."""

    def run(load: Load) -> None:
        module = load(_MXFP8)
        seeded(20)
        inputs = module.generate_attention_inputs((1, 1, 256, head), "cuda", torch.float8_e4m3fn)
        (q, q_scale, q_ref), (k, k_scale, k_ref), (v, v_scale, v_ref) = inputs
        reference = torch.nn.functional.scaled_dot_product_attention(q_ref, k_ref, v_ref, scale=0.5, is_causal=causal)
        result = module.attention(q, k, v, q_scale, k_scale, v_scale, 0.5, causal, config=dict(_MXFP8_FORWARD))
        check(result, reference, 0.15)

    return run


def mxfp8_backward(causal: bool) -> Callable[[Load], None]:
    """The gradients from quantized operands; what the forward pass leaves is computed by torch."""

    def run(load: Load) -> None:
        module, tokens, head = load(_MXFP8), 256, 128
        seeded(20)
        shape = (1, 1, tokens, head)
        inputs = module.generate_attention_inputs(shape, "cuda", torch.float8_e4m3fn)
        (q, q_scale, q_ref), (k, k_scale, k_ref), (_, _, v_ref) = inputs
        leaves = [each.detach().requires_grad_() for each in (q_ref, k_ref, v_ref)]
        scores = (leaves[0] @ leaves[1].transpose(2, 3)).float() * 0.5
        if causal:
            scores = scores.masked_fill(~torch.ones(tokens, tokens).tril().bool(), float("-inf"))
        out = (torch.softmax(scores, -1) @ leaves[2].float()).to(torch.bfloat16)
        gradient = torch.randn_like(out)
        expected = torch.autograd.grad(out, leaves, gradient)
        maxima = (torch.logsumexp(scores, -1) * 1.44269504).detach().contiguous()

        def quantized(tensor: torch.Tensor, transposed: bool) -> tuple[torch.Tensor, torch.Tensor]:
            flat = tensor.detach().reshape(tokens, head)
            result = mxfp8(flat.t().contiguous() if transposed else flat.contiguous())
            data = result.qdata.t() if transposed else result.qdata
            sizes = (head, tokens) if transposed else (tokens, head)
            return data.reshape(shape).contiguous(), module.swizzled_to_tma_preshuffled(result.scale, *sizes, 32, 1)

        (q_dk, q_dk_scale), (k_dq, k_dq_scale) = quantized(q_ref, True), quantized(k_ref, True)
        (do, do_scale), (do_dv, do_dv_scale) = quantized(gradient, False), quantized(gradient, True)
        v, v_scale = quantized(v_ref, False)
        found = module.attention_bwd(
            do, do_dv, q, q_dk, k, k_dq, v, out.detach(), maxima, q_scale, q_dk_scale, k_scale, k_dq_scale, v_scale,
            do_scale, do_dv_scale, 0.5, do_bf16=gradient, causal=causal,
        )  # fmt: skip
        for ours, theirs in zip(found, expected, strict=True):
            check_angle(ours, theirs, 0.98)

    return run


for _causal in (False, True):
    _kind = "_causal" if _causal else ""
    for _head in (64, 128):
        add(f"blackwell_fa_mxfp8_{_head}{_kind}", mxfp8_forward(_head, _causal), BLACKWELL)
    add(f"blackwell_fa_mxfp8_backward{_kind}", mxfp8_backward(_causal), BLACKWELL)


# Generalized dot-product attention, HSTU and IKBO --------------------------------------------------------------------


def gdpa(load: Load) -> None:
    """Attention with an activation instead of softmax, of sequences of several lengths."""
    module = load("blackwell-gdpa")
    one_config(module.gdpa_kernel_tma_ws_blackwell)
    torch.manual_seed(0)
    lengths, head = (256, 100), 128
    offsets = torch.tensor([0, lengths[0], sum(lengths)], dtype=torch.int32)
    q, k, v = (torch.rand(sum(lengths), 1, head, dtype=torch.bfloat16) - 0.5 for _ in range(3))
    result = module.gdpa_forward_tlx(
        query=q, key=k, value=v, query_offset=offsets, key_offset=offsets, max_seq_len_q=256, max_seq_len_kv=256,
        activation="fast_gelu",
    )  # fmt: skip
    for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        x = q[start:end, 0].float() @ k[start:end, 0].float().T
        act = x * torch.tanh((0.0356774081 * x * x + 0.7978845608) * x) + x
        check(result[start:end, 0], act.to(torch.bfloat16).float() @ v[start:end, 0].float(), 0.5, 5e-2)


add("blackwell_gdpa", gdpa, BLACKWELL)


def cross_attention(variant: str) -> Callable[[Load], None]:
    """Few targets against a history, with SiLU as the activation."""

    def run(load: Load) -> None:
        module = load("blackwell-cross-attention")
        for name in ("_attn_fwd_triton", "_attn_fwd_triton_spec", "_attn_fwd_single_q", "_attn_fwd_pipeline"):
            one_config(getattr(module, name))
        torch.manual_seed(0)
        lengths, targets, dim = torch.tensor([200, 128]), torch.tensor([20, 32]), 128
        zero = torch.zeros(1, dtype=torch.int64)
        offsets, offsets_q = (torch.cat([zero, each.cumsum(0)]) for each in (lengths, targets))
        q, k, v = (
            torch.empty(int(each[-1]), 2, dim, dtype=torch.bfloat16).uniform_(-1, 1)
            for each in (offsets_q, offsets, offsets)
        )
        alpha, scale = dim**-0.5, torch.tensor(1.0 / 232)
        result = module.hstu_cross_mha(
            max_seq_len=232, max_q_len=32, alpha=alpha, q=q, k=k, v=v, seq_offsets=offsets, seq_offsets_q=offsets_q,
            attn_scale=scale, variant=variant, num_softmax_heads=0, num_targets=targets, enable_tma=False,
        )  # fmt: skip
        for batch in range(2):
            mine, theirs = (slice(int(each[batch]), int(each[batch + 1])) for each in (offsets_q, offsets))
            x = torch.einsum("qhd,khd->hqk", q[mine].float(), k[theirs].float()) * alpha
            expected = torch.einsum("hqk,khd->qhd", torch.nn.functional.silu(x) * scale, v[theirs].float())
            check(result[mine], expected, 1e-2, 2e-2)

    return run


for _variant in ("triton", "triton_dyn_spec", "tlx_single_q", "tlx_pipeline"):
    add(f"blackwell_cross_attention_{_variant}", cross_attention(_variant), BLACKWELL)


def one_config_each(module: Any) -> None:
    """Leave all tuners of a module one configuration each."""
    for value in vars(module).values():
        if hasattr(value, "configs") and hasattr(value, "fn"):
            value.configs = value.configs[:1]


def hstu_self(kind: str) -> Callable[[Load], None]:
    """Causal self-attention with SiLU, and its gradients; the tutorial's forward pass is always causal."""

    def run(load: Load) -> None:
        os.environ["BENCH_HEADS"] = "1"
        bench = load("hstu_self_attn/bench_self")
        one_config_each(bench.A)
        one_config_each(bench.T)
        torch.manual_seed(0)
        tokens = 256
        q, k, v, gradient, offsets, scale = bench.make(tokens, 1)
        expected = bench.torch_ref(q, k, v, gradient, offsets, scale, True)
        out = getattr(bench, f"run_{kind}")(q, k, v, offsets, tokens, scale)
        out.backward(gradient)
        for ours, theirs in zip((q.grad, k.grad, v.grad), expected, strict=True):
            check_angle(ours, theirs, 0.999)

    return run


add("blackwell_hstu_self_tlx", hstu_self("tlx"), BLACKWELL)
add("blackwell_hstu_self_triton", hstu_self("triton"), BLACKWELL)


def hstu_cross(variant: str, shared: bool) -> Callable[[Load], None]:
    """Cross-attention with softmax, and its gradients; `shared`: keys are values, too."""

    def run(load: Load) -> None:
        bench = load("hstu_cross_attn/bench_bwd")
        bench.H = bench.H_KV = 1
        one_config_each(bench.xa)
        bench.force()
        torch.manual_seed(0)
        queries, keys = 128, 256
        q, k, v, gradient, offsets_kv, offsets_q, scale = bench.make(queries, keys, 1, shared=shared)
        expected = bench.torch_ref(q, k, v, gradient, offsets_kv, offsets_q, scale, shared=shared)
        kind = next(kind for name, kind, _ in bench.VARIANTS if name == variant)
        out = bench._fwd(kind, "0", q, k, v, offsets_kv, offsets_q, keys, queries, scale, shared=shared)
        out.backward(gradient)
        for ours, theirs in zip((q.grad, k.grad, v.grad), expected, strict=True):
            if theirs is not None:
                check_angle(ours, theirs, 0.999)

    return run


for _variant, _shared in (("redq", False), ("tlx", False), ("tlx_2kv", True)):
    add(f"blackwell_hstu_cross_{_variant}", hstu_cross(_variant, _shared), BLACKWELL)


def ikbo_lce(load: Load) -> None:
    """Products of candidates' embeddings, and of their user's, which are broadcast in the kernel."""
    module = load("ikbo/ikbo_lce_triton")
    one_config(module._ikbo_lce_kernel)
    torch.manual_seed(0)
    inputs = module.create_inputs(5, 100, 64, 96, 80, 3, device="cuda")
    check(module.ikbo_lce(*inputs), module.lce_reference(*(each.float() for each in inputs[:4]), inputs[4]), 5e-2, 1e-2)


def ikbo_attention(load: Load) -> None:
    """Attention of candidates over their user's history."""
    module = load("ikbo/ikbo_fa_triton")
    one_config_each(module)
    seeded(0)
    sizes = (32, 2, 64, 128)
    query, key, value, index, grid = module.create_inputs(6, *sizes, cand_to_user_ratio=3, device="cuda")
    reference = module.fa_reference(query, key, value, index, *sizes)
    check(module.ikbo_fa(query, key, value, index, grid, *sizes), reference, 1e-2)


add("ikbo_lce", ikbo_lce, HOPPER, BLACKWELL)
add("ikbo_attention", ikbo_attention, HOPPER, BLACKWELL)


# Attention in plain Triton, of Meta's automatic warp specialization ---------------------------------------------------


def plain_attention(file: str, backward: bool) -> Callable[[Load], None]:
    """Attention whose loops ask for warp specialization."""

    def run(load: Load) -> None:
        module = load(file)
        one_config_each(module)
        q, k, v = heads((1, 1, 256, 64))
        reference = torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=0.5)
        options = (False, 0, False) if backward else ()
        if file.endswith("_dp"):
            config = {
                "BLOCK_M": 256, "BLOCK_N": 128, "SUBTILING": True, "SUBTILING_P": False, "VECT_MUL": 0,
                "FADD2_REDUCE": False, "num_stages": 2, "num_warps": 4,
            }  # fmt: skip
            result = module.attention(q, k, v, False, 0.5, "ws", config=config)
        else:
            result = module.attention(q, k, v, False, 0.5, "ws", *options)
        check(result.detach(), reference.detach(), 1e-2)
        if backward:
            gradient = torch.randn_like(reference)
            expected = torch.autograd.grad(reference, (q, k, v), gradient)
            for ours, theirs in zip(torch.autograd.grad(result, (q, k, v), gradient), expected, strict=True):
                check(ours, theirs, 2e-2)

    return run


for _where in ("auto", "device"):
    add(f"blackwell_plain_attention_{_where}", plain_attention(f"fused_attention_ws_{_where}_tma", True), BLACKWELL)
    add(
        f"blackwell_plain_attention_{_where}_dp",
        plain_attention(f"fused_attention_ws_{_where}_tma_dp", False),
        BLACKWELL,
    )
