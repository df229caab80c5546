"""Shared parts of the examples' `main()`: run a kernel on the GPU and compare it with torch in float32."""

import math

import torch

import tlx_xdsl

DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}


def relative_error(result, expected):
    """The norm of the difference over the norm of `expected`; NaN when something was not written."""
    return ((result.float() - expected).norm() / expected.norm()).item()


def launch(kernel, launch_arguments, tensors, options):
    """Launch a kernel; where it can't be compiled, the program ends with the compiler's message."""
    grid, arguments = launch_arguments(*tensors)
    try:
        kernel[grid](*arguments, **options)
    except tlx_xdsl.CompilationError as error:
        raise SystemExit(f"not run, since it can't be compiled:\n{error}") from None


def check_matmul(kernel, launch_arguments, options, shapes):
    """Compare c = a @ b for each (m, n, k) of `shapes`, in fp16 and bf16. The output is NaN before.

    `options` are the kernel's constants and how it is launched.
    """
    for name, dtype in DTYPES.items():
        for m, n, k in shapes:
            a = torch.randn((m, k), device="cuda", dtype=dtype)
            b = torch.randn((k, n), device="cuda", dtype=dtype)
            c = torch.full((m, n), float("nan"), device="cuda", dtype=dtype)
            launch(kernel, launch_arguments, (a, b, c), options)
            error = relative_error(c, a.float() @ b.float())
            print(f"{name} {m} x {n} x {k}: relative error {error:.1e}")
            assert error < 1e-2


def attention_in_float32(q, k, v, scale, causal):
    """softmax(q @ k^T * scale) @ v and the logarithm of the softmax's denominator, head by head."""
    scores = q.float() @ k.float().transpose(-1, -2) * scale
    if causal:
        hidden = torch.ones(scores.shape[-2:], device=q.device, dtype=torch.bool).triu(1)
        scores.masked_fill_(hidden, -math.inf)
    return scores.softmax(-1) @ v.float(), scores.logsumexp(-1)


def check_attention(kernel, launch_arguments, options, shapes=((2, 3, 512), (1, 4, 2048))):
    """Compare forward attention for each (batch, heads, length), both head dims and types, with and without a mask."""
    for name, dtype in DTYPES.items():
        for head_dim in (64, 128):
            for causal in (False, True):
                variant = options | {"HEAD_DIM": head_dim, "CAUSAL": causal}
                for batch, heads, length in shapes:
                    shape = (batch, heads, length, head_dim)
                    q, k, v = (torch.randn(shape, device="cuda", dtype=dtype) for _ in range(3))
                    out = torch.full(shape, float("nan"), device="cuda", dtype=dtype)
                    lse = torch.full(shape[:3], float("nan"), device="cuda")
                    scale = head_dim**-0.5
                    launch(kernel, launch_arguments, (q, k, v, out, lse, scale), variant)
                    expected, expected_lse = attention_in_float32(q, k, v, scale, causal)
                    errors = relative_error(out, expected), relative_error(lse, expected_lse)
                    mask = "causal" if causal else "full"
                    print(f"{name} {shape} {mask}: relative errors {errors[0]:.1e} and {errors[1]:.1e}")
                    assert errors[0] < 1e-2
                    assert errors[1] < 1e-4
