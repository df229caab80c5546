"""The cross-entropy of rows of logits with classes: `cross_entropy`. Its kernels are in `cross_entropy_rows`."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..calls.launching import Launch, multiprocessors
from ..calls.operands import (
    Operand,
    Rows,
    check_places,
    check_shape,
    check_types,
    empty,
    operand,
    rows_of,
    unit_of,
    width_of,
    zeros,
)
from ..calls.planned_function import PlannedFunction
from ..calls.plans import COUNTERS, WORKSPACE, Prepared
from ..operators import rows as operators
from .cross_entropy_rows import (
    cross_entropy_backward_rows,
    cross_entropy_backward_unaligned_rows,
    cross_entropy_rows,
    cross_entropy_short_rows,
)
from .edges import THREADS, tile_of
from .tables import DTYPES, Tables

CLASSES = ("i32", "i64")
REDUCTIONS = ("mean", "sum", "none")

_SHORT, _VECTORS, _SHORT_REGISTERS = 4096, 4, 64
"""The longest row of which a program has all at a time, or several; vectors of 16 bytes and registers of a thread."""

_BLOCK, _BLOCK_WARPS = 8192, 8
"""Elements of a program backward, and its warps."""

_REGISTERS, _MORE_REGISTERS = 32, 8
"""Registers of a thread where losses are added up, so that many programs are resident; and those that smoothing takes
besides, or rows that are read by elements."""

_ALL_REGISTERS, _ALL_THREADS, _RESIDENT = 1 << 16, 2048, 32
"""Registers of a multiprocessor, threads and programs that it has at most."""

_SUMS, _MORE_SUMS = 4, 16
"""Sums that each thread of the last program adds up at a time; and where all is read in some microseconds."""


def cross_entropy(
    x: Any, target: Any, *, ignore_index: int = -100, label_smoothing: float = 0.0, reduction: str = "mean"
) -> Any:
    """Return -log(softmax(x)) at the class `target` of each row, as torch's function of this name does, in f32.

    x: logits in fp16, bf16 or fp32, a row of classes in the last dimension, which is contiguous; rows lie at one
        distance. They are read once.
    target: a class for each row, i32 or i64, contiguous, of x's shape without the last dimension. Rows of the class
        `ignore_index` count for nothing. A class that is not there makes the loss NaN.
    label_smoothing: the part of each row's weight that all classes share, 0 to 1.
    reduction: `mean` over the rows that count, `sum`, or `none` for the loss of each row.

    The result is f32 whatever the logits are. torch's tensors have a gradient of `x` (`cross_entropy_backward`). Arrays
    of numpy and torch's tensors on the CPU run there, as machine code.

    Raises TypeError for other types, ValueError for other shapes, strides and options.
    """
    # What a gradient needs is kept for tensors that want one.
    is_saved = getattr(x, "requires_grad", False)
    options = (int(ignore_index), float(label_smoothing), reduction, is_saved)
    return CROSS_ENTROPY((x, target, None, None, None), options)[0]


def cross_entropy_backward(
    dloss: Any, x: Any, target: Any, lse: Any, scale: Any, *, ignore_index: int = -100, label_smoothing: float = 0.0
) -> Any:
    """Return the gradient of the logits.

    `dloss` is that of the result, one f32 or one for each row; `lse` are the logarithms of the sums of exponentials of
    the rows, `scale` has what the gradient is multiplied with, or is None.

    Raises as `cross_entropy` does.
    """
    return CROSS_ENTROPY_BACKWARD((dloss, x, target, lse, scale, None), (int(ignore_index), float(label_smoothing)))


_NAME = "cross_entropy"


def _prepare(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    x, target, *_ = tensors
    ignore_index, smoothing, reduction, is_saved = options
    given, classes = _checked(_NAME, x, target, smoothing)
    if reduction not in REDUCTIONS:
        raise ValueError(f"{_NAME}: argument 'reduction': expected {' or '.join(REDUCTIONS)}, got {reduction!r}")
    rows = given.shape[:-1]
    is_each, is_mean = reduction == "none", reduction == "mean"
    loss = empty(given, rows if is_each else (), "fp32")
    lse = empty(given, rows, "fp32") if is_saved else None
    scale = empty(given, (1,), "fp32") if is_mean and is_saved else None
    named = {"x": x, "target": target, "loss": loss, "lse": lse, "scale": scale}
    if 0 in given.shape:
        # Of no rows the sum is 0 and the mean no number; of no classes each loss is that of a sum of nothing.
        if lse is not None:
            lse[...] = float("-inf")
        loss[...] = 0.0 if reduction == "sum" else float("nan")
        return Prepared(named)
    total, losses, counter = None, loss, None
    if not is_each:
        total, counter = loss, zeros(given, (1,), "i64")
        losses = empty(given, (_programs(given, smoothing),), "fp32")
    launch = _forward_launch(
        given, classes, losses, lse, ignore_index, smoothing, total=total, scale=scale, counter=counter, is_mean=is_mean
    )
    return Prepared({**named, WORKSPACE: None if is_each else losses, COUNTERS: counter}, (launch,))


def cross_entropy_launch(x: Any, target: Any, losses: Any, lse: Any, smoothing: float = 0.0) -> Launch:
    """The launch for the losses and sums of rows; no extent may be 0. Raises as `cross_entropy` does."""
    given, classes = _checked(_NAME, x, target, smoothing)
    return _forward_launch(given, classes, losses, lse, -100, smoothing)


def _forward_launch(
    given: Operand, classes: Operand, losses: Any, lse: Any, ignore_index: int, smoothing: float, *, total: Any = None,
    scale: Any = None, counter: Any = None, is_mean: bool = False,
) -> Launch:  # fmt: skip
    """The launch for the losses, or for their sum.

    For a sum there is a `total`, a `counter` that is zero, and `losses` has one element for each program.
    """
    rows = rows_of(given)
    way = _way(given, rows, smoothing)
    values = {
        "x_ptr": given, "target_ptr": classes, "loss_ptr": losses, "lse_ptr": lse, "total_ptr": total,
        "scale_ptr": scale, "counter_ptr": counter, "x_stride": rows.distance // way.unit, "ROW_COUNT": rows.count,
        "COLUMNS": rows.columns // way.unit, "ignore_index": ignore_index, "smoothing": smoothing,
    }  # fmt: skip
    constants = {**way.constants, "IS_SMOOTHED": smoothing > 0, "IS_MEAN": is_mean}
    sources = {"lse_ptr": "lse", "total_ptr": "loss", "scale_ptr": "scale", "counter_ptr": COUNTERS}
    if total is None:
        sources["loss_ptr"] = "loss"
    aligned = ("x_ptr",) if way.unit * way.constants["WIDTH"] > 1 else ()
    each, all_programs = -(-rows.count // way.rows), None if total is None else losses.shape[0]
    programs, registers = (each, None) if all_programs is None else (all_programs, way.registers)
    return Launch.of(
        way.kernel,
        (programs,),
        values,
        constants,
        given.device,
        sources,
        aligned,
        registers,
        num_warps=way.threads // 32,
    )


class _Way(NamedTuple):
    """The way to losses: the kernel, rows of a program at a time, its threads, and registers of each.

    Registers are those where losses are added up. The stride and the length of rows are counted in `unit` elements.
    """

    kernel: Any
    rows: int
    unit: int
    threads: int
    registers: int
    constants: dict[str, int]


def _way(given: Operand, rows: Rows, smoothing: float) -> _Way:
    unit, width = unit_of((given,), (rows,)), width_of((given,), (rows,))
    if width > 1 and rows.columns <= _SHORT:
        tile = tile_of(rows.columns, width, _VECTORS)
        threads = max(THREADS, tile["LANES"])
        constants = {**tile, "SUM_BLOCK": _MORE_SUMS * threads}
        return _Way(cross_entropy_short_rows, tile["ROWS"], 1, threads, _SHORT_REGISTERS, constants)
    threads = min(THREADS, max(rows.block // 8, 32))
    # Of few rows each has more threads, so that all multiprocessors have enough to load.
    while 2 * threads <= min(rows.columns // 16, 1024, _ALL_THREADS * multiprocessors(given) // rows.count):
        threads *= 2
    width = width if unit == 1 else 1
    registers = _REGISTERS + ((smoothing > 0) + (unit * width == 1)) * _MORE_REGISTERS
    constants = {"THREADS": threads, "UNIT": unit, "WIDTH": width, "SUM_BLOCK": _SUMS * threads}
    return _Way(cross_entropy_rows, 1, unit, threads, registers, constants)


def _programs(given: Operand, smoothing: float) -> int:
    """Programs that add up losses: as many as are resident at once, or fewer that have as many rows each."""
    rows = rows_of(given)
    way = _way(given, rows, smoothing)
    resident = multiprocessors(given) * min(_RESIDENT, _ALL_REGISTERS // (way.threads * way.registers))
    groups = -(-rows.count // way.rows)
    return -(-groups // -(-groups // resident))


_BACKWARD = "cross_entropy_backward"


def _prepare_backward(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    dloss, x, target, lse, scale, _ = tensors
    ignore_index, smoothing = options
    given, _ = _checked(_BACKWARD, x, target, smoothing)
    dx = empty(given, given.shape)
    named = {"dloss": dloss, "x": x, "target": target, "lse": lse, "scale": scale, "dx": dx}
    if 0 in given.shape:
        return Prepared(named)
    launch = cross_entropy_backward_launch(
        dloss, x, target, lse, scale, dx, ignore_index=ignore_index, smoothing=smoothing
    )
    return Prepared(named, (launch,))


CROSS_ENTROPY_BACKWARD = PlannedFunction(
    _BACKWARD, _prepare_backward, results=5, operator=operators.CROSS_ENTROPY_BACKWARD
)
CROSS_ENTROPY = PlannedFunction(
    _NAME, _prepare, results=slice(2, 5), operator=operators.cross_entropy(CROSS_ENTROPY_BACKWARD)
)


def cross_entropy_backward_launch(
    dloss: Any, x: Any, target: Any, lse: Any, scale: Any, dx: Any, *, ignore_index: int = -100, smoothing: float = 0.0
) -> Launch:
    """The launch of `cross_entropy_backward`; no extent may be 0. Raises as it does."""
    _, classes = _checked(_BACKWARD, x, target, smoothing)
    grad, sums = operand(_BACKWARD, "dloss", dloss), operand(_BACKWARD, "lse", lse)
    check_types((sums, grad), ("fp32",))
    of = Tables(_BACKWARD, {"x": x, "dx": dx})
    given, rows, unit = of.first, of.rows, of.unit
    check_shape(sums, classes.shape, "that of 'target'")
    if grad.shape:
        check_shape(grad, classes.shape, "that of 'target'")
    check_places((given, grad, sums))
    values = {
        **of.arguments, "target_ptr": classes, "lse_ptr": sums, "dloss_ptr": grad,
        "scale_ptr": None if scale is None else operand(_BACKWARD, "scale", scale),
        "dloss_step": int(bool(grad.shape)), "ignore_index": ignore_index, "smoothing": smoothing,
    }  # fmt: skip
    width = width_of(of.operands, of.all_rows)
    if width > 1 and (unit == 1 or rows.columns <= _SHORT):
        distances = [each.distance for each in of.all_rows]
        values |= dict(zip(("x_stride", "dx_stride"), distances, strict=True))
        values |= {"ROW_COUNT": rows.count, "COLUMNS": rows.columns}
        blocks = -(-rows.columns // _BLOCK)
        tile = tile_of(-(-rows.columns // blocks), width, _VECTORS)
        return Launch.of(
            cross_entropy_backward_unaligned_rows, (-(-rows.count // tile["ROWS"]), blocks), values, tile,
            given.device, aligned=("x_ptr", "dx_ptr"), num_warps=max(THREADS, tile["LANES"]) // 32,
        )  # fmt: skip
    block = min(_BLOCK, max(rows.block, 128))
    return Launch.of(
        cross_entropy_backward_rows,
        (rows.count, -(-rows.columns // block)),
        values,
        {"BLOCK": block, "UNIT": unit},
        given.device,
        aligned=("x_ptr", "dx_ptr") if unit > 1 else (),
        num_warps=max(1, _BLOCK_WARPS * block // _BLOCK),
    )


def _checked(name: str, x: Any, target: Any, smoothing: float) -> tuple[Operand, Operand]:
    given, classes = operand(name, "x", x), operand(name, "target", target)
    check_types((given,), DTYPES)
    check_types((classes,), CLASSES)
    check_places((given, classes))
    if not given.shape:
        raise ValueError(f"{given.what}: expected one dimension or more, got a single element")
    check_shape(classes, given.shape[:-1], "that of 'x' without its last dimension")
    if classes.shape and 0 not in classes.shape and rows_of(classes).distance != classes.shape[-1]:
        raise ValueError(f"{classes.what}: expected contiguous classes, got the strides {classes.strides}")
    if not 0.0 <= smoothing <= 1.0:
        raise ValueError(f"{name}: argument 'label_smoothing': expected 0 to 1, got {smoothing}")
    return given, classes
