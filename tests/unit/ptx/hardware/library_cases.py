"""Kernels to import and examples for Hopper, on small inputs, whose results on an H200 are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from tests.gallery.synchronisation.example_runs import CASES as EXAMPLES
from tests.unit.kernels.references import heads, matrix, poisoned
from tests.unit.ptx.hardware.launches import Case
from tlx_xdsl.kernels.attention.backward.call import attention_backward_launch
from tlx_xdsl.kernels.attention.decode.call import attention_decode_launch
from tlx_xdsl.kernels.attention.forward import attention_forward, attention_launch
from tlx_xdsl.kernels.attention.varlen import attention_varlen_launch
from tlx_xdsl.kernels.gemm.config import GemmConfig
from tlx_xdsl.kernels.gemm.dense import gemm, gemm_launch
from tlx_xdsl.kernels.gemm.grouped.call import grouped_gemm_launch
from tlx_xdsl.kernels.gemm.grouped.config import GroupedConfig
from tlx_xdsl.kernels.gemm.scaled.call import scaled_gemm_launch
from tlx_xdsl.kernels.gemm.scaled.config import ScaledConfig
from tlx_xdsl.kernels.rows.cross_entropy import cross_entropy, cross_entropy_backward
from tlx_xdsl.kernels.rows.norm import layer_norm, layer_norm_residual, rms_norm, rms_norm_residual
from tlx_xdsl.kernels.rows.norms import norm_backward
from tlx_xdsl.kernels.rows.rope import rope
from tlx_xdsl.kernels.rows.softmax import softmax, softmax_backward
from tlx_xdsl.kernels.rows.swiglu import swiglu, swiglu_backward

TYPES = {"fp32": np.dtype(np.float32), "fp16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
HALVES = {name: TYPES[name] for name in ("fp16", "bf16")}
E4M3, E5M2 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)

CASES: dict[str, Case] = {}


def values(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    """Numbers of a normal distribution."""
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(dtype)


def _add(name: str, case: Callable[..., Sequence[np.ndarray]], *arguments: Any, **options: Any) -> None:
    assert name not in CASES, name
    CASES[name] = partial(case, *arguments, **options)


# Rows ----------------------------------------------------------------------------------------------------------------


def _softmax(shape, dtype):
    return [softmax(values(shape, dtype))]


def _softmax_gradient(shape, dtype):
    y = np.exp(values(shape))
    return [softmax_backward((y / y.sum(-1, keepdims=True)).astype(dtype), values(shape, dtype, 1))]


def _norm(kind, shape, dtype):
    x, weight, bias = (values(shape if at == 0 else shape[-1:], dtype, at) for at in range(3))
    return [layer_norm(x, weight, bias) if kind == "layer" else rms_norm(x, weight)]


def _norm_gradient(kind, shape, dtype):
    x, weight, dout = values(shape, dtype), values(shape[-1:], dtype, 1), values(shape, dtype, 2)
    found = norm_backward(x, weight, dout, eps=1e-5, centred=kind == "layer", with_bias=kind == "layer")
    return [each for each in found if each is not None]


def _norm_residual(kind, shape, dtype):
    x, residual, weight = values(shape, dtype), values(shape, dtype, 1), values(shape[-1:], dtype, 2)
    return list((layer_norm_residual if kind == "layer" else rms_norm_residual)(x, residual, weight))


def _classes(shape):
    return np.random.default_rng(1).integers(0, shape[-1], shape[:-1])


def _cross_entropy(shape, dtype, reduction, smoothing):
    x = values(shape, dtype, scale=3)
    return [cross_entropy(x, _classes(shape), reduction=reduction, label_smoothing=smoothing)]


def _cross_entropy_gradient(shape, dtype, smoothing):
    x, target = values(shape, dtype, scale=3), _classes(shape)
    exact = x.astype(np.float64)
    lse = (np.log(np.exp(exact - exact.max(-1, keepdims=True)).sum(-1)) + exact.max(-1)).astype(np.float32)
    dloss = values(shape[:-1], seed=2)
    return [cross_entropy_backward(dloss, x, target, lse, None, label_smoothing=smoothing)]


def _swiglu(shape, dtype):
    return [swiglu(values(shape, dtype), values(shape, dtype, 1))]


def _swiglu_gradient(shape, dtype):
    return list(swiglu_backward(*(values(shape, dtype, seed) for seed in range(3))))


def _rope(shape, dtype, interleaved):
    angles = values((shape[-2], shape[-1] // 2), seed=1)
    return [rope(values(shape, dtype), np.cos(angles), np.sin(angles), interleaved=interleaved)]


for type_, dtype_ in TYPES.items():
    for shape_ in ((5, 100), (3, 1024)):
        size = "x".join(map(str, shape_))
        _add(f"softmax {type_} {size}", _softmax, shape_, dtype_)
        _add(f"softmax gradient {type_} {size}", _softmax_gradient, shape_, dtype_)
        _add(f"layer_norm {type_} {size}", _norm, "layer", shape_, dtype_)
        _add(f"rms_norm {type_} {size}", _norm, "rms", shape_, dtype_)
        _add(f"swiglu {type_} {size}", _swiglu, shape_, dtype_)
    _add(f"layer_norm gradient {type_}", _norm_gradient, "layer", (9, 200), dtype_)
    _add(f"rms_norm gradient {type_}", _norm_gradient, "rms", (9, 200), dtype_)
    _add(f"layer_norm_residual {type_}", _norm_residual, "layer", (4, 320), dtype_)
    _add(f"rms_norm_residual {type_}", _norm_residual, "rms", (4, 320), dtype_)
    _add(f"cross_entropy {type_}", _cross_entropy, (7, 300), dtype_, "none", 0.0)
    _add(f"cross_entropy mean smoothed {type_}", _cross_entropy, (7, 300), dtype_, "mean", 0.1)
    _add(f"cross_entropy gradient {type_}", _cross_entropy_gradient, (7, 300), dtype_, 0.1)
    _add(f"swiglu gradient {type_}", _swiglu_gradient, (5, 200), dtype_)
    for kind_ in (False, True):
        _add(f"rope {'interleaved ' * kind_}{type_}", _rope, (2, 2, 33, 64), dtype_, kind_)


# Products ------------------------------------------------------------------------------------------------------------

TILES = {
    "cooperative": GemmConfig("cooperative", 128, 64, 64, stages=2, subtiles=2, buffers=2),
    "cluster": GemmConfig("cooperative", 64, 32, 64, stages=2, subtiles=1, consumers=1, cluster=2),
    "pingpong": GemmConfig("pingpong", 64, 64, 64, stages=3, subtiles=1),
}


def _gemm(tiles, shape, dtype, out=None, a_columns=False, b_columns=False):
    m, n, k = shape
    a, b = matrix(m, k, dtype, by_columns=a_columns, seed=1), matrix(k, n, dtype, by_columns=b_columns, seed=2)
    c = matrix(m, n, out or dtype)
    c[...] = np.nan
    gemm_launch(a, b, c, config=TILES[tiles], programs=2).interpret()
    return [c]


def _gemm_epilogue(epilogue, dtype):
    return [gemm(values((130, 128), dtype, 1), values((128, 256), dtype, 2), epilogue=epilogue)]


def _gemm_unaligned(dtype):
    return [gemm(values((70, 99), dtype, 1), values((99, 51), dtype, 2))]


SCALED = {
    "exact": ScaledConfig("cooperative", 64, 128, stages=2, split_columns=True),
    "pingpong": ScaledConfig("pingpong", 64, 64, stages=3, subtiles=2),
}


def _scaled(tiles, scaling, fast, a_dtype, b_dtype, out):
    m, n, k = 100, 128, 384
    a, b = values((m, k), a_dtype, 1), values((n, k), b_dtype, 2).T
    shapes = {"tensors": ((1,), (1,)), "rows": ((m, 1), (1, n)), "blocks": ((k // 128, m), (k // 128, n // 128))}
    rng = np.random.default_rng(3)
    scale_a, scale_b = (rng.uniform(0.5, 2, shape).astype(np.float32) for shape in shapes[scaling])
    c = poisoned((m, n), out)
    scale_a = scale_a.T if scaling == "blocks" else scale_a
    scaled_gemm_launch(a, b, scale_a, scale_b, c, fast=fast, config=SCALED[tiles], programs=2).interpret()
    return [c]


def _grouped(dtype, config):
    sizes = (0, 5, 130, 0, 64, 20)
    ends = np.cumsum(sizes).astype(np.int32)
    x, w = values((int(ends[-1]), 192), dtype, 1), values((len(sizes), 192, 136), dtype, 2)
    out = np.zeros((int(ends[-1]), 136), dtype)
    grouped_gemm_launch(x, w, ends, out, config=config, programs=3).interpret()
    return [out]


for type_, dtype_ in HALVES.items():
    for tiles_ in TILES:
        _add(f"gemm {tiles_} {type_}", _gemm, tiles_, (200, 200, 152), dtype_)
    _add(f"gemm by columns {type_}", _gemm, "cooperative", (136, 72, 256), dtype_, None, True, True)
    _add(f"gemm of long sums {type_}", _gemm, "pingpong", (64, 64, 2048), dtype_, TYPES["fp32"])
    _add(f"gemm unaligned {type_}", _gemm_unaligned, dtype_)
    for epilogue_ in ("relu", "gelu", "silu"):
        _add(f"gemm with {epilogue_} {type_}", _gemm_epilogue, epilogue_, dtype_)
    _add(f"grouped_gemm {type_}", _grouped, dtype_, GroupedConfig(128, 64, 64, stages=2, subtiles=2, buffers=2))
    _add(f"grouped_gemm by columns {type_}", _grouped, dtype_, GroupedConfig(64, 128, 64, stages=3, subtiles=1))
for scaling_ in ("tensors", "rows", "blocks"):
    _add(f"scaled_gemm e4m3 {scaling_}", _scaled, "exact", scaling_, False, E4M3, E4M3, TYPES["bf16"])
_add("scaled_gemm e4m3 tensors fast", _scaled, "pingpong", "tensors", True, E4M3, E4M3, TYPES["bf16"])
_add("scaled_gemm e4m3 rows fast", _scaled, "pingpong", "rows", True, E4M3, E4M3, TYPES["fp32"])
_add("scaled_gemm e5m2 rows fast", _scaled, "pingpong", "rows", True, E5M2, E4M3, TYPES["fp16"])
_add("scaled_gemm e5m2 rows", _scaled, "exact", "rows", False, E4M3, E5M2, TYPES["fp32"])


# Attention -----------------------------------------------------------------------------------------------------------


def _qkv(q_heads, kv_heads, queries, keys, dim, dtype, batch=1):
    q = heads(batch, q_heads, queries, dim, dtype, 1)
    return q, *(heads(batch, kv_heads, keys, dim, dtype, seed) for seed in (2, 3))


def _attention(q_heads, kv_heads, queries, keys, dim, dtype, **options):
    q, k, v = _qkv(q_heads, kv_heads, queries, keys, dim, dtype)
    out, lse = poisoned(q.shape, dtype), poisoned(q.shape[:3], np.float32)
    if options.pop("sinks", False):
        options["sinks"] = values((q_heads,), seed=5)
    attention_launch(q, k, v, out, lse, programs=2, **options).interpret()
    return [out, lse]


def _attention_fp8(causal):
    q, k, v = _qkv(2, 1, 130, 200, 64, np.float32)
    out, lse = attention_forward(*(each.astype(E4M3) for each in (q, k, v)), causal=causal, return_lse=True)
    return [out, lse]


def _varlen(causal, dtype):
    sums = np.array([0, 70, 70, 200], np.int32)
    q, k, v = (values((200, 2, 64), dtype, seed) for seed in (1, 2, 3))
    out, lse = poisoned(q.shape, dtype), poisoned((2, 200), np.float32)
    attention_varlen_launch(q, k, v, sums, sums, out, lse, causal=causal, programs=2).interpret()
    return [out, lse]


def _attention_gradient(dim, dtype, causal, queries, keys):
    q, k, v = _qkv(2, 1, queries, keys, dim, dtype)
    dout, out = (heads(1, 2, queries, dim, dtype, seed) for seed in (4, 6))
    lse = np.abs(values((1, 2, queries), seed=5)) + np.float32(6)
    found = [poisoned(each.shape, dtype) for each in (q, k, v)]
    attention_backward_launch(
        q, k, v, out, lse, dout, *found, causal=causal, scale=0.09, deterministic=True, programs=2
    ).interpret()
    return found


def _decode(lengths, dtype, dim, q_heads=2, splits=2, **options):
    q = values((len(lengths), q_heads, 1, dim), dtype, 1)
    k, v = (values((len(lengths), max(lengths), 1, dim), dtype, seed).swapaxes(1, 2) for seed in (2, 3))
    out = poisoned(q.shape, dtype)
    given = None if len(set(lengths)) == 1 else np.array(lengths, np.int32)
    attention_decode_launch(
        q, k, v, out, lengths=given, scale=0.1, splits=splits, programs=2, **options
    ).interpret()  # fmt: skip
    return [out]


for type_, dtype_ in HALVES.items():
    for dim_ in (64, 128):
        for causal_ in (False, True):
            mask = "causal " * causal_
            _add(f"attention {mask}{dim_} {type_}", _attention, 2, 1, 140, 200, dim_, dtype_, causal=causal_)
        _add(f"attention gradient {dim_} {type_}", _attention_gradient, dim_, dtype_, False, 130, 100)
        _add(f"attention gradient causal {dim_} {type_}", _attention_gradient, dim_, dtype_, True, 130, 130)
        _add(f"attention_decode {dim_} {type_}", _decode, [300], dtype_, dim_)
    _add(f"attention_decode of lengths {type_}", _decode, [200, 1, 90], dtype_, 64, splits=3)
    _add(f"attention_varlen {type_}", _varlen, False, dtype_)
    _add(f"attention_varlen causal {type_}", _varlen, True, dtype_)
    _add(f"attention window {type_}", _attention, 1, 1, 200, 200, 64, dtype_, causal=True, window=(70, None))
    _add(f"attention softcap {type_}", _attention, 1, 1, 100, 130, 64, dtype_, softcap=2.0)
    _add(f"attention sinks {type_}", _attention, 2, 1, 100, 130, 64, dtype_, sinks=True)
for causal_ in (False, True):
    _add(f"attention e4m3{' causal' * causal_}", _attention_fp8, causal_)


# Examples ------------------------------------------------------------------------------------------------------------


def _example(name):
    case = EXAMPLES[name]()
    found = [array for array, _ in case.results()]
    from tlx_xdsl.runtime.simulate.interpret import interpret

    interpret(case.kernel, case.grid, *case.arguments, **case.constexprs, **case.options, stage="ptx")
    return found


for name_ in EXAMPLES:
    if not name_.startswith("blackwell") and not name_.startswith("portable"):
        _add(f"example {name_}", _example, name_)
