"""C = A @ B in half precision with f32 sums, on Hopper: `gemm(a, b)`, and what is done with the sums before the store.

fp16 and bf16, any M, N and K, any strides. A and B by rows or by columns (as torch's `.T` leaves them) are read as they
lie; what TMA can't read, since rows do not begin at multiples of 16 bytes, is copied first or read by a kernel without
TMA, whichever should be faster (`unaligned`).

    c = gemm(a, b)                                              # launches on the current stream
    c = gemm(a, b, epilogue="bias_gelu", columns=(bias,))       # `epilogues.EPILOGUES`, or a function of yours
    launch = gemm_launch(a, b, c).bind()                        # the same, to be repeated: launch()

The kernels are in `persistent` and `split`, the choice in `config`. Arrays of numpy,
and torch's tensors on the CPU, are multiplied by the interpreter, which is for looking, not for speed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..calls.launching import WORKSPACE, Launch, Launches, check_hopper, multiprocessors
from ..calls.operands import (
    TMA_ALIGNMENT,
    Operand,
    check_places,
    check_product,
    check_shape,
    check_type,
    check_types,
    empty,
    operand,
    row_strides,
    transposed,
    type_of_result,
)
from ..calls.planned_function import PlannedFunction
from ..calls.plans import Prepared
from ..operators import gemm as operators
from .config import choose
from .division import Choice, covers, whole
from .epilogues import EPILOGUES, Epilogue
from .launches import PLAIN, VECTORS, Finish, Problem, workspace_bytes
from .model import Matrix, Reading, line_cost, predict
from .tiles import LARGE, GemmConfig
from .unaligned import placement, unaligned_launches, unaligned_workspace
from .unaligned_config import UnalignedPlan, plan_unaligned

DTYPES = ("fp16", "bf16")
OUT_DTYPES = ("fp16", "bf16", "fp32")

_ENDING = 1.5
"""Microseconds of an epilogue's arithmetic for a tile of 128 x 256, such as those of GELU."""

_HALVES = replace(LARGE, block_n=128, tail_n=128, subtiles=2)
"""The tile whose strips are of the two halves of B."""


def gemm(
    a: Any,
    b: Any,
    out: Any = None,
    *,
    epilogue: Any = None,
    rows: Sequence[Any] = (),
    columns: Sequence[Any] = (),
    matrix: Any = None,
    out_dtype: Any = None,
    config: GemmConfig | Choice | None = None,
) -> Any:
    """Return epilogue(a @ b): (M, K) times (K, N), each sum in f32 and rounded once, at the end.

    `epilogue` is a name of `epilogues.EPILOGUES` or a `tlx_xdsl.jit` function that goes element by element: of the f32
    sums of a part of C, of up to two vectors of M numbers (`rows`, as (rows, 1)), up to two of N numbers (`columns`, as
    (1, columns)) and of `matrix`, of the shape and type of C. "swiglu" takes B as two halves of N columns each, and
    gives N, a multiple of 8 unless B lies by columns. `out` receives the result where it is given; else it is made, of
    `out_dtype` (fp16, bf16, fp32; by default that of `a`). `config` replaces the choice of `gemm_config.choose`.

    Raises TypeError for what is no tensor of fp16 or bf16 and for an epilogue that is no function, ValueError for
    shapes that do not fit, negative strides and tensors in different places, RuntimeError on a GPU that is not Hopper.
    """
    return GEMM((a, b, out, matrix, *rows, *columns), (len(rows), epilogue, out_dtype, config))


def gemm_launch(
    a: Any,
    b: Any,
    out: Any,
    *,
    epilogue: Any = None,
    rows: Sequence[Any] = (),
    columns: Sequence[Any] = (),
    matrix: Any = None,
    config: GemmConfig | Choice | None = None,
    programs: int | None = None,
) -> Launches:
    """The launches of out = epilogue(a @ b), to be bound once and repeated; no extent may be 0.

    `programs` is how many multiprocessors share the tiles, by default all of the GPU. Raises as `gemm` does.
    """
    left, right = _factors(a, b)
    finish = _finish(epilogue, rows, columns, matrix)
    target = _target(left, right, out, finish)
    if 0 in (*left.shape, *right.shape):
        raise ValueError(f"gemm: expected matrices with elements, got {left.shape} and {right.shape}")
    return _launches(left, right, target, finish, config, programs)


def _prepare(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    a, b, out, matrix, *vectors = tensors
    count, epilogue, out_dtype, config = options
    left, right = _factors(a, b)
    finish = _finish(epilogue, vectors[:count], vectors[count:], matrix)
    if out is None:
        dtype = None if out_dtype is None else type_of_result("gemm", out_dtype, OUT_DTYPES)
        out = empty(left, (left.shape[0], _columns(right, finish)), dtype)
    target = _target(left, right, out, finish)
    found = {"a": a, "b": b, "out": out, "matrix": matrix}
    found |= {each.name: each.value for each in (*finish.rows, *finish.columns)}
    if 0 in target.shape:
        return Prepared(found)
    if left.shape[1] == 0:
        if finish.function is None:
            out[...] = 0
            return Prepared(found)
        # The epilogue of sums that are zero.
        left, right = (
            replace(each, value=_zeros(each, shape), shape=shape, strides=(shape[1], 1))
            for each, shape in ((left, (left.shape[0], 8)), (right, (8, right.shape[1])))
        )
        launches = _launches(left, right, target, finish, config, None)
        launches.bind()()
        return Prepared(found)
    launches = _launches(left, right, target, finish, config, None)
    return Prepared({**found, WORKSPACE: launches.workspace}, launches.parts)


GEMM = PlannedFunction("gemm", _prepare, results=2, operator=operators.GEMM)


# --- what is asked for --------------------------------------------------------------------------------------------


def _zeros(like: Operand, shape: tuple[int, int]) -> Any:
    made = empty(like, shape)
    made[...] = 0
    return made


def _factors(a: Any, b: Any) -> tuple[Operand, Operand]:
    left, right = operand("gemm", "a", a), operand("gemm", "b", b)
    check_types((left, right), DTYPES)
    check_product(left, right)
    return left, right


def _columns(right: Operand, finish: Finish) -> int:
    if not finish.epilogue.paired:
        return right.shape[1]
    if right.shape[1] % 2:
        raise ValueError(
            f"{right.what}: expected two halves of columns for this epilogue, got {right.shape[1]} columns"
        )
    return right.shape[1] // 2


def _target(left: Operand, right: Operand, out: Any, finish: Finish) -> Operand:
    target = operand("gemm", "out", out)
    check_type(target, OUT_DTYPES)
    check_places((left, target, *finish.rows, *finish.columns))
    columns = _columns(right, finish)
    check_shape(target, (left.shape[0], columns), "rows of 'a', columns of 'b'")
    for each in finish.rows:
        check_shape(each, (left.shape[0],), "rows of 'a'")
    for each in finish.columns:
        check_shape(each, (columns,), "columns of the result")
    if (matrix := finish.matrix) is not None:
        check_places((left, matrix))
        check_shape(matrix, target.shape, "the shape of the result")
        if matrix.dtype != target.dtype:
            raise TypeError(f"{matrix.what}: expected {target.value.dtype} as the result has, got {matrix.value.dtype}")
    return target


def _finish(epilogue: Any, rows: Sequence[Any], columns: Sequence[Any], matrix: Any) -> Finish:
    if epilogue is None:
        if rows or columns or matrix is not None:
            raise TypeError(
                "gemm: argument 'epilogue': expected a function for 'rows', 'columns' or 'matrix', got None"
            )
        return PLAIN
    for name, vectors in (("rows", rows), ("columns", columns)):
        if len(vectors) > VECTORS:
            raise ValueError(f"gemm: argument '{name}': expected at most {VECTORS} vectors, got {len(vectors)}")
    known = _known(epilogue, len(rows), len(columns), matrix is not None)
    return Finish(
        known,
        tuple(_vector(f"rows[{index}]", value) for index, value in enumerate(rows)),
        tuple(_vector(f"columns[{index}]", value) for index, value in enumerate(columns)),
        None if matrix is None else operand("gemm", "matrix", matrix),
    )


def _known(epilogue: Any, rows: int, columns: int, matrix: bool) -> Epilogue:
    if not isinstance(epilogue, str):
        if not hasattr(epilogue, "arg_names"):
            raise TypeError(
                "gemm: argument 'epilogue': expected a name or a function with @tlx_xdsl.jit, "
                f"got {type(epilogue).__name__}"
            )
        return Epilogue(epilogue)
    if epilogue not in EPILOGUES:
        raise ValueError(f"gemm: argument 'epilogue': expected {', '.join(EPILOGUES)}, got {epilogue!r}")
    known = EPILOGUES[epilogue]
    if (rows, columns, matrix) != (known.rows, known.columns, known.matrix):
        raise TypeError(
            f"gemm: epilogue {epilogue!r}: expected {known.rows} vectors in 'rows', {known.columns} in 'columns' and "
            f"{'a' if known.matrix else 'no'} 'matrix', got {rows}, {columns} and {'one' if matrix else 'none'}"
        )
    return known


def _vector(name: str, value: Any) -> Operand:
    each = operand("gemm", name, value)
    if len(each.shape) != 1:
        raise ValueError(f"{each.what}: expected 1 dimension, got the shape {each.shape}")
    check_type(each, OUT_DTYPES)
    if each.shape[0] > 1 and each.strides[0] != 1:
        raise ValueError(f"{each.what}: expected contiguous elements, got the stride {each.strides[0]}")
    return each


# --- launches -----------------------------------------------------------------------------------------------------


class _Product(NamedTuple):
    """A product as it is computed, what is asked for, and the multiprocessors that share it."""

    left: Operand
    right: Operand
    target: Operand
    finish: Finish
    config: GemmConfig | Choice | None
    processors: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """M, N and K; where B is two halves N is that of the result."""
        return self.left.shape[0], self.target.shape[1], self.left.shape[1]


def _launches(
    left: Operand,
    right: Operand,
    target: Operand,
    finish: Finish,
    config: GemmConfig | Choice | None,
    programs: int | None,
) -> Launches:
    check_hopper("gemm", left)
    if finish.epilogue.paired:
        _check_halves(right, target, config)
    turned = placement(target).columns and not finish.epilogue.paired
    if turned:
        # C^T = B^T A^T: the kernels prefer a C by rows.
        left, right, target, finish = transposed(right), transposed(left), transposed(target), finish.turned()
    asked = _Product(left, right, target, finish, config, programs or multiprocessors(left))
    choice, plan = _chosen(asked), _plan(asked)
    copied = unaligned_workspace(left, right, target, plan)
    size = copied if plan.direct is not None else copied + workspace_bytes(choice)
    workspace = empty(left, (size,), "u8") if size else None
    # TMA writes units of 16 bytes: what lies in a row after the last column is overwritten up to the next one.
    place = placement(target)
    by_pointer = not (place.tma and place.vector > 1) and "target" not in plan.copies

    def product(left: Operand, right: Operand, target: Operand) -> Sequence[Launch]:
        operands, ending = (left, right, target), finish
        if choice.swapped:
            operands, ending = (transposed(right), transposed(left), transposed(target)), finish.turned()
        return Problem(*operands, ending, choice, turned != choice.swapped, by_pointer).launches(workspace, copied)

    return Launches(unaligned_launches(left, right, target, plan, workspace, product), workspace)


def _check_halves(right: Operand, target: Operand, config: GemmConfig | Choice | None) -> None:
    """Raise ValueError for what an epilogue of two halves of B does not take."""
    if target.shape[1] > 1 and target.strides[1] != 1:
        raise ValueError(f"{target.what}: expected a result by rows for this epilogue, got it by columns")
    unit = TMA_ALIGNMENT // right.element_bytes
    if target.shape[1] % unit and not placement(right).columns:
        raise ValueError(
            f"{right.what}: expected halves of a multiple of {unit} columns for this epilogue, or a matrix by columns, "
            f"got halves of {target.shape[1]} columns by rows: TMA begins to copy at multiples of {TMA_ALIGNMENT} bytes"
        )
    if isinstance(config, Choice) and config.share:
        raise ValueError(f"gemm: argument 'config': expected whole tiles for this epilogue, got {config}")


def _chosen(asked: _Product) -> Choice:
    config, finish, processors = asked.config, asked.finish, asked.processors
    m, n, k = asked.shape
    if isinstance(config, Choice):
        if not covers(config, m, n, k):
            raise ValueError(f"gemm: argument 'config': expected a choice that covers ({m}, {n}, {k}), got {config}")
        return config
    if finish.epilogue.paired:
        tiles = -(-m // _HALVES.block_m) * -(-n // _HALVES.block_n)
        return Choice(_HALVES, min(tiles, processors))
    if config is not None:
        return whole(config, m, n, processors)
    reading = Reading(matrix_of(asked.left, 1), matrix_of(asked.right, 0))
    return choose(m, n, k, processors, reading, 0.0 if finish.function is None else _ENDING)


def matrix_of(each: Operand, depth: int) -> Matrix:
    """Return how an operand whose dimension `depth` is K lies, or its copy where TMA can't read it."""
    by_columns = placement(each).columns
    strides = row_strides(transposed(each) if by_columns else each)
    if strides is None:
        width = each.shape[0 if by_columns else 1] * each.element_bytes
        strides = (-(-width // TMA_ALIGNMENT) * TMA_ALIGNMENT // each.element_bytes, 1)
    return Matrix(by_columns == (depth == 0), line_cost(strides[0] * each.element_bytes))


def _plan(asked: _Product) -> UnalignedPlan:
    """Return what is done about operands that TMA can't read."""
    left, right, target = map(placement, asked[:3])
    anywhere, processors = target.dense, asked.processors
    if left.tma and right.tma and target.tma:
        return UnalignedPlan(0.0)
    # A kernel that is asked for is one with TMA, and the one without has no epilogues.
    if asked.config is not None or asked.finish.function is not None or asked.target.dtype != asked.left.dtype:
        readable = {"left": left.tma, "right": right.tma, "target": target.tma or anywhere}
        return UnalignedPlan(0.0, copies=frozenset(name for name, is_read in readable.items() if not is_read))

    def microseconds(m: int, n: int, k: int) -> float:
        return predict(choose(m, n, k, processors), m, n, k)

    return plan_unaligned(
        *asked.shape, left, right, target, processors, microseconds, stores_anywhere=anywhere,
        element_bytes=asked.left.element_bytes,
    )  # fmt: skip
