"""Heads in 8 bits (e4m3): what `attention_forward` does with such before the kernel has them.

    o = attention_forward(q, k, v, q_scale=a, k_scale=b, v_scale=c, causal=True)   # bf16, or out_dtype="fp16"

The scales are f32 tensors of one element, of (heads,) or of (batch, heads), and multiply; those of K and V are for the
heads of K and V. They are positive. Two launches: V is transposed (`values`), then comes the attention.

Arrays of numpy (ml_dtypes' float8_e4m3fn), and torch's tensors on the CPU, go through the interpreter.
"""

from __future__ import annotations

from typing import Any

from tlx_xdsl.kernels.calls.launching import Launch
from tlx_xdsl.kernels.calls.operands import Operand, empty, torch_module
from tlx_xdsl.kernels.calls.plans import WORKSPACE
from tlx_xdsl.runtime.launch.tensor_descriptor import dtype_name

from ..operands import FP8_DTYPES, described_heads, strides_in_units
from .values import attention_fp8_values

BLOCK_KEYS = 128
"""Keys of a program that transposes V; the transposed rows are padded to a multiple of it."""


def is_fp8(q: Any) -> bool:
    """Return whether a tensor's elements are of the type that this module is for."""
    return dtype_name(getattr(q, "dtype", None)) in FP8_DTYPES


def transposed_values(v: Operand) -> tuple[Any, Launch]:
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
    sources = {"v_ptr": "v", "words_ptr": WORKSPACE}
    aligned = tuple(sources)
    return values, Launch.of(attention_fp8_values, grid, arguments, constants, v.device, sources, aligned)


def _word_type(values: Any) -> Any:
    """The type of 32-bit integers, where a tensor or an array is from."""
    if hasattr(values, "data_ptr"):
        return torch_module().int32
    return "int32"
