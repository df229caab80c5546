"""`torch.compile` by `tlx_xdsl.torch.inductor` beside inductor's C++ backend and eager torch, on one thread each.

    python benchmarks/cpu/inductor.py [--only softmax] [--rounds 15]       (needs torch for CPUs, Triton and llvmlite)

Results are compared with eager torch first: the largest difference over the largest element. A time is the least CPU
time of the rounds, in which all take turns. Prints the table of docs/torch.md.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import tlx_xdsl
from tlx_xdsl.torch.inductor import backend

Run = Callable[[], Any]
Compiler = Callable[[Any], Any]


class Transformer(nn.Module):
    """A block with causal attention, of width 256 and 4 heads."""

    def __init__(self, width: int = 256, heads: int = 4):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        q, k, v = (
            self.qkv(self.before(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        )
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(attended)
        return x + self.down(F.gelu(self.up(self.between(x))))


class Residual(nn.Module):
    """A block of a ResNet."""

    def __init__(self, channels: int = 64):
        super().__init__()
        self.first, self.second = (nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
        self.norm, self.last = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)

    def forward(self, x: Any) -> Any:
        return F.relu(self.last(self.second(F.relu(self.norm(self.first(x))))) + x)


def adam(*tensors: Any) -> Any:
    """The third step of Adam from moments of zero; parameters first, then as many gradients."""
    half = len(tensors) // 2
    found: list[Any] = []
    for parameter, gradient in zip(tensors[:half], tensors[half:], strict=True):
        first, second = gradient * 0.1, gradient * gradient * 0.001
        step = first / (1 - 0.9**3) / ((second / (1 - 0.999**3)).sqrt() + 1e-8)
        found.append(parameter - 1e-3 * step)
    return tuple(found)


def inference(module: nn.Module, x: Any) -> Callable[[Compiler], Run]:
    """A call without gradients."""

    def made(compiler: Compiler) -> Run:
        compiled = compiler(copy.deepcopy(module).eval())

        def run() -> Any:
            with torch.no_grad():
                return compiled(x)

        return run

    return made


def training(module: nn.Module, x: Any) -> Callable[[Compiler], Run]:
    """A call and the gradients of all parameters."""

    def made(compiler: Compiler) -> Run:
        own = copy.deepcopy(module)
        compiled, parameters = compiler(own), list(own.parameters())

        def run() -> Any:
            y = compiled(x)
            return y.detach(), *torch.autograd.grad(y.square().mean(), parameters)

        return run

    return made


def function(call: Callable[..., Any], *inputs: Any) -> Callable[[Compiler], Run]:
    """A call of a function."""

    def made(compiler: Compiler) -> Run:
        compiled = compiler(call)
        return lambda: compiled(*inputs)

    return made


def graphs() -> Iterator[tuple[str, Callable[[Compiler], Run]]]:
    """The graphs by name."""
    random = torch.randn
    tokens, images = random(4, 256, 256), random(8, 64, 32, 32)
    yield "transformer block, 4 x 256 x 256, inference", inference(Transformer(), tokens)
    yield "transformer block, training", training(Transformer(), tokens)
    yield "ResNet block, 8 x 64 x 32 x 32, inference", inference(Residual(), images)
    yield "ResNet block, training", training(Residual(), images)
    shapes = [(512, 512)] * 4 + [(512,)] * 8
    yield "step of Adam, 12 parameters", function(adam, *(random(shape) for shape in shapes + shapes))
    yield "softmax 1000 x 1000", function(lambda x: torch.softmax(x, -1), random(1000, 1000))
    yield "layer norm 1000 x 1000", function(lambda x: F.layer_norm(x, (1000,)), random(1000, 1000))
    yield "gelu, 1,000,000", function(F.gelu, random(1_000_000))
    yield "sum, 4,000,000", function(lambda x: x.sum(), random(4_000_000))
    square = random(1024, 1024)
    yield "sum with a transposed matrix, 1024 x 1024", function(lambda x, y: x + y.t(), square, random(1024, 1024))
    classes = torch.randint(0, 32000, (512,))
    yield "cross entropy, 512 x 32,000", function(F.cross_entropy, random(512, 32000), classes)
    yield "cumsum 500 x 2000", function(lambda x: x.cumsum(-1), random(500, 2000))
    yield "max pooling, 8 x 64 x 64 x 64", function(lambda x: F.max_pool2d(x, 2), random(8, 64, 64, 64))


def difference(found: Any, expected: Any) -> float:
    """The largest of any result, over its largest element."""
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    return max(float((each - other).abs().max() / (other.abs().max() + 1e-9)) for each, other in pairs)


def main() -> int:
    """Print the table; the exit status is 1 where a result differs by more than 1e-4."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="only graphs with this in their names")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(1)
    tlx_xdsl.set_cpu_threads(1)
    torch.manual_seed(0)
    ratios: list[float] = []
    wrong = 0.0
    print("| graph | tlx_xdsl | C++ backend | eager | ratio to C++ |\n|---|---|---|---|---|")
    for name, made in graphs():
        if options.only not in name:
            continue
        torch.compiler.reset()
        runs: dict[str, Run] = {"eager": made(lambda each: each)}
        runs["tlx"] = made(lambda each: torch.compile(each, backend=backend))
        runs["cpp"] = made(torch.compile)
        expected = runs["eager"]()
        wrong = max(wrong, difference(runs["tlx"](), expected))
        best = dict.fromkeys(runs, float("inf"))
        for _ in range(options.rounds):
            for kind, run in runs.items():
                begin = time.thread_time_ns()
                run()
                best[kind] = min(best[kind], (time.thread_time_ns() - begin) / 1e6)
        ratio = best["tlx"] / best["cpp"]
        ratios.append(ratio)
        shown = f"**{ratio:.2f}**" if ratio > 1.3 else f"{ratio:.2f}"
        print(f"| {name} | {best['tlx']:.3g} | {best['cpp']:.3g} | {best['eager']:.3g} | {shown} |", flush=True)
    print(f"\nmean of the ratios {statistics.mean(ratios):.2f}; largest difference from eager torch {wrong:.0e}")
    return int(wrong > 1e-4)


if __name__ == "__main__":
    sys.exit(main())
