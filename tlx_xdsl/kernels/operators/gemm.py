"""Products as operators of torch (`library`): `gemm`, `grouped_gemm`, and both of e4m3 and other scaled operands.

The gradient of `gemm` comes by the same kernels: dA = dC B^T, dB = A^T dC. With an epilogue it has no gradient yet.
Gradients of `grouped_gemm` are grouped products of the other kind: for rows in groups dx = dout w[g]^T and
dw[g] = x^T dout, for sums over groups dx = (y dout[g]^T)^T and dy = x^T dout[g]. Rows of no group have the gradient
zero. Those of scaled operands have none: they were rounded to 8 bits before.
"""

# torch is no dependency: what a short function has of its tensors is of unknown type to a checker.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

from ..calls.operands import torch_module, torch_type, type_of_result
from ..gemm.division import Choice
from ..gemm.epilogues import EPILOGUES
from ..gemm.grouped.config import GroupedConfig
from ..gemm.scaled.config import ScaledConfig
from ..gemm.scaled.operands import NAME, OUT_DTYPES, padded_columns
from ..gemm.tiles import GemmConfig
from . import MADE, Operator, Run, Values, found_at, no_gradient, operator, place_of


def _gemm() -> Operator:
    def fake(
        a: Any, b: Any, matrix: Any, rows: list[Any], columns: list[Any], epilogue: str, out_dtype: Any, config: str
    ) -> Any:
        _check_product("gemm", a, b)
        is_paired = epilogue in EPILOGUES and EPILOGUES[epilogue].paired
        return a.new_empty((a.shape[0], b.shape[1] // 2 if is_paired else b.shape[1]), dtype=out_dtype)

    made = operator(
        "gemm",
        "Tensor a, Tensor b, Tensor? matrix, Tensor[] rows, Tensor[] columns, str epilogue, ScalarType? out_dtype, "
        "str config",
        fake,
        tensors="a b out matrix rows columns",
        configs=(GemmConfig, Choice),
        codecs={
            "epilogue": (_epilogue_text, lambda text: found_at(text) if ":" in text else text or None),
            "out_dtype": (lambda asked: torch_type(asked) if isinstance(asked, str) else asked, None),
        },
        autograd=(_setup, _backward),
    )

    def call(tensors: Values, options: Values) -> Any:
        count, *others = options
        return made.call((*tensors[:4], tensors[4 : 4 + count], *tensors[4 + count :]), tuple(others))

    def define(run: Run) -> None:
        made.define(
            lambda tensors, options: run((*tensors[:4], *tensors[4], *tensors[5:]), (len(tensors[4]), *options))
        )

    return Operator(call, define)


def _epilogue_text(epilogue: Any) -> str:
    """A name of `EPILOGUES`, the place of a function, "" for none. Raises TypeError for what has neither."""
    if epilogue is None:
        return ""
    if isinstance(epilogue, str):
        return epilogue
    if not hasattr(epilogue, "__qualname__"):
        raise TypeError(
            "gemm: argument 'epilogue': expected a name or a function with @tlx_xdsl.jit, which torch's graphs can "
            f"name, got {type(epilogue).__name__}"
        )
    return place_of(epilogue)


def _check_product(name: str, a: Any, b: Any) -> None:
    check = torch_module()._check
    check(a.dim() == 2 and b.dim() == 2, lambda: f"{name}: arguments 'a' and 'b': expected 2 dimensions")
    check(a.shape[1] == b.shape[0], lambda: f"{name}: argument 'b': expected as many rows as 'a' has columns")


def _setup(ctx: Any, inputs: Values, output: Any) -> None:
    a, b, _, rows, columns, ctx.epilogue, _, _ = inputs
    ctx.vectors = len(rows), len(columns)
    ctx.save_for_backward(a, b)


def _backward(ctx: Any, grad: Any) -> Values:
    if ctx.epilogue:
        raise no_gradient(f"gemm with the epilogue '{ctx.epilogue}'")
    a, b = ctx.saved_tensors
    grad = _with_rows(grad.to(a.dtype))
    of_a = product(grad, b.t()) if ctx.needs_input_grad[0] else None
    of_b = product(a.t(), grad) if ctx.needs_input_grad[1] else None
    # A list of tensors has a list of gradients.
    of_rows, of_columns = ([None] * count for count in ctx.vectors)
    return of_a, of_b, None, of_rows, of_columns, None, None, None


def product(a: Any, b: Any) -> Any:
    """The operator of a product without an epilogue."""
    return MADE["gemm"](a, b, None, [], [], "", None, "")


def _with_rows(grad: Any) -> Any:
    """A gradient that lies by rows or by columns: that of a sum has one element only, repeated."""
    rows, columns = grad.shape
    by_row, by_column = grad.stride()
    if (by_column == 1 and by_row >= columns) or (by_row == 1 and by_column >= rows):
        return grad
    return grad.contiguous()


def _fake_scaled(a: Any, b: Any, scale_a: Any, scale_b: Any, fast: bool, out_dtype: Any, config: str) -> Any:
    _check_product("scaled_gemm", a, b)
    columns = padded_columns(b.shape[1], out_dtype.itemsize)
    return a.new_empty((a.shape[0], columns), dtype=out_dtype)[:, : b.shape[1]]


GEMM = _gemm()

SCALED_GEMM = operator(
    "scaled_gemm",
    "Tensor a, Tensor b, Tensor? scale_a, Tensor scale_b, bool fast, ScalarType out_dtype, str config",
    _fake_scaled,
    options="out_dtype fast config",
    configs=(ScaledConfig,),
    codecs={"out_dtype": (lambda asked: torch_type(type_of_result(NAME, asked, OUT_DTYPES)), None)},
)


# --- products in groups ---------------------------------------------------------------------------------------------


def _shape(name: str, x: Any, w: Any, offsets: Any) -> Values:
    check = torch_module()._check
    check(x.dim() == 2 and w.dim() in (2, 3), lambda: f"{name}: argument 'x': expected 2 dimensions, 'w' 2 or 3")
    check(x.shape[1] == w.shape[-2], lambda: f"{name}: argument 'w': expected as many rows as 'x' has columns")
    matrix = (x.shape[0], w.shape[-1])
    return matrix if w.dim() == 3 else (offsets.shape[0], *matrix)


def _setup_grouped(ctx: Any, inputs: Values, output: Any) -> None:
    ctx.save_for_backward(*inputs[:3])


def _backward_grouped(ctx: Any, grad: Any) -> Values:
    x, w, offsets = ctx.saved_tensors
    grad = _by_rows(grad)
    wants_x, wants_w = ctx.needs_input_grad[:2]
    if w.dim() == 3:
        of_x = _rows(grad, w.transpose(-2, -1), offsets) if wants_x else None
        of_w = MADE["grouped_gemm"](_by_rows(x).t(), grad, offsets, "") if wants_w else None
    else:
        of_x = _rows(w, grad.transpose(-2, -1), offsets).t() if wants_x else None
        of_w = _rows(x.t(), grad, offsets) if wants_w else None
    return of_x, of_w, None, None


def _rows(x: Any, w: Any, offsets: Any) -> Any:
    """The products of rows in groups, and zeros for rows of none."""
    out = x.new_zeros((x.shape[0], w.shape[-1]))
    MADE["grouped_gemm_out"](x, w, offsets, "", out)
    return out


def _by_rows(matrix: Any) -> Any:
    """A matrix, or several, by rows: the gradient of a sum has one element only, repeated."""
    down, right = matrix.stride()[-2:]
    return matrix if right == 1 and down >= matrix.shape[-1] else matrix.contiguous()


def _fake_scaled_grouped(x: Any, w: Any, offsets: Any, scale_x: Any, scale_w: Any, out_dtype: str, config: str) -> Any:
    refusal = "scaled_grouped_gemm: argument 'out_dtype': expected bf16 or fp16"
    torch_module()._check(out_dtype in ("bf16", "fp16"), lambda: refusal)
    return x.new_empty(_shape("scaled_grouped_gemm", x, w, offsets), dtype=torch_type(out_dtype))


GROUPED_GEMM = operator(
    "grouped_gemm",
    "Tensor x, Tensor w, Tensor offsets, str config",
    lambda x, w, offsets, config: x.new_empty(_shape("grouped_gemm", x, w, offsets)),
    configs=(GroupedConfig,),
    autograd=(_setup_grouped, _backward_grouped),
)

SCALED_GROUPED_GEMM = operator(
    "scaled_grouped_gemm",
    "Tensor x, Tensor w, Tensor offsets, Tensor scale_x, Tensor scale_w, str out_dtype, str config",
    _fake_scaled_grouped,
    configs=(GroupedConfig,),
)
