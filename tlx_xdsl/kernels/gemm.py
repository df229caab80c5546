"""C = A @ B in half precision with f32 sums, on Hopper: `gemm(a, b)`.

The kernels are in `gemm_device`, the choice between them in `gemm_config`. A and B lie by rows or by columns, as
torch's `.T` leaves them: no copy is made. fp16 and bf16; any M, N and K, where rows (or columns) start at multiples of
16 bytes, as TMA wants.

    c = gemm(a, b)                        # launches on the current stream
    launch = gemm_launch(a, b, c).bind()  # the same, to be repeated: launch()

Arrays of numpy, and torch's tensors on the CPU, are multiplied by the interpreter, which is for looking, not for speed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tlx_xdsl.kernels.division import divisor
from tlx_xdsl.kernels.gemm_config import GemmConfig, choose_config
from tlx_xdsl.kernels.gemm_device import gemm_cooperative, gemm_pingpong
from tlx_xdsl.kernels.launching import Launch, check_hopper, multiprocessors
from tlx_xdsl.kernels.operands import (
    TMA_ALIGNMENT,
    Operand,
    check_alignment,
    check_shape,
    check_types,
    describe,
    empty,
    operand,
    row_strides,
)
from tlx_xdsl.runtime.launch.tensor_descriptor import TensorDescriptor

DTYPES = ("fp16", "bf16")

_KERNELS = {"cooperative": gemm_cooperative, "pingpong": gemm_pingpong}


def gemm(a: Any, b: Any, out: Any = None, *, config: GemmConfig | None = None) -> Any:
    """Return a @ b: (M, K) times (K, N), in the type of `a` and `b`, each sum in f32 and rounded once.

    `out` receives the result where it is given; `config` replaces the choice of `gemm_config.choose_config`.

    Raises TypeError for what is no tensor of fp16 or bf16, ValueError for shapes that do not fit, strides or addresses
    that TMA can't read and tensors in different places, RuntimeError on a GPU that is not Hopper.
    """
    left, right = _factors(a, b)
    if out is None:
        out = empty(left, (left.shape[0], right.shape[1]))
    target = _target(left, right, out)
    if 0 in target.shape:
        return out
    if left.shape[1] == 0:
        out[...] = 0
        return out
    gemm_launch(a, b, out, config=config).bind()()
    return out


def gemm_launch(a: Any, b: Any, out: Any, *, config: GemmConfig | None = None, programs: int | None = None) -> Launch:
    """The launch of out = a @ b, to be bound once and repeated; no extent may be 0.

    `programs` is how many share the tiles, by default the GPU's multiprocessors. Raises as `gemm` does.
    """
    left, right = _factors(a, b)
    target = _target(left, right, out)
    if 0 in (*left.shape, *right.shape):
        raise ValueError(f"gemm: expected matrices with elements, got {left.shape} and {right.shape}")
    check_hopper("gemm", left)
    if row_strides(target) is None and row_strides(_transposed(target)) is not None:
        # C^T = B^T A^T: the kernels store C by rows.
        left, right, target = _transposed(right), _transposed(left), _transposed(target)
    (m, k), n = left.shape, right.shape[1]
    processors = multiprocessors(left)
    chosen = config or choose_config(m, n, k, processors)
    a_desc, a_columns = _described(left, chosen.rows, chosen.block_k)
    b_desc, b_columns = _described(right, chosen.block_k, chosen.block_n)
    c_desc, c_columns = _described(target, chosen.rows, chosen.block_n // chosen.subtiles)
    assert not c_columns, "transposed above"
    arguments = {"a_desc": a_desc, "b_desc": b_desc, "c_desc": c_desc, "M": m, "N": n, "K": k}
    tiles_m, tiles_n = -(-m // chosen.block_m), -(-n // chosen.block_n)
    arguments["GROUP_FACTOR"], arguments["GROUP_SHIFT"] = divisor(chosen.group_m * tiles_n)
    arguments["REST_FACTOR"], arguments["REST_SHIFT"] = divisor(tiles_m % chosen.group_m or 1)
    constexprs = {
        "BLOCK_M": chosen.block_m,
        "BLOCK_N": chosen.block_n,
        "BLOCK_K": chosen.block_k,
        "NUM_STAGES": chosen.stages,
        "SUBTILES": chosen.subtiles,
        "BUFFERS": chosen.buffers,
        "GROUP_M": chosen.group_m,
        "A_COLUMNS": a_columns,
        "B_COLUMNS": b_columns,
    }
    grid = (min(chosen.tiles(m, n), programs or processors),)
    return Launch(_KERNELS[chosen.schedule], grid, arguments, constexprs, left.device)


def _factors(a: Any, b: Any) -> tuple[Operand, Operand]:
    left, right = operand("gemm", "a", a), operand("gemm", "b", b)
    check_types((left, right), DTYPES)
    for each in (left, right):
        if len(each.shape) != 2:
            raise ValueError(f"{each.what}: expected 2 dimensions, got the shape {each.shape}")
    if left.shape[1] != right.shape[0]:
        raise ValueError(f"{right.what}: expected {left.shape[1]} rows, as 'a' has columns, got {right.shape[0]}")
    return left, right


def _target(left: Operand, right: Operand, out: Any) -> Operand:
    target = operand("gemm", "out", out)
    check_types((left, target), DTYPES)
    check_shape(target, (left.shape[0], right.shape[1]), "rows of 'a', columns of 'b'")
    return target


def _transposed(each: Operand) -> Operand:
    return replace(each, value=each.value.T, shape=each.shape[::-1], strides=each.strides[::-1])


def _described(each: Operand, rows: int, columns: int) -> tuple[TensorDescriptor, bool]:
    """A descriptor of a matrix for tiles of (rows, columns), and whether it is of the transposed matrix.

    Raises ValueError for memory that TMA can't read.
    """
    check_alignment(each)
    if (strides := row_strides(each)) is not None:
        return describe(each.value, each.shape, strides, (rows, columns)), False
    turned = _transposed(each)
    if (strides := row_strides(turned)) is not None:
        return describe(turned.value, turned.shape, strides, (columns, rows)), True
    raise ValueError(
        f"{each.what}: expected rows or columns that are contiguous and start at multiples of {TMA_ALIGNMENT} bytes "
        f"({TMA_ALIGNMENT // each.element_bytes} elements), got the strides {each.strides} of the shape {each.shape}"
    )
