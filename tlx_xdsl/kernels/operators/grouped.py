"""`grouped_gemm` and `scaled_grouped_gemm` as operators of torch (`library`).

Gradients of `grouped_gemm` are grouped products of the other kind, by the same kernels: for rows in groups
dx = dout w[g]^T and dw[g] = x^T dout, for sums over groups dx = (y dout[g]^T)^T and dy = x^T dout[g]. Rows of no group
have the gradient zero. `scaled_grouped_gemm` has none.
"""

from __future__ import annotations

from typing import Any

from ..calls.operands import torch_module, torch_type
from ..gemm.grouped.config import GroupedConfig
from . import MADE, Operator, Run, as_text, define, define_out, from_text, refuse_gradients


def _grouped(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Any:
    x, w, offsets, out = tensors
    (config,) = options
    if out is None:
        return MADE["grouped_gemm"](x, w, offsets, as_text(config))
    refuse_gradients("grouped_gemm", tensors)
    MADE["grouped_gemm_out"](x, w, offsets, as_text(config), out)
    return out


def _define_grouped(run: Run) -> None:
    def grouped_gemm(x: Any, w: Any, offsets: Any, config: str, out: Any = None) -> Any:
        return run((x, w, offsets, out), (from_text(config, GroupedConfig),))

    def fake(x: Any, w: Any, offsets: Any, config: str) -> Any:
        return x.new_empty(_shape("grouped_gemm", x, w, offsets))

    given = "Tensor x, Tensor w, Tensor offsets, str config"
    define("grouped_gemm", f"({given}) -> Tensor", grouped_gemm, fake, gradient=(_setup, _backward))
    define_out("grouped_gemm", f"({given}, Tensor(a!) out) -> ()", grouped_gemm)


def _shape(name: str, x: Any, w: Any, offsets: Any) -> tuple[Any, ...]:
    check = torch_module()._check
    check(x.dim() == 2 and w.dim() in (2, 3), lambda: f"{name}: argument 'x': expected 2 dimensions, 'w' 2 or 3")
    check(x.shape[1] == w.shape[-2], lambda: f"{name}: argument 'w': expected as many rows as 'x' has columns")
    matrix = (x.shape[0], w.shape[-1])
    return matrix if w.dim() == 3 else (offsets.shape[0], *matrix)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs[:3])


def _backward(ctx: Any, grad: Any) -> tuple[Any, ...]:
    x, w, offsets = ctx.saved_tensors
    grad = _by_rows(grad)
    wants_x, wants_w = ctx.needs_input_grad[:2]
    if w.dim() == 3:
        of_x = _rows(grad, w.transpose(-2, -1), offsets) if wants_x else None
        of_w = _sums(_by_rows(x).t(), grad, offsets) if wants_w else None
    else:
        of_x = _rows(w, grad.transpose(-2, -1), offsets).t() if wants_x else None
        of_w = _rows(x.t(), grad, offsets) if wants_w else None
    return of_x, of_w, None, None


def _sums(x: Any, y: Any, offsets: Any) -> Any:
    return MADE["grouped_gemm"](x, y, offsets, "")


def _rows(x: Any, w: Any, offsets: Any) -> Any:
    """The products of rows in groups, and zeros for rows of none."""
    out = x.new_zeros((x.shape[0], w.shape[-1]))
    MADE["grouped_gemm_out"](x, w, offsets, "", out)
    return out


def _by_rows(matrix: Any) -> Any:
    """A matrix, or several, by rows: the gradient of a sum has one element only, repeated."""
    down, right = matrix.stride()[-2:]
    return matrix if right == 1 and down >= matrix.shape[-1] else matrix.contiguous()


def _scaled(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Any:
    *given, out = tensors
    out_dtype, config = options
    if out is None:
        return MADE["scaled_grouped_gemm"](*given, out_dtype, as_text(config))
    refuse_gradients("scaled_grouped_gemm", tensors)
    MADE["scaled_grouped_gemm_out"](*given, out_dtype, as_text(config), out)
    return out


def _define_scaled(run: Run) -> None:
    def scaled_grouped_gemm(
        x: Any, w: Any, offsets: Any, scale_x: Any, scale_w: Any, out_dtype: str, config: str, out: Any = None
    ) -> Any:
        return run((x, w, offsets, scale_x, scale_w, out), (out_dtype, from_text(config, GroupedConfig)))

    def fake(x: Any, w: Any, offsets: Any, scale_x: Any, scale_w: Any, out_dtype: str, config: str) -> Any:
        refusal = "scaled_grouped_gemm: argument 'out_dtype': expected bf16 or fp16"
        torch_module()._check(out_dtype in ("bf16", "fp16"), lambda: refusal)
        return x.new_empty(_shape("scaled_grouped_gemm", x, w, offsets), dtype=torch_type(out_dtype))

    given = "Tensor x, Tensor w, Tensor offsets, Tensor scale_x, Tensor scale_w, str out_dtype, str config"
    define("scaled_grouped_gemm", f"({given}) -> Tensor", scaled_grouped_gemm, fake)
    define_out("scaled_grouped_gemm", f"({given}, Tensor(a!) out) -> ()", scaled_grouped_gemm)


GROUPED_GEMM = Operator(_grouped, _define_grouped)
SCALED_GROUPED_GEMM = Operator(_scaled, _define_scaled)
