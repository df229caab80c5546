"""The kernels that are run whole and mutated, small: every ring of buffers still goes round, phases repeat."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tests.gallery.synchronisation import cluster_runs
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.runtime.driver.compilation import Specialization, frontend_module
from tlx_xdsl.runtime.launch.tensor_descriptor import TensorDescriptor
from tlx_xdsl.runtime.simulate.interpret import passes_until
from tlx_xdsl.tools.launch_line.loading import load_kernel
from tlx_xdsl.transforms.pipelines import run_pipeline

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"
CLUSTER_KERNELS = Path(__file__).resolve().parents[1]

FRONTEND, ALIASED, TTGIR = "frontend", "aliased", "ttgir"
"""Stages: after the frontend, after storage aliasing, after the last pass."""


@dataclass
class Problem:
    """Arguments for one launch, and what must come out."""

    arguments: Sequence[Any]
    names: Sequence[str]
    grid: tuple[int, int, int]
    outputs: Sequence[np.ndarray]
    expected: Sequence[np.ndarray]
    tolerance: float
    """Largest difference, as a part of the largest expected number."""
    cluster: tuple[int, int, int] = (1, 1, 1)

    def reset(self) -> None:
        """Forget what an earlier run has written."""
        for output in self.outputs:
            output[...] = np.nan

    def is_right(self) -> bool:
        """Return whether the last run has computed what it should."""
        return all(
            bool(np.abs(got.astype(np.float32) - want).max() <= self.tolerance * np.abs(want).max())
            for got, want in zip(self.outputs, self.expected, strict=True)
        )


@dataclass(frozen=True)
class Case:
    """A kernel with the tile sizes that it is run at."""

    name: str
    file: str
    kernel: str
    constexprs: Mapping[str, Any]
    signature: Mapping[str, str]
    """What differs from the file's own."""
    problem: Callable[..., Problem]
    """Makes a problem of a random generator, the constexprs, and the sizes."""
    sizes: tuple[int, ...]
    """Of the problem that mutants run: small, but every phase of every barrier comes twice."""
    others: Sequence[tuple[int, ...]] = ()
    """Other sizes that must run without a report, ragged ones among them."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def module(self, stage: str = FRONTEND) -> ModuleOp:
        """The kernel's IR at a stage of the pipeline."""
        kernel, defaults = load_kernel(f"{EXAMPLES / self.file}:{self.kernel}")
        options = {key: value for key, value in defaults.options.items() if key in ("num_warps", "target")}
        constexprs = {**defaults.constexprs, **self.constexprs}
        signature = {**defaults.signature, **self.signature}
        module = frontend_module(kernel.source, Specialization(signature, constexprs, **{**options, **self.options}))
        run_pipeline(module, passes_until(stage, module), make_context())
        return module

    def make(self, sizes: tuple[int, ...] | None = None, seed: int = 0) -> Problem:
        """A problem with random inputs."""
        _, defaults = load_kernel(f"{EXAMPLES / self.file}:{self.kernel}")
        constexprs = {**defaults.constexprs, **self.constexprs}
        return self.problem(np.random.default_rng(seed), constexprs, *(sizes or self.sizes))


def _blocks(*arrays: tuple[np.ndarray, Sequence[int]]) -> list[TensorDescriptor]:
    return [TensorDescriptor.from_tensor(array, block) for array, block in arrays]


def _matrices(rng: np.random.Generator, m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a = rng.standard_normal((m, k)).astype(np.float16)
    b = rng.standard_normal((k, n)).astype(np.float16)
    return a, b, np.full((m, n), np.nan, np.float16)


def _gemm(
    a_rows: str, c_columns: str, programs: int
) -> Callable[[np.random.Generator, Mapping[str, Any], int, int, int], Problem]:
    """A product by TMA: `a_rows` is the constexpr of the rows of A's blocks; 0 programs are one for each tile."""

    def problem(rng: np.random.Generator, tile: Mapping[str, Any], m: int, n: int, k: int) -> Problem:
        a, b, c = _matrices(rng, m, n, k)
        rows = tile["BLOCK_M"] // 2 if a_rows == "half" else tile["BLOCK_M"]
        descriptors = _blocks(
            (a, [rows, tile["BLOCK_K"]]), (b, [tile["BLOCK_K"], tile["BLOCK_N"]]), (c, [rows, tile[c_columns]])
        )
        tiles = -(-m // tile["BLOCK_M"]) * -(-n // tile["BLOCK_N"])
        names = ["a_desc", "b_desc", "c_desc", "M", "N", "K"]
        expected = a.astype(np.float32) @ b.astype(np.float32)
        return Problem([*descriptors, m, n, k], names, (min(programs or tiles, tiles), 1, 1), [c], [expected], 2e-3)

    return problem


def _pointer_gemm(rng: np.random.Generator, tile: Mapping[str, Any], m: int, n: int, k: int) -> Problem:
    a, b, c = _matrices(rng, m, n, k)
    tiles = -(-m // tile["BLOCK_M"]) * -(-n // tile["BLOCK_N"])
    names = ["a_ptr", "b_ptr", "c_ptr", "M", "N", "K", "stride_a", "stride_b", "stride_c"]
    return Problem(
        [a, b, c, m, n, k, k, n, n], names, (tiles, 1, 1), [c], [a.astype(np.float32) @ b.astype(np.float32)], 2e-3
    )


def _attention(
    groups: int, *, persistent: bool = False
) -> Callable[[np.random.Generator, Mapping[str, Any], int, int], Problem]:
    """Attention whose tiles are halved into `groups`; a persistent one gets a single program."""

    def problem(rng: np.random.Generator, tile: Mapping[str, Any], heads: int, length: int) -> Problem:
        dim = tile["HEAD_DIM"]
        q, k, v = (rng.standard_normal((heads * length, dim)).astype(np.float16) for _ in range(3))
        out, lse = np.full_like(q, np.nan), np.full(heads * length, np.nan, np.float32)
        scale = 1.3 / dim**0.5
        want, want_lse = _reference(q, k, v, heads, scale, causal=tile["CAUSAL"])
        rows = tile["BLOCK_M"] // groups
        descriptors = _blocks(
            (q, [rows, dim]), (k, [tile["BLOCK_N"], dim]), (v, [tile["BLOCK_N"], dim]), (out, [rows, dim])
        )
        names = ["q_desc", "k_desc", "v_desc", "o_desc", "lse_ptr", "sm_scale"]
        tiles = length // tile["BLOCK_M"]
        counts, grid = ([heads, length], (1, 1, 1)) if persistent else ([length], (tiles, heads, 1))
        count_names = ["HEADS", "LENGTH"][-len(counts) :]
        return Problem(
            [*descriptors, lse, scale, *counts], [*names, *count_names], grid, [out, lse], [want, want_lse], 5e-3
        )

    return problem


def _reference(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, heads: int, scale: float, *, causal: bool
) -> tuple[np.ndarray, np.ndarray]:
    q, k, v = (array.astype(np.float32).reshape(heads, -1, array.shape[1]) for array in (q, k, v))
    scores = q @ k.transpose(0, 2, 1) * scale
    if causal:
        length = scores.shape[1]
        scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True)
    return (weights / total @ v).reshape(-1, q.shape[-1]), (top + np.log(total)).ravel()


_TMA_64 = {"a_desc": "tensordesc<fp16[64, 64]>", "b_desc": "tensordesc<fp16[64, 64]>"} | {
    "c_desc": "tensordesc<fp16[64, 64]>"
}
_HEADS_64 = {name: "tensordesc<fp16[64, 64]>" for name in ("q_desc", "k_desc", "v_desc", "o_desc")}
_KEYS_128 = {name: "tensordesc<fp16[128, 64]>" for name in ("k_desc", "v_desc")}
_HEADS_128 = {name: "tensordesc<fp16[128, 64]>" for name in ("q_desc", "k_desc", "v_desc", "o_desc")}
_TMA_128 = {"a_desc": "tensordesc<fp16[128, 64]>", "b_desc": "tensordesc<fp16[64, 64]>"} | {
    "c_desc": "tensordesc<fp16[128, 32]>"
}
_SMALL = {"BLOCK_N": 64, "HEAD_DIM": 64}

_TILES = {name: "tensordesc<fp16[64, 64]>" for name in ("a_desc", "c_desc")}
_PAIRS = {"a_desc": "tensordesc<fp16[128, 64]>", "b_desc": "tensordesc<fp16[64, 64]>"}
_SIZES = {"M": "i32", "N": "i32", "K": "i32"}


def _of_clusters(
    run: Callable[..., cluster_runs.Case], names: str
) -> Callable[[np.random.Generator, Mapping[str, Any], int, int, int], Problem]:
    """A problem as the tests of cluster kernels set it."""

    def problem(_rng: np.random.Generator, tile: Mapping[str, Any], *sizes: int) -> Problem:
        made = run(*sizes, **tile)
        outputs, expected = zip(*made.results(), strict=True)
        grid = (*made.grid, 1, 1)[:3]
        return Problem(made.arguments, names.split(), grid, outputs, expected, 2e-3, made.options["cluster"])

    return problem


CASES = (
    Case(
        "gemm_ws", "hopper_gemm_ws.py", "matmul", {"BLOCK_N": 64}, _TMA_64, _gemm("half", "BLOCK_N", 0),
        (128, 64, 448), [(200, 136, 328), (64, 64, 64), (128, 192, 128)],
    ),
    Case(
        "gemm_cooperative", "hopper_gemm_persistent_cooperative.py", "matmul", {"BLOCK_N": 64}, _TMA_64,
        _gemm("half", "BLOCK_N", 1), (384, 64, 256), [(200, 136, 328), (64, 64, 64), (384, 64, 64)],
    ),
    Case(
        "gemm_pingpong", "hopper_gemm_persistent_pingpong.py", "matmul",
        {"BLOCK_M": 64, "BLOCK_N": 64, "NUM_STAGES": 3}, _TMA_64, _gemm("whole", "BLOCK_N", 1),
        (320, 64, 256), [(200, 136, 328), (64, 64, 64), (128, 64, 64)],
    ),
    Case(
        "gemm_pipelined", "hopper_gemm_pipelined.py", "matmul", {"BLOCK_M": 64, "BLOCK_N": 64, "NUM_STAGES": 3}, {},
        _pointer_gemm, (64, 64, 448), [(200, 144, 336), (64, 64, 64)], {"num_warps": 4},
    ),
    Case(
        "attention_ws", "hopper_attention_ws.py", "attention", _SMALL, _HEADS_64, _attention(2),
        (1, 384), [(2, 256), (1, 128)],
    ),
    Case(
        "attention_pipelined", "hopper_attention_pipelined.py", "attention", _SMALL, _HEADS_64, _attention(2),
        (1, 384), [(2, 256), (1, 128)],
    ),
    Case(
        "attention_pingpong", "hopper_attention_pingpong.py", "attention", {"HEAD_DIM": 64}, _HEADS_64 | _KEYS_128,
        _attention(2, persistent=True), (1, 384), [(2, 256), (3, 128)],
    ),
    Case(
        "blackwell_gemm", "blackwell_gemm_ws.py", "matmul", {"BLOCK_N": 64, "NUM_STAGES": 3, "EPILOGUE_N": 32},
        _TMA_128, _gemm("whole", "EPILOGUE_N", 1), (640, 64, 256), [(200, 136, 328), (64, 64, 64)],
    ),
    Case(
        "blackwell_attention", "blackwell_attention_ws.py", "attention", {"HEAD_DIM": 64}, _HEADS_128,
        _attention(2), (1, 512), [(2, 256)],
    ),
    Case(
        "cluster_gemm", f"{CLUSTER_KERNELS / 'cluster_gemm.py'}", "matmul",
        {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "NUM_STAGES": 3},
        _TILES | {"b_desc": "tensordesc<fp16[32, 64]>"} | _SIZES,
        _of_clusters(cluster_runs.multicast, "a_desc b_desc c_desc M N K"), (128, 64, 448), [(200, 168, 200)],
        {"cluster": (2, 1, 1)},
    ),
    Case(
        "cluster_pair", f"{CLUSTER_KERNELS / 'pair_gemm.py'}", "matmul",
        {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "NUM_STAGES": 3},
        _PAIRS | {"c_desc": "tensordesc<fp16[128, 128]>"} | _SIZES,
        _of_clusters(cluster_runs.pair, "a_desc b_desc c_desc M N K"), (256, 128, 448), [(300, 200, 200)],
        {"target": "sm_100a", "cluster": (2, 1, 1)},
    ),
)  # fmt: skip
