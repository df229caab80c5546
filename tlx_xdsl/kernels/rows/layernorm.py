"""Layer normalisation of rows: `layer_norm(x, weight, bias)`. Its kernels are in `norm_rows`."""

from __future__ import annotations

from typing import Any

from ..calls.launching import Launch
from ..calls.operands import check_types, empty, operand
from ..calls.planned_function import PlannedFunction
from ..calls.plans import Prepared
from ..operators import rows as operators
from .norms import DTYPES, NORM_BACKWARD, norm_launch


def layer_norm(x: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5, out: Any = None) -> Any:
    """Return (x - mean) / sqrt(variance + eps) * weight + bias along the last dimension, computed in f32.

    fp16, bf16 or fp32, all of one type. The last dimension is contiguous, the others lie as rows at one distance;
    `weight` and `bias` are contiguous, of as many elements as a row has. `out` receives the result where it is given.
    Arrays of numpy and tensors on the CPU run there, as machine code but for long rows. torch has its gradient
    (`norm_backward`).

    Raises TypeError for other types, ValueError for other shapes and strides, and rows of more than 1048576 elements.
    """
    return LAYER_NORM((x, weight, bias, out), (eps,))


def _prepare(tensors: tuple[Any, ...], options: tuple[float]) -> Prepared:
    x, weight, bias, out = tensors
    (eps,) = options
    given = operand("layer_norm", "x", x)
    check_types((given,), DTYPES)
    if out is None:
        out = empty(given, given.shape)
    named = {"x": x, "weight": weight, "bias": bias, "out": out}
    return Prepared(named, () if 0 in given.shape else (layer_norm_launch(x, weight, bias, out, eps=eps),))


LAYER_NORM = PlannedFunction("layer_norm", _prepare, results=3, operator=operators.norm("layer_norm", NORM_BACKWARD))


def layer_norm_launch(x: Any, weight: Any, bias: Any, out: Any, *, eps: float = 1e-5) -> Launch:
    """The launch of `layer_norm`; no extent may be 0. Raises as `layer_norm` does."""
    return norm_launch("layer_norm", x, weight, bias, out, eps, centred=True)
