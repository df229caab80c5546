"""Host time of a call of the kernels to import, beside what torch has for the same, in one run.

    python benchmarks/gpu/host_call.py [--json FILE] [--parts rows,decode]        (needs a Hopper GPU, torch and Triton)

The problems are small and batches short, so that the GPU is never what is waited for. A figure is the median over
batches of calls, those of all candidates taken in turn, in the best of three passes over the lines: what else the
machine does may slow a whole pass of a line down. Ratios are to torch's call of the same line.
"""

import argparse
import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch
import triton

from tlx_xdsl.kernels import library  # noqa: F401 - makes the operators
from tlx_xdsl.kernels.attention.backward.call import attention_backward
from tlx_xdsl.kernels.attention.decode.call import attention_decode
from tlx_xdsl.kernels.attention.forward import attention_forward, attention_launch
from tlx_xdsl.kernels.gemm.dense import gemm, gemm_launch
from tlx_xdsl.kernels.rows.cross_entropy import cross_entropy, cross_entropy_backward
from tlx_xdsl.kernels.rows.norm import layer_norm, layer_norm_residual, rms_norm, rms_norm_residual
from tlx_xdsl.kernels.rows.norms import norm_backward
from tlx_xdsl.kernels.rows.rope import rope
from tlx_xdsl.kernels.rows.softmax import softmax, softmax_backward
from tlx_xdsl.kernels.rows.swiglu import swiglu, swiglu_backward

PASSES = 3
BATCHES = 15
CALLS = 25
"""Calls of a batch: 1,125 in all, and few enough in flight that the driver never makes the host wait."""

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
    sdpa = torch.nn.functional.scaled_dot_product_attention
    return {
        "attention_forward(q, k, v, out=o)": {
            "ours": lambda: attention_forward(q, q, q, out=o),
            TORCH: lambda: sdpa(q, q, q),
        },
        "attention_launch(...).bind()": {
            "ours": attention_launch(q, q, q, o, lse).bind(),
            TORCH: lambda: sdpa(q, q, q),
        },
    }


def rows() -> dict[str, Calls]:
    """Lines of the functions of rows, and of their gradients as functions, beside what autograd of torch calls."""
    x, y, residual, dout = (half(256, 1024) for _ in range(4))
    weight = half(1024)
    target = torch.randint(0, 1024, (256,), device="cuda")
    one, logarithms, part = (torch.ones(size, device="cuda") for size in ((), (256,), (1,)))
    heads, angles, cosines = half(1, 8, 256, 128), torch.randn(256, 64, device="cuda"), half(256, 64)
    functional, aten, size = torch.nn.functional, torch.ops.aten, (1024,)
    mean, rstd = (torch.ones(256, 1, device="cuda") for _ in range(2))

    def pair(ours: Callable[[], object], theirs: Callable[[], object]) -> Calls:
        return {"ours": ours, TORCH: theirs}

    def added(norm: Callable[..., object], *factors: torch.Tensor) -> Callable[[], object]:
        return lambda: norm(x + residual, size, *factors)

    turns = itertools.cycle([(x, dout), (y, residual), (residual, x)])

    def backward_of(given: torch.Tensor, grad: torch.Tensor) -> object:
        return norm_backward(given, weight, grad, eps=1e-5, centred=True, with_bias=True)

    def torch_s_backward_of(given: torch.Tensor, grad: torch.Tensor) -> object:
        return aten.native_layer_norm_backward(grad, given, size, mean, rstd, weight, weight, [True] * 3)

    def rotated() -> torch.Tensor:
        first, second = heads.chunk(2, -1)
        return torch.cat([first * cosines - second * cosines, second * cosines + first * cosines], -1)

    return {
        "softmax(x, y)": pair(lambda: softmax(x, y), lambda: torch.softmax(x, -1, out=y)),
        "softmax(x)": pair(lambda: softmax(x), lambda: torch.softmax(x, -1)),
        "softmax_backward(y, dout)": pair(
            lambda: softmax_backward(y, dout), lambda: aten._softmax_backward_data(dout, y, -1, torch.float16)
        ),
        "layer_norm(x, weight, weight)": pair(
            lambda: layer_norm(x, weight, weight), lambda: functional.layer_norm(x, size, weight, weight)
        ),
        "rms_norm(x, weight)": pair(lambda: rms_norm(x, weight), lambda: functional.rms_norm(x, size, weight)),
        "norm_backward(x, weight, dout, centred=True)": pair(
            lambda: backward_of(x, dout), lambda: torch_s_backward_of(x, dout)
        ),
        "norm_backward(...), others each time": pair(
            lambda: backward_of(*next(turns)), lambda: torch_s_backward_of(*next(turns))
        ),
        "layer_norm_residual(x, residual, weight, weight)": pair(
            lambda: layer_norm_residual(x, residual, weight, weight), added(functional.layer_norm, weight, weight)
        ),
        "rms_norm_residual(x, residual, weight)": pair(
            lambda: rms_norm_residual(x, residual, weight), added(functional.rms_norm, weight)
        ),
        "cross_entropy(x, target)": pair(lambda: cross_entropy(x, target), lambda: functional.cross_entropy(x, target)),
        'cross_entropy(x, target, reduction="none")': pair(
            lambda: cross_entropy(x, target, reduction="none"),
            lambda: functional.cross_entropy(x, target, reduction="none"),
        ),
        "cross_entropy_backward(...)": pair(
            lambda: cross_entropy_backward(one, x, target, logarithms, part),
            lambda: aten._log_softmax_backward_data(dout, y, -1, torch.float16),
        ),
        "swiglu(x, y)": pair(lambda: swiglu(x, y), lambda: functional.silu(x) * y),
        "swiglu_backward(x, y, dout)": pair(
            lambda: swiglu_backward(x, y, dout), lambda: (aten.silu_backward(dout * y, x), functional.silu(x) * dout)
        ),
        "rope(q, cos, sin)": pair(lambda: rope(heads, angles, angles), rotated),
    }


def rows_that_train() -> dict[str, Calls]:
    """Lines of tensors that want a gradient: a call, and a call with its gradient."""
    x, dout = half(256, 1024).requires_grad_(), half(256, 1024)
    weight = half(1024).requires_grad_()
    target = torch.randint(0, 1024, (256,), device="cuda")
    functional, size = torch.nn.functional, (1024,)
    functions: dict[str, tuple[Callable[..., torch.Tensor], Callable[..., torch.Tensor], list[torch.Tensor]]] = {
        "softmax(x)": (softmax, lambda x: torch.softmax(x, -1), [x]),
        "layer_norm(x, w, w)": (
            lambda x, w: layer_norm(x, w, w), lambda x, w: functional.layer_norm(x, size, w, w), [x, weight]
        ),
        "rms_norm(x, w)": (rms_norm, lambda x, w: functional.rms_norm(x, size, w), [x, weight]),
        "swiglu(x, x)": (lambda x: swiglu(x, x), lambda x: functional.silu(x) * x, [x]),
        "cross_entropy(x, target)": (
            lambda x: cross_entropy(x, target), lambda x: functional.cross_entropy(x, target), [x]
        ),
    }  # fmt: skip

    def forward(function: Callable[..., torch.Tensor], inputs: list[torch.Tensor]) -> Callable[[], object]:
        def call() -> object:
            with torch.enable_grad():
                return function(*inputs)

        return call

    def both(function: Callable[..., torch.Tensor], inputs: list[torch.Tensor]) -> Callable[[], object]:
        def call() -> object:
            with torch.enable_grad():
                out = function(*inputs)
            return torch.autograd.grad(out, inputs, dout if out.shape else None)

        return call

    found: dict[str, Calls] = {}
    for name, (ours, theirs, inputs) in functions.items():
        found[f"{name}, wanting gradients"] = {"ours": forward(ours, inputs), TORCH: forward(theirs, inputs)}
        found[f"torch.autograd.grad({name})"] = {"ours": both(ours, inputs), TORCH: both(theirs, inputs)}
    return found


def decoding() -> dict[str, Calls]:
    """Lines of one query to a cache: of one launch, of two, of pages, of 8 bits."""
    sdpa = torch.nn.functional.scaled_dot_product_attention
    scale = torch.ones(2, device="cuda")
    found: dict[str, Calls] = {}

    def line(name: str, keys: int, batch: int, **options: object) -> None:
        q, k = half(batch, 8, 1, 128), half(batch, 2, keys, 128)
        out = torch.empty_like(q)
        cache = k
        if "pages" in options:
            cache = k.reshape(batch, 2, -1, 64, 128).transpose(1, 2).reshape(-1, 2, 64, 128)
            options["pages"] = torch.arange(len(cache), device="cuda", dtype=torch.int32).reshape(batch, -1)
        if "k_scale" in options:
            cache = cache.to(torch.float8_e4m3fn)
        for shown, into in (("", {}), (", out=", {"out": out})):
            found[f"attention_decode(q, k, v{shown}), {name}"] = {
                "ours": lambda into=into: attention_decode(q, cache, cache, **options, **into),
                TORCH: lambda: sdpa(q, k, k, enable_gqa=True),
            }

    lengths = torch.full((256,), 64, device="cuda", dtype=torch.int32)
    caches = [(half(2, 8, 1, 128), half(2, 2, 1024, 128)) for _ in range(3)]
    turns, out = itertools.cycle(caches), half(2, 8, 1, 128)

    def another() -> object:
        queries, cache = next(turns)
        return attention_decode(queries, cache, cache, out=out)

    def another_of_torch_s() -> object:
        queries, cache = next(turns)
        return sdpa(queries, cache, cache, enable_gqa=True)

    found["attention_decode(q, k, v, out=), two launches, others each time"] = {
        "ours": another, TORCH: another_of_torch_s
    }  # fmt: skip
    line("one launch", 64, 256)
    line("two launches", 1024, 2)
    line("one launch, pages and lengths", 64, 256, pages=None, lengths=lengths)
    line("two launches, fp8", 1024, 2, k_scale=scale, v_scale=scale)
    return found


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
    parser.add_argument("--parts", help="products, attention, attention-gradients, rows, rows-gradients, decode")
    arguments = parser.parse_args()
    versions = f"torch {torch.__version__}, Triton {triton.__version__}, Python {sys.version.split()[0]}"
    print(f"{torch.cuda.get_device_name()}, {versions}: host time per call, us\n")
    parts = {
        "products": products, "attention": others, "attention-gradients": gradients, "rows": rows,
        "rows-gradients": rows_that_train, "decode": decoding,
    }  # fmt: skip
    wanted = arguments.parts.split(",") if arguments.parts else parts
    lines = {name: calls for part in wanted for name, calls in parts[part]().items()}
    figures: dict[str, dict[str, float]] = {}
    for _ in range(PASSES):
        for name, calls in lines.items():
            found = measured(calls)
            figures[name] = {who: min(each, figures.get(name, {}).get(who, each)) for who, each in found.items()}
    print(f"| call | ours | torch | ratio |\n|{'---|' * 4}")
    for name, found in figures.items():
        print(f"| `{name}` | {found['ours']:.1f} | {found[TORCH]:.1f} | {found['ours'] / found[TORCH]:.2f} |")
    if arguments.json:
        arguments.json.write_text(json.dumps({"versions": versions, "microseconds": figures}, indent=1) + "\n")


if __name__ == "__main__":
    main()
