"""Plain Triton kernels, compiled by stock Triton from source to PTX, whose results on an H200 are kept."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from tests.unit.ptx.hardware import launches
from tests.unit.ptx.hardware.launches import Case

F2, BF, F4 = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)
TYPES = {"fp32": F4, "fp16": F2, "bf16": BF}
N = 1000

Make = Callable[[np.random.Generator], Any]


def randn(*shape: int, dtype: Any = F4, scale: float = 1.0) -> Make:
    return lambda rng: (rng.standard_normal(shape) * scale).astype(dtype)


def uniform(*shape: int, low: float = 0.0, high: float = 1.0, dtype: Any = F4) -> Make:
    return lambda rng: rng.uniform(low, high, shape).astype(dtype)


def ints(count: int, high: int, dtype: Any = np.int32) -> Make:
    return lambda rng: rng.integers(0, high, count).astype(dtype)


def spread(count: int) -> Make:
    """Numbers of all magnitudes."""
    return lambda rng: (rng.standard_normal(count) * 2.0 ** rng.integers(-140, 127, count)).astype(F4)


def zeros(*shape: int, dtype: Any = F4) -> Make:
    return lambda _rng: np.zeros(shape, dtype)


def _run(kernel: str, grid: tuple[int, ...], arguments: dict[str, Any], constants: dict[str, Any], warps: int):
    from tests.unit.ptx.hardware import plain_kernels

    rng = np.random.default_rng([len(arguments), *kernel.encode()])
    if "ACC" in constants:
        import triton.language as tl

        constants = {**constants, "ACC": {"fp32": tl.float32, "fp16": tl.float16}[constants["ACC"]]}
    values = {name: make(rng) if callable(make) else make for name, make in arguments.items()}
    launches.launch_stock(getattr(plain_kernels, kernel), grid, values, constants, num_warps=warps)
    return [value for value in values.values() if isinstance(value, np.ndarray)]


CASES: dict[str, Case] = {}


def _add(name: str, kernel: str, grid: Any, arguments: dict[str, Any], warps: int = 4, **constants: Any) -> None:
    label = f"plain {kernel} {name}".strip()
    assert label not in CASES, label
    CASES[label] = partial(_run, kernel, grid, arguments, constants, warps)


GRID = (4,)
for type_, dtype_ in TYPES.items():
    x, y, out = randn(N, dtype=dtype_), randn(N, dtype=dtype_), zeros(N, dtype=dtype_)
    _add(type_, "scaled_sum", GRID, {"x": x, "y": y, "out": out, "alpha": 0.7, "n": N}, BLOCK=256)
    _add(type_, "quotient", GRID, {"x": x, "y": y, "out": out, "n": N}, BLOCK=256)
    _add(type_, "gelu", GRID, {"x": x, "out": out, "n": N}, BLOCK=256)
    _add(type_, "silu", GRID, {"x": x, "out": out, "n": N}, BLOCK=256)
    rows, flat = randn(5, 700, dtype=dtype_), randn(700, dtype=dtype_)
    made = zeros(5, 700, dtype=dtype_)
    _add(type_, "softmax_rows", (5,), {"x": rows, "out": made, "n": 700}, BLOCK=1024)
    norms = {"x": rows, "weight": flat, "bias": flat, "out": made, "mean_out": zeros(5), "scale_out": zeros(5)}
    _add(type_, "layer_norm_rows", (5,), {**norms, "n": 700, "eps": 1e-5}, 8, BLOCK=1024)
    _add(type_, "rms_norm_rows", (5,), {"x": rows, "weight": flat, "out": made, "n": 700, "eps": 1e-6}, BLOCK=1024)
    _add(type_, "entropy_rows", (5,), {"x": rows, "labels": ints(5, 700), "losses": zeros(5), "n": 700}, BLOCK=1024)
    _add(type_, "fp8_rows", (5,), {"x": rows, "out": zeros(5, 700, dtype=ml_dtypes.float8_e4m3fn),
                                    "scales": zeros(5), "n": 700}, BLOCK=1024)  # fmt: skip
    _add(type_, "quantized_rows", (5,), {"x": rows, "out": zeros(5, 700, dtype=np.int8),
                                          "scales": zeros(5), "n": 700}, BLOCK=1024)  # fmt: skip
    _add(type_, "transposed", (3, 2), {"x": randn(70, 50, dtype=dtype_), "out": zeros(50, 70, dtype=dtype_),
                                       "rows": 70, "columns": 50}, BLOCK=32)  # fmt: skip
    angles = {"cosines": uniform(9, 32, low=-1), "sines": uniform(9, 32, low=-1)}
    _add(type_, "rotated", (9,), {"x": randn(9, 64, dtype=dtype_), **angles, "out": zeros(9, 64, dtype=dtype_)},
         1, HALF=32)  # fmt: skip
    product = {"a": randn(100, 96, dtype=dtype_), "b": randn(96, 80, dtype=dtype_), "c": zeros(100, 80, dtype=dtype_)}
    _add(type_, "matmul", (4,), {**product, "M": 100, "N": 80, "K": 96, "SLOPE": 0.1}, BM=64, BN=64, BK=32, GROUP=2)
    square = {"a": randn(3, 32, 32, dtype=dtype_), "b": randn(3, 32, 32, dtype=dtype_), "c": zeros(3, 32, 32)}
    _add(type_, "batched_matmul", (3,), square, 1, N=32)
    if dtype_ != F4:
        heads = {name: randn(2, 200, 64, dtype=dtype_) for name in "qkv"}
        for causal in (False, True):
            _add(f"{'causal ' * causal}{type_}", "attention", (4, 2), {**heads, "out": zeros(2, 200, 64, dtype=dtype_),
                 "scale": 0.125, "length": 200}, D=64, BM=64, BN=64, CAUSAL=causal)  # fmt: skip
for name_, make_ in (("", randn(N, scale=3)), ("of all magnitudes", spread(N))):
    _add(name_, "exponentials", GRID, {"x": make_, "out": zeros(2 * N), "n": N}, BLOCK=256)
    _add(name_, "logarithms", GRID, {"x": make_, "out": zeros(2 * N), "n": N}, BLOCK=256)
    _add(name_, "roots", GRID, {"x": make_, "out": zeros(2 * N), "n": N}, BLOCK=256)
    _add(name_, "exact_quotient", GRID, {"x": make_, "y": make_, "out": zeros(N), "n": N}, BLOCK=256)
    if name_:
        _add(name_, "quotient", GRID, {"x": make_, "y": make_, "out": zeros(N), "n": N}, BLOCK=256)
_add("", "waves", GRID, {"x": randn(N, scale=20), "out": zeros(2 * N), "n": N}, BLOCK=256)
_add("", "dropout", GRID, {"x": randn(N), "out": zeros(N), "n": N, "chance": 0.3, "seed": 7}, BLOCK=256)
_add("", "normal", GRID, {"out": zeros(N), "n": N, "seed": 7}, BLOCK=256)
_add("", "variances", (5,), {"x": randn(5, 256), "out": zeros(10)}, N=256)
_add("", "recurrence", (5,), {"decay": uniform(5, 256, low=0.8), "x": randn(5, 256), "out": zeros(5, 256)}, N=256)
_add("", "running_sums", (5,), {"x": randn(5, 512), "out": zeros(5, 512)}, N=512)
_add("", "sorted_rows", (3,), {"x": randn(3, 128), "out": zeros(3, 128)}, N=128)
_add("", "argmax_rows", (5,), {"x": randn(5, 512), "values": zeros(5), "places": zeros(5, dtype=np.int32)}, N=512)
_add("", "embedding", (20,), {"table": randn(50, 64), "tokens": ints(20, 50), "out": zeros(20, 64)}, 1, WIDTH=64)
_add("", "counts", GRID, {"x": ints(N, 40), "out": zeros(40, dtype=np.int32), "n": N}, BLOCK=256)
_add("", "adam", GRID, {"p": randn(N), "g": randn(N), "m": randn(N), "v": uniform(N), "rate": 1e-3, "step_scale": 1.5,
                        "n": N}, BLOCK=256)  # fmt: skip
_add("", "convolution", GRID, {"x": randn(N), "weight": randn(5), "out": zeros(N), "n": N}, TAPS=5, BLOCK=256)


# One tile of a product, with numbers of all kinds ---------------------------------------------------------------------


def exponents(*shape: int, dtype: Any, low: int, high: int, specials: bool = False) -> Make:
    """Numbers with exponents of a range, some of them zeros; with `specials` infinities and NaN, too, in a few rows."""

    def make(rng: np.random.Generator) -> np.ndarray:
        found = rng.standard_normal(shape) * 2.0 ** rng.integers(low, high, shape, endpoint=True)
        found[rng.random(shape) < 0.1] = 0
        if specials:
            found[1, 2], found[2, 5], found[2, 9], found[3, 3] = np.inf, np.inf, -np.inf, np.nan
        with np.errstate(over="ignore"):
            return found.astype(dtype)

    return make


_RANGES = {"fp16": (-24, 14), "bf16": (-70, 60), "fp32": (-70, 60), "e4m3": (-9, 7), "e5m2": (-16, 14)}
_DOTS = {**TYPES, "e4m3": np.dtype(ml_dtypes.float8_e4m3fn), "e5m2": np.dtype(ml_dtypes.float8_e5m2)}
for type_, dtype_ in _DOTS.items():
    low_, high_ = _RANGES[type_]
    kinds = {
        "near 1": (-2, 1), "of all magnitudes": (low_, high_), "subnormal": (low_ - 1, low_ + 6),
        "with specials": (-3, 3),
    }  # fmt: skip
    for kind_, (low_, high_) in kinds.items():
        rest = {"dtype": dtype_, "low": low_, "high": high_, "specials": kind_ == "with specials"}
        pair = {"a": exponents(64, 64, **rest), "b": exponents(64, 32, **rest)}
        for out_ in ("fp32", "fp16") if type_ == "fp16" or type_.startswith("e") else ("fp32",):
            _add(f"{type_} to {out_} {kind_}", "product", (1,), {**pair, "out": zeros(64, 32, dtype=TYPES[out_])},
                 N=32, K=64, ACC=out_)  # fmt: skip
