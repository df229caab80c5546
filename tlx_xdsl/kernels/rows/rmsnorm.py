"""Rows divided by their root mean square: `rms_norm(x, weight)`. Its kernels are in `norm_rows`."""

from __future__ import annotations

from typing import Any

from ..calls.launching import Launch
from ..calls.operands import check_types, empty, operand
from ..calls.planned_function import PlannedFunction
from ..calls.plans import Prepared
from ..operators import rows as operators
from .norms import DTYPES, NORM_BACKWARD, norm_launch


def rms_norm(x: Any, weight: Any = None, *, eps: float = 1e-6, out: Any = None) -> Any:
    """Return x / sqrt(mean(x^2) + eps) * weight along the last dimension, computed in f32.

    fp16, bf16 or fp32, all of one type. The last dimension is contiguous, the others lie as rows at one distance;
    `weight` is contiguous, of as many elements as a row has. `out` receives the result where it is given. Arrays of
    numpy and tensors on the CPU run there, as machine code but for long rows. torch's tensors have
    gradients (`norm_backward`).

    Raises TypeError for other types, ValueError for other shapes and strides, and rows of more than 1048576 elements.
    """
    return RMS_NORM((x, weight, out), (eps,))


def _prepare(tensors: tuple[Any, ...], options: tuple[float]) -> Prepared:
    x, weight, out = tensors
    (eps,) = options
    given = operand("rms_norm", "x", x)
    check_types((given,), DTYPES)
    if out is None:
        out = empty(given, given.shape)
    named = {"x": x, "weight": weight, "out": out}
    return Prepared(named, () if 0 in given.shape else (rms_norm_launch(x, weight, out, eps=eps),))


RMS_NORM = PlannedFunction("rms_norm", _prepare, results=2, operator=operators.norm("rms_norm", NORM_BACKWARD))


def rms_norm_launch(x: Any, weight: Any, out: Any, *, eps: float = 1e-6) -> Launch:
    """The launch of `rms_norm`; no extent may be 0. Raises as `rms_norm` does."""
    return norm_launch("rms_norm", x, weight, None, out, eps, centred=False)
