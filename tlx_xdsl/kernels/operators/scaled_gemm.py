"""`scaled_gemm` as an operator of torch (`library`). It has no gradient: its operands were rounded to 8 bits before."""

from __future__ import annotations

from typing import Any

from ..calls.operands import torch_module, torch_type, type_of_result
from ..gemm.scaled.config import ScaledConfig
from ..gemm.scaled.operands import NAME, OUT_DTYPES, padded_columns
from . import MADE, Operator, Run, as_text, define, define_out, from_text, refuse_gradients


def _scaled_gemm(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Any:
    a, b, scale_a, scale_b, out = tensors
    out_dtype, fast, config = options
    dtype = torch_type(type_of_result(NAME, out_dtype, OUT_DTYPES))
    given = (a, b, scale_a, scale_b, bool(fast), dtype, as_text(config))
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
    columns = padded_columns(b.shape[1], out_dtype.itemsize)
    return a.new_empty((a.shape[0], columns), dtype=out_dtype)[:, : b.shape[1]]


SCALED_GEMM = Operator(_scaled_gemm, _define)
