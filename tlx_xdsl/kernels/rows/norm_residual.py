"""The sum of rows with a residual, normalised in one launch: `rms_norm_residual` and `layer_norm_residual`.

The kernels are those of `rms_norm` and `layer_norm` (`norm_rows`, `norm_cluster_rows`, `norm_long_rows`).
"""

from __future__ import annotations

from typing import Any

from ..calls.operands import check_shape, check_types, empty, operand
from ..calls.planned_function import PlannedFunction
from ..calls.plans import Prepared
from ..operators import rows as operators
from .norms import DTYPES, NORM_BACKWARD, norm_launch


def rms_norm_residual(x: Any, residual: Any, weight: Any = None, *, eps: float = 1e-6) -> tuple[Any, Any]:
    """Return (y, h): h = x + residual, rounded to their type, and y = `rms_norm(h, weight)`.

    `x` and `residual` are of one type and shape; the rest is as for `rms_norm`, whose result this is bit for bit.
    torch's tensors have gradients: that of h is added to what comes through y before both are rounded.

    Raises TypeError for other types, ValueError for other shapes and strides, and rows of more than 1048576 elements.
    """
    return RMS_NORM_RESIDUAL((x, residual, weight, None, None), (eps,))


def layer_norm_residual(
    x: Any, residual: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5
) -> tuple[Any, Any]:
    """Return (y, h): h = x + residual, rounded to their type, and y = `layer_norm(h, weight, bias)`.

    As `rms_norm_residual` else. Raises as it does.
    """
    return LAYER_NORM_RESIDUAL((x, residual, weight, bias, None, None), (eps,))


def _prepare(name: str, tensors: tuple[Any, ...], eps: float, centred: bool) -> Prepared:
    x, residual, weight, *bias, _, _ = tensors
    given, added = operand(name, "x", x), operand(name, "residual", residual)
    check_types((given, added), DTYPES)
    check_shape(added, given.shape, "that of 'x'")
    out, h = empty(given, given.shape), empty(given, given.shape)
    factors = dict(zip(("weight", "bias"), (weight, *bias), strict=False))
    named = {"x": x, "residual": residual, **factors, "out": out, "h": h}
    if 0 in given.shape:
        return Prepared(named)
    launch = norm_launch(name, x, weight, factors.get("bias"), out, eps, centred=centred, residual=residual, h=h)
    return Prepared(named, (launch,))


def _prepare_rms(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    return _prepare("rms_norm_residual", tensors, options[0], False)


def _prepare_layer(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    return _prepare("layer_norm_residual", tensors, options[0], True)


RMS_NORM_RESIDUAL = PlannedFunction(
    "rms_norm_residual",
    _prepare_rms,
    results=slice(3, 5),
    operator=operators.norm_residual("rms_norm_residual", ("weight",), NORM_BACKWARD),
)
LAYER_NORM_RESIDUAL = PlannedFunction(
    "layer_norm_residual",
    _prepare_layer,
    results=slice(4, 6),
    operator=operators.norm_residual("layer_norm_residual", ("weight", "bias"), NORM_BACKWARD),
)
