"""Grouped products of 8-bit floats, scaled by rows and columns, on Hopper: `scaled_grouped_gemm`.

    out = scaled_grouped_gemm(x, w, offsets, scale_x, scale_w)  # (T, K) and (G, K, N): (T, N)

As `grouped_gemm`, with `x` times a number for each of its rows and each matrix of `w` times one for each of its
columns, both f32. The sums stay in the tensor cores, which keep some 14 bits of what they add, as `use_fast_accum` of
torch means; the scales multiply the sums, once. The tensor cores read 8-bit elements along K only: `x` lies by rows,
`w` by columns, as `.transpose(-2, -1)` leaves weights of (G, N, K).
"""

from __future__ import annotations

from typing import Any

from ...calls.launching import Launch
from ...calls.operands import (
    TMA_ALIGNMENT,
    Operand,
    check_contiguous,
    check_places,
    check_shape,
    check_types,
    empty,
    operand,
    row_strides,
    transposed,
)
from ...calls.planned_function import PlannedFunction
from ...calls.plans import Prepared
from ...operators import gemm as operators
from .call import Problem, launch_of_rows, read_problem
from .config import GroupedConfig

DTYPES = ("fp8e4nv", "fp8e5")
OUT_DTYPES = ("bf16", "fp16")

_NAME = "scaled_grouped_gemm"


def scaled_grouped_gemm(
    x: Any,
    w: Any,
    offsets: Any,
    scale_x: Any,
    scale_w: Any,
    *,
    out_dtype: str = "bf16",
    out: Any = None,
    config: GroupedConfig | None = None,
) -> Any:
    """Return (x * scale_x) @ (w[g] * scale_w[g]) for the rows of each group g, rounded once to `out_dtype`.

    `x` (T, K) by rows, `w` (G, K, N) by columns, both of float8_e4m3fn or both of float8_e5m2; `offsets` (G,) int32 as
    those of `grouped_gemm`; `scale_x` (T,) and `scale_w` (G, N) float32, contiguous; the result (T, N) by rows. Rows
    after the last offset are not written, but where K is 0 all are zero.

    `out` receives the result where it is given, in bfloat16 or float16, and `out_dtype` ("bf16" or "fp16") means
    nothing then. `config` replaces the choice of `grouped_gemm_config.choose_config`, with steps of 128 columns.

    Raises TypeError for other types, ValueError for shapes and strides that don't fit, and tensors in different places;
    RuntimeError on a GPU that is not Hopper.
    """
    return SCALED_GROUPED_GEMM((x, w, offsets, scale_x, scale_w, out), (out_dtype, config))


def _prepare(operands: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    *given, out = operands
    out_dtype, config = options
    problem, by_rows, by_columns = _problem(*given)
    if out is None:
        if out_dtype not in OUT_DTYPES:
            raise ValueError(f"{_NAME}: argument 'out_dtype': expected {' or '.join(OUT_DTYPES)}, got {out_dtype!r}")
        out = empty(problem.x, problem.shape, out_dtype)
    target = problem.target(out, OUT_DTYPES)
    scales = {"scale_x": by_rows, "scale_w": by_columns}
    return problem.prepared(target, scales, lambda: _launch(problem, target, (by_rows, by_columns), config))


SCALED_GROUPED_GEMM = PlannedFunction(_NAME, _prepare, results=5, operator=operators.SCALED_GROUPED_GEMM)


def scaled_grouped_gemm_launch(
    x: Any,
    w: Any,
    offsets: Any,
    scale_x: Any,
    scale_w: Any,
    out: Any,
    *,
    config: GroupedConfig | None = None,
    programs: int | None = None,
) -> Launch:
    """The launch of `scaled_grouped_gemm`, to be bound once and repeated; no extent may be 0.

    `programs` is how many share the tiles, by default the GPU's multiprocessors. Raises as `scaled_grouped_gemm` does.
    """
    problem, *scales = _problem(x, w, offsets, scale_x, scale_w)
    return _launch(problem, problem.target(out, OUT_DTYPES), tuple(scales), config, programs)


def _launch(
    problem: Problem, target: Operand, scales: tuple[Any, ...], config: GroupedConfig | None, wanted: int | None = None
) -> Launch:
    programs = problem.programs(wanted)
    for each, along, why in ((problem.x, problem.x, "rows"), (problem.w, transposed(problem.w), "columns")):
        if row_strides(along) is None:
            raise ValueError(
                f"{each.what}: expected {why} that are contiguous and start at multiples of {TMA_ALIGNMENT} bytes, as "
                f"the tensor cores read 8-bit elements, got the strides {each.strides} of the shape {each.shape}"
            )
    by_rows, by_columns = scales
    return launch_of_rows(problem, target, config, programs, (by_rows, by_columns))


def _problem(x: Any, w: Any, offsets: Any, scale_x: Any, scale_w: Any) -> tuple[Problem, Operand, Operand]:
    problem = read_problem(_NAME, x, w, offsets, DTYPES)
    if problem.is_sum:
        raise ValueError(f"{problem.w.what}: expected 3 dimensions, got the shape {problem.w.shape}")
    by_rows, by_columns = operand(_NAME, "scale_x", scale_x), operand(_NAME, "scale_w", scale_w)
    check_types((by_rows, by_columns), ("fp32",))
    check_places((problem.x, by_rows))
    check_shape(by_rows, (problem.x.shape[0],), "rows of 'x'")
    check_shape(by_columns, (problem.groups, problem.w.shape[2]), "groups, columns of 'w'")
    for each in (by_rows, by_columns):
        check_contiguous(each)
    return problem, by_rows, by_columns
