"""The portable kernels with small inputs and numpy references; compiled, and run at any stage."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.versions import INSTALLED
from tlx_xdsl.backend import BackendOptions, BackendResult, compile_ttgir
from tlx_xdsl.runtime.driver.compilation import Specialization, compile_text
from tlx_xdsl.runtime.simulate.interpret import interpret, interpret_text
from tlx_xdsl.tools.launch_line.loading import load_kernel

HERE = Path(__file__).parent
GEMM = f"{HERE.parents[2] / 'examples' / 'ampere_gemm_pipelined.py'}:matmul"
KERNELS = {
    "matmul": GEMM,
    **{
        name: f"{HERE / 'portable_kernels.py'}:{name}"
        for name in ("attention", "row_norms", "scale_add", "producer_consumer")
    },
}


@dataclass
class Run:
    """One call of a kernel."""

    name: str
    grid: int
    arguments: list[Any]
    """The runtime arguments, in order."""
    out: np.ndarray
    expected: np.ndarray
    tolerance: float

    def check(self) -> None:
        """Compare what was written with what should have been."""
        error = np.linalg.norm(self.out.astype(np.float64) - self.expected) / np.linalg.norm(self.expected)
        assert error < self.tolerance, f"relative error {error:.1e}"

    def interpret(self, target: str, stage: str, **options: Any) -> None:
        """Run at `frontend`, at `ttgir` or, as `final`, on the TTGIR after stock Triton's passes, and compare."""
        kernel, defaults = load_kernel(KERNELS[self.name])
        options["jobs"] = 1
        if stage == "final":
            result = interpret_text(compiled(self.name, target).ttgir, self.grid, self.arguments, **options)
        else:
            options |= {"num_warps": defaults.options.get("num_warps", 4), "target": target}
            result = interpret(kernel, self.grid, *self.arguments, **defaults.constexprs, stage=stage, **options)
        # Arguments without a known alignment are copied in narrow pieces, which a pass reports in a remark.
        assert not [each for each in result.warnings if each.severity != "remark"]
        self.check()


@cache
def compiled(name: str, target: str) -> BackendResult:
    """A kernel's products for a target."""
    kernel, defaults = load_kernel(KERNELS[name])
    num_warps = defaults.options.get("num_warps", 4)
    wanted = Specialization(defaults.signature, defaults.constexprs, target=target, num_warps=num_warps)
    text = compile_text(kernel.source, wanted, triton_version=INSTALLED)
    return compile_ttgir(text.ttgir, BackendOptions(target=target, num_warps=num_warps))


def _random(*shape: int, dtype: Any = np.float16) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def _poisoned(*shape: int, dtype: Any = np.float16) -> np.ndarray:
    return np.full(shape, np.nan, dtype)


def _matmul() -> Run:
    # No multiples of the tiles, which are 128 x 128 x 32.
    m, n, k = 200, 144, 112
    a, b, c = _random(m, k), _random(k, n), _poisoned(m, n)
    return Run("matmul", 4, [a, b, c, m, n, k, k, n, n], c, a.astype(float) @ b.astype(float), 1e-3)


def _attention() -> Run:
    length, dim = 192, 64
    q, out = _random(length, dim), _poisoned(length, dim)
    k, v = np.roll(q, 17, 0), np.roll(q, 5, 1)
    scale = dim**-0.5
    weights = np.exp(q.astype(float) @ k.astype(float).T * scale)
    expected = weights / weights.sum(-1, keepdims=True) @ v.astype(float)
    return Run("attention", 3, [q, k, v, out, scale, length], out, expected, 1e-3)


def _row_norms() -> Run:
    x, out = _random(32, 336, dtype=np.float32), _poisoned(32, dtype=np.float32)
    return Run("row_norms", 2, [x, out, 336], out, (x.astype(float) ** 2).sum(1), 1e-6)


def _scale_add() -> Run:
    n = 7 * 1024 + 16
    x, y, out = _random(n, dtype=np.float32), _random(n, 1, dtype=np.float32), _poisoned(n, dtype=np.float32)
    return Run("scale_add", 2, [x, y, out, 2.5, n], out, 2.5 * x + y[:, 0], 1e-6)


def _producer_consumer() -> Run:
    n = 5 * 256 + 16
    x, out = _random(n, dtype=np.float32), _poisoned(n, dtype=np.float32)
    return Run("producer_consumer", 1, [x, out, n], out, 2.0 * x, 1e-6)


RUNS: dict[str, Callable[[], Run]] = {
    "matmul": _matmul,
    "attention": _attention,
    "row_norms": _row_norms,
    "scale_add": _scale_add,
    "producer_consumer": _producer_consumer,
}
