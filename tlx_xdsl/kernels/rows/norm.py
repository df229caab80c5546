"""Normalised rows: `layer_norm(x, weight, bias)` and `rms_norm(x, weight)`, also of the sum with a residual.

The sum comes of the same launch (`layer_norm_residual`, `rms_norm_residual`). The launches are in `norms`.
"""

from __future__ import annotations

from typing import Any

from ..calls.launching import Launch
from ..calls.planned_function import PlannedFunction
from ..operators import rows as operators
from .norms import NORM_BACKWARD, norm_function, norm_launch


def layer_norm(x: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5, out: Any = None) -> Any:
    """Return (x - mean) / sqrt(variance + eps) * weight + bias along the last dimension, computed in f32.

    fp16, bf16 or fp32, all of one type. The last dimension is contiguous, the others lie as rows at one distance;
    `weight` and `bias` are contiguous, of as many elements as a row has. `out` receives the result where it is given.
    Arrays of numpy and tensors on the CPU run there, as machine code but for long rows. torch has its gradient
    (`norm_backward`).

    Raises TypeError for other types, ValueError for other shapes and strides, and rows of more than 1048576 elements.
    """
    return LAYER_NORM((x, weight, bias, out), (eps,))


def rms_norm(x: Any, weight: Any = None, *, eps: float = 1e-6, out: Any = None) -> Any:
    """Return x / sqrt(mean(x^2) + eps) * weight along the last dimension, computed in f32.

    fp16, bf16 or fp32, all of one type. The last dimension is contiguous, the others lie as rows at one distance;
    `weight` is contiguous, of as many elements as a row has. `out` receives the result where it is given. Arrays of
    numpy and tensors on the CPU run there, as machine code but for long rows. torch's tensors have
    gradients (`norm_backward`).

    Raises TypeError for other types, ValueError for other shapes and strides, and rows of more than 1048576 elements.
    """
    return RMS_NORM((x, weight, out), (eps,))


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


def _norm_residual(name: str, factors: tuple[str, ...]) -> PlannedFunction:
    operator = operators.norm_residual(name, factors, NORM_BACKWARD)
    return norm_function(name, f"x residual {' '.join(factors)} out h", "bias" in factors, operator)


LAYER_NORM = norm_function("layer_norm", "x weight bias out", True, operators.norm("layer_norm", NORM_BACKWARD))
RMS_NORM = norm_function("rms_norm", "x weight out", False, operators.norm("rms_norm", NORM_BACKWARD))
LAYER_NORM_RESIDUAL = _norm_residual("layer_norm_residual", ("weight", "bias"))
RMS_NORM_RESIDUAL = _norm_residual("rms_norm_residual", ("weight",))


def layer_norm_launch(x: Any, weight: Any, bias: Any, out: Any, *, eps: float = 1e-5) -> Launch:
    """The launch of `layer_norm`; no extent may be 0. Raises as `layer_norm` does."""
    return norm_launch("layer_norm", x, weight, bias, out, eps, centred=True)


def rms_norm_launch(x: Any, weight: Any, out: Any, *, eps: float = 1e-6) -> Launch:
    """The launch of `rms_norm`; no extent may be 0. Raises as `rms_norm` does."""
    return norm_launch("rms_norm", x, weight, None, out, eps, centred=False)
