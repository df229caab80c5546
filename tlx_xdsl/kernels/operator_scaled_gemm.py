"""`scaled_gemm` as an operator of torch (`library`). It has no gradient: its operands were rounded to 8 bits before."""

from __future__ import annotations

from typing import Any

from tlx_xdsl.kernels.operands import TMA_ALIGNMENT, torch_module
from tlx_xdsl.kernels.operators import MADE, Operator, Run, as_text, define, define_out, from_text, refuse_gradients
from tlx_xdsl.kernels.scaled_gemm_config import ScaledConfig
from tlx_xdsl.runtime.launch.tensor_descriptor import dtype_name

_TYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}


def _scaled_gemm(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Any:
    a, b, scale_a, scale_b, out = tensors
    out_dtype, fast, config = options
    name = _TYPES.get(dtype_name(out_dtype) or "")
    if name is None:
        raise TypeError(f"scaled_gemm: argument 'out_dtype': expected bf16 or fp16 or fp32, got {out_dtype}")
    given = (a, b, scale_a, scale_b, bool(fast), getattr(torch_module(), name), as_text(config))
    if out is None:
        return MADE["scaled_gemm"](*given)
    refuse_gradients("scaled_gemm", tensors)
    MADE["scaled_gemm_out"](*given, out)
    return out


def _define(run: Run) -> None:
    def scaled_gemm(
        a: Any, b: Any, scale_a: Any, scale_b: Any, fast: bool, out_dtype: Any, config: str, out: Any = None
    ) -> Any:
        return run((a, b, scale_a, scale_b, out), (out_dtype, fast, from_text(config, ScaledConfig)))

    given = "Tensor a, Tensor b, Tensor? scale_a, Tensor scale_b, bool fast, ScalarType out_dtype, str config"
    define("scaled_gemm", f"({given}) -> Tensor", scaled_gemm, _fake)
    define_out("scaled_gemm", f"({given}, Tensor(a!) out) -> ()", scaled_gemm)


def _fake(a: Any, b: Any, scale_a: Any, scale_b: Any, fast: bool, out_dtype: Any, config: str) -> Any:
    check = torch_module()._check
    check(a.dim() == 2 and b.dim() == 2, lambda: "scaled_gemm: arguments 'a' and 'b': expected 2 dimensions")
    check(a.shape[1] == b.shape[0], lambda: "scaled_gemm: argument 'b': expected as many rows as 'a' has columns")
    # Rows start at multiples of 16 bytes.
    step = TMA_ALIGNMENT // out_dtype.itemsize
    padded = (b.shape[1] + step - 1) // step * step
    return a.new_empty((a.shape[0], padded), dtype=out_dtype)[:, : b.shape[1]]


SCALED_GEMM = Operator(_scaled_gemm, _define)
