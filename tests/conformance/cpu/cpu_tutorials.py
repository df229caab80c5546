"""Triton's tutorials of plain Triton, on small shapes; without those for a GPU's own instructions (10, 11)."""

from __future__ import annotations

import torch
from torch.nn import functional

from tests.conformance.cpu.cpu_entries import Load, Pairs, both, entry, learnt, normal, one_config
from tests.conformance.cpu.cpu_philox import rand

FOLDER = "python/tutorials/"
FLOAT, HALF = 1e-5, 1e-2


@entry("triton", FOLDER + "01-vector-add.py", "add_kernel", call="add")
def vector_add(load: Load) -> Pairs:
    """A sum."""
    x, y = normal(3000), normal(3000, seed=1)
    yield load("01-vector-add").add(x, y), x + y


@entry("triton", FOLDER + "02-fused-softmax.py", "softmax_kernel", tolerance=FLOAT)
def fused_softmax(load: Load) -> Pairs:
    """`torch.softmax`."""
    x, y = normal(13, 781), torch.empty(13, 781)
    load("02-fused-softmax").softmax_kernel[(4,)](y, x, 781, 781, 13, 781, BLOCK_SIZE=1024, num_stages=2)
    yield y, x.softmax(1)


@entry("triton", FOLDER + "03-matrix-multiplication.py", "matmul_kernel", call="matmul", tolerance=HALF)
def matrix_multiplication(load: Load) -> Pairs:
    """A product of matrices in float32, with and without an activation."""
    module = load("03-matrix-multiplication")
    one_config(module)
    a, b = normal(150, 96, dtype=torch.float16), normal(96, 200, seed=1, dtype=torch.float16)
    product = a.float() @ b.float()
    yield module.matmul(a, b), product
    yield module.matmul(a, b, activation="leaky_relu"), functional.leaky_relu(product, 0.01)


@entry("triton", FOLDER + "04-low-memory-dropout.py", "_dropout", "_seeded_dropout", call="dropout", tolerance=FLOAT)
def low_memory_dropout(load: Load) -> Pairs:
    """`torch.where`; with Philox in Python."""
    module, x = load("04-low-memory-dropout"), normal(2000)
    keep = (normal(2000, seed=1) > 0).int()
    yield module.dropout(x, keep, 0.5), torch.where(keep > 0, x / 0.5, 0.0)
    drawn = rand(123, torch.arange(2000, dtype=torch.int32))
    yield module.seeded_dropout(x, p=0.5, seed=123), torch.where(drawn > 0.5, x / 0.5, 0.0)


@entry(
    "triton", FOLDER + "05-layer-norm.py", "_layer_norm_fwd_fused", "_layer_norm_bwd_dx_fused", "_layer_norm_bwd_dwdb",
    call="LayerNorm.apply", tolerance=1e-3,
)  # fmt: skip
def layer_norm(load: Load) -> Pairs:
    """`torch.nn.functional.layer_norm`, forward and backward."""
    apply = load("05-layer-norm").LayerNorm.apply
    yield from both(
        lambda x, w, b: apply(x, (300,), w, b, 1e-5), lambda x, w, b: functional.layer_norm(x, (300,), w, b, 1e-5),
        learnt(40, 300), learnt(300, seed=1), learnt(300, seed=2),
    )  # fmt: skip


@entry("triton", FOLDER + "06-fused-attention.py", "_attn_fwd", call="attention", tolerance=HALF)
def fused_attention(load: Load) -> Pairs:
    """`scaled_dot_product_attention` in float32, causal and not."""
    module = load("06-fused-attention")
    one_config(module)
    q, k, v = (normal(1, 2, 128, 32, seed=at, dtype=torch.float16) for at in range(3))
    for causal in (False, True):
        want = functional.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=causal, scale=0.5)
        yield module.attention(q, k, v, causal, 0.5, False), want


@entry(
    "triton", FOLDER + "06-fused-attention.py", "_attn_fwd", "_attn_bwd_preprocess", "_attn_bwd", call="attention",
    tolerance=3e-2,
)  # fmt: skip
def fused_attention_backward(load: Load) -> Pairs:
    """`scaled_dot_product_attention`, forward and backward."""
    module = load("06-fused-attention")
    one_config(module)
    yield from both(
        lambda q, k, v: module.attention(q, k, v, True, 0.5, False),
        lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.5),
        *(learnt(1, 2, 128, 32, seed=at, dtype=torch.float16, scale=0.5) for at in range(3)),
    )  # fmt: skip


@entry("triton", FOLDER + "07-extern-functions.py", "asin_kernel", tolerance=FLOAT)
def extern_functions(load: Load) -> Pairs:
    """`torch.asin`."""
    x, y = normal(3000).clamp(-1, 1), torch.empty(3000)
    load("07-extern-functions").asin_kernel[(3,)](x, y, 3000, BLOCK_SIZE=1024)
    yield y, x.asin()


def _group() -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    sizes = ((128, 128, 64), (256, 128, 32), (128, 256, 96))
    return (
        [normal(m, k, seed=m, dtype=torch.float16) for m, _, k in sizes],
        [normal(k, n, seed=n, dtype=torch.float16) for _, n, k in sizes],
    )


@entry("triton", FOLDER + "08-grouped-gemm.py", "grouped_matmul_kernel", call="group_gemm_fn", tolerance=HALF)
def grouped_gemm(load: Load) -> Pairs:
    """Products of matrices in float32."""
    module, (left, right) = load("08-grouped-gemm"), _group()
    one_config(module)
    for got, a, b in zip(module.group_gemm_fn(left, right), left, right, strict=True):
        yield got, a.float() @ b.float()


@entry("triton", FOLDER + "08-grouped-gemm.py", "grouped_matmul_tma_kernel", call="group_gemm_tma_fn", tolerance=HALF)
def grouped_gemm_descriptors(load: Load) -> Pairs:
    """Products of matrices in float32."""
    module, (left, right) = load("08-grouped-gemm"), _group()
    one_config(module)
    transposed = [b.T.contiguous() for b in right]
    for got, a, b in zip(module.group_gemm_tma_fn(left, transposed), left, right, strict=True):
        yield got, a.float() @ b.float()


@entry(
    "triton",
    FOLDER + "09-persistent-matmul.py",
    "matmul_kernel",
    "matmul_kernel_persistent",
    call="matmul",
    tolerance=HALF,
)
def persistent_matmul(load: Load) -> Pairs:
    """A product of matrices in float32."""
    module = load("09-persistent-matmul")
    one_config(module)
    a, b = normal(200, 96, dtype=torch.float16), normal(96, 300, seed=1, dtype=torch.float16)
    yield module.matmul(a, b), a.float() @ b.float()
    yield module.matmul_persistent(a, b), a.float() @ b.float()


@entry(
    "triton", FOLDER + "09-persistent-matmul.py", "matmul_kernel_tma", "matmul_kernel_tma_persistent",
    "matmul_kernel_descriptor_persistent", call="matmul_descriptor_persistent", tolerance=HALF,
)  # fmt: skip
def persistent_matmul_descriptors(load: Load) -> Pairs:
    """A product of matrices in float32, by descriptors of the host's and of the kernel's."""
    module = load("09-persistent-matmul")
    one_config(module)
    a, b = normal(200, 96, dtype=torch.float16), normal(304, 96, seed=1, dtype=torch.float16)
    for function in (module.matmul_tma, module.matmul_tma_persistent, module.matmul_descriptor_persistent):
        yield function(a, b, False), a.float() @ b.float().T
