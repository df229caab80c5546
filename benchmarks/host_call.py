"""Host time of a call of the kernels to import, beside what torch has for the same, in one run.

    python benchmarks/host_call.py [--json FILE]        (needs a Hopper GPU, torch and Triton)

The problems are small and batches short, so that the GPU is never what is waited for. A figure is the median over
batches of calls, those of all candidates taken in turn; ratios are to torch's call of the same line.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
import triton

from tlx_xdsl.kernels import library  # noqa: F401 - makes the operators
from tlx_xdsl.kernels.attention import attention_forward, attention_launch
from tlx_xdsl.kernels.attention_backward import attention_backward
from tlx_xdsl.kernels.gemm import gemm, gemm_launch
from tlx_xdsl.kernels.layernorm import layer_norm
from tlx_xdsl.kernels.softmax import softmax

BATCHES = 40
CALLS = 25
"""Calls of a batch: 1,000 in all, and few enough in flight that the driver never makes the host wait."""

Calls = dict[str, Callable[[], object]]

TORCH = "torch"


def half(*shape: int) -> torch.Tensor:
    return torch.randn(shape, device="cuda").half()


def products() -> dict[str, Calls]:
    """Lines of the table: ways to call `gemm`, and torch's function for the same."""
    a, b, c, d = (half(512, 512) for _ in range(4))
    long, wide = half(512, 16384), half(16384, 512)
    bias = half(512)
    outs = [c, d]

    def another_each_time() -> torch.Tensor:
        outs.reverse()
        return gemm(a, b, out=outs[0])

    def mm_another_each_time() -> torch.Tensor:
        outs.reverse()
        return torch.mm(a, b, out=outs[0])

    def operator() -> torch.Tensor:
        return torch.ops.tlx_xdsl.gemm.default(a, b, None, [], [], "", None, "")

    return {
        "gemm(a, b, out=c)": {"ours": lambda: gemm(a, b, out=c), TORCH: lambda: torch.mm(a, b, out=c)},
        "gemm(a, b, out=another)": {"ours": another_each_time, TORCH: mm_another_each_time},
        "gemm(a, b)": {"ours": lambda: gemm(a, b), TORCH: lambda: torch.mm(a, b)},
        "K split, gemm(a, b, out=c)": {
            "ours": lambda: gemm(long, wide, out=c),
            TORCH: lambda: torch.mm(long, wide, out=c),
        },
        "bias, gemm(a, b, out=c)": {
            "ours": lambda: gemm(a, b, out=c, epilogue="bias", columns=(bias,)),
            TORCH: lambda: torch.addmm(bias, a, b, out=c),
        },
        "torch.ops.tlx_xdsl.gemm(a, b)": {"ours": operator, TORCH: lambda: torch.mm(a, b)},
        "gemm_launch(a, b, c).bind()": {"ours": gemm_launch(a, b, c).bind(), TORCH: lambda: torch.mm(a, b, out=c)},
    }


def others() -> dict[str, Calls]:
    """Lines of the other functions."""
    q = half(1, 8, 256, 128)
    o, lse = attention_forward(q, q, q, return_lse=True)
    x, y, weight = half(256, 1024), half(256, 1024), half(1024)
    sdpa = torch.nn.functional.scaled_dot_product_attention
    norm = torch.nn.functional.layer_norm
    return {
        "attention_forward(q, k, v, out=o)": {
            "ours": lambda: attention_forward(q, q, q, out=o),
            TORCH: lambda: sdpa(q, q, q),
        },
        "attention_launch(...).bind()": {
            "ours": attention_launch(q, q, q, o, lse).bind(),
            TORCH: lambda: sdpa(q, q, q),
        },
        "softmax(x, y)": {"ours": lambda: softmax(x, y), TORCH: lambda: torch.softmax(x, -1, out=y)},
        "softmax(x)": {"ours": lambda: softmax(x), TORCH: lambda: torch.softmax(x, -1)},
        "layer_norm(x, weight, weight)": {
            "ours": lambda: layer_norm(x, weight, weight),
            TORCH: lambda: norm(x, (1024,), weight, weight),
        },
    }


def gradients() -> dict[str, Calls]:
    """Lines of attention that trains: what autograd adds is in them, on both sides."""
    q, k, v, dout = (half(1, 8, 256, 128) for _ in range(4))
    out, lse = attention_forward(q, k, v, return_lse=True)
    results = [torch.empty_like(q) for _ in range(3)]
    inputs = [each.clone().requires_grad_() for each in (q, k, v)]
    sdpa = torch.nn.functional.scaled_dot_product_attention

    def forward(function: Callable[..., torch.Tensor]) -> Callable[[], torch.Tensor]:
        def call() -> torch.Tensor:
            with torch.enable_grad():
                return function(*inputs)

        return call

    def backward(function: Callable[..., torch.Tensor]) -> Callable[[], object]:
        made = forward(function)()
        return lambda: torch.autograd.grad(made, inputs, dout, retain_graph=True)

    def written() -> object:
        dq, dk, dv = results
        return attention_backward(q, k, v, out, lse, dout, dq=dq, dk=dk, dv=dv)

    theirs = backward(sdpa)
    return {
        "attention_forward(q, k, v), which want gradients": {"ours": forward(attention_forward), TORCH: forward(sdpa)},
        "attention_backward(q, k, v, out, lse, dout)": {
            "ours": lambda: attention_backward(q, k, v, out, lse, dout),
            TORCH: theirs,
        },
        "attention_backward(..., dq=, dk=, dv=)": {"ours": written, TORCH: theirs},
        "torch.autograd.grad(attention_forward(q, k, v), ...)": {"ours": backward(attention_forward), TORCH: theirs},
    }


def microseconds(call: Callable[[], object]) -> float:
    """Host time of one call, in a batch."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - start) / CALLS * 1e6


@torch.no_grad()
def measured(calls: Calls) -> dict[str, float]:
    """The median of each candidate."""
    for call in calls.values():
        microseconds(call)
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(BATCHES):
        for name, call in calls.items():
            found[name].append(microseconds(call))
    torch.cuda.synchronize()
    return {name: statistics.median(each) for name, each in found.items()}


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    arguments = parser.parse_args()
    versions = f"torch {torch.__version__}, Triton {triton.__version__}, Python {sys.version.split()[0]}"
    print(f"{torch.cuda.get_device_name()}, {versions}: host time per call, us\n")
    print(f"| call | ours | torch | ratio |\n|{'---|' * 4}")
    figures: dict[str, dict[str, float]] = {}
    for name, calls in (products() | others() | gradients()).items():
        found = figures[name] = measured(calls)
        print(f"| `{name}` | {found['ours']:.1f} | {found[TORCH]:.1f} | {found['ours'] / found[TORCH]:.2f} |")
    if arguments.json:
        arguments.json.write_text(json.dumps({"versions": versions, "microseconds": figures}, indent=1) + "\n")


if __name__ == "__main__":
    main()
