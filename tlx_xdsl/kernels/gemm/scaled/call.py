"""C = (A * scale_a) @ (B * scale_b) of 8-bit floats, on Hopper: `scaled_gemm(a, b, scale_a, scale_b)`.

A lies by rows and B by columns, as `torch._scaled_mm` wants them, for the tensor cores read 8-bit elements along K
alone. e4m3 and e5m2, also one of each. The scales are f32 and multiply:

| scales | scale_a | scale_b |
|---|---|---|
| of tensors | one element | one element |
| of rows and columns | (M, 1) | (1, N) |
| of blocks (1 x 128 of A, 128 x 128 of B) | (M, K / 128) | (K / 128, N / 128) |

in any order of memory; numbers of blocks are rounded up. With A in 16 bits only B is scaled (`mixed`).

    c = scaled_gemm(a, b, scale_a, scale_b)                          # bf16; sums in f32, 128 products at a time
    c = scaled_gemm(a, b, scale_a, scale_b, fast=True)               # sums in the tensor cores: some 14 bits
    launch = scaled_gemm_launch(a, b, scale_a, scale_b, out).bind()  # to be repeated: launch()

The kernels are in `device` and `pingpong`, the choice between them in `config`.
Arrays of numpy (of ml_dtypes' types), and torch's tensors on the CPU, are multiplied by the interpreter.
"""

from __future__ import annotations

from math import prod
from typing import Any

from tlx_xdsl.kernels.calls.launching import Launch, check_hopper, multiprocessors
from tlx_xdsl.kernels.calls.operands import Operand, check_places, empty, type_of_result
from tlx_xdsl.kernels.calls.planned_function import PlannedFunction
from tlx_xdsl.kernels.calls.plans import Prepared
from tlx_xdsl.kernels.operators import gemm as operators

from ..device import sizes_of
from .config import STEP, ScaledConfig, ScaledForm, Scaling, Sums, choose_config
from .device import scaled_cooperative
from .mixed import mixed_launch
from .operands import (
    NAME,
    OUT_DTYPES,
    SOURCES,
    descriptor,
    factors,
    lines_of_scales,
    padded_columns,
    result,
    scales,
    scaling_of,
)
from .pingpong import scaled_pingpong
from .scales import Strides


def scaled_gemm(
    a: Any,
    b: Any,
    scale_a: Any,
    scale_b: Any,
    *,
    out_dtype: Any = "bf16",
    fast: bool = False,
    out: Any = None,
    config: ScaledConfig | None = None,
) -> Any:
    """Return (a * scale_a) @ (b * scale_b): (M, K) times (K, N), rounded once, in `out_dtype` or in the type of `out`.

    The scales are as the table of this module says. Each 128 products along K are a sum in the tensor cores, which keep
    some 14 bits of it, and these sums are added in f32; with `fast` all of a product is one sum in the tensor cores,
    which scales of blocks do not allow. Infinities and NaNs of operands and scales go where IEEE arithmetic takes them.
    With `a` in bf16 or fp16, `scale_a` is None, and `fast` changes nothing.

    `out_dtype` is bf16, fp16 or fp32, by name or as torch or numpy have it; `out` (M, N), by rows, receives the result
    where it is given; else rows are padded to multiples of 16 bytes, as TMA wants, which writes that padding, too.
    `config` replaces the choice of `config`.

    Raises TypeError for what is no tensor of such types; ValueError for shapes that do not fit, `fast` with scales of
    blocks, an A that is not by rows, a B that is not by columns, strides or addresses that TMA can't read, and tensors
    in different places; RuntimeError on a GPU that is not Hopper.
    """
    return SCALED_GEMM((a, b, scale_a, scale_b, out), (out_dtype, fast, config))


def scaled_gemm_launch(
    a: Any,
    b: Any,
    scale_a: Any,
    scale_b: Any,
    out: Any,
    *,
    fast: bool = False,
    config: ScaledConfig | None = None,
    programs: int | None = None,
) -> Launch:
    """The launch of `scaled_gemm` into `out`, to be bound once and repeated; no extent may be 0.

    `programs` is how many share the tiles, by default the GPU's multiprocessors. Raises as `scaled_gemm` does.
    """
    left, right = factors(a, b)
    target = result(left, right, out)
    if 0 in (*left.shape, *right.shape):
        raise ValueError(f"{NAME}: expected matrices with elements, got {left.shape} and {right.shape}")
    if left.element_bytes == 2:
        return mixed_launch(left, right, scale_a, scale_b, target, config, programs)
    by_a, by_b = scales("scale_a", scale_a), scales("scale_b", scale_b)
    scaling = scaling_of(left, right, by_a, by_b)
    sums = _sums(fast, scaling)
    exact = sums != "fast"
    check_places((left, right, by_a, by_b, target))
    check_hopper(NAME, left)
    (m, k), n = left.shape, right.shape[1]
    processors = multiprocessors(left)
    chosen = config or choose_config(m, n, k, sums, target.element_bytes, processors)
    if exact and chosen.schedule == "pingpong":
        raise ValueError(f"{NAME}: argument 'config': expected a cooperative schedule, for ping-pong is fast only")
    tiles = chosen.tiles(m, n)
    lines = lines_of_scales(by_a, by_b, chosen) if scaling == "blocks" else None
    arguments = {
        "a_desc": descriptor(left, (chosen.rows, STEP)),
        "b_desc": descriptor(right, (chosen.b_rows(exact), STEP), "columns"),
        "c_desc": descriptor(target, (chosen.rows, chosen.strip_n)),
        "scale_a": lines[0] if lines else scale_a,
        "scale_b": lines[1] if lines else scale_b,
        "sizes": sizes_of((m, n, k), tiles, chosen.group_m),
        "strides": _scale_strides(scaling, by_a, by_b),
    }
    form = ScaledForm(chosen, exact, scaling, lines is not None)
    kernel = scaled_cooperative if chosen.schedule == "cooperative" else scaled_pingpong
    grid = (min(prod(tiles), programs or processors),)
    return Launch(kernel, grid, arguments, {"FORM": form}, left.device, sources=SOURCES)


def _prepare(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    a, b, scale_a, scale_b, out = tensors
    out_dtype, fast, config = options
    left, right = factors(a, b)
    dtype = type_of_result(NAME, out_dtype, OUT_DTYPES)
    if out is None:
        columns = padded_columns(right.shape[1], 4 if dtype == "fp32" else 2)
        out = empty(left, (left.shape[0], columns), dtype)[:, : right.shape[1]]
    named = {"a": a, "b": b, "scale_a": scale_a, "scale_b": scale_b, "out": out}
    if 0 not in (*left.shape, *right.shape):
        return Prepared(named, [scaled_gemm_launch(a, b, scale_a, scale_b, out, fast=fast, config=config)])
    if 0 not in result(left, right, out).shape:
        out[...] = 0
    return Prepared(named)


SCALED_GEMM = PlannedFunction(NAME, _prepare, results=4, operator=operators.SCALED_GEMM)
"""`scaled_gemm` of (a, b, scale_a, scale_b, out) with the options (out_dtype, fast, config)."""


def _sums(fast: bool, scaling: Scaling) -> Sums:
    """Return what is a sum of the tensor cores. Raises ValueError for `fast` with scales of blocks."""
    if fast and scaling == "blocks":
        raise ValueError(f"{NAME}: argument 'fast': expected False with scales of blocks, which multiply sums of 128")
    return "fast" if fast else "blocks" if scaling == "blocks" else "exact"


def _scale_strides(scaling: Scaling, scale_a: Operand, scale_b: Operand) -> Strides:
    """Elements between the scales of neighbours: along the rows and steps of A, the steps and columns of B."""
    return Strides(0, 0, 0, 0) if scaling == "tensors" else Strides(*scale_a.strides, *scale_b.strides)
