"""The cross-entropy of a linear layer: `linear_cross_entropy(x, w, target)` for logits x @ w^T that are nowhere whole.

Without gradients the logits are never in memory: each tile of the product leaves two numbers of each of its rows
(`device`). For gradients a chunk of rows has its logits in memory at a time, `logits_bytes` of them, rounded to the
type of x: their product, gradients in the place of logits (`rows`), and the products of these with w and x. So there
are three products, and not four, for a mean or a sum, whose gradients are computed in the forward pass up to the
factor that comes with the backward pass. For `none` each row has a factor of its own: the backward pass computes the
logits a second time.

Gradients of w are sums over chunks: TMA adds the tiles of each to what is there.
"""

from __future__ import annotations

from typing import Any

from ..calls.launching import check_hopper
from ..calls.operands import (
    Operand,
    check_alignment,
    check_contiguous,
    check_places,
    check_shape,
    check_types,
    empty,
    operand,
    row_strides,
    rows_of,
    torch_module,
)
from ..calls.planned_function import PlannedFunction
from ..calls.plans import WORKSPACE, Prepared
from ..operators import linear_cross_entropy as operators
from .launches import (
    WIDTH,
    Gradients,
    Layer,
    gradient_launches,
    loss_launches,
    scale_launch,
    scaling_launch,
    tiles_of,
    total_launch,
)

DTYPES = ("bf16",)
CLASSES = ("i32", "i64")
REDUCTIONS = ("mean", "sum", "none")

LOGITS_BYTES = 512 << 20
"""Bytes of the logits that are in memory at a time: 2048 rows of 128256 classes."""


def linear_cross_entropy(
    x: Any,
    w: Any,
    target: Any,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
    logits_bytes: int = LOGITS_BYTES,
    sum_dtype: str = "fp32",
) -> Any:
    """Return the cross-entropy of the logits x @ w^T, as torch's `cross_entropy(linear(x, w), target)`, in f32.

    x: bf16, of any shape whose last dimension has H elements; rows are contiguous, lie at one distance and
        begin at multiples of 16 bytes.
    w: (V, H), of the type of x, rows as those of x.
    target: a class for each row of x, i32 or i64, contiguous. Rows of the class `ignore_index` count for nothing. A
        class that is not there makes the loss NaN.
    label_smoothing: the part of each row's weight that all classes share, 0 to 1.
    reduction: `mean` over the rows that count, `sum`, or `none` for the loss of each row.
    logits_bytes: memory for the logits of a chunk of rows while gradients are computed.
    sum_dtype: the type in which the chunks' gradients of `w` are added up: `fp32`, for which there is a second matrix
        of 4 bytes for each element of `w` during the call, or the type of `w`, for which there is none.

    Tensors of torch's have gradients of `x` and `w`, each sum in f32 over the rows of a chunk. They are of logits that
    were rounded to the type of `x`; without gradients the loss is that of f32 logits.

    Raises TypeError for other types, ValueError for other shapes, strides and options, RuntimeError on a GPU that is
    not Hopper.
    """
    options = (
        int(ignore_index), float(label_smoothing), reduction, _wants(x), _wants(w), int(logits_bytes), sum_dtype
    )  # fmt: skip
    return LINEAR_CROSS_ENTROPY((x, w, target, *(None,) * 8), options)[0]


def linear_cross_entropy_backward(
    dloss: Any, x: Any, w: Any, target: Any, lse: Any, *, ignore_index: int = -100, label_smoothing: float = 0.0,
    logits_bytes: int = LOGITS_BYTES, sum_dtype: str = "fp32",
) -> Any:  # fmt: skip
    """Return the gradients of x and w, given those of each row's loss (`dloss`, f32).

    `lse` are the logarithms of the sums of exponentials of the rows of logits, f32. Raises as `linear_cross_entropy`.
    """
    options = (int(ignore_index), float(label_smoothing), True, True, int(logits_bytes), sum_dtype)
    return LINEAR_CROSS_ENTROPY_BACKWARD((dloss, x, w, target, lse, *(None,) * 4), options)


def _wants(tensor: Any) -> bool:
    """Return whether a gradient of a tensor is wanted."""
    return bool(getattr(tensor, "requires_grad", False)) and bool(torch_module().is_grad_enabled())


_NAME = "linear_cross_entropy"


def _prepare(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    x, w, target, *_ = tensors
    ignore_index, smoothing, reduction, with_dx, with_dw, logits_bytes, sum_dtype = options
    layer = _checked(_NAME, x, w, target, ignore_index, smoothing, logits_bytes)
    if reduction not in REDUCTIONS:
        raise ValueError(f"{_NAME}: argument 'reduction': expected {' or '.join(REDUCTIONS)}, got {reduction!r}")
    is_each, wants = reduction == "none", with_dx or with_dw
    to_sum = _sum_type(_NAME, layer, sum_dtype)
    found: dict[str, Any] = dict.fromkeys(("scale", "losses", "logits", "sums"))
    found["loss"] = loss = empty(layer.x, target.shape if is_each else (), "fp32")
    found["dx"] = empty(layer.x, x.shape) if with_dx and not is_each else None
    found["dw"] = empty(layer.w, w.shape) if with_dw and not is_each else None
    found["lse"] = empty(layer.x, target.shape, "fp32") if is_each and wants else None
    tensors_by_name = {"x": x, "w": w, "target": target, **found}
    if layer.tokens == 0:
        loss[...] = 0.0 if reduction == "sum" else float("nan")
        if found["dw"] is not None:
            found["dw"][...] = 0.0
        return Prepared(tensors_by_name)
    # A tensor has one name in a plan: that of the result.
    losses = loss.reshape(-1) if is_each else empty(layer.x, (layer.tokens,), "fp32")
    tensors_by_name["losses"] = None if is_each else losses
    scale = tensors_by_name["scale"] = empty(layer.x, (1,), "fp32") if reduction == "mean" else None
    launches = [scale_launch(layer, scale)] if scale is not None else []
    workspace = None
    if wants and not is_each:
        logits = tensors_by_name["logits"] = empty(layer.x, (layer.chunk, layer.pitch))
        sums = tensors_by_name["sums"] = _sums(layer, with_dw, to_sum)
        to = Gradients(logits, found["dx"], found["dw"], sums, losses=losses, scale=scale)
        parts, workspace = gradient_launches(layer, to)
        launches += parts
    else:
        kept = 3 if smoothing > 0 else 2
        sums = tensors_by_name["sums"] = empty(layer.x, (kept, tiles_of(layer.classes), layer.tokens), "fp32")
        launches += loss_launches(layer, sums, losses, _flat(found["lse"]), "loss" if is_each else "losses")
    if not is_each:
        launches.append(total_launch(layer, losses, scale, loss))
    return Prepared({**tensors_by_name, WORKSPACE: workspace}, launches)


_BACKWARD = "linear_cross_entropy_backward"


def _prepare_backward(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    dloss, x, w, target, lse, *_ = tensors
    ignore_index, smoothing, with_dx, with_dw, logits_bytes, sum_dtype = options
    layer = _checked(_BACKWARD, x, w, target, ignore_index, smoothing, logits_bytes)
    to_sum = _sum_type(_BACKWARD, layer, sum_dtype)
    rows = [operand(_BACKWARD, name, value) for name, value in (("dloss", dloss), ("lse", lse))]
    check_types(rows, ("fp32",))
    check_places((layer.x, *rows))
    for each in rows:
        check_shape(each, tuple(target.shape), "that of 'target'")
        check_contiguous(each)
    dx = empty(layer.x, x.shape) if with_dx else None
    dw = empty(layer.w, w.shape) if with_dw else None
    named = {"dloss": dloss, "x": x, "w": w, "target": target, "lse": lse, "logits": None, "sums": None}
    named |= {"dx": dx, "dw": dw}
    if layer.tokens == 0:
        if dw is not None:
            dw[...] = 0.0
        return Prepared(named)
    logits = named["logits"] = empty(layer.x, (layer.chunk, layer.pitch))
    sums = named["sums"] = _sums(layer, with_dw, to_sum)
    to = Gradients(logits, dx, dw, sums, dloss=dloss.reshape(-1), lse=lse.reshape(-1))
    launches, workspace = gradient_launches(layer, to)
    return Prepared({**named, WORKSPACE: workspace}, launches)


LINEAR_CROSS_ENTROPY_BACKWARD = PlannedFunction(
    _BACKWARD, _prepare_backward, results=slice(7, 9), operator=operators.LINEAR_CROSS_ENTROPY_BACKWARD
)


def _prepare_scaling(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    """Multiply gradients that were computed with the loss by the gradient of the loss, in their place."""
    named: dict[str, Any] = dict(zip(("dloss", "dx", "dw"), tensors, strict=True))
    given = [operand(_BACKWARD, name, named[name]) for name in ("dx", "dw") if named[name] is not None]
    launches = [scaling_launch(each, named["dloss"]) for each in given if 0 not in each.shape]
    return Prepared(named, launches)


SCALING = PlannedFunction("linear_cross_entropy_scaling", _prepare_scaling, results=slice(1, 3))
LINEAR_CROSS_ENTROPY = PlannedFunction(
    _NAME,
    _prepare,
    results=slice(7, 11),
    operator=operators.linear_cross_entropy(LINEAR_CROSS_ENTROPY_BACKWARD, SCALING),
)


# --- what is asked for ----------------------------------------------------------------------------------------------


def _flat(value: Any) -> Any:
    return None if value is None else value.reshape(-1)


def _sums(layer: Layer, with_dw: bool, dtype: str) -> Any:
    """Memory for sums over chunks, where dw is not to have them itself."""
    if not with_dw or layer.at_most_one_chunk or dtype == layer.w.dtype:
        return None
    return empty(layer.w, layer.w.shape, dtype)


def _sum_type(name: str, layer: Layer, dtype: str) -> str:
    """Return the type of sums over chunks. Raises ValueError for one that is not offered."""
    assert layer.w.dtype is not None, "types are checked"
    offered = ("fp32", layer.w.dtype)
    if dtype not in offered:
        raise ValueError(f"{name}: argument 'sum_dtype': expected {' or '.join(offered)}, got {dtype!r}")
    return dtype


def _checked(
    name: str, x: Any, w: Any, target: Any, ignore_index: int, smoothing: float, logits_bytes: int
) -> Layer:  # fmt: skip
    given, weights, classes = operand(name, "x", x), operand(name, "w", w), operand(name, "target", target)
    check_types((given, weights), DTYPES)
    check_types((classes,), CLASSES)
    check_places((given, classes))
    if len(weights.shape) != 2 or 0 in weights.shape:
        raise ValueError(f"{weights.what}: expected 2 dimensions, classes and elements, got the shape {weights.shape}")
    depth = weights.shape[1]
    if not given.shape or given.shape[-1] != depth:
        raise ValueError(f"{given.what}: expected rows of {depth} elements, as 'w' has, got the shape {given.shape}")
    check_shape(classes, given.shape[:-1], "that of 'x' without its last dimension")
    if depth % WIDTH:
        raise ValueError(f"{given.what}: expected rows of a multiple of {WIDTH} elements, got {depth}")
    if not 0.0 <= smoothing <= 1.0:
        raise ValueError(f"{name}: argument 'label_smoothing': expected 0 to 1, got {smoothing}")
    if logits_bytes <= 0:
        raise ValueError(f"{name}: argument 'logits_bytes': expected a positive number, got {logits_bytes}")
    check_hopper(name, given)
    rows = given if 0 in given.shape else _as_matrix(name, "x", given)
    for each in (rows, weights):
        if 0 in each.shape:
            continue
        check_alignment(each)
        if row_strides(each) is None:
            raise ValueError(
                f"{each.what}: expected contiguous rows that begin at multiples of 16 bytes, got the strides "
                f"{each.strides}"
            )
    check_contiguous(classes)
    flat = operand(name, "target", classes.value.reshape(-1))
    if 0 in given.shape:
        rows = operand(name, "x", given.value.reshape(-1, depth))
    return Layer(rows, weights, flat, ignore_index, smoothing, logits_bytes)


def _as_matrix(name: str, argument: str, given: Operand) -> Operand:
    """The rows of a tensor as a matrix, on its memory. Raises ValueError for rows that lie at no one distance."""
    rows_of(given)
    return operand(name, argument, given.value.reshape(-1, given.shape[-1]))
