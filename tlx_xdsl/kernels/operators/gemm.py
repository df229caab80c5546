"""`gemm` as an operator of torch (`library`), with its gradient: dA = dC B^T, dB = A^T dC, by the same kernels.

With an epilogue it has no gradient yet.
"""

from __future__ import annotations

from typing import Any

from ..calls.operands import torch_module, torch_type
from ..gemm.division import Choice
from ..gemm.epilogues import EPILOGUES
from ..gemm.tiles import GemmConfig
from . import (
    MADE,
    Operator,
    Run,
    as_text,
    define,
    define_out,
    found_at,
    from_text,
    no_gradient,
    place_of,
    refuse_gradients,
)


def _gemm(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Any:
    a, b, out, matrix, *vectors = tensors
    count, epilogue, out_dtype, config = options
    if isinstance(out_dtype, str):
        out_dtype = torch_type(out_dtype)
    given = (a, b, matrix, vectors[:count], vectors[count:], _epilogue_text(epilogue), out_dtype, as_text(config))
    if out is None:
        return MADE["gemm"](*given)
    refuse_gradients("gemm", tensors)
    MADE["gemm_out"](*given, out)
    return out


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


def _define(run: Run) -> None:
    def gemm(
        a: Any, b: Any, matrix: Any, rows: list[Any], columns: list[Any], epilogue: str, out_dtype: Any, config: str,
        out: Any = None,
    ) -> Any:  # fmt: skip
        function = found_at(epilogue) if ":" in epilogue else epilogue or None
        options = (len(rows), function, out_dtype, from_text(config, GemmConfig, Choice))
        return run((a, b, out, matrix, *rows, *columns), options)

    given = (
        "Tensor a, Tensor b, Tensor? matrix, Tensor[] rows, Tensor[] columns, str epilogue, ScalarType? out_dtype, "
        "str config"
    )
    define("gemm", f"({given}) -> Tensor", gemm, _fake, gradient=(_setup, _backward))
    define_out("gemm", f"({given}, Tensor(a!) out) -> ()", gemm)


def _fake(
    a: Any, b: Any, matrix: Any, rows: list[Any], columns: list[Any], epilogue: str, out_dtype: Any, config: str
) -> Any:
    check = torch_module()._check
    check(a.dim() == 2 and b.dim() == 2, lambda: "gemm: arguments 'a' and 'b': expected 2 dimensions")
    check(a.shape[1] == b.shape[0], lambda: "gemm: argument 'b': expected as many rows as 'a' has columns")
    is_paired = epilogue in EPILOGUES and EPILOGUES[epilogue].paired
    return a.new_empty((a.shape[0], b.shape[1] // 2 if is_paired else b.shape[1]), dtype=out_dtype)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    a, b, _, rows, columns, ctx.epilogue, _, _ = inputs
    ctx.vectors = len(rows), len(columns)
    ctx.save_for_backward(a, b)


def _backward(ctx: Any, grad: Any) -> tuple[Any, ...]:
    if ctx.epilogue:
        raise no_gradient(f"gemm with the epilogue '{ctx.epilogue}'")
    a, b = ctx.saved_tensors
    grad = _with_rows(grad.to(a.dtype))
    of_a = _product(grad, b.t()) if ctx.needs_input_grad[0] else None
    of_b = _product(a.t(), grad) if ctx.needs_input_grad[1] else None
    # A list of tensors has a list of gradients.
    of_rows, of_columns = ([None] * count for count in ctx.vectors)
    return of_a, of_b, None, of_rows, of_columns, None, None, None


def _product(a: Any, b: Any) -> Any:
    return MADE["gemm"](a, b, None, [], [], "", None, "")


def _with_rows(grad: Any) -> Any:
    """A gradient that lies by rows or by columns: that of a sum has one element only, repeated."""
    rows, columns = grad.shape
    by_row, by_column = grad.stride()
    if (by_column == 1 and by_row >= columns) or (by_row == 1 and by_column >= rows):
        return grad
    return grad.contiguous()


GEMM = Operator(_gemm, _define)
