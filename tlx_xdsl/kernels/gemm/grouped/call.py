"""Products of groups of rows with a matrix each, as in a mixture of experts, on Hopper: `grouped_gemm(x, w, offsets)`.

`offsets` (G,) int32 are the ends of the groups, as torch._grouped_mm has them: group g are the rows (or steps of the
sum) from offsets[g - 1], or 0, to offsets[g]. They lie where the tensors lie and only the kernel reads them: no call
waits for the GPU. Groups may be empty, and of any sizes.

    out = grouped_gemm(x, w, offsets)                     # (T, K) and (G, K, N): (T, N)
    dx = grouped_gemm(dy, w.transpose(-2, -1), offsets)   # the gradients: (T, N) and (G, N, K): (T, K)
    dw = grouped_gemm(x.T, dy, offsets)                   # (K, T) and (T, N): (G, K, N)

The kernels are in `device`, the choice of tiles in `config`. Nothing is copied. Arrays of
numpy, and torch's tensors on the CPU, are multiplied by the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tlx_xdsl.runtime.launch.tensor_descriptor import TensorDescriptor

from ...calls.launching import Launch, check_hopper, multiprocessors
from ...calls.operands import (
    TMA_ALIGNMENT,
    Operand,
    check_alignment,
    check_places,
    check_shape,
    check_type,
    check_types,
    describe,
    described,
    empty,
    operand,
    row_strides,
    transposed,
)
from ...calls.planned_function import PlannedFunction
from ...calls.plans import Prepared
from ...operators import gemm as operators
from ..tiles import Form
from .config import GroupedConfig, choose_config
from .device import ragged_rows, ragged_sums

DTYPES = ("fp16", "bf16")

_NAME = "grouped_gemm"


def grouped_gemm(x: Any, w: Any, offsets: Any, *, out: Any = None, config: GroupedConfig | None = None) -> Any:
    """Return the product of each group, in the type of `x` and `w`, each sum in f32 and rounded once.

    With `w` (G, K, N), `x` is (T, K) and the result (T, N): the rows of group g times w[g]. Rows after the last offset
    are not written. With `w` (T, N), `x` is (M, T) and the result (G, M, N): for each group the product over its part
    of T; zeros for an empty one.

    In the first kind `x` and the result lie by rows, `w` by rows or by columns; in the second `x` lies by columns, `w`
    by rows and the result either way: where T is cut into groups it is not the contiguous dimension, along which TMA
    begins at multiples of 16 bytes. Offsets that fall, or exceed T, are taken for the nearest ones that do not. Without
    elements to sum over (K or T is 0) the result is zero, all of it.

    `out` receives the result where it is given; rows of a number of columns that is no multiple of 8 are written up to
    the next one, where `out` has padding. `config` replaces the choice of `grouped_gemm_config.choose_config`.

    Raises TypeError for what is no tensor of fp16 or bf16, or offsets that are not int32; ValueError for shapes that do
    not fit, strides or addresses that TMA can't read, and tensors in different places; RuntimeError on a GPU that is
    not Hopper.
    """
    return GROUPED_GEMM((x, w, offsets, out), (config,))


def _prepare(operands: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    x, w, offsets, out = operands
    problem = read_problem(_NAME, x, w, offsets, DTYPES)
    if out is None:
        out = empty(problem.x, problem.shape)
    target = _target(problem, out)
    return problem.prepared(target, {}, lambda: _launch(problem, target, *options))


GROUPED_GEMM = PlannedFunction(_NAME, _prepare, results=3, operator=operators.GROUPED_GEMM)


def grouped_gemm_launch(
    x: Any, w: Any, offsets: Any, out: Any, *, config: GroupedConfig | None = None, programs: int | None = None
) -> Launch:
    """The launch of `grouped_gemm`, to be bound once and repeated; no extent may be 0.

    `programs` is how many share the tiles, by default the GPU's multiprocessors. Raises as `grouped_gemm` does.
    """
    problem = read_problem(_NAME, x, w, offsets, DTYPES)
    return _launch(problem, _target(problem, out), config, programs)


def _target(problem: Problem, out: Any) -> Operand:
    target = problem.target(out, DTYPES)
    check_types((problem.x, target), DTYPES)
    return target


def _launch(problem: Problem, target: Operand, config: GroupedConfig | None, programs: int | None = None) -> Launch:
    make = launch_of_sums if problem.is_sum else launch_of_rows
    return make(problem, target, config, problem.programs(programs))


def launch_of_rows(
    problem: Problem, out: Operand, config: GroupedConfig | None, programs: int,
    scales: tuple[Operand | None, Operand | None] = (None, None),
) -> Launch:  # fmt: skip
    """The launch for rows in groups, of checked operands; `scales` are those of the rows of x and the columns of w.

    Raises ValueError for memory that TMA can't read.
    """
    (rows, k), n = problem.x.shape, problem.w.shape[2]
    # The tiles hold bytes: of 8-bit elements a step takes twice as many columns.
    step_k = 2 // problem.x.element_bytes
    chosen = config or choose_config(problem.groups, rows, n, -(-k // step_k), programs).of_step(step_k)
    x_desc, x_columns = described(problem.x, (chosen.rows, chosen.block_k))
    if x_columns:
        # A copy would begin at a group's first row: TMA begins at multiples of 16 bytes along the contiguous dimension.
        raise ValueError(f"{problem.x.what}: expected rows that are contiguous, got the strides {problem.x.strides}")
    w_desc, w_columns = described(problem.w, (1, chosen.block_k, chosen.columns))
    values = {
        "x_desc": x_desc, "w_desc": w_desc, "out_desc": ragged(out, (chosen.rows, chosen.part_n)),
        "offsets": problem.offsets, "scale_x": scales[0], "scale_w": scales[1],
        "ROWS": rows, "GROUPS": problem.groups, "N": n, "K": k,
    }  # fmt: skip
    # The groups may end anywhere: each can add a row of tiles that is not full.
    tiles = (rows // chosen.block_m + problem.groups) * -(-n // chosen.block_n)
    form = Form(chosen, b_columns=w_columns)
    return Launch.of(ragged_rows, (min(tiles, programs),), values, {"FORM": form}, problem.x.device)


def launch_of_sums(problem: Problem, out: Operand, config: GroupedConfig | None, programs: int) -> Launch:
    """The launch for sums over groups, of checked operands. Raises ValueError for memory that TMA can't read."""
    x, y, turned = transposed(problem.x), problem.w, transposed(out)
    if row_strides(out) is None and row_strides(turned) is not None:
        # out^T = y^T x: the kernel stores by rows.
        x, y, out = y, x, turned
    (rows, m), n, groups = x.shape, y.shape[1], problem.groups
    chosen = config or choose_config(groups, m * groups, n, max(rows // groups, 1), programs, split=False)
    if chosen.b_parts == 2:
        raise ValueError(f"{_NAME}: argument 'config': expected tiles of 128 rows where 'w' has 2 dimensions, got 64")
    out_desc, by_columns = described(out, (1, chosen.rows, chosen.part_n))
    assert not by_columns, "transposed above"
    values = {
        "x_desc": ragged(x, (chosen.block_k, chosen.rows)), "y_desc": ragged(y, (chosen.block_k, chosen.columns)),
        "out_desc": out_desc, "offsets": problem.offsets, "ROWS": rows, "GROUPS": groups, "M": m, "N": n,
    }  # fmt: skip
    tiles = groups * -(-m // chosen.block_m) * -(-n // chosen.block_n)
    form = Form(chosen, a_columns=True)
    return Launch.of(ragged_sums, (min(tiles, programs),), values, {"FORM": form}, x.device)


# --- operands ---------------------------------------------------------------------------------------------------------
#
# Operands of grouped products: their checks, and the descriptors that cut rows where a group ends.


MAX_ROWS = 1 << 30
"""Rows of all groups: what a ragged descriptor holds (`parts`)."""

LARGEST_EXTENT = (1 << 31) - 1


@dataclass(frozen=True)
class Problem:
    """Checked operands: `w` has a matrix for each group, or (`is_sum`) rows that the columns of `x` multiply."""

    x: Operand
    w: Operand
    offsets: Operand

    @property
    def groups(self) -> int:
        """The number of groups."""
        return self.offsets.shape[0]

    @property
    def is_sum(self) -> bool:
        """Return whether it is a sum over the rows of each group."""
        return len(self.w.shape) == 2

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        matrix = (self.x.shape[0], self.w.shape[-1])
        return (self.groups, *matrix) if self.is_sum else matrix

    def target(self, out: Any, dtypes: Sequence[str]) -> Operand:
        """The result, checked. Raises TypeError and ValueError."""
        target = operand(self.x.function, "out", out)
        check_types((target,), dtypes)
        check_places((self.x, target))
        check_shape(target, self.shape, f"{'groups, ' if self.is_sum else ''}rows of 'x', columns of 'w'")
        return target

    def prepared(self, target: Operand, scales: Mapping[str, Operand], launch: Callable[[], Launch]) -> Prepared:
        """The call with this result; without elements to sum over it is zero."""
        given = {"x": self.x, "w": self.w, "offsets": self.offsets, **scales, "out": target}
        tensors = {name: each.value for name, each in given.items()}
        if 0 in self.shape or self.groups == 0:
            return Prepared(tensors)
        if self.x.shape[1] == 0:
            target.value[...] = 0
            return Prepared(tensors)
        return Prepared(tensors, (launch(),))

    def programs(self, wanted: int | None) -> int:
        """The programs that share the tiles.

        Raises ValueError for tensors without elements, RuntimeError on a GPU that is not Hopper.
        """
        if 0 in (*self.x.shape, *self.w.shape, self.groups):
            raise ValueError(
                f"{self.x.function}: expected tensors with elements and at least one group, got {self.x.shape}, "
                f"{self.w.shape} and {self.groups} groups"
            )
        check_hopper(self.x.function, self.x)
        return wanted or multiprocessors(self.x)


def read_problem(function: str, x: Any, w: Any, offsets: Any, dtypes: Sequence[str]) -> Problem:
    """Look at the operands. Raises TypeError for types and ValueError for places, shapes and strides that don't fit."""
    left, right, ends = operand(function, "x", x), operand(function, "w", w), operand(function, "offsets", offsets)
    check_types((left, right), dtypes)
    check_places((left, ends))
    check_type(ends, ("i32",), "int32")
    if len(ends.shape) != 1 or (ends.shape[0] > 1 and ends.strides != (1,)):
        raise ValueError(
            f"{ends.what}: expected one contiguous dimension, got the shape {ends.shape} and the strides {ends.strides}"
        )
    if len(left.shape) != 2:
        raise ValueError(f"{left.what}: expected 2 dimensions, got the shape {left.shape}")
    if len(right.shape) not in (2, 3):
        raise ValueError(f"{right.what}: expected 3 dimensions, or 2 for a sum in groups, got the shape {right.shape}")
    groups = ends.shape[0]
    if right.shape[-2] != left.shape[1]:
        raise ValueError(
            f"{right.what}: expected {left.shape[1]} rows, as 'x' has columns, got {right.shape[-2]} in {right.shape}"
        )
    if len(right.shape) == 3 and right.shape[0] != groups:
        raise ValueError(f"{right.what}: expected {groups} matrices, as 'offsets' has groups, got {right.shape[0]}")
    rows = left.shape[0] if len(right.shape) == 3 else left.shape[1]
    if rows > MAX_ROWS:
        raise ValueError(f"{left.what}: expected at most {MAX_ROWS} rows in all groups, got {rows}")
    return Problem(left, right, ends)


def ragged(each: Operand, block: tuple[int, int]) -> TensorDescriptor:
    """A descriptor of rows that are cut where a group ends; `parts` explains its numbers.

    Raises ValueError for memory that TMA can't cut there.
    """
    check_alignment(each)
    strides = row_strides(each)
    if strides is None:
        raise ValueError(
            f"{each.what}: expected the dimension that has no groups to be contiguous, and the other one's stride to "
            f"be a multiple of {TMA_ALIGNMENT // each.element_bytes} elements, got the strides {each.strides} of the "
            f"shape {each.shape}"
        )
    distance = strides[0]
    shape = (LARGEST_EXTENT, LARGEST_EXTENT, MAX_ROWS, each.shape[1])
    return describe(each.value, shape, ((1 << 34) - distance, distance, distance, 1), (1, 1, *block), each.name)
