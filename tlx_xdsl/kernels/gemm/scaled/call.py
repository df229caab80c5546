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

The kernel is in `device`, the choice of its tile in `config`.
Arrays of numpy (of ml_dtypes' types), and torch's tensors on the CPU, are multiplied by the interpreter.
"""

from __future__ import annotations

from math import prod
from typing import Any

from ...calls.launching import Launch, check_hopper, multiprocessors
from ...calls.operands import Operand, check_places, empty, type_of_result
from ...calls.planned_function import PlannedFunction
from ...calls.plans import Prepared
from ...operators import gemm as operators
from ..device import sizes_of
from .config import STEP, WEIGHT_COLUMNS, ScaledConfig, ScaledForm, Scaling, Sums, choose_config, mixed_config
from .device import gemm_scaled
from .operands import (
    NAME,
    OUT_DTYPES,
    columns_per_scale,
    descriptor,
    factors,
    lines_of_scales,
    padded_columns,
    result,
    scales,
    scaling_of,
)
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
        form, *by = _mixed(left, right, target, scale_a, scale_b, config)
    else:
        form, *by = _scaled(left, right, target, scale_a, scale_b, fast, config)
    tile, (m, k), n = form.tile, left.shape, right.shape[1]
    tiles = tile.tiles(m, n)
    values = {
        "a_desc": descriptor(left, (tile.rows, STEP)),
        "b_desc": descriptor(right, (tile.columns // form.strips, STEP), "columns"),
        "c_desc": descriptor(target, (tile.rows, tile.part_n)),
        **dict(zip(("scale_a", "scale_b", "strides"), by, strict=True)),
        "sizes": sizes_of((m, n, k), tiles, tile.group_m),
    }
    grid = (min(prod(tiles), programs or multiprocessors(left)),)
    return Launch.of(gemm_scaled, grid, values, {"FORM": form}, left.device)


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


def _scaled(
    left: Operand, right: Operand, target: Operand, scale_a: Any, scale_b: Any, fast: bool, config: ScaledConfig | None
) -> tuple[ScaledForm, Any, Any, Strides]:
    """Return the constants of a product of 8-bit floats, the scales of A and B as they are read, and their strides."""
    by_a, by_b = scales("scale_a", scale_a), scales("scale_b", scale_b)
    scaling = scaling_of(left, right, by_a, by_b)
    sums = _sums(fast, scaling)
    check_places((left, right, by_a, by_b, target))
    check_hopper(NAME, left)
    (m, k), n = left.shape, right.shape[1]
    tile = config or choose_config(m, n, k, sums, target.element_bytes, multiprocessors(left))
    if sums != "fast" and tile.schedule == "pingpong":
        raise ValueError(f"{NAME}: argument 'config': expected a cooperative schedule, for ping-pong is fast only")
    lines = lines_of_scales(by_a, by_b, tile) if scaling == "blocks" else None
    form = ScaledForm(tile, "fast" if sums == "fast" else "exact", scaling, lines is not None)
    strides = Strides(0, 0, 0, 0) if scaling == "tensors" else Strides(*by_a.strides, *by_b.strides)
    by: tuple[Any, Any] = lines or (by_a, by_b)
    return form, *by, strides


def _mixed(
    left: Operand, right: Operand, target: Operand, scale_a: Any, scale_b: Any, config: ScaledConfig | None
) -> tuple[ScaledForm, None, Operand, Strides]:
    """Return the same with 16-bit elements in A, which has no scale."""
    if scale_a is not None:
        raise ValueError(f"{NAME}: argument 'scale_a': expected None where 'a' has 16 bits, got a scale")
    by_columns = scales("scale_b", scale_b)
    check_places((left, right, by_columns, target))
    per_scale = columns_per_scale(by_columns, right.shape[1], right.shape[0])
    check_hopper(NAME, left)
    tile = config or mixed_config(left.shape[0], target.element_bytes)
    if (tile.schedule, tile.block_n, tile.split_columns) != ("cooperative", WEIGHT_COLUMNS, True):
        raise ValueError(f"{NAME}: argument 'config': expected split columns and {WEIGHT_COLUMNS} of them, got {tile}")
    is_one = prod(by_columns.shape) == 1
    scaling = "rows" if is_one or by_columns.shape[0] == 1 else "blocks"
    form = ScaledForm(tile, "mixed", scaling, columns_per_scale=per_scale)
    return form, None, by_columns, Strides(0, 0, *((0, 0) if is_one else by_columns.strides))


def _sums(fast: bool, scaling: Scaling) -> Sums:
    """Return what is a sum of the tensor cores. Raises ValueError for `fast` with scales of blocks."""
    if fast and scaling == "blocks":
        raise ValueError(f"{NAME}: argument 'fast': expected False with scales of blocks, which multiply sums of 128")
    return "fast" if fast else "blocks" if scaling == "blocks" else "exact"
