"""Checks of the epilogues of `gemm` and of its divisions of the work on a GPU, against float32 references."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn import functional

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit.kernels.gpu_checks import DTYPES, LIMITS, Check, check_repeated, matrix, random, relative_error
from tlx_xdsl.kernels.gemm.config import Choice, GemmConfig
from tlx_xdsl.kernels.gemm.dense import gemm_launch
from tlx_xdsl.kernels.gemm.epilogues import EPILOGUES

REFERENCES: dict[str, Callable[..., torch.Tensor]] = {
    "gelu": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
    "relu": functional.relu,
    "bias": lambda x, bias: x + bias,
    "bias_gelu": lambda x, bias: functional.gelu(x + bias, approximate="tanh"),
    "bias_silu": lambda x, bias: functional.silu(x + bias),
    "bias_relu": lambda x, bias: functional.relu(x + bias),
    "residual": lambda x, other: x + other,
    "scale_rows": lambda x, scales: x * scales,
    "scale_columns": lambda x, scales: x * scales,
    "scale_both": lambda x, rows, columns: x * rows * columns,
    "swiglu": lambda x: functional.silu(x.chunk(2, 1)[0]) * x.chunk(2, 1)[1],
}


@tlx_xdsl.jit
def everything(sums, row0, row1, column0, column1, other):
    """Combine the operands so that no two of them could be exchanged."""
    return tl.minimum((sums - row0) * column0, row1) + 3.0 * column1 - 2.0 * other


def _everything(x: torch.Tensor, *operands: torch.Tensor) -> torch.Tensor:
    row0, row1, column0, column1, other = operands
    return torch.minimum((x - row0) * column0, row1) + 3 * column1 - 2 * other


def check_epilogue(
    name: str,
    shape: tuple[int, int, int],
    dtype: str,
    device: str,
    *,
    by_columns: bool = False,
    config: GemmConfig | Choice | None = None,
    run: Callable[[Callable[[], Any], str], None],
) -> Check:
    """Compare a product with the epilogue of this name, or with "everything"; `by_columns` is how the result lies."""
    m, n, k = shape
    known = EPILOGUES.get(name)
    rows, columns, has_matrix = (2, 2, True) if known is None else (known.rows, known.columns, known.matrix)
    type_ = DTYPES[dtype]
    # Sums of about one, where the functions are curved.
    a = matrix(m, k, type_, device, by_columns=False, seed=1) * k**-0.5
    b = matrix(k, 2 * n if known and known.paired else n, type_, device, by_columns=False, seed=2)
    c = matrix(m, n, type_, device, by_columns=by_columns, seed=3)
    c[...] = math.nan
    of_rows = [random((m,), type_, device, 4 + index) for index in range(rows)]
    of_columns = [random((n,), torch.float32, device, 6 + index) for index in range(columns)]
    other = matrix(m, n, type_, device, by_columns=by_columns, seed=8) if has_matrix else None
    label = f"gemm {m}x{n}x{k} {dtype} {name}{' by columns' if by_columns else ''} {config or 'chosen'}"
    epilogue = everything if known is None else name
    launch = gemm_launch(
        a, b, c, epilogue=epilogue, rows=of_rows, columns=of_columns, matrix=other, config=config
    )  # fmt: skip
    run(launch.bind(), label)
    operands = [each.float()[:, None] for each in of_rows] + of_columns
    operands += [] if other is None else [other.float()]
    reference = _everything if known is None else REFERENCES[name]
    return Check(label, relative_error(c, reference(a.float() @ b.float(), *operands)), LIMITS[dtype])


def repeated_choices(
    shape: tuple[int, int, int], choices: Iterator[Choice], device: str, times: int = 200
) -> Iterator[Check]:
    """`check_repeated` of each division of the work."""
    m, n, k = shape
    a = matrix(m, k, torch.float16, device, by_columns=False, seed=1)
    b = matrix(k, n, torch.float16, device, by_columns=False, seed=2)
    c = matrix(m, n, torch.float16, device, by_columns=False, seed=3)
    for choice in choices:
        launch = gemm_launch(a, b, c, config=choice).bind()
        yield check_repeated(launch, [c], f"gemm {m}x{n}x{k} {choice}", times)
