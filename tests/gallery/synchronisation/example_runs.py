"""The kernels of `examples/` with small inputs and numpy references, for tests and benchmarks of the interpreter."""

import importlib.util
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np

import tlx_xdsl
from tlx_xdsl.runtime.simulate.interpret import interpret
from tlx_xdsl.tools.launch_line.loading import load_kernel

EXAMPLES = Path(__file__).parents[3] / "examples"

DTYPES = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16}
TOLERANCE = {"fp16": 1e-3, "bf16": 8e-3}
"""Largest norm of the difference over the norm of the result: one rounding of the result, and of the probabilities."""


@dataclass
class Case:
    """One call of an example's kernel."""

    kernel: Any
    grid: tuple[int, ...]
    arguments: list[Any]
    constexprs: dict[str, Any]
    options: dict[str, Any]
    results: Callable[[], list[tuple[np.ndarray, np.ndarray]]]
    """Pairs of what the kernel has written and what it should have."""
    tolerance: float

    def run(self, **options: Any) -> Any:
        """Run the kernel and compare."""
        result = interpret(self.kernel, self.grid, *self.arguments, **self.constexprs, **self.options, **options)
        for found, expected in self.results():
            error = np.linalg.norm(found.astype(np.float64) - expected) / np.linalg.norm(expected)
            assert error < self.tolerance, f"relative error {error:.1e}"
        return result


@cache
def example(file: str, name: str) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """A kernel, its default constexprs, and its launch options."""
    kernel, defaults = load_kernel(f"{EXAMPLES / file}:{name}")
    return kernel, dict(defaults.constexprs), dict(defaults.options)


def launchable(name: str) -> ModuleType:
    """A fresh module of an example, whose kernels Triton can launch; those that our tools load are read only."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _poisoned(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.full(shape, np.nan, dtype)


def gemm(file: str, m: int, n: int, k: int, *, dtype: str = "fp16", programs: int | None = None, **constexprs) -> Case:
    """C = A @ B. `programs` is the grid of a persistent kernel."""
    kernel, settings, options = example(file, "matmul")
    settings = settings | constexprs
    rng = np.random.default_rng(m * 7919 + n * 31 + k)
    a = rng.standard_normal((m, k)).astype(DTYPES[dtype])
    b = rng.standard_normal((k, n)).astype(DTYPES[dtype])
    c = _poisoned((m, n), DTYPES[dtype])
    block_m, block_n, block_k = (settings[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
    tiles = -(-m // block_m) * -(-n // block_n)
    if file.endswith("gemm_pipelined.py"):
        arguments = [a, b, c, m, n, k, k, n, n]
    else:
        halves = "ws" in file or "cooperative" in file
        rows = block_m // 2 if halves and file.startswith("hopper") else block_m
        columns = settings.get("EPILOGUE_N", block_n)
        blocks = ((a, [rows, block_k]), (b, [block_k, block_n]), (c, [rows, columns]))
        arguments = [*(tlx_xdsl.TensorDescriptor.from_tensor(array, block) for array, block in blocks), m, n, k]

    def results():
        return [(c, a.astype(np.float64) @ b.astype(np.float64))]

    return Case(kernel, (programs or tiles,), arguments, settings, options, results, TOLERANCE[dtype])


def attention(
    file: str, heads: int, length: int, *, head_dim: int = 128, causal: bool = False, dtype: str = "fp16", programs=None
) -> Case:
    """Forward attention of `heads` heads, and the logarithm of the softmax's denominators."""
    kernel, settings, options = example(file, "attention")
    settings = settings | {"HEAD_DIM": head_dim, "CAUSAL": causal}
    rng = np.random.default_rng(heads * 7919 + length * 31 + head_dim)
    q, k, v = (rng.standard_normal((heads, length, head_dim)).astype(DTYPES[dtype]) for _ in range(3))
    out, lse = _poisoned(q.shape, DTYPES[dtype]), _poisoned(q.shape[:2], np.float32)
    scale = head_dim**-0.5
    block_m, block_n = settings["BLOCK_M"], settings["BLOCK_N"]
    rows = block_m // 2
    blocks = ((q, rows), (k, block_n), (v, block_n), (out, rows))
    describe = tlx_xdsl.TensorDescriptor.from_tensor
    descriptors = [describe(array.reshape(-1, head_dim), [part, head_dim]) for array, part in blocks]
    if "pingpong" in file:
        grid, numbers = (programs or length // block_m * heads,), [scale, heads, length]
    else:
        grid, numbers = (length // block_m, heads), [scale, length]

    def results():
        scores = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) * scale
        if causal:
            scores = np.where(np.tri(length, dtype=bool), scores, -math.inf)
        top = scores.max(-1, keepdims=True)
        weights = np.exp(scores - top)
        total = weights.sum(-1, keepdims=True)
        return [(out, weights / total @ v.astype(np.float64)), (lse, (np.log(total) + top)[..., 0])]

    return Case(kernel, grid, [*descriptors, lse, *numbers], settings, options, results, TOLERANCE[dtype])


CASES: dict[str, Callable[[], Case]] = {
    "ws-gemm": lambda: gemm("hopper_gemm_ws.py", 256, 512, 192),
    "ws-gemm-ragged": lambda: gemm("hopper_gemm_ws.py", 200, 304, 136),
    "ws-gemm-bf16": lambda: gemm("hopper_gemm_ws.py", 136, 264, 328, dtype="bf16"),
    "ws-gemm-small-tiles": lambda: gemm("hopper_gemm_ws.py", 200, 200, 520, BLOCK_N=128, NUM_STAGES=2),
    "pipelined-gemm": lambda: gemm("hopper_gemm_pipelined.py", 256, 256, 192),
    "pipelined-gemm-ragged": lambda: gemm("hopper_gemm_pipelined.py", 200, 304, 400),
    "portable-gemm": lambda: gemm("ampere_gemm_pipelined.py", 256, 128, 96),
    "portable-gemm-ragged": lambda: gemm("ampere_gemm_pipelined.py", 200, 144, 112, dtype="bf16"),
    "cooperative-gemm": lambda: gemm("hopper_gemm_persistent_cooperative.py", 384, 512, 192, programs=2),
    "cooperative-gemm-ragged": lambda: gemm("hopper_gemm_persistent_cooperative.py", 300, 712, 200, programs=3),
    "pingpong-gemm": lambda: gemm("hopper_gemm_persistent_pingpong.py", 384, 256, 192, programs=2),
    "pingpong-gemm-ragged": lambda: gemm("hopper_gemm_persistent_pingpong.py", 300, 328, 200, programs=2),
    "ws-attention": lambda: attention("hopper_attention_ws.py", 1, 384),
    "ws-attention-causal": lambda: attention("hopper_attention_ws.py", 2, 256, head_dim=64, causal=True),
    "pipelined-attention": lambda: attention("hopper_attention_pipelined.py", 1, 384),
    "pipelined-attention-causal": lambda: attention(
        "hopper_attention_pipelined.py", 2, 256, head_dim=64, causal=True, dtype="bf16"
    ),
    "pingpong-attention": lambda: attention("hopper_attention_pingpong.py", 2, 384, programs=2),
    "pingpong-attention-causal": lambda: attention(
        "hopper_attention_pingpong.py", 3, 384, head_dim=64, causal=True, programs=2
    ),
    "blackwell-gemm": lambda: gemm("blackwell_gemm_ws.py", 256, 512, 192, programs=2),
    "blackwell-gemm-ragged": lambda: gemm("blackwell_gemm_ws.py", 300, 712, 200, programs=3),
    "blackwell-attention": lambda: attention("blackwell_attention_ws.py", 1, 512),
    "blackwell-attention-causal": lambda: attention(
        "blackwell_attention_ws.py", 2, 512, head_dim=64, causal=True, dtype="bf16"
    ),
}
"""Every example, with sizes that are no multiples of its tiles where it takes them."""
