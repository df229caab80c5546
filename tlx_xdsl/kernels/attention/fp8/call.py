"""Attention forward in fp8 (e4m3) on Hopper: what `attention_forward` does with such q, k and v.

    o = attention_forward(q, k, v, q_scale=a, k_scale=b, v_scale=c, causal=True)   # bf16, or out_dtype="fp16"

The scales are f32 tensors of one element, of (heads,) or of (batch, heads), and multiply; those of K and V are for the
heads of K and V. They are positive. Two launches: V is transposed (`values`), then comes the attention
(`device`, whose configurations are in `config`).

Arrays of numpy (ml_dtypes' float8_e4m3fn), and torch's tensors on the CPU, go through the interpreter.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from tlx_xdsl.kernels.calls.launching import Launch, Launches, check_hopper, multiprocessors
from tlx_xdsl.kernels.calls.operands import (
    Operand,
    check_places,
    check_shape,
    empty,
    operand,
    torch_module,
    type_of_result,
)
from tlx_xdsl.kernels.calls.planned_function import PlannedFunction
from tlx_xdsl.kernels.calls.plans import WORKSPACE, Prepared
from tlx_xdsl.kernels.operators import attention as operators
from tlx_xdsl.runtime.launch.tensor_descriptor import dtype_name

from ..config import CONSUMER_ROWS, FP8_HEAD_DIMS, OUT_DTYPES, AttentionFp8Config, choose_fp8_config
from ..operands import (
    check_heads,
    check_lse,
    check_rows,
    described_heads,
    factor_of,
    operands_of,
    scale_of,
    scale_strides,
    strides_in_units,
)
from ..sequences import Grid
from .device import attention_fp8
from .values import attention_fp8_values

FP8_DTYPES = ("fp8e4nv",)

BLOCK_KEYS = 128
"""Keys of a program that transposes V; the transposed rows are padded to a multiple of it."""

_NAME = "attention_forward"


def is_fp8(q: Any) -> bool:
    """Return whether a tensor's elements are of the type that this module is for."""
    return dtype_name(getattr(q, "dtype", None)) in FP8_DTYPES


def refuse_fp8_options(**options: Any) -> None:
    """Refuse options for e4m3 tensors beside others. Raises TypeError."""
    for name, value in options.items():
        if value is not None:
            raise TypeError(f"{_NAME}: argument '{name}': expected None where 'q' is not float8_e4m3fn, got {value!r}")


def attention_fp8_launch(
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    lse: Any,
    *,
    q_scale: Any = None,
    k_scale: Any = None,
    v_scale: Any = None,
    causal: bool = False,
    scale: float | None = None,
    config: AttentionFp8Config | None = None,
    programs: int | None = None,
) -> Launches:
    """The launches of `attention_forward` of e4m3 tensors, to be bound once and repeated; no extent may be 0.

    `lse` is contiguous. `programs` is how many share the tiles, by default the GPU's multiprocessors. Raises as
    `attention_forward` does.
    """
    problem = _Problem.of(q, k, v, q_scale, k_scale, v_scale)
    batch, heads, queries, dim = problem.q.shape
    kv_heads, keys = problem.k.shape[1:3]
    result, sums = operands_of(_NAME, out=out, lse=lse)
    if result.dtype not in OUT_DTYPES:
        raise TypeError(f"{result.what}: expected elements of type {' or '.join(OUT_DTYPES)}, got {out.dtype}")
    check_places((problem.q, result))
    check_shape(result, problem.q.shape, "that of 'q'")
    check_lse(problem.q, sums)
    check_rows(problem.q, queries)
    factor = factor_of(_NAME, scale, dim)
    check_hopper(_NAME, problem.q)

    causal = bool(causal)
    chosen = config or choose_fp8_config(dim, causal)
    values, before = _transposed_values(problem.v)
    arguments = {
        "q_desc": described_heads(problem.q, CONSUMER_ROWS),
        "k_desc": described_heads(problem.k, chosen.block_n),
        "v_desc": described_heads(operand(_NAME, "v", values), dim, chosen.block_n),
        "o_desc": described_heads(result, CONSUMER_ROWS),
        "lse_ptr": lse,
        "q_scale": q_scale,
        "k_scale": k_scale,
        "v_scale": v_scale,
        "sm_scale": factor,
        "strides": tuple([scale_strides(each) for each in problem[3:]]),
        "grid": Grid(batch * heads, heads, heads // kv_heads, queries, keys, batch * heads if chosen.all_heads else 1),
    }
    even = keys % chosen.block_n == 0
    tiling = replace(chosen.tiling(dim, dim, causal=causal, uneven=causal, even=even, transposed=True), o_in_q=False)
    constexprs = {"T": tiling, "EXACT": chosen.exact, "OVERLAP": chosen.overlap}
    tiles = -(-queries // chosen.block_m) * batch * heads
    grid = (min(tiles, programs or multiprocessors(problem.q)),)
    main = Launch.of(attention_fp8, grid, arguments, constexprs, problem.q.device, _SOURCES)
    return Launches((before, main), values)


_SOURCES = {
    "q_desc": "q",
    "k_desc": "k",
    "v_desc": WORKSPACE,
    "o_desc": "out",
    "lse_ptr": "lse",
    "q_scale": "q_scale",
    "k_scale": "k_scale",
    "v_scale": "v_scale",
    "v_ptr": "v",
    "words_ptr": WORKSPACE,
}


def _transposed_values(v: Operand) -> tuple[Any, Launch]:
    """The memory for V as the kernel wants it, (batch, heads, dim, keys), and the launch that writes it."""
    described_heads(v, BLOCK_KEYS)  # threads move 16 bytes at a time
    batch, heads, keys, dim = v.shape
    blocks = -(-keys // BLOCK_KEYS)
    values = empty(v, (batch, heads, dim, blocks * BLOCK_KEYS))
    arguments = {
        "v_ptr": v.value,
        "words_ptr": values.view(_word_type(values)),
        "strides": strides_in_units(v),
        "KV_HEADS": heads,
        "KV_LENGTH": keys,
        "BLOCKS": blocks,
    }
    constants = {"HEAD_DIM": dim, "KEYS": BLOCK_KEYS}
    grid = (batch * heads, blocks)
    aligned = ("v_ptr", "words_ptr")
    return values, Launch.of(attention_fp8_values, grid, arguments, constants, v.device, _SOURCES, aligned)


def _word_type(values: Any) -> Any:
    """The type of 32-bit integers, where a tensor or an array is from."""
    if hasattr(values, "data_ptr"):
        return torch_module().int32
    return "int32"


def _prepare(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    q, k, v, q_scale, k_scale, v_scale, out, lse = tensors
    causal, scale, out_dtype, config = options
    problem = _Problem.of(q, k, v, q_scale, k_scale, v_scale)
    dtype = type_of_result(_NAME, out_dtype, OUT_DTYPES)
    if out is None:
        out = empty(problem.q, problem.q.shape, dtype)
    if lse is None:
        lse = empty(problem.q, problem.q.shape[:3], "fp32")
    scales = {"q_scale": q_scale, "k_scale": k_scale, "v_scale": v_scale}
    named = {"q": q, "k": k, "v": v, **scales, "out": out, "lse": lse}
    if 0 in problem.q.shape:
        return Prepared(named)
    launches = attention_fp8_launch(q, k, v, out, lse, **scales, causal=causal, scale=scale, config=config)
    return Prepared({**named, WORKSPACE: launches.workspace}, launches.parts)


ATTENTION_FP8 = PlannedFunction(_NAME, _prepare, results=slice(6, 8), operator=operators.ATTENTION_FP8)
"""`attention_forward` of (q, k, v, q_scale, k_scale, v_scale, out, lse); options (causal, scale, out_dtype, config)."""


class _Problem(NamedTuple):
    """The inputs, checked."""

    q: Operand
    k: Operand
    v: Operand
    q_scale: Operand | None
    k_scale: Operand | None
    v_scale: Operand | None

    @classmethod
    def of(cls, q: Any, k: Any, v: Any, q_scale: Any, k_scale: Any, v_scale: Any) -> _Problem:
        heads = operands_of(_NAME, q=q, k=k, v=v)
        check_heads(*heads, dtypes=FP8_DTYPES, head_dims=FP8_HEAD_DIMS)
        named = zip(heads, ("q_scale", "k_scale", "v_scale"), (q_scale, k_scale, v_scale), strict=True)
        return cls(*heads, *(scale_of(of, name, value) for of, name, value in named))
