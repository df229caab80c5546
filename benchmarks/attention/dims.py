"""Attention forward for heads of many lengths, in bf16: candidate configurations beside cuDNN and FlashAttention.

    python benchmarks/attention/dims.py [--only 192/128] [--rounds 4] [--length 4096] [--dry]      (needs a Hopper GPU)

The configuration that `choose_config` gives is marked with a star. Everything is compiled first, as many at once as
there are cores, then compared with float32, then timed in turns, cool (`measure`). With `--dry` the candidates run
once, in the interpreter.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks.gpu import measure
from benchmarks.gpu.run import DryTimer, GpuTimer
from tests.unit.kernels import gpu_checks
from tests.unit.kernels.gpu_checks import AttentionShape
from tlx_xdsl.backend.client import default_limit
from tlx_xdsl.kernels.attention.config import AttentionConfig, choose_config
from tlx_xdsl.kernels.attention.forward import attention_launch

DTYPE = "bf16"

RIVALS = {"cuDNN": SDPBackend.CUDNN_ATTENTION, "FlashAttention": SDPBackend.FLASH_ATTENTION}

CANDIDATES = {
    (32, 32): [
        AttentionConfig(3, 160),
        AttentionConfig(3, 160, stages=3),
        AttentionConfig(2, 240),
        AttentionConfig(2, 240, 256),
    ],
    (96, 96): [
        AttentionConfig(2, 240),
        AttentionConfig(2, 240, stages=3),
        AttentionConfig(2, 240, v_piece=128),
        AttentionConfig(2, 240, piece=128, v_piece=128),
        AttentionConfig(3, 160, 64, 3),
    ],
    (192, 128): [
        AttentionConfig(2, 240),
        AttentionConfig(2, 240, 64),
        AttentionConfig(2, 240, 64, 3),
        AttentionConfig(3, 160, 64),
    ],
    (192, 192): [
        AttentionConfig(2, 240, 64),
        AttentionConfig(2, 240, 64, 3),
        AttentionConfig(2, 240, 64, v_piece=256),
    ],
    (256, 256): [AttentionConfig(2, 240, 64), AttentionConfig(2, 240, 64, v_piece=128)],
}
"""Elements of a head of Q and K, and of V: what may be best. Nothing spills with Triton 3.6.0."""


def candidates(dim: int, v_dim: int, causal: bool) -> dict[str, AttentionConfig]:
    """The configurations by name; of three consumers a causal mask has heads one by one and together."""
    chosen = choose_config(dim, causal, v_dim)
    found = CANDIDATES[dim, v_dim]
    found = found + [AttentionConfig(**{**vars(each), "all_heads": True}) for each in found if causal]
    return {f"{'*' if each == chosen else ''}{described(each)}": each for each in dict.fromkeys([chosen, *found])}


def described(config: AttentionConfig) -> str:
    """A short name."""
    pieces = "".join(f" {name} {size}" for name, size in (("piece", config.piece), ("v", config.v_piece)) if size)
    together = " together" if config.all_heads else ""
    return f"{config.consumers} x {config.registers}, {config.block_n} keys x {config.stages}{pieces}{together}"


class Problem:
    """Inputs, and results for each candidate."""

    def __init__(self, shape: AttentionShape, causal: bool, device: str):
        self.shape, self.causal = shape, causal
        self.q, self.k, self.v = gpu_checks.attention_inputs(shape, DTYPE, device)
        self.outs: dict[str, torch.Tensor] = {}
        self.flops = 2 * shape.batch * shape.heads * shape.queries * shape.keys * (shape.dim + shape.out[3])
        self.label = f"{shape}{' causal' if causal else ''}"

    def ours(self, name: str, config: AttentionConfig) -> Callable[[], Any]:
        """A candidate's launch; compiles it."""
        out = self.outs[name] = gpu_checks.poisoned(self.shape.out, self.q.dtype, self.q.device.type)
        lse = self.q.new_empty(self.q.shape[:3], dtype=torch.float32)
        return attention_launch(self.q, self.k, self.v, out, lse, causal=self.causal, config=config).bind()

    def rival(self, backend: SDPBackend) -> Callable[[], Any]:
        """Return the launch of torch's attention with one of its backends."""

        def launch() -> None:
            with sdpa_kernel(backend):
                functional.scaled_dot_product_attention(self.q, self.k, self.v, is_causal=self.causal)

        return launch

    def is_right(self, name: str) -> bool:
        """Return whether a candidate's last head is right, and all outputs are written."""
        scale = self.shape.dim**-0.5
        expected, _ = gpu_checks.attention_reference(self.q[-1, -1], self.k[-1, -1], self.v[-1, -1], scale, self.causal)
        error = gpu_checks.relative_error(self.outs[name][-1, -1], expected)
        return error < gpu_checks.LIMITS[DTYPE] and not bool(self.outs[name].isnan().any())


def measured(problem: Problem, launches: dict[str, Callable[[], Any]], timer: Any) -> Iterator[str]:
    """Lines with the rates of what works: TFLOP/s, where a causal mask counts half."""
    working: dict[str, Callable[[], Any]] = {}
    for name, launch in launches.items():
        try:
            timer.first(launch, f"{problem.label}: {name}")
        except RuntimeError as error:
            yield f"    {name:<44} {str(error).splitlines()[0][:80]}"
            continue
        if name in problem.outs and not problem.is_right(name):
            yield f"    {name:<44} WRONG"
            continue
        working[name] = launch
    times = timer.cool(working)["times"]
    flops = problem.flops / (2 if problem.causal else 1)
    for name, each in times.items():
        ratios = [theirs / ours for theirs, ours in zip(times.get("cuDNN", []), each, strict=False)]
        of_cudnn = f"{measure.median(ratios):6.3f}" if ratios else ""
        yield f"    {name:<44} {flops / measure.median(each) / 1e9:7.0f} {of_cudnn}"


def main() -> None:
    """Compile, check, time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="such as 192/128")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--length", type=int, default=4096)
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    device = "cpu" if options.dry else "cuda"
    sizes = (1, 1, 1, 64, 64) if options.dry else (4, 16, 16, options.length, options.length)
    timer = DryTimer(options.rounds) if options.dry else GpuTimer(options.rounds, idle_s=0.05, hot_rounds=0)
    dims = [each for each in CANDIDATES if options.only in (None, f"{each[0]}/{each[1]}")]
    with ThreadPoolExecutor(default_limit()) as threads:
        compiled = []
        for each, causal in itertools.product(dims, (False, True)):
            problem = Problem(AttentionShape(*sizes, *each), causal, device)
            wanted = candidates(*each, causal)
            compiled.append((problem, wanted, threads.map(problem.ours, wanted, wanted.values())))
        for problem, wanted, found in compiled:
            launches = {} if options.dry else {name: problem.rival(backend) for name, backend in RIVALS.items()}
            launches |= zip(wanted, found, strict=True)
            print(f"{problem.label}: TFLOP/s, of cuDNN", flush=True)
            for line in measured(problem, launches, timer):
                print(line, flush=True)


if __name__ == "__main__":
    main()
